package jetstream

import (
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	natsjs "github.com/nats-io/nats.go/jetstream"

	"golang.org/x/sync/errgroup"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/jetstream/natstest"
	"github.com/outcrop-dev/outcrop/store/storetest"
)

// sweep is GC that takes objects of any age.
func sweep(t testing.TB, s *Store) Swept {
	t.Helper()
	got, err := s.gc(bg, false, time.Now().Add(time.Hour))
	ok(t, err)
	return got
}

// objectsOf lists the names in the bucket.
func objectsOf(t testing.TB, s *Store) (names []string) {
	t.Helper()
	lk, err := s.link(bg)
	ok(t, err)
	o, err := lk.bucket(bg)
	ok(t, err)
	all, err := o.List(bg)
	if errors.Is(err, natsjs.ErrNoObjectsFound) {
		return nil
	}
	ok(t, err)
	for _, in := range all {
		names = append(names, in.Name)
	}
	return names
}

// noise is text that does not compress well.
func noise(n int) string {
	x := uint64(88172645463325252)
	var b strings.Builder
	for b.Len() < n {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		fmt.Fprintf(&b, "%x ", x)
	}
	return b.String()[:n]
}

func TestABatchThatIsTooLongGoesThroughTheBucketAndIsNeverSplit(t *testing.T) {
	t.Parallel()
	c := natstest.Start(t, natstest.Options{MaxPayload: 64 << 10})
	address := newRealm(t, c)
	s := open(t, address, quick())
	l := create(t, s, "s1")
	ok(t, storetest.Turn(l.Session(), 1))
	ok(t, l.Flush(bg))
	before := int64(l.Session().Len())
	big := outcrop.LogCandidate(outcrop.SessionTitle{Title: noise(300 << 10)})
	_, err := l.Session().AppendAll(big, outcrop.LogCandidate(outcrop.TodoWrite{}), big)
	ok(t, err)
	ok(t, l.Flush(bg))
	ms := stored(t, s, "s1")
	last := ms[len(ms)-1]
	if !last.Refs || last.Count != 3 || int64(last.Seq) != before || len(ms) != 2 {
		t.Fatalf("stored are %v, the last one with %d events from %d, objects %v", kinds(ms), last.Count, last.Seq, last.Refs)
	}
	if len(last.Head.Title) > maxHeadTitle+3 {
		t.Fatalf("the head repeats %d bytes of a title", len(last.Head.Title))
	}
	// An object that no message names goes, the others stay.
	lk, err := s.link(bg)
	ok(t, err)
	_, err = lk.putText(bg, []byte("nobody names this"), 1)
	ok(t, err)
	id, err := s.Objects().Put(bg, []byte("an attachment"))
	ok(t, err)
	if got := sweep(t, s); got.Objects != 1 || got.Bytes != int64(len("nobody names this")) {
		t.Fatalf("swept %+v", got)
	}
	if got := objectsOf(t, s); len(got) != 2 {
		t.Fatalf("left are %v", got)
	}
	_, err = s.Objects().Get(bg, id)
	ok(t, err)
	ok(t, l.Close(bg))
	sameLog(t, open(t, address, quick()), l.Session())

	// A whole log as well, in several objects.
	src := l.Session()
	for id, pieces := range map[string]bool{"copy": true} {
		ok(t, s.Put(bg, storetest.Header(id), func(yield func(outcrop.Record, error) bool) {
			for r := range src.Log().Records(0) {
				if !yield(r, nil) {
					return
				}
			}
		}))
		ms := stored(t, s, id)
		if len(ms) != 1 || ms[0].Refs != pieces || ms[0].Owner != "" {
			t.Fatalf("a log that is put is %v", kinds(ms))
		}
	}
	got, _, err := store.Inspect(bg, s, "copy", outcrop.Options{})
	ok(t, err)
	if outcrop.LogDigest(got.Log()) != outcrop.LogDigest(src.Log()) {
		t.Fatal("the copy differs")
	}
}

