package redact

import (
	"iter"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
)

// Records are the records of the log without what is taken out, and
// outcrop/redacted behind them, made at the time now (Unix milliseconds).
func (p *Plan) Records(reason string, now int64) iter.Seq2[outcrop.Record, error] {
	return func(yield func(outcrop.Record, error) bool) {
		for r := range p.log.Records(0) {
			if !p.each(r, yield) {
				return
			}
		}
		yield(outcrop.Record{Event: outcrop.Event{Type: outcrop.TypeOutcropRedacted, Seq: outcrop.Seq(p.log.Len()), Time: now,
			Data: p.data(reason), Ignorable: true}}, nil)
	}
}

func (p *Plan) each(r outcrop.Record, yield func(outcrop.Record, error) bool) bool {
	if r.Run == nil {
		return yield(outcrop.Record{Event: p.event(r.Event)}, nil)
	}
	touched := false
	for seq := r.Run.First; seq <= r.Run.Last() && !touched; seq++ {
		touched = p.changed[seq] != nil
	}
	if !touched {
		return yield(r, nil)
	}
	// The store packs them again.
	for e := range r.Run.Events() {
		if !yield(outcrop.Record{Event: p.event(e)}, nil) {
			return false
		}
	}
	return true
}

func (p *Plan) event(e outcrop.Event) outcrop.Event {
	data, ok := p.changed[e.Seq]
	if !ok {
		return e
	}
	return outcrop.Event{Type: e.Type, Seq: e.Seq, Time: e.Time, Data: data, Sources: e.Sources, Op: e.Op, Ignorable: e.Ignorable}
}

func (p *Plan) data(reason string) []byte {
	b := jsonwire.AppendMember([]byte{'{'}, "seqs")
	b = append(b, '[')
	for i, seq := range p.Seqs {
		if i > 0 {
			b = append(b, ',')
		}
		b = jsonwire.AppendInt(b, int64(seq))
	}
	b = append(b, ']')
	return append(jsonwire.AppendStringMember(b, "reason", reason), '}')
}

// Check reads the result as a store will and compares it with what was there:
// the same events at the same seqs, admitted, with the same surface. The error
// is a fault of this package, or of a log that it does not understand; nothing
// is to be written then.
func (p *Plan) Check(h outcrop.Header, recs iter.Seq2[outcrop.Record, error]) error {
	s, err := outcrop.Restore(h, decoded(recs), outcrop.Options{})
	if err != nil {
		return err
	}
	want, err := outcrop.FoldSurface(p.log.Records(0))
	if err != nil {
		return err
	}
	got := s.Surface().Nodes()
	same := len(got) == len(want.Nodes)
	for i := 0; same && i < len(got); i++ {
		same = got[i] == want.Nodes[i]
	}
	for e := range outcrop.Events(p.log, 0) {
		if !same || e.Seq >= outcrop.Seq(s.Log().Len()) {
			return refuse(e.Seq, "REDACT_SHAPE", "the redacted log would not be the same log", "nothing was changed")
		}
		n := s.Log().At(e.Seq)
		if n.Type != e.Type || n.Time != e.Time || n.Op != e.Op || string(n.Sources.JSON()) != string(e.Sources.JSON()) {
			return refuse(e.Seq, "REDACT_SHAPE", "the event would lose more than its content", "nothing was changed")
		}
	}
	return nil
}

// decoded reads events again from the text that a store gets.
func decoded(recs iter.Seq2[outcrop.Record, error]) iter.Seq2[outcrop.Record, error] {
	return func(yield func(outcrop.Record, error) bool) {
		for r, err := range recs {
			if err == nil && r.Run == nil && r.Line() == nil {
				r.Event, err = outcrop.DecodeEvent(r.AppendJSON(nil))
			}
			if !yield(r, err) {
				return
			}
		}
	}
}
