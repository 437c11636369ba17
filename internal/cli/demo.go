package cli

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/agent"
	"github.com/outcrop-dev/outcrop/history"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/llm/script"
	"github.com/outcrop-dev/outcrop/message"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/jsonl"
	"github.com/outcrop-dev/outcrop/tool"
	"github.com/outcrop-dev/outcrop/tool/files"
	"github.com/outcrop-dev/outcrop/tool/shell"
	"github.com/outcrop-dev/outcrop/wire"
)

// demoData are the script that the demo's model plays, the summary that stands
// for its first two turns, and the files of its workspace.
//
//go:embed demo
var demoData embed.FS

var demoFiles = []string{"notes.txt", "sites.txt", "todo.txt"}

var demoPrompts = []string{
	"Read notes.txt and write a short report.",
	"How long is the report?",
	"Which finding matters most?",
}

const demoSession = "demo"

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
			d := &demo{a: a, root: root}
			if err := d.play(c.Context()); err != nil {
				return fmt.Errorf("demo in %s: %w", escapeLine(root), err)
			}
			if a.flags.json {
				err = a.line(d.facts())
			} else {
				a.text(d.text(c.Root()))
			}
			if err == nil && len(d.faults) > 0 {
				err = refusedf("the demo does not hold: %s", strings.Join(d.faults, "; "))
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
		root := a.path(dir)
		if entries, err := os.ReadDir(root); err == nil && len(entries) > 0 {
			return "", usagef("--dir %s is not empty: name a new folder", escapeLine(dir))
		} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", &exitError{2, err}
		}
		if err := os.MkdirAll(root, 0o755); err != nil {
			return "", &exitError{2, err}
		}
		return root, nil
	}
	temp := a.env.Getenv("TMPDIR")
	if temp == "" {
		temp = os.TempDir()
	}
	for range 100 {
		id := a.env.NewID()
		root := filepath.Join(temp, "outcrop-demo-"+id[max(0, len(id)-4):])
		if err := os.Mkdir(root, 0o755); err == nil || !errors.Is(err, fs.ErrExist) {
			return root, err
		}
	}
	return "", fmt.Errorf("%s is full of folders of earlier demos: remove them", temp)
}

// demo is one run of the demo and what it found.
type demo struct {
	a    *app
	root string

	header outcrop.Header
	log    outcrop.Log
	nodes  []outcrop.Seq // the live surface at the end
	sent   []llm.Request // what the model was given
	asked  int           // questions about calls
	prune  history.Edit
	pruned outcrop.Seq // the result that was pruned
	fold   history.Edit
	crash  crashed

	prefixes, requests int // that were checked
	faults             []string
}

func (d *demo) dir(name string) string { return filepath.Join(d.root, name) }

func (d *demo) store() string { return "jsonl:" + d.dir("store") }

// play runs the session, the crash and the checks.
func (d *demo) play(ctx context.Context) error {
	for _, name := range [...]string{"work", "crash"} { // the store makes its own
		if err := os.Mkdir(d.dir(name), 0o700); err != nil {
			return err
		}
	}
	for _, name := range demoFiles {
		b, err := demoData.ReadFile("demo/" + name)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(d.dir("work"), name), b, 0o644); err != nil {
			return err
		}
	}
	if err := d.session(ctx); err != nil {
		return err
	}
	if err := d.crashAndRepair(ctx); err != nil {
		return err
	}
	return d.check(ctx)
}

// session plays the three turns and the two edits.
func (d *demo) session(ctx context.Context) (err error) {
	st, err := jsonl.New(d.dir("store"), d.a.fileOptions())
	if err != nil {
		return err
	}
	d.header = outcrop.NewHeader(demoSession, d.a.now(), d.dir("work"))
	live, err := store.Create(ctx, st, d.header, store.Options{Session: outcrop.Options{Now: d.a.now, Logger: d.a.logger}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, live.Close(context.WithoutCancel(ctx))) }()
	text, err := demoData.ReadFile("demo/script.jsonl")
	if err != nil {
		return err
	}
	sc, err := script.Parse("demo.jsonl", text)
	if err != nil {
		return err
	}
	tools, closeTools, err := d.tools()
	if err != nil {
		return err
	}
	defer closeTools()
	ag, err := agent.New(agent.Options{
		Live: live, Provider: &listening{Model: script.Model{Script: sc}, d: d},
		Config: llm.Config{Provider: script.Provider, Model: sc.Header.Model}, Window: sc.Header.Window,
		System: strings.TrimSpace(agent.DefaultSystem), Tools: tools, Approver: d, Logger: d.a.logger,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ag.Close(context.WithoutCancel(ctx))) }()
	for i, prompt := range demoPrompts {
		if err := d.turn(ctx, ag, prompt); err != nil {
			return err
		}
		if i == 1 {
			if err := ag.Maintain(ctx, d.edit); err != nil {
				return err
			}
		}
	}
	d.log, d.nodes = live.Session().Log(), live.Session().Surface().Nodes()
	return nil
}

func (d *demo) turn(ctx context.Context, ag *agent.Agent, prompt string) error {
	if _, err := ag.Send(ctx, message.Message{Content: []message.Block{message.Text(prompt)}}); err != nil {
		return err
	}
	end, err := ag.Wait(ctx)
	switch {
	case err != nil:
		return err
	case end.Err != nil:
		return end.Err
	case end.Reason.Error != nil:
		return end.Reason.Error
	case end.Reason.Kind != outcrop.Completed:
		return fmt.Errorf("turn %d ended as %s", end.Turn, end.Reason.Kind)
	}
	return nil
}

