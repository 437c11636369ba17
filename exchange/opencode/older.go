package opencode

import (
	"slices"

	"github.com/outcrop-dev/outcrop/exchange/internal/fields"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
)

// whole gives a message of the first versions, which holds its parts itself and
// says everything else in its metadata. It is turned into one of the later shape.
func (f *feeder) whole(e *entry, own []byte) error {
	meta := e.info.Of("metadata")
	if !meta.IsObject() {
		// Of the later shape, with its parts.
		n := *e
		for p := range fields.Elements(own) {
			n.parts = append(n.parts, fields.Of(p))
		}
		n.info = fields.Of(without(e.info.Raw, "parts"))
		return f.entry(&n)
	}
	by := meta.Of("assistant")
	info := jsonwire.AppendStringMember([]byte{'{'}, "role", e.info.Text("role"))
	for _, name := range [...]string{"time", "error"} {
		if v := meta.Get(name); v != nil {
			info = jsonwire.AppendRawMember(info, name, v)
		}
	}
	for _, name := range [...]string{"providerID", "modelID", "tokens", "summary"} {
		if v := by.Get(name); v != nil {
			info = jsonwire.AppendRawMember(info, name, v)
		}
	}
	n := entry{id: e.id, info: fields.Of(append(info, '}')), time: e.time}
	tools := meta.Of("tool")
	for p := range fields.Elements(own) {
		n.parts = append(n.parts, olderPart(fields.Of(p), tools))
	}
	var system string
	for s := range by.List("system") {
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
func olderPart(p, tools fields.Object) fields.Object {
	switch p.Text("type") {
	case "tool-invocation":
		in := p.Of("toolInvocation")
		id := in.Text("toolCallId")
		about := tools.Of(id)
		state := []byte(`{"status":`)
		if in.Text("state") == "result" {
			status := `"completed"`
			output := "output"
			if about.True("error") {
				status, output = `"error"`, "error"
			}
			state = append(state, status...)
			state = jsonwire.AppendStringMember(state, output, in.Text("result"))
		} else {
			state = append(state, `"pending"`...)
		}
		if args := in.Get("args"); args != nil {
			state = jsonwire.AppendRawMember(state, "input", args)
		}
		if t := about.Text("title"); t != "" {
			state = jsonwire.AppendStringMember(state, "title", t)
		}
		if t := about.Get("time"); t != nil {
			state = jsonwire.AppendRawMember(state, "time", t)
		}
		out := []byte(`{"type":"tool"`)
		out = jsonwire.AppendStringMember(out, "callID", id)
		out = jsonwire.AppendStringMember(out, "tool", in.Text("toolName"))
		return fields.Of(append(jsonwire.AppendRawMember(out, "state", append(state, '}')), '}'))
	case "source-url":
		out := jsonwire.AppendStringMember([]byte(`{"type":"text"`), "text", "["+p.Text("title")+"]("+p.Text("url")+")")
		return fields.Of(append(out, '}'))
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
