package cli

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"html"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/agent"
	"github.com/outcrop-dev/outcrop/history"
	"github.com/outcrop-dev/outcrop/internal/answer"
	"github.com/outcrop-dev/outcrop/internal/desk"
	"github.com/outcrop-dev/outcrop/internal/exit"
	"github.com/outcrop-dev/outcrop/internal/term"
	"github.com/outcrop-dev/outcrop/internal/work"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/viewer"
)

// defaultAddr is where the viewer listens.
const defaultAddr = "127.0.0.1:7070"

func (a *app) newServeCommand() *cobra.Command {
	var addr, metrics string
	var noOpen, noToken bool
	c := &cobra.Command{
		Use:   "serve",
		Short: "Look at the sessions in a browser, and go on with them there",
		Long: `Serves pages with the sessions of the store, prints their address and opens it
in a browser. The address holds a token: who has it can read all sessions, go on
with them, and let tools run. It is good until the command ends.

Nothing is encrypted: serve addresses of this machine, and come from elsewhere
through a tunnel (ssh -L).`,
		Args: exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			return a.serve(c.Context(), addr, metrics, !noOpen, !noToken)
		},
	}
	c.Flags().StringVar(&addr, "addr", defaultAddr, "listen on `HOST:PORT`; port 0 is a free one")
	c.Flags().BoolVar(&noOpen, "no-open", false, "open no browser")
	c.Flags().BoolVar(&noToken, "no-token", false, "let everybody on this machine in (only on addresses of loopback)")
	c.Flags().StringVar(&metrics, "metrics", "", "serve /metrics, /healthz and /readyz on `HOST:PORT`, to everybody who reaches it")
	return c
}

func (a *app) serve(ctx context.Context, addr, metrics string, open, withToken bool) (err error) {
	if err := checkAddr(addr); err != nil {
		return err
	}
	var tell watching
	st, err := a.openWatched(&tell)
	if err != nil {
		return err
	}
	defer st.Close()
	a.Keep(st) // sessions that are continued here are held by one process of the realm
	if metrics != "" {
		unwatch, err := a.monitor(ctx, metrics, st, &tell, nil)
		if err != nil {
			return err
		}
		defer unwatch()
	}
	l, o, done, err := a.listen(ctx, st, addr)
	if err != nil {
		return err
	}
	defer done()
	defer l.Close()
	if withToken {
		o.Token = newToken()
	}
	v, err := viewer.New(o)
	if err != nil {
		return exit.Usagef("--no-token: %s is not an address of this machine alone: leave --no-token out", term.Line(addr))
	}
	url := viewer.Address(o.Addr, o.Token)
	if err := a.tellAddress(url); err != nil {
		return err
	}
	if open {
		defer a.openBrowser(ctx, url)()
	}
	if err := viewer.Serve(ctx, l, v); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return exit.With(130, nil) // this is how it is meant to end
	}
	return nil
}

func checkAddr(addr string) error {
	if _, _, err := net.SplitHostPort(addr); err != nil {
		return exit.Usagef("--addr %s: give HOST:PORT, as in %s", term.Quote(addr), defaultAddr)
	}
	return nil
}

// listen listens for the pages of a store, and says what they can do. done ends
// what is kept for them.
func (a *app) listen(ctx context.Context, st store.Store, addr string) (l net.Listener, o viewer.Options, done func(), err error) {
	price, err := a.prices()
	if err != nil {
		return nil, o, nil, err
	}
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, o, nil, err
	}
	if l, err = net.Listen("tcp", addr); err != nil {
		return nil, o, nil, exit.With(1, fmt.Errorf("--addr %s: %w: another server may run there; --addr %s takes a free port", term.Line(addr), cause(err), net.JoinHostPort(host, "0")))
	}
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		return nil, o, nil, errors.Join(err, l.Close())
	}
	o = viewer.Options{
		Store: st, Addr: net.JoinHostPort(host, port), Runner: &runner{desk: a.Desk}, Price: price,
		Version: version(), Demo: a.Env.Program + " demo", Now: a.Now, NewID: a.Env.NewID, Logger: a.Logger,
		Random:  func(b []byte) { rand.Read(b) }, // never fails
		Shelves: &shelves{a, st}, Exports: a.exports(st),
	}
	done = func() {}
	if ix, err := a.openIndex(ctx); err != nil {
		a.Note("the text of sessions cannot be searched: %s", exit.Explain(err))
	} else {
		o.Search = ix
		done = func() { ix.Close() }
	}
	return l, o, done, nil
}

// beside serves the pages of a chat. Its session is only for who has the token,
// on addresses of loopback as well.
func (a *app) beside(ctx context.Context, st store.Store, addr string) (*viewer.Companion, func(), error) {
	if err := checkAddr(addr); err != nil {
		return nil, nil, err
	}
	l, o, done, err := a.listen(ctx, st, addr)
	if err != nil {
		return nil, nil, err
	}
	o.Token = newToken()
	c, err := viewer.Beside(l, o)
	if err != nil {
		done()
		return nil, nil, err
	}
	return c, done, nil
}