func TestASessionThatIsRewrittenHasOneLogWhateverIsPurged(t *testing.T) {
	t.Parallel()
	c := natstest.Start(t, natstest.Options{})
	address := newRealm(t, c)
	s := open(t, address, quick())
	l := create(t, s, "s1")
	for turn := range 3 {
		ok(t, storetest.Turn(l.Session(), turn+1))
		ok(t, l.Flush(bg))
	}
	ok(t, l.Close(bg))
	f, err := s.Follow(bg, "s1")
	ok(t, err)
	for _, err := range f.Next(bg) {
		ok(t, err)
	}
	shorter := func(_ outcrop.Header, recs iter.Seq2[outcrop.Record, error]) (iter.Seq2[outcrop.Record, error], error) {
		var kept []outcrop.Record
		for r, err := range recs {
			if err != nil {
				return nil, err
			}
			if r.Seq < 15 {
				kept = append(kept, r)
			}
		}
		return func(yield func(outcrop.Record, error) bool) {
			for _, r := range kept {
				if !yield(r, nil) {
					return
				}
			}
		}, nil
	}
	// As if the program ended between the new log and the purge.
	lease, err := s.acquire(bg, "s1", false)
	ok(t, err)
	recs, err := shorter(lease.header, lease.Records())
	ok(t, err)
	base, err := lease.whole(bg, message{Kind: kindBase, Epoch: lease.epoch, Gen: lease.gen + 1, Owner: s.id}, recs)
	ok(t, err)
	_, err = lease.lk.settle(bg, base)
	ok(t, err)
	s.worker.forget("s1")

	read := func() int {
		got, _, err := store.Inspect(bg, s, "s1", outcrop.Options{})
		ok(t, err)
		return got.Len()
	}
	if n := read(); n != 15 {
		t.Fatalf("%d events are read, want the 15 of the new log", n)
	}
	for _, err := range f.Next(bg) {
		if !errors.Is(err, store.ErrMoved) {
			t.Fatalf("who follows the old log gets %v", err)
		}
	}
	if got := sweep(t, s); got.Logs != 1 {
		t.Fatalf("swept %+v", got)
	}
	if got := kinds(stored(t, s, "s1")); !slices.Equal(got, []kind{kindBase}) {
		t.Fatalf("after that are stored %v", got)
	}
	if n := read(); n != 15 {
		t.Fatalf("%d events are read after the purge", n)
	}
	l = reopen(t, s, "s1")
	ok(t, storetest.Turn(l.Session(), 9))
	ok(t, l.Close(bg))
	sameLog(t, s, l.Session())
	ok(t, s.Rewrite(bg, "s1", shorter))
	if n := read(); n != 15 {
		t.Fatalf("%d events are read after another rewrite", n)
	}
	if got := kinds(stored(t, s, "s1")); !slices.Equal(got, []kind{kindBase, kindFree}) {
		t.Fatalf("a rewrite leaves %v", got)
	}
}

func TestARemovedSessionIsGoneAtOnceAndItsNameIsFree(t *testing.T) {
	t.Parallel()
	c := natstest.Start(t, natstest.Options{})
	address := newRealm(t, c)
	s := open(t, address, quick())
	l := create(t, s, "s1")
	ok(t, storetest.Turn(l.Session(), 1))
	ok(t, l.Close(bg))
	h, err := s.Hold(bg, "s1")
	ok(t, err)
	dir := filepath.Join(t.TempDir(), "out")
	ok(t, h.HandOver(bg, dir))
	ok(t, h.Close())
	if ms := stored(t, s, "s1"); ms != nil {
		t.Fatalf("stored are still %v", kinds(ms))
	}
	ok(t, s.TakeBack(bg, "s1", "", dir))
	sameLog(t, s, l.Session())

	// As if the program ended before the purge.
	lease, err := s.acquire(bg, "s1", false)
	ok(t, err)
	m := message{Kind: kindRemove, Seq: outcrop.Seq(lease.head.Events), Epoch: lease.epoch, Chain: lease.chain, Head: lease.head}
	_, err = lease.lk.settle(bg, lease.lk.prepare("s1", m, lease.last))
	ok(t, err)
	s.worker.forget("s1")
	if _, err := s.Read(bg, "s1"); !errors.Is(err, outcrop.ErrNotFound) {
		t.Fatalf("a removed session is read: %v", err)
	}
	infos, err := s.List(bg, store.ListOptions{})
	ok(t, err)
	if len(infos) != 0 {
		t.Fatalf("a removed session is listed: %v", infos)
	}
	l = create(t, s, "s1")
	ok(t, storetest.Turn(l.Session(), 7))
	ok(t, l.Close(bg))
	sameLog(t, s, l.Session())
}

