package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/outcrop-dev/outcrop/internal/answer"
	"github.com/outcrop-dev/outcrop/internal/demo"
	"github.com/outcrop-dev/outcrop/internal/exit"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/internal/term"
)

func (a *app) newDemoCommand() *cobra.Command {
	var dir string
	c := &cobra.Command{
		Use:   "demo",
		Short: "See it work: a scripted model, real tools, no key, no network",
		Long: `Plays a small session in a new folder: the real loop, the real tools and a real
store, with a model that reads its replies from a script. Two history edits and
a crash are part of it. In the end it checks its own work; the exit code is 0
only when every check holds. Nothing is written outside the folder.`,
		Args: exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			root, err := a.demoFolder(dir)
			if err != nil {
				return err
			}
			r, err := demo.Run(c.Context(), demo.Options{Dir: root, Now: a.Now, Logger: a.Logger})
			if err != nil {
				return fmt.Errorf("demo in %s: %w", term.Line(root), err)
			}
			if a.Flags.JSON {
				err = a.Line(demoFacts(r))
			} else {
				a.Text(r.Text(a.Env.Program, func(command string) bool {
					found, _, err := c.Root().Find([]string{command})
					return err == nil && found != c.Root()
				}))
			}
			if err == nil && len(r.Faults) > 0 {
				err = exit.Refusedf("the demo does not hold: %s", strings.Join(r.Faults, "; "))
			}
			return err
		},
	}
	c.Flags().StringVar(&dir, "dir", "", "use this `DIR`, which must be new or empty (default: a new one for temporary files)")
	return c
}

// demoFolder makes the folder that takes everything.
func (a *app) demoFolder(dir string) (string, error) {
	if dir != "" {
		root := a.Path(dir)
		if entries, err := os.ReadDir(root); err == nil && len(entries) > 0 {
			return "", exit.Usagef("--dir %s is not empty: name a new folder", term.Line(dir))
		} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", exit.With(2, err)
		}
		if err := os.MkdirAll(root, 0o755); err != nil {
			return "", exit.With(2, err)
		}
		return root, nil
	}
	temp := a.Env.Getenv("TMPDIR")
	if temp == "" {
		temp = os.TempDir()
	}
	for range 100 {
		id := a.Env.NewID()
		root := filepath.Join(temp, "outcrop-demo-"+id[max(0, len(id)-4):])
		if err := os.Mkdir(root, 0o755); err == nil || !errors.Is(err, fs.ErrExist) {
			return root, err
		}
	}
	return "", fmt.Errorf("%s is full of folders of earlier demos: remove them", temp)
}

// demoFacts is the demo as one JSON object.
func demoFacts(r *demo.Result) []byte {
	return answer.New().Text("session", r.Session).Text("dir", r.Dir).Text("store", r.Store).
		Number("events", int64(r.Log.Len())).
		Raw("nodes", answer.Seqs(r.Nodes)).
		Raw("turns", answer.List(len(r.Turns), func(dst []byte, i int) []byte {
			turn := r.Turns[i]
			t := answer.Inner().Text("prompt", turn.Prompt).Raw("calls", callFacts(turn.Done))
			for _, x := range turn.Done {
				if x.Answer != "" {
					t.Text("answer", x.Answer)
				}
			}
			return append(dst, t.End()...)
		})).
		Raw("prune", answer.Inner().Number("node", int64(r.Pruned)).Number("replacement", int64(r.Prune.Replacement)).
			Number("tokensBefore", r.Prune.TokensBefore).Number("tokensAfter", r.Prune.TokensAfter).End()).
		Raw("compaction", answer.Inner().Raw("shadowed", answer.Seqs(r.Compaction.Shadowed)).Number("replacement", int64(r.Compaction.Replacement)).
			Number("tokensBefore", r.Compaction.TokensBefore).Number("tokensAfter", r.Compaction.TokensAfter).End()).
		Raw("crash", answer.Inner().Text("path", r.Crash.Path).Number("lastEvent", int64(r.Crash.LastEvent)).Text("tool", r.Crash.Tool).
			Number("results", int64(r.Crash.Results)).End()).
		Raw("checks", answer.Inner().Number("prefixes", int64(r.Prefixes)).Number("requests", int64(r.Requests)).
			Number("requestsRebuilt", int64(r.Rebuilt)).
			Raw("faults", answer.List(len(r.Faults), func(dst []byte, i int) []byte { return jsonwire.AppendString(dst, r.Faults[i]) })).End()).
		Bool("ok", len(r.Faults) == 0).End()
}

func callFacts(done []demo.Done) []byte {
	var calls []demo.Done
	for _, d := range done {
		if d.Tool != "" {
			calls = append(calls, d)
		}
	}
	return answer.List(len(calls), func(dst []byte, i int) []byte {
		return append(dst, answer.Inner().Text("tool", calls[i].Tool).Text("what", calls[i].What).Text("measure", calls[i].Measure).End()...)
	})
}
