package jetstream

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/store/jetstream/natstest"
	"github.com/outcrop-dev/outcrop/store/storetest"
)

// longLog makes a session whose text is in an object.
func longLog(t testing.TB, s *Store, id string) {
	t.Helper()
	l := create(t, s, id)
	_, err := l.Session().Append(outcrop.SessionTitle{Title: noise(100 << 10)})
	ok(t, err)
	ok(t, l.Close(bg))
	if !stored(t, s, id)[0].Refs {
		t.Fatal("the text is in the message")
	}
}

// sessionsLeft are the sessions that a sweep did not decide about.
func sessionsLeft(got Swept) (ids []string) {
	for _, e := range got.Left {
		ids = append(ids, e.Session)
	}
	slices.Sort(ids)
	return ids
}

func TestADamagedMessageKeepsWhatItMayNameAndStopsNothingElse(t *testing.T) {
	t.Parallel()
	c := natstest.Start(t, natstest.Options{Lazy: true, MaxPayload: 64 << 10})
	for name, spoil := range map[string]func(t *testing.T, lk *link, ms []message){
		// The list of objects is not the one that its digest was made of.
		"a list of objects": func(t *testing.T, lk *link, ms []message) {
			m := ms[0]
			m.Seq, m.Prev, m.Head.Events = m.Seq+outcrop.Seq(m.Count), m.Chain, m.Head.Events+m.Count
			out := m.nats(m.Subject)
			out.Data = []byte("{}\n")
			_, err := lk.js.PublishMsg(bg, out)
			ok(t, err)
		},
		// It is right, and is no list.
		"a list that is none": func(t *testing.T, lk *link, ms []message) {
			m := ms[0]
			m.Seq, m.Prev, m.Head.Events = m.Seq+outcrop.Seq(m.Count), m.Chain, m.Head.Events+m.Count
			m.Body = []byte("?")
			m.Chain = m.next()
			_, err := lk.js.PublishMsg(bg, m.nats(m.Subject))
			ok(t, err)
		},
		"a message of nobody": func(t *testing.T, lk *link, ms []message) {
			_, err := lk.js.Publish(bg, ms[0].Subject, []byte("?"))
			ok(t, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, newRealm(t, c), quick())
			lk, err := s.link(bg)
			ok(t, err)
			for _, id := range []string{"good", "bad"} {
				longLog(t, s, id)
			}
			spoil(t, lk, stored(t, s, "bad"))
			// Its list may be the only one that names this.
			_, err = lk.putText(bg, []byte("perhaps the bad one's"), 1)
			ok(t, err)
			// A session that was removed half, and parts of an object that never was one.
			halfRemoved(t, s, "gone")
			_, err = lk.js.Publish(bg, "$O."+bucket(lk.realm.Name)+".C.nobody", []byte("part"))
			ok(t, err)

			before := objectsOf(t, s)
			got := sweep(t, s)
			if !slices.Equal(sessionsLeft(got), []string{"bad"}) || !strings.Contains(got.Left[0].Msg, "of stream outcrop_") || got.Left[0].Hint == "" {
				t.Fatalf("left are %v", got.Left)
			}
			if got.Kept != 1 || got.Objects != 1 || got.Logs != 1 {
				t.Fatalf("swept %+v", got)
			}
			if after := objectsOf(t, s); !slices.Equal(before, after) {
				t.Fatalf("of the objects %v are left %v", before, after)
			}
			// When the message is gone, and with it the doubt, all is decided.
			st, err := lk.js.Stream(bg, lk.realm.stream(lk.realm.shard("bad")))
			ok(t, err)
			last, err := lk.last(bg, lk.realm.stream(lk.realm.shard("bad")), lk.realm.subject("bad"))
			ok(t, err)
			ok(t, st.DeleteMsg(bg, last.Seq))
			if got := sweep(t, s); len(got.Left) != 0 || got.Kept != 0 || got.Objects != 1 {
				t.Fatalf("afterwards are swept %+v", got)
			}
			for _, id := range []string{"good", "bad"} {
				sd, err := s.Read(bg, id)
				ok(t, err)
				for _, err := range sd.Records() {
					ok(t, err)
				}
			}
		})
	}
}

