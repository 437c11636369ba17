package jsonwire

import (
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
	if err := Valid(b); err != nil {
		return err
	}
	if !utf8.Valid(b) {
		return fmt.Errorf("invalid UTF-8")
	}
	end, err := strictValue(b, 0, 0)
	_ = end
	return err
}

// Lossless says why a text would not survive a JavaScript reader unchanged:
// a number that reads as -0 or overflows. The text must be valid.
func Lossless(b []byte) error {
	for i := 0; i < len(b); {
		switch c := b[i]; {
		case c == '"':
			i = skipString(b, i)
		case c == '-' || c >= '0' && c <= '9':
			j := Skip(b, i)
			if err := losslessNumber(b[i:j], i); err != nil {
				return err
			}
			i = j
		default:
			i++
		}
	}
	return nil
}

func losslessNumber(tok []byte, at int) error {
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

func strictValue(b []byte, i, depth int) (int, error) {
	i = Space(b, i)
	switch c := b[i]; {
	case c == '"':
		return skipString(b, i), nil
	case c == '{':
		if depth >= MaxWriteDepth {
			return i, fmt.Errorf("at byte %d: %w", i, ErrDepth)
		}
		return strictObject(b, i, depth)
	case c == '[':
		if depth >= MaxWriteDepth {
			return i, fmt.Errorf("at byte %d: %w", i, ErrDepth)
		}
		i = Space(b, i+1)
		for b[i] != ']' {
			var err error
			if i, err = strictValue(b, i, depth+1); err != nil {
				return i, err
			}
			if i = Space(b, i); b[i] == ',' {
				i = Space(b, i+1)
			}
		}
		return i + 1, nil
	case c == '-' || c >= '0' && c <= '9':
		j := Skip(b, i)
		return j, losslessNumber(b[i:j], i)
	default:
		return Skip(b, i), nil
	}
}

func strictObject(b []byte, i, depth int) (int, error) {
	var room [12][]byte
	names := room[:0]
	var seen map[string]bool // used once an object has many members
	i = Space(b, i+1)
	for b[i] != '}' {
		end := skipString(b, i)
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
		i = Space(b, end) + 1 // the colon
		var err error
		if i, err = strictValue(b, i, depth+1); err != nil {
			return i, err
		}
		if i = Space(b, i); b[i] == ',' {
			i = Space(b, i+1)
		}
	}
	return i + 1, nil
}

func hasEscape(a, b []byte) bool {
	for _, c := range a {
		if c == '\\' {
			return true
		}
	}
	for _, c := range b {
		if c == '\\' {
			return true
		}
	}
	return false
}
