package mcp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/outcrop-dev/outcrop/tool"
)

// server is one server over its whole life, through all its connections.
type server struct {
	Server
	o         Options
	log       *slog.Logger
	transport http.RoundTripper
	idle      func() // closes idle HTTP connections

	ctx context.Context // of the calls; ends at close
	end context.CancelFunc

	turn   chan struct{} // who holds it may change the link; it guards what follows
	cur    *link
	listed []*sdk.Tool // what the first connection listed
	closed bool

	mu    sync.Mutex // guards what follows
	fails int        // in a row
	wait  time.Time  // no start before it
}

const maxWait = 60 * time.Second

var errClosed = errors.New("it was closed")

func newServer(cfg Server, o Options) *server {
	s := &server{Server: cfg, o: o, log: o.Logger, transport: o.Transport, idle: func() {}, turn: make(chan struct{}, 1)}
	if s.Timeout <= 0 {
		s.Timeout = DefaultTimeout
	}
	if s.transport == nil && cfg.URL != "" {
		// Connections of its own, which can be closed with it.
		own, ok := http.DefaultTransport.(*http.Transport)
		if !ok {
			own = &http.Transport{Proxy: http.ProxyFromEnvironment}
		}
		own = own.Clone()
		s.transport, s.idle = own, own.CloseIdleConnections
	}
	s.ctx, s.end = context.WithCancel(context.Background())
	return s
}

// up makes the first connection.
func (s *server) up(ctx context.Context) error {
	_, err := s.link(ctx)
	return err
}

// link is the connection, made again when it is lost.
func (s *server) link(ctx context.Context) (*link, error) {
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-s.turn }()
	if s.closed {
		return nil, errClosed
	}
	if l := s.cur; l != nil {
		if l.alive() && l.answers(ctx) {
			return l, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err() // it was not the server that took too long
		}
		s.log.Warn("mcp server is gone; starting it again", "server", s.Name)
		s.cur = nil
		if err := l.stop(); err != nil {
			s.log.Warn("mcp server cannot be ended", "server", s.Name, "err", err)
		}
	}
	if err := s.waiting(); err != nil {
		return nil, err
	}
	slow := time.AfterFunc(s.o.times.slow, func() {
		s.log.Warn("mcp server is slow to come up; waiting for it", "server", s.Name, "at most", s.o.times.connect)
	})
	defer slow.Stop()
	l, err := s.dial(ctx)
	if err == nil {
		if err = s.list(ctx, l); err == nil {
			s.cur = l
			return l, nil
		}
		err = l.failed(ctx, err)
	}
	if !errors.Is(ctx.Err(), context.Canceled) {
		s.note(false)
	}
	return nil, err
}

// waiting is an error while no start is tried.
func (s *server) waiting() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if left := s.wait.Sub(s.o.Now()); left > 0 {
		return fmt.Errorf("it failed %d times in a row; the next try is in %s", s.fails, left.Round(time.Second))
	}
	return nil
}

// note takes note of how a start or a call went. From the second failure in a
// row on the next start has to wait.
func (s *server) note(ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ok {
		s.fails, s.wait = 0, time.Time{}
		return
	}
	s.fails++
	if s.fails > 1 {
		s.wait = s.o.Now().Add(min(s.o.times.first<<min(s.fails-2, 10), maxWait))
	}
}

// maxTools is the longest list that is taken of one server.
const maxTools = 4096

// list asks for the tools. The first list is the one that counts.
func (s *server) list(ctx context.Context, l *link) error {
	ctx, cancel := context.WithTimeout(ctx, s.o.times.connect)
	defer cancel()
	tools, err := guarded(ctx, l, func() ([]*sdk.Tool, error) { return l.listAll(ctx) })
	if err != nil {
		return err
	}
	if s.listed == nil {
		s.listed = tools
		s.log.Debug("mcp server is up", "server", s.Name, "tools", len(tools), "protocol", l.session.InitializeResult().ProtocolVersion)
	} else if !slices.EqualFunc(s.listed, tools, func(a, b *sdk.Tool) bool { return a.Name == b.Name }) {
		l.notified("notifications/tools/list_changed")
	}
	return nil
}

