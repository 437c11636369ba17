package wire

import (
	"bytes"
	"math"
	"strconv"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
)

// minRun is the least number of events in a row that a writer makes.
const minRun = 3

// maxRow is about how many bytes of strings go into one row, so that a row stays
// far below MaxLine.
const maxRow = MaxLine / 8

// packer turns runs of chunk deltas into rows. Two events wait until the third
// shows whether there is a run.
type packer struct {
	out *[]byte

	n     int // events of the run so far; 0: none
	head  delta
	last  outcrop.Seq
	time  int64
	wait  [minRun - 1]outcrop.Event
	dt    []byte // the row's time differences, joined
	texts []byte // the row's strings, joined
}

// delta is a chunk delta taken apart: spans of its JSON text, each as it
// stands there.
type delta struct {
	kind                         byte // 't', 'r', 'c'
	turn, step, index, id, named []byte
	text                         []byte
}

func (p *packer) reset(out *[]byte) {
	p.out, p.n = out, 0
}

// add takes the next event if it is one that can stand in a row.
func (p *packer) add(e *outcrop.Event) bool {
	d, ok := packable(e)
	if !ok {
		return false
	}
	if p.n > 0 && (!p.goesOn(e, &d) || len(p.texts)+len(d.text) > maxRow) {
		p.flush()
	}
	if p.n > 0 {
		diff := e.Time - p.time
		if p.n > 1 {
			p.dt = append(p.dt, ',')
		}
		p.dt = jsonwire.AppendInt(p.dt, diff)
		p.texts = append(p.texts, ',')
	} else {
		p.head = d
		p.dt, p.texts = p.dt[:0], p.texts[:0]
	}
	p.texts = append(p.texts, d.text...)
	if p.n < len(p.wait) {
		p.wait[p.n] = *e
	}
	p.n++
	p.last, p.time = e.Seq, e.Time
	return true
}

// goesOn reports whether an event continues the run. Spans are compared as
// text, so that the row gives back each spelling.
func (p *packer) goesOn(e *outcrop.Event, d *delta) bool {
	h := &p.head
	diff := e.Time - p.time // both are safe integers: no overflow
	return d.kind == h.kind && e.Seq == p.last+1 && diff >= -jsonwire.MaxSafe && diff <= jsonwire.MaxSafe &&
		bytes.Equal(d.turn, h.turn) && bytes.Equal(d.step, h.step) && bytes.Equal(d.index, h.index) &&
		bytes.Equal(d.id, h.id) && (d.named == nil) == (h.named == nil) && bytes.Equal(d.named, h.named)
}

// flush writes what was taken: a row, or the events as they are.
func (p *packer) flush() {
	n := p.n
	p.n = 0
	if n < minRun {
		for i := range n {
			*p.out = appendLine(*p.out, &p.wait[i])
			p.wait[i] = outcrop.Event{}
		}
		return
	}
	h, b := &p.head, *p.out
	switch h.kind {
	case 't':
		b = append(b, `{"type":"text-chunks","seq0":`...)
	case 'r':
		b = append(b, `{"type":"reasoning-chunks","seq0":`...)
	default:
		b = append(b, `{"type":"tool-call-chunks","seq0":`...)
	}
	first := &p.wait[0]
	b = strconv.AppendInt(b, int64(first.Seq), 10)
	b = append(b, `,"time0":`...)
	b = strconv.AppendInt(b, first.Time, 10)
	b = append(append(b, `,"data":{"turn":`...), h.turn...)
	b = append(append(b, `,"step":`...), h.step...)
	b = append(append(b, `,"index":`...), h.index...)
	b = append(append(b, `,"dt":[`...), p.dt...)
	b = append(b, ']')
	if h.kind == 'c' {
		b = append(append(b, `,"id":`...), h.id...)
		if h.named != nil {
			b = append(append(b, `,"name":`...), h.named...)
		}
		b = append(b, `,"args":[`...)
	} else {
		b = append(b, `,"texts":[`...)
	}
	b = append(append(b, p.texts...), ']', '}', '}', '\n')
	*p.out = b
	p.head = delta{}
	clear(p.wait[:])
}

// packable takes a chunk delta apart. It accepts exactly the text that a row
// gives back: the members in the order of a live writer, no space between
// tokens, whole numbers spelled as integers.
func packable(e *outcrop.Event) (d delta, ok bool) {
	if e.Type != outcrop.TypeAssistantChunk || e.Seq < 0 || e.Seq > jsonwire.MaxSafe ||
		e.Time < -jsonwire.MaxSafe || e.Time > jsonwire.MaxSafe ||
		e.Ignorable || !e.Op.IsZero() || e.Sources.Known() {
		return d, false
	}
	if line := e.Line(); line != nil && !canonicalEnvelope(line, e) {
		return d, false
	}
	return takeDelta(e.Data)
}

