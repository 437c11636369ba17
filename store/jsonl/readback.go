package jsonl

import (
	"fmt"
	"hash/maphash"
	"iter"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/wire"
)

// tally is what a whole log that is written and read back must be the same in:
// the text of its events, rows expanded, under a hash whose key is made anew for
// each comparison, and how many there are.
type tally struct {
	h     maphash.Hash
	next  outcrop.Seq
	n     int
	plain bool // what has the same text has the same events, see wire.Plainly
	buf   []byte
}

func newTally() *tally {
	t := &tally{plain: true}
	t.h.SetSeed(maphash.MakeSeed())
	return t
}

// other is an empty tally to compare with this one.
func (t *tally) other() *tally {
	o := &tally{}
	o.h.SetSeed(t.h.Seed())
	return o
}

func (t *tally) line(text []byte) {
	t.h.Write(text)
	t.h.WriteByte('\n')
	t.n++
}

func (t *tally) add(r *outcrop.Record) {
	switch {
	case r.Run != nil:
		for e := range r.Run.Events() {
			t.event(&e)
		}
	case r.Line() != nil:
		t.line(r.Line())
	default:
		t.event(&r.Event)
	}
}

func (t *tally) event(e *outcrop.Event) {
	t.buf = e.AppendJSON(t.buf[:0])
	t.line(t.buf)
}

// through passes a stream on and adds what goes by.
func (t *tally) through(recs iter.Seq2[outcrop.Record, error]) iter.Seq2[outcrop.Record, error] {
	return func(yield func(outcrop.Record, error) bool) {
		for r, err := range recs {
			if err == nil {
				t.add(&r)
				t.plain = t.plain && (r.Run != nil && r.Seq == t.next || wire.Plainly(&r, t.next))
				t.next = r.Last() + 1
			}
			if !yield(r, err) {
				return
			}
		}
	}
}

// compare reads the temporary file back and looks whether it says what was given.
// Where it is known that the same text is the same events, the text is compared,
// and rows are decoded; else every event is.
func (n *newLog) compare(given *tally) error {
	l := n.l
	wrong := func(err error, msg string) error {
		return &outcrop.Error{Op: "create", Session: l.header.ID, Path: n.temp.Name(), Seq: -1, Offset: -1, Err: err, Msg: msg}
	}
	back, err := openLog(l.disk, n.temp.Name(), l.enc)
	if err != nil {
		return err
	}
	defer back.Close()
	if string(back.r.HeaderLine()) != string(l.header.Line()) {
		return wrong(outcrop.ErrDamaged, "the header read back is not the one written")
	}
	got := given.other()
	if given.plain && back.r.Format() == 0 {
		for line, err := range back.r.Text() {
			if err == nil {
				err = got.text(line)
			}
			if err != nil {
				return at(n.temp.Name(), err)
			}
		}
	} else {
		for r, err := range back.Records() {
			if err != nil {
				return err
			}
			got.add(&r)
		}
		if back.Tail().Torn {
			return wrong(outcrop.ErrDamaged, "the log read back ends in a torn tail")
		}
	}
	if got.n != given.n || got.h.Sum64() != given.h.Sum64() {
		return wrong(outcrop.ErrDamaged, fmt.Sprintf("%d events read back are not the %d written", got.n, given.n))
	}
	return nil
}

// text takes a line that was read back.
func (t *tally) text(line []byte) error {
	if !outcrop.IsRow(line) {
		t.line(line)
		return nil
	}
	run, err := outcrop.DecodeRun(line)
	if err != nil {
		return err
	}
	for e := range run.Events() {
		t.event(&e)
	}
	return nil
}
