// Package answer builds the JSON answers of the command.
//
// An answer is one object with "schema":1 as its first member; members stand in
// the order in which they are added, and text that is JSON already is added as
// it is, byte for byte. docs/cli-json.md is the reference of what they hold.
package answer

import (
	"strconv"

	"github.com/outcrop-dev/outcrop/internal/jsonwire"
)

// Object builds one JSON object of an answer, members in the order in which
// they are added.
type Object struct{ b []byte }

// New begins an object with "schema":1.
func New() *Object { return &Object{append([]byte{}, `{"schema":1`...)} }

// Inner begins an object that stands inside an answer.
func Inner() *Object { return &Object{[]byte{'{'}} }

// Raw adds a member whose value is JSON text.
func (o *Object) Raw(name string, v []byte) *Object {
	o.b = jsonwire.AppendRawMember(o.b, name, v)
	return o
}

// Text adds a string.
func (o *Object) Text(name, v string) *Object {
	o.b = jsonwire.AppendStringMember(o.b, name, v)
	return o
}

// TextOrNull adds null for "".
func (o *Object) TextOrNull(name, v string) *Object {
	if v == "" {
		return o.Raw(name, []byte("null"))
	}
	return o.Text(name, v)
}

// Number adds a whole number.
func (o *Object) Number(name string, v int64) *Object {
	o.b = jsonwire.AppendIntMember(o.b, name, v)
	return o
}

// NumberOrNull adds null for a negative number.
func (o *Object) NumberOrNull(name string, v int64) *Object {
	if v < 0 {
		return o.Raw(name, []byte("null"))
	}
	return o.Number(name, v)
}

// Bool adds true or false.
func (o *Object) Bool(name string, v bool) *Object {
	return o.Raw(name, strconv.AppendBool(nil, v))
}

// End closes the object.
func (o *Object) End() []byte { return append(o.b, '}') }

// List is a JSON array of what each yields for every index below n.
func List(n int, each func(dst []byte, i int) []byte) []byte {
	b := []byte{'['}
	for i := range n {
		if i > 0 {
			b = append(b, ',')
		}
		b = each(b, i)
	}
	return append(b, ']')
}

// Seqs is a JSON array of seqs.
func Seqs[N ~int64](ns []N) []byte {
	return List(len(ns), func(dst []byte, i int) []byte { return jsonwire.AppendInt(dst, int64(ns[i])) })
}
