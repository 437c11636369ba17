package redact

import (
	"strings"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
)

// index says which events belong together.
type index struct {
	log     outcrop.Log
	holders map[string][]outcrop.Seq      // events that hold a message, by its id
	reply   map[outcrop.Seq]outcrop.Seq   // the assistant/message that cites a chunk, else the first chunk of its attempt
	chunks  map[outcrop.Seq][]outcrop.Seq // and back
	calls   map[call][]outcrop.Seq        // tool/call and assistant/message of a call
	brief   map[string][]outcrop.Seq      // summary and checkpoint of a compaction
}

// call names a call inside a log: ids alone may come again.
type call struct {
	turn, step string
	id         string
}

func indexOf(log outcrop.Log) *index {
	ix := &index{log: log, holders: map[string][]outcrop.Seq{}, reply: map[outcrop.Seq]outcrop.Seq{}, chunks: map[outcrop.Seq][]outcrop.Seq{},
		calls: map[call][]outcrop.Seq{}, brief: map[string][]outcrop.Seq{}}
	attempt := outcrop.Seq(-1)
	for e := range outcrop.Events(log, 0) {
		if e.Type == outcrop.TypeAssistantChunk {
			// An attempt that came to no message is told by where it begins.
			if typ := jsonwire.Get(jsonwire.Get(e.Data, "chunk"), "type"); attempt < 0 {
				attempt = e.Seq
			} else if jsonwire.TextIs(typ, "finish") {
				ix.join(e.Seq, attempt)
				attempt = -1
				continue
			}
			ix.join(e.Seq, attempt)
			continue
		}
		attempt = -1
		ix.add(&e)
	}
	return ix
}

func (ix *index) join(chunk, to outcrop.Seq) {
	ix.reply[chunk] = to
	ix.chunks[to] = append(ix.chunks[to], chunk)
}

func (ix *index) add(e *outcrop.Event) {
	switch e.Type {
	case outcrop.TypeAssistantMessage:
		for seq := range e.Sources.All() {
			if _, ok := ix.reply[seq]; ok {
				ix.join(seq, e.Seq)
			}
		}
		turn, step := string(jsonwire.Get(e.Data, "turn")), string(jsonwire.Get(e.Data, "step"))
		for b := range jsonwire.Elements(jsonwire.Get(jsonwire.Get(e.Data, "message"), "content")) {
			if jsonwire.Kind(b) == '{' && jsonwire.TextIs(jsonwire.Get(b, "type"), "tool-call") {
				id, _ := jsonwire.Text(jsonwire.Get(b, "id"))
				k := call{turn, step, id}
				ix.calls[k] = append(ix.calls[k], e.Seq)
			}
		}
	case outcrop.TypeToolCall:
		k := callOf(e)
		ix.calls[k] = append(ix.calls[k], e.Seq)
	case outcrop.TypeCompactionSummary:
		if id, ok := jsonwire.Text(jsonwire.Get(e.Data, "compactionId")); ok && id != "" {
			ix.brief[id] = append(ix.brief[id], e.Seq)
		}
	case outcrop.TypeInboxSpliced:
		for m := range jsonwire.Elements(jsonwire.Get(e.Data, "inserted")) {
			if id := idOf(m); id != "" {
				ix.holders[id] = append(ix.holders[id], e.Seq)
			}
		}
	}
	if !e.Type.Surface() {
		return
	}
	if id := messageID(e); id != "" {
		ix.holders[id] = append(ix.holders[id], e.Seq)
	}
	if id := compactionOf(e); id != "" {
		ix.brief[id] = append(ix.brief[id], e.Seq)
	}
}

func callOf(e *outcrop.Event) call {
	id, _ := jsonwire.Text(jsonwire.Get(e.Data, "callId"))
	return call{string(jsonwire.Get(e.Data, "turn")), string(jsonwire.Get(e.Data, "step")), id}
}

// messageOf is the message of a surface event.
func messageOf(e *outcrop.Event) []byte {
	if e.Type == outcrop.TypeAssistantMessage || e.Type == outcrop.TypeToolResult {
		return jsonwire.Get(e.Data, "message")
	}
	return e.Data
}

