package jetstream

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/doctor"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/jetstream/natstest"
	"github.com/outcrop-dev/outcrop/store/storetest"
)

// verified is what the doctor says about a session.
func verified(t testing.TB, s *Store, id string) ([]doctor.Finding, *doctor.Summary) {
	t.Helper()
	found, sum := doctor.Verify(bg, doctor.Target{Name: id, Open: func(ctx context.Context) (store.Stored, error) { return s.Read(ctx, id) }}, doctor.Options{})
	return slices.Collect(found), sum
}

func TestEachDamageIsAFindingWithACodeAndWhatComesBeforeItIsRead(t *testing.T) {
	t.Parallel()
	c := natstest.Start(t, natstest.Options{Lazy: true, MaxPayload: 64 << 10})
	s := open(t, newRealm(t, c), quick())
	lk, err := s.link(bg)
	ok(t, err)
	// following is a message that could come next.
	following := func(last message) message {
		last.Kind, last.Seq, last.Count, last.Prev, last.Owner, last.Refs = kindBatch, outcrop.Seq(last.Head.Events), 1, last.Chain, "", false
		last.Head.Events++
		return last
	}
	sealed := func(m message) message {
		m.Chain = m.next()
		return m
	}
	for _, d := range []struct {
		name, code string
		make       func(m message) message
		spoil      func(fields map[string][]string)
	}{
		{"a field", "REALM_FIELDS", sealed, func(f map[string][]string) { f[fieldEpoch] = []string{"-1"} }},
		{"the head", "REALM_FIELDS", sealed, func(f map[string][]string) { f[fieldHead] = []string{"{"} }},
		{"no field at all", "REALM_FIELDS", sealed, func(f map[string][]string) { clear(f) }},
		{"the body", "REALM_DIGEST", func(m message) message { m.Body = []byte("?"); return m }, nil},
		{"the text", "FRAME_DECODE", func(m message) message { m.Body = []byte("?"); return sealed(m) }, nil},
		{"the end of the text", "LINE_NO_NEWLINE", func(m message) message {
			z, err := encoder()
			ok(t, err)
			m.Body = z.EncodeAll([]byte("{}"), nil)
			return sealed(m)
		}, nil},
		{"the list of objects", "REALM_OBJECT", func(m message) message { m.Refs, m.Body = true, []byte("{}\n"); return sealed(m) }, nil},
		{"an object", "REALM_OBJECT", func(m message) message {
			m.Refs, m.Body = true, manifest([]piece{{Object: "b.nothing", SHA256: strings.Repeat("0", 64), Bytes: 1, Count: 1}})
			return sealed(m)
		}, nil},
		{"the digest of what precedes", "SEQ_GAP", func(m message) message { m.Prev[0]++; return sealed(m) }, nil},
		{"the seq", "SEQ_GAP", func(m message) message { m.Seq++; m.Head.Events++; return sealed(m) }, nil},
	} {
		for _, behind := range []bool{false, true} { // another message stands behind it
			id := strings.ReplaceAll(d.name, " ", "-")
			if behind {
				id += "-inside"
			}
			l := create(t, s, id)
			ok(t, storetest.Turn(l.Session(), 1))
			ok(t, l.Close(bg))
			ms := stored(t, s, id)
			m := d.make(following(ms[len(ms)-1]))
			out := m.nats(m.Subject)
			if d.spoil != nil {
				d.spoil(out.Header)
			}
			_, err := lk.js.PublishMsg(bg, out)
			ok(t, err)
			if behind {
				next := following(m)
				next.Body = []byte("?")
				next = sealed(next)
				_, err := lk.js.PublishMsg(bg, next.nats(m.Subject))
				ok(t, err)
			}
			want := d.code
			if d.name == "the head" && behind {
				want = "SEQ_GAP" // only the last message is asked for the head: the body has no event
			}
			found, sum := verified(t, s, id)
			if len(found) != 1 || string(found[0].Code) != want || found[0].Severity != doctor.SeverityError || found[0].Seq != 15 || found[0].Hint == "" || found[0].Message == "" {
				t.Errorf("%s: found %+v", id, found)
			}
			if sum.OK || sum.Err != nil || sum.Events != 15 || sum.Turns != 1 || sum.Format != "dsh-v0" {
				t.Errorf("%s: %+v", id, sum)
			}
			if _, err := store.Open(bg, s, id, store.Options{}); !errors.Is(err, outcrop.ErrDamaged) {
				t.Errorf("%s: it is opened: %v", id, err)
			}
			// What is good can be taken into a new session.
			_, err = store.Fork(bg, s, id, 14, store.Child{ID: id + "-child"})
			ok(t, err)
			if found, sum := verified(t, s, id+"-child"); !sum.OK || sum.Events != 16 {
				t.Errorf("%s: the fork is %+v, %v", id, sum, found)
			}
			if err := store.Copy(bg, open(t, newRealm(t, c), quick()), s, id); !errors.Is(err, outcrop.ErrDamaged) {
				t.Errorf("%s: it is copied: %v", id, err)
			}
		}
	}
	// Nothing good stands before the damage.
	_, err = lk.js.Publish(bg, lk.realm.subject("nothing"), []byte("?"))
	ok(t, err)
	found, sum := verified(t, s, "nothing")
	if len(found) != 1 || found[0].Code != "REALM_FIELDS" || sum.OK || outcrop.CodeOf(sum.Err) != "REALM_FIELDS" {
		t.Errorf("found %+v, %+v", found, sum)
	}
}
