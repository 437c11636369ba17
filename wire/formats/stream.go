package formats

import (
	"bytes"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
)

// stream makes an embedded stream of assistant/chunk events. Deltas of one block
// that follow each other become a run.
type stream struct {
	out []byte // entries, joined
	run delta  // the run that goes on
	dt  []byte
	txt []byte
	n   int
	at  int64 // time of the last delta
}

// delta is what the deltas of a run have in common.
type delta struct {
	kind            string
	index, id, name []byte
	time            int64
}

func (s *stream) add(e *outcrop.Event) {
	chunk := get(e.Data, "chunk")
	d, text, ok := deltaOf(chunk)
	if !ok {
		s.flush()
		s.comma()
		s.out = append(s.out, `{"type":"chunk"`...)
		s.out = jsonwire.AppendIntMember(s.out, "time", e.Time)
		s.out = append(jsonwire.AppendRawMember(s.out, "chunk", orNull(chunk)), '}')
		return
	}
	if s.n > 0 && (d.kind != s.run.kind || !bytes.Equal(d.index, s.run.index) || !bytes.Equal(d.id, s.run.id) || !bytes.Equal(d.name, s.run.name)) {
		s.flush()
	}
	if s.n == 0 {
		s.run, s.run.time, s.dt, s.txt = d, e.Time, s.dt[:0], s.txt[:0]
	} else {
		if s.n > 1 {
			s.dt = append(s.dt, ',')
		}
		s.dt = jsonwire.AppendInt(s.dt, e.Time-s.at)
		s.txt = append(s.txt, ',')
	}
	s.txt = append(s.txt, text...)
	s.at = e.Time
	s.n++
}

func orNull(v []byte) []byte {
	if v == nil {
		return []byte("null")
	}
	return v
}

// deltaOf takes the chunk of a delta apart; false for one of another kind or with
// members of its own.
func deltaOf(chunk []byte) (d delta, text []byte, ok bool) {
	if jsonwire.Kind(chunk) != '{' {
		return d, nil, false
	}
	var typ []byte
	for k, v := range jsonwire.Members(chunk) {
		switch string(k) {
		case "type":
			typ = v
		case "index":
			d.index = v
		case "text", "argumentsDelta":
			text = v
		case "id":
			d.id = v
		case "name":
			d.name = v
		default:
			return d, nil, false
		}
	}
	switch {
	case jsonwire.TextIs(typ, "text-delta"):
		d.kind = "text-chunks"
	case jsonwire.TextIs(typ, "reasoning-delta"):
		d.kind = "reasoning-chunks"
	case jsonwire.TextIs(typ, "tool-call-delta"):
		d.kind = "tool-call-chunks"
	default:
		return d, nil, false
	}
	call := d.kind == "tool-call-chunks"
	return d, text, jsonwire.Kind(text) == '"' && jsonwire.Kind(d.index) == '0' &&
		call == (jsonwire.Kind(d.id) == '"') && (d.name == nil || call && jsonwire.Kind(d.name) == '"')
}

func (s *stream) comma() {
	if len(s.out) > 0 {
		s.out = append(s.out, ',')
	}
}

func (s *stream) flush() {
	if s.n == 0 {
		return
	}
	s.comma()
	b := jsonwire.AppendStringMember(append(s.out, '{'), "type", s.run.kind)
	b = jsonwire.AppendIntMember(b, "time0", s.run.time)
	b = jsonwire.AppendRawMember(b, "index", s.run.index)
	b = append(append(append(b, `,"dt":[`...), s.dt...), ']')
	if s.run.id != nil {
		b = jsonwire.AppendRawMember(b, "id", s.run.id)
		if s.run.name != nil {
			b = jsonwire.AppendRawMember(b, "name", s.run.name)
		}
		b = append(b, `,"args":[`...)
	} else {
		b = append(b, `,"texts":[`...)
	}
	s.out = append(append(b, s.txt...), ']', '}')
	s.n = 0
}

// json is the stream as a list.
func (s *stream) json() []byte {
	if s == nil {
		return []byte("[]")
	}
	s.flush()
	out := make([]byte, 0, len(s.out)+2)
	return append(append(append(out, '['), s.out...), ']')
}
