package chat

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/agent"
	"github.com/outcrop-dev/outcrop/internal/config"
	"github.com/outcrop-dev/outcrop/internal/exit"
	"github.com/outcrop-dev/outcrop/internal/term"
	"github.com/outcrop-dev/outcrop/internal/usage"
	"github.com/outcrop-dev/outcrop/internal/view"
	"github.com/outcrop-dev/outcrop/internal/work"
	"github.com/outcrop-dev/outcrop/message"
	"github.com/outcrop-dev/outcrop/store"
)

// Action is something that a person does by a word behind a slash.
type Action struct {
	Name string // "fork"
	Args string // for the help: "[SEQ]"
	Help string // one line
	// Idle says that no turn may run.
	Idle bool
	// Run does it, on a goroutine of its own; nothing is sent to the agent from
	// the input until it returns. Ctrl-C ends ctx. An error is shown.
	Run func(ctx context.Context, c *Chat, arg string) error
}

func find(actions []Action, name string) (Action, bool) {
	i := slices.IndexFunc(actions, func(a Action) bool { return a.Name == name })
	if i < 0 {
		return Action{}, false
	}
	return actions[i], true
}

// meant names the action that a word may stand for.
func meant(name string, actions []Action) string {
	var names []string
	for _, a := range actions {
		names = append(names, a.Name)
	}
	if near := config.Nearest(name, names); near != "" {
		return ": did you mean /" + near + "?"
	}
	return ": /help lists what there is"
}

// ownActions are those that every chat has.
func ownActions() []Action {
	return []Action{
		{Name: "help", Help: "what can be typed here", Run: help},
		{Name: "show", Args: "[N]", Help: "call or reasoning N in full; the last one without N (Ctrl-O)", Run: show},
		{Name: "model", Args: "[PROVIDER:MODEL]", Help: "the model, or another one from the next request on", Run: setModel},
		{Name: "approve", Args: "[ask|edits|all|none]", Help: "which calls need no question", Run: approve},
		{Name: "attach", Args: "FILE", Help: "give a file along with the next message, as @FILE in it does", Run: attachFile},
		{Name: "continue", Help: "run what is pending, or go on after a turn that was cut", Idle: true, Run: goOn},
		{Name: "clear-pending", Help: "drop what is pending", Run: clearPending},
		{Name: "fork", Args: "[SEQ]", Help: "go on in a new session, from here or from event SEQ", Idle: true, Run: fork},
		{Name: "surface", Help: "what the model sees", Run: surface},
		{Name: "usage", Help: "tokens and cost of this session", Run: usageOf},
		{Name: "quit", Help: "leave (Ctrl-D)", Run: quit},
	}
}

func help(_ context.Context, c *Chat, _ string) error {
	c.on(func(m *model) {
		m.space()
		for _, a := range m.actions {
			name := strings.TrimSpace("/" + a.Name + " " + a.Args)
			if m.width < 60 {
				m.print(m.style.Cyan(name))
				m.note(func(s string) string { return "  " + s }, a.Help)
				continue
			}
			m.print(m.style.Cyan(term.Pad(name, 31)) + term.Cut(a.Help, m.textWidth()-31))
		}
		m.space()
		m.note(m.style.Dim, `Enter sends, and steers while a turn runs. Alt-Enter, Ctrl-J, or \ and Enter: a new line. Up and Down: history. Tab: completion. Ctrl-C: stop, then leave. Esc: back from the reason of a no.`)
		m.space()
	})
	return nil
}

func show(_ context.Context, c *Chat, arg string) error {
	number := 0
	if arg != "" {
		n, err := strconv.Atoi(strings.Trim(arg, "[]"))
		if err != nil {
			return exit.Usagef("/show %s: give the number in brackets", term.Quote(arg))
		}
		number = n
	}
	log := c.w.Session().Log()
	c.on(func(m *model) {
		if arg == "" {
			number = len(m.shown)
		}
		m.print(strings.Split(strings.TrimRight(m.unfold(log, number), "\n"), "\n")...)
		m.space()
	})
	return nil
}

func setModel(ctx context.Context, c *Chat, arg string) error {
	if arg == "" {
		with := c.w.Model()
		text := term.Line(with.Name())
		if with.Window > 0 {
			text += ", window " + term.Count(with.Window) + " tokens"
		}
		c.Print(text)
		return nil
	}
	return c.use(func(w *work.Work) error { return c.useModel(ctx, w, arg) })
}

// useModel changes the model, and says so.
func (c *Chat) useModel(ctx context.Context, w *work.Work, name string) error {
	if err := w.SetModel(ctx, name); err != nil {
		return err
	}
	with := w.Model()
	c.on(func(m *model) { m.with(with) })
	c.Print("the next request goes to " + term.Line(with.Name()))
	return nil
}

