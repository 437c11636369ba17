package secret

import "github.com/outcrop-dev/outcrop/internal/jsonwire"

// MaskJSON is Mask for every string of a JSON text, names of members left
// alone: a member whose name says that it is secret loses its whole value. The
// text must be valid JSON; what is not masked keeps its bytes.
func MaskJSON(raw []byte) (masked []byte, found int) {
	m := jsonMask{}
	out := m.value(make([]byte, 0, len(raw)), raw, plainName)
	if m.found == 0 {
		return raw, 0
	}
	return out, m.found
}

type jsonMask struct{ found int }

func (m *jsonMask) value(dst, v []byte, class nameClass) []byte {
	switch jsonwire.Kind(v) {
	case '"':
		s, _ := jsonwire.Text(v)
		if class != plainName && s != "" && secretValue(s, class, true, false) {
			m.found++
			kind := Assigned
			if class == passwordName {
				kind = Password
			}
			return jsonwire.AppendString(dst, maskOpen+string(kind)+maskClose)
		}
		if masked, n := Mask(s); n > 0 {
			m.found += n
			return jsonwire.AppendString(dst, masked)
		}
		return append(dst, v...)
	case '{':
		dst = append(dst, '{')
		for k, member := range jsonwire.Members(v) {
			if dst[len(dst)-1] != '{' {
				dst = append(dst, ',')
			}
			dst = append(append(append(dst, '"'), k...), '"', ':')
			dst = m.value(dst, member, classOf(jsonwire.Key(k)))
		}
		return append(dst, '}')
	case '[':
		dst = append(dst, '[')
		first := true
		for e := range jsonwire.Elements(v) {
			if !first {
				dst = append(dst, ',')
			}
			first = false
			dst = m.value(dst, e, plainName)
		}
		return append(dst, ']')
	}
	return append(dst, v...)
}