func (d *demo) tools() (*tool.Registry, func(), error) {
	ws, err := files.Open(d.dir("work"))
	if err != nil {
		return nil, nil, err
	}
	closeAll := func() { _ = ws.Close() } // only folders that were read are open
	all, err := ws.Tools()
	if err != nil {
		return nil, closeAll, err
	}
	sh, err := shell.New(shell.Options{Dir: d.dir("work")})
	if err != nil {
		return nil, closeAll, err
	}
	reg, err := tool.NewRegistry(tool.Options{Logger: d.a.logger}, append(all, sh)...)
	return reg, closeAll, err
}

// Approve allows the script's own two calls that ask, and nothing else.
func (d *demo) Approve(_ context.Context, q agent.Question) (agent.Answer, error) {
	d.asked++
	args := []byte(q.Arguments)
	ok := q.Tool == "write" && jsonwire.TextIs(jsonwire.Get(args, "path"), "report.md") ||
		q.Tool == "shell" && jsonwire.TextIs(jsonwire.Get(args, "command"), "wc -l report.md")
	if !ok {
		return agent.Answer{Verdict: agent.Reject, Reason: "the demo allows its own calls only"}, nil
	}
	return agent.Answer{Verdict: agent.AllowOnce}, nil
}

// listening is the scripted model; it keeps what it was given, so that it can be
// compared with what is rebuilt from the log.
type listening struct {
	script.Model
	mu sync.Mutex
	d  *demo
}

// Stream implements llm.Provider.
func (l *listening) Stream(ctx context.Context, req llm.Request) iter.Seq2[message.Chunk, error] {
	l.mu.Lock()
	l.d.sent = append(l.d.sent, req)
	l.mu.Unlock()
	return l.Model.Stream(ctx, req)
}

// keep is how much of the pruned result stays, at its head and at its tail.
const keep = 2560

// edit prunes the big result and compacts the first two turns.
func (d *demo) edit(s *outcrop.Session) (err error) {
	d.pruned = -1
	for _, n := range s.Surface().Nodes() {
		if s.Log().At(n).Type == outcrop.TypeToolResult {
			d.pruned = n
			break
		}
	}
	if d.pruned < 0 {
		return errors.New("no tool result is on the surface")
	}
	full := resultText(s.Log().At(d.pruned))
	if len(full) < 3*keep {
		return fmt.Errorf("event %d is too short to be pruned: %q", d.pruned, full)
	}
	// The files are ASCII, so bytes are characters.
	short := fmt.Sprintf("%s\n[... %s of %s characters cut; the original is event %d ...]\n%s",
		full[:keep], count(int64(len(full)-2*keep)), count(int64(len(full))), d.pruned, full[len(full)-keep:])
	if d.prune, err = history.CommitPrune(s, d.pruned, []message.Block{message.Text(short)}); err != nil {
		return err
	}
	summary, err := demoData.ReadFile("demo/summary.txt")
	if err != nil {
		return err
	}
	nodes := s.Surface().Nodes()
	d.fold, err = history.CommitCompaction(s, history.Compaction{
		Start: nodes[0], End: nodes[len(nodes)-1], Provider: script.Provider, Model: "demo", Level: 1,
		Summary: []message.Block{message.Text(strings.TrimSpace(string(summary)))},
	})
	return err
}

// resultText is the text of a tool/result.
func resultText(ev outcrop.Event) string {
	m, err := message.Parse(jsonwire.Get(ev.Data, "message"))
	if err != nil || len(m.Content) == 0 {
		return ""
	}
	return message.PlainText(m.Content[0].Content)
}

// crashed is what the crash left and the repair did.
type crashed struct {
	path    string
	cut     outcrop.Seq // last event that the crash left whole
	tool    string
	stored  outcrop.Seq
	log     outcrop.Log // after the repair
	same    bool        // the workspace is as it was before
	results int         // closing results
}

// crashAndRepair writes a log as a crash would have left it while the shell ran,
// with half a line at its end, opens it and closes it again.
func (d *demo) crashAndRepair(ctx context.Context) error {
	c := &d.crash
	c.path = filepath.Join(d.dir("crash"), "session.jsonl")
	c.cut = -1
	for ev := range outcrop.Events(d.log, 0) {
		if ev.Type == outcrop.TypeToolCall {
			c.cut = ev.Seq // the last call is the shell's
			c.tool, _ = jsonwire.Text(jsonwire.Get(ev.Data, "name"))
		}
	}
	if c.cut < 0 {
		return errors.New("no call was made")
	}
	// The call was approved and is running.
	for c.cut+1 < outcrop.Seq(d.log.Len()) && d.log.At(c.cut+1).Type != outcrop.TypeToolResult {
		c.cut++
	}
	enc := wire.NewEncoder(wire.Plain)
	b, err := enc.Batch(enc.Header(nil, d.header), outcrop.Prefix(d.log, int(c.cut)+1).Records(0))
	if err != nil {
		return err
	}
	next := d.log.At(c.cut + 1).AppendJSON(nil)
	if err := os.WriteFile(c.path, append(b, next[:len(next)/2]...), 0o600); err != nil {
		return err
	}
	before, err := d.snapshot()
	if err != nil {
		return err
	}
	live, err := jsonl.OpenFile(ctx, c.path, d.a.fileOptions(), store.Options{Session: outcrop.Options{Now: d.a.now, Logger: d.a.logger}})
	if err != nil {
		return err
	}
	c.log, c.stored = live.Session().Log(), live.Session().Stored()
	if err := errors.Join(live.Flush(ctx), live.Close(ctx)); err != nil {
		return err
	}
	after, err := d.snapshot()
	c.same = bytes.Equal(before, after)
	return err
}

// snapshot is everything in the workspace, one after the other.
func (d *demo) snapshot() (all []byte, err error) {
	err = filepath.WalkDir(d.dir("work"), func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		all = append(append(all, path...), b...)
		return err
	})
	return all, err
}
