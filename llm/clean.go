package llm

import (
	"strings"
	"unicode/utf8"

	"github.com/outcrop-dev/outcrop/internal/jsonwire"
)

// replacement stands for what cannot be sent.
const replacement = "\ufffd"

// Clean returns s as valid UTF-8 without NUL: the two halves of a surrogate
// pair that a stream had split are joined, and each lone half, each invalid
// byte and each NUL becomes U+FFFD. Text that is fine already is returned as
// it is.
func Clean(s string) string {
	if isClean(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == 0:
			b.WriteString(replacement)
		case r != utf8.RuneError || n > 1:
			b.WriteString(s[i : i+n])
		default:
			high, ok := half(s[i:])
			if !ok {
				b.WriteString(replacement)
				break
			}
			n = 3
			if low, ok := half(s[i+3:]); ok && high < 0xdc00 && low >= 0xdc00 {
				b.WriteRune(0x10000 + (high-0xd800)<<10 + (low - 0xdc00))
				n = 6
			} else {
				b.WriteString(replacement)
			}
		}
		i += n
	}
	return b.String()
}

func isClean(s string) bool {
	return utf8.ValidString(s) && strings.IndexByte(s, 0) < 0
}

// half decodes a surrogate that is written as three WTF-8 bytes.
func half(s string) (rune, bool) {
	if len(s) < 3 || s[0] != 0xed || s[1] < 0xa0 || s[1] > 0xbf || s[2]&0xc0 != 0x80 {
		return 0, false
	}
	return 0xd000 | rune(s[1]&0x3f)<<6 | rune(s[2]&0x3f), true
}

// blank reports whether a text block with this text would be refused.
func blank(s string) bool { return strings.TrimSpace(s) == "" }

// arguments makes the arguments of a call fit for sending. None at all is the
// empty object, as the loop takes it too; what is no clean object is carried
// as text in one member, so that the model still sees what it wrote.
func arguments(s string) string {
	if argumentsFault(s) == "" {
		return s
	}
	if blank(s) {
		return "{}"
	}
	s = Clean(s)
	if raw := []byte(s); jsonwire.Valid(raw) == nil && jsonwire.Kind(raw) == '{' {
		if fixed := string(cleanEscapes(raw)); argumentsFault(fixed) == "" {
			return fixed
		}
	}
	return string(append(jsonwire.AppendString([]byte(`{"_raw":`), s), '}'))
}

// argumentsFault says why a provider would refuse the arguments of a call, or
// "".
func argumentsFault(s string) string {
	if !isClean(s) {
		return "arguments hold invalid UTF-8 or NUL"
	}
	raw := []byte(s)
	if jsonwire.Valid(raw) != nil || jsonwire.Kind(raw) != '{' {
		return "arguments are not a JSON object"
	}
	if strings.IndexByte(s, '\\') >= 0 && badEscape(raw, 0) >= 0 {
		return "arguments hold a lone surrogate or NUL"
	}
	return nestingFault(raw, 0)
}

// nestingFault says that an object in v repeats a member, or that v is nested
// more deeply than anything is ever written.
func nestingFault(v []byte, depth int) string {
	kind := jsonwire.Kind(v)
	if kind != '{' && kind != '[' {
		return ""
	}
	if depth >= jsonwire.MaxWriteDepth {
		return "arguments are nested too deeply"
	}
	if kind == '[' {
		for e := range jsonwire.Elements(v) {
			if fault := nestingFault(e, depth+1); fault != "" {
				return fault
			}
		}
		return ""
	}
	seen := make(map[string]bool)
	for k, m := range jsonwire.Members(v) {
		name := jsonwire.Key(k)
		if seen[name] {
			return "arguments repeat a member"
		}
		seen[name] = true
		if fault := nestingFault(m, depth+1); fault != "" {
			return fault
		}
	}
	return ""
}

// badEscape returns the offset at or after i of the next escape in a JSON text
// that decodes to NUL or to half of a surrogate pair, or -1.
func badEscape(v []byte, i int) int {
	for ; i < len(v); i++ {
		if v[i] != '\\' {
			continue
		}
		u, ok := unit(v, i)
		switch {
		case !ok:
			i++
		case u == 0, u >= 0xdc00 && u < 0xe000:
			return i
		case u >= 0xd800 && u < 0xdc00:
			low, ok := unit(v, i+6)
			if !ok || low < 0xdc00 || low >= 0xe000 {
				return i
			}
			i += 11
		default:
			i += 5
		}
	}
	return -1
}

// unit decodes the \uXXXX escape at offset i of valid JSON text.
func unit(v []byte, i int) (u int, ok bool) {
	if i+6 > len(v) || v[i] != '\\' || v[i+1] != 'u' {
		return 0, false
	}
	for _, c := range v[i+2 : i+6] {
		u <<= 4
		switch {
		case c <= '9':
			u |= int(c - '0')
		default:
			u |= int(c|0x20-'a') + 10
		}
	}
	return u, true
}

// cleanEscapes replaces the escapes that badEscape finds.
func cleanEscapes(v []byte) []byte {
	for i := badEscape(v, 0); i >= 0; i = badEscape(v, i+6) {
		copy(v[i:], `\ufffd`)
	}
	return v
}

// Joiner joins text that a stream split inside a surrogate pair: what stands
// as two halves, in one piece or across pieces, comes out as one code point.
// Lone halves come out as they are. The zero value is ready.
type Joiner struct{ rest string }

// Add takes the next piece and returns what can be passed on; the first half
// of a pair at its end is held back.
func (j *Joiner) Add(s string) string {
	s = j.rest + s
	j.rest = ""
	if n := len(s) - 3; n >= 0 {
		if r, ok := half(s[n:]); ok && r < 0xdc00 {
			s, j.rest = s[:n], s[n:]
		}
	}
	for i := 0; ; i++ {
		n := strings.IndexByte(s[i:], 0xed)
		if n < 0 || i+n+6 > len(s) {
			return s
		}
		i += n
		high, ok1 := half(s[i:])
		low, ok2 := half(s[i+3:])
		if ok1 && ok2 && high < 0xdc00 && low >= 0xdc00 {
			s = s[:i] + string(0x10000+(high-0xd800)<<10+(low-0xdc00)) + s[i+6:]
		}
	}
}

// Rest returns what is held back at the end of the text.
func (j *Joiner) Rest() string {
	s := j.rest
	j.rest = ""
	return s
}
