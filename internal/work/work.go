// Package work is a session at work: everything that the commands which run an
// agent have in common, between the flags and the loop.
//
// # Order
//
//	Prepare   flags, session, workspace, configuration, model: whatever can be
//	          refused is refused here, before a session is touched
//	Open      the session is taken up and repaired, or a new one is begun; a
//	          new one is stored with its first event
//	Engage    tools, contexts and the agent; SetModel and SetPolicy change it
//	          while it lives
//	Close     what is committed is saved, the tools end, the lock goes back
//
// A Work belongs to one goroutine, except that Attach, Unseen, Model and Policy may be
// called from any. What it hands out (session, agent) has rules of its own.
//
// # What holds where
//
// The approval policy and the limits are those of the flags, else of the
// configuration; nothing in a log widens them. The workspace is --cwd, else what
// the session's header names, else (that is not here) the current folder.
package work

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/agent"
	"github.com/outcrop-dev/outcrop/history"
	"github.com/outcrop-dev/outcrop/internal/attach"
	"github.com/outcrop-dev/outcrop/internal/config"
	"github.com/outcrop-dev/outcrop/internal/desk"
	"github.com/outcrop-dev/outcrop/internal/exit"
	"github.com/outcrop-dev/outcrop/internal/term"
	"github.com/outcrop-dev/outcrop/llm/script"
	"github.com/outcrop-dev/outcrop/message"
	"github.com/outcrop-dev/outcrop/store"
)

// Work is one session at work.
type Work struct {
	a     *desk.Desk
	flags Flags

	target *desk.Target     // nil for a new session
	store  store.Store      // where the session is, or will be
	from   store.Store      // of the session that went on in a new one, nil for another
	stored *outcrop.Session // the session as it is stored, nil for a new one
	dir    string           // workspace
	cfg    *config.Config
	system string

	live    *store.Live
	tools   *tools
	agent   *agent.Agent
	history *history.Manager
	unwatch func() // ends what watch began, nil when nothing is watched

	// Notify hears what the history manager has to say; nil: notes on stderr.
	// It is set before Open.
	Notify func(history.Notice)

	mu     sync.Mutex
	policy agent.Policy
	model  Model
	blind  string // the model of which Unseen has said that it takes no images

	toldMissing bool
}

