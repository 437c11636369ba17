package storetest

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/store"
)

func follow(t *testing.T, st store.Store, id string) store.Following {
	t.Helper()
	fs, can := st.(store.Follower)
	if !can {
		t.Fatalf("%s cannot be followed", st.Address())
	}
	f, err := fs.Follow(bg, id)
	ok(t, err)
	t.Cleanup(func() { f.Close() })
	return f
}

// news is what came since the last time, one line an event.
func news(t *testing.T, f store.Following) (events []string) {
	t.Helper()
	for r, err := range f.Next(bg) {
		ok(t, err)
		for e := range r.Events() {
			events = append(events, string(e.AppendJSON(nil)))
		}
	}
	return events
}

func following(t *testing.T, p Place) {
	fs, can := p.Open().(store.Follower)
	if !can {
		t.Fatal("the store cannot be followed")
	}
	_, err := fs.Follow(bg, "s1")
	wantErr(t, err, outcrop.ErrNotFound)

	l := create(t, p.Open(), "s1")
	ok(t, Turn(l.Session(), 1))
	ok(t, l.Flush(bg))
	f := follow(t, p.Open(), "s1")
	if got, want := string(f.Header().Line()), string(l.Session().Header().Line()); got != want {
		t.Fatalf("the header is %s, want %s", got, want)
	}
	seen := 0
	next := func(what string) {
		t.Helper()
		want := viewOf(l.Session()).Events
		if d := cmp.Diff(want[seen:], append([]string{}, news(t, f)...)); d != "" {
			t.Fatalf("%s (-want +got):\n%s", what, d)
		}
		seen = len(want)
	}
	next("what is there")
	next("nothing new")
	for turn := 2; turn <= 5; turn++ {
		ok(t, StartTurn(l.Session(), turn))
		ok(t, l.Flush(bg))
		next("an open turn")
		ok(t, EndTurn(l.Session(), turn))
		ok(t, l.Flush(bg))
		next("its end")
	}
	// A closed session, and one that is gone on with.
	ok(t, StartTurn(l.Session(), 6))
	ok(t, l.Close(bg))
	next("the last events")
	l = reopen(t, p.Open(), "s1")
	ok(t, Turn(l.Session(), 7))
	ok(t, l.Flush(bg))
	next("the next writer's")
	next("nothing new")

	// Who stops early goes on there.
	f = follow(t, p.Open(), "s1")
	var events []string
	for len(events) < len(viewOf(l.Session()).Events) {
		before := len(events)
		for r, err := range f.Next(bg) {
			ok(t, err)
			for e := range r.Events() {
				events = append(events, string(e.AppendJSON(nil)))
			}
			break
		}
		if len(events) == before {
			t.Fatalf("after %d events nothing comes", before)
		}
	}
	if d := cmp.Diff(viewOf(l.Session()).Events, events); d != "" {
		t.Fatalf("one record at a time (-want +got):\n%s", d)
	}
	ctx, cancel := context.WithCancel(bg)
	cancel()
	for _, err := range f.Next(ctx) {
		wantErr(t, err, context.Canceled)
	}
}

func followingTorn(t *testing.T, p Place) {
	if p.Tear == nil {
		return
	}
	l := create(t, p.Open(), "s1")
	ok(t, Turn(l.Session(), 1))
	ok(t, l.Flush(bg))
	f := follow(t, p.Open(), "s1")
	want := viewOf(l.Session()).Events
	if d := cmp.Diff(want, news(t, f)); d != "" {
		t.Fatalf("what is there (-want +got):\n%s", d)
	}
	ok(t, StartTurn(l.Session(), 2))
	ok(t, l.Close(bg))
	p.Tear("s1", 3)
	// Whole records before the torn one may be seen, in order.
	torn := append(want, news(t, f)...)
	if all := viewOf(l.Session()).Events; len(torn) >= len(all) || cmp.Diff(all[:len(torn)], torn) != "" {
		t.Fatalf("of a torn tail came %d events of %d", len(torn), len(all))
	}
	if more := news(t, f); more != nil {
		t.Fatalf("of a torn tail came more: %v", more)
	}
	// The next writer cuts it off and goes on.
	l = reopen(t, p.Open(), "s1")
	ok(t, Turn(l.Session(), 3))
	ok(t, l.Close(bg))
	if d := cmp.Diff(viewOf(l.Session()).Events, append(torn, news(t, f)...)); d != "" {
		t.Fatalf("behind the cut (-want +got):\n%s", d)
	}
}
