package formats

import (
	"bytes"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
)

// prompts is the step from format 3 to 2: the system prompt stands on the surface
// there, as its head, and in request/header here.
//
// The head is the system/message that was appended first, or what replaced it.
// It is taken off the surface, and its text goes into each request/header behind
// it. A prompt that changes without a request/header behind it is told by one
// that is made of the last: before the first thing that a request led to.
type prompts struct {
	next stage
	seqs seqs

	head   outcrop.Seq   // seq of the head, -1 without one
	prompt []byte        // its text as a JSON string; nil: none
	told   []byte        // what the last request/header passed on says
	last   []byte        // data of the last request/header, without system
	change outcrop.Event // the system/message that nothing passed on tells of yet
}

func (p *prompts) gap(n outcrop.Seq) {
	p.seqs.skip(n)
	p.next.gap(n)
}

func (p *prompts) add(e outcrop.Event) (bool, *outcrop.Error) {
	if askedFor(e.Type) {
		if more, err := p.tell(); !more || err != nil {
			return more, err
		}
	}
	p.seqs.begin(&e)
	t, data := e.Type, []byte(e.Data)
	switch t {
	case typeSystem:
		if p.takes(&e) {
			p.seqs.drop()
			return true, nil
		}
		t, data = injected(data, false)
	case outcrop.TypeRequestHeader:
		p.last = bytes.Clone(data)
		p.told, p.change = p.prompt, outcrop.Event{}
		data = prompted(data, p.prompt)
	case typePTCStart:
		t = typeCodeStart
	case typePTC:
		t = typeCode
	case typePreset:
		data = inside(data, "agentPreset", preset2)
	case outcrop.TypeUserMessage:
		data = message3(data)
	case outcrop.TypeInboxSpliced:
		data = inside(data, "inserted", func(l []byte) []byte { return each(l, message3) })
	case typeTitleRequest:
		data = inside(data, "messages", func(l []byte) []byte { return each(l, message3) })
	}
	e, err := p.seqs.pass(e, t, data)
	if err != nil {
		p.seqs.free()
		p.next.gap(1)
		return true, err
	}
	return p.next.add(e)
}

// askedFor reports whether an event follows a request to the model.
func askedFor(t outcrop.Type) bool {
	switch t {
	case outcrop.TypeAssistantMessage, typeAttempt, outcrop.TypeAssistantChunk, outcrop.TypeLLMRetry, outcrop.TypeLLMRetryStarted:
		return true
	}
	return false
}

// takes takes a system/message that is the head.
func (p *prompts) takes(e *outcrop.Event) bool {
	start, end, replaces := e.Op.Range()
	switch {
	case p.head < 0 && e.Op.IsAppend():
	case p.head >= 0 && replaces && start == p.head && end == p.head:
	default:
		return false
	}
	p.head = e.Seq
	p.prompt = bytes.Clone(promptOf(get(get(e.Data, "message"), "content")))
	p.change = outcrop.Event{}
	if p.last != nil && !bytes.Equal(p.prompt, p.told) {
		p.change = e.Recast(outcrop.TypeRequestHeader, 0, nil, outcrop.NoSources, outcrop.SurfaceOp{})
	}
	return true
}

// tell passes on a request/header with the prompt that changed.
func (p *prompts) tell() (bool, *outcrop.Error) {
	if p.change.Type == "" {
		return true, nil
	}
	data := with(without(p.last, "startsSeries"), "reason", []byte(`"change"`))
	e := p.change.Recast(outcrop.TypeRequestHeader, p.seqs.take(), prompted(data, p.prompt), outcrop.NoSources, outcrop.SurfaceOp{})
	p.told, p.change = p.prompt, outcrop.Event{}
	return p.next.add(e)
}

// promptOf is the text of a system message as a JSON string, nil when it is
// empty. Texts of several blocks are joined by an empty line.
func promptOf(content []byte) []byte {
	var one []byte
	var all string
	n := 0
	for b := range jsonwire.Elements(content) {
		token := get(b, "text")
		text, ok := jsonwire.Text(token)
		if !ok {
			kind, _ := jsonwire.Text(get(b, "type"))
			text, token = "["+kind+"]", nil
		}
		if text == "" {
			continue
		}
		if n++; n > 1 {
			all += "\n\n"
		}
		one, all = token, all+text
	}
	switch {
	case n == 0:
		return nil
	case n == 1 && one != nil:
		return one
	}
	return jsonwire.AppendString(nil, all)
}

// prompted puts a system prompt into the data of a request/header: where writers
// put it, before the tools.
func prompted(data, prompt []byte) []byte {
	return inside(data, "header", func(h []byte) []byte {
		h = without(h, "system")
		if prompt == nil || jsonwire.Kind(h) != '{' {
			return h
		}
		var all []member
		system, put := member{name: []byte("system"), value: prompt}, false
		for k, v := range jsonwire.Members(h) {
			m := member{name: k, value: v}
			if m.is("tools") && !put {
				all, put = append(all, system), true
			}
			all = append(all, m)
		}
		if !put {
			all = append(all, system)
		}
		return object(all)
	})
}

// preset2 is the name of a preset in format 2.
func preset2(v []byte) []byte {
	if jsonwire.TextIs(v, "ptc") {
		return []byte(`"code"`)
	}
	return v
}

// message3 is a message as format 2 has it.
func message3(m []byte) []byte {
	return inside(m, "source", func(s []byte) []byte {
		if !jsonwire.TextIs(get(s, "kind"), "plugin") {
			return s
		}
		return inside(s, "plugin", func(v []byte) []byte {
			if jsonwire.TextIs(v, "tools-ptc") {
				return []byte(`"tools-code-mode"`)
			}
			return v
		})
	})
}
