package formats

import (
	"bytes"

	"github.com/outcrop-dev/outcrop/internal/jsonwire"
)

// member is one member of an object that is being edited.
type member struct {
	name  []byte // as it stands between its quotes
	value []byte
	gone  bool
}

func (m member) is(name string) bool { return jsonwire.KeyIs(m.name, name) }

// rename gives the member a name, which may need escaping.
func (m *member) rename(name string) {
	b := jsonwire.AppendString(nil, name)
	m.name = b[1 : len(b)-1]
}

// edit shows each member of an object to f, in order, and makes the object anew
// of what f gives back. An object that f did not change comes back as it is,
// spaces included, and so does what is no object.
func edit(obj []byte, f func(member) member) []byte {
	if jsonwire.Kind(obj) != '{' {
		return obj
	}
	var room [16]member
	all, changed := room[:0], false
	for k, v := range jsonwire.Members(obj) {
		m := f(member{name: k, value: v})
		changed = changed || m.gone || !same(m.name, k) || !same(m.value, v)
		if !m.gone {
			all = append(all, m)
		}
	}
	if !changed {
		return obj
	}
	return object(all)
}

func object(all []member) []byte {
	n := 2
	for i := range all {
		n += len(all[i].name) + len(all[i].value) + 4
	}
	out := append(make([]byte, 0, n), '{')
	for i := range all {
		out = jsonwire.AppendRawMember(out, string(all[i].name), all[i].value)
	}
	return append(out, '}')
}

// each does to the elements of an array what edit does to members.
func each(arr []byte, f func([]byte) []byte) []byte {
	if jsonwire.Kind(arr) != '[' {
		return arr
	}
	var room [16][]byte
	all, changed := room[:0], false
	for v := range jsonwire.Elements(arr) {
		w := f(v)
		changed = changed || !same(v, w)
		all = append(all, w)
	}
	if !changed {
		return arr
	}
	return array(all)
}

func array(all [][]byte) []byte {
	return append(append([]byte{'['}, bytes.Join(all, []byte{','})...), ']')
}

func same(a, b []byte) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

func get(obj []byte, name string) []byte {
	if jsonwire.Kind(obj) != '{' {
		return nil
	}
	return jsonwire.Get(obj, name)
}

// without leaves a member out.
func without(obj []byte, name string) []byte {
	return edit(obj, func(m member) member { m.gone = m.gone || m.is(name); return m })
}

// with sets a member: in its place, or behind the others.
func with(obj []byte, name string, value []byte) []byte {
	found := false
	out := edit(obj, func(m member) member {
		if m.is(name) {
			m.value, found = value, true
		}
		return m
	})
	if found || jsonwire.Kind(obj) != '{' {
		return out
	}
	var all []member
	for k, v := range jsonwire.Members(obj) {
		all = append(all, member{name: k, value: v})
	}
	return object(append(all, member{name: []byte(name), value: value}))
}

// inside edits the value of a member.
func inside(obj []byte, name string, f func([]byte) []byte) []byte {
	return edit(obj, func(m member) member {
		if m.is(name) {
			m.value = f(m.value)
		}
		return m
	})
}
