// Package mcp gives an agent the tools of MCP servers: programs that speak the
// Model Context Protocol over their standard input and output, or over
// streamable HTTP. The protocol itself is the official Go SDK's; this package
// has what a session needs around it: names, classes, limits, and servers that
// die, hang or lie.
//
// # Names
//
// A tool is called mcp__SERVER__TOOL. Characters other than letters, digits, _
// and - are written as _. A name over 64 characters is cut and ends in _ and 8
// hexadecimal digits of the SHA-256 of server and tool; so do names that would
// be equal otherwise, all of them. Names depend on the set of tools alone, not
// on the order in which servers came up or listed them.
//
// # Class
//
// A tool has the class mcp, which asks a person. When its server is trusted
// and the tool says readOnlyHint, it has the class read, which does not. Only
// tools that say readOnlyHint run in parallel.
//
// # The set of tools
//
// Tools are listed once, when their server comes up. They do not change while
// the [Set] lives, whatever the server announces: a tool that comes or goes
// changes the beginning of every request and costs the provider's cache. What
// changed is there at the next start. A tool whose schema is not an object at
// its root, cannot be resolved or is too big is left out, with a warning.
//
// The SDK decodes a schema before it is seen here: members are sorted by name,
// and whole numbers beyond 2^53 lose digits, also in structured content.
//
// # Calls
//
//	what happened                         error.code
//	the server answered with an error,    MCP_ERROR
//	or with something unreadable
//	it is not there and does not come up  MCP_UNAVAILABLE
//	it went away during the call          MCP_LOST
//	it did not answer in time             MCP_TIMEOUT
//
// A call that failed in one of the last two ways may have been done; the text
// says so, and it is never sent again. Each call carries its key (tool.Call) in
// _meta as outcrop/callKey, so that a server can tell a repetition, and the epoch
// of the session's lease, where it has one, as outcrop/epoch. A cancelled call is
// cancelled at the server too.
//
// After a call that was cancelled or took too long, the server is asked for a
// sign of life before the next one. One that is dead, or gives none, is started
// again at the next call; an HTTP session that the server has forgotten is
// opened again. When that fails again and again, the waiting time doubles from
// 1 s to 60 s, and calls meanwhile fail at once.
//
// # Results
//
// Text stays text. Images (PNG, JPEG, GIF and WebP of up to 5 MB and 8,000 pixels
// a side) become image blocks when there is an object store. Everything else
// becomes a line in brackets that says what it was: other images, audio, links,
// binary resources, content of a kind that is not known.
// Structured content counts only when there is no other, as its JSON. isError
// is kept.
//
// # Limits
//
// A message is at most 16 MiB, an HTTP answer 32 MiB, and all that a server
// sends during one call, or as its list, 64 MiB; a list at most 4,096 tools, each with a
// schema of at most 128 KiB and a description of at most 8 KiB; a result at most
// 1,000 parts. Standard error goes to the logger at debug level, 1 MiB of it for
// each start of a server.
package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/outcrop-dev/outcrop/tool"
)

// DefaultTimeout ends a call that takes longer, unless its server says
// otherwise.
const DefaultTimeout = 120 * time.Second

// Server is one MCP server: Command or URL.
type Server struct {
	Name    string   // as tool names have it
	Command []string // the program and its arguments
	Env     []string // of the program, NAME=VALUE; nil: this process's own
	Dir     string   // where it runs; "": where this process does
	URL     string   // of a streamable HTTP endpoint
	// Headers are sent with every HTTP request, to the host of URL only.
	Headers map[string]string
	// KeyFrom is where the key in Headers came from, for the hint when it is
	// refused.
	KeyFrom string
	// Trust lets tools that say readOnlyHint run without a question.
	Trust bool
	// Timeout ends a call; 0 is DefaultTimeout.
	Timeout time.Duration
}

// Objects keeps the bytes of images.
type Objects interface {
	// Put stores bytes and returns their id, sha256: and the digest. They are
	// durable when it returns nil.
	Put(ctx context.Context, data []byte) (id string, err error)
}

