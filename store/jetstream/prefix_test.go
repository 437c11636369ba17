package jetstream

import (
	"context"
	"fmt"
	"iter"
	"path/filepath"
	"testing"

	"pgregory.net/rapid"

	"github.com/outcrop-dev/outcrop"
	msg "github.com/outcrop-dev/outcrop/message"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/jetstream/natstest"
	"github.com/outcrop-dev/outcrop/store/storetest"
)

// decoding is a store that copies no prefix as bytes.
type decoding struct{ store.Store }

// counting counts the prefixes that were copied as bytes.
type counting struct {
	*Store
	copied int
}

func (c *counting) PutPrefix(ctx context.Context, parent string, through outcrop.Seq,
	header func(outcrop.Header, outcrop.Seq) outcrop.Header, finish func(outcrop.Seq, outcrop.Type) []outcrop.Event) (bool, error) {
	copied, err := c.Store.PutPrefix(ctx, parent, through, header, finish)
	if copied {
		c.copied++
	}
	return copied, err
}

func same(recs iter.Seq2[outcrop.Record, error]) iter.Seq2[outcrop.Record, error] { return recs }

// childOf is all that is known of a session, without its id and how long its text
// is as stored.
func childOf(t rapid.TB, s *Store, id string) string {
	got, _, err := store.Inspect(bg, s, id, outcrop.Options{})
	if err != nil {
		t.Fatal(err)
	}
	in, err := s.Look(bg, id)
	if err != nil {
		t.Fatal(err)
	}
	lk, err := s.link(bg)
	if err != nil {
		t.Fatal(err)
	}
	last, err := lk.lastMessage(bg, id)
	if err != nil {
		t.Fatal(err)
	}
	h := last.Head
	h.Bytes, h.Header = 0, nil
	return fmt.Sprintf("%s %+v %+v %s %s %d", outcrop.LogDigest(got.Log()), h, *in.Due, in.State, *in.Header.ParentSession, *in.Header.SeedLength)
}

// TestACopiedPrefixEqualsADecodedOne forks sessions that were written, handed
// over, rewritten and copied, at every kind of place.
func TestACopiedPrefixEqualsADecodedOne(t *testing.T) {
	t.Parallel()
	c := natstest.Start(t, natstest.Options{Lazy: true, MaxPayload: 64 << 10})
	address := newRealm(t, c)
	s := open(t, address, quick())
	st := &counting{Store: s}
	run, forks := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		run++
		id := fmt.Sprint("p", run)
		must := func(err error) {
			if err != nil {
				rt.Fatal(err)
			}
		}
		o := store.Options{Session: outcrop.Options{Now: tick()}}
		l, err := store.Create(bg, s, storetest.Header(id), o)
		must(err)
		defer func() { l.Close(bg) }()
		turn, open := 0, false
		for range rapid.IntRange(1, 10).Draw(rt, "steps") {
			var err error
			switch rapid.SampledFrom([]string{"turn", "start", "end", "title", "long", "input", "flush", "flush", "reopen", "rewrite", "fork"}).Draw(rt, "do") {
			case "turn":
				if !open {
					turn++
					err = storetest.Turn(l.Session(), turn)
				}
			case "start":
				if !open {
					turn, open = turn+1, true
					err = storetest.StartTurn(l.Session(), turn)
				}
			case "end":
				if open {
					open = false
					err = storetest.EndTurn(l.Session(), turn)
				}
			case "title":
				_, err = l.Session().Append(outcrop.SessionTitle{Title: fmt.Sprint("title ", turn)})
			case "long": // it does not fit into a message, and its title not into a head
				_, err = l.Session().Append(outcrop.SessionTitle{Title: noise(rapid.IntRange(1, 100<<10).Draw(rt, "bytes"))})
			case "input": // what waits in the inbox is not the child's
				_, err = l.Session().Append(outcrop.InboxSpliced{Target: outcrop.NextTurn, Inserted: []msg.Message{{ID: fmt.Sprint("i", turn), Source: msg.FromUser, Content: []msg.Block{msg.Text("later")}}}})
			case "flush":
				err = l.Flush(bg)
			default:
				if l.Session().Len() == 0 {
					continue
				}
				must(l.Close(bg))
				what := rapid.SampledFrom([]string{"reopen", "rewrite", "fork"}).Draw(rt, "how")
				switch what {
				case "rewrite":
					must(s.Rewrite(bg, id, func(_ outcrop.Header, recs iter.Seq2[outcrop.Record, error]) (iter.Seq2[outcrop.Record, error], error) {
						return same(recs), nil
					}))
				case "fork": // a log whose beginning is one message, and whose seed is another's
					cut, err := store.ForkAt(bg, st, id, -1, store.Child{ID: id + "x", CreatedAt: 5})
					must(err)
					_ = cut
					id += "x"
					open = false
				}
				l, err = store.Open(bg, s, id, o)
				open = false // closers ended it
			}
			must(err)
		}
		must(l.Close(bg))
		if l.Session().Len() == 0 {
			return
		}
		ends := []int{-1}
		for _, m := range stored(t, s, id) {
			if m.holdsEvents() {
				ends = append(ends, int(m.Seq)+int(m.Count)-1)
			}
		}
		for n := range rapid.IntRange(1, 4).Draw(rt, "forks") {
			at := outcrop.Seq(rapid.SampledFrom(ends).Draw(rt, "border"))
			if rapid.IntRange(0, 3).Draw(rt, "anywhere") == 0 {
				at = outcrop.Seq(rapid.IntRange(0, l.Session().Len()).Draw(rt, "at"))
			}
			forks++
			child := store.Child{ID: fmt.Sprintf("%s-%d", id, n), CreatedAt: 7}
			cut, err := store.ForkAt(bg, st, id, at, child)
			child.ID += "d"
			dcut, derr := store.ForkAt(bg, decoding{s}, id, at, child)
			if (err == nil) != (derr == nil) || outcrop.CodeOf(err) != outcrop.CodeOf(derr) {
				rt.Fatalf("at %d the fork is %v, decoded %v", at, err, derr)
			}
			if err != nil {
				continue
			}
			if cut.Boundary != dcut.Boundary || cut.Turn != dcut.Turn || cut.Closed != dcut.Closed {
				rt.Fatalf("at %d the cut is %+v, decoded %+v", at, cut, dcut)
			}
			if got, want := childOf(rt, s, child.ID[:len(child.ID)-1]), childOf(rt, s, child.ID); got != want {
				rt.Fatalf("at %d the child is\n%s\ndecoded\n%s", at, got, want)
			}
		}
	})
	t.Logf("%d forks, %d of them as bytes", forks, st.copied)
	if st.copied < forks/4 {
		t.Fatalf("only %d of %d prefixes were copied as bytes", st.copied, forks)
	}
}

