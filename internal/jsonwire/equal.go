package jsonwire

import (
	"bytes"
	"strconv"
)

// Equal reports whether two valid texts are the same JSON value as a
// JavaScript reader sees them: member order does not count, of duplicate names
// the last counts, numbers are compared as doubles.
func Equal(a, b []byte) bool { return EqualExcept(a, b) }

// EqualExcept is Equal, but the values at path are not compared; a path step
// is a member name, or an index in decimal for an array. With a path, both
// texts must have a value there.
func EqualExcept(a, b []byte, path ...string) bool {
	if len(path) == 0 && bytes.Equal(a, b) {
		return true
	}
	ka := Kind(a)
	if ka != Kind(b) {
		return false
	}
	switch ka {
	case '{':
		ma, mb := memberMap(a), memberMap(b)
		if len(ma) != len(mb) {
			return false
		}
		for name, va := range ma {
			vb, ok := mb[name]
			if !ok {
				return false
			}
			if len(path) > 0 && path[0] == name {
				if len(path) > 1 && !EqualExcept(va, vb, path[1:]...) {
					return false
				}
				continue
			}
			if !Equal(va, vb) {
				return false
			}
		}
		if len(path) > 0 {
			_, ok := ma[path[0]]
			return ok
		}
		return true
	case '[':
		var ea, eb [][]byte
		for v := range Elements(a) {
			ea = append(ea, v)
		}
		for v := range Elements(b) {
			eb = append(eb, v)
		}
		if len(ea) != len(eb) {
			return false
		}
		for i := range ea {
			if len(path) > 0 && path[0] == strconv.Itoa(i) {
				if len(path) > 1 && !EqualExcept(ea[i], eb[i], path[1:]...) {
					return false
				}
				continue
			}
			if !Equal(ea[i], eb[i]) {
				return false
			}
		}
		return true
	case '"':
		ta, _ := Text(a)
		tb, _ := Text(b)
		return ta == tb
	case '0':
		fa, erra := strconv.ParseFloat(string(bytes.TrimSpace(a)), 64)
		fb, errb := strconv.ParseFloat(string(bytes.TrimSpace(b)), 64)
		return fa == fb && (erra == nil) == (errb == nil)
	default:
		return ka != 0
	}
}

func memberMap(obj []byte) map[string][]byte {
	m := map[string][]byte{}
	for k, v := range Members(obj) {
		m[Key(k)] = v
	}
	return m
}
