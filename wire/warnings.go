package wire

import (
	"bytes"
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

// content warns of what is odd in a line that is valid JSON. Lines that were
// decoded ahead were looked into there.
func (p *parser) content(line []byte, d *decoded) {
	odd := d.odd
	if !d.looked {
		odd = p.look.into(line)
	}
	if odd == nil {
		return
	}
	if odd.notUTF8 {
		p.warn(WarnInvalidUTF8, "invalid UTF-8; readers see U+FFFD in its place, the bytes are kept")
	}
	if odd.twice {
		p.warn(WarnDuplicateName, "an object has two members called "+odd.name+"; the last one counts")
	}
	if odd.number != nil {
		p.warn(WarnNumber, odd.number.Error()+"; JavaScript readers see another number")
	}
}

// oddities are what a line holds that readers see differently.
type oddities struct {
	notUTF8 bool
	twice   bool
	name    string // that an object has twice
	number  error
}

// lookout looks for oddities. It keeps its memory from line to line.
type lookout struct {
	names [][]byte // of the open objects, one behind the other
	open  []opened
}

// opened is an object or an array that has begun.
type opened struct {
	from int                 // where its names begin; -1 for an array
	set  map[string]struct{} // of an object with many names
}

// into looks into a line that is valid JSON; nil: nothing is odd.
func (l *lookout) into(line []byte) *oddities {
	o := oddities{notUTF8: !utf8.Valid(line)}
	o.name, o.twice = l.duplicateName(line)
	if o.number = jsonwire.Lossless(line); !o.notUTF8 && !o.twice && o.number == nil {
		return nil
	}
	return &o
}

// fewNames is up to how many members are compared one by one.
const fewNames = 16

// duplicateName finds a name that an object has twice. It keeps the open
// objects on a stack of its own, so that depth costs no call stack.
func (l *lookout) duplicateName(b []byte) (string, bool) {
	l.names, l.open = l.names[:0], l.open[:0]
	for i := 0; i < len(b); {
		switch b[i] {
		case '{':
			l.open = append(l.open, opened{from: len(l.names)})
			i++
		case '[':
			l.open = append(l.open, opened{from: -1})
			i++
		case '}', ']':
			if n := len(l.open); n > 0 {
				if from := l.open[n-1].from; from >= 0 {
					l.names = l.names[:from]
				}
				l.open = l.open[:n-1]
			}
			i++
		case '"':
			end := jsonwire.Skip(b, i)
			after := jsonwire.Space(b, end)
			if after >= len(b) || b[after] != ':' || len(l.open) == 0 {
				i = end
				continue
			}
			if name := b[i+1 : end-1]; l.has(name) {
				return jsonwire.Key(name), true
			}
			i = after + 1
		default:
			i++
		}
	}
	return "", false
}

// has adds a name to the innermost object and reports whether it was there.
func (l *lookout) has(name []byte) bool {
	if bytes.IndexByte(name, '\\') >= 0 {
		name = []byte(jsonwire.Key(name))
	}
	o := &l.open[len(l.open)-1]
	if o.from < 0 {
		return false
	}
	siblings := l.names[o.from:]
	if o.set == nil && len(siblings) >= fewNames {
		o.set = make(map[string]struct{}, 2*fewNames)
		for _, n := range siblings {
			o.set[string(n)] = struct{}{}
		}
	}
	if o.set != nil {
		_, twice := o.set[string(name)]
		o.set[string(name)] = struct{}{}
		return twice
	}
	for _, n := range siblings {
		if bytes.Equal(n, name) {
			return true
		}
	}
	l.names = append(l.names, name)
	return false
}
