package jetstream

import (
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"
	"pgregory.net/rapid"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/jetstream/natstest"
	"github.com/outcrop-dev/outcrop/store/storetest"
)

// keeper keeps what ListKnown returns, as a catalogue does.
type keeper struct {
	s     *Store
	known map[string]store.Listed
}

// list lists, and tells how many entries were not read again.
func (k *keeper) list(t rapid.TB) (infos []store.Info, unread int) {
	all, err := k.s.ListKnown(bg, func(place string) (store.Kept, bool) {
		l, ok := k.known[place]
		if !ok {
			return store.Kept{}, false
		}
		return store.Kept{Stamp: l.Stamp, ID: l.Info.ID, Path: l.Info.Path}, true
	})
	if err != nil {
		t.Fatal(err)
	}
	now := map[string]store.Listed{}
	for _, l := range all {
		if l.Info == nil {
			had, ok := k.known[l.Place]
			if !ok || had.Stamp != l.Stamp {
				t.Fatalf("%q is said to be what it was, with the stamp %q", l.Place, l.Stamp)
			}
			l, unread = had, unread+1
		}
		now[l.Place] = l
		infos = append(infos, *l.Info)
	}
	if len(now) != len(all) {
		t.Fatalf("%d entries have %d places", len(all), len(now))
	}
	k.known = now
	store.SortInfos(infos)
	return infos, unread
}

// check compares with a list that knows nothing.
func (k *keeper) check(t rapid.TB) (unread int) {
	got, unread := k.list(t)
	want, err := k.s.List(bg, store.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(texts(want), texts(got)); d != "" {
		t.Fatalf("listed is (-anew +kept):\n%s", d)
	}
	return unread
}

func texts(infos []store.Info) (all []string) {
	for _, in := range infos {
		due := "nothing known"
		if in.Due != nil {
			due = fmt.Sprintf("%+v", *in.Due)
		}
		in.Due = nil
		line := string(in.Header.Line())
		in.Header = outcrop.Header{}
		all = append(all, fmt.Sprintf("%+v %s %s", in, line, due))
	}
	return all
}

// TestAListThatIsKeptEqualsOneMadeAnew lists after each thing that can become of
// sessions.
func TestAListThatIsKeptEqualsOneMadeAnew(t *testing.T) {
	t.Parallel()
	c := natstest.Start(t, natstest.Options{Lazy: true})
	all, unread := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		must := func(err error) {
			if err != nil {
				rt.Fatal(err)
			}
		}
		address := newRealm(t, c)
		s := open(t, address, quick())
		k := &keeper{s: open(t, address, quick())}
		live := map[string]*store.Live{}
		open := store.Options{Session: outcrop.Options{Now: tick()}}
		turn := 0
		defer func() {
			for _, l := range live {
				l.Close(bg)
			}
		}()
		ids := []string{"a", "b", "c", "d", "e", "f"}
		there := map[string]bool{}
		for _, id := range ids[:4] { // most of it is there from the beginning
			l, err := store.Create(bg, s, storetest.Header(id), open)
			must(err)
			must(storetest.Turn(l.Session(), 1))
			must(l.Close(bg))
			there[id] = true
		}
		k.check(rt)
		for range rapid.IntRange(1, 12).Draw(rt, "steps") {
			id := rapid.SampledFrom(ids).Draw(rt, "session")
			l := live[id]
			switch do := rapid.SampledFrom([]string{"write", "write", "close", "rewrite", "remove", "again", "die", "spoil", "list"}).Draw(rt, "do"); {
			case do == "list":
			case do == "spoil":
				if l == nil && there[id] && rapid.IntRange(0, 5).Draw(rt, "rarely") == 0 {
					lk, err := s.link(bg)
					must(err)
					_, err = lk.js.Publish(bg, lk.realm.subject(id), []byte("?"))
					must(err)
					there[id] = false
					ids = slices.DeleteFunc(ids, func(o string) bool { return o == id })
				}
			case do == "close" && l != nil:
				must(l.Close(bg))
				delete(live, id)
			case do == "die" && l != nil: // its worker stays alive, and its session with it
				s.worker.forget(id)
				delete(live, id)
				there[id] = false
				ids = slices.DeleteFunc(ids, func(o string) bool { return o == id })
			case do == "write":
				var err error
				switch {
				case l != nil:
				case there[id]:
					l, err = store.Open(bg, s, id, open)
				default:
					l, err = store.Create(bg, s, storetest.Header(id), open)
				}
				must(err)
				live[id], there[id] = l, true
				turn++
				must(storetest.Turn(l.Session(), 100+turn))
				must(l.Flush(bg))
			case l == nil && there[id] && do == "rewrite": // as many messages as before, may be
				must(s.Rewrite(bg, id, func(_ outcrop.Header, recs iter.Seq2[outcrop.Record, error]) (iter.Seq2[outcrop.Record, error], error) {
					return recs, nil
				}))
			case l == nil && there[id] && (do == "remove" || do == "again"):
				h, err := s.Hold(bg, id)
				must(err)
				dir := filepath.Join(t.TempDir(), "out")
				must(h.HandOver(bg, dir))
				must(h.Close())
				if there[id] = do == "again"; do == "again" {
					must(s.TakeBack(bg, id, "", dir))
				}
			}
			if rapid.Bool().Draw(rt, "look") {
				unread += k.check(rt)
				all += len(k.known)
			}
		}
		unread += k.check(rt)
		all += len(k.known)
	})
	t.Logf("of %d entries %d were not read again", all, unread)
	if unread < all/4 {
		t.Fatalf("of %d entries %d were not read again", all, unread)
	}
}