// Options of a set. The zero value is right.
type Options struct {
	// Logger hears of servers that come, go and misbehave; nil is silent.
	Logger *slog.Logger
	// Version is this program's, as servers are told.
	Version string
	// Transport carries HTTP; nil is Go's own, with its proxy settings.
	Transport http.RoundTripper
	// Stderr gets what programs write to their standard error, line by line
	// with the server's name in front; nil: only the logger does.
	Stderr io.Writer
	// Objects keeps images; nil: a note stands in their place.
	Objects Objects
	// Now is the clock of the waiting times; nil is time.Now.
	Now func() time.Time

	times times
}

// times are the limits that tests shorten.
type times struct {
	connect time.Duration // for a server to come up
	grace   time.Duration // for a server to end by itself
	probe   time.Duration // for a sign of life
	stuck   time.Duration // after a cancel, until a connection counts as stuck
	first   time.Duration // the first waiting time after failures
	slow    time.Duration // to come up, until it is said that it is waited for
}

func (t times) or(d times) times {
	for _, p := range [...]struct{ v, or *time.Duration }{
		{&t.connect, &d.connect}, {&t.grace, &d.grace}, {&t.probe, &d.probe}, {&t.stuck, &d.stuck}, {&t.first, &d.first}, {&t.slow, &d.slow},
	} {
		if *p.v <= 0 {
			*p.v = *p.or
		}
	}
	return t
}

var defaultTimes = times{
	connect: 30 * time.Second, grace: 2 * time.Second, probe: 5 * time.Second, stuck: time.Second, first: time.Second, slow: 2 * time.Second,
}

// Set is the connected servers and their tools. It is safe for use by several
// goroutines.
type Set struct {
	servers []*server
	tools   []tool.Tool
	close   func() error
}

// Connect brings all servers up at the same time, each within 30 seconds. One
// that does not come up is an error in the list and keeps no other from being
// there. The set must be closed; ctx counts only until Connect returns.
func Connect(ctx context.Context, servers []Server, o Options) (*Set, []error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Stderr != nil {
		o.Stderr = &lockedWriter{w: o.Stderr}
	}
	o.times = o.times.or(defaultTimes)

	all := make([]*server, len(servers))
	errs := make([]error, len(servers))
	var wg sync.WaitGroup
	seen := map[string]bool{}
	for i, cfg := range servers {
		if errs[i] = cfg.check(seen); errs[i] != nil {
			continue
		}
		s := newServer(cfg, o)
		wg.Go(func() {
			if err := s.up(ctx); err != nil {
				errs[i] = fmt.Errorf("mcp server %s: %w", s.Name, err)
				s.close()
				return
			}
			all[i] = s
		})
	}
	wg.Wait()
	set := &Set{servers: slices.DeleteFunc(all, func(s *server) bool { return s == nil })}
	set.tools = offered(set.servers, o.Logger)
	set.close = sync.OnceValue(set.closeAll)
	return set, slices.DeleteFunc(errs, func(err error) bool { return err == nil })
}

// check says what is wrong with a server as it was given.
func (c Server) check(seen map[string]bool) error {
	switch {
	case strings.TrimSpace(c.Name) == "":
		return errors.New("mcp server: it has no name")
	case seen[c.Name]:
		return fmt.Errorf("mcp server %s: there are two of that name", c.Name)
	case (len(c.Command) > 0) == (c.URL != ""):
		return fmt.Errorf("mcp server %s: give either command or url", c.Name)
	}
	seen[c.Name] = true
	return nil
}

// Tools are the tools of all servers that came up, sorted by name.
func (s *Set) Tools() []tool.Tool { return slices.Clone(s.tools) }

// Close ends all servers at the same time: calls that run are cancelled, a
// program's standard input is closed, and when it has not ended after 2 seconds
// its process group is killed. The error names servers that could not be ended.
func (s *Set) Close() error { return s.close() }

func (s *Set) closeAll() error {
	errs := make([]error, len(s.servers))
	var wg sync.WaitGroup
	for i, srv := range s.servers {
		wg.Go(func() {
			if err := srv.close(); err != nil {
				errs[i] = fmt.Errorf("mcp server %s: %w", srv.Name, err)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// lockedWriter lets several servers share a writer.
type lockedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}
