package chat

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/agent"
	"github.com/outcrop-dev/outcrop/internal/chat/tty"
	"github.com/outcrop-dev/outcrop/internal/term"
	"github.com/outcrop-dev/outcrop/internal/work"
	"github.com/outcrop-dev/outcrop/message"
	"github.com/outcrop-dev/outcrop/viewer"
)

const (
	// frame is the least time between two drawings of the screen.
	frame = 33 * time.Millisecond
	// tick is the time between two drawings of what moves by itself.
	tick = 125 * time.Millisecond
)

// terminal is what a chat needs of one.
type terminal interface {
	io.Writer
	Keys() <-chan tty.Key
	Resized() <-chan struct{}
	Size() (cols, rows int)
	Take() error
	Release() error
}

// Chat is one conversation: what an Action works on. One goroutine, the loop,
// owns screen and model; everybody else sends it messages.
type Chat struct {
	w      *work.Work
	pages  *pages // nil: none
	term   terminal
	screen *tty.Screen
	m      *model
	log    *slog.Logger

	msgs  chan any
	notes *notes
	gone  chan struct{} // closed when the loop has ended
	life  context.Context
	kill  context.CancelFunc

	// Owned by the loop.
	waiting   int // goroutines that wait for the agent to be idle
	stopDoing context.CancelFunc
	leaving   bool
	history   *historyFile

	cancels sync.WaitGroup // cancels that are on their way to the agent

	using sync.Mutex // held by who changes w: it belongs to one goroutine

	mu      sync.Mutex
	agent   *agent.Agent
	unwatch func()
}

func newChat(w *work.Work, p *pages, t terminal, style term.Style, cols, rows int, actions []Action) *Chat {
	return &Chat{
		w: w, pages: p, term: t, screen: tty.NewScreen(t, cols, rows), m: newModel(style, cols, rows, actions),
		log: w.Desk().Logger, msgs: make(chan any, 16), notes: newNotes(style), gone: make(chan struct{}),
	}
}

// send gives the loop a message. It reports false when the loop has ended.
func (c *Chat) send(msg any) bool {
	select {
	case c.msgs <- msg:
		return true
	case <-c.gone:
		return false
	}
}

// run is the loop.
func (c *Chat) run(ctx context.Context) error {
	c.life, c.kill = context.WithCancel(context.WithoutCancel(ctx))
	defer c.kill()
	c.begin()
	// Tools may take their time to come up, so the screen is there before them.
	c.m.action = starting
	start, stop := context.WithCancel(c.life)
	c.stopDoing = stop
	up := make(chan struct{})
	go func() {
		defer close(up)
		c.send(startedMsg{c.engage(start, c.on)})
	}()
	err := c.loop(ctx)
	close(c.gone)
	stop()
	<-up
	// A turn that a person stopped must not end as one that was left.
	c.cancels.Wait()
	c.release()
	c.m.flush()
	c.m.print(c.notes.take()...)
	return errors.Join(err, c.screen.Draw(c.m.drain(), tty.Frame{}), c.screen.End())
}

func (c *Chat) loop(ctx context.Context) error {
	var due <-chan time.Time   // the next drawing, when one is owed
	var moves <-chan time.Time // when something moves by itself; nothing wakes an idle chat
	drawn := time.Time{}
	owed := true
	for !c.leaving {
		if owed && due == nil {
			due = time.After(max(frame-time.Since(drawn), 0))
		}
		if moves == nil && c.m.animated() {
			moves = time.After(tick)
		}
		select {
		case k, ok := <-c.term.Keys():
			if !ok {
				return nil // the terminal is gone
			}
			c.take(keyMsg{k})
		case msg := <-c.msgs:
			if started, ok := msg.(startedMsg); ok {
				if started.err != nil {
					return started.err
				}
				msg = ranMsg{}
			}
			c.take(msg)
		case <-c.term.Resized():
			cols, rows := c.term.Size()
			c.screen.Resize(cols, rows)
			c.take(sizeMsg{cols, rows})
		case <-moves:
			moves = nil
			var st agent.Status
			if ag := c.Agent(); ag != nil {
				st = ag.Status()
			}
			c.take(tickMsg{st})
		case <-due:
			due, owed, drawn = nil, false, time.Now()
			if err := c.screen.Draw(c.m.drain(), c.m.view()); err != nil {
				return err
			}
			continue
		case <-c.notes.come:
			c.m.print(c.notes.take()...)
		case <-ctx.Done():
			return ctx.Err()
		}
		owed = true
	}
	return nil
}