func TestAMessageThatIsMissingIsNoticed(t *testing.T) {
	t.Parallel()
	c := natstest.Start(t, natstest.Options{})
	s := open(t, newRealm(t, c), quick())
	l := create(t, s, "s1")
	for turn := range 4 {
		ok(t, storetest.Turn(l.Session(), turn+1))
		ok(t, l.Flush(bg))
	}
	ok(t, l.Close(bg))
	ms := stored(t, s, "s1")
	lk, err := s.link(bg)
	ok(t, err)
	st, err := lk.js.Stream(bg, ms[1].Stream)
	ok(t, err)
	ok(t, st.DeleteMsg(bg, ms[1].Stored))
	got, _, err := store.Inspect(bg, s, "s1", outcrop.Options{})
	var e *outcrop.Error
	if !errors.Is(err, outcrop.ErrDamaged) || !errors.As(err, &e) || e.Code != "SEQ_GAP" || e.Seq != 15 || got.Len() != 15 {
		t.Fatalf("of a log with a hole are read %d events: %v", got.Len(), err)
	}
	if _, err := store.Open(bg, s, "s1", store.Options{}); !errors.Is(err, outcrop.ErrDamaged) {
		t.Fatalf("it is opened: %v", err)
	}
	infos, err := s.List(bg, store.ListOptions{Full: true})
	ok(t, err)
	if len(infos) != 1 || infos[0].State != store.StateDamaged {
		t.Fatalf("it is listed as %+v", infos)
	}
}

func TestAFullStreamRefusesAndLosesNothing(t *testing.T) {
	t.Parallel()
	c := natstest.Start(t, natstest.Options{})
	address := c.Address("full")
	_, err := Init(bg, address, RealmOptions{Streams: 1, Single: true, Lease: time.Second, MaxBytes: 32 << 10}, Options{})
	ok(t, err)
	s := open(t, address, quick())
	l := create(t, s, "s1")
	acked := 0
	for turn := 1; ; turn++ {
		ok(t, storetest.Turn(l.Session(), turn))
		if err = l.Flush(bg); err != nil {
			break
		}
		acked = l.Session().Len()
	}
	if !strings.Contains(err.Error(), "no room") {
		t.Fatalf("a full stream says %v", err)
	}
	got, _, err := store.Inspect(bg, s, "s1", outcrop.Options{})
	ok(t, err)
	if got.Len() < acked {
		t.Fatalf("%d events are stored, %d were acknowledged", got.Len(), acked)
	}
	lk, err := s.link(bg)
	ok(t, err)
	cfg := lk.realm.streamConfig(0, RealmOptions{})
	_, err = lk.js.UpdateStream(bg, cfg)
	ok(t, err)
	ok(t, l.Flush(bg))
	ok(t, l.Close(bg))
	sameLog(t, s, l.Session())
}

