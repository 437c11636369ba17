package chat

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/pflag"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/agent"
	"github.com/outcrop-dev/outcrop/history"
	"github.com/outcrop-dev/outcrop/internal/exit"
	"github.com/outcrop-dev/outcrop/internal/work"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/viewer"
)

// Serving shows the session of a chat in a browser as well.
type Serving struct {
	// Beside serves the pages of a store on HOST:PORT. close ends what is not
	// the companion's own, after it was closed.
	Beside func(ctx context.Context, st store.Store, addr string) (c *viewer.Companion, close func(), err error)
	// Browse opens an address in the person's browser, where there is one.
	Browse func(ctx context.Context, url string) (done func())
}

// served are the flags of a chat that is also shown in a browser.
type served struct {
	on, noOpen bool
	addr       string
}

func (s *served) register(f *pflag.FlagSet) {
	f.BoolVar(&s.on, "serve", false, "show the session in a browser too; the page and the terminal are two views of one chat")
	f.StringVar(&s.addr, "addr", "127.0.0.1:0", "with --serve: listen on `HOST:PORT`; port 0 is a free one")
	f.BoolVar(&s.noOpen, "no-open", false, "with --serve: open no browser")
}

// check refuses what means nothing without --serve.
func (s *served) check(f *pflag.FlagSet) error {
	for _, name := range []string{"addr", "no-open"} {
		if !s.on && f.Changed(name) {
			return exit.Usagef("--%s says how pages are served: give --serve too", name)
		}
	}
	return nil
}

// pages are the pages of a chat while it runs; nil: there are none.
type pages struct {
	*viewer.Companion
	done func()
}

// serve starts the pages, before any session is touched.
func (s *served) serve(ctx context.Context, w *work.Work, how Serving) (*pages, error) {
	if !s.on {
		return nil, nil
	}
	c, end, err := how.Beside(ctx, w.Store(), s.addr)
	if err != nil {
		return nil, err
	}
	shut := func() {}
	if !s.noOpen {
		shut = how.Browse(ctx, c.URL)
	}
	return &pages{c, func() { shut(); end() }}, nil
}

// close ends the pages, and says what went wrong with them.
func (p *pages) close() error {
	if p == nil {
		return nil
	}
	defer p.done()
	return p.Companion.Close()
}

// approver asks the terminal, and who looks at the page: the first answer counts.
func (c *Chat) approver() agent.Approver {
	if c.pages == nil {
		return c
	}
	return viewer.FirstOf(c, c.pages.Ask)
}

// show shows the session in the page, where there is one.
func (c *Chat) show() error {
	if c.pages == nil {
		return nil
	}
	s := &shown{chat: c, live: c.w.Live(), agent: c.Agent(), history: c.w.History()}
	if cut, ok := work.LastCut(s.Session().Log()); ok {
		s.cut = cut.String()
	}
	return c.pages.Show(s)
}

// hide takes the session off the page, before it is closed.
func (c *Chat) hide() {
	if c.pages == nil {
		return
	}
	if err := c.pages.Show(nil); err != nil {
		c.log.Warn("the session stays on the page", "err", err)
	}
}

// shown is the session of a chat as its page sees it. It implements
// viewer.Running.
type shown struct {
	chat    *Chat
	live    *store.Live
	agent   *agent.Agent
	history *history.Manager
	cut     string
}

func (s *shown) Session() *outcrop.Session { return s.live.Session() }
func (s *shown) Durable() outcrop.Seq      { return s.live.Durable() }
func (s *shown) Agent() *agent.Agent       { return s.agent }
func (s *shown) History() *history.Manager { return s.history }
func (s *shown) Model() string             { return s.chat.w.Model().Name() }
func (s *shown) Policy() agent.Policy      { return s.chat.w.Policy() }
func (s *shown) Dir() string               { return s.chat.w.Dir() }
func (s *shown) Cut() string               { return s.cut }

func (s *shown) SetModel(ctx context.Context, name string) error {
	return s.chat.use(func(w *work.Work) error {
		if w.Live() != s.live {
			return errLeft
		}
		return s.chat.useModel(ctx, w, strings.TrimSpace(name))
	})
}

func (s *shown) SetPolicy(ctx context.Context, name string) error {
	return s.chat.use(func(w *work.Work) error {
		if w.Live() != s.live {
			return errLeft
		}
		return w.SetPolicy(ctx, name)
	})
}

// Close implements viewer.Running. The session is the chat's, which closes it.
func (s *shown) Close(context.Context) error { return nil }

// errLeft is said when the chat went on in another session meanwhile.
var errLeft = errors.New("the chat has left this session")
