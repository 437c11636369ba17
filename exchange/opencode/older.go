package opencode

import (
	"slices"

	"github.com/outcrop-dev/outcrop/internal/jsonwire"
)

// whole gives a message of the first versions, which holds its parts itself and
// says everything else in its metadata. It is turned into one of the later shape.
func (f *feeder) whole(e *entry, own []byte) error {
	meta := get(e.info, "metadata")
	if meta == nil {
		// Of the later shape, with its parts.
		n := *e
		for p := range elements(own) {
			n.parts = append(n.parts, p)
		}
		n.info = without(e.info, "parts")
		return f.entry(&n)
	}
	by := get(meta, "assistant")
	info := jsonwire.AppendStringMember([]byte{'{'}, "role", text(e.info, "role"))
	for _, name := range [...]string{"time", "error"} {
		if v := get(meta, name); v != nil {
			info = jsonwire.AppendRawMember(info, name, v)
		}
	}
	for _, name := range [...]string{"providerID", "modelID", "tokens", "summary"} {
		if v := get(by, name); v != nil {
			info = jsonwire.AppendRawMember(info, name, v)
		}
	}
	n := entry{id: e.id, info: append(info, '}'), time: e.time}
	for p := range elements(own) {
		n.parts = append(n.parts, olderPart(p, get(meta, "tool")))
	}
	var system string
	for s := range elements(get(by, "system")) {
		t, _ := jsonwire.Text(s)
		if system != "" && t != "" {
			system += "\n\n"
		}
		system += t
	}
	f.system(system)
	return f.entry(&n)
}

// olderPart is a part of the first versions in the later shape.
func olderPart(p, tools []byte) []byte {
	switch text(p, "type") {
	case "tool-invocation":
		in := get(p, "toolInvocation")
		id := text(in, "toolCallId")
		about := get(tools, id)
		state := []byte(`{"status":`)
		if text(in, "state") == "result" {
			status := `"completed"`
			output := "output"
			if isTrue(about, "error") {
				status, output = `"error"`, "error"
			}
			state = append(state, status...)
			state = jsonwire.AppendStringMember(state, output, text(in, "result"))
		} else {
			state = append(state, `"pending"`...)
		}
		if args := get(in, "args"); args != nil {
			state = jsonwire.AppendRawMember(state, "input", args)
		}
		if t := text(about, "title"); t != "" {
			state = jsonwire.AppendStringMember(state, "title", t)
		}
		if t := get(about, "time"); t != nil {
			state = jsonwire.AppendRawMember(state, "time", t)
		}
		out := []byte(`{"type":"tool"`)
		out = jsonwire.AppendStringMember(out, "callID", id)
		out = jsonwire.AppendStringMember(out, "tool", text(in, "toolName"))
		return append(jsonwire.AppendRawMember(out, "state", append(state, '}')), '}')
	case "source-url":
		out := jsonwire.AppendStringMember([]byte(`{"type":"text"`), "text", "["+text(p, "title")+"]("+text(p, "url")+")")
		return append(out, '}')
	}
	return p
}

// without is an object without some of its members.
func without(v []byte, names ...string) []byte {
	out := []byte{'{'}
	for k, m := range jsonwire.Members(v) {
		if slices.Contains(names, jsonwire.Key(k)) {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(append(out, '"'), k...), '"', ':')
		out = append(out, m...)
	}
	return append(out, '}')
}
