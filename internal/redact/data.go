package redact

import (
	"slices"
	"strings"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
)

func sortSeqs(s []outcrop.Seq) { slices.Sort(s) }

// rewriter makes the new data of one event.
type rewriter struct {
	tomb    string // in the place of a text
	args    string // in the place of the arguments of a call
	whole   bool   // the event was named itself
	ids     map[string]bool
	digests map[string]string
	firsts  map[string]bool
	chunk   outcrop.Seq // the reply that a chunk belongs to

	texts   []string // what was taken out
	changed bool
}

// event is the new data of an event.
func (r *rewriter) event(e *outcrop.Event) []byte {
	switch e.Type {
	case outcrop.TypeUserMessage, outcrop.TypeContextMessage:
		return r.message(e.Data)
	case outcrop.TypeAssistantMessage, outcrop.TypeToolResult:
		return r.object(e.Data, func(name string, v []byte) []byte {
			switch name {
			case "message":
				return r.message(v)
			case "meta": // of the rewrites of a result too: they differ in content alone
				r.changed = true
				return nil
			}
			return v
		})
	case outcrop.TypeAssistantChunk:
		return r.object(e.Data, func(name string, v []byte) []byte {
			if name == "chunk" {
				return r.delta(v)
			}
			return v
		})
	case outcrop.TypeInboxSpliced:
		return r.object(e.Data, func(name string, v []byte) []byte {
			if name == "inserted" {
				return r.list(v, r.pending)
			}
			return v
		})
	case outcrop.TypeRequestHeader:
		return r.object(e.Data, func(name string, v []byte) []byte {
			if name == "header" {
				return r.header(v)
			}
			return v
		})
	case outcrop.TypeCompactionSummary:
		return r.object(e.Data, func(name string, v []byte) []byte {
			if name == "summary" || name == "rawOutput" {
				return r.list(v, r.block)
			}
			return v
		})
	case outcrop.TypeOutcropSummarizer:
		return r.object(e.Data, func(name string, v []byte) []byte {
			if name == "extra" {
				return r.list(v, r.message)
			}
			return v
		})
	case outcrop.TypeTurnStart, outcrop.TypeStepStart, outcrop.TypeStepEnd, outcrop.TypeRequestContext, outcrop.TypeOutcropRequest:
		return e.Data
	case outcrop.TypeToolCall:
		return r.object(e.Data, func(name string, v []byte) []byte {
			if name == "arguments" {
				return r.text(v, r.args)
			}
			return v
		})
	}
	return r.other(e.Data)
}

// object writes an object again, member by member; nil leaves one out.
func (r *rewriter) object(obj []byte, member func(name string, v []byte) []byte) []byte {
	if jsonwire.Kind(obj) != '{' {
		return obj
	}
	out := []byte{'{'}
	for k, v := range jsonwire.Members(obj) {
		if v = member(jsonwire.Key(k), v); v == nil {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(append(append(out, '"'), k...), '"', ':'), v...)
	}
	return append(out, '}')
}

func (r *rewriter) list(arr []byte, element func([]byte) []byte) []byte {
	if jsonwire.Kind(arr) != '[' {
		return arr
	}
	out := []byte{'['}
	for v := range jsonwire.Elements(arr) {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, element(v)...)
	}
	return append(out, ']')
}

// text takes a string out.
func (r *rewriter) text(v []byte, instead string) []byte {
	s, ok := jsonwire.Text(v)
	if !ok || s == "" {
		return v
	}
	r.took(s)
	return jsonwire.AppendString(nil, instead)
}

func (r *rewriter) took(s string) {
	r.changed = true
	if !strings.HasPrefix(s, "[redacted sha256:") {
		r.texts = append(r.texts, strings.Clone(s))
	}
}

// gone takes a whole value out: its strings are what was there.
func (r *rewriter) gone(v []byte) {
	r.changed = true
	for s := range stringsIn(v) {
		r.took(s)
	}
}

func (r *rewriter) message(m []byte) []byte {
	return r.object(m, func(name string, v []byte) []byte {
		switch name {
		case "content":
			return r.list(v, r.block)
		case "source":
			return r.source(v)
		}
		return v
	})
}

// pending is a message of the inbox: one of the redacted ones, or any when the
// event was named.
func (r *rewriter) pending(m []byte) []byte {
	id := idOf(m)
	if !r.whole && !r.ids[id] {
		return m
	}
	was := r.tomb
	if d := r.digests[id]; d != "" {
		r.tomb = "[redacted sha256:" + d + "]"
	}
	m = r.message(m)
	r.tomb = was
	return m
}