// take gives the model a message and does what it wants done.
func (c *Chat) take(msg any) {
	now := c.w.Desk().Env.Now()
	if d, ok := msg.(idleMsg); ok {
		if c.waiting--; c.waiting > 0 {
			return
		}
		c.m.update(now, busyMsg{false})
		msg = endMsg(d)
	}
	for _, e := range c.m.update(now, msg) {
		c.effect(e)
	}
	if ev, ok := msg.(eventMsg); ok && ev.Type == outcrop.TypeTurnStart && c.waiting == 0 {
		// Somebody else gave the agent something to do, such as the page.
		c.work(func(context.Context) error { return nil })
	}
}

// starting stands for an action while the agent is made.
const starting = "starting"

// startedMsg says that the agent is there, or why not.
type startedMsg struct{ err error }

// idleMsg comes from a goroutine that waited for the agent.
type idleMsg struct{ err error }

func (c *Chat) effect(e any) {
	switch e := e.(type) {
	case sendEffect:
		c.work(func(ctx context.Context) error { return c.deliver(ctx, e) })
	case cancelEffect:
		c.cancels.Go(c.cancel)
	case answerEffect:
		e.question.answer <- e.answer
	case actionEffect:
		ctx, stop := context.WithCancel(c.life)
		c.stopDoing = stop
		go func() {
			defer stop()
			c.send(ranMsg{contained(func() error { return e.action.Run(ctx, c, e.arg) })})
		}()
	case stopEffect:
		c.stopDoing()
		c.leaving = c.leaving || c.m.action == starting
	case completeEffect:
		dir := c.w.Dir()
		go func() { c.send(choiceOf(e.word, paths(dir, e.word))) }()
	case rememberEffect:
		c.history.add(e.entry)
	case clearEffect:
		if err := c.screen.Clear(); err != nil {
			c.log.Warn("the screen cannot be cleared", "err", err)
		}
	case suspendEffect:
		c.suspend()
	case leaveEffect:
		c.leaving = true
	}
}

// work gives the agent something to do and waits until it is idle again.
func (c *Chat) work(give func(ctx context.Context) error) {
	c.waiting++
	c.m.update(c.w.Desk().Env.Now(), busyMsg{true})
	ag := c.Agent()
	go func() {
		err := give(c.life)
		if err != nil {
			c.send(failMsg{err})
		}
		out, werr := ag.Wait(c.life)
		switch {
		case err != nil || errors.Is(werr, agent.ErrClosed) || c.life.Err() != nil:
			c.send(idleMsg{})
		case werr != nil:
			c.send(idleMsg{werr})
		default:
			c.send(idleMsg{out.Err})
		}
	}()
}

// deliver sends a message. One that cannot be sent goes back to the input.
func (c *Chat) deliver(ctx context.Context, e sendEffect) error {
	content := []message.Block{}
	if e.text != "" {
		content = append(content, message.Text(e.text))
	}
	files, absent := existing(c.w.Dir(), e.files)
	attached, err := c.w.Attach(ctx, c.w.Dir(), files)
	if err == nil {
		c.noteAbsent(absent)
		content = append(content, attached...)
		c.noteImages(attached)
		if ag, m := c.Agent(), (message.Message{Content: content}); e.steer {
			_, err = ag.Steer(ctx, m)
		} else {
			_, err = ag.Send(ctx, m)
		}
	}
	if err != nil {
		c.send(backMsg{e.text})
	}
	return err
}

