package storetest

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/store"
)

func groupsStayWhole(t *testing.T, p Place) {
	st := &counting{Store: p.Open()}
	l := create(t, st, "s1")
	const size, groups = 5, 40
	stop := make(chan struct{})
	var flusher sync.WaitGroup
	flusher.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				if err := l.Flush(bg); err != nil {
					t.Error(err)
					return
				}
			}
		}
	})
	for range groups {
		group := make([]outcrop.Candidate, size)
		for i := range group {
			group[i] = outcrop.LogCandidate(outcrop.TodoWrite{})
		}
		_, err := l.Session().AppendAll(group...)
		ok(t, err)
	}
	close(stop)
	flusher.Wait()
	ok(t, l.Close(bg))
	if n := len(st.ends); n == 0 || st.ends[n-1] != groups*size {
		t.Fatalf("batches end at %v", st.ends)
	}
	for _, end := range st.ends {
		if end%size != 0 {
			t.Fatalf("a batch ends at event %d, inside a group: %v", end, st.ends)
		}
	}
}

func flushesShareWrites(t *testing.T, p Place) {
	st := &counting{Store: p.Open()}
	l := create(t, st, "s1")
	ok(t, Turn(l.Session(), 1))
	const callers = 64
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			if err := l.Flush(bg); err != nil {
				t.Error(err)
			}
			if got, want := int(l.Durable()), l.Session().Len(); got != want {
				t.Errorf("a flush returned with %d of %d events durable", got, want)
			}
		})
	}
	all.Wait()
	if n := st.batch.Load(); n != 1 {
		t.Fatalf("%d flushes of the same events made %d batches, want 1", callers, n)
	}
}

func cancelledFlush(t *testing.T, p Place) {
	l := create(t, p.Open(), "s1")
	ok(t, Turn(l.Session(), 1))
	ctx, cancel := context.WithCancel(bg)
	cancel()
	// The write goes on; either answer is right, and neither hangs.
	if err := l.Flush(ctx); err != nil && !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	ok(t, l.Flush(bg))
	same(t, "the stored session", stored(t, p.Open(), "s1"), l.Session())
}

func closedTakesNothing(t *testing.T, p Place) {
	l := create(t, p.Open(), "s1")
	ok(t, Turn(l.Session(), 1))
	ok(t, l.Close(bg))
	ok(t, l.Close(bg))
	ok(t, l.Flush(bg)) // all is durable
	n := l.Session().Len()
	_, err := l.Session().Append(outcrop.TurnStart{Turn: 2})
	wantErr(t, err, outcrop.ErrVetoed)
	if l.Session().Len() != n {
		t.Fatal("a vetoed append left an event")
	}
	same(t, "the stored session", stored(t, p.Open(), "s1"), l.Session())
}

var errFull = errors.New("no space, says the test")

func failedWrite(t *testing.T, p Place) {
	if p.Fail == nil {
		t.Log("this store cannot be made to fail")
		return
	}
	l := create(t, p.Open(), "s1")
	ok(t, Turn(l.Session(), 1))
	ok(t, l.Flush(bg))
	n := l.Durable()
	want := viewOf(l.Session())

	p.Fail("append", errFull)
	ok(t, Turn(l.Session(), 2))
	for range 3 {
		wantErr(t, l.Flush(bg), errFull)
		wantErr(t, l.Err(), errFull)
		if l.Durable() != n {
			t.Fatalf("%d events are durable, want %d", l.Durable(), n)
		}
		if got := viewOf(stored(t, p.Open(), "s1")); got.Digest != want.Digest {
			t.Fatalf("a failed write changed the stored log")
		}
	}
	// The session goes on; its events wait.
	ok(t, Turn(l.Session(), 3))
	p.Fail("append", nil)
	ok(t, l.Flush(bg))
	ok(t, l.Err())
	same(t, "the stored session", stored(t, p.Open(), "s1"), l.Session())
	ok(t, l.Close(bg))
	if got, want := int(reopen(t, p.Open(), "s1").Session().Stored()), l.Session().Len(); got != want {
		t.Fatalf("%d events are stored, want %d", got, want)
	}
}

