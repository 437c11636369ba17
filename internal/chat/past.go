package chat

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/agent"
	"github.com/outcrop-dev/outcrop/history"
	"github.com/outcrop-dev/outcrop/history/pin"
	"github.com/outcrop-dev/outcrop/history/rewind"
	"github.com/outcrop-dev/outcrop/internal/exit"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/internal/term"
	"github.com/outcrop-dev/outcrop/internal/view"
	"github.com/outcrop-dev/outcrop/message"
)

// pastActions edit what the model sees of the conversation so far.
func pastActions() []Action {
	return []Action{
		{Name: "compact", Args: "[A..B]", Help: "put a summary in the place of a part of the surface", Idle: true, Run: compact},
		{Name: "prune", Args: "[SEQ...]", Help: "shorten tool results", Idle: true, Run: prune},
		{Name: "pin", Args: "[SEQ]", Help: "keep a node from being condensed; without SEQ list the pins", Idle: true, Run: pinNode},
		{Name: "rewind", Args: "SEQ", Help: "go back to the end of a turn, before a prompt, or 0", Idle: true, Run: goBack},
		{Name: "retry", Args: "[SEQ]", Help: "send the last prompt again, or the one at SEQ", Idle: true, Run: retry},
		{Name: "edit", Args: "TEXT", Help: "send the last prompt again in other words", Idle: true, Run: editLast},
	}
}

// seqOf reads a seq that a person typed.
func seqOf(text string) (outcrop.Seq, error) {
	n, ok := jsonwire.Int([]byte(text))
	if !ok || n < 0 {
		return 0, exit.Usagef("%s is no seq: give the number of an event (/surface lists the nodes)", term.Quote(text))
	}
	return outcrop.Seq(n), nil
}

func compact(ctx context.Context, c *Chat, arg string) error {
	r := history.Request{Start: -1, End: -1}
	if arg != "" {
		from, to, ok := strings.Cut(arg, "..")
		if !ok {
			return exit.Usagef("/compact %s: write A..B, the seqs of the first and the last node", term.Quote(arg))
		}
		var err error
		if r.Start, err = seqOf(from); err != nil {
			return err
		}
		if r.End, err = seqOf(to); err != nil {
			return err
		}
	}
	return c.operate(ctx, func(ctx context.Context, op agent.Operation) (history.Report, error) {
		return c.w.History().Compact(ctx, op, r)
	})
}

func prune(ctx context.Context, c *Chat, arg string) error {
	var nodes []outcrop.Seq
	for _, word := range strings.Fields(arg) {
		n, err := seqOf(word)
		if err != nil {
			return err
		}
		nodes = append(nodes, n)
	}
	return c.operate(ctx, func(ctx context.Context, op agent.Operation) (history.Report, error) {
		return c.w.History().Prune(ctx, op, nodes, false)
	})
}

// operate runs an operation of the history manager and prints what it did.
func (c *Chat) operate(ctx context.Context, f func(context.Context, agent.Operation) (history.Report, error)) error {
	var rep history.Report
	err := c.Agent().Operate(ctx, func(ctx context.Context, op agent.Operation) (err error) {
		rep, err = f(ctx, op)
		return err
	})
	if err != nil {
		return err
	}
	c.Print(strings.Join(view.Edits(rep), "\n"))
	return rep.Err
}

func pinNode(ctx context.Context, c *Chat, arg string) error {
	s := c.w.Session()
	if arg == "" {
		st := pin.Of(s.Log(), s.Surface().Nodes())
		if len(st.Held)+len(st.Lost) == 0 {
			c.Print("nothing is pinned")
			return nil
		}
		c.Print(fmt.Sprintf("pinned: %v, lost: %v", st.Held, st.Lost))
		return nil
	}
	node, err := seqOf(arg)
	if err != nil {
		return err
	}
	err = c.Agent().Maintain(ctx, func(s *outcrop.Session) error {
		_, err := pin.Set(s, node)
		return err
	})
	if err == nil {
		c.Print(fmt.Sprintf("pinned %d", node))
	}
	return err
}

func goBack(ctx context.Context, c *Chat, arg string) error {
	if arg == "" {
		return exit.Usagef("/rewind needs SEQ: the end of a turn, a prompt, or 0 (/surface lists the nodes)")
	}
	to, err := seqOf(arg)
	if err != nil {
		return err
	}
	var p rewind.Plan
	err = c.Agent().Maintain(ctx, func(s *outcrop.Session) (err error) {
		if p, err = rewind.Find(s, to); err == nil {
			_, err = rewind.Commit(s, p, c.w.Desk().Env.NewID())
		}
		return err
	})
	if err != nil {
		return err
	}
	dropped, err := c.Agent().Cancel(ctx, agent.Cause{Kind: agent.ByUser})
	c.Print(strings.Join(view.Rewound(p, dropped, false), "\n"))
	return err
}

func retry(ctx context.Context, c *Chat, arg string) error {
	at := outcrop.Seq(-1)
	if arg != "" {
		var err error
		if at, err = seqOf(arg); err != nil {
			return err
		}
	}
	return c.again(ctx, at, "")
}

func editLast(ctx context.Context, c *Chat, arg string) error {
	if strings.TrimSpace(arg) == "" {
		return exit.Usagef("/edit needs the new text of the last prompt")
	}
	return c.again(ctx, -1, arg)
}

// again takes the conversation back to before a prompt and sends it once more.
func (c *Chat) again(ctx context.Context, at outcrop.Seq, text string) error {
	var p rewind.Plan
	var m message.Message
	ag := c.Agent()
	err := ag.Maintain(ctx, func(s *outcrop.Session) (err error) {
		if p, m, err = rewind.Again(s, at, text); err == nil {
			_, err = rewind.Commit(s, p, c.w.Desk().Env.NewID())
		}
		return err
	})
	if err != nil {
		return err
	}
	dropped, cancelErr := ag.Cancel(ctx, agent.Cause{Kind: agent.ByUser})
	c.Print(strings.Join(view.Rewound(p, dropped, false), "\n"))
	_, err = ag.Send(ctx, m)
	if err == nil {
		c.send(funcMsg{func(*model) { c.work(func(context.Context) error { return nil }) }})
	}
	return errors.Join(cancelErr, err)
}