// noteImages says it when the model will not see what was attached.
func (c *Chat) noteImages(blocks []message.Block) {
	if text := c.w.Unseen(blocks); text != "" {
		c.Print(c.m.style.Yellow(text))
	}
}

// noteAbsent says which of the names behind an @ are no files.
func (c *Chat) noteAbsent(names []string) {
	for _, name := range names {
		c.Print(c.m.style.Dim("there is no file " + term.Cut(term.OneLine(name), 60) + ": @ and the name stay text"))
	}
}

// cancel stops the turn and gives back what was pending.
func (c *Chat) cancel() {
	dropped, err := c.Agent().Cancel(c.life, agent.Cause{Kind: agent.ByUser})
	var texts []string
	for _, m := range dropped {
		if t := typed(m); t != "" {
			texts = append(texts, t)
		}
	}
	c.send(backMsg{strings.Join(texts, "\n")})
	if err != nil && !errors.Is(err, agent.ErrClosed) {
		c.send(failMsg{err})
	}
}

// suspend lets the shell have the terminal until it lets this program go on.
func (c *Chat) suspend() {
	err := errors.Join(c.screen.End(), c.term.Release(), tty.Suspend(), c.term.Take())
	if err != nil {
		c.log.Warn("the program cannot be suspended", "err", err)
	}
	c.screen.Redraw()
}

// Agent is the agent of the session.
func (c *Chat) Agent() *agent.Agent {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.agent
}

// use changes the Work, while nobody else does.
func (c *Chat) use(f func(w *work.Work) error) error {
	c.using.Lock()
	defer c.using.Unlock()
	return f(c.w)
}

// Work is the session at work.
func (c *Chat) Work() *work.Work { return c.w }

// Style is how text is coloured.
func (c *Chat) Style() term.Style { return c.m.style }

// Print prints text above the input. Data in it must be safe (see package term).
func (c *Chat) Print(text string) { c.send(printMsg{text}) }

// Put puts a text into the input, before what stands there.
func (c *Chat) Put(text string) { c.send(backMsg{text}) }

// on runs f on the loop, with the model, and waits for it.
func (c *Chat) on(f func(m *model)) {
	done := make(chan struct{})
	if !c.send(funcMsg{func(m *model) { defer close(done); f(m) }}) {
		return
	}
	select {
	case <-done:
	case <-c.gone:
	}
}

// Approve implements agent.Approver: the question goes to the screen.
func (c *Chat) Approve(ctx context.Context, q agent.Question) (agent.Answer, error) {
	ask := &question{Question: q, answer: make(chan agent.Answer, 1)}
	if !c.send(askMsg{ask}) {
		return agent.Answer{}, agent.ErrUnavailable
	}
	select {
	case a := <-ask.answer:
		return a, nil
	case <-ctx.Done():
		c.send(unaskMsg{q.ID, errors.Is(context.Cause(ctx), viewer.ErrAnswered)})
		return agent.Answer{}, ctx.Err()
	case <-c.gone:
		return agent.Answer{}, agent.ErrUnavailable
	}
}

// engage makes the session's agent and follows it. show runs with the model.
func (c *Chat) engage(ctx context.Context, show func(func(*model))) error {
	var ag *agent.Agent
	err := c.use(func(w *work.Work) (err error) {
		ag, err = w.Engage(ctx, c.approver())
		return err
	})
	if err != nil {
		return err
	}
	step, turn, err := ag.Pending(ctx)
	if err != nil {
		return err
	}
	// Nothing was appended since, the agent is idle.
	unwatch := ag.Observe(func(ev outcrop.Event) { c.send(eventMsg{ev}) })
	c.mu.Lock()
	c.agent, c.unwatch = ag, unwatch
	c.mu.Unlock()
	session, with := c.w.Session(), c.w.Model()
	show(func(m *model) { m.open(session, with, step, turn) })
	return c.show()
}

// release stops following the agent.
func (c *Chat) release() {
	c.hide()
	c.mu.Lock()
	unwatch := c.unwatch
	c.unwatch = nil
	c.mu.Unlock()
	if unwatch != nil {
		unwatch()
	}
}
