package storetest

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/store"
)

func brokenNeighbour(t *testing.T, p Place) {
	if p.Break == nil {
		t.Log("nothing can be broken in this store")
		return
	}
	for _, id := range []string{"a", "b", "c"} {
		l := create(t, p.Open(), id)
		ok(t, Turn(l.Session(), 1))
		ok(t, l.Close(bg))
	}
	p.Break("b")
	for _, full := range []bool{false, true} {
		infos, err := p.Open().List(bg, store.ListOptions{Full: full})
		ok(t, err)
		got := map[string]store.State{}
		for _, in := range infos {
			got[in.ID] = in.State
			if (in.State == store.StateDamaged) != (in.Reason != "") {
				t.Fatalf("state and reason do not fit: %+v", in)
			}
		}
		want := map[string]store.State{"a": store.StateOK, "b": store.StateDamaged, "c": store.StateOK}
		if d := cmp.Diff(want, got); d != "" {
			t.Fatalf("full %v (-want +got):\n%s", full, d)
		}
	}
	if _, err := store.Open(bg, p.Open(), "b", options()); err == nil {
		t.Fatal("the broken session was opened")
	}
	ok(t, reopen(t, p.Open(), "a").Close(bg))
	if id, err := store.Resolve(bg, p.Open(), "b"); err != nil || id != "b" {
		t.Fatalf("the broken session cannot be named: %q, %v", id, err)
	}
}

func listing(t *testing.T, p Place) {
	// Later ones have later events.
	now := clock()
	st := p.Open()
	for i, id := range []string{"old", "middle", "new"} {
		h := Header(id)
		h.CreatedAt = now()
		l, err := store.Create(bg, st, h, store.Options{Session: outcrop.Options{Now: now}})
		ok(t, err)
		for turn := range i + 1 {
			ok(t, Turn(l.Session(), turn+1))
		}
		if id == "middle" {
			_, err := l.Session().Append(outcrop.SessionTitle{Title: "the middle one"})
			ok(t, err)
		}
		ok(t, l.Close(bg))
	}
	infos, err := p.Open().List(bg, store.ListOptions{Full: true})
	ok(t, err)
	type line struct {
		ID, Title, Cwd string
		Events         int64
		Turns          int
		State          store.State
	}
	var got []line
	for _, in := range infos {
		got = append(got, line{in.ID, in.Title, in.Cwd, in.Events, in.Turns, in.State})
		if in.Header.ID != in.ID || in.CreatedAt != in.Header.CreatedAt || in.UpdatedAt <= in.CreatedAt || in.Bytes <= 0 {
			t.Errorf("%s: %+v", in.ID, in)
		}
	}
	const each = 15 // events a turn
	want := []line{
		{"new", "prompt 1: näher \u2028 日", "/home/dev/project", 3 * each, 3, store.StateOK},
		{"middle", "the middle one", "/home/dev/project", 2*each + 1, 2, store.StateOK},
		{"old", "prompt 1: näher \u2028 日", "/home/dev/project", each, 1, store.StateOK},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Fatalf("list (-want +got):\n%s", d)
	}
	quick, err := p.Open().List(bg, store.ListOptions{})
	ok(t, err)
	for i, in := range quick {
		if in.ID != infos[i].ID || in.UpdatedAt != infos[i].UpdatedAt || in.State != infos[i].State {
			t.Errorf("the quick list has %+v where the full one has %+v", in, infos[i])
		}
		if in.Events != infos[i].Events && in.Events != -1 {
			t.Errorf("the quick list says %d events, want %d or -1", in.Events, infos[i].Events)
		}
	}
}

func resolving(t *testing.T, p Place) {
	st := p.Open()
	_, err := store.Resolve(bg, st, store.Last)
	wantErr(t, err, outcrop.ErrNotFound)
	now := clock()
	for _, h := range []outcrop.Header{{ID: "4f2a9c"}, {ID: "4f2b00"}, {ID: "9"}, {ID: "99"}, {ID: "sub", Origin: "subagent"}} {
		h.Outcrop, h.CreatedAt = 1, now()
		l, err := store.Create(bg, st, h, store.Options{Session: outcrop.Options{Now: now}})
		ok(t, err)
		ok(t, Turn(l.Session(), 1))
		ok(t, l.Close(bg))
	}
	for _, c := range []struct {
		target, id string
		want       error
	}{
		{"4f2a9c", "4f2a9c", nil},
		{"4f2a", "4f2a9c", nil},
		{"9", "9", nil}, // an id wins over the start of another one
		{"4f2", "", store.ErrAmbiguous},
		{"x", "", outcrop.ErrNotFound},
		{"", "", outcrop.ErrNotFound},
		{store.Last, "99", nil}, // not the subagent's
		{"sub", "sub", nil},
	} {
		id, err := store.Resolve(bg, st, c.target)
		if id != c.id || c.want == nil && err != nil {
			t.Errorf("%q is %q, %v; want %q", c.target, id, err, c.id)
		}
		if c.want != nil {
			wantErr(t, err, c.want)
		}
	}
}
