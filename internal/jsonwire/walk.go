package jsonwire

import (
	"bytes"
	"encoding/binary"
	"iter"
	"math"
	"math/bits"
	"strconv"
	"unsafe"
)

// The functions in this file read text that Value has already found valid.
// On other text they give wrong answers, but never read out of bounds.

// Kind is the first byte of a value with white space skipped: '{', '[', '"',
// '0' for any number, 't', 'f', 'n', or 0 for no value at all.
func Kind(v []byte) byte {
	i := Space(v, 0)
	if i >= len(v) {
		return 0
	}
	switch c := v[i]; {
	case c == '-' || c >= '0' && c <= '9':
		return '0'
	default:
		return c
	}
}

// Skip returns the offset behind the value that starts at or after i.
func Skip(b []byte, i int) int {
	i = Space(b, i)
	if i >= len(b) {
		return i
	}
	switch b[i] {
	case '"':
		return SkipString(b, i)
	case '{', '[':
		depth := 0
		for i < len(b) {
			switch b[i] {
			case '"':
				i = SkipString(b, i)
				continue
			case '{', '[':
				depth++
			case '}', ']':
				depth--
				if depth == 0 {
					return i + 1
				}
			}
			i++
		}
		return i
	default:
		for i < len(b) {
			switch b[i] {
			case ',', '}', ']', ' ', '\t', '\n', '\r':
				return i
			}
			i++
		}
		return i
	}
}

// SkipString returns the offset behind the string whose opening quote is at i.
func SkipString(b []byte, i int) int {
	// Short strings word by word, long ones with the wide search of the standard
	// library.
	i, closed := skipWords(b, i+1, 32)
	if closed {
		return i
	}
	quote := -1 // the next one, found once: a long text has far more escapes
	for i < len(b) {
		if quote < i {
			n := bytes.IndexByte(b[i:], '"')
			if n < 0 {
				return len(b)
			}
			quote = i + n
		}
		e := bytes.IndexByte(b[i:quote], '\\')
		if e < 0 {
			return quote + 1
		}
		// Behind an escape go on word by word for a while: where there is one
		// there are more.
		if i, closed = skipWords(b, i+e+2, 64); closed {
			return i
		}
	}
	return len(b)
}

// skipWords looks for the closing quote of a string in the next n bytes or a few
// more; closed: i is behind it.
func skipWords(b []byte, i, n int) (at int, closed bool) {
	end := i + n
	for i < end && i+8 <= len(b) {
		w := binary.LittleEndian.Uint64(b[i:])
		q, s := w^ones*'"', w^ones*'\\'
		m := ((q-ones)&^q | (s-ones)&^s) & high1
		if m == 0 {
			i += 8
			continue
		}
		if i += bits.TrailingZeros64(m) >> 3; b[i] == '"' {
			return i + 1, true
		}
		i += 2
	}
	if i < end {
		for end = min(end, len(b)); i < end; {
			switch b[i] {
			case '"':
				return i + 1, true
			case '\\':
				i += 2
			default:
				i++
			}
		}
	}
	return i, false
}

// Members yields the members of an object in order: the name as it stands
// between its quotes, escapes included, and the value's span. Duplicates are
// yielded each; a caller for whom the last one wins takes the last one.
func Members(obj []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func([]byte, []byte) bool) {
		i := Space(obj, 0)
		if i >= len(obj) || obj[i] != '{' {
			return
		}
		i++
		for {
			i = Space(obj, i)
			if i >= len(obj) || obj[i] != '"' {
				return
			}
			end := SkipString(obj, i)
			key := obj[i+1 : max(i+1, end-1)]
			i = Space(obj, end)
			if i >= len(obj) || obj[i] != ':' {
				return
			}
			i = Space(obj, i+1)
			end = Skip(obj, i)
			if !yield(key, obj[i:end:end]) {
				return
			}
			i = Space(obj, end)
			if i >= len(obj) || obj[i] != ',' {
				return
			}
			i++
		}
	}
}

// Elements yields the spans of an array's elements.
func Elements(arr []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		i := Space(arr, 0)
		if i >= len(arr) || arr[i] != '[' {
			return
		}
		i = Space(arr, i+1)
		if i < len(arr) && arr[i] == ']' {
			return
		}
		for i < len(arr) {
			i = Space(arr, i)
			end := Skip(arr, i)
			if !yield(arr[i:end:end]) {
				return
			}
			i = Space(arr, end)
			if i >= len(arr) || arr[i] != ',' {
				return
			}
			i++
		}
	}
}

// Get returns the value of the last member called name, or nil.
func Get(obj []byte, name string) []byte {
	var got []byte
	for k, v := range Members(obj) {
		if KeyIs(k, name) {
			got = v
		}
	}
	return got
}

// KeyIs compares a name from Members with plain text, escapes decoded.
func KeyIs(key []byte, name string) bool {
	if string(key) == name {
		return true
	}
	for _, c := range key {
		if c == '\\' {
			return Key(key) == name
		}
	}
	return false
}

// Key is a name from Members with its escapes decoded.
func Key(key []byte) string {
	if at := bytes.IndexByte(key, '\\'); at >= 0 {
		return unescape(key, at)
	}
	return string(key)
}