func (l *link) listAll(ctx context.Context) ([]*sdk.Tool, error) {
	all := []*sdk.Tool{}
	seen := map[string]bool{}
	l.left.refill()
	for cursor := ""; ; {
		page, err := l.session.ListTools(ctx, &sdk.ListToolsParams{Cursor: cursor})
		var said *jsonrpc.Error
		if errors.As(err, &said) && said.Code == jsonrpc.CodeMethodNotFound {
			return all, nil // a server without tools
		}
		if err != nil {
			return nil, err
		}
		all = append(all, page.Tools...)
		cursor = page.NextCursor
		if len(all) > maxTools || cursor != "" && (len(all) == maxTools || seen[cursor] || len(seen) == maxTools) {
			l.s.log.Warn("mcp server has no end of tools; the rest is left out", "server", l.s.Name, "tools", min(len(all), maxTools))
			return all[:min(len(all), maxTools)], nil
		}
		if cursor == "" {
			return all, nil
		}
		seen[cursor] = true
	}
}

// call calls a tool.
func (s *server) call(ctx context.Context, name string, c tool.Call) (*sdk.CallToolResult, error) {
	whole := ctx
	ctx, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	for again := true; ; again = false {
		l, err := s.link(ctx)
		if err != nil {
			return nil, s.failure(whole, ctx, "MCP_UNAVAILABLE", "is not there: "+err.Error())
		}
		l.left.refill()
		at := &sent{}
		at.tried.Store(l.web == nil) // what a program was sent is not known
		calling := context.WithValue(ctx, sentKey{}, at)
		params := &sdk.CallToolParams{Name: name, Arguments: c.Arguments}
		if c.Key != "" {
			params.Meta = sdk.Meta{"outcrop/callKey": c.Key}
			if c.Epoch > 0 {
				params.Meta["outcrop/epoch"] = c.Epoch
			}
		}
		res, err := guarded(calling, l, func() (*sdk.CallToolResult, error) { return l.session.CallTool(calling, params) })
		if err == nil {
			s.note(true)
			return res, nil
		}
		said, isSaid := answered(err)
		if !isSaid {
			l.suspect.Store(true)
		}
		switch {
		case ctx.Err() != nil:
			l.suspect.Store(true)
			return nil, s.failure(whole, ctx, "", "")
		case isSaid && said.Code == codeTooDeep:
			s.note(true)
			return nil, s.coded("MCP_ERROR", unreadText+said.Message)
		case isSaid:
			s.note(true)
			return nil, s.coded("MCP_ERROR", "answered with an error: "+clip(said.Message, 4000))
		case again && (errors.Is(err, sdk.ErrSessionMissing) && !at.accepted.Load() || errors.Is(err, sdk.ErrConnectionClosed) && !at.tried.Load()):
			continue // it was lost before, and the call has not reached it
		case l.unreadable(err):
			s.note(true)
			return nil, s.coded("MCP_ERROR", unreadText+l.reason(ctx, err).Error())
		case unreachable(err):
			s.note(false)
			return nil, s.coded("MCP_UNAVAILABLE", "is not there: "+l.reason(ctx, err).Error())
		}
		s.note(false)
		return nil, s.coded("MCP_LOST", "went away during the call; it may have been done, in part or in whole: "+l.reason(ctx, err).Error())
	}
}

// unreadText stands before why an answer cannot be read: the call itself is over.
const unreadText = "did the call and gave an answer that cannot be read: "

// failure is the error of a call that was cancelled, took too long, or met code.
func (s *server) failure(whole, ctx context.Context, code, text string) error {
	switch {
	case whole.Err() != nil:
		return whole.Err()
	case s.ctx.Err() != nil:
		return s.coded("MCP_UNAVAILABLE", "was closed")
	case ctx.Err() != nil:
		return s.coded("MCP_TIMEOUT", fmt.Sprintf("did not answer within %s; the call may have been done, in part or in whole", s.Timeout))
	}
	return s.coded(code, text)
}

func (s *server) coded(code, text string) error {
	return &tool.Error{Name: "McpError", Code: code, Msg: fmt.Sprintf("the MCP server %s %s", s.Name, text)}
}

// close ends the server for good.
func (s *server) close() error {
	s.end()
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	defer s.idle()
	s.closed = true
	if s.cur == nil {
		return nil
	}
	err := s.cur.stop()
	s.cur = nil
	return err
}
