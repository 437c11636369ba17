package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/agent"
	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/message"
)

func pending(t *testing.T, a *agent.Agent) (nextStep, nextTurn []string) {
	t.Helper()
	step, turn, err := a.Pending(background)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range step {
		nextStep = append(nextStep, message.PlainText(m.Content))
	}
	for _, m := range turn {
		nextTurn = append(nextTurn, message.PlainText(m.Content))
	}
	return nextStep, nextTurn
}

func TestSendRefusesWhatCannotBeSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		live := newLive(t, ownHeader(), outcrop.Options{})
		a := start(t, live, scripted(t, `{"text":"x","cut":"hang"}`), func(o *agent.Options) { o.Limits.Inbox = 2 })
		for _, c := range []struct {
			name string
			m    message.Message
		}{
			{"empty", message.Message{}},
			{"another role", message.Message{Role: message.Assistant, Content: said("x").Content}},
		} {
			if _, err := a.Send(background, c.m); !errors.Is(err, agent.ErrInput) {
				t.Errorf("%s: %v", c.name, err)
			}
		}
		bad := said("x")
		bad.Content[0].Raw = json.RawMessage(`{`)
		if _, err := a.Send(background, bad); !errors.Is(err, outcrop.ErrRefused) {
			t.Errorf("a block that is no JSON: %v", err)
		}
		if live.s.Len() != 0 {
			t.Errorf("a refused message left %d events", live.s.Len())
		}
		send(t, a, "Busy now.")
		synctest.Wait()
		m := said("one")
		m.ID = "twice"
		if _, err := a.Send(background, m); err != nil {
			t.Fatal(err)
		}
		if _, err := a.Steer(background, m); !errors.Is(err, agent.ErrInput) {
			t.Errorf("an id twice: %v", err)
		}
		send(t, a, "two")
		if _, err := a.Send(background, said("three")); !errors.Is(err, agent.ErrInboxFull) {
			t.Errorf("a full inbox: %v", err)
		}
		if _, err := a.Cancel(background, agent.Cause{Kind: agent.ByUser}); err != nil {
			t.Fatal(err)
		}
		wait(t, a)
	})
}

func TestInputWaitsAfterATurnThatDidNotEndByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		live := newLive(t, ownHeader(), outcrop.Options{})
		var a *agent.Agent
		n := 0
		a = start(t, live, streamFunc(func(ctx context.Context, _ llm.Request, yield func(message.Chunk, error) bool) {
			if n++; n == 1 {
				if _, err := a.Send(ctx, said("Second.")); err != nil {
					t.Error(err)
				}
				yield(message.Chunk{}, &message.Failure{Code: "AUTH", Message: "no"})
				return
			}
			yield(message.Chunk{Type: message.TextDelta, Text: "ok"}, nil)
		}))
		if out := ask(t, a, "First."); out.Turn != 1 || out.Reason.Kind != outcrop.TurnError {
			t.Errorf("outcome %+v", out)
		}
		if _, turn := pending(t, a); len(turn) != 1 {
			t.Errorf("pending %v", turn)
		}
		if more, err := a.Wake(background); !more || err != nil {
			t.Errorf("wake: %v %v", more, err)
		}
		if out := wait(t, a); out.Turn != 2 || out.Reason.Kind != outcrop.Completed {
			t.Errorf("outcome %+v", out)
		}
		if more, _ := a.Wake(background); more {
			t.Error("wake finds something in an empty inbox")
		}
		check(t, live.s.Log())
	})
}

func TestSteeringAnIdleAgentStartsATurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		live := newLive(t, ownHeader(), outcrop.Options{})
		a := start(t, live, scripted(t, `{"text":"ok","expect":{"messages":1}}`))
		if _, err := a.Steer(background, said("Hello.")); err != nil {
			t.Fatal(err)
		}
		if out := wait(t, a); out.Reason.Kind != outcrop.Completed {
			t.Errorf("outcome %+v", out)
		}
		check(t, live.s.Log())
	})
}

// A message that comes while a cancelled turn still ends gets the next one.
func TestInputDuringACancelIsNotLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		live := newLive(t, ownHeader(), outcrop.Options{})
		a := start(t, live, scripted(t, `{"text":"Once upon a time","cut":"hang","after":1}`, `{"text":"ok"}`))
		send(t, a, "First.")
		synctest.Wait()
		if _, err := a.Cancel(background, agent.Cause{Kind: agent.ByUser}); err != nil {
			t.Fatal(err)
		}
		if _, err := a.Steer(background, said("Second.")); err != nil {
			t.Fatal(err)
		}
		if out := wait(t, a); out.Turn != 2 || out.Reason.Kind != outcrop.Completed {
			t.Errorf("outcome %+v", out)
		}
		check(t, live.s.Log())
	})
}

