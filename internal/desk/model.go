package desk

import (
	"context"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/config"
	"github.com/outcrop-dev/outcrop/internal/exit"
	"github.com/outcrop-dev/outcrop/llm"
)

// LoadConfig reads the configuration for a workspace, "" for none.
func (a *Desk) LoadConfig(workspace string) (*config.Config, error) {
	env := config.Env{Getenv: a.Env.Getenv, Home: a.Home(), Workspace: workspace}
	if a.Flags.Config != "" {
		env.File, env.FileFrom = a.Path(a.Flags.Config), "--config"
	} else if f := a.Env.Getenv("OUTCROP_CONFIG"); f != "" {
		env.File, env.FileFrom = a.Path(f), "OUTCROP_CONFIG"
	}
	c, err := config.Load(env)
	return c, exit.Misuse(err)
}

// ChooseModel chooses a model; s is the session that is gone on with, or nil.
func (a *Desk) ChooseModel(c *config.Config, flag string, s *outcrop.Session) (config.Model, error) {
	var logged *config.Logged
	if s != nil {
		if h, ok := s.RequestHeader(); ok {
			if cfg, _, _, err := llm.ParseHeader(h.Raw); err == nil {
				logged = &config.Logged{Provider: cfg.Provider, Model: cfg.Model}
			}
		}
	}
	m, err := c.Choose(flag, logged)
	return m, exit.Misuse(err)
}

// OpenModel makes the client of a model's provider.
func (a *Desk) OpenModel(ctx context.Context, c *config.Config, m config.Model) (llm.Provider, error) {
	p, err := c.Open(ctx, m.Provider, a.Dial())
	return p, exit.Misuse(err)
}

// Dial is what clients of providers are made with.
func (a *Desk) Dial() config.Dial { return config.Dial{Logger: a.Logger, Now: a.Env.Now} }

// Workspace is the directory of --cwd, else where the process stands.
func (a *Desk) Workspace() (string, error) {
	if a.Flags.Cwd != "" {
		return a.Path(a.Flags.Cwd), nil
	}
	return a.WorkingDir()
}