func TestAFollowerIsWokenAndMissesNothingWithoutItsConsumer(t *testing.T) {
	t.Parallel()
	c := natstest.Start(t, natstest.Options{})
	s := open(t, newRealm(t, c), quick())
	l := create(t, s, "s1")
	ok(t, storetest.Turn(l.Session(), 1))
	ok(t, l.Flush(bg))
	in, err := s.Follow(bg, "s1")
	ok(t, err)
	f := in.(*Following)
	defer f.Close()
	seen := 0
	read := func() {
		for r, err := range f.Next(bg) {
			ok(t, err)
			seen += r.Count()
		}
	}
	read()
	for turn := 2; turn < 8; turn++ {
		woken := make(chan error, 1)
		go func() { woken <- f.Wait(bg) }()
		if turn == 5 {
			// Whoever deletes consumers only makes it slower.
			ok(t, <-func() chan error { ok(t, storetest.Turn(l.Session(), 90)); return flushed(l) }())
			ok(t, <-woken)
			read()
			lk, err := s.link(bg)
			ok(t, err)
			stream := lk.realm.stream(lk.realm.shard("s1"))
			st, err := lk.js.Stream(bg, stream)
			ok(t, err)
			for name := range st.ConsumerNames(bg).Name() {
				ok(t, st.DeleteConsumer(bg, name))
			}
			go func() { woken <- f.Wait(bg) }()
		}
		ok(t, storetest.Turn(l.Session(), turn))
		ok(t, l.Flush(bg))
		ok(t, <-woken)
		read()
		if seen != l.Session().Len() {
			t.Fatalf("%d events were seen, want %d", seen, l.Session().Len())
		}
	}
	mark := f.Mark()
	if mark == "" {
		t.Fatal("there is no mark")
	}
	ok(t, storetest.Turn(l.Session(), 50))
	ok(t, l.Flush(bg))
	again, err := s.Follow(bg, "s1")
	ok(t, err)
	if !again.(*Following).Resume(mark) {
		t.Fatal("the mark is not taken")
	}
	n := 0
	for r, err := range again.Next(bg) {
		ok(t, err)
		n += r.Count()
	}
	if n != 15 {
		t.Fatalf("%d events came behind the mark, want 15", n)
	}
	for _, bad := range []string{"", "x", "jetstream 1 2 3", strings.Replace(mark, "jetstream 0", "jetstream 1", 1)} {
		if again.(*Following).Resume(bad) {
			t.Errorf("%q is taken for a mark", bad)
		}
	}
}

func flushed(l *store.Live) chan error {
	done := make(chan error, 1)
	go func() { done <- l.Flush(bg) }()
	return done
}

func TestARealmThatCannotKeepItsPromiseIsRefused(t *testing.T) {
	t.Parallel()
	c := natstest.Start(t, natstest.Options{Lazy: true})
	address := newRealm(t, c)
	s := open(t, address, Options{})
	lk, err := s.link(bg)
	ok(t, err)
	good := lk.realm.streamConfig(0, RealmOptions{})
	for name, spoil := range map[string]func(*natsjs.StreamConfig){
		"forgets messages":     func(c *natsjs.StreamConfig) { c.MaxAge = time.Hour },
		"at most 5 messages":   func(c *natsjs.StreamConfig) { c.MaxMsgs = 5 },
		"of a session":         func(c *natsjs.StreamConfig) { c.MaxMsgsPerSubject = 5 },
		"discards old":         func(c *natsjs.StreamConfig) { c.Discard = natsjs.DiscardOld },
		"acknowledges nothing": func(c *natsjs.StreamConfig) { c.NoAck = true },
		"at most 100 bytes":    func(c *natsjs.StreamConfig) { c.MaxMsgSize = 100 },
	} {
		bad := good
		spoil(&bad)
		_, err := lk.js.UpdateStream(bg, bad)
		ok(t, err)
		r, err := s.Check(bg, nil)
		ok(t, err)
		if r.OK() || !slices.ContainsFunc(r.Findings, func(f Finding) bool { return strings.Contains(f.What, name) && f.Where == "stream "+good.Name }) {
			t.Errorf("%s: found %+v", name, r.Findings)
		}
		// And nothing is written to it.
		fresh := open(t, address, quick())
		id := "s" + name
		for i := 0; lk.realm.shard(id) != 0; i++ {
			id = fmt.Sprint("s", name, i)
		}
		l := create(t, fresh, id)
		ok(t, storetest.Turn(l.Session(), 1))
		if err := l.Flush(bg); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: a flush says %v", name, err)
		}
		l.Close(bg)
		_, err = lk.js.UpdateStream(bg, good)
		ok(t, err)
	}
	for name, cfg := range map[string]natsjs.StreamConfig{
		"memory": {Storage: natsjs.MemoryStorage}, "queue": {Retention: natsjs.WorkQueuePolicy}, "persist_mode": {PersistMode: natsjs.AsyncPersistMode},
		"another stream": {Mirror: &natsjs.StreamSource{Name: "x"}}, "sealed": {Sealed: true}, "time to live": {AllowMsgTTL: true},
	} {
		if got := strings.Join(lk.realm.judge(&cfg, "a"), "; "); !strings.Contains(got, name) {
			t.Errorf("%s: judged %q", name, got)
		}
	}
	// These servers acknowledge before they sync, and say so when they are asked.
	r, err := s.Check(bg, &Auth{User: "sys", Password: "sys"})
	ok(t, err)
	if r.OK() || r.Realm.Sync.State != SyncNotAlways || len(r.Realm.Sync.Servers) != 1 {
		t.Errorf("the verdict is %+v, found %+v", r.Realm.Sync, r.Findings)
	}
	if realm, err := s.Realm(bg); err != nil || realm.Sync.State != SyncNotAlways {
		t.Errorf("recorded is %+v, %v", realm.Sync, err)
	}
	if _, err := s.Check(bg, &Auth{User: "app", Password: "app"}); !errors.Is(err, outcrop.ErrRefused) {
		t.Errorf("who has no rights on the system account is told %v", err)
	}
}

