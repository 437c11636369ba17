package wire

import (
	"bytes"
	"encoding/binary"
	"math/bits"
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
		odd = d.look(&p.look, line)
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

// into looks into a line that is valid JSON; nil: nothing is odd. Of a row in
// the usual spelling only its characters can be odd.
func (l *lookout) into(line []byte, usualRow bool) *oddities {
	o := oddities{notUTF8: !validUTF8(line)}
	if !usualRow {
		l.scan(line, &o)
	}
	if !o.notUTF8 && !o.twice && o.number == nil {
		return nil
	}
	found := o // most lines have none, and cost no memory
	return &found
}

// validUTF8 is utf8.Valid, faster for text with a few characters that are not
// ASCII.
func validUTF8(b []byte) bool {
	for i := 0; ; {
		for i+8 <= len(b) {
			w := binary.LittleEndian.Uint64(b[i:]) & 0x8080808080808080
			if w != 0 {
				i += bits.TrailingZeros64(w) >> 3
				break
			}
			i += 8
		}
		for i+8 > len(b) && i < len(b) && b[i] < utf8.RuneSelf {
			i++
		}
		if i == len(b) {
			return true
		}
		for i < len(b) && b[i] >= utf8.RuneSelf {
			r, n := utf8.DecodeRune(b[i:])
			if r == utf8.RuneError && n == 1 {
				return false
			}
			i += n
		}
	}
}

// fewNames is up to how many members are compared one by one.
const fewNames = 16

// scan finds the first name that an object has twice, and the first number that
// JavaScript cannot hold. It keeps the open objects on a stack of its own, so
// that depth costs no call stack.
func (l *lookout) scan(b []byte, o *oddities) {
	l.names, l.open = l.names[:0], l.open[:0]
	for i := 0; i < len(b); {
		switch c := b[i]; c {
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
			start := i + 1
			var plain bool
			if i, plain = shortString(b, start); !plain {
				i = jsonwire.SkipString(b, start-1)
			}
			end := i - 1
			if i < len(b) && b[i] <= ' ' {
				i = jsonwire.Space(b, i)
			}
			if i >= len(b) || b[i] != ':' || len(l.open) == 0 {
				continue
			}
			i++
			if o.twice {
				continue
			}
			name := b[start:end]
			if !plain && bytes.IndexByte(name, '\\') >= 0 {
				name = []byte(jsonwire.Key(name))
			}
			if l.has(name) {
				o.twice, o.name = true, string(name)
			}
		case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
			start := i
			for i++; i < len(b) && b[i]-'0' <= 9; i++ {
			}
			// Most are a few digits and no more.
			if c != '-' && i-start < 16 && (i == len(b) || b[i] == ',' || b[i] == '}' || b[i] == ']') {
				continue
			}
			i = jsonwire.Skip(b, start)
			if o.number == nil {
				o.number = jsonwire.LosslessNumber(b[start:i], start)
			}
		default:
			i++
		}
	}
}

// shortString finds the end of a string that begins at i, behind its quote, when
// it has at most 15 bytes and none of them is an escape. Nearly all names are
// such.
func shortString(b []byte, i int) (end int, ok bool) {
	for range 2 {
		if i+8 > len(b) {
			return i, false
		}
		const ones, high = 0x0101010101010101, 0x8080808080808080
		w := binary.LittleEndian.Uint64(b[i:])
		q, s := w^ones*'"', w^ones*'\\'
		if m := ((q-ones)&^q | (s-ones)&^s) & high; m != 0 {
			i += bits.TrailingZeros64(m) >> 3
			return i + 1, b[i] == '"'
		}
		i += 8
	}
	return i, false
}

// has adds a name, escapes decoded, to the innermost object and reports whether it was there.
func (l *lookout) has(name []byte) bool {
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
		if len(n) == len(name) && string(n) == string(name) {
			return true
		}
	}
	l.names = append(l.names, name)
	return false
}
