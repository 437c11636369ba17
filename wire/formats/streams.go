package formats

import (
	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
)

// streams is the step from format 2 to 1: the stream of an assistant/message
// becomes assistant/chunk events before it, which it cites; that of an
// assistant/attempt becomes chunks that nothing cites. The runs of a stream are
// the packed rows of format 0 without turn, step and seq.
//
// Format 1 tells in its header how many events were inherited, format 2 by the
// last session/end-seed that says so.
type streams struct {
	next *out
	seqs seqs
	cut  outcrop.Seq // of that mark, -1 without one
}

func (s *streams) gap(n outcrop.Seq) {
	s.seqs.skip(n)
	s.next.gap(n)
}

func (s *streams) add(e outcrop.Event) (bool, *outcrop.Error) {
	switch e.Type {
	case typeAttempt:
		return s.attempt(e)
	case outcrop.TypeAssistantMessage:
		var r reply
		if r.read(e.Data); jsonwire.Kind(r.stream) == '[' {
			return s.message(e, &r)
		}
	}
	s.seqs.begin(&e)
	data := []byte(e.Data)
	if e.Type == outcrop.TypeEndSeed && string(get(data, "inherited")) == "true" {
		s.cut = s.seqs.next
		data = without(data, "inherited")
	}
	return s.pass(e, data)
}

func (s *streams) pass(e outcrop.Event, data []byte) (bool, *outcrop.Error) {
	e, err := s.seqs.pass(e, e.Type, data)
	if err != nil {
		s.seqs.free()
		s.next.gap(1)
		return true, err
	}
	return s.next.add(e)
}

// reply is the data of an assistant/message or an assistant/attempt, taken apart.
type reply struct {
	turn, step []byte
	stream     []byte
	usage      []byte   // of the data
	rest       []member // all but the stream
	room       [8]member

	reported []byte // the last usage in the stream
}

func (r *reply) read(data []byte) {
	r.turn, r.step = []byte("0"), []byte("0")
	r.rest = r.room[:0]
	if jsonwire.Kind(data) != '{' {
		return
	}
	for k, v := range jsonwire.Members(data) {
		switch jsonwire.Key(k) {
		case "turn":
			r.turn = v
		case "step":
			r.step = v
		case "usage":
			r.usage = v
		case "stream":
			r.stream = v
			continue
		}
		r.rest = append(r.rest, member{name: k, value: v})
	}
}

// attempt passes on the chunks of an attempt that gave no message.
func (s *streams) attempt(e outcrop.Event) (bool, *outcrop.Error) {
	s.seqs.begin(&e)
	var r reply
	r.read(e.Data)
	first := s.seqs.next
	more := s.chunks(&e, &r)
	if s.seqs.next == first {
		s.seqs.drop()
	} else {
		s.seqs.place(s.seqs.next - 1)
	}
	return more, nil
}

// message passes on the chunks of a message, then the message.
func (s *streams) message(e outcrop.Event, r *reply) (bool, *outcrop.Error) {
	s.seqs.begin(&e)
	// What the message names is judged first, so that one that is refused
	// leaves nothing behind.
	op, err := s.seqs.op(&e)
	if err != nil {
		s.seqs.free()
		s.next.gap(1)
		return true, err
	}
	first := s.seqs.next
	if !s.chunks(&e, r) {
		return false, nil
	}
	if r.usage == nil && r.reported != nil {
		r.rest = append(r.rest, member{name: []byte("usage"), value: r.reported})
	}
	at := s.seqs.take()
	s.seqs.place(at)
	return s.next.add(e.Recast(e.Type, at, object(r.rest), outcrop.SourceRange(first, at-1), op))
}

// chunks passes on the chunks of a stream.
func (s *streams) chunks(e *outcrop.Event, r *reply) bool {
	for v := range jsonwire.Elements(r.stream) {
		if !s.entry(e, r, v) {
			return false
		}
	}
	return true
}

// entry is one of a stream, taken apart.
type entry struct {
	kind, time, chunk          []byte // of a chunk
	time0, index, dt, id, name []byte // of a run
	texts, args                []byte
}

func (n *entry) read(v []byte) {
	if jsonwire.Kind(v) != '{' {
		return
	}
	for k, m := range jsonwire.Members(v) {
		switch string(k) {
		case "type":
			n.kind = m
		case "time":
			n.time = m
		case "chunk":
			n.chunk = m
		case "time0":
			n.time0 = m
		case "index":
			n.index = m
		case "dt":
			n.dt = m
		case "id":
			n.id = m
		case "name":
			n.name = m
		case "texts":
			n.texts = m
		case "args":
			n.args = m
		}
	}
}

// entry passes on one entry of a stream. What is none that is known becomes a
// chunk as it stands.
func (s *streams) entry(e *outcrop.Event, r *reply, v []byte) bool {
	var n entry
	n.read(v)
	if n.chunk != nil && jsonwire.TextIs(n.kind, "chunk") {
		if len(n.chunk) < 512 && jsonwire.TextIs(get(n.chunk, "type"), "usage") {
			r.reported = get(n.chunk, "usage")
		}
		return s.chunk(e, r, n.time, n.chunk)
	}
	if run, ok := s.run(r, &n); ok {
		s.seqs.next += outcrop.Seq(run.Len)
		if run.Len > 2 {
			return s.next.row(&run)
		}
		for ev := range run.Events() {
			// A writer makes no row of so few.
			if more, _ := s.next.add(ev); !more {
				return false
			}
		}
		return true
	}
	return s.chunk(e, r, nil, v)
}

func (s *streams) chunk(e *outcrop.Event, r *reply, time, chunk []byte) bool {
	data := make([]byte, 0, len(r.turn)+len(r.step)+len(chunk)+32)
	data = jsonwire.AppendRawMember(append(data, '{'), "turn", r.turn)
	data = jsonwire.AppendRawMember(data, "step", r.step)
	data = append(jsonwire.AppendRawMember(data, "chunk", chunk), '}')
	c := e.Recast(outcrop.TypeAssistantChunk, s.seqs.take(), data, outcrop.NoSources, outcrop.SurfaceOp{})
	c.Ignorable = false
	if n, ok := jsonwire.Int(time); ok && time != nil {
		c.Time = n
	}
	more, _ := s.next.add(c)
	return more
}

// run makes a packed row of a run.
func (s *streams) run(r *reply, n *entry) (outcrop.Run, bool) {
	call := jsonwire.TextIs(n.kind, "tool-call-chunks")
	if n.time0 == nil || !call && !jsonwire.TextIs(n.kind, "text-chunks") && !jsonwire.TextIs(n.kind, "reasoning-chunks") {
		return outcrop.Run{}, false
	}
	line := make([]byte, 0, len(n.dt)+len(n.texts)+len(n.args)+len(n.id)+len(n.name)+len(r.turn)+len(r.step)+144)
	line = jsonwire.AppendRawMember(append(line, '{'), "type", n.kind)
	line = jsonwire.AppendIntMember(line, "seq0", int64(s.seqs.next))
	line = jsonwire.AppendRawMember(line, "time0", n.time0)
	line = append(jsonwire.AppendMember(line, "data"), '{')
	for _, m := range [...]struct {
		name  string
		value []byte
	}{{"turn", r.turn}, {"step", r.step}, {"index", n.index}, {"dt", n.dt}, {"id", n.id}, {"name", n.name}, {"texts", n.texts}, {"args", n.args}} {
		if m.value != nil {
			line = jsonwire.AppendRawMember(line, m.name, m.value)
		}
	}
	run, err := outcrop.DecodeRun(append(line, '}', '}'))
	return run, err == nil
}
