package llmtest

import "github.com/outcrop-dev/outcrop/internal/jsonwire"

// tools is rule 6.
func (r Rules) tools(body []byte) *Refusal {
	list := jsonwire.Get(body, "tools")
	if list == nil {
		return nil
	}
	if jsonwire.Kind(list) != '[' {
		return refuse(6, -1, "tools is not a list")
	}
	names := map[string]bool{}
	n := 0
	for t := range jsonwire.Elements(list) {
		schema := jsonwire.Get(t, "input_schema")
		if r.Profile != Anthropic {
			t = jsonwire.Get(t, "function")
			schema = jsonwire.Get(t, "parameters")
		}
		name := text(t, "name")
		// The chat completions dialect takes a function without parameters.
		absent := schema == nil && r.Profile != Anthropic
		switch {
		case !isName(name):
			return refuse(6, -1, "tools[%d]: the name %q does not match ^[a-zA-Z0-9_-]{1,64}$", n, name)
		case names[name]:
			return refuse(6, -1, "tools[%d]: two tools have the name %q", n, name)
		case !absent && (jsonwire.Kind(schema) != '{' || text(schema, "type") != "object"):
			return refuse(6, -1, "tools[%d] %q: the schema must have the type object at its root", n, name)
		}
		names[name] = true
		n++
	}
	if n == 0 {
		return refuse(6, -1, "tools is an empty list")
	}
	return nil
}
