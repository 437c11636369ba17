package dsh

import (
	"errors"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
)

// longLine reads a line piece by piece, by the rules of package jsonwire, and
// keeps nothing of it but what the scanner of dsh looks at: whether it is JSON,
// and the members type and seq. So a line of any length costs no memory.
type longLine struct {
	err   error
	state longState
	back  longState // behind the string that is open

	stack []byte // '{' or '[' for each open container
	kind  byte   // of the whole value, as jsonwire.Kind says it
	word  string // what is left of true, false or null
	hex   int    // digits of an escape that are still to come

	token     []byte // of the name or the value that is kept
	keep      bool   // the token is kept
	name      longName
	typ, seq  []byte // tokens of the members of the outermost object
	tooLong   bool   // the token is longer than any that counts
	valueKept bool   // the value that is open is one of them
}

type longName uint8

const (
	otherName longName = iota
	typeName
	seqName
)

type longState uint8

const (
	atValue      longState = iota
	atFirstValue           // behind [
	atFirstName            // behind {
	atName                 // behind , in an object
	atColon
	afterValue
	inString
	inEscape
	inHex
	inWord
	inMinus // a digit must follow
	inZero  // the number may go on with . or e
	inDigits
	inPoint // a digit must follow
	inFraction
	inExponent // a sign or a digit must follow
	inSign     // a digit must follow
	inExponentEnd
)

var errLongLine = errors.New("no JSON")

// maxToken is longer than any name or value that counts.
const maxToken = 64

func (l *longLine) bad() { l.err = errLongLine }

// write takes the next bytes of the line.
func (l *longLine) write(p []byte) {
	for i := 0; i < len(p) && l.err == nil; i++ {
		c := p[i]
		if l.state == inString && !l.keep {
			// Most of a long line is the inside of one string.
			for i < len(p) && p[i] >= 0x20 && p[i] != '"' && p[i] != '\\' {
				i++
			}
			if i == len(p) {
				return
			}
			c = p[i]
		}
		l.byte(c)
	}
}

func (l *longLine) byte(c byte) {
	if l.keep && l.state >= inString {
		if len(l.token) < maxToken {
			l.token = append(l.token, c)
		} else {
			l.tooLong = true
		}
	}
	switch l.state {
	case inString:
		switch {
		case c == '"':
			l.endString()
		case c == '\\':
			l.state = inEscape
		case c < 0x20:
			l.bad()
		}
		return
	case inEscape:
		switch c {
		case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
			l.state = inString
		case 'u':
			l.state, l.hex = inHex, 4
		default:
			l.bad()
		}
		return
	case inHex:
		if !(c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F') {
			l.bad()
		} else if l.hex--; l.hex == 0 {
			l.state = inString
		}
		return
	case inWord:
		if l.word == "" || c != l.word[0] {
			l.bad()
		} else if l.word = l.word[1:]; l.word == "" {
			l.endValue()
		}
		return
	}
	if l.state >= inMinus {
		if l.number(c) {
			return
		}
		// The number ended before this byte.
		if l.keep && !l.tooLong {
			l.token = l.token[:len(l.token)-1]
		}
		if l.err != nil {
			return
		}
		l.endValue()
	}
	if c == ' ' || c == '\t' || c == '\r' || c == '\n' {
		return
	}
	l.between(c)
}

// between takes a byte between tokens that is no space.
func (l *longLine) between(c byte) {
	if l.state == atFirstValue || l.state == atFirstName {
		switch {
		case l.state == atFirstValue && c == ']', l.state == atFirstName && c == '}':
			l.stack = l.stack[:len(l.stack)-1]
			l.endValue()
			return
		case len(l.stack) > jsonwire.MaxReadDepth: // an empty one may stand there
			l.err = jsonwire.ErrDepth
			return
		}
	}
	switch l.state {
	case atFirstValue, atValue:
		l.value(c)
	case atFirstName, atName:
		if c != '"' {
			l.bad()
			return
		}
		l.state, l.back = inString, atColon
		l.keep, l.token, l.tooLong = len(l.stack) == 1, l.token[:0], false
	case atColon:
		if c != ':' {
			l.bad()
		}
		l.state = atValue
	case afterValue:
		if len(l.stack) == 0 {
			l.bad() // trailing bytes
			return
		}
		object := l.stack[len(l.stack)-1] == '{'
		switch {
		case c == ',' && object:
			l.state = atName
		case c == ',':
			l.state = atValue
		case c == '}' && object, c == ']' && !object:
			l.stack = l.stack[:len(l.stack)-1]
			l.endValue()
		default:
			l.bad()
		}
	}
}

