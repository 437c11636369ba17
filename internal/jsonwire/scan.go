// Package jsonwire is the one place where Outcrop meets JSON text. It has
//
//   - a scanner that checks one value in a single pass and gives spans of the
//     input, so that an event keeps the bytes it came with (scan.go, walk.go),
//   - the writer's rules: what may be written, and how a string is escaped
//     (strict.go, append.go),
//   - decoding into Go values, through github.com/go-json-experiment/json
//     (decode.go), the only import of a JSON library in this module.
//
// Reading is lenient as a JavaScript reader is: duplicate names are allowed
// and the last one wins, invalid UTF-8 inside strings is allowed and kept.
// Syntax is not lenient: control characters, bad escapes, bad numbers and
// trailing bytes are errors.
package jsonwire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
)

// MaxReadDepth is the deepest nesting that a reader accepts.
const MaxReadDepth = 10_000

// ErrDepth is wrapped by the error for a value that nests too deeply.
var ErrDepth = errors.New("nested too deeply")

// SyntaxError says where a text stops being JSON.
type SyntaxError struct {
	Offset int // bytes from the start of the scanned text
	Msg    string
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("not JSON at byte %d: %s", e.Offset, e.Msg)
}

func syntax(i int, msg string) error { return &SyntaxError{i, msg} }

// Valid reports whether b is exactly one JSON value, white space around it
// allowed.
func Valid(b []byte) error {
	end, err := Value(b, 0)
	if err != nil {
		return err
	}
	if end = Space(b, end); end != len(b) {
		return syntax(end, "trailing bytes after the value")
	}
	return nil
}

// Space returns the first offset at or after i that is not JSON white space.
func Space(b []byte, i int) int {
	for i < len(b) {
		switch b[i] {
		case ' ', '\t', '\n', '\r':
			i++
		default:
			return i
		}
	}
	return i
}

// Value checks the JSON value that starts at or after offset i (white space
// is skipped) and returns the offset behind it. It does not recurse, so depth
// costs one byte a level; deeper than MaxReadDepth is an error that wraps
// ErrDepth.
func Value(b []byte, i int) (int, error) {
	var room [64]byte
	stack := room[:0] // '{' or '[' for each open container
	for {
		// A value starts here.
		if i < len(b) && b[i] <= ' ' {
			i = Space(b, i)
		}
		if i >= len(b) {
			return i, syntax(i, "value missing")
		}
		var err error
		switch c := b[i]; c {
		case '"':
			if i, err = String(b, i); err != nil {
				return i, err
			}
		case '{':
			if i++; i < len(b) && b[i] <= ' ' {
				i = Space(b, i)
			}
			if i < len(b) && b[i] == '}' {
				i++
				break
			}
			if len(stack) >= MaxReadDepth {
				return i, fmt.Errorf("not readable at byte %d: %w", i, ErrDepth)
			}
			stack = append(stack, '{')
			if i, err = name(b, i); err != nil {
				return i, err
			}
			continue
		case '[':
			if i++; i < len(b) && b[i] <= ' ' {
				i = Space(b, i)
			}
			if i < len(b) && b[i] == ']' {
				i++
				break
			}
			if len(stack) >= MaxReadDepth {
				return i, fmt.Errorf("not readable at byte %d: %w", i, ErrDepth)
			}
			stack = append(stack, '[')
			continue
		case 't':
			if i, err = literal(b, i, "true"); err != nil {
				return i, err
			}
		case 'f':
			if i, err = literal(b, i, "false"); err != nil {
				return i, err
			}
		case 'n':
			if i, err = literal(b, i, "null"); err != nil {
				return i, err
			}
		default:
			if c != '-' && (c < '0' || c > '9') {
				return i, syntax(i, "a value cannot start with "+quoteByte(c))
			}
			if i, err = number(b, i); err != nil {
				return i, err
			}
		}
		// A value ended; close containers until one goes on.
		for {
			if len(stack) == 0 {
				return i, nil
			}
			if i < len(b) && b[i] <= ' ' {
				i = Space(b, i)
			}
			if i >= len(b) {
				return i, syntax(i, "text ends inside a value")
			}
			if stack[len(stack)-1] == '{' {
				if b[i] == ',' {
					if i++; i < len(b) && b[i] <= ' ' {
						i = Space(b, i)
					}
					if i, err = name(b, i); err != nil {
						return i, err
					}
					break
				}
				if b[i] != '}' {
					return i, syntax(i, "expected , or } but found "+quoteByte(b[i]))
				}
			} else {
				if b[i] == ',' {
					i++
					break
				}
				if b[i] != ']' {
					return i, syntax(i, "expected , or ] but found "+quoteByte(b[i]))
				}
			}
			stack = stack[:len(stack)-1]
			i++
		}
	}
}

