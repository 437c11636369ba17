package masking

import (
	"bytes"
	"iter"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/message"
)

// Log masks a log record by record. What holds nothing to mask passes as it is,
// to the byte; the others keep type, seq, time, surface operation and sources.
// The chunks of one reply are held back until it is whole.
func (m *Masker) Log(recs iter.Seq2[outcrop.Record, error]) iter.Seq2[outcrop.Record, error] {
	if m.Raw {
		return recs
	}
	return func(yield func(outcrop.Record, error) bool) {
		r := reply{m: m}
		for rec, err := range recs {
			if err != nil {
				if !r.flush(yield) || !yield(rec, err) {
					return
				}
				continue
			}
			if rec.Run != nil || rec.Type == outcrop.TypeAssistantChunk {
				r.add(rec)
				if rec.Run == nil && finishes(&rec.Event) && !r.flush(yield) {
					return
				}
				continue
			}
			if len(r.held) > 0 && !ends(rec.Type) {
				r.held = append(r.held, outcrop.Record{Event: m.event(rec.Event)})
				continue
			}
			if !r.flush(yield) || !yield(outcrop.Record{Event: m.event(rec.Event)}, nil) {
				return
			}
		}
		r.flush(yield)
	}
}

func (m *Masker) event(ev outcrop.Event) outcrop.Event {
	data := m.JSON(ev.Data)
	if bytes.Equal(data, ev.Data) {
		return ev
	}
	return ev.Upgraded(ev.Type, data).Current()
}

// ends reports a type that stands behind the chunks of a reply, never between.
func ends(t outcrop.Type) bool {
	switch t {
	case outcrop.TypeAssistantMessage, outcrop.TypeStepStart, outcrop.TypeStepEnd, outcrop.TypeTurnStart, outcrop.TypeTurnEnd,
		outcrop.TypeOutcropRequest, outcrop.TypeLLMRetry, outcrop.TypeEndSeed:
		return true
	}
	return false
}

func finishes(ev *outcrop.Event) bool {
	return jsonwire.TextIs(jsonwire.Get(jsonwire.Get(ev.Data, "chunk"), "type"), string(message.FinishChunk))
}

// reply is the chunks of one reply, and what stands between them.
type reply struct {
	m    *Masker
	held []outcrop.Record
	text map[block][]byte // what the deltas of a block say together
}

type block struct {
	index int
	typ   message.ChunkType
}

func (r *reply) add(rec outcrop.Record) {
	if r.text == nil {
		r.text = map[block][]byte{}
	}
	var own outcrop.Record
	if rec.Run != nil {
		run := *rec.Run
		own = outcrop.RunRecord(&run)
	} else {
		own = outcrop.Record{Event: rec.Event}
	}
	r.held = append(r.held, own)
	for ev := range own.Events() {
		if c, ok := delta(&ev); ok {
			k := block{c.Index, c.Type}
			r.text[k] = append(r.text[k], c.Text...)
		}
	}
}

// delta is the chunk of an event when it is a piece of a text.
func delta(ev *outcrop.Event) (message.Chunk, bool) {
	if ev.Type != outcrop.TypeAssistantChunk {
		return message.Chunk{}, false
	}
	c, err := message.ParseChunk(jsonwire.Get(ev.Data, "chunk"))
	if err != nil {
		return c, false
	}
	switch c.Type {
	case message.TextDelta, message.ReasoningDelta, message.ToolCallDelta:
		return c, true
	}
	return c, false
}

// flush passes on what is held, masked.
func (r *reply) flush(yield func(outcrop.Record, error) bool) bool {
	if len(r.held) == 0 {
		return true
	}
	masked := map[block]string{}
	for k, text := range r.text {
		s := string(text)
		out := s
		if k.typ == message.ToolCallDelta {
			out = r.m.Arguments(s)
		} else {
			out = r.m.Text(s)
		}
		if out != s {
			masked[k] = out
		}
	}
	held := r.held
	r.held, r.text = nil, nil
	said := map[block]bool{}
	for _, rec := range held {
		if rec.Run == nil && rec.Type != outcrop.TypeAssistantChunk {
			if !yield(rec, nil) {
				return false
			}
			continue
		}
		if len(masked) == 0 && rec.Run != nil {
			if !yield(rec, nil) {
				return false
			}
			continue
		}
		if rec.Run == nil {
			if !yield(outcrop.Record{Event: r.chunk(rec.Event, masked, said)}, nil) {
				return false
			}
			continue
		}
		for ev := range rec.Events() {
			if !yield(outcrop.Record{Event: r.chunk(ev, masked, said)}, nil) {
				return false
			}
		}
	}
	return true
}

// chunk is one chunk event of a reply.
func (r *reply) chunk(ev outcrop.Event, masked map[block]string, said map[block]bool) outcrop.Event {
	c, ok := delta(&ev)
	if !ok {
		return r.m.event(ev)
	}
	k := block{c.Index, c.Type}
	text, ok := masked[k]
	if !ok {
		return ev
	}
	if said[k] {
		text = ""
	}
	said[k] = true
	c.Text = text
	data := []byte{'{'}
	for name, v := range jsonwire.Members(ev.Data) {
		if len(data) > 1 {
			data = append(data, ',')
		}
		data = append(append(append(data, '"'), name...), '"', ':')
		if jsonwire.KeyIs(name, "chunk") {
			v = c.AppendJSON(nil)
		}
		data = append(data, v...)
	}
	return ev.Upgraded(ev.Type, append(data, '}')).Current()
}
