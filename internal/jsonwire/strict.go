package jsonwire

import (
	"bytes"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// MaxWriteDepth is the deepest nesting that is ever written.
const MaxWriteDepth = 1_000

// Strict says why a text must not be written into a log, or nil: it must be
// one JSON value without duplicate names, valid UTF-8 (lone surrogates only as
// escapes), at most MaxWriteDepth deep, and every number must survive a
// JavaScript reader, so no -0 and nothing beyond the range of a double.
func Strict(b []byte) error {
	if !utf8.Valid(b) {
		return fmt.Errorf("invalid UTF-8")
	}
	end, err := strictValue(b, Space(b, 0), 0)
	if err != nil {
		return err
	}
	if end = Space(b, end); end != len(b) {
		return syntax(end, "trailing bytes after the value")
	}
	return nil
}

// Lossless says why a text would not survive a JavaScript reader unchanged:
// a number that reads as -0 or overflows. The text must be valid.
func Lossless(b []byte) error {
	for i := 0; i < len(b); {
		switch c := b[i]; {
		case c == '"':
			i = SkipString(b, i)
		case c == '-' || c >= '0' && c <= '9':
			j := Skip(b, i)
			if err := LosslessNumber(b[i:j], i); err != nil {
				return err
			}
			i = j
		default:
			i++
		}
	}
	return nil
}

// LosslessNumber is Lossless for one number, which stands at offset at of its
// text.
func LosslessNumber(tok []byte, at int) error {
	if len(tok) < 16 {
		plain := true
		for k, c := range tok {
			if c < '0' || c > '9' {
				plain = k == 0 && c == '-' && len(tok) > 1 && tok[1] != '0'
				if !plain {
					break
				}
			}
		}
		if plain {
			return nil
		}
	}
	f, err := strconv.ParseFloat(string(tok), 64)
	if err != nil {
		return fmt.Errorf("number %s at byte %d overflows", clip(tok), at)
	}
	if f == 0 && tok[0] == '-' {
		return fmt.Errorf("number -0 at byte %d", at)
	}
	return nil
}

func clip(b []byte) string {
	if len(b) > 40 {
		return string(b[:40]) + "…"
	}
	return string(b)
}

// strictValue checks the value at i, where no white space stands, and returns
// the offset behind it.
func strictValue(b []byte, i, depth int) (int, error) {
	if i >= len(b) {
		return i, syntax(i, "value missing")
	}
	switch c := b[i]; c {
	case '"':
		return String(b, i)
	case '{':
		if depth >= MaxWriteDepth {
			return i, fmt.Errorf("at byte %d: %w", i, ErrDepth)
		}
		return strictObject(b, i, depth)
	case '[':
		if depth >= MaxWriteDepth {
			return i, fmt.Errorf("at byte %d: %w", i, ErrDepth)
		}
		return strictArray(b, i, depth)
	case 't':
		return literal(b, i, "true")
	case 'f':
		return literal(b, i, "false")
	case 'n':
		return literal(b, i, "null")
	default:
		if c != '-' && (c < '0' || c > '9') {
			return i, syntax(i, "a value cannot start with "+quoteByte(c))
		}
		end, err := number(b, i)
		if err == nil {
			err = LosslessNumber(b[i:end], i)
		}
		return end, err
	}
}

// next skips white space from i on.
func next(b []byte, i int) int {
	if i < len(b) && b[i] <= ' ' {
		return Space(b, i)
	}
	return i
}

func strictArray(b []byte, i, depth int) (int, error) {
	i = next(b, i+1)
	if i < len(b) && b[i] == ']' {
		return i + 1, nil
	}
	for {
		end, err := strictValue(b, i, depth+1)
		if err != nil {
			return end, err
		}
		switch i = next(b, end); {
		case i >= len(b):
			return i, syntax(i, "text ends inside a value")
		case b[i] == ',':
			i = next(b, i+1)
		case b[i] == ']':
			return i + 1, nil
		default:
			return i, syntax(i, "expected , or ] but found "+quoteByte(b[i]))
		}
	}
}

func strictObject(b []byte, i, depth int) (int, error) {
	var room [12][]byte
	names := room[:0]
	var seen map[string]bool // used once an object has many members
	i = next(b, i+1)
	if i < len(b) && b[i] == '}' {
		return i + 1, nil
	}
	for {
		behind, err := name(b, i)
		if err != nil {
			return i, err
		}
		end := SkipString(b, i)
		key := b[i+1 : end-1]
		if seen == nil && len(names) == cap(room[:]) {
			seen = make(map[string]bool, 32)
			for _, n := range names {
				seen[Key(n)] = true
			}
		}
		if seen != nil {
			k := Key(key)
			if seen[k] {
				return i, fmt.Errorf("duplicate name %q at byte %d", k, i)
			}
			seen[k] = true
		} else {
			for _, n := range names {
				if string(n) == string(key) || hasEscape(n, key) && Key(n) == Key(key) {
					return i, fmt.Errorf("duplicate name %q at byte %d", Key(key), i)
				}
			}
			names = append(names, key)
		}
		if end, err = strictValue(b, next(b, behind), depth+1); err != nil {
			return end, err
		}
		switch i = next(b, end); {
		case i >= len(b):
			return i, syntax(i, "text ends inside a value")
		case b[i] == ',':
			i = next(b, i+1)
		case b[i] == '}':
			return i + 1, nil
		default:
			return i, syntax(i, "expected , or } but found "+quoteByte(b[i]))
		}
	}
}

func hasEscape(a, b []byte) bool {
	return bytes.IndexByte(a, '\\') >= 0 || bytes.IndexByte(b, '\\') >= 0
}
