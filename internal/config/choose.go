package config

import (
	"fmt"
	"strings"

	"github.com/outcrop-dev/outcrop/llm"
)

// Model is a chosen model with what is known about it.
type Model struct {
	Provider  *Provider
	Name      string     // as the server calls it
	Window    int64      // tokens, 0 when unknown
	MaxOutput int64      // tokens, 0 when unknown
	Images    bool       // it takes images
	Price     *llm.Price // nil when unknown
	Origin    Origin     // what chose it
}

// Logged is the model that a session's last request header names.
type Logged struct{ Provider, Model string }

// SplitModel splits PROVIDER:MODEL at its first colon.
func SplitModel(s string) (provider, model string, err error) {
	provider, model, ok := strings.Cut(s, ":")
	if !ok || provider == "" || model == "" {
		return "", "", fmt.Errorf("%q names no model: write PROVIDER:MODEL", s)
	}
	return provider, model, nil
}

// Choose chooses the model: flag (--model), OUTCROP_MODEL, that of the session
// that is gone on with, model in the file. There is no built-in default.
func (c *Config) Choose(flag string, logged *Logged) (Model, error) {
	switch {
	case flag != "":
		return c.find(flag, "--model")
	case c.fromEnv:
		return c.find(c.Model, "OUTCROP_MODEL")
	case logged != nil:
		if logged.Provider == Scripted {
			return Model{}, fmt.Errorf("the session was made by the scripted model %s:%s: give --script FILE to play on, or --model PROVIDER:MODEL%s",
				logged.Provider, logged.Model, c.usable())
		}
		if c.Providers[logged.Provider] == nil {
			return Model{}, fmt.Errorf("the session was made with %s:%s, and no provider %s is configured: use --model PROVIDER:MODEL%s",
				logged.Provider, logged.Model, logged.Provider, c.usable())
		}
		return c.model(logged.Provider, logged.Model, "the session")
	case c.Model != "":
		return c.find(c.Model, c.modelFrom)
	}
	return Model{}, fmt.Errorf("no model chosen: use --model PROVIDER:MODEL or set model in %s%s", c.fileName(), c.usable())
}

func (c *Config) find(s string, from Origin) (Model, error) {
	provider, model, err := SplitModel(s)
	if err != nil {
		return Model{}, fmt.Errorf("%s: %w", from, err)
	}
	if provider == Scripted {
		return Model{}, fmt.Errorf("%s: the scripted model is chosen with --script FILE", from)
	}
	if c.Providers[provider] == nil {
		if near := Nearest(provider, sorted(c.Providers)); near != "" {
			return Model{}, fmt.Errorf("%s: there is no provider %q: did you mean %s?", from, provider, near)
		}
		return Model{}, fmt.Errorf("%s: there is no provider %q: there are %s", from, provider, strings.Join(sorted(c.Providers), ", "))
	}
	return c.model(provider, model, from)
}

func (c *Config) model(provider, name string, from Origin) (Model, error) {
	p := c.Providers[provider]
	m := Model{Provider: p, Name: name, Origin: from}
	if s := p.Models[name]; s != nil {
		m.Window, m.MaxOutput, m.Images, m.Price = s.Window, s.MaxOutput, s.Images, s.Price
	}
	return m, nil
}

// fileName is how messages name the user's file.
func (c *Config) fileName() string {
	if c.UserFile == "" {
		return "config.toml"
	}
	return c.Short(c.UserFile)
}

// usable lists the providers that have a key here, in parentheses.
func (c *Config) usable() string {
	var with []string
	for _, name := range sorted(c.Providers) {
		if p := c.Providers[name]; c.HasKey(p) {
			with = append(with, name)
		}
	}
	if len(with) == 0 {
		return " (no provider has a key here)"
	}
	return " (providers with a key here: " + strings.Join(with, ", ") + ")"
}

// HasKey reports whether a provider's key can be had: its variable is set, or a
// program prints it. The program is not run.
func (c *Config) HasKey(p *Provider) bool {
	return len(p.KeyCommand) > 0 || p.KeyEnv != "" && strings.TrimSpace(c.env.Getenv(p.KeyEnv)) != ""
}
