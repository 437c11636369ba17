package agent_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/agent"
	"github.com/outcrop-dev/outcrop/message"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/tool"
)

func named(id, text string) message.Message {
	m := said(text)
	m.ID = id
	return m
}

func TestInputIsDeliveredToASessionThatNoAgentHas(t *testing.T) {
	live := newLive(t, ownHeader(), outcrop.Options{})
	for i, c := range []struct {
		target outcrop.InboxTarget
		m      message.Message
		err    error
	}{
		{outcrop.NextTurn, named("a", "first"), nil},
		{outcrop.NextStep, named("b", "at once"), nil},
		{outcrop.NextTurn, named("c", "second"), nil},
		{outcrop.NextTurn, named("a", "first"), agent.ErrInput},
		{outcrop.NextTurn, said("no id"), agent.ErrInput},
		{outcrop.NextTurn, message.Message{ID: "e"}, agent.ErrInput},
		{outcrop.NextTurn, named("d", "one too many"), agent.ErrInboxFull},
	} {
		n := live.s.Len()
		ev, err := agent.Deliver(live.s, c.target, c.m, 3)
		if !errors.Is(err, c.err) {
			t.Errorf("%d: %v", i, err)
		}
		if c.err == nil && (err != nil || ev.Seq != outcrop.Seq(n) || ev.Type != outcrop.TypeInboxSpliced) || c.err != nil && live.s.Len() != n {
			t.Errorf("%d: event %d %s, %v", i, ev.Seq, ev.Type, err)
		}
	}
	a := start(t, live, scripted(t))
	step, turn := pending(t, a)
	if !slices.Equal(step, []string{"at once"}) || !slices.Equal(turn, []string{"first", "second"}) {
		t.Errorf("pending are %q and %q", step, turn)
	}
}

// What is pending by the fold that a store keeps is what an agent finds pending.
func TestWhatAStoreSaysIsPendingIsWhatAnAgentFinds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, err := outcrop.New(ownHeader(), outcrop.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for range rapid.IntRange(0, 12).Draw(t, "splices") {
			p := outcrop.InboxSpliced{Target: rapid.SampledFrom([]outcrop.InboxTarget{outcrop.NextTurn, outcrop.NextStep}).Draw(t, "target"),
				Start: rapid.IntRange(0, 4).Draw(t, "start"), RemovedCount: rapid.IntRange(0, 3).Draw(t, "removed"), Canceled: true}
			for range rapid.IntRange(0, 2).Draw(t, "inserted") {
				p.Inserted = append(p.Inserted, named(rapid.StringMatching(`[a-z]{4}`).Draw(t, "id"), "x"))
			}
			if len(p.Inserted) == 0 && p.RemovedCount == 0 {
				continue
			}
			if _, err := s.Append(p); err != nil {
				t.Fatal(err)
			}
		}
		d := store.NewDue(s.Header())
		for r := range s.Log().Records(0) {
			d.Add(r)
		}
		dropped, err := agent.DropPending(s)
		if err != nil || len(dropped) != d.Pending() {
			t.Errorf("%d are pending by the store's fold, %d by the agent's, %v", d.Pending(), len(dropped), err)
		}
	})
}

func TestGoingOnComesBeforeWhatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		live := newLive(t, ownHeader(), outcrop.Options{})
		if _, err := agent.Deliver(live.s, outcrop.NextTurn, named("a", "later"), 0); err != nil {
			t.Fatal(err)
		}
		a := start(t, live, scripted(t, `{"expect":{"contains":"go on"},"text":"1"}`, `{"expect":{"contains":"later"},"text":"2"}`))
		if _, err := a.GoOn(background, named("a", "again")); !errors.Is(err, agent.ErrInput) {
			t.Errorf("an id that is pending: %v", err)
		}
		if _, err := a.GoOn(background, named("g", "go on")); err != nil {
			t.Fatal(err)
		}
		if out := wait(t, a); out.Turn != 2 || out.Reason.Kind != outcrop.Completed {
			t.Errorf("%+v", out)
		}
	})
}

func TestAToolDoesNotStartWhenTheSessionIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		live := newLive(t, ownHeader(), outcrop.Options{})
		lost := errors.New("the session is lost")
		var asked, ran []string
		guard := func(context.Context) error {
			asked = append(asked, "?")
			if len(asked) == 2 {
				return lost
			}
			return nil
		}
		run := func(_ context.Context, c tool.Call) (tool.Result, error) {
			if c.Epoch != 7 {
				t.Errorf("the call has epoch %d", c.Epoch)
			}
			ran = append(ran, c.ID)
			return tool.Text("ran"), nil
		}
		a := start(t, live, scripted(t, `{"tools":[{"name":"x","id":"c1"},{"name":"x","id":"c2"},{"name":"x","id":"c3"}]}`),
			withTools(t, &fakeTool{name: "x", class: tool.Read, run: run}),
			func(o *agent.Options) { o.Guard, o.Epoch = guard, 7 })
		out := ask(t, a, "go")
		if !slices.Equal(ran, []string{"c1"}) || out.Reason.Kind != outcrop.TurnError || !errors.Is(out.Err, lost) {
			t.Errorf("ran %q, %+v", ran, out)
		}
	})
}
