package config

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"
)

// Key says where a key comes from. Both empty: there is none.
type Key struct {
	KeyEnv     string   // the variable that holds it
	KeyCommand []string // the program that prints it
}

// NeedsKey reports whether there is a key at all.
func (k Key) NeedsKey() bool { return len(k.KeyCommand) > 0 || k.KeyEnv != "" }

// keyTimeout is how long a key_command may take: it may ask a person.
const keyTimeout = 2 * time.Minute

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

// runKeyCommand runs the program and takes the first line that it prints. What
// it prints is never part of an error.
func runKeyCommand(ctx context.Context, who string, command []string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, keyTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	name := command[0]
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return "", fmt.Errorf("%s: key_command: there is no program %s", who, name)
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return "", fmt.Errorf("%s: key_command: %s did not end within %s", who, name, keyTimeout)
	case ctx.Err() != nil:
		return "", ctx.Err()
	case err != nil:
		var ee *exec.ExitError
		if errors.As(err, &ee) {
			return "", fmt.Errorf("%s: key_command: %s ended with %s", who, name, ee.ProcessState)
		}
		return "", fmt.Errorf("%s: key_command: %w", who, err)
	}
	line, _, _ := bytes.Cut(out, []byte("\n"))
	if key := string(bytes.TrimSpace(line)); key != "" {
		return key, nil
	}
	return "", fmt.Errorf("%s: key_command: %s printed no key", who, name)
}