// Text decodes a string value. Lone surrogates come back as their WTF-8 bytes,
// which AppendString writes as escapes again. ok is false for another kind.
func Text(v []byte) (s string, ok bool) {
	i := Space(v, 0)
	if i >= len(v) || v[i] != '"' {
		return "", false
	}
	end := SkipString(v, i)
	if end-1 < i+1 {
		return "", false
	}
	return Key(v[i+1 : end-1]), true
}

// TextIs reports whether v is a string equal to s, without allocating when v
// has no escapes.
func TextIs(v []byte, s string) bool {
	if len(v) == len(s)+2 && v[0] == '"' && string(v[1:len(v)-1]) == s {
		return true
	}
	for _, c := range v {
		if c == '\\' {
			t, ok := Text(v)
			return ok && t == s
		}
	}
	return false
}

// unescape decodes the text of a string whose first escape stands at the offset
// at. What lies between escapes is copied word by word: what is decoded is never
// longer than its text, so a word that is copied too far is written over.
func unescape(b []byte, at int) string {
	out := make([]byte, len(b))
	n := copy(out, b[:at])
	for i := at; i < len(b); {
		if i+8 <= len(b) {
			w := binary.LittleEndian.Uint64(b[i:])
			binary.LittleEndian.PutUint64(out[n:], w)
			s := w ^ ones*'\\'
			m := (s - ones) &^ s & high1
			if m == 0 {
				i, n = i+8, n+8
				continue
			}
			k := bits.TrailingZeros64(m) >> 3
			i, n = i+k, n+k
		}
		if b[i] != '\\' || i+1 >= len(b) {
			out[n] = b[i]
			i, n = i+1, n+1
			continue
		}
		c := b[i+1]
		if c != 'u' {
			switch c {
			case 'b':
				c = '\b'
			case 'f':
				c = '\f'
			case 'n':
				c = '\n'
			case 'r':
				c = '\r'
			case 't':
				c = '\t'
			}
			out[n] = c
			i, n = i+2, n+1
			continue
		}
		if i+6 > len(b) {
			break
		}
		u := hex4(b[i+2:])
		i += 6
		if u >= 0xd800 && u < 0xdc00 && i+6 <= len(b) && b[i] == '\\' && b[i+1] == 'u' {
			if lo := hex4(b[i+2:]); lo >= 0xdc00 && lo < 0xe000 {
				i += 6
				r := 0x10000 + (u-0xd800)<<10 + (lo - 0xdc00)
				n += copy(out[n:], []byte{byte(0xf0 | r>>18), byte(0x80 | r>>12&0x3f), byte(0x80 | r>>6&0x3f), byte(0x80 | r&0x3f)})
				continue
			}
		}
		n = len(appendUnit(out[:n], u))
	}
	return unsafe.String(unsafe.SliceData(out), n) // nobody else has it
}

// appendUnit writes one UTF-16 code unit as UTF-8, a surrogate as WTF-8.
func appendUnit(out []byte, u uint32) []byte {
	switch {
	case u < 0x80:
		return append(out, byte(u))
	case u < 0x800:
		return append(out, byte(0xc0|u>>6), byte(0x80|u&0x3f))
	default:
		return append(out, byte(0xe0|u>>12), byte(0x80|u>>6&0x3f), byte(0x80|u&0x3f))
	}
}

func hex4(b []byte) uint32 {
	var u uint32
	for k := range 4 {
		c := b[k]
		switch {
		case c >= '0' && c <= '9':
			u = u<<4 | uint32(c-'0')
		case c >= 'a' && c <= 'f':
			u = u<<4 | uint32(c-'a'+10)
		case c >= 'A' && c <= 'F':
			u = u<<4 | uint32(c-'A'+10)
		}
	}
	return u
}

// MaxSafe is the largest integer that a JavaScript number holds exactly.
const MaxSafe = 1<<53 - 1

// Int reads a number token as a JavaScript reader would and reports whether it
// is a safe integer: 7, 7.0, 7e0 and -0 are, 7.5 and 1e300 are not.
func Int(v []byte) (int64, bool) {
	if len(v) == 0 {
		return 0, false
	}
	if len(v) <= 15 {
		n, i := int64(0), 0
		neg := v[0] == '-'
		if neg {
			i++
		}
		for ; i < len(v); i++ {
			c := v[i] - '0'
			if c > 9 {
				break
			}
			n = n*10 + int64(c)
		}
		if i == len(v) && (len(v) > 1 || !neg) {
			if neg {
				n = -n
			}
			return n, true
		}
	}
	return intSlow(v)
}

func intSlow(v []byte) (int64, bool) {
	if Kind(v) != '0' {
		return 0, false
	}
	f, err := strconv.ParseFloat(string(v), 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) > MaxSafe {
		return 0, false
	}
	return int64(f), true
}

// IsNegativeZero reports whether a number token is one that JavaScript reads
// as -0, a value that JSON.stringify does not write back.
func IsNegativeZero(v []byte) bool {
	if len(v) < 2 || v[0] != '-' {
		return false
	}
	f, err := strconv.ParseFloat(string(v), 64)
	return err == nil && f == 0
}