// canonicalEnvelope reports whether line is the event in the member order and
// spelling of a live writer.
func canonicalEnvelope(line []byte, e *outcrop.Event) bool {
	const head, mid, data = `{"type":"assistant/chunk","seq":`, `,"time":`, `,"data":`
	if len(line) < len(head) || string(line[:len(head)]) != head {
		return false
	}
	i := spelled(line, len(head), int64(e.Seq))
	if i < 0 || len(line)-i < len(mid) || string(line[i:i+len(mid)]) != mid {
		return false
	}
	i = spelled(line, i+len(mid), e.Time)
	if i < 0 || len(line)-i < len(data) || string(line[i:i+len(data)]) != data {
		return false
	}
	rest := line[i+len(data):]
	if len(rest) != len(e.Data)+1 || rest[len(rest)-1] != '}' {
		return false
	}
	return len(e.Data) > 0 && &rest[0] == &e.Data[0] || bytes.Equal(rest[:len(e.Data)], e.Data)
}

// spelled returns the offset behind n, when that is what stands at i in the
// spelling of every writer, else -1.
func spelled(line []byte, i int, n int64) int {
	if n < 0 {
		if i >= len(line) || line[i] != '-' {
			return -1
		}
		i, n = i+1, -n
	}
	start, v := i, int64(0)
	for i < len(line) && line[i]-'0' <= 9 && i-start < 16 {
		v = v*10 + int64(line[i]-'0')
		i++
	}
	if v != n || i == start || line[start] == '0' && i-start > 1 {
		return -1
	}
	return i
}

// takeDelta reads {"turn":T,"step":S,"chunk":{"type":"…-delta","index":I,…}}.
func takeDelta(b []byte) (d delta, ok bool) {
	if b, ok = bytes.CutPrefix(b, []byte(`{"turn":`)); !ok {
		return d, false
	}
	if d.turn, b, ok = takeNumber(b, `,"step":`); !ok {
		return d, false
	}
	if d.step, b, ok = takeNumber(b, `,"chunk":{"type":"`); !ok {
		return d, false
	}
	switch {
	case bytes.HasPrefix(b, []byte(`text-delta","index":`)):
		d.kind, b = 't', b[len(`text-delta","index":`):]
	case bytes.HasPrefix(b, []byte(`reasoning-delta","index":`)):
		d.kind, b = 'r', b[len(`reasoning-delta","index":`):]
	case bytes.HasPrefix(b, []byte(`tool-call-delta","index":`)):
		d.kind, b = 'c', b[len(`tool-call-delta","index":`):]
		if d.index, b, ok = takeNumber(b, `,"id":`); !ok {
			return d, false
		}
		if d.id, b, ok = takeString(b); !ok {
			return d, false
		}
		if rest, named := bytes.CutPrefix(b, []byte(`,"name":`)); named {
			if d.named, b, ok = takeString(rest); !ok {
				return d, false
			}
		}
		if b, ok = bytes.CutPrefix(b, []byte(`,"argumentsDelta":`)); !ok {
			return d, false
		}
		d.text, b, ok = takeString(b)
		return d, ok && string(b) == "}}"
	default:
		return d, false
	}
	if d.index, b, ok = takeNumber(b, `,"text":`); !ok {
		return d, false
	}
	d.text, b, ok = takeString(b)
	return d, ok && string(b) == "}}"
}

// takeNumber takes the number token in front of b, which then must go on with
// behind, and returns what follows that.
func takeNumber(b []byte, behind string) (tok, rest []byte, ok bool) {
	i := 0
	for i < len(b) && (b[i] >= '0' && b[i] <= '9') {
		i++
	}
	if i > 0 && (i == 1 || b[0] != '0') && len(b)-i >= len(behind) && string(b[i:i+len(behind)]) == behind {
		return b[:i], b[i+len(behind):], true
	}
	// Fractions and exponents are rare; any JSON number will do.
	if len(b) == 0 || b[0] != '-' && (b[0] < '0' || b[0] > '9') {
		return nil, nil, false
	}
	end, err := jsonwire.Value(b, 0)
	if err != nil || len(b)-end < len(behind) || string(b[end:end+len(behind)]) != behind {
		return nil, nil, false
	}
	if f, err := strconv.ParseFloat(string(b[:end]), 64); err != nil || math.IsInf(f, 0) {
		return nil, nil, false
	}
	return b[:end], b[end+len(behind):], true
}

// takeString takes the string token in front of b.
func takeString(b []byte) (tok, rest []byte, ok bool) {
	if len(b) == 0 || b[0] != '"' {
		return nil, nil, false
	}
	end, err := jsonwire.String(b, 0)
	if err != nil {
		return nil, nil, false
	}
	return b[:end], b[end:], true
}
