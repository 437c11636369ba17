package config

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/outcrop-dev/outcrop/tool/mcp"
)

// MCP is one [mcp.NAME].
type MCP struct {
	Command   []string
	URL       string
	Key              // sent with every request to URL
	KeyHeader string // the header that carries the key
	Trust     bool
}

const bearerHeader = "Authorization"

// mcp takes one [mcp.NAME].
func (f *filed) mcp(name string, d *documentMCP) error {
	at := "mcp." + name
	switch {
	case strings.TrimSpace(name) == "":
		return f.bad(at, "the name of an MCP server is empty")
	case (len(d.Command) > 0) == (d.URL != nil):
		return f.bad(at, "give either command or url")
	case d.Command != nil && d.Command[0] == "":
		return f.bad(at+".command", "it names no program")
	}
	if d.URL == nil {
		for _, m := range [...]struct {
			name string
			set  bool
		}{{"key_env", d.KeyEnv != nil}, {"key_command", d.KeyCommand != nil}, {"key_header", d.KeyHeader != nil}} {
			if m.set {
				return f.bad(at+"."+m.name, "it goes with url: a program takes its key from its environment")
			}
		}
	} else if msg := badURL(*d.URL, "https://HOST/mcp"); msg != "" {
		return f.bad(at+".url", "%s", msg)
	}
	m := &MCP{Command: d.Command}
	if d.URL != nil {
		m.KeyHeader = bearerHeader
	} else {
		f.set(at + ".command")
	}
	put(f, at+".url", &m.URL, d.URL)
	if err := f.key(at, &m.Key, d.KeyEnv, d.KeyCommand); err != nil {
		return err
	}
	if h := d.KeyHeader; h != nil && !headerName(*h) {
		return f.bad(at+".key_header", "%q is no name of a header", *h)
	}
	put(f, at+".key_header", &m.KeyHeader, d.KeyHeader)
	put(f, at+".trust", &m.Trust, d.Trust)
	f.c.MCP[name] = m
	return nil
}

func headerName(s string) bool {
	return s != "" && strings.IndexFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_')
	}) < 0
}

// Servers are the MCP servers as mcp.Connect wants them, sorted by name.
// Programs run in dir, with the variables of environ (NAME=VALUE) but for those
// that hold keys. Keys are read now; a server whose key cannot be had is an error
// in the list and left out.
func (c *Config) Servers(ctx context.Context, dir string, environ []string) ([]mcp.Server, []error) {
	var out []mcp.Server
	var errs []error
	hidden := c.KeyVariables()
	env := []string{} // never nil, which would stand for all that there is
	for _, v := range environ {
		if name, _, _ := strings.Cut(v, "="); !slices.Contains(hidden, name) {
			env = append(env, v)
		}
	}
	for _, name := range sorted(c.MCP) {
		m := c.MCP[name]
		s := mcp.Server{Name: name, Command: m.Command, Env: env, Dir: dir, URL: m.URL, Trust: m.Trust}
		key, from, err := c.key(ctx, "mcp server "+name, m.Key)
		switch {
		case err != nil:
			errs = append(errs, err)
			continue
		case strings.IndexFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }) >= 0:
			errs = append(errs, fmt.Errorf("mcp server %s: the key holds characters that no key has: check %s", name, from))
			continue
		case key != "":
			if strings.EqualFold(m.KeyHeader, bearerHeader) {
				key = "Bearer " + key
			}
			s.Headers, s.KeyFrom = map[string]string{m.KeyHeader: key}, from
		}
		out = append(out, s)
	}
	return out, errs
}