func TestARealmWhoseRecordIsGoneIsMadeAnewWithItsOwnNumbersOnly(t *testing.T) {
	t.Parallel()
	c := natstest.Start(t, natstest.Options{Lazy: true})
	address := c.Address("gone")
	ro := RealmOptions{Streams: 3, Single: true, Lease: time.Second}
	_, err := Init(bg, address, ro, Options{})
	ok(t, err)
	s := open(t, address, quick())
	l := create(t, s, "s1")
	ok(t, storetest.Turn(l.Session(), 1))
	ok(t, l.Close(bg))
	lk, err := s.link(bg)
	ok(t, err)
	kv, err := lk.js.KeyValue(bg, bucket("gone"))
	ok(t, err)
	ok(t, kv.Delete(bg, recordKey))
	if _, err := open(t, address, quick()).List(bg, store.ListOptions{}); !errors.Is(err, outcrop.ErrNotFound) || !strings.Contains(err.Error(), "was removed") {
		t.Fatalf("without a record a list says %v", err)
	}
	// Sessions would be looked for where they are not.
	for _, n := range []int{1, 2, 4, 16} {
		wrong := ro
		wrong.Streams = n
		if _, err := Init(bg, address, wrong, Options{}); !errors.Is(err, store.ErrExists) {
			t.Fatalf("made anew with %d streams: %v", n, err)
		}
	}
	_, err = Init(bg, address, ro, Options{})
	ok(t, err)
	sameLog(t, open(t, address, quick()), l.Session())

	// The record of another realm is none of this one.
	other := lk.realm
	for _, spoil := range []func(*Realm){func(r *Realm) { r.Name = "other" }, func(r *Realm) { r.Replicas = -3 }, func(r *Realm) { r.Lease = 1 << 62 }, func(r *Realm) { r.Streams = 1 << 20 }} {
		bad := other
		spoil(&bad)
		_, err = kv.Put(bg, recordKey, bad.record())
		ok(t, err)
		if _, err := open(t, address, quick()).List(bg, store.ListOptions{}); !errors.Is(err, outcrop.ErrUnsupported) {
			t.Errorf("with the record %s a list says %v", bad.record(), err)
		}
	}
	_, err = kv.Put(bg, recordKey, other.record())
	ok(t, err)
}

func TestAnEpochThatNothingFollowsIsNotTaken(t *testing.T) {
	t.Parallel()
	c := natstest.Start(t, natstest.Options{})
	s := open(t, newRealm(t, c), quick())
	l := create(t, s, "s1")
	ok(t, storetest.Turn(l.Session(), 1))
	ok(t, l.Close(bg))
	lk, err := s.link(bg)
	ok(t, err)
	m, err := lk.lastMessage(bg, "s1")
	ok(t, err)
	m.Kind, m.Count, m.Seq, m.Body, m.Epoch = kindFree, 0, outcrop.Seq(m.Head.Events), nil, maxCounter
	_, err = lk.js.PublishMsg(bg, m.nats(lk.realm.subject("s1")))
	ok(t, err)
	if _, err := s.TakeOver(bg, "s1"); !errors.Is(err, outcrop.ErrDamaged) {
		t.Fatalf("it is taken: %v", err)
	}
	sameLog(t, s, l.Session())
}

