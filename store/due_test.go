package store_test

import (
	"testing"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/message"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/memory"
	"github.com/outcrop-dev/outcrop/store/storetest"
)

func dueMessage(id string) message.Message {
	return message.Message{ID: id, Role: message.User, Source: message.FromUser, Content: []message.Block{message.Text("go")}}
}

// dueLog makes a log and folds it as it grows.
func dueLog(t *testing.T, h outcrop.Header, candidates ...outcrop.Candidate) *store.Due {
	t.Helper()
	s, err := outcrop.New(h, outcrop.Options{})
	if err != nil {
		t.Fatal(err)
	}
	d := store.NewDue(h)
	s.Observe(func(ev outcrop.Event) { d.Add(outcrop.Record{Event: ev}) })
	for _, c := range candidates {
		if _, err := s.AppendAll(c); err != nil {
			t.Fatal(err)
		}
	}
	return d
}

func TestWhatIsLeftToBeDone(t *testing.T) {
	insert := func(target outcrop.InboxTarget, at int, id string) outcrop.Candidate {
		return outcrop.LogCandidate(outcrop.InboxSpliced{Target: target, Start: at, Inserted: []message.Message{dueMessage(id)}})
	}
	start := outcrop.LogCandidate(outcrop.TurnStart{Turn: 1})
	step := outcrop.LogCandidate(outcrop.StepStart{Turn: 1, Step: 1})
	claim := outcrop.LogCandidate(outcrop.InboxSpliced{Target: outcrop.NextTurn, RemovedCount: 1})
	user := outcrop.SurfaceCandidate(outcrop.UserMessage{Message: dueMessage("a")}, outcrop.Tail, outcrop.NoSources)
	reply := func(blocks ...message.Block) outcrop.Candidate {
		return outcrop.SurfaceCandidate(outcrop.AssistantMessage{Turn: 1, Step: 1, Message: message.Message{
			ID: "r", Role: message.Assistant, Source: message.FromModel("p", "m"), Content: blocks}}, outcrop.Tail, outcrop.SourcesOf())
	}
	ended := func(kind outcrop.ReasonKind) outcrop.Candidate {
		return outcrop.LogCandidate(outcrop.TurnEnd{Turn: 1, Reason: outcrop.TurnReason{Kind: kind}})
	}
	seeded := storetest.Header("s")
	three := int64(3)
	seeded.SeedLength = &three
	for _, c := range []struct {
		name string
		h    outcrop.Header
		log  []outcrop.Candidate
		want [4]any
	}{
		{"nothing", storetest.Header("s"), nil, [4]any{0, false, false, 0}},
		{"input waits", storetest.Header("s"), []outcrop.Candidate{insert(outcrop.NextTurn, 0, "a"), insert(outcrop.NextStep, 0, "b")}, [4]any{2, false, false, 0}},
		{"input was taken, and no reply is there", storetest.Header("s"), []outcrop.Candidate{insert(outcrop.NextTurn, 0, "a"), start, claim, step, user}, [4]any{0, true, true, 0}},
		{"a reply asks for a tool", storetest.Header("s"), []outcrop.Candidate{start, step, user, reply(message.ToolCall("c", "read", "{}"))}, [4]any{0, true, true, 0}},
		{"the reply is there, only the end is missing", storetest.Header("s"), []outcrop.Candidate{start, step, user, reply(message.Text("x"))}, [4]any{0, true, false, 0}},
		{"all is done", storetest.Header("s"), []outcrop.Candidate{start, step, user, reply(message.Text("x")), ended(outcrop.Completed)}, [4]any{0, false, false, 0}},
		{"a turn failed", storetest.Header("s"), []outcrop.Candidate{start, step, user, ended(outcrop.TurnError)}, [4]any{0, false, false, 0}},
		{"a turn was cut, and repair has closed it", storetest.Header("s"), []outcrop.Candidate{start, step, user, ended(outcrop.TurnInterrupted)}, [4]any{0, false, true, 1}},
		{"a turn was stopped so that another goes on", storetest.Header("s"), []outcrop.Candidate{start, step, user, outcrop.LogCandidate(outcrop.TurnEnd{Turn: 1,
			Reason: outcrop.TurnReason{Kind: outcrop.TurnAborted, Abort: outcrop.AbortReason{Kind: "hook", Reason: store.HandedOver}}})}, [4]any{0, false, true, 0}},
		{"it was cut behind its answer", storetest.Header("s"), []outcrop.Candidate{start, step, user, reply(message.Text("x")), ended(outcrop.TurnInterrupted)}, [4]any{0, false, false, 1}},
		{"it was cut before its input entered", storetest.Header("s"), []outcrop.Candidate{insert(outcrop.NextTurn, 0, "a"), start, ended(outcrop.TurnInterrupted)}, [4]any{1, false, false, 1}},
		{"what a parent had waiting is not counted", seeded, []outcrop.Candidate{insert(outcrop.NextTurn, 0, "a"), start, user, insert(outcrop.NextTurn, 0, "b")}, [4]any{1, false, false, 0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := dueLog(t, c.h, c.log...)
			if got := [4]any{d.Pending(), d.Open, d.Cut, d.Cuts}; got != c.want {
				t.Errorf("pending, open, cut, cuts: got %v, want %v", got, c.want)
			}
		})
	}
}

func TestASessionThatWasTakenOverIsNotHeldAnyMore(t *testing.T) {
	ctx := t.Context()
	st := memory.New()
	a, err := store.Create(ctx, st, storetest.Header("s"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	put := func(l *store.Live) error {
		if _, err := l.Session().Append(outcrop.SessionTitle{Title: "x"}); err != nil {
			return err
		}
		return l.Flush(ctx)
	}
	if err := put(a); err != nil || a.Held(ctx) != nil || a.Epoch() != 1 {
		t.Fatalf("%v, %v, epoch %d", err, a.Held(ctx), a.Epoch())
	}
	b, err := store.TakeOver(ctx, st, "s", store.Options{})
	if err != nil || b.Epoch() != 2 {
		t.Fatal(err)
	}
	<-a.Lost()
	if a.Held(ctx) == nil || b.Held(ctx) != nil {
		t.Errorf("the first holder: %v; the second: %v", a.Held(ctx), b.Held(ctx))
	}
	if err := put(a); err == nil {
		t.Error("the first holder still writes")
	}
	n := b.Session().Len()
	if err := put(b); err != nil || b.Session().Len() != n+1 {
		t.Error(err)
	}
	if err := b.Close(ctx); err != nil {
		t.Error(err)
	}
}