// halfRemoved removes a session as a program does that ends before the purge.
func halfRemoved(t testing.TB, s *Store, id string) {
	t.Helper()
	l := create(t, s, id)
	ok(t, storetest.Turn(l.Session(), 1))
	ok(t, l.Close(bg))
	lease, err := s.acquire(bg, id, false)
	ok(t, err)
	m := message{Kind: kindRemove, Seq: outcrop.Seq(lease.head.Events), Epoch: lease.epoch, Chain: lease.chain, Head: lease.head}
	_, err = lease.lk.settle(bg, lease.lk.prepare(id, m, lease.last))
	ok(t, err)
	s.worker.forget(id)
}

// An object that was stored long after a message cannot be named by it.
func TestADamagedMessageKeepsNothingThatIsMuchYounger(t *testing.T) {
	at := func(h int) time.Time { return time.Unix(1_700_000_000, 0).Add(time.Duration(h) * time.Hour) }
	s, err := New("nats://127.0.0.1:1/x", Options{})
	ok(t, err)
	g := sweeper{s: s, dry: true, strange: true, named: map[string]bool{"named": true}, damaged: map[string]bool{},
		texts: []objectInfo{{Name: "before", at: at(0)}, {Name: "near", at: at(30)}, {Name: "after", at: at(40)}, {Name: "named", at: at(0)}}}
	g.doubt("s1", at(8), outcrop.ErrDamaged)
	g.doubt("s1", at(2), outcrop.ErrDamaged)
	ok(t, g.sweep(bg))
	if g.done.Kept != 2 || g.done.Objects != 1 || len(g.done.Left) != 1 {
		t.Fatalf("swept %+v", g.done)
	}
	// What a whole stream named is unknown at any age.
	g.done, g.blind = Swept{}, true
	ok(t, g.sweep(bg))
	if g.done.Kept != 3 || g.done.Objects != 0 {
		t.Fatalf("without a stream is swept %+v", g.done)
	}
}

func TestAStreamThatIsMissingKeepsAllObjects(t *testing.T) {
	t.Parallel()
	c := natstest.Start(t, natstest.Options{Lazy: true, MaxPayload: 64 << 10})
	s := open(t, newRealm(t, c), quick())
	lk, err := s.link(bg)
	ok(t, err)
	in := map[int][]string{} // ids by stream
	for n := 0; len(in[0]) < 1 || len(in[1]) < 2; n++ {
		id := fmt.Sprint("s", n)
		shard := lk.realm.shard(id)
		in[shard] = append(in[shard], id)
	}
	longLog(t, s, in[0][0])
	longLog(t, s, in[1][0])
	halfRemoved(t, s, in[1][1])
	before := objectsOf(t, s)
	ok(t, lk.js.DeleteStream(bg, lk.realm.stream(0)))
	got := sweep(t, s)
	if got.Kept != 1 || got.Objects != 0 || got.Logs != 1 || len(got.Left) != 1 || !strings.Contains(got.Left[0].Msg, lk.realm.stream(0)+" is missing") {
		t.Fatalf("swept %+v", got)
	}
	if after := objectsOf(t, s); !slices.Equal(before, after) {
		t.Fatalf("of the objects %v are left %v", before, after)
	}
	// Without the bucket there is nothing to sweep, and logs are purged all the same.
	ok(t, lk.js.DeleteStream(bg, lk.objectStream()))
	if got := sweep(t, s); len(got.Left) != 2 || got.Objects+got.Kept != 0 {
		t.Fatalf("without the bucket is swept %+v", got)
	}
}

func TestWhatTheBucketCannotSayKeepsTheParts(t *testing.T) {
	t.Parallel()
	c := natstest.Start(t, natstest.Options{Lazy: true})
	s := open(t, newRealm(t, c), quick())
	lk, err := s.link(bg)
	ok(t, err)
	id, err := s.Objects().Put(bg, []byte("an attachment"))
	ok(t, err)
	in, err := lk.info(bg, attachmentPrefix+id[len("sha256:"):])
	ok(t, err)
	// What the bucket says about it is overwritten; its bytes are all that is left.
	_, err = lk.js.Publish(bg, lk.metaSubject(in.Name), []byte("?"))
	ok(t, err)
	if got := sweep(t, s); len(got.Left) != 1 || got.Objects != 0 {
		t.Fatalf("swept %+v", got)
	}
	_, err = lk.last(bg, lk.objectStream(), "$O."+bucket(lk.realm.Name)+".C."+in.NUID)
	ok(t, err)
}
