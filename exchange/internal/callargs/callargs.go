// Package callargs makes the arguments of a foreign tool call what a log has: the
// text of one JSON object.
package callargs

import (
	"strings"

	"github.com/outcrop-dev/outcrop/internal/jsonwire"
)

// Object returns arguments that are an object as they are. Other text becomes
// the member input of one, and mended is true; no text becomes {}.
func Object(text string) (args string, mended bool) {
	trimmed := strings.TrimSpace(text)
	switch {
	case trimmed == "":
		return "{}", false
	case trimmed[0] == '{' && jsonwire.Valid([]byte(text)) == nil:
		return text, false
	}
	return string(append(jsonwire.AppendStringMember([]byte{'{'}, "input", text), '}')), true
}

// OfValue is Object for a JSON value: an object stands for itself, a string for
// its text, null and nothing for no arguments.
func OfValue(v []byte) (args string, mended bool) {
	switch jsonwire.Kind(v) {
	case 0, 'n':
		return "{}", false
	case '{':
		return string(jsonwire.Compact(v)), false
	case '"':
		s, _ := jsonwire.Text(v)
		return Object(s)
	}
	return Object(string(jsonwire.Compact(v)))
}