func TestKeepInboxLeavesPendingInputForTheNextWake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		live := newLive(t, ownHeader(), outcrop.Options{})
		a := start(t, live, scripted(t, `{"text":"x","cut":"hang"}`, `{"text":"two"}`, `{"text":"three"}`))
		send(t, a, "First.")
		synctest.Wait()
		send(t, a, "Second.")
		if dropped, err := a.Cancel(background, agent.Cause{Kind: agent.ByUser}, agent.KeepInbox); err != nil || dropped != nil {
			t.Errorf("%v %v", dropped, err)
		}
		if out := wait(t, a); out.Turn != 1 {
			t.Errorf("outcome %+v", out)
		}
		if out := ask(t, a, "Third."); out.Turn != 3 {
			t.Errorf("both should have run: %+v", out)
		}
		check(t, live.s.Log())
	})
}

func TestAnIdleCancelDropsWhatIsPending(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		live := newLive(t, ownHeader(), outcrop.Options{})
		a := start(t, live, scripted(t, `{"text":"x","cut":"hang"}`))
		send(t, a, "First.")
		synctest.Wait()
		send(t, a, "Second.")
		if _, err := a.Cancel(background, agent.Cause{Kind: agent.ByUser}, agent.KeepInbox); err != nil {
			t.Fatal(err)
		}
		wait(t, a)
		dropped, err := a.Cancel(background, agent.Cause{Kind: agent.ByUser})
		if err != nil || len(dropped) != 1 {
			t.Errorf("dropped %v, %v", dropped, err)
		}
		if _, turn := pending(t, a); turn != nil {
			t.Errorf("pending %v", turn)
		}
		check(t, live.s.Log())
	})
}

// appended makes a log by hand.
func appended(t *testing.T, h outcrop.Header, events ...outcrop.LogPayload) *memoryLive {
	t.Helper()
	live := newLive(t, h, outcrop.Options{})
	for _, e := range events {
		if _, err := live.s.Append(e); err != nil {
			t.Fatal(err)
		}
	}
	return live
}

func inserted(target outcrop.InboxTarget, at int, id string) outcrop.InboxSpliced {
	m := said(id)
	m.ID, m.Role, m.Source = id, message.User, message.FromUser
	return outcrop.InboxSpliced{Target: target, Start: at, Inserted: []message.Message{m}}
}

func taken(target outcrop.InboxTarget, n int) outcrop.InboxSpliced {
	return outcrop.InboxSpliced{Target: target, RemovedCount: n}
}

