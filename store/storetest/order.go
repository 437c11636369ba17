package storetest

import (
	"context"
	"fmt"
	"iter"
	"testing"

	"pgregory.net/rapid"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/store"
)

// Put is store.Store's, under the other id.
func (r renamed) Put(ctx context.Context, h outcrop.Header, recs iter.Seq2[outcrop.Record, error]) error {
	h, err := outcrop.ParseHeader(fmt.Appendf(nil, `{"type":"session","version":0,"id":%q,"createdAt":%d,"cwd":%q,"delegationDepth":0,"outcrop":1}`, r.id, h.CreatedAt, *h.Cwd))
	if err != nil {
		return err
	}
	return r.Store.Put(ctx, h, recs)
}

// anyOrder runs random operations on a session in the store and the same ones
// on a session that is never stored, and compares the two.
func anyOrder(t *testing.T, p Place) {
	run := 0
	rapid.Check(t, func(rt *rapid.T) {
		run++
		id := fmt.Sprint("s", run)
		now := clock()
		o := store.Options{Session: outcrop.Options{Now: now}}
		l, err := store.Create(bg, p.Open(), Header(id), o)
		if err != nil {
			rt.Fatal(err)
		}
		defer func() { l.Close(bg) }()
		var model []string // the events that must be stored
		turn, open := 0, false
		learn := func() {
			for e := range outcrop.Events(l.Session().Log(), outcrop.Seq(len(model))) {
				model = append(model, string(e.AppendJSON(nil)))
			}
		}
		check := func() {
			s, tail, err := store.Inspect(bg, p.Open(), id, outcrop.Options{})
			if err != nil || tail.Torn {
				rt.Fatalf("%v, %+v", err, tail)
			}
			got := viewOf(s).Events
			if len(got) != len(model) {
				rt.Fatalf("%d events are stored, want %d", len(got), len(model))
			}
			for i := range got {
				if got[i] != model[i] {
					rt.Fatalf("event %d is\n%s\nwant\n%s", i, got[i], model[i])
				}
			}
		}
		steps := rapid.IntRange(1, 12).Draw(rt, "steps")
		for range steps {
			var err error
			switch rapid.SampledFrom([]string{"turn", "start", "end", "flush", "group", "reopen"}).Draw(rt, "do") {
			case "turn":
				if !open {
					turn++
					err = Turn(l.Session(), turn)
				}
			case "start":
				if !open {
					turn++
					err, open = StartTurn(l.Session(), turn), true
				}
			case "end":
				if open {
					err, open = EndTurn(l.Session(), turn), false
				}
			case "group":
				_, err = l.Session().AppendAll(outcrop.LogCandidate(outcrop.TodoWrite{}), outcrop.LogCandidate(outcrop.TodoWrite{}))
			case "flush":
				if err = l.Flush(bg); err == nil && l.Session().Len() > 0 {
					learn()
					check()
				}
			case "reopen":
				if err = l.Close(bg); err != nil {
					break
				}
				if learn(); len(model) == 0 {
					l, err = store.Create(bg, p.Open(), Header(id), o)
					break
				}
				check()
				l, err = store.Open(bg, p.Open(), id, o)
				open = false
			}
			if err != nil {
				rt.Fatal(err)
			}
		}
		if err := l.Close(bg); err != nil {
			rt.Fatal(err)
		}
		if learn(); len(model) > 0 {
			check()
		}
	})
}
