package jsonwire

import (
	json "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

var lenient = json.JoinOptions(
	jsontext.AllowDuplicateNames(true),
	jsontext.AllowInvalidUTF8(true),
)

// Unmarshal decodes JSON text into v as leniently as a log is read: duplicate
// names (the last one wins), invalid UTF-8 and unknown members are allowed.
// Names match by case. Lone surrogates become U+FFFD; who must keep them reads
// the span with Text.
func Unmarshal(b []byte, v any) error { return json.Unmarshal(b, v, lenient) }

// UnmarshalStrict decodes text that a person wrote for this program (script
// files, requests): unknown members, duplicates and invalid UTF-8 are errors.
func UnmarshalStrict(b []byte, v any) error {
	return json.Unmarshal(b, v, json.RejectUnknownMembers(true))
}

// Marshal encodes v compactly, members in field order, maps sorted by name.
func Marshal(v any) ([]byte, error) { return json.Marshal(v, json.Deterministic(true)) }

// Compact returns b without insignificant white space, or b itself when it is
// not JSON.
func Compact(b []byte) []byte {
	v := jsontext.Value(append([]byte(nil), b...))
	if v.Compact(lenient, jsontext.PreserveRawStrings(true)) != nil {
		return b
	}
	return v
}

// Indent returns b in a form for people.
func Indent(b []byte) []byte {
	v := jsontext.Value(append([]byte(nil), b...))
	if v.Indent(lenient, jsontext.PreserveRawStrings(true), jsontext.WithIndent("  ")) != nil {
		return b
	}
	return v
}
