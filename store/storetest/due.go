package storetest

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/message"
	"github.com/outcrop-dev/outcrop/store"
)

// whatIsDue compares what a store says without reading a log with what the log
// says, while the log grows, after it was opened again, and after a fork.
func whatIsDue(t *testing.T, p Place) {
	st := p.Open()
	l := create(t, st, "s1")
	n := 0
	put := func(target outcrop.InboxTarget) {
		t.Helper()
		n++
		m := message.Message{ID: fmt.Sprintf("i%d", n), Role: message.User, Source: message.FromUser, Content: []message.Block{message.Text("x")}}
		_, err := l.Session().Append(outcrop.InboxSpliced{Target: target, Inserted: []message.Message{m}})
		ok(t, err)
	}
	agree := func(when, id string, want store.Due) {
		t.Helper()
		ignored := cmpopts.IgnoreUnexported(store.Due{})
		read, err := store.DueOf(bg, unlooked{p.Open()}, id)
		ok(t, err)
		if d := cmp.Diff(&want, read, ignored); d != "" {
			t.Fatalf("%s, the log (-want +got):\n%s", when, d)
		}
		infos, err := p.Open().List(bg, store.ListOptions{})
		ok(t, err)
		for _, in := range infos {
			if d := cmp.Diff(&want, in.Due, ignored); in.ID == id && in.Due != nil && d != "" {
				t.Fatalf("%s, the listing (-want +got):\n%s", when, d)
			}
		}
		if looker, is := p.Open().(store.Looker); is {
			in, err := looker.Look(bg, id)
			ok(t, err)
			if d := cmp.Diff(&want, in.Due, ignored); in.Due != nil && d != "" {
				t.Fatalf("%s, the look (-want +got):\n%s", when, d)
			}
		}
	}
	put(outcrop.NextTurn)
	put(outcrop.NextStep)
	ok(t, l.Flush(bg))
	agree("input waits", "s1", store.Due{NextStep: 1, NextTurn: 1})
	_, err := l.Session().Append(outcrop.InboxSpliced{Target: outcrop.NextTurn, RemovedCount: 1})
	ok(t, err)
	ok(t, StartTurn(l.Session(), 1))
	ok(t, l.Flush(bg))
	agree("a turn runs", "s1", store.Due{NextStep: 1, Open: true, Cut: true})
	ok(t, l.Close(bg))
	l = reopen(t, p.Open(), "s1")
	ok(t, l.Flush(bg))
	agree("repair has closed the turn", "s1", store.Due{NextStep: 1, Cut: true, Cuts: 1})
	put(outcrop.NextTurn)
	ok(t, l.Close(bg))
	agree("a person sent something", "s1", store.Due{NextStep: 1, NextTurn: 1, Cut: true})
	_, err = store.ForkAt(bg, p.Open(), "s1", -1, store.Child{ID: "child", CreatedAt: 1_700_000_000_000})
	ok(t, err)
	agree("a fork", "child", store.Due{})
}

// unlooked is a store of which only the logs are known.
type unlooked struct{ store.Store }
