package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/agent"
	"github.com/outcrop-dev/outcrop/internal/answer"
	"github.com/outcrop-dev/outcrop/internal/exit"
	"github.com/outcrop-dev/outcrop/internal/term"
	"github.com/outcrop-dev/outcrop/internal/work"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/worker"
	"github.com/outcrop-dev/outcrop/worker/metrics"
)

// working is one run of the command worker.
type working struct {
	a           *app
	flags       work.Flags
	o           worker.Options
	interrupted string
	metrics     string

	mu     sync.Mutex // the lines of several sessions
	failed bool       // a turn or a session
}

func (a *app) newWorkerCommand() *cobra.Command {
	w := &working{a: a}
	c := &cobra.Command{
		Use:   "worker",
		Short: "Answer the input that waits in sessions, until it is ended",
		Long: `Takes sessions of the store in which input waits, runs their turns, and hands
them back. Any number of workers, on any number of machines, may share a store;
each session is worked on by one. outcrop send gives input.

A turn that was cut because its process died is gone on with: the model is told
so, and calls whose outcome is unknown are not run again. With --interrupted end
it is closed as interrupted, and left. A session over which --attempts processes
in a row died is left alone until somebody sends it something.

Sessions that DeepSeek Harness can read too (run --dsh) are left alone: it takes
no lock, so that it might be working on them.

Each session works in its own workspace, its cwd; where that folder is not on
this machine, in --cwd or the current one. Calls that need approval are asked
about by outcrop send TARGET --questions, where processes can reach each other
(nats://); elsewhere they are refused: give --approve or --yes.

SIGTERM or Ctrl-C: nothing new is begun, steps that run may end within --grace,
the rest is handed over. A second signal ends at once; the sessions are taken up
by others when their lease has lapsed.`,
		Args: exactly(),
		RunE: func(c *cobra.Command, _ []string) error { return w.do(c.Context()) },
	}
	fl := c.Flags()
	w.flags.RegisterMany(fl)
	fl.IntVar(&w.o.Concurrency, "concurrency", 4, "work on `N` sessions at a time")
	fl.DurationVar(&w.o.Every, "every", 0, "look through the store at this `TIME` (default 1s; where workers are woken, 30s)")
	fl.StringVar(&w.interrupted, "interrupted", string(worker.Continue), "`WHAT` becomes of turns that were cut: continue or end")
	fl.IntVar(&w.o.Attempts, "attempts", 5, "leave a session alone when `N` processes in a row died over it")
	fl.DurationVar(&w.o.Grace, "grace", 30*time.Second, "when ending, let steps run for at most this `TIME`")
	fl.BoolVar(&w.o.Once, "once", false, "end when nothing is left to be done")
	fl.BoolVar(&w.o.TakeOver, "take-over", false, "at the start, take sessions with work also from programs that hold them (where the store can do that)")
	fl.StringVar(&w.metrics, "metrics", "", "serve /metrics, /healthz and /readyz on `HOST:PORT`, to everybody who reaches it")
	return c
}

func (w *working) check() error {
	switch {
	case w.interrupted != string(worker.Continue) && w.interrupted != string(worker.End):
		return exit.Usagef("--interrupted %s: use continue or end", term.Quote(w.interrupted))
	case w.o.Concurrency < 1:
		return exit.Usagef("--concurrency %d: give a number from 1 on", w.o.Concurrency)
	case w.o.Attempts < 1:
		return exit.Usagef("--attempts %d: give a number from 1 on", w.o.Attempts)
	case w.o.Every < 0 || w.o.Grace < 0:
		return exit.Usagef("--every and --grace: give a time, as in 30s")
	}
	w.o.Interrupted = worker.Interrupted(w.interrupted)
	return w.flags.Check()
}

