package run

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/outcrop-dev/outcrop/internal/config"
	"github.com/outcrop-dev/outcrop/store/jsonl"
	"github.com/outcrop-dev/outcrop/tool"
	"github.com/outcrop-dev/outcrop/tool/files"
	"github.com/outcrop-dev/outcrop/tool/shell"
)

// tools makes the tools of the workspace.
func (r *run) tools() (reg *tool.Registry, closeAll func(), err error) {
	// Outputs that are too long for the log are kept beside the sessions, not
	// among them, and can be read from there.
	spill, err := r.spillFolder(r.live.Session().ID())
	if err != nil {
		return nil, nil, err
	}
	ws, err := files.Open(r.dir, spill)
	if err != nil {
		return nil, nil, err
	}
	closeAll = func() {
		if err := ws.Close(); err != nil {
			r.a.Logger.Warn("the workspace cannot be closed", "err", err)
		}
	}
	ws.Learn(r.live.Session().Log())
	all, err := ws.Tools()
	if err == nil {
		var sh tool.Tool
		if sh, err = shell.New(shell.Options{Dir: r.dir, Env: withoutKeys(os.Environ(), keyVariables(r.cfg))}); err == nil {
			all = append(all, sh)
			reg, err = tool.NewRegistry(tool.Options{Spill: tool.DirSpill{Dir: spill}, Logger: r.a.Logger}, all...)
		}
	}
	if err != nil {
		closeAll()
		return nil, nil, err
	}
	return reg, closeAll, nil
}

// spillFolder is where a session's long outputs are kept.
func (r *run) spillFolder(id string) (string, error) {
	home, err := r.a.StateHome()
	return filepath.Join(home, "output", jsonl.EncodeSegment(id)), err
}

// withoutKeys leaves the variables that hold keys out of an environment: what a
// command prints is logged.
func withoutKeys(env, keys []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.Contains(keys, name)
	})
}

// keyVariables are the variables that hold keys of providers.
func keyVariables(c *config.Config) (names []string) {
	for _, p := range c.Providers {
		if p.KeyEnv != "" {
			names = append(names, p.KeyEnv)
		}
	}
	return names
}