func TestAListOfMoreSessionsThanAServerTellsAtOnce(t *testing.T) {
	t.Parallel()
	c := natstest.Start(t, natstest.Options{Lazy: true})
	address := c.Address("many")
	_, err := Init(bg, address, RealmOptions{Streams: 1, Single: true}, Options{})
	ok(t, err)
	s := open(t, address, Options{})
	const sessions = 1200 // a server tells of 1024 subjects at once
	g, ctx := errgroup.WithContext(bg)
	g.SetLimit(16)
	for i := range sessions {
		g.Go(func() error {
			return s.Put(ctx, storetest.Header(fmt.Sprint("s", i)), func(yield func(outcrop.Record, error) bool) {
				for r := range chunks(0, 1+i%7) {
					if !yield(r, nil) {
						return
					}
				}
			})
		})
	}
	ok(t, g.Wait())
	lk, err := s.link(bg)
	ok(t, err)
	if _, err := lk.lastsDirect(bg, lk.realm.stream(0), []string{lk.realm.subjects(0, "*")}, 1, func(raw) error { return nil }); !errors.Is(err, errTooMany) {
		t.Fatalf("the server tells of all at once: %v", err)
	}
	for range 2 {
		infos, err := s.List(bg, store.ListOptions{})
		ok(t, err)
		if len(infos) != sessions {
			t.Fatalf("%d sessions are listed, want %d", len(infos), sessions)
		}
		for _, in := range infos {
			var i int
			fmt.Sscanf(in.ID, "s%d", &i)
			if in.Events != int64(1+i%7) || in.Header.ID != in.ID || in.State != store.StateOK {
				t.Fatalf("listed is %+v", in)
			}
		}
		ok(t, s.Put(bg, storetest.Header("late"), func(func(outcrop.Record, error) bool) {}))
		infos, err = s.List(bg, store.ListOptions{})
		ok(t, err)
		if len(infos) != sessions+1 {
			t.Fatalf("%d sessions are listed after another one was put", len(infos))
		}
		h, err := s.Hold(bg, "late")
		ok(t, err)
		ok(t, h.HandOver(bg, filepath.Join(t.TempDir(), "out")))
		ok(t, h.Close())
	}
	// The objects and their messages are found among many as well.
	if got := sweep(t, s); got.Logs+got.Objects+got.Kept+len(got.Left) > 0 {
		t.Fatalf("swept %+v", got)
	}
}

func TestALongLogIsReadWholeWhateverBecomesOfItsConsumer(t *testing.T) {
	t.Parallel()
	c := natstest.Start(t, natstest.Options{Lazy: true})
	s := open(t, newRealm(t, c), quick())
	l, err := s.create(bg, storetest.Header("s1"))
	ok(t, err)
	const messages = fetchFirst + consumeFrom + 500
	for n := range outcrop.Seq(messages) {
		ok(t, l.Append(bg, chunks(2*n, 2)))
	}
	ok(t, l.Close())
	lk, err := s.link(bg)
	ok(t, err)
	st, err := lk.js.Stream(bg, lk.realm.stream(lk.realm.shard("s1")))
	ok(t, err)
	for _, spoil := range []bool{false, true} {
		sd, err := s.Read(bg, "s1")
		ok(t, err)
		n, spoilt := outcrop.Seq(0), false
		for r, err := range sd.Records() {
			ok(t, err)
			n = r.Last() + 1
			if spoil && !spoilt && n > 2*(fetchFirst+300) {
				spoilt = true
				for name := range st.ConsumerNames(bg).Name() {
					ok(t, st.DeleteConsumer(bg, name))
				}
			}
		}
		if n != 2*messages {
			t.Fatalf("%d events are read, want %d", n, 2*messages)
		}
	}
	// Who stops early leaves nothing behind.
	sd, err := s.Read(bg, "s1")
	ok(t, err)
	for r := range sd.Records() {
		if r.Seq > 2*(fetchFirst+10) {
			break
		}
	}
	until(t, func() bool {
		for range st.ConsumerNames(bg).Name() {
			return false
		}
		return true
	})
}