// cause is what went wrong, without the address, which the message has.
func cause(err error) error {
	var op *net.OpError
	if errors.As(err, &op) {
		return op.Err
	}
	return err
}

// newToken is 256 bits that nobody can guess.
func newToken() string {
	var b [32]byte
	rand.Read(b[:]) // never fails
	return base64.RawURLEncoding.EncodeToString(b[:])
}

func (a *app) tellAddress(url string) error {
	if a.Flags.JSON {
		if err := a.Line(answer.New().Text("url", url).End()); err != nil {
			return err
		}
	} else {
		a.Text(url + "\n")
	}
	return a.Out.Flush()
}

// openBrowser opens an address in the person's browser. The token must not stand
// in the arguments of a program, where everybody on this machine can read it: the
// browser is given a file that leads there, which only the person can read. The
// file is removed by done, or when the browser had time to read it.
func (a *app) openBrowser(ctx context.Context, url string) (done func()) {
	nothing := func() {}
	name, args := opener(a.Env.Getenv)
	if name == "" {
		return nothing
	}
	path, err := a.leadTo(url)
	if err != nil {
		a.Note("no browser was opened: %s", term.Line(err.Error()))
		return nothing
	}
	remove := sync.OnceFunc(func() { os.Remove(path) })
	c := exec.CommandContext(context.WithoutCancel(ctx), name, append(args, path)...)
	if err := c.Start(); err != nil {
		a.Note("no browser was opened: %s", term.Line(err.Error()))
		remove()
		return nothing
	}
	go c.Wait()
	timer := time.AfterFunc(time.Minute, remove)
	return func() {
		timer.Stop()
		remove()
	}
}

// leadTo makes a page that leads to an address, for the person's eyes alone.
func (a *app) leadTo(url string) (path string, err error) {
	home, err := a.StateHome()
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(home, 0o700); err != nil {
		return "", err
	}
	f, err := os.CreateTemp(home, "open-*.html") // mode 0600
	if err != nil {
		return "", err
	}
	_, err = fmt.Fprintf(f, "<!doctype html><meta charset=utf-8><title>Outcrop</title><meta http-equiv=refresh content=\"0;url=%s\">\n", html.EscapeString(url))
	return f.Name(), errors.Join(err, f.Close())
}

// opener is the program that opens a file as its person would; none where there
// is no screen.
func opener(getenv func(string) string) (name string, args []string) {
	switch runtime.GOOS {
	case "darwin":
		return "open", nil
	case "windows":
		return "rundll32", []string{"url.dll,FileProtocolHandler"}
	}
	if getenv("DISPLAY") == "" && getenv("WAYLAND_DISPLAY") == "" {
		return "", nil
	}
	return "xdg-open", nil
}

// runner continues sessions for the viewer.
type runner struct{ desk *desk.Desk }

// Run implements viewer.Runner.
func (r *runner) Run(ctx context.Context, session, model string, ask agent.Approver) (viewer.Running, error) {
	// An id may look like a path, and a path names any file.
	t, err := r.desk.Resolve(ctx, session)
	if err != nil {
		return nil, err
	}
	if t.Path != "" || t.ID != session {
		return nil, exit.Refusedf("session %s cannot be named here: continue it with outcrop chat", term.Quote(session))
	}
	w, err := work.Prepare(ctx, r.desk, work.Flags{Session: session, Model: model, Unlimited: true, Answers: true})
	if err != nil {
		return nil, err
	}
	if err := w.Open(ctx); err != nil {
		return nil, errors.Join(err, w.Close(context.WithoutCancel(ctx)))
	}
	c := &continued{w: w}
	if cut, ok := work.LastCut(w.Session().Log()); ok {
		c.cut = cut.String()
	}
	if c.agent, err = w.Engage(context.WithoutCancel(ctx), ask); err != nil {
		return nil, errors.Join(err, w.Close(context.WithoutCancel(ctx)))
	}
	return c, nil
}

// continued is a session that the viewer goes on with.
type continued struct {
	w     *work.Work
	agent *agent.Agent
	cut   string
	mu    sync.Mutex // a Work belongs to one goroutine
}

func (c *continued) Session() *outcrop.Session { return c.w.Session() }
func (c *continued) Agent() *agent.Agent       { return c.agent }
func (c *continued) History() *history.Manager { return c.w.History() }
func (c *continued) Model() string             { return c.w.Model().Name() }
func (c *continued) Policy() agent.Policy      { return c.w.Policy() }
func (c *continued) Dir() string               { return c.w.Dir() }
func (c *continued) Cut() string               { return c.cut }

// Durable is the first seq that is not known to be synced.
func (c *continued) Durable() outcrop.Seq { return c.w.Durable() }

func (c *continued) SetModel(ctx context.Context, name string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.w.SetModel(ctx, strings.TrimSpace(name))
}

func (c *continued) SetPolicy(ctx context.Context, name string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.w.SetPolicy(ctx, name)
}

func (c *continued) Close(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.w.Close(ctx)
}