// Prepare reads everything and refuses what can be refused; no session is
// touched.
func Prepare(ctx context.Context, a *desk.Desk, f Flags) (*Work, error) {
	w := &Work{a: a, flags: f}
	for _, step := range []func(context.Context) error{
		func(context.Context) error { return f.Check() },
		w.findSession,
		func(context.Context) error { return w.configure() },
		w.chooseModel,
	} {
		if err := step(ctx); err != nil {
			return nil, err
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// findSession reads the session that goes on, as it is stored, and finds the
// workspace.
func (w *Work) findSession(ctx context.Context) error {
	var stated *string
	if w.flags.Session != "" {
		t, err := w.a.Resolve(ctx, w.flags.Session)
		if err != nil {
			return err
		}
		// What came later would be missing in what goes on: only a fork, which
		// a person asks for, takes the older log.
		if err := store.Overtaken(ctx, t.Store, t.ID); err != nil {
			return err
		}
		s, tail, err := store.Inspect(ctx, t.Store, t.ID, outcrop.Options{})
		if err != nil {
			return exit.Unreadable(err)
		}
		w.target, w.stored, w.store = t, s, t.Store
		stated = s.Header().Cwd
		if w.neverWritten() != "" && tail.Torn {
			w.a.Note("the last %d bytes of the log are torn: the new session goes on without them", tail.Bytes)
		}
		if w.neverWritten() != "" && (s.Header().Format == 0 || t.Path != "") {
			// It goes on in a new session, which lies in the store.
			if w.store, err = w.a.NewStore(); err != nil {
				return err
			}
		}
	} else {
		st, err := w.a.OpenStore()
		if err != nil {
			return err
		}
		w.store = st
	}
	if d := w.a.Flags.Cwd; d != "" {
		w.dir = w.a.Path(d)
		return w.checkDir("--cwd " + term.Line(d))
	}
	here, err := w.a.WorkingDir()
	if err != nil {
		return err
	}
	w.dir = here
	if stated != nil {
		w.dir = *stated
		if fi, err := os.Stat(w.dir); err != nil || !fi.IsDir() {
			if !w.flags.NoTurn {
				w.a.Note("the session's workspace %s is not here: working in %s", term.Line(w.dir), term.Line(here))
			}
			w.dir = here
		}
	}
	return w.checkDir(term.Line(w.dir))
}

func (w *Work) checkDir(name string) error {
	fi, err := os.Stat(w.dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return exit.Usagef("%s: there is no such folder: name the workspace with --cwd DIR", name)
	case err != nil:
		return exit.With(2, err)
	case !fi.IsDir():
		return exit.Usagef("%s is not a folder: name the workspace with --cwd DIR", name)
	}
	return nil
}

// configure puts flags over the configuration.
func (w *Work) configure() (err error) {
	if w.cfg, err = w.a.LoadConfig(w.dir); err != nil {
		return err
	}
	if w.policy, err = w.flags.policy(w.cfg.Approve); err != nil {
		return err
	}
	w.system, err = w.readSystem()
	return err
}

// Open takes the session up, or makes a new one, and says what repair did. A new
// session is not stored before its first event is.
func (w *Work) Open(ctx context.Context) (err error) {
	if w.target != nil && w.neverWritten() != "" {
		if err := w.goOn(ctx); err != nil {
			return err
		}
	}
	if w.target != nil {
		if w.live, err = w.take(ctx); err != nil {
			return err
		}
		w.tellTail()
		return w.openHistory(ctx, w.live.Flush)
	}
	h := outcrop.NewHeader(w.a.Env.NewID(), w.a.Now(), w.dir)
	if w.flags.DSH {
		h.Outcrop = 0
	}
	if w.live, err = store.Create(ctx, w.store, h, w.storeOptions()); err != nil {
		return err
	}
	return w.openHistory(ctx, w.live.Flush)
}

// neverWritten says where the session lies that goes on, when nothing is ever
// written there: it goes on in a new one. "" for every other session.
func (w *Work) neverWritten() string {
	if what, only := store.OnlyRead(w.target.Store); only {
		return "in " + what
	}
	if f := w.stored.Header().Format; f > 0 {
		return fmt.Sprintf("in format %d of dsh", f)
	}
	return ""
}

// goOn makes the session that goes on from one that is never written.
func (w *Work) goOn(ctx context.Context) error {
	where := w.neverWritten()
	h, err := store.GoOn(ctx, w.store, w.target.Store, w.target.ID, store.Child{ID: w.a.Env.NewID(), CreatedAt: w.a.Now()})
	if err != nil {
		return err
	}
	w.a.Note("session %s is %s, which is never written: it goes on in the new session %s", term.Line(w.stored.ID()), where, term.Line(h.ID))
	w.from = w.target.Store
	w.target = &desk.Target{Store: w.store, ID: h.ID, Name: h.ID}
	return nil
}

func (w *Work) storeOptions() store.Options {
	return store.Options{Session: outcrop.Options{Now: w.a.Now, NewID: w.a.Env.NewID, Logger: w.a.Logger}}
}

// Attach reads the files that a person named, relative to dir, and makes message
// blocks of them. Images are stored. What cannot be attached is refused. It may
// be called from Prepare on.
func (w *Work) Attach(ctx context.Context, dir string, names []string) ([]message.Block, error) {
	var blocks []message.Block
	for _, name := range names {
		path := name
		if rest, ok := strings.CutPrefix(name, "~/"); ok && w.a.Home() != "" {
			path = filepath.Join(w.a.Home(), rest)
		} else if !filepath.IsAbs(name) {
			path = filepath.Join(dir, name)
		}
		b, err := attach.File(ctx, store.ObjectsOf(w.store), path, name)
		if err != nil {
			return nil, exit.Misuse(err)
		}
		blocks = append(blocks, b...)
	}
	return blocks, nil
}

// tellTail says that a torn tail is cut.
func (w *Work) tellTail() {
	if t := w.live.Tail(); t.Torn {
		w.a.Note("the last %d bytes of the log were torn: they are cut off and kept in a file beside it whose name ends in torn-%d", t.Bytes, t.Offset)
	}
}

// Store is where the session is, or will be.
func (w *Work) Store() store.Store { return w.store }

// Live is the session with its writer, after Open. A fork is another one.
func (w *Work) Live() *store.Live { return w.live }

// Session is the session, after Open.
func (w *Work) Session() *outcrop.Session { return w.live.Session() }

// Dir is the workspace, an absolute path.
func (w *Work) Dir() string { return w.dir }

// Config is the configuration as it counts.
func (w *Work) Config() *config.Config { return w.cfg }

// Desk is where the command works.
func (w *Work) Desk() *desk.Desk { return w.a }

// Durable is the first seq that is not known to be synced; 0 before the session
// is stored.
func (w *Work) Durable() outcrop.Seq {
	if w.live == nil {
		return 0
	}
	return w.live.Durable()
}

// Stored reports whether the session can be found in its store by now.
func (w *Work) Stored() bool { return w.Durable() > 0 }

// Close ends the agent and the tools, saves what is committed and lets the
// session go. Errors are told in the order in which they came.
func (w *Work) Close(ctx context.Context) error {
	var err error
	if w.unwatch != nil {
		w.unwatch()
		w.unwatch = nil
	}
	if w.agent != nil {
		err = w.agent.Close(ctx)
		w.agent = nil
	}
	w.tools.close(w.a.Logger)
	w.tools = nil
	if w.live != nil {
		err = errors.Join(err, w.live.Close(ctx))
	}
	return err
}

// GoOn is the last line of a command: how to go on with the session.
func (w *Work) GoOn() string {
	return fmt.Sprintf("session %s | %s", term.Line(w.Session().ID()), w.Again())
}

// Again is the command that goes on with the session.
func (w *Work) Again() string {
	name := w.Session().ID()
	if w.target != nil && w.target.Path != "" {
		name = w.target.Name
	}
	where := ""
	if _, only := store.OnlyRead(w.from); only {
		// It went on in the default store, which has to be named when another
		// one is set.
		if w.a.Env.Getenv("OUTCROP_STORE") != "" {
			where = " --store " + term.Word(w.store.Address())
		}
	} else if w.a.Flags.Store != "" {
		where = " --store " + term.Word(w.a.Flags.Store)
	}
	played := ""
	if w.flags.Script != "" && w.Model().config.Provider == script.Provider {
		played = " --script " + term.Word(w.flags.Script)
	}
	return fmt.Sprintf("%s chat%s --session %s%s", w.a.Env.Program, where, term.Word(name), played)
}
