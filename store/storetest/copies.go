package storetest

import (
	"errors"
	"fmt"
	"iter"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/store"
)

// parent stores a session of two turns, with events between them, and an open
// third one.
func parent(t *testing.T, p Place) *outcrop.Session {
	l := create(t, p.Open(), "parent")
	s := l.Session()
	for turn := 1; turn <= 2; turn++ {
		ok(t, Turn(s, turn))
		_, err := s.Append(outcrop.TodoWrite{})
		ok(t, err)
		ok(t, l.Flush(bg))
	}
	ok(t, Turn(s, 3))
	// The third turn goes on after its step and is not closed.
	ok(t, StartTurn(s, 4))
	a := appender{s: s}
	r := outcrop.NewToolResult(4, 1, "call_4", false)
	a.surface(r, outcrop.Tail, outcrop.SourcesOf(outcrop.Seq(s.Len()-1)))
	a.log(outcrop.StepEnd{Turn: 4, Step: 1})
	a.log(outcrop.StepStart{Turn: 4, Step: 2})
	ok(t, a.err)
	ok(t, l.Close(bg))
	return s
}

const childTime = 1_800_000_000_000

func child(id string) store.Child { return store.Child{ID: id, CreatedAt: childTime} }

// find is the seq of the nth event of a type.
func find(s *outcrop.Session, typ outcrop.Type, nth int) outcrop.Seq {
	for e := range outcrop.Events(s.Log(), 0) {
		if e.Type == typ {
			if nth--; nth == 0 {
				return e.Seq
			}
		}
	}
	return -1
}

// wantChild checks a child: the prefix of its parent, the types that follow,
// its header, and that it can be continued.
func wantChild(t *testing.T, p Place, s *outcrop.Session, id string, boundary outcrop.Seq, then ...string) {
	t.Helper()
	c := stored(t, p.Open(), id)
	want := viewOf(s).Events[:boundary+1]
	got := viewOf(c).Events
	if len(got) < len(want) {
		t.Fatalf("the child has %d events, want %d and more", len(got), len(want))
	}
	if d := cmp.Diff(want, got[:len(want)]); d != "" {
		t.Fatalf("the child's prefix (-parent +child):\n%s", d)
	}
	if d := cmp.Diff(then, types(c.Log(), boundary+1)); d != "" {
		t.Fatalf("behind the prefix (-want +got):\n%s", d)
	}
	h := c.Header()
	if h.ID != id || h.CreatedAt != childTime || h.ParentSession == nil || *h.ParentSession != s.ID() ||
		h.SeedLength == nil || *h.SeedLength != int64(boundary+1) || h.Outcrop != s.Header().Outcrop || *h.Cwd != *s.Header().Cwd {
		t.Fatalf("the child's header: %s", h.Line())
	}
	l := reopen(t, p.Open(), id)
	if int(l.Session().Stored()) != c.Len() || l.Session().Len() != c.Len() {
		t.Fatalf("opening the child added %v", types(l.Session().Log(), l.Session().Stored()))
	}
	ok(t, Turn(l.Session(), 9))
	ok(t, l.Close(bg))
}

func forking(t *testing.T, p Place) {
	s := parent(t, p)
	n := 0
	for _, at := range []outcrop.Seq{find(s, outcrop.TypeTurnEnd, 1), find(s, outcrop.TypeTodoWrite, 1), find(s, outcrop.TypeTurnEnd, 3)} {
		n++
		id := fmt.Sprint("child-", n)
		h, err := store.Fork(bg, p.Open(), "parent", at, child(id))
		ok(t, err)
		if h.ID != id {
			t.Fatalf("the header returned is %s", h.Line())
		}
		wantChild(t, p, s, id, at, "session/end-seed")
	}
	// The whole log: of a child, which ends in no open turn.
	_, err := store.Fork(bg, p.Open(), "child-1", -1, child("grandchild"))
	ok(t, err)
	c := stored(t, p.Open(), "child-1")
	wantChild(t, p, c, "grandchild", outcrop.Seq(c.Len()-1), "session/end-seed")
	// A prefix that ends with an end-seed needs no other one.
	at := find(c, outcrop.TypeEndSeed, 1)
	_, err = store.Fork(bg, p.Open(), "child-1", at, child("at-the-seed"))
	ok(t, err)
	wantChild(t, p, c, "at-the-seed", at)
}

func forkRefused(t *testing.T, p Place) {
	s := parent(t, p)
	before, err := p.Open().List(bg, store.ListOptions{})
	ok(t, err)
	for _, c := range []struct {
		name, parent, child string
		at                  outcrop.Seq
		code                outcrop.Code
		want                error
	}{
		{"the child's id is looked at first", "missing", "parent", 0, outcrop.CodeSessionExists, store.ErrExists},
		{"an unknown parent", "missing", "c", 0, outcrop.CodeSessionNotFound, outcrop.ErrNotFound},
		{"a seq behind the end", "parent", "c", outcrop.Seq(s.Len()), outcrop.CodeInvalidBoundary, outcrop.ErrRefused},
		{"the first event of a turn", "parent", "c", 0, outcrop.CodeOpenTurn, outcrop.ErrRefused},
		{"the middle of a run of chunks", "parent", "c", find(s, outcrop.TypeAssistantChunk, 3), outcrop.CodeOpenTurn, outcrop.ErrRefused},
		{"a step's end", "parent", "c", find(s, outcrop.TypeStepEnd, 2), outcrop.CodeOpenTurn, outcrop.ErrRefused},
		{"the end of a log with an open turn", "parent", "c", -1, outcrop.CodeOpenTurn, outcrop.ErrRefused},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := store.Fork(bg, p.Open(), c.parent, c.at, child(c.child))
			if outcrop.CodeOf(err) != c.code || !errors.Is(err, c.want) {
				t.Fatalf("got %v, want code %s", err, c.code)
			}
		})
	}
	after, err := p.Open().List(bg, store.ListOptions{})
	ok(t, err)
	if len(after) != len(before) {
		t.Fatalf("refused forks left sessions: %v", after)
	}
}

