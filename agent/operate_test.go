package agent_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/agent"
	"github.com/outcrop-dev/outcrop/history"
	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/message"
)

// operating starts an operation that waits for go on, and returns when it runs.
func operating(t *testing.T, a *agent.Agent, goOn <-chan struct{}) (ended <-chan error) {
	t.Helper()
	begun, done := make(chan struct{}), make(chan error, 1)
	go func() {
		done <- a.Operate(background, func(ctx context.Context, o agent.Operation) error {
			title := func(s *outcrop.Session) error {
				_, err := s.Append(outcrop.SessionTitle{Title: "x"})
				return err
			}
			if err := o.Edit(ctx, title); err != nil {
				return err
			}
			close(begun)
			select {
			case <-goOn:
				return o.Edit(ctx, title)
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		})
	}()
	select {
	case <-begun:
	case err := <-done:
		t.Fatal(err)
	}
	return done
}

func TestNoTurnBeginsWhileAnOperationRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		live := newLive(t, ownHeader(), outcrop.Options{})
		a := start(t, live, scripted(t, `{"text":"one"}`))
		defer stop(t, a)
		goOn := make(chan struct{})
		ended := operating(t, a, goOn)
		send(t, a, "prompt")
		synctest.Wait()
		if st := a.Status(); st.Phase != agent.Operating || st.Pending != 1 {
			t.Errorf("%+v", st)
		}
		for name, err := range map[string]error{
			"maintain": a.Maintain(background, func(*outcrop.Session) error { return nil }),
			"operate":  a.Operate(background, func(context.Context, agent.Operation) error { return nil }),
		} {
			if !errors.Is(err, agent.ErrBusy) {
				t.Errorf("%s: %v", name, err)
			}
		}
		close(goOn)
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		if out := wait(t, a); out.Turn != 1 || out.Reason.Kind != outcrop.Completed {
			t.Errorf("%+v", out)
		}
		check(t, live.Session().Log())
		// The two edits stand before the turn.
		if titles, turns := eventsOf(live.Session().Log(), outcrop.TypeSessionTitle), eventsOf(live.Session().Log(), outcrop.TypeTurnStart); len(titles) != 2 || len(turns) != 1 {
			t.Errorf("%v %v", titles, turns)
		}
	})
}

func TestACancelEndsAnOperationAndDropsWhatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		live := newLive(t, ownHeader(), outcrop.Options{})
		a := start(t, live, scripted(t, `{"text":"one"}`))
		defer stop(t, a)
		ended := operating(t, a, nil)
		send(t, a, "dropped")
		dropped, err := a.Cancel(background, agent.Cause{Kind: agent.ByUser})
		if err != nil || len(dropped) != 1 || message.PlainText(dropped[0].Content) != "dropped" {
			t.Errorf("%v, %v", dropped, err)
		}
		send(t, a, "second")
		var cause agent.Cause
		if err := <-ended; !errors.As(err, &cause) || cause.Kind != agent.ByUser {
			t.Errorf("%v", err)
		}
		if out := wait(t, a); out.Turn != 1 {
			t.Errorf("%+v", out)
		}
		check(t, live.Session().Log())
	})
}

func TestCloseEndsAnOperation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		live := newLive(t, ownHeader(), outcrop.Options{})
		a := start(t, live, scripted(t))
		ended := operating(t, a, nil)
		stop(t, a)
		if err := <-ended; err == nil {
			t.Error("the operation did not end with an error")
		}
	})
}

func TestAPanicOfAnOperationIsItsError(t *testing.T) {
	live := newLive(t, ownHeader(), outcrop.Options{})
	a := start(t, live, scripted(t, `{"text":"one"}`))
	defer stop(t, a)
	var o agent.Operation
	err := a.Operate(background, func(_ context.Context, op agent.Operation) error { o = op; panic("oh") })
	if err == nil || errors.Is(err, agent.ErrBusy) {
		t.Errorf("%v", err)
	}
	if err := o.Edit(background, func(*outcrop.Session) error { return nil }); !errors.Is(err, agent.ErrBusy) {
		t.Errorf("an edit behind the end: %v", err)
	}
	if out := ask(t, a, "prompt"); out.Reason.Kind != outcrop.Completed {
		t.Errorf("%+v", out)
	}
}

// A hook that is left behind inside a compaction must not keep its bracket open
// over the end of the turn.
type stuckCompaction struct{ begun chan struct{} }

func (h stuckCompaction) PreStep(ctx context.Context, st agent.Stage, claimed []message.Message) ([]message.Message, bool, error) {
	err := st.Edit(ctx, func(s *outcrop.Session) error {
		_, err := s.Append(outcrop.CompactionStart{CompactionID: "c1", Turn: &st.Turn})
		return err
	})
	if err != nil {
		return claimed, false, err
	}
	close(h.begun)
	select {} // it does not look at ctx
}

func TestABracketThatWasLeftBehindIsEndedWithItsTurn(t *testing.T) {
	live := newLive(t, ownHeader(), outcrop.Options{})
	h := stuckCompaction{make(chan struct{})}
	a := start(t, live, scripted(t, `{"text":"one"}`), func(o *agent.Options) {
		o.Hooks.PreStep = []agent.PreStepDecider{h}
		o.Limits.Grace = 1 // nanosecond
	})
	defer stop(t, a)
	send(t, a, "prompt")
	<-h.begun
	if _, err := a.Cancel(background, agent.Cause{Kind: agent.ByUser}); err != nil {
		t.Fatal(err)
	}
	wait(t, a)
	var types []outcrop.Type
	for ev := range outcrop.Events(live.Session().Log(), 0) {
		types = append(types, ev.Type)
	}
	n := len(types)
	if n < 2 || types[n-1] != outcrop.TypeTurnEnd || types[n-2] != outcrop.TypeCompactionEnd {
		t.Errorf("the log ends with %v", types)
	}
	check(t, live.Session().Log())
}

func TestWhatASummariserCostsCounts(t *testing.T) {
	live := newLive(t, ownHeader(), outcrop.Options{})
	var name string
	a := start(t, live, scripted(t, `{"text":"one"}`), func(o *agent.Options) {
		o.Limits.CostMicroUSD, o.Price = 1000, &llm.Price{Input: 1_000_000}
		name = o.Provider.Name() + ":" + o.Config.Model
	})
	defer stop(t, a)
	err := a.Operate(background, func(ctx context.Context, op agent.Operation) error {
		return op.Edit(ctx, func(s *outcrop.Session) error {
			_, err := s.AppendRaw(outcrop.Event{Type: history.TypeSummarizerUsage, Ignorable: true, Data: fmt.Appendf(nil,
				`{"purpose":"compaction","call":1,"model":"%s","outcome":"unused","usage":{"inputTokens":1000,"outputTokens":5}}`, name)})
			return err
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	if out := ask(t, a, "prompt"); out.Reason.Kind != outcrop.TurnAborted || out.Reason.Abort.Reason != "cost limit $0.001 reached" {
		t.Errorf("%+v", out)
	}
}