func messageID(e *outcrop.Event) string { return idOf(messageOf(e)) }

func idOf(message []byte) string {
	if jsonwire.Kind(message) != '{' {
		return ""
	}
	id, _ := jsonwire.Text(jsonwire.Get(message, "id"))
	return strings.Clone(id)
}

// compactionOf is the compaction that a checkpoint came from.
func compactionOf(e *outcrop.Event) string {
	if e.Type != outcrop.TypeUserMessage && e.Type != outcrop.TypeContextMessage {
		return ""
	}
	source := jsonwire.Get(e.Data, "source")
	if jsonwire.Kind(source) != '{' {
		return ""
	}
	id, _ := jsonwire.Text(jsonwire.Get(source, "compactionId"))
	return id
}

// owner is the id of the message that an event is a part or a copy of.
func (ix *index) owner(e *outcrop.Event) string {
	switch {
	case e.Type.Surface():
		return messageID(e)
	case e.Type == outcrop.TypeAssistantChunk:
		if m := ix.log.At(ix.reply[e.Seq]); m.Type == outcrop.TypeAssistantMessage {
			return messageID(&m)
		}
	case e.Type == outcrop.TypeToolCall:
		for _, seq := range ix.calls[callOf(e)] {
			if m := ix.log.At(seq); m.Type == outcrop.TypeAssistantMessage {
				return messageID(&m)
			}
		}
	}
	return ""
}

// group grows to everything that goes with the events put into it.
type group struct {
	ix    *index
	in    map[outcrop.Seq]bool
	ids   map[string]bool // messages that are redacted wherever they stand
	fresh []outcrop.Seq   // what came in since it was emptied, in order of arrival
}

func (g *group) add(seq outcrop.Seq) {
	if g.ids == nil {
		g.ids = map[string]bool{}
	}
	todo := []outcrop.Seq{seq}
	for len(todo) > 0 {
		seq := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if g.in[seq] {
			continue
		}
		g.in[seq] = true
		g.fresh = append(g.fresh, seq)
		todo = append(todo, g.with(seq)...)
	}
	// Deltas are emptied in the order of the log.
	sortSeqs(g.fresh)
}

// with are the events that go with one.
func (g *group) with(seq outcrop.Seq) []outcrop.Seq {
	e := g.ix.log.At(seq)
	var out []outcrop.Seq
	message := func(id string) {
		if id != "" && !g.ids[id] {
			g.ids[id] = true
			out = append(out, g.ix.holders[id]...)
		}
	}
	switch e.Type {
	case outcrop.TypeAssistantChunk:
		to := g.ix.reply[seq]
		return append(append(out, to), g.ix.chunks[to]...)
	case outcrop.TypeToolCall:
		return g.ix.calls[callOf(&e)]
	case outcrop.TypeCompactionSummary:
		id, _ := jsonwire.Text(jsonwire.Get(e.Data, "compactionId"))
		return g.ix.brief[id]
	case outcrop.TypeInboxSpliced:
		for m := range jsonwire.Elements(jsonwire.Get(e.Data, "inserted")) {
			message(idOf(m))
		}
		return out
	case outcrop.TypeAssistantMessage:
		out = append(out, g.ix.chunks[seq]...)
		turn, step := string(jsonwire.Get(e.Data, "turn")), string(jsonwire.Get(e.Data, "step"))
		for b := range jsonwire.Elements(jsonwire.Get(messageOf(&e), "content")) {
			if jsonwire.Kind(b) == '{' && jsonwire.TextIs(jsonwire.Get(b, "type"), "tool-call") {
				id, _ := jsonwire.Text(jsonwire.Get(b, "id"))
				out = append(out, g.ix.calls[call{turn, step, id}]...)
			}
		}
	}
	if e.Type.Surface() {
		message(messageID(&e))
		if id := compactionOf(&e); id != "" {
			out = append(out, g.ix.brief[id]...)
		}
	}
	return out
}