// A stream that was made anew, or restored, has other messages under the same
// sequences.
func TestAListThatIsKeptIsNotGoneOnWithInAnotherStream(t *testing.T) {
	t.Parallel()
	c := natstest.Start(t, natstest.Options{Lazy: true})
	ro := RealmOptions{Streams: 1, Single: true, Lease: time.Minute}
	address := c.Address("anew")
	_, err := Init(bg, address, ro, Options{})
	ok(t, err)
	s := open(t, address, quick())
	fill := func(turns int) {
		for _, id := range []string{"a", "b", "c"} {
			l := create(t, s, id)
			for turn := range turns {
				ok(t, storetest.Turn(l.Session(), turn+1))
			}
			ok(t, l.Close(bg))
		}
	}
	fill(1)
	k := &keeper{s: s}
	k.check(t)
	if n := k.check(t); n != 3 {
		t.Fatalf("%d of 3 entries were not read again", n)
	}
	lk, err := s.link(bg)
	ok(t, err)
	ok(t, lk.js.DeleteStream(bg, lk.realm.stream(0)))
	_, err = Init(bg, address, ro, Options{})
	ok(t, err)
	fill(2)
	if n := k.check(t); n != 0 {
		t.Fatalf("%d entries of another stream were taken for these", n)
	}
	ok(t, lk.js.DeleteStream(bg, lk.realm.stream(0)))
	if infos, n := k.list(t); len(infos) != 1 || n != 0 || infos[0].ID != "" {
		t.Fatalf("without the stream are listed %+v", infos)
	}
}

// Lists that are made while sessions change go on with each other, and with what
// is there when all is quiet.
func TestAListThatIsKeptWhileOthersWriteMissesNothingLater(t *testing.T) {
	t.Parallel()
	c := natstest.Start(t, natstest.Options{Lazy: true})
	address := newRealm(t, c)
	k := &keeper{s: open(t, address, quick())}
	const writers = 4
	var writing errgroup.Group
	done := make(chan struct{})
	for w := range writers {
		s := open(t, address, quick())
		writing.Go(func() error {
			for n := range 60 {
				h := storetest.Header(fmt.Sprint("s", w, "-", n%5))
				o := store.Options{Session: outcrop.Options{Now: tick()}}
				l, err := store.Open(bg, s, h.ID, o)
				if errors.Is(err, outcrop.ErrNotFound) {
					l, err = store.Create(bg, s, h, o)
				}
				if err == nil {
					err = errors.Join(storetest.Turn(l.Session(), n+1), l.Close(bg))
				}
				if err == nil && n%7 == 6 {
					err = s.Rewrite(bg, h.ID, func(_ outcrop.Header, recs iter.Seq2[outcrop.Record, error]) (iter.Seq2[outcrop.Record, error], error) {
						return recs, nil
					})
				}
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	go func() {
		defer close(done)
		writing.Wait()
	}()
	lists, unread := 0, 0
	for over := false; !over; lists++ {
		select {
		case <-done:
			over = true
		default:
		}
		_, n := k.list(t)
		unread += n
	}
	ok(t, writing.Wait())
	t.Logf("%d lists meanwhile, %d entries were not read again", lists, unread)
	if n := k.check(t); n == 0 {
		t.Fatal("all was read again")
	}
}

func TestAStampComesBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := stamp{rapid.Uint64Min(1).Draw(t, "seq"), rapid.Uint64().Draw(t, "messages"), rapid.Int64().Draw(t, "stored")}
		if got, ok := parseStamp(want.String()); !ok || got != want {
			t.Fatalf("%q is %+v, %v", want, got, ok)
		}
	})
	for _, text := range []string{"", "1", "1 2", "1 2 ", "x 2 3", "0 2 3", "1 2 3 4", "812 9 1700000000000 "} {
		if got, ok := parseStamp(text); ok {
			t.Errorf("%q is %+v", text, got)
		}
	}
}
