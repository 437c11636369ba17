package secret

import "github.com/outcrop-dev/outcrop/internal/jsonwire"

// MaskJSON is Mask for every string of a JSON text, names of members left
// alone: a member whose name says that it is secret loses its whole value. What
// is not masked keeps its bytes. A text that is no JSON is masked as text.
//
// It is one pass, however deeply the text is nested.
func MaskJSON(raw []byte) (masked []byte, found int) {
	m := jsonMask{raw: raw}
	if !m.walk() {
		s, n := Mask(string(raw))
		return []byte(s), n
	}
	if m.found == 0 {
		return raw, 0
	}
	return append(m.out, raw[m.done:]...), m.found
}

type jsonMask struct {
	raw   []byte
	out   []byte
	done  int // up to here raw is in out
	found int
}

// walk goes through the text and masks; false where it is no JSON.
func (m *jsonMask) walk() bool {
	var open []byte // the brackets that enclose what is read
	class := plainName
	i := 0
	for {
		i = jsonwire.Space(m.raw, i)
		switch c := m.at(i); c {
		case '{', '[':
			open = append(open, c)
			if i = jsonwire.Space(m.raw, i+1); m.at(i) != c+2 {
				var ok bool
				if class, i, ok = m.name(c, i); !ok {
					return false
				}
				continue
			}
			// It is empty, and closed below.
		case 0:
			return false
		default:
			end := jsonwire.Skip(m.raw, i)
			if end <= i || end > len(m.raw) {
				return false
			}
			if c == '"' {
				m.text(i, end, class)
			}
			i = end
		}
		// Behind a value: the next one of what is open, or the end.
		for {
			i = jsonwire.Space(m.raw, i)
			if len(open) == 0 {
				return i >= len(m.raw)
			}
			top := open[len(open)-1]
			if c := m.at(i); c == top+2 {
				open = open[:len(open)-1]
				i++
				continue
			} else if c != ',' {
				return false
			}
			var ok bool
			if class, i, ok = m.name(top, jsonwire.Space(m.raw, i+1)); !ok {
				return false
			}
			break
		}
	}
}

// at is a byte of the text, 0 behind its end. A closing bracket is two behind
// the opening one, in ASCII.
func (m *jsonMask) at(i int) byte {
	if i < len(m.raw) {
		return m.raw[i]
	}
	return 0
}

// name reads the name of a member, where one belongs, up to its value.
func (m *jsonMask) name(open byte, i int) (class nameClass, value int, ok bool) {
	if open == '[' {
		return plainName, i, true
	}
	if m.at(i) != '"' {
		return plainName, i, false
	}
	end := jsonwire.Skip(m.raw, i)
	if end < i+2 || end > len(m.raw) {
		return plainName, i, false
	}
	colon := jsonwire.Space(m.raw, end)
	return classOf(jsonwire.Key(m.raw[i+1 : end-1])), colon + 1, m.at(colon) == ':'
}

// text masks the string from i to end.
func (m *jsonMask) text(i, end int, class nameClass) {
	s, _ := jsonwire.Text(m.raw[i:end])
	if class != plainName && s != "" && secretValue(s, class, true, false) {
		kind := Assigned
		if class == passwordName {
			kind = Password
		}
		m.put(i, end, maskOpen+string(kind)+maskClose, 1)
		return
	}
	if masked, n := Mask(s); n > 0 {
		m.put(i, end, masked, n)
	}
}

// put puts a text in the place of a string.
func (m *jsonMask) put(i, end int, text string, n int) {
	if m.out == nil {
		m.out = make([]byte, 0, len(m.raw))
	}
	m.out = jsonwire.AppendString(append(m.out, m.raw[m.done:i]...), text)
	m.done = end
	m.found += n
}
