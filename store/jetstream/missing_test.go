package jetstream

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/jetstream/natstest"
	"github.com/outcrop-dev/outcrop/store/storetest"
)

// spread makes a session in each stream of a realm, and returns their ids by
// stream.
func spread(t testing.TB, s *Store) (ids []string) {
	t.Helper()
	lk, err := s.link(bg)
	ok(t, err)
	ids = make([]string, lk.realm.Streams)
	for n := 0; slices.Contains(ids, ""); n++ {
		id := fmt.Sprint("s", n)
		if at := &ids[lk.realm.shard(id)]; *at == "" {
			*at = id
			l := create(t, s, id)
			ok(t, storetest.Turn(l.Session(), 1))
			ok(t, l.Close(bg))
		}
	}
	return ids
}

func TestAStreamThatIsMissingHidesNoOther(t *testing.T) {
	t.Parallel()
	c := natstest.Start(t, natstest.Options{Lazy: true})
	address := c.Address("lacking")
	_, err := Init(bg, address, RealmOptions{Streams: 3, Single: true, Lease: 2 * time.Second}, Options{})
	ok(t, err)
	s := open(t, address, quick())
	ids := spread(t, s)
	lk, err := s.link(bg)
	ok(t, err)
	ok(t, lk.js.DeleteStream(bg, lk.realm.stream(1)))
	for _, full := range []bool{false, true} {
		infos, err := s.List(bg, store.ListOptions{Full: full})
		ok(t, err)
		var got []string
		lacks := 0
		for _, in := range infos {
			switch {
			case in.ID != "":
				got = append(got, in.ID)
				if in.State != store.StateOK || in.Events != 15 {
					t.Errorf("%s is listed as %+v", in.ID, in)
				}
			case in.State == store.StateDamaged && in.Path == "stream "+lk.realm.stream(1) && strings.Contains(in.Reason, lk.realm.stream(1)+" is missing"):
				lacks++
			default:
				t.Errorf("listed is %+v", in)
			}
		}
		slices.Sort(got)
		want := []string{ids[0], ids[2]}
		slices.Sort(want)
		if !slices.Equal(got, want) || lacks != 1 {
			t.Fatalf("listed are %v and %d missing streams", got, lacks)
		}
	}
	// A session that may have been in it is not one that is not there.
	if _, err := s.Read(bg, ids[1]); err == nil || strings.Contains(err.Error(), "no session") || !strings.Contains(err.Error(), "missing") {
		t.Fatalf("a session of the missing stream is read: %v", err)
	}
	if id, err := store.Resolve(bg, s, store.Last); err != nil || id == ids[1] {
		t.Fatalf("the last session is %q, %v", id, err)
	}
	// What to do about it is said, and does it.
	r, err := s.Check(bg, nil)
	ok(t, err)
	again := "outcrop realm init " + address + " --streams 3 --lease 2s --single makes an empty one"
	if r.OK() || !slices.ContainsFunc(r.Findings, func(f Finding) bool {
		return f.Where == "stream "+lk.realm.stream(1) && strings.HasPrefix(f.What, "it is missing") && strings.Contains(f.Hint, again)
	}) {
		t.Fatalf("found %+v", r.Findings)
	}
	_, err = Init(bg, address, RealmOptions{Streams: 3, Single: true, Lease: 2 * time.Second}, Options{})
	ok(t, err)
	infos, err := s.List(bg, store.ListOptions{})
	ok(t, err)
	if len(infos) != 2 || slices.ContainsFunc(infos, func(in store.Info) bool { return in.ID == "" }) {
		t.Fatalf("when it is made anew are listed %+v", infos)
	}

	// Without the keys of the workers nobody can open a session; they are listed.
	ok(t, lk.js.DeleteStream(bg, "KV_"+workersBucket(lk.realm.Name)))
	infos, err = s.List(bg, store.ListOptions{})
	ok(t, err)
	if len(infos) != 3 || infos[2].ID != "" || !strings.Contains(infos[2].Reason, "who holds sessions is unknown") {
		t.Fatalf("without the bucket of the workers are listed %+v", infos)
	}
	r, err = s.Check(bg, nil)
	ok(t, err)
	if r.OK() || !slices.ContainsFunc(r.Findings, func(f Finding) bool { return strings.Contains(f.What, "no session can be opened") }) {
		t.Fatalf("found %+v", r.Findings)
	}
	_, err = Init(bg, address, RealmOptions{Streams: 3, Single: true, Lease: 2 * time.Second}, Options{})
	ok(t, err)
	l := reopen(t, open(t, address, quick()), ids[0])
	ok(t, l.Close(bg))
}

// A removal of attachments must know of sessions that it cannot see.
func TestAStreamThatIsMissingIsADamagedEntryForWhoeverCounts(t *testing.T) {
	s, err := New("nats://127.0.0.1:1/x", Options{})
	ok(t, err)
	lk := &link{s: s}
	h := lk.lacking("outcrop_x_log_0", "so")
	in := s.info(&h)
	if in.State != store.StateDamaged || in.ID != "" || in.Events != -1 || in.Due != nil || in.Header.ID != (outcrop.Header{}).ID {
		t.Fatalf("%+v", in)
	}
}
