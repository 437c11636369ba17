package agent_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/agent"
	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/message"
)

func TestObserversHearOfEveryEventAtTheirOwnPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		live := newLive(t, ownHeader(), outcrop.Options{})
		a := start(t, live, scripted(t, `{"script":1,"piece":1}`, `{"text":"a long answer in many pieces"}`))
		gate := make(chan struct{})
		var slow, fast []outcrop.Seq
		stopSlow := a.Observe(func(ev outcrop.Event) {
			<-gate
			slow = append(slow, ev.Seq)
		})
		stopFast := a.Observe(func(ev outcrop.Event) {
			fast = append(fast, ev.Seq)
			if ev.Type == outcrop.TypeTurnStart {
				panic("an observer's own fault")
			}
		})
		out := ask(t, a, "Go.") // ends although the slow one has heard of nothing
		if out.Reason.Kind != outcrop.Completed {
			t.Errorf("outcome %+v", out)
		}
		close(gate)
		stopSlow()
		stopFast()
		for name, got := range map[string][]outcrop.Seq{"slow": slow, "fast": fast} {
			if len(got) != live.s.Len() {
				t.Errorf("%s: %d of %d events", name, len(got), live.s.Len())
			}
			for i, seq := range got {
				if int(seq) != i {
					t.Errorf("%s: event %d in place %d", name, seq, i)
					break
				}
			}
		}
		heard := len(fast)
		stopFast()
		live.s.Append(outcrop.SessionTitle{Title: "x"})
		synctest.Wait()
		if len(fast) != heard {
			t.Error("a stopped observer heard of more")
		}
	})
}

func TestAnObserverMayCallTheAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		live := newLive(t, ownHeader(), outcrop.Options{})
		a := start(t, live, scripted(t, `{"text":"Once upon a time","cut":"hang","after":1}`, `{"text":"ok"}`))
		sent := false
		done := a.Observe(func(ev outcrop.Event) {
			switch {
			case ev.Type == outcrop.TypeAssistantChunk && strings.Contains(string(ev.Data), "Once upon"):
				if _, err := a.Cancel(background, agent.Cause{Kind: agent.ByUser}); err != nil {
					t.Error(err)
				}
			case ev.Type == outcrop.TypeTurnEnd && !sent:
				sent = true
				if _, err := a.Send(background, said("From an observer.")); err != nil {
					t.Error(err)
				}
			}
		})
		ask(t, a, "Go.")
		synctest.Wait()
		if out := wait(t, a); out.Turn != 2 || out.Reason.Kind != outcrop.Completed {
			t.Errorf("outcome %+v", out)
		}
		done()
		check(t, live.s.Log())
	})
}

func TestClosingEndsObserversAndKeepsPendingInput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		live := newLive(t, ownHeader(), outcrop.Options{})
		a := start(t, live, scripted(t, `{"text":"x","cut":"hang"}`))
		heard := 0
		a.Observe(func(outcrop.Event) { heard++ })
		send(t, a, "First.")
		send(t, a, "Second.")
		synctest.Wait()
		stop(t, a)
		synctest.Wait()
		if heard != live.s.Len() {
			t.Errorf("heard of %d of %d events", heard, live.s.Len())
		}
		end := eventsOf(live.s.Log(), outcrop.TypeTurnEnd)
		if len(end) != 1 || end[0] != `{"turn":1,"reason":{"kind":"aborted","reason":{"kind":"disposed"}}}` {
			t.Errorf("turn ends %v", end)
		}
		if _, err := a.Wait(background); !errors.Is(err, agent.ErrClosed) {
			t.Errorf("wait: %v", err)
		}
		stop(t, a) // a second time
		again := reopened(t, live.s.Header(), live.s.Log(), live.s.Len())
		b := start(t, again, scripted(t, `{"text":"ok"}`))
		if _, turn := pending(t, b); len(turn) != 1 || turn[0] != "Second." {
			t.Errorf("pending %v", turn)
		}
	})
}

func TestMaintainNeedsAnIdleAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		live := newLive(t, ownHeader(), outcrop.Options{})
		a := start(t, live, scripted(t, `{"text":"x","cut":"hang"}`))
		title := func(s *outcrop.Session) error {
			_, err := s.Append(outcrop.SessionTitle{Title: "A title", Source: "user"})
			return err
		}
		if err := a.Maintain(background, title); err != nil || live.Durable() != 1 {
			t.Errorf("idle: %v, durable %d", err, live.Durable())
		}
		if err := a.Maintain(background, func(*outcrop.Session) error { panic("oh") }); err == nil || !strings.Contains(err.Error(), "oh") {
			t.Errorf("a panic: %v", err)
		}
		send(t, a, "Go.")
		synctest.Wait()
		if err := a.Maintain(background, title); !errors.Is(err, agent.ErrBusy) {
			t.Errorf("busy: %v", err)
		}
	})
}

func TestCostLimitStopsBeforeTheNextCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		live := newLive(t, ownHeader(), outcrop.Options{})
		calls := 0
		p := streamFunc(func(_ context.Context, _ llm.Request, yield func(message.Chunk, error) bool) {
			calls++
			yield(message.Chunk{Type: message.TextDelta, Text: "ok"}, nil)
			yield(message.Chunk{Type: message.UsageChunk, Usage: &message.Usage{InputTokens: 1_000_000, OutputTokens: 100_000}}, nil)
		})
		a := start(t, live, p, func(o *agent.Options) {
			o.Price = &llm.Price{Input: 270_000, Output: 1_100_000}
			o.Limits.CostMicroUSD = 500_000
		})
		for range 2 {
			if out := ask(t, a, "Go."); out.Reason.Kind != outcrop.Completed {
				t.Errorf("outcome %+v", out)
			}
		}
		out := ask(t, a, "Go.")
		if out.Reason.Abort != (outcrop.AbortReason{Kind: "hook", Reason: "cost limit $0.50 reached"}) || calls != 2 {
			t.Errorf("outcome %+v after %d calls", out, calls)
		}
		check(t, live.s.Log())
	})
}

func TestNewRefusesOptionsThatCannotWork(t *testing.T) {
	live := newLive(t, ownHeader(), outcrop.Options{})
	model := scripted(t, `{"text":"ok"}`)
	for name, o := range map[string]agent.Options{
		"no session":                   {Provider: model, Config: llm.Config{Model: "m"}},
		"no provider":                  {Live: live, Config: llm.Config{Model: "m"}},
		"no model":                     {Live: live, Provider: model},
		"a policy that does not exist": {Live: live, Provider: model, Config: llm.Config{Model: "m"}, Policy: "sometimes"},
	} {
		if a, err := agent.New(o); err == nil {
			stop(t, a)
			t.Errorf("%s: accepted", name)
		}
	}
	if live.s.Len() != 0 {
		t.Error("a refusal left events")
	}
}

func TestAChangedModelOrPromptIsANewHeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		live := newLive(t, ownHeader(), outcrop.Options{})
		for i, model := range []string{"m1", "m1", "m2"} {
			a := start(t, live, scripted(t, `{"text":"ok"}`, `{"text":"ok"}`), func(o *agent.Options) { o.Config.Model, o.Window = model, int64(1000*(1+i/2)) })
			ask(t, a, "Go.")
			ask(t, a, "Go on.")
			stop(t, a)
		}
		var reasons []string
		for _, d := range eventsOf(live.s.Log(), outcrop.TypeRequestHeader) {
			reasons = append(reasons, d[strings.LastIndex(d, `"reason"`):])
		}
		if got := fmt.Sprint(reasons); got != `["reason":"initial"} "reason":"resume"} "reason":"resume"}]` {
			t.Errorf("headers %s", got)
		}
		if got := fmt.Sprint(eventsOf(live.s.Log(), outcrop.TypeRequestContext)); got !=
			`[{"provider":"script","model":"m1","contextWindow":1000} {"provider":"script","model":"m2","contextWindow":2000}]` {
			t.Errorf("contexts %s", got)
		}
		check(t, live.s.Log())
	})
}