func (w *working) do(ctx context.Context) error {
	if err := w.check(); err != nil {
		return err
	}
	var tell watching
	st, err := w.a.openWatched(&tell)
	if err != nil {
		return err
	}
	defer st.Close()
	bus, err := worker.BusOf(ctx, st)
	if err != nil {
		return err
	}
	w.o.Store, w.o.Bus, w.o.Opener, w.o.Logger = st, bus, w, w.a.Logger
	w.o.Name = workerName(w.a.Env.Program)
	w.o.Observe = func(h worker.Happening) {
		tell.happened(h)
		w.happened(h)
	}
	wk, err := worker.New(w.o)
	if err != nil {
		return err
	}
	if w.metrics != "" {
		done, err := w.a.monitor(ctx, w.metrics, st, &tell, wk)
		if err != nil {
			return err
		}
		defer done()
	}
	if !w.o.Once {
		w.a.Note("working on %s, %s at a time", term.Line(st.Address()), term.Plural(w.o.Concurrency, "session"))
	}
	if err := wk.Run(ctx); err != nil {
		return err
	}
	w.a.Out.Flush()
	switch {
	case w.failed && w.o.Once:
		return exit.With(1, nil)
	case ctx.Err() != nil && w.o.Once:
		return ctx.Err()
	}
	return nil // to be ended is how a worker is meant to end
}

// workerName is how other processes read who works here.
func workerName(program string) string {
	host, err := os.Hostname()
	if err != nil {
		host = "this machine"
	}
	return fmt.Sprintf("%s worker, process %d on %s", program, os.Getpid(), host)
}

// happened prints what a person or a program wants to know.
func (w *working) happened(h worker.Happening) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch h.Kind {
	case worker.Turned:
		if h.Reason != outcrop.Completed && h.Reason != outcrop.MaxTokens {
			w.failed = true
		}
		if w.a.Flags.JSON {
			// Output that cannot be written is told when the command ends.
			_ = w.a.Line(answer.New().Text("happened", string(h.Kind)).Text("session", h.Session).Text("reason", string(h.Reason)).
				Number("milliseconds", h.Took.Milliseconds()).End())
		} else {
			w.a.Text(fmt.Sprintf("%s: turn %s\n", term.Line(h.Session), h.Reason))
		}
		w.a.Out.Flush()
	case worker.Taken:
		if h.Err != nil && !errors.Is(h.Err, store.ErrLocked) && !errors.Is(h.Err, store.ErrMoved) {
			w.failed = true
		}
	case worker.Handed:
		w.failed = w.failed || h.Err != nil
	}
}

// Open implements worker.Opener.
func (w *working) Open(ctx context.Context, id string, force bool, ask agent.Approver) (worker.Session, error) {
	f := w.flags
	f.Session, f.TakeOver, f.Watched = id, force, true
	log := w.a.Logger.With("session", id)
	d := w.a.Sharing(w.o.Store, log, &noteLog{log: log})
	wk, err := work.Prepare(ctx, d, f)
	if err != nil {
		return nil, err
	}
	if err := wk.Open(ctx); err != nil {
		return nil, errors.Join(err, wk.Close(context.WithoutCancel(ctx)))
	}
	ag, err := wk.Engage(ctx, ask)
	if err != nil {
		return nil, errors.Join(err, wk.Close(context.WithoutCancel(ctx)))
	}
	return worked{wk, ag}, nil
}

// worked is a session at work, for a worker.
type worked struct {
	*work.Work
	agent *agent.Agent
}

func (w worked) Agent() *agent.Agent { return w.agent }

// noteLog makes log lines of what would be notes for a person.
type noteLog struct {
	log *slog.Logger
	mu  sync.Mutex
	buf []byte
}

// Write implements io.Writer.
func (n *noteLog) Write(b []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.buf = append(n.buf, b...)
	for {
		line, rest, ok := bytes.Cut(n.buf, []byte{'\n'})
		if !ok {
			return len(b), nil
		}
		n.log.Warn(strings.TrimPrefix(string(line), "outcrop: "))
		n.buf = slices.Clone(rest)
	}
}

// watching passes on what happens to whoever wants to know later on: metrics are
// made when the store is open already.
type watching struct {
	mu sync.Mutex
	to *metrics.Metrics
}

func (w *watching) set(m *metrics.Metrics) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.to = m
}

func (w *watching) get() *metrics.Metrics {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.to
}

func (w *watching) happened(h worker.Happening) {
	if m := w.get(); m != nil {
		m.Worker(h)
	}
}

func (w *watching) store(op string, took time.Duration, err error) {
	if m := w.get(); m != nil {
		m.Store(op, took, err)
	}
}