func TestInputThatWasClaimedAndNeverEnteredIsPendingAgain(t *testing.T) {
	end := func(kind outcrop.ReasonKind, abort string) outcrop.TurnEnd {
		return outcrop.TurnEnd{Turn: 1, Reason: outcrop.TurnReason{Kind: kind, Abort: outcrop.AbortReason{Kind: abort, Reason: "x"}}}
	}
	for _, c := range []struct {
		name               string
		events             []outcrop.LogPayload
		nextStep, nextTurn []string
	}{
		{"nothing was claimed", []outcrop.LogPayload{inserted(outcrop.NextTurn, 0, "a"), inserted(outcrop.NextTurn, 1, "b"), inserted(outcrop.NextStep, 0, "c")},
			[]string{"c"}, []string{"a", "b"}},
		{"claimed, then a crash", []outcrop.LogPayload{inserted(outcrop.NextTurn, 0, "a"), inserted(outcrop.NextTurn, 1, "b"), inserted(outcrop.NextStep, 0, "c"), inserted(outcrop.NextStep, 1, "d"),
			outcrop.TurnStart{Turn: 1}, taken(outcrop.NextStep, 2), taken(outcrop.NextTurn, 1)},
			[]string{"c", "d"}, []string{"a", "b"}},
		{"the turn ended with an error", []outcrop.LogPayload{inserted(outcrop.NextTurn, 0, "a"), outcrop.TurnStart{Turn: 1}, taken(outcrop.NextTurn, 1), end(outcrop.TurnError, "")},
			nil, []string{"a"}},
		{"a hook ended the turn", []outcrop.LogPayload{inserted(outcrop.NextTurn, 0, "a"), outcrop.TurnStart{Turn: 1}, taken(outcrop.NextTurn, 1), end(outcrop.TurnAborted, "hook")},
			nil, []string{"a"}},
		{"the person cancelled that turn", []outcrop.LogPayload{inserted(outcrop.NextTurn, 0, "a"), outcrop.TurnStart{Turn: 1}, taken(outcrop.NextTurn, 1), end(outcrop.TurnAborted, "user")},
			nil, nil},
		{"it was refused", []outcrop.LogPayload{inserted(outcrop.NextTurn, 0, "a"), outcrop.TurnStart{Turn: 1}, taken(outcrop.NextTurn, 1), end(outcrop.Blocked, "")},
			nil, nil},
		{"it was taken back", []outcrop.LogPayload{inserted(outcrop.NextTurn, 0, "a"), outcrop.InboxSpliced{Target: outcrop.NextTurn, RemovedCount: 1, Canceled: true}},
			nil, nil},
		{"another program changed the list in the middle", []outcrop.LogPayload{inserted(outcrop.NextTurn, 0, "a"), inserted(outcrop.NextTurn, 1, "b"), inserted(outcrop.NextTurn, 1, "c"),
			outcrop.InboxSpliced{Target: outcrop.NextTurn, Start: 2, RemovedCount: 1, Canceled: true}},
			nil, []string{"a", "c"}},
		{"a change that does not fit", []outcrop.LogPayload{inserted(outcrop.NextTurn, 7, "a"), outcrop.InboxSpliced{Target: outcrop.NextTurn, Start: 0, RemovedCount: 9, Canceled: true}, inserted(outcrop.NextTurn, 0, "b")},
			nil, []string{"b"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				made := appended(t, ownHeader(), c.events...)
				log := made.s.Log()
				for opened := range 4 {
					live := reopened(t, ownHeader(), log, log.Len())
					a := start(t, live, scripted(t, `{"text":"ok"}`))
					step, turn := pending(t, a)
					if !cmp.Equal(step, c.nextStep) || !cmp.Equal(turn, c.nextTurn) {
						t.Errorf("opened %d times: pending %v and %v, want %v and %v", opened+1, step, turn, c.nextStep, c.nextTurn)
					}
					stop(t, a)
					// The first time puts input back, the second ends the seed behind it.
					if opened > 1 && live.s.Len() != log.Len() {
						t.Errorf("a log that was not used grew by %d", live.s.Len()-log.Len())
					}
					log = live.s.Log()
				}
			})
		})
	}
}

func TestAForkDoesNotInheritWhatItsParentHadPending(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		made := appended(t, ownHeader(), inserted(outcrop.NextTurn, 0, "a"))
		h := ownHeader().Child("s2", 2000, int64(made.s.Len()))
		live := reopened(t, h, made.s.Log(), made.s.Len())
		a := start(t, live, scripted(t, `{"text":"ok"}`))
		if step, turn := pending(t, a); step != nil || turn != nil {
			t.Errorf("pending %v %v", step, turn)
		}
	})
}

func TestTheVisibleTextOfACutReplyIsToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		live := newLive(t, ownHeader(), outcrop.Options{})
		a := start(t, live, scripted(t, `{"reasoning":"Hm.","text":"First attempt.","error":{"code":"SERVER","message":"no"},"after":3}`,
			`{"reasoning":"Hm, hm.","text":"The answer is forty-two, because","tools":[{"name":"look","args":{}}]}`))
		ask(t, a, "What is the answer?")
		cut := 0
		for ev := range outcrop.Events(live.s.Log(), 0) {
			if ev.Type == outcrop.TypeAssistantMessage {
				cut = int(ev.Seq) // just before it
				break
			}
		}
		again := reopened(t, live.s.Header(), live.s.Log(), cut)
		b := start(t, again, scripted(t, `{"text":"ok","expect":{"contains":"The answer is forty-two, because","absent":"First attempt"}}`, `{"text":"ok"}`))
		for i := range 2 {
			if out := ask(t, b, fmt.Sprintf("Go on %d.", i)); out.Reason.Kind != outcrop.Completed {
				t.Errorf("outcome %+v", out)
			}
		}
		if got := eventsOf(again.s.Log(), outcrop.TypeContextMessage); len(got) != 1 {
			t.Errorf("told %d times", len(got))
		}
		stop(t, b)
		third := reopened(t, again.s.Header(), again.s.Log(), again.s.Len())
		c := start(t, third, scripted(t, `{"text":"ok"}`))
		ask(t, c, "And again.")
		if got := eventsOf(third.s.Log(), outcrop.TypeContextMessage); len(got) != 1 {
			t.Errorf("told %d times after another resume", len(got))
		}
		check(t, third.s.Log())
	})
}