// value begins a value.
func (l *longLine) value(c byte) {
	if len(l.stack) == 0 {
		l.kind = c
		if c == '-' || c >= '0' && c <= '9' {
			l.kind = '0'
		}
	}
	l.valueKept = len(l.stack) == 1 && l.stack[0] == '{' && l.name != otherName
	if l.valueKept {
		l.keep, l.token, l.tooLong = true, append(l.token[:0], c), false
	}
	switch {
	case c == '"':
		l.state, l.back = inString, afterValue
	case c == '{' || c == '[':
		if l.valueKept {
			l.kept([]byte{c}) // of a kind that counts for nothing
		}
		l.stack = append(l.stack, c)
		if l.state = atFirstName; c == '[' {
			l.state = atFirstValue
		}
	case c == 't':
		l.state, l.word = inWord, "rue"
	case c == 'f':
		l.state, l.word = inWord, "alse"
	case c == 'n':
		l.state, l.word = inWord, "ull"
	case c == '-':
		l.state = inMinus
	case c == '0':
		l.state = inZero
	case c > '0' && c <= '9':
		l.state = inDigits
	default:
		l.bad()
	}
}

// number takes a byte of a number; false when the number ended before it.
func (l *longLine) number(c byte) bool {
	digit := c >= '0' && c <= '9'
	next := l.state
	switch l.state {
	case inMinus:
		if next = inDigits; c == '0' {
			next = inZero
		}
	case inPoint:
		next = inFraction
	case inSign:
		next = inExponentEnd
	case inExponent:
		if next = inExponentEnd; c == '+' || c == '-' {
			l.state = inSign
			return true
		}
	case inZero, inDigits, inFraction, inExponentEnd:
		switch {
		case digit && l.state != inZero:
			return true
		case c == '.' && l.state <= inDigits:
			l.state = inPoint
			return true
		case (c == 'e' || c == 'E') && l.state != inExponentEnd:
			l.state = inExponent
			return true
		}
		return false
	}
	if !digit {
		l.bad()
		return false
	}
	l.state = next
	return true
}

// endString ends a name or a string.
func (l *longLine) endString() {
	if l.back == afterValue {
		l.endValue()
		return
	}
	l.state = atColon
	if !l.keep {
		return
	}
	l.keep, l.name = false, otherName
	if l.tooLong {
		return
	}
	switch key := l.token[:len(l.token)-1]; {
	case jsonwire.KeyIs(key, "type"):
		l.name = typeName
	case jsonwire.KeyIs(key, "seq"):
		l.name = seqName
	}
}

// endValue ends a value that was begun.
func (l *longLine) endValue() {
	if l.valueKept && len(l.stack) == 1 && l.keep {
		if l.tooLong {
			l.token = l.token[:0]
		}
		l.kept(l.token)
	}
	l.state = afterValue
}

// kept keeps the value of the member that l.name says.
func (l *longLine) kept(token []byte) {
	own := append([]byte(nil), token...)
	if l.name == typeName {
		l.typ = own
	} else {
		l.seq = own
	}
	l.keep, l.valueKept = false, false
}

// end is what the line is, when all of it was written.
func (l *longLine) end() lineInfo {
	if l.err == nil && l.state >= inMinus {
		if l.number(' '); l.err == nil {
			l.endValue()
		}
	}
	inFirst := l.state == atFirstValue || l.state == atFirstName
	switch {
	case errors.Is(l.err, jsonwire.ErrDepth), l.err == nil && inFirst && len(l.stack) > jsonwire.MaxReadDepth:
		return lineInfo{kind: tooDeep}
	case l.err != nil || l.state != afterValue || len(l.stack) > 0:
		return lineInfo{kind: notJSON}
	case l.kind == 'n':
		return lineInfo{kind: isNull}
	case l.kind != '{':
		return lineInfo{kind: isOther}
	}
	out := lineInfo{kind: isOther, count: 1, turnEnd: jsonwire.TextIs(l.typ, string(outcrop.TypeTurnEnd))}
	switch t, _ := jsonwire.Text(l.typ); t {
	case "text-chunks", "reasoning-chunks", "tool-call-chunks":
		return lineInfo{kind: notJSON} // every writer puts the type of a row first
	}
	if n, ok := jsonwire.Int(l.seq); ok {
		out.kind, out.seq = isEvent, n
	}
	return out
}
