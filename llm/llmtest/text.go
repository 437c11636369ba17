package llmtest

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/outcrop-dev/outcrop/internal/jsonwire"
)

// rawFault looks at bytes that are sent as they are.
func rawFault(b []byte) string {
	for _, c := range b {
		if c == 0 {
			return "NUL"
		}
	}
	if !utf8.Valid(b) {
		return "invalid UTF-8"
	}
	return ""
}

// stringFault looks at the escapes of every string in a JSON text, names
// included: none may stand for NUL or for half of a surrogate pair.
func stringFault(v []byte) string {
	for i := 0; i < len(v); {
		if v[i] != '"' {
			i++
			continue
		}
		end, err := jsonwire.String(v, i)
		if err != nil {
			return "a string that is not JSON"
		}
		if fault := escapeFault(v[i:end]); fault != "" {
			return fault
		}
		i = end
	}
	return ""
}

// escapeFault looks at one string token.
func escapeFault(s []byte) string {
	for i := 0; i < len(s); {
		if s[i] != '\\' {
			i++
			continue
		}
		u, ok := escapedUnit(s[i:])
		if !ok {
			i += 2
			continue
		}
		i += 6
		switch {
		case u == 0:
			return "NUL"
		case u >= 0xdc00 && u <= 0xdfff:
			return "half of a surrogate pair"
		case u >= 0xd800 && u <= 0xdbff:
			low, ok := escapedUnit(s[i:])
			if !ok || low < 0xdc00 || low > 0xdfff {
				return "half of a surrogate pair"
			}
			i += 6
		}
	}
	return ""
}

// escapedUnit reads a \uXXXX escape.
func escapedUnit(s []byte) (u uint16, ok bool) {
	if len(s) < 6 || s[0] != '\\' || s[1] != 'u' {
		return 0, false
	}
	for _, c := range s[2:6] {
		n := strings.IndexByte("0123456789abcdef", c|0x20)
		if n < 0 {
			return 0, false
		}
		u = u<<4 | uint16(n)
	}
	return u, true
}

// objectFault says why v is not fit to be the arguments of a call.
func objectFault(v []byte) (rule int, fault string) {
	if jsonwire.Valid(v) != nil || jsonwire.Kind(v) != '{' {
		return 5, "not a JSON object"
	}
	if fault := rawFault(v); fault != "" {
		return 8, fault
	}
	if fault := stringFault(v); fault != "" {
		return 8, fault
	}
	if name, twice := repeatedName(v); twice {
		return 5, "the member " + name + " twice in one object"
	}
	return 0, ""
}

// repeatedName finds a name that an object in a valid JSON text has twice.
func repeatedName(v []byte) (name string, twice bool) {
	var open []map[string]bool // nil for an array
	for i := 0; i < len(v); {
		switch v[i] {
		case '{':
			open = append(open, map[string]bool{})
		case '[':
			open = append(open, nil)
		case '}', ']':
			open = open[:len(open)-1]
		case '"':
			end, err := jsonwire.String(v, i)
			if err != nil {
				return "", false
			}
			if next := jsonwire.Space(v, end); next < len(v) && v[next] == ':' {
				key, _ := jsonwire.Text(v[i:end])
				names := open[len(open)-1]
				if names[key] {
					return string(v[i:end]), true
				}
				names[key] = true
			}
			i = end
			continue
		}
		i++
	}
	return "", false
}

func blank(s string) bool { return strings.TrimFunc(s, unicode.IsSpace) == "" }

func endsInSpace(s string) bool { return strings.TrimRightFunc(s, unicode.IsSpace) != s }

// isName is the rule for names of tools, and under Anthropic for ids.
func isName(s string) bool {
	for _, c := range []byte(s) {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (c < '0' || c > '9') && c != '_' && c != '-' {
			return false
		}
	}
	return len(s) >= 1 && len(s) <= 64
}