// name checks a member name and its colon at i and returns the offset behind.
func name(b []byte, i int) (int, error) {
	if i >= len(b) || b[i] != '"' {
		return i, syntax(i, "member name missing")
	}
	i, err := String(b, i)
	if err != nil {
		return i, err
	}
	if i < len(b) && b[i] == ':' {
		return i + 1, nil
	}
	if i = Space(b, i); i >= len(b) || b[i] != ':' {
		return i, syntax(i, "colon missing")
	}
	return i + 1, nil
}

func literal(b []byte, i int, word string) (int, error) {
	if len(b)-i < len(word) || string(b[i:i+len(word)]) != word {
		return i, syntax(i, "unknown word")
	}
	return i + len(word), nil
}

const (
	low7  = 0x7f7f7f7f7f7f7f7f
	high1 = 0x8080808080808080
	ones  = 0x0101010101010101
)

// special has the high bit of each byte set that is '"', '\\' or a control
// character, at least for the lowest such byte.
func special(w uint64) uint64 {
	q := w ^ (ones * '"')
	s := w ^ (ones * '\\')
	return ((q-ones)&^q)&high1 | ((s-ones)&^s)&high1 | ((w-ones*0x20)&^w)&high1
}

// String checks the JSON string whose opening quote is at i and returns the
// offset behind its closing quote.
func String(b []byte, i int) (int, error) {
	i++
	// Most strings end within three words.
	for end := i + 24; i < end && i+8 <= len(b); {
		m := special(binary.LittleEndian.Uint64(b[i:]))
		if m == 0 {
			i += 8
			continue
		}
		if i += bits.TrailingZeros64(m) >> 3; b[i] == '"' {
			return i + 1, nil
		}
		n, err := escape(b, i)
		if err != nil {
			return i, err
		}
		i += n
	}
	for i+64 <= len(b) {
		at := i
		i += 64
		for m := specials(blockOf(b, at)); m != 0; {
			k := bits.TrailingZeros64(m)
			if b[at+k] == '"' {
				return at + k + 1, nil
			}
			n, err := escape(b, at+k)
			if err != nil {
				return at + k, err
			}
			m &= ^uint64(0) << (k + n)
			i = max(i, at+k+n)
		}
	}
	for {
		for i < len(b) && b[i] >= 0x20 && b[i] != '"' && b[i] != '\\' {
			i++
		}
		if i >= len(b) {
			return i, syntax(i, "text ends inside a string")
		}
		if b[i] == '"' {
			return i + 1, nil
		}
		n, err := escape(b, i)
		if err != nil {
			return i, err
		}
		i += n
	}
}

// escape is the length of the escape at i, where another special byte is an
// error.
func escape(b []byte, i int) (int, error) {
	if b[i] != '\\' {
		return 0, syntax(i, "raw control character in a string")
	}
	if i+1 >= len(b) {
		return 0, syntax(i, "text ends inside a string")
	}
	n := int(escapeSize[b[i+1]])
	if n == 2 {
		return n, nil
	}
	return n, wideEscape(b, i, n)
}

// wideEscape says what is wrong with an escape that takes n bytes, which is not
// two.
func wideEscape(b []byte, i, n int) error {
	switch {
	case n == 0:
		return syntax(i, "bad escape \\"+quoteByte(b[i+1]))
	case i+n > len(b):
		return syntax(i, "text ends inside an escape")
	case !hex4ok(b[i+2:]):
		return syntax(i, "bad \\u escape")
	}
	return nil
}

func hex4ok(b []byte) bool {
	for k := range 4 {
		c := b[k]
		if !(c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F') {
			return false
		}
	}
	return true
}

func number(b []byte, i int) (int, error) {
	start := i
	if b[i] == '-' {
		i++
	}
	switch {
	case i < len(b) && b[i] == '0':
		i++
	case i < len(b) && b[i] >= '1' && b[i] <= '9':
		i = digits(b, i)
	default:
		return start, syntax(i, "digit missing")
	}
	if i < len(b) && b[i] == '.' {
		j := digits(b, i+1)
		if j == i+1 {
			return start, syntax(j, "digit missing after the point")
		}
		i = j
	}
	if i < len(b) && (b[i] == 'e' || b[i] == 'E') {
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		j := digits(b, i)
		if j == i {
			return start, syntax(j, "digit missing in the exponent")
		}
		i = j
	}
	return i, nil
}

func digits(b []byte, i int) int {
	for i < len(b) && b[i] >= '0' && b[i] <= '9' {
		i++
	}
	return i
}

func quoteByte(c byte) string {
	if c >= 0x21 && c < 0x7f {
		return string(rune(c))
	}
	return fmt.Sprintf("byte 0x%02x", c)
}
