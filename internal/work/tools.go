package work

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/outcrop-dev/outcrop/internal/exit"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/jsonl"
	"github.com/outcrop-dev/outcrop/tool"
	"github.com/outcrop-dev/outcrop/tool/files"
	recall "github.com/outcrop-dev/outcrop/tool/history"
	"github.com/outcrop-dev/outcrop/tool/mcp"
	"github.com/outcrop-dev/outcrop/tool/shell"
)

// tools are what the model may call in the workspace.
type tools struct {
	registry *tool.Registry
	closers  []func() error
}

func (t *tools) close(log *slog.Logger) {
	if t == nil {
		return
	}
	for _, f := range slices.Backward(t.closers) {
		if err := f(); err != nil {
			log.Warn("a tool cannot be closed", "err", err)
		}
	}
}

func (w *Work) openTools(ctx context.Context) (*tools, error) {
	// Outputs that are too long for the log are kept beside the sessions, not
	// among them, and can be read from there.
	spill, err := w.spillFolder(w.Session().ID())
	if err != nil {
		return nil, err
	}
	ws, err := files.Open(w.dir, spill)
	if err != nil {
		return nil, err
	}
	t := &tools{closers: []func() error{ws.Close}}
	if err := w.fill(ctx, t, ws, spill); err != nil {
		t.close(w.a.Logger)
		return nil, err
	}
	return t, nil
}

// fill puts the tools together.
func (w *Work) fill(ctx context.Context, t *tools, ws *files.Workspace, spill string) error {
	ws.Learn(w.Session().Log())
	all, err := ws.Tools()
	if err != nil {
		return err
	}
	env := withoutKeys(os.Environ(), w.cfg.KeyVariables())
	sh, err := shell.New(shell.Options{Dir: w.dir, Env: env})
	if err != nil {
		return err
	}
	past, err := recall.Tools(recall.Options{Session: w.Session(), Searcher: indexed{w, w.Session()}})
	if err != nil {
		return err
	}
	all = append(append(all, sh), past...)
	servers, errs := w.cfg.Servers(ctx, w.dir, env)
	set, down := mcp.Connect(ctx, servers, mcp.Options{Logger: w.a.Logger, Objects: store.ObjectsOf(w.store), Now: w.a.Env.Now})
	t.closers = append(t.closers, set.Close)
	if err := ctx.Err(); err != nil {
		return err
	}
	for _, err := range append(errs, down...) {
		w.a.Note("%s: its tools are not there", exit.Explain(err))
	}
	all = append(all, set.Tools()...)
	t.registry, err = tool.NewRegistry(tool.Options{Spill: tool.DirSpill{Dir: spill}, Logger: w.a.Logger}, all...)
	return err
}

// spillFolder is where a session's long outputs are kept.
func (w *Work) spillFolder(id string) (string, error) {
	home, err := w.a.StateHome()
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
