package jsonl

import (
	"bytes"
	"errors"
	"iter"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/faultfs"
	"github.com/outcrop-dev/outcrop/store"
)

// recordsOf are the header and the records of a stored session.
func recordsOf(t *testing.T, s *Store, id string) (outcrop.Header, []outcrop.Record) {
	t.Helper()
	l, err := s.Read(bg, id)
	must(t, err)
	defer l.Close()
	var recs []outcrop.Record
	for r, err := range l.Records() {
		must(t, err)
		recs = append(recs, r)
	}
	return l.Header(), recs
}

func given(recs []outcrop.Record) iter.Seq2[outcrop.Record, error] {
	return func(yield func(outcrop.Record, error) bool) {
		for _, r := range recs {
			if !yield(r, nil) {
				return
			}
		}
	}
}

func digestOf(recs iter.Seq2[outcrop.Record, error]) (string, error) {
	var d store.Digest
	for r, err := range recs {
		if err != nil {
			return "", err
		}
		d.Add(r)
	}
	return d.Sum(), nil
}

// TestNoBitIsLostUnseen turns one bit of what the medium takes, wherever it is:
// the log is not published, and nothing is left of it.
func TestNoBitIsLostUnseen(t *testing.T) {
	both(t, func(t *testing.T, o Options) {
		src := root(t, Options{})
		session(t, src, "s1", 4)
		h, recs := recordsOf(t, src, "s1")
		want, err := digestOf(given(recs))
		must(t, err)
		rapid.Check(t, func(rt *rapid.T) {
			s := root(t, o)
			at, bit := rapid.IntRange(0, 4000).Draw(rt, "at"), rapid.IntRange(0, 7).Draw(rt, "bit")
			turned := false
			seen := 0
			s.disk = faulty(func(op faultfs.Op) (f faultfs.Fault) {
				if !toLog(op) || !strings.HasSuffix(op.Path, ".tmp") {
					return f
				}
				if !turned && at < seen+len(op.Data) {
					f.Instead = bytes.Clone(op.Data)
					f.Instead[at-seen] ^= 1 << bit
					turned = true
				}
				seen += len(op.Data)
				return f
			})
			err := s.Put(bg, h, given(recs))
			if err == nil {
				// Not every bit of a frame counts.
				l, err := s.Read(bg, "s1")
				if err != nil {
					rt.Fatalf("bit %d of byte %d, turned %v: %v", bit, at, turned, err)
				}
				defer l.Close()
				if got, err := digestOf(l.Records()); err != nil || got != want {
					rt.Fatalf("bit %d of byte %d, turned %v: it is another log: %v", bit, at, turned, err)
				}
			}
			if !turned && err != nil {
				rt.Fatal(err)
			}
			if err != nil && len(names(t, filepath.Dir(s.root))) != 0 {
				rt.Fatalf("left %v", names(t, filepath.Dir(s.root)))
			}
		})
	})
}

// TestWhatIsPutIsWhatIsRead gives records that were changed since they were read,
// or made by hand: what is published is what was given, or it is refused.
func TestWhatIsPutIsWhatIsRead(t *testing.T) {
	both(t, func(t *testing.T, o Options) {
		src := root(t, Options{})
		session(t, src, "s1", 3)
		h, all := recordsOf(t, src, "s1")
		rapid.Check(t, func(rt *rapid.T) {
			recs := slices.Clone(all)
			for range rapid.IntRange(0, 2).Draw(rt, "changes") {
				i := rapid.IntRange(0, len(recs)-1).Draw(rt, "which")
				if recs[i].Run != nil {
					continue
				}
				e := &recs[i].Event
				switch rapid.IntRange(0, 7).Draw(rt, "change") {
				case 0: // without its line
					*e = outcrop.Event{Type: e.Type, Seq: e.Seq, Time: e.Time, Data: e.Data, Sources: e.Sources, Op: e.Op, Ignorable: e.Ignorable}
				case 1: // by hand, and no JSON
					*e = outcrop.Event{Type: e.Type, Seq: e.Seq, Time: e.Time, Data: []byte(`{"turn":`)}
				case 2: // another spelling
					d, err := outcrop.DecodeEvent(append([]byte("{ "), e.AppendJSON(nil)[1:]...))
					if err == nil {
						*e = d
					}
				case 3: // a text that is not one event
					d, err := outcrop.DecodeEvent(append(slices.Clone(e.Line()), '}'))
					if err == nil {
						rt.Fatal("decoded")
					}
					d.Type, d.Seq = e.Type, e.Seq
					*e = d
				case 4:
					e.Seq++
				case 5:
					recs = slices.Delete(recs, i, i+1)
				case 6: // a line that says another type
					e.Type = outcrop.TypeTurnStart
				case 7: // half an old shape
					*e = outcrop.Event{Type: outcrop.TypeTurnStart, Seq: e.Seq, Time: e.Time, Data: []byte(`{"turn":1,"trigger":7}`)}
				}
			}
			want, _ := digestOf(given(recs))
			s := root(t, o)
			if err := s.Put(bg, h, given(recs)); err != nil {
				if _, err := s.Read(bg, "s1"); !errors.Is(err, outcrop.ErrNotFound) {
					rt.Fatalf("it was refused, and is there: %v", err)
				}
				return
			}
			l, err := s.Read(bg, "s1")
			if err != nil {
				rt.Fatal(err)
			}
			defer l.Close()
			if got, err := digestOf(l.Records()); err != nil || got != want {
				rt.Fatalf("what was published is not what was given: %v", err)
			}
		})
	})
}
