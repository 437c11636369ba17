package config

import (
	"context"
	"fmt"
	"strings"
)

// Key says where a key comes from. Both empty: there is none.
type Key struct {
	KeyEnv     string   // the variable that holds it
	KeyCommand []string // the program that prints it
}

// NeedsKey reports whether there is a key at all.
func (k Key) NeedsKey() bool { return len(k.KeyCommand) > 0 || k.KeyEnv != "" }

// key reads the key of whoever is called name; "" when there is none to read.
func (c *Config) key(ctx context.Context, name string, k Key) (key, from string, err error) {
	switch {
	case len(k.KeyCommand) > 0:
		key, err = runKeyCommand(ctx, name, k.KeyCommand)
		return key, "key_command", err
	case k.KeyEnv != "":
		if key = strings.TrimSpace(c.env.Getenv(k.KeyEnv)); key == "" {
			return "", "", fmt.Errorf("%s: no key: set %s, or key_command in %s", name, k.KeyEnv, c.fileName())
		}
		return key, k.KeyEnv, nil
	}
	return "", "", nil
}

// KeyVariables are the variables that hold keys, sorted: of providers and of MCP
// servers. No program that a model can reach should see them.
func (c *Config) KeyVariables() []string {
	set := map[string]bool{}
	for _, p := range c.Providers {
		set[p.KeyEnv] = true
	}
	for _, m := range c.MCP {
		set[m.KeyEnv] = true
	}
	delete(set, "")
	return sorted(set)
}
