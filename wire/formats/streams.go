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
		if jsonwire.Kind(get(e.Data, "stream")) == '[' {
			return s.message(e)
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

// attempt passes on the chunks of an attempt that gave no message.
func (s *streams) attempt(e outcrop.Event) (bool, *outcrop.Error) {
	s.seqs.begin(&e)
	first := s.seqs.next
	more := s.chunks(&e)
	if s.seqs.next == first {
		s.seqs.drop()
	} else {
		s.seqs.place(s.seqs.next - 1)
	}
	return more, nil
}

// message passes on the chunks of a message, then the message.
func (s *streams) message(e outcrop.Event) (bool, *outcrop.Error) {
	s.seqs.begin(&e)
	// What the message names is judged first, so that one that is refused
	// leaves nothing behind.
	if _, err := s.seqs.op(&e); err != nil {
		s.seqs.free()
		s.next.gap(1)
		return true, err
	}
	first := s.seqs.next
	usage := lastUsage(get(e.Data, "stream"))
	if !s.chunks(&e) {
		return false, nil
	}
	data := without(e.Data, "stream")
	if usage != nil && get(data, "usage") == nil {
		data = with(data, "usage", usage)
	}
	e = e.Recast(e.Type, e.Seq, data, outcrop.NoSources, e.Op)
	op, _ := s.seqs.op(&e)
	at := s.seqs.take()
	s.seqs.place(at)
	return s.next.add(e.Recast(e.Type, at, data, outcrop.SourceRange(first, at-1), op))
}

// chunks passes on the chunks of a stream.
func (s *streams) chunks(e *outcrop.Event) bool {
	turn, step := get(e.Data, "turn"), get(e.Data, "step")
	if turn == nil {
		turn = []byte("0")
	}
	if step == nil {
		step = []byte("0")
	}
	for entry := range jsonwire.Elements(get(e.Data, "stream")) {
		if !s.entry(e, turn, step, entry) {
			return false
		}
	}
	return true
}

// entry passes on one entry of a stream. What is none that is known becomes a
// chunk as it stands.
func (s *streams) entry(e *outcrop.Event, turn, step, entry []byte) bool {
	if chunk := get(entry, "chunk"); chunk != nil && jsonwire.TextIs(get(entry, "type"), "chunk") {
		return s.chunk(e, turn, step, get(entry, "time"), chunk)
	}
	if run, ok := s.run(turn, step, entry); ok {
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
	return s.chunk(e, turn, step, nil, entry)
}

func (s *streams) chunk(e *outcrop.Event, turn, step, time, chunk []byte) bool {
	data := make([]byte, 0, len(turn)+len(step)+len(chunk)+32)
	data = jsonwire.AppendRawMember(append(data, '{'), "turn", turn)
	data = jsonwire.AppendRawMember(data, "step", step)
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
func (s *streams) run(turn, step, entry []byte) (outcrop.Run, bool) {
	kind, ok := jsonwire.Text(get(entry, "type"))
	if !ok || kind != "text-chunks" && kind != "reasoning-chunks" && kind != "tool-call-chunks" {
		return outcrop.Run{}, false
	}
	line := make([]byte, 0, len(entry)+len(turn)+len(step)+64)
	line = jsonwire.AppendStringMember(append(line, '{'), "type", kind)
	line = jsonwire.AppendIntMember(line, "seq0", int64(s.seqs.next))
	time0 := get(entry, "time0")
	if time0 == nil {
		return outcrop.Run{}, false
	}
	line = jsonwire.AppendRawMember(line, "time0", time0)
	line = runData(jsonwire.AppendMember(line, "data"), turn, step, entry)
	run, err := outcrop.DecodeRun(append(line, '}'))
	return run, err == nil
}

// runData appends the data of a row.
func runData(dst, turn, step, entry []byte) []byte {
	dst = jsonwire.AppendRawMember(append(dst, '{'), "turn", turn)
	dst = jsonwire.AppendRawMember(dst, "step", step)
	for _, name := range [...]string{"index", "dt", "id", "name", "texts", "args"} {
		if v := get(entry, name); v != nil {
			dst = jsonwire.AppendRawMember(dst, name, v)
		}
	}
	return append(dst, '}')
}

// lastUsage is the usage that a stream reported last, nil when it reported none.
func lastUsage(stream []byte) (usage []byte) {
	for entry := range jsonwire.Elements(stream) {
		if chunk := get(entry, "chunk"); jsonwire.TextIs(get(chunk, "type"), "usage") {
			usage = get(chunk, "usage")
		}
	}
	return usage
}
