// Package viewer serves the sessions of a store to a browser: the pages, and the
// API that they use. docs/http.md is the reference of the API.
//
// # What it is
//
// A Viewer is an http.Handler over a store. It follows the logs that somebody
// looks at, whoever writes them, and keeps each folded, so that a question costs
// what is new. With a Runner it can also write: "continue" takes the lock of a
// session and starts an agent on it in this process.
//
// # Who may ask
//
// Whoever has the token, from a page of this server: Access of docs/http.md. A
// Viewer checks Host, Origin, token and the headers of changes by itself, so it
// can be given any listener; Serve gives it one with limits on connections and
// times.
//
// # What is live
//
// Package stream makes the stream of a session once for all who listen; nobody
// waits for a listener.
//
// # Files
//
//	access.go   who may ask               change.go   what an agent is told
//	routes.go   paths                     edit.go     edits of the history
//	answer.go   JSON and errors           care.go     forks, names, tags
//	read.go     one session               shelves.go  archive and trash
//	look.go     its pictures and requests export.go   a session as a file
//	list.go     all sessions              running.go  agents of this process
//	serve.go    the server                beside.go   a chat and its page
package viewer

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/outcrop-dev/outcrop/internal/usage"
	"github.com/outcrop-dev/outcrop/search"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/viewer/internal/facts"
	"github.com/outcrop-dev/outcrop/viewer/internal/listing"
	"github.com/outcrop-dev/outcrop/viewer/internal/opened"
	"github.com/outcrop-dev/outcrop/viewer/internal/stream"
)

// Options of a Viewer. Store, Addr, Now and Random are needed.
type Options struct {
	Store store.Store
	// Addr is where the server listens, HOST:PORT: by it requests are known to
	// be meant for this server.
	Addr string
	// Token must be given once by a browser before it may ask; "": anybody on
	// this machine may, which needs an Addr of loopback.
	Token string

	// Runner starts agents; nil: no session can be continued here.
	Runner Runner
	// Search looks into the text of all sessions; nil: that cannot be asked.
	Search *search.Index
	// Shelves hold what was put away; nil: no session is moved.
	Shelves Shelves
	// Exports are the forms in which a session can be taken away.
	Exports []Export
	// Price says what models cost; nil: nobody knows.
	Price usage.Price

	// Version is what the API says of the program; Demo the command that makes a
	// session to look at.
	Version, Demo string

	Now   func() int64  // Unix milliseconds
	NewID func() string // of sessions and messages
	// Random gives bytes that nobody can guess, for the cookie.
	Random func([]byte)
	Logger *slog.Logger
}

// Viewer serves a store. New makes it.
type Viewer struct {
	o       Options
	access  *access
	mux     *http.ServeMux
	open    *opened.Sessions
	list    *listing.List
	index   *indexer
	streams *stream.Set
	log     *slog.Logger

	beside    atomic.Pointer[string] // the session that a Companion shows
	counting  chan struct{}          // a token for who counts calls beside a request
	exporting chan struct{}          // a token for each export that is made
	shelving  sync.Mutex

	life context.Context
	stop context.CancelFunc
	busy sync.WaitGroup // goroutines of this Viewer

	mu        sync.Mutex
	running   map[string]*running
	listeners int
	closed    bool
}

// New makes a Viewer.
func New(o Options) (*Viewer, error) {
	if o.Store == nil || o.Now == nil || o.Random == nil {
		return nil, errors.New("viewer: a store, a clock and random bytes are needed")
	}
	if o.NewID == nil {
		return nil, errors.New("viewer: ids for new sessions are needed")
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	a, err := newAccess(&o)
	if err != nil {
		return nil, err
	}
	v := &Viewer{o: o, access: a, log: o.Logger, running: map[string]*running{},
		open: opened.New(opened.Options{Store: o.Store, Logger: o.Logger})}
	v.counting, v.exporting = make(chan struct{}, 1), make(chan struct{}, mostExports)
	v.life, v.stop = context.WithCancel(context.Background())
	v.list = listing.New(listing.Options{Store: o.Store, Price: o.Price, Spawn: v.spawn})
	v.index = newIndexer(v)
	v.streams = stream.New(stream.Options{
		Open: v.open, Spawn: v.spawn, Price: o.Price, Now: o.Now, Logger: o.Logger,
		Running: func(id string) stream.Running {
			if r := v.runningOf(id); r != nil {
				return r
			}
			return nil
		},
		Writer: func(ctx context.Context, id string) facts.Writer { return v.writerOf(ctx, id, &facts.Veil{}) },
	})
	v.routes()
	return v, nil
}

// Close ends agents and streams, and what is kept. Requests that come later are
// refused. It returns when everything is saved, or when ctx ends.
func (v *Viewer) Close(ctx context.Context) error {
	v.mu.Lock()
	v.closed = true
	var agents []*running
	for _, r := range v.running {
		agents = append(agents, r)
	}
	v.mu.Unlock()
	var err error
	for _, r := range agents {
		err = errors.Join(err, v.release(ctx, r))
	}
	v.stop()
	ended := make(chan struct{})
	go func() {
		v.busy.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-ctx.Done():
		return errors.Join(err, context.Cause(ctx))
	}
	v.open.Close()
	return err
}

// spawn runs f as a part of the Viewer, until it is closed.
func (v *Viewer) spawn(f func(ctx context.Context)) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.closed {
		return false
	}
	v.busy.Add(1)
	go func() {
		defer v.busy.Done()
		f(v.life)
	}()
	return true
}

// ServeHTTP implements http.Handler.
func (v *Viewer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a := &answerer{w: w, r: r, v: v, rc: http.NewResponseController(w)}
	v.access.headers(w.Header())
	if r.ContentLength != 0 {
		// Also of a request that is refused the body is waited for.
		_ = a.rc.SetReadDeadline(time.Now().Add(bodyWithin))
	}
	if p := v.access.check(r); p != nil {
		a.problem(p)
		return
	}
	if err := v.life.Err(); err != nil {
		a.problem(stopping)
		return
	}
	v.mux.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), answererKey{}, a)))
}

type answererKey struct{}
