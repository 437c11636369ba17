package cli

import (
	"context"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/config"
	"github.com/outcrop-dev/outcrop/llm"
)

// loadConfig reads the configuration for a workspace, "" for none.
func (a *app) loadConfig(workspace string) (*config.Config, error) {
	env := config.Env{Getenv: a.env.Getenv, Home: a.home(), Workspace: workspace}
	if a.flags.config != "" {
		env.File, env.FileFrom = a.path(a.flags.config), "--config"
	} else if f := a.env.Getenv("OUTCROP_CONFIG"); f != "" {
		env.File, env.FileFrom = a.path(f), "OUTCROP_CONFIG"
	}
	c, err := config.Load(env)
	return c, misuse(err)
}

// chooseModel chooses a model; s is the session that is gone on with, or nil.
func (a *app) chooseModel(c *config.Config, flag string, s *outcrop.Session) (config.Model, error) {
	var logged *config.Logged
	if s != nil {
		if h, ok := s.RequestHeader(); ok {
			if cfg, _, _, err := llm.ParseHeader(h.Raw); err == nil {
				logged = &config.Logged{Provider: cfg.Provider, Model: cfg.Model}
			}
		}
	}
	m, err := c.Choose(flag, logged)
	return m, misuse(err)
}

// openModel makes the client of a model's provider.
func (a *app) openModel(ctx context.Context, c *config.Config, m config.Model) (llm.Provider, error) {
	p, err := c.Open(ctx, m.Provider, a.dial())
	return p, misuse(err)
}

func (a *app) dial() config.Dial { return config.Dial{Logger: a.logger, Now: a.env.Now} }

// workspace is the directory of --cwd, else where the process stands.
func (a *app) workspace() (string, error) {
	if a.flags.cwd != "" {
		return a.path(a.flags.cwd), nil
	}
	return a.workingDir()
}