func forkAt(t *testing.T, p Place) {
	s := parent(t, p)
	for _, c := range []struct {
		name     string
		at       outcrop.Seq
		boundary outcrop.Seq
		turn     int
		closed   bool
	}{
		{"between turns it is the prefix", find(s, outcrop.TypeTodoWrite, 1), find(s, outcrop.TypeTodoWrite, 1), 0, false},
		{"at a step/end the turn is closed behind it", find(s, outcrop.TypeStepEnd, 2), find(s, outcrop.TypeStepEnd, 2), 2, true},
		{"behind a step/end it goes back to it", outcrop.Seq(s.Len() - 1), find(s, outcrop.TypeStepEnd, 4), 4, true},
		{"a negative seq is the end of the log", -1, find(s, outcrop.TypeStepEnd, 4), 4, true},
		{"inside a first step the turn is left out", find(s, outcrop.TypeToolCall, 2), find(s, outcrop.TypeTurnStart, 2) - 1, 2, false},
		{"at a user message the turn is left out", find(s, outcrop.TypeUserMessage, 3), find(s, outcrop.TypeTurnStart, 3) - 1, 3, false},
		{"in the first turn nothing is left", find(s, outcrop.TypeAssistantChunk, 2), -1, 1, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			id := fmt.Sprint("child-", c.at)
			cut, err := store.ForkAt(bg, p.Open(), "parent", c.at, child(id))
			ok(t, err)
			if cut.Boundary != c.boundary || cut.Turn != c.turn || cut.Closed != c.closed || cut.Header.ID != id {
				t.Fatalf("cut %+v, want boundary %d, turn %d, closed %v", cut, c.boundary, c.turn, c.closed)
			}
			then := []string{"session/end-seed"}
			if c.closed {
				then = []string{"turn/end", "session/end-seed"}
			}
			wantChild(t, p, s, id, c.boundary, then...)
			// The rule is the root package's.
			at := c.at
			if at < 0 {
				at = outcrop.Seq(s.Len() - 1)
			}
			if length, interrupted := outcrop.ForkPoint(s.Log(), at); length != c.boundary+1 || interrupted != c.closed {
				t.Fatalf("ForkPoint says %d, %v", length, interrupted)
			}
		})
	}
	if _, err := store.ForkAt(bg, p.Open(), "parent", outcrop.Seq(s.Len()), child("x")); outcrop.CodeOf(err) != outcrop.CodeInvalidBoundary {
		t.Fatalf("behind the end: %v", err)
	}
}

func records(s *outcrop.Session, then error) iter.Seq2[outcrop.Record, error] {
	return func(yield func(outcrop.Record, error) bool) {
		for r := range s.Log().Records(0) {
			if !yield(r, nil) {
				return
			}
		}
		if then != nil {
			yield(outcrop.Record{}, then)
		}
	}
}

func putAllOrNothing(t *testing.T, p Place) {
	s := parent(t, p)
	st := p.Open()
	wantErr(t, st.Put(bg, Header("half"), records(s, errFull)), errFull)
	_, err := p.Open().Read(bg, "half")
	wantErr(t, err, outcrop.ErrNotFound)
	infos, err := p.Open().List(bg, store.ListOptions{})
	ok(t, err)
	if len(infos) != 1 {
		t.Fatalf("a put that did not succeed left %v", infos)
	}
	wantErr(t, st.Put(bg, s.Header(), records(s, nil)), store.ErrExists)
	ok(t, st.Put(bg, Header("half"), records(s, nil)))
	if got, want := viewOf(stored(t, p.Open(), "half")).Digest, viewOf(s).Digest; got != want {
		t.Fatalf("digest %s, want %s", got, want)
	}
	reopen(t, p.Open(), "half") // nobody holds it
	if p.Fail == nil {
		return
	}
	p.Fail("append", errFull)
	wantErr(t, p.Open().Put(bg, Header("full"), records(s, nil)), errFull)
	p.Fail("append", nil)
	_, err = p.Open().Read(bg, "full")
	wantErr(t, err, outcrop.ErrNotFound)
}

func copying(t *testing.T, p Place) {
	s := parent(t, p)
	src := p.Open()
	for _, err := range []error{
		store.Copy(bg, src, src, "parent"), // into itself
	} {
		wantErr(t, err, store.ErrExists)
	}
	dst := renamed{p.Open(), "copy"}
	ok(t, store.Copy(bg, dst, src, "parent"))
	got := viewOf(stored(t, p.Open(), "copy"))
	want := viewOf(s)
	got.Header = want.Header
	if d := cmp.Diff(want, got); d != "" {
		t.Fatalf("the copy (-want +got):\n%s", d)
	}
	wantErr(t, store.Copy(bg, dst, src, "missing"), outcrop.ErrNotFound)
}

// renamed is a store that puts every session under one id.
type renamed struct {
	store.Store
	id string
}
