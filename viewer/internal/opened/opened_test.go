package opened_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/genlog"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/jsonl"
	"github.com/outcrop-dev/outcrop/store/memory"
	"github.com/outcrop-dev/outcrop/store/storetest"
	"github.com/outcrop-dev/outcrop/viewer/internal/folded"
	"github.com/outcrop-dev/outcrop/viewer/internal/opened"
)

func begin(t testing.TB, st store.Store, id string) *store.Live {
	t.Helper()
	l, err := store.Create(t.Context(), st, storetest.Header(id), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	turn(t, l, 1)
	return l
}

func turn(t testing.TB, l *store.Live, n int) {
	t.Helper()
	if err := storetest.Turn(l.Session(), n); err != nil {
		t.Fatal(err)
	}
	if err := l.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// lines are the events of a log, which are read in every way that there is.
func lines(t testing.TB, log outcrop.Log) (out []string) {
	t.Helper()
	for r := range log.Records(0) {
		for ev := range r.Events() {
			out = append(out, string(ev.AppendJSON(nil)))
		}
	}
	if len(out) != log.Len() {
		t.Fatalf("%d events of %d", len(out), log.Len())
	}
	for i := range out {
		if got := string(log.At(outcrop.Seq(i)).AppendJSON(nil)); got != out[i] {
			t.Fatalf("event %d is %s, and in order %s", i, got, out[i])
		}
		for r := range log.Records(outcrop.Seq(i)) {
			for ev := range r.Events() {
				if got := string(ev.AppendJSON(nil)); got != out[i] {
					t.Fatalf("from event %d on: %s, not %s", i, got, out[i])
				}
				break
			}
			break
		}
	}
	return out
}

func TestAnOpenSessionGrowsWithItsLog(t *testing.T) {
	for name, st := range map[string]store.Store{"memory": memory.New(), "packed": jsonlStore(t, false), "plain": jsonlStore(t, true)} {
		t.Run(name, func(t *testing.T) {
			l := begin(t, st, "s1")
			c := opened.New(opened.Options{Store: st})
			defer c.Close()
			for n := 2; n < 12; n++ {
				s, done, err := c.Use(t.Context(), "s1")
				if err != nil {
					t.Fatal(err)
				}
				s.Read(func(x *folded.Index, log outcrop.Log) {
					if d := cmp.Diff(lines(t, l.Session().Log()), lines(t, log)); d != "" || int(x.Len()) != log.Len() {
						t.Fatal(d)
					}
				})
				done()
				turn(t, l, n)
			}
			if err := l.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func jsonlStore(t testing.TB, plain bool) store.Store {
	t.Helper()
	st, err := jsonl.New(t.TempDir(), jsonl.Options{Plain: plain})
	if err != nil {
		t.Fatal(err)
	}
	return st
}

// A log that grows far beyond what it was when it was opened is packed, and
// stays what it is.
func TestALongTailIsPacked(t *testing.T) {
	st := memory.New()
	l, err := store.Create(t.Context(), st, genlog.Header(1), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c := opened.New(opened.Options{Store: st})
	defer c.Close()
	n := 0
	for ev := range genlog.Events(1, 40_000) {
		ev.Seq = outcrop.Seq(n)
		if _, err := l.Session().AppendRaw(ev); err != nil {
			t.Fatal(err)
		}
		if n++; n%4000 != 0 {
			continue
		}
		if err := l.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		s, done, err := c.Use(t.Context(), "gen-1")
		if err != nil {
			t.Fatal(err)
		}
		s.Read(func(x *folded.Index, log outcrop.Log) {
			if log.Len() != n || outcrop.LogDigest(log) != outcrop.LogDigest(l.Session().Log()) {
				t.Fatalf("%d events of %d", log.Len(), n)
			}
		})
		done()
	}
	if err := l.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// What this process writes is seen as soon as it is committed, and the change
// from store to live session and back loses nothing.
func TestALiveSessionIsReadFromMemory(t *testing.T) {
	st := jsonlStore(t, true)
	l := begin(t, st, "s1")
	if err := l.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	c := opened.New(opened.Options{Store: st, Budget: 1})
	defer c.Close()
	length := func() (n int) {
		t.Helper()
		s, done, err := c.Use(t.Context(), "s1")
		if err != nil {
			t.Fatal(err)
		}
		defer done()
		s.Read(func(x *folded.Index, log outcrop.Log) { n = len(lines(t, log)) })
		return n
	}
	before := length()
	l, err := store.Open(t.Context(), st, "s1", store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	end, err := c.Begin("s1", l)
	if err != nil {
		t.Fatal(err)
	}
	if err := storetest.Turn(l.Session(), 2); err != nil { // not flushed
		t.Fatal(err)
	}
	if n := length(); n != l.Session().Len() || n <= before {
		t.Errorf("%d events of %d", n, l.Session().Len())
	}
	if err := l.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	end()
	if n := length(); n != l.Session().Len() {
		t.Errorf("%d events of %d", n, l.Session().Len())
	}
}

func TestUnusedSessionsAreClosedOverTheBudget(t *testing.T) {
	st := memory.New()
	for i := range 100 {
		if err := begin(t, st, fmt.Sprintf("s%d", i)).Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	c := opened.New(opened.Options{Store: st, Budget: 20_000})
	defer c.Close()
	kept, done, err := c.Use(t.Context(), "s0")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		_, done, err := c.Use(t.Context(), fmt.Sprintf("s%d", i))
		if err != nil {
			t.Fatal(err)
		}
		done()
	}
	if n, bytes := c.Open(); n > 64 || bytes > 20_000+kept.Bytes() {
		t.Errorf("%d sessions of %d bytes are open", n, bytes)
	}
	// The one that is used is still there.
	again, done2, err := c.Use(t.Context(), "s0")
	if err != nil || again != kept {
		t.Errorf("%v %v", again, err)
	}
	done2()
	done()
}

func TestASessionThatIsNotThereLeavesNothingBehind(t *testing.T) {
	c := opened.New(opened.Options{Store: memory.New()})
	defer c.Close()
	for range 3 {
		if _, _, err := c.Use(t.Context(), "s1"); !errors.Is(err, outcrop.ErrNotFound) {
			t.Fatal(err)
		}
	}
	if n, _ := c.Open(); n != 0 {
		t.Errorf("%d sessions are open", n)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	st := memory.New()
	if err := begin(t, st, "s1").Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	c2 := opened.New(opened.Options{Store: st})
	if _, _, err := c2.Use(ctx, "s1"); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if _, done, err := c2.Use(t.Context(), "s1"); err != nil {
		t.Errorf("after that: %v", err)
	} else {
		done()
	}
}