func approve(ctx context.Context, c *Chat, arg string) error {
	if arg != "" {
		if err := c.use(func(w *work.Work) error { return w.SetPolicy(ctx, arg) }); err != nil {
			return err
		}
	}
	c.Print("approval: " + map[agent.Policy]string{
		agent.AskAll:    "ask, what writes or runs something asks",
		agent.AskExec:   "edits, what runs something asks",
		agent.AllowAll:  "all, nothing asks",
		agent.AllowRead: "none, everything but reading is refused",
	}[c.w.Policy()])
	return nil
}

func attachFile(ctx context.Context, c *Chat, arg string) error {
	if arg == "" {
		return exit.Usagef("/attach needs a file")
	}
	// What cannot be attached is refused now, not when it is sent.
	blocks, err := c.w.Attach(ctx, c.w.Dir(), []string{arg})
	if err == nil {
		c.noteImages(blocks)
		c.send(fileMsg{arg})
	}
	return err
}

// goOn runs what is pending; where nothing is, it asks the model to go on.
func goOn(ctx context.Context, c *Chat, _ string) error {
	ag := c.Agent()
	pending, err := ag.Wake(ctx)
	if err == nil && !pending {
		if c.w.Session().Len() == 0 {
			return exit.Refusedf("there is nothing to continue yet")
		}
		_, err = ag.Send(ctx, message.Message{Content: []message.Block{message.Text("Continue.")}})
	}
	if err == nil {
		c.send(funcMsg{func(*model) { c.work(func(context.Context) error { return nil }) }})
	}
	return err
}

func clearPending(ctx context.Context, c *Chat, _ string) error {
	ag := c.Agent()
	step, turn, err := ag.Pending(ctx)
	if err != nil {
		return err
	}
	n := 0
	for _, m := range append(step, turn...) {
		_, removed, err := ag.Remove(ctx, m.ID)
		if err != nil {
			return err
		}
		if removed {
			n++
		}
	}
	c.Print(term.Plural(n, "message") + " dropped")
	return nil
}

func fork(ctx context.Context, c *Chat, arg string) error {
	at := outcrop.Seq(-1)
	if arg != "" {
		n, err := strconv.ParseInt(arg, 10, 64)
		if err != nil || n < 0 {
			return exit.Usagef("/fork %s: give the seq of an event, from 0 on", term.Quote(arg))
		}
		at = outcrop.Seq(n)
	}
	before := c.w.Again()
	c.hide()
	var cut store.Cut
	err := c.use(func(w *work.Work) (err error) {
		cut, err = w.Fork(ctx, at)
		return err
	})
	if err != nil {
		return errors.Join(err, c.show())
	}
	text := fmt.Sprintf("session %s, cut after event %d", term.Line(cut.Header.ID), cut.Boundary)
	if cut.Turn > 0 {
		text += fmt.Sprintf(", inside turn %d", cut.Turn)
	}
	c.release()
	c.on(func(m *model) {
		m.space()
		m.note(m.style.Yellow, text+"; the one before: "+before)
	})
	return c.engage(ctx, c.on)
}

func surface(_ context.Context, c *Chat, _ string) error {
	s := c.w.Session()
	fold, err := outcrop.SurfaceAt(s.Log(), outcrop.Seq(s.Len()-1))
	if err != nil {
		return err
	}
	var b bytes.Buffer
	p := view.Printer{W: &b, Style: c.Style()}
	fmt.Fprintf(&b, "%s over %s, %s\n", term.Plural(len(fold.Nodes), "node"), term.Plural(s.Len(), "event"), term.Plural(fold.Generation, "edit"))
	under := map[outcrop.Seq]outcrop.Replacement{}
	for _, r := range fold.Replacements {
		under[r.Seq] = r
	}
	width := len(strconv.Itoa(s.Len()))
	for _, n := range fold.Nodes {
		p.Node(s.Log(), n, width)
		p.Covered(s.Log(), under, n, width)
	}
	c.Print(b.String())
	return nil
}

func usageOf(_ context.Context, c *Chat, _ string) error {
	s := c.w.Session()
	var sum usage.Sum
	scan := usage.NewScan(s.Header(), c.w.Price, func(call usage.Call) {
		if !call.Inherited {
			sum.Add(&call)
		}
	})
	for r := range s.Log().Records(0) {
		scan.Add(r)
	}
	scan.End()
	cost := "cost not known: a model has no price in the configuration"
	if micro, ok := sum.Total(); ok {
		cost = fmt.Sprintf("cost $%.6f", float64(micro)/1e6)
	}
	c.on(func(m *model) {
		m.note(plain, fmt.Sprintf("this session: %s, %s failed; tokens: %s in, %s from the cache, %s into it, %s out; %s",
			term.Plural(sum.Calls, "call"), term.Count(sum.Failed), term.Count(sum.Input), term.Count(sum.CacheRead),
			term.Count(sum.CacheWrite), term.Count(sum.Output), cost))
		m.note(plain, "window: "+m.gauge.String())
	})
	return nil
}

func plain(s string) string { return s }

func quit(_ context.Context, c *Chat, _ string) error {
	c.send(funcMsg{func(*model) { c.leaving = true }})
	return nil
}