func (r *rewriter) source(s []byte) []byte {
	return r.object(s, func(name string, v []byte) []byte {
		switch name {
		case "replayState":
			r.changed = true
			return nil
		case "summary":
			return r.text(v, r.tomb)
		case "sections":
			return r.list(v, func(section []byte) []byte {
				return r.object(section, func(name string, v []byte) []byte {
					if name == "text" {
						return r.text(v, r.tomb)
					}
					return v
				})
			})
		}
		return v
	})
}

// block is a content block in a shape that is known. What a result answers, and
// what a call is called, stays.
func (r *rewriter) block(b []byte) []byte {
	kind, _ := jsonwire.Text(jsonwire.Get(b, "type"))
	switch kind {
	case "tool-call":
		return r.object(b, func(name string, v []byte) []byte {
			switch name {
			case "type", "id", "name":
				return v
			case "arguments":
				return r.text(v, r.args)
			}
			r.gone(v)
			return nil
		})
	case "tool-result":
		return r.object(b, func(name string, v []byte) []byte {
			if name == "content" {
				return r.list(v, r.block)
			}
			return v
		})
	case "text", "reasoning":
		return r.object(b, func(name string, v []byte) []byte {
			switch name {
			case "type":
				return v
			case "text":
				return r.text(v, r.tomb)
			}
			r.gone(v)
			return nil
		})
	}
	r.gone(b)
	return appendText(r.tomb)
}

func appendText(text string) []byte {
	return append(jsonwire.AppendString([]byte(`{"type":"text","text":`), text), '}')
}

// delta is a chunk: the first of a block carries what stands in its place, the
// others nothing, so that they still add up to the message.
func (r *rewriter) delta(c []byte) []byte {
	kind, _ := jsonwire.Text(jsonwire.Get(c, "type"))
	block := kind + " " + string(jsonwire.Get(c, "index")) + " " + string(jsonwire.AppendInt(nil, int64(r.chunk)))
	piece := func(v []byte, instead string) []byte {
		s, ok := jsonwire.Text(v)
		if !ok {
			return v
		}
		if r.changed = true; s != "" {
			r.took(s)
		}
		if r.firsts[block] {
			instead = ""
		}
		r.firsts[block] = true
		return jsonwire.AppendString(nil, instead)
	}
	return r.object(c, func(name string, v []byte) []byte {
		switch {
		case kind == "block-end" && name == "block":
			return r.block(v)
		case (kind == "text-delta" || kind == "reasoning-delta") && name == "text":
			return piece(v, r.tomb)
		case kind == "tool-call-delta" && name == "argumentsDelta":
			return piece(v, r.args)
		case kind == "finish" && name == "replayState":
			r.changed = true
			return nil
		}
		return v
	})
}

// header is a request header: the model stays, the system prompt and what tools
// say about themselves go.
func (r *rewriter) header(h []byte) []byte {
	return r.object(h, func(name string, v []byte) []byte {
		switch name {
		case "system":
			return r.text(v, r.tomb)
		case "tools":
			return r.list(v, func(tool []byte) []byte {
				return r.object(tool, func(name string, v []byte) []byte {
					switch name {
					case "description":
						return r.text(v, r.tomb)
					case "parameters":
						r.gone(v)
						return []byte(`{"type":"object"}`)
					}
					return v
				})
			})
		}
		return v
	})
}

// texts are the members of other events that people or models write.
var texts = []string{"text", "content", "title", "summary", "description", "message", "args", "system", "stderrSummary",
	"objective", "prompt", "note", "label", "error", "reason", "question", "answer"}

// whole are members whose whole value goes.
var whole = []string{"arguments", "body"}

// other is the data of an event whose shape is not known in full: texts by
// their names, at any depth.
func (r *rewriter) other(v []byte) []byte {
	switch jsonwire.Kind(v) {
	case '[':
		return r.list(v, r.other)
	case '{':
		return r.object(v, func(name string, v []byte) []byte {
			switch {
			case jsonwire.Kind(v) == '"' && slices.Contains(texts, name):
				return r.text(v, r.tomb)
			case jsonwire.Kind(v) == '"' && slices.Contains(whole, name):
				return r.text(v, r.args)
			case jsonwire.Kind(v) == '{' && slices.Contains(whole, name):
				r.gone(v)
				return []byte(r.args)
			}
			return r.other(v)
		})
	}
	return v
}