func failedSync(t *testing.T, p Place) {
	if p.Fail == nil {
		t.Log("this store cannot be made to fail")
		return
	}
	l := create(t, p.Open(), "s1")
	ok(t, Turn(l.Session(), 1))
	ok(t, l.Flush(bg))
	n := l.Durable()
	p.Fail("sync", errFull)
	ok(t, Turn(l.Session(), 2))
	wantErr(t, l.Flush(bg), store.ErrSync, errFull)
	p.Fail("sync", nil)
	wantErr(t, l.Flush(bg), store.ErrSync) // for good
	wantErr(t, l.Err(), store.ErrSync)
	if l.Durable() != n {
		t.Fatalf("%d events are durable, want %d", l.Durable(), n)
	}
	size := l.Session().Len()
	_, err := l.Session().Append(outcrop.TurnStart{Turn: 3})
	wantErr(t, err, outcrop.ErrVetoed, store.ErrSync)
	if l.Session().Len() != size {
		t.Fatal("a vetoed append left an event")
	}
	wantErr(t, l.Close(bg), store.ErrSync)
	// What was acknowledged is there, and another opening can go on.
	again := reopen(t, p.Open(), "s1")
	if again.Session().Stored() < n {
		t.Fatalf("%d events are stored, %d were acknowledged", again.Session().Stored(), n)
	}
	ok(t, Turn(again.Session(), 9))
	ok(t, again.Close(bg))
}

func failedFirstWrite(t *testing.T, p Place) {
	if p.Fail == nil {
		t.Log("this store cannot be made to fail")
		return
	}
	l := create(t, p.Open(), "s1")
	ok(t, Turn(l.Session(), 1))
	p.Fail("append", errFull)
	wantErr(t, l.Flush(bg), errFull)
	if infos, err := p.Open().List(bg, store.ListOptions{}); err != nil || len(infos) != 0 {
		t.Fatalf("a failed first write left %v, %v", infos, err)
	}
	_, err := p.Open().Read(bg, "s1")
	wantErr(t, err, outcrop.ErrNotFound)
	p.Fail("append", nil)
	ok(t, l.Flush(bg))
	same(t, "the stored session", stored(t, p.Open(), "s1"), l.Session())
}

func tornTail(t *testing.T, p Place) {
	if p.Tear == nil {
		t.Log("nothing can be torn in this store")
		return
	}
	l := create(t, p.Open(), "s1")
	ok(t, Turn(l.Session(), 1))
	ok(t, l.Flush(bg))
	n := l.Durable()
	ok(t, StartTurn(l.Session(), 2))
	ok(t, l.Close(bg))
	before := viewOf(l.Session())
	p.Tear("s1", 3)

	again := reopen(t, p.Open(), "s1")
	tail := again.Tail()
	if !tail.Torn || tail.Bytes <= 0 || tail.Reason == nil {
		t.Fatalf("the tail is not reported: %+v", tail)
	}
	kept := again.Session().Stored()
	if kept < n || int(kept) > len(before.Events) {
		t.Fatalf("%d events were kept of %d, %d of them from whole batches", kept, len(before.Events), n)
	}
	after := viewOf(again.Session())
	for i := range kept {
		if before.Events[i] != after.Events[i] {
			t.Fatalf("event %d changed", i)
		}
	}
	ok(t, Turn(again.Session(), 3))
	ok(t, again.Close(bg))
	same(t, "the stored session", stored(t, p.Open(), "s1"), again.Session())
}

func tornTailRead(t *testing.T, p Place) {
	if p.Tear == nil {
		t.Log("nothing can be torn in this store")
		return
	}
	l := create(t, p.Open(), "s1")
	ok(t, Turn(l.Session(), 1))
	ok(t, l.Flush(bg))
	ok(t, StartTurn(l.Session(), 2))
	ok(t, l.Close(bg))
	p.Tear("s1", 3)
	var first store.Tail
	for i := range 3 {
		s, tail, err := store.Inspect(bg, p.Open(), "s1", outcrop.Options{})
		ok(t, err)
		if !tail.Torn || s.Len() == 0 {
			t.Fatalf("the tail is not reported: %+v", tail)
		}
		tail.Reason = nil
		if i == 0 {
			first = tail
		} else if tail != first {
			t.Fatalf("reading changed the tail from %+v to %+v", first, tail)
		}
		_, err = p.Open().List(bg, store.ListOptions{Full: i == 1})
		ok(t, err)
	}
}
