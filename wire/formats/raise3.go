package formats

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
)

// raise3 is the step from format 2 to 3: the system prompt of request/header
// becomes the head of the surface.
//
// The head comes empty behind the first step/start, and is replaced before each
// request/header that has another prompt. A log in which something stands on the
// surface before its first step gets its prompt where the first request is made.
// Outside of a step there is no place for a prompt: it comes in the next one.
func (r *raising) raise3(e outcrop.Event) error {
	anchor := e
	t, data := e.Type, []byte(e.Data)
	switch t {
	case outcrop.TypeRequestHeader:
		if err := r.head3(&anchor, get(get(data, "header"), "system")); err != nil {
			return err
		}
		data = inside(data, "header", func(h []byte) []byte {
			return edit(h, func(m member) member {
				m.gone = m.is("system") || m.is("tools") && isEmpty(m.value) || m.is("adapterDefaults") && isEmpty(m.value)
				return m
			})
		})
	case typeCodeStart:
		t = typePTCStart
	case typeCode:
		t = typePTC
	case typePreset:
		data = inside(data, "agentPreset", func(v []byte) []byte {
			if jsonwire.TextIs(v, "code") {
				return []byte(`"ptc"`)
			}
			return v
		})
	case outcrop.TypeUserMessage:
		data = raised3(data)
	case outcrop.TypeInboxSpliced:
		data = inside(data, "inserted", func(l []byte) []byte { return each(l, raised3) })
	case typeTitleRequest:
		data = inside(data, "messages", func(l []byte) []byte { return each(l, raised3) })
	}
	r.up.begin(&e)
	out, err := r.up.pass(e, t, data)
	if err != nil {
		return r.refused(err)
	}
	if err := r.write(&out); err != nil {
		return err
	}
	r.surface = r.surface || t.Surface()
	switch t {
	case outcrop.TypeStepStart:
		r.turn, r.step = bytes.Clone(get(data, "turn")), bytes.Clone(get(data, "step"))
		switch {
		case r.turn == nil || r.step == nil: // a step without its numbers owns nothing
		case r.waits:
			return r.system(&anchor, r.deferred)
		case r.head < 0 && !r.surface:
			return r.system(&anchor, nil)
		}
	case outcrop.TypeStepEnd, outcrop.TypeTurnEnd:
		r.turn, r.step = nil, nil
	}
	return nil
}

// head3 takes the prompt of a request/header.
func (r *raising) head3(anchor *outcrop.Event, prompt []byte) error {
	if s, ok := jsonwire.Text(prompt); !ok || s == "" {
		prompt = nil
	}
	if r.turn == nil || r.step == nil {
		r.deferred, r.waits = bytes.Clone(prompt), !bytes.Equal(prompt, r.prompt)
		if r.waits {
			r.changed("a system prompt that was set outside of a step is written in the next one")
		}
		return nil
	}
	if bytes.Equal(prompt, r.prompt) {
		return nil
	}
	return r.system(anchor, prompt)
}

// system writes a system/message: the head, or what replaces it.
func (r *raising) system(anchor *outcrop.Event, prompt []byte) error {
	r.prompt, r.waits = bytes.Clone(prompt), false
	name := []byte(`["session-format-v2-to-v3",`)
	name = append(jsonwire.AppendString(name, r.header.ID), ',')
	name = append(jsonwire.AppendInt(name, int64(anchor.Seq)), ',')
	name = append(jsonwire.AppendString(name, string(anchor.Type)), ']')
	sum := sha256.Sum256(name)

	message := jsonwire.AppendStringMember([]byte{'{'}, "id", "v2-to-v3-system-"+hex.EncodeToString(sum[:]))
	message = jsonwire.AppendStringMember(message, "role", "system")
	message = jsonwire.AppendRawMember(message, "source", []byte(`{"kind":"plugin","plugin":"`+systemPlugin+`"}`))
	message = append(jsonwire.AppendMember(message, "content"), '[')
	if prompt != nil {
		message = append(append(append(message, `{"type":"text","text":`...), prompt...), '}')
	}
	message = append(message, ']', '}')
	data := jsonwire.AppendRawMember([]byte{'{'}, "turn", r.turn)
	data = jsonwire.AppendRawMember(data, "step", r.step)
	data = append(jsonwire.AppendRawMember(data, "message", message), '}')

	op, sources := outcrop.Tail, outcrop.NoSources
	if r.head >= 0 {
		op, sources = outcrop.Replace(r.head, r.head), outcrop.SourcesOf(r.head)
	}
	r.head, r.surface = r.up.take(), true
	e := anchor.Recast(typeSystem, r.head, data, sources, op)
	e.Ignorable = false
	return r.write(&e)
}

func isEmpty(v []byte) bool {
	switch jsonwire.Kind(v) {
	case '[':
		for range jsonwire.Elements(v) {
			return false
		}
		return true
	case '{':
		for range jsonwire.Members(v) {
			return false
		}
		return true
	}
	return false
}

// raised3 is a message of format 2 as format 3 has it.
func raised3(m []byte) []byte {
	return inside(m, "source", func(s []byte) []byte {
		if !jsonwire.TextIs(get(s, "kind"), "plugin") {
			return s
		}
		return inside(s, "plugin", func(v []byte) []byte {
			if jsonwire.TextIs(v, "tools-code-mode") {
				return []byte(`"tools-ptc"`)
			}
			return v
		})
	})
}