// TestALongPrefixIsCopiedInSeveralObjects forks a log of several megabytes, which
// was copied into the realm first and then went on.
func TestALongPrefixIsCopiedInSeveralObjects(t *testing.T) {
	t.Parallel()
	c := natstest.Start(t, natstest.Options{Lazy: true})
	s := open(t, newRealm(t, c), quick())
	put := func(id string, titles int) {
		ok(t, s.Put(bg, storetest.Header(id), func(yield func(outcrop.Record, error) bool) {
			for n := range titles {
				data := fmt.Appendf(nil, `{"title":%q,"source":"user"}`, noise(200 << 10)[n:])
				if !yield(outcrop.Record{Event: outcrop.Event{Type: outcrop.TypeSessionTitle, Seq: outcrop.Seq(n), Time: int64(n), Data: data}}, nil) {
					return
				}
			}
		}))
	}
	put("long", 30)
	l := reopen(t, s, "long")
	for turn := range 3 {
		ok(t, storetest.Turn(l.Session(), turn+1))
		ok(t, l.Flush(bg))
	}
	ok(t, l.Close(bg))
	st := &counting{Store: s}
	for _, at := range []outcrop.Seq{-1, 29, outcrop.Seq(l.Session().Len()) - 16} {
		id := fmt.Sprint("child", at)
		_, err := store.Fork(bg, st, "long", at, store.Child{ID: id, CreatedAt: 1})
		ok(t, err)
		_, err = store.Fork(bg, decoding{s}, "long", at, store.Child{ID: id + "d", CreatedAt: 1})
		ok(t, err)
		if got, want := childOf(t, s, id), childOf(t, s, id+"d"); got != want {
			t.Fatalf("at %d the child is\n%s\ndecoded\n%s", at, got, want)
		}
		m := stored(t, s, id)[0]
		ps, err := parseManifest(m.Body, m.Count)
		ok(t, err)
		if len(ps) < 2 {
			t.Fatalf("the child has %d objects", len(ps))
		}
	}
	if st.copied != 3 {
		t.Fatalf("%d of 3 prefixes were copied as bytes", st.copied)
	}
	// The objects are the child's own: the parent goes, and it stays whole.
	h, err := s.Hold(bg, "long")
	ok(t, err)
	ok(t, h.HandOver(bg, filepath.Join(t.TempDir(), "out")))
	ok(t, h.Close())
	if got := sweep(t, s); got.Objects+got.Kept+len(got.Left) != 0 {
		t.Fatalf("swept %+v", got)
	}
	if _, _, err := store.Inspect(bg, s, "child-1", outcrop.Options{}); err != nil {
		t.Fatal(err)
	}
}

func TestAForkOfALiveLogLongerThanWhatIsKeptIsTheSame(t *testing.T) {
	t.Parallel()
	c := natstest.Start(t, natstest.Options{Lazy: true})
	s := open(t, newRealm(t, c), quick())
	l := create(t, s, "s1")
	text := noise(600 << 10)
	for n := range 9 {
		_, err := l.Session().Append(outcrop.SessionTitle{Title: text[n:]})
		ok(t, err)
		ok(t, l.Flush(bg))
	}
	ok(t, l.Close(bg))
	st := &counting{Store: s}
	for _, at := range []outcrop.Seq{-1, 7} {
		id := fmt.Sprint("child", at)
		_, err := store.Fork(bg, st, "s1", at, store.Child{ID: id, CreatedAt: 1})
		ok(t, err)
		_, err = store.Fork(bg, decoding{s}, "s1", at, store.Child{ID: id + "d", CreatedAt: 1})
		ok(t, err)
		if got, want := childOf(t, s, id), childOf(t, s, id+"d"); got != want {
			t.Fatalf("at %d the child is\n%s\ndecoded\n%s", at, got, want)
		}
	}
	if st.copied != 2 {
		t.Fatalf("%d of 2 prefixes were copied as bytes", st.copied)
	}
}
