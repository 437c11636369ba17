// Package fields finds the members of a foreign JSON object in one pass, so that
// an object that holds a long text is not walked once a member.
package fields

import (
	"iter"

	"github.com/outcrop-dev/outcrop/internal/jsonwire"
)

// Object is a JSON object, taken apart. The zero value is none and has no
// members. It shares the memory of its text.
type Object struct {
	Raw  []byte
	list []field
}

type field struct {
	name  []byte // without its quotes, as it is written
	value []byte
}

// Of takes a JSON value apart, which is valid JSON or nothing. A value that is no
// object gives one without members.
func Of(v []byte) Object {
	o := Object{Raw: v}
	if jsonwire.Kind(v) != '{' {
		return o
	}
	o.list = make([]field, 0, 6)
	for k, m := range jsonwire.Members(v) {
		o.list = append(o.list, field{k, m})
	}
	return o
}

// IsObject reports whether the value was an object.
func (o Object) IsObject() bool { return jsonwire.Kind(o.Raw) == '{' }

// Get is a member; nil when there is none. Of equal names the last one counts.
func (o Object) Get(name string) []byte {
	for i := len(o.list) - 1; i >= 0; i-- {
		if jsonwire.KeyIs(o.list[i].name, name) {
			return o.list[i].value
		}
	}
	return nil
}

// Of is a member that is an object, taken apart.
func (o Object) Of(name string) Object { return Of(o.Get(name)) }

// Text is a member that is a string, "" for anything else.
func (o Object) Text(name string) string {
	s, _ := jsonwire.Text(o.Get(name))
	return s
}

// True reports a member that is true.
func (o Object) True(name string) bool { return string(o.Get(name)) == "true" }

// Int is a member that is a whole number, 0 for anything else.
func (o Object) Int(name string) int64 {
	n, _ := jsonwire.Int(o.Get(name))
	return n
}

// List yields the elements of a member that is a list, nothing of any other.
func (o Object) List(name string) iter.Seq[[]byte] { return Elements(o.Get(name)) }

// Elements yields those of a value that is a list, nothing of any other.
func Elements(v []byte) iter.Seq[[]byte] {
	if jsonwire.Kind(v) != '[' {
		return func(func([]byte) bool) {}
	}
	return jsonwire.Elements(v)
}
