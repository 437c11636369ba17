package wire

import (
	"unicode/utf8"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
)

// WarningKind names an oddity that is read over.
type WarningKind string

const (
	WarnBlankLine     WarningKind = "BLANK_LINE"
	WarnCRLF          WarningKind = "CRLF"
	WarnDuplicateName WarningKind = "DUPLICATE_NAME" // after CheckContent
	WarnInvalidUTF8   WarningKind = "INVALID_UTF8"   // after CheckContent
	WarnNumber        WarningKind = "NUMBER_LOSSY"   // after CheckContent: -0, or beyond a double
)

// Warning is one oddity. Seq is that of the record that the line holds or that
// comes next.
type Warning struct {
	Kind WarningKind
	Pos  Pos
	Seq  outcrop.Seq
	Msg  string
}

// maxWarnings is how many warnings are kept; the others are counted.
const maxWarnings = 100

type warnings struct {
	list  []Warning
	count int
}

// warn notes an oddity of the current line.
func (p *parser) warn(kind WarningKind, msg string) {
	p.warns.count++
	if len(p.warns.list) < maxWarnings {
		p.warns.list = append(p.warns.list, Warning{kind, p.pos, p.next, msg})
	}
}

// content looks into a line that is valid JSON.
func (p *parser) content(line []byte) {
	if !utf8.Valid(line) {
		p.warn(WarnInvalidUTF8, "invalid UTF-8; readers see U+FFFD in its place, the bytes are kept")
	}
	if name, ok := duplicateName(line); ok {
		p.warn(WarnDuplicateName, "an object has two members called "+name+"; the last one counts")
	}
	if err := jsonwire.Lossless(line); err != nil {
		p.warn(WarnNumber, err.Error()+"; JavaScript readers see another number")
	}
}

// duplicateName finds a name that an object has twice. It keeps the open
// objects on a stack of its own, so that depth costs no call stack.
func duplicateName(b []byte) (string, bool) {
	type level struct {
		names []string // nil inside an array
		set   map[string]bool
	}
	var stack []level
	for i := 0; i < len(b); {
		switch b[i] {
		case '{':
			stack = append(stack, level{names: []string{}})
			i++
		case '[':
			stack = append(stack, level{})
			i++
		case '}', ']':
			if len(stack) > 0 {
				stack = stack[:len(stack)-1]
			}
			i++
		case '"':
			end := jsonwire.Skip(b, i)
			after := jsonwire.Space(b, end)
			if after >= len(b) || b[after] != ':' || len(stack) == 0 {
				i = end
				continue
			}
			name := jsonwire.Key(b[i+1 : end-1])
			l := &stack[len(stack)-1]
			if l.set == nil && len(l.names) >= 16 {
				l.set = map[string]bool{}
				for _, n := range l.names {
					l.set[n] = true
				}
			}
			if l.set != nil {
				if l.set[name] {
					return name, true
				}
				l.set[name] = true
			} else {
				for _, n := range l.names {
					if n == name {
						return name, true
					}
				}
				l.names = append(l.names, name)
			}
			i = after + 1
		default:
			i++
		}
	}
	return "", false
}
