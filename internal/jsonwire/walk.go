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
	i++
	// Most strings end within four words.
	for end := i + 32; i < end && i+8 <= len(b); {
		w := binary.LittleEndian.Uint64(b[i:])
		q, s := w^ones*'"', w^ones*'\\'
		m := ((q-ones)&^q | (s-ones)&^s) & high1
		if m == 0 {
			i += 8
			continue
		}
		if i += bits.TrailingZeros64(m) >> 3; b[i] == '"' {
			return i + 1
		}
		i += 2
	}
	for i+64 <= len(b) {
		at := i
		i += 64
		for m := specials(blockOf(b, at)); m != 0; {
			k := bits.TrailingZeros64(m)
			m &= m - 1
			switch b[at+k] {
			case '"':
				return at + k + 1
			case '\\':
				m &^= 2 << k
				i = max(i, at+k+2)
			}
		}
	}
	for i < len(b) {
		switch b[i] {
		case '"':
			return i + 1
		case '\\':
			i++
		}
		i++
	}
	return len(b)
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
// at. What lies between escapes is copied in pieces: what is decoded
// is never longer than its text, so what was copied too far is written over.
func unescape(b []byte, at int) string {
	out := make([]byte, len(b))
	n := copy(out, b[:at])
	i := at
	for i+64+piece <= len(b) {
		from := i // what is not copied yet
		end := i + 64
		for m := specials(blockOf(b, i)); m != 0; {
			k := bits.TrailingZeros64(m)
			p := i + k
			if b[p] != '\\' {
				m &= m - 1 // nothing that is valid has it
				continue
			}
			copyPiece((*[piece]byte)(out[n:]), (*[piece]byte)(b[from:]))
			if p-from > piece {
				copy(out[n:], b[from:p])
			}
			n += p - from
			size := 2
			if c := b[p+1]; c != 'u' {
				out[n] = plain[c]
				n++
			} else if n, size = unescapeUnit(out, n, b, p); size == 0 {
				return unsafe.String(unsafe.SliceData(out), n)
			}
			from = p + size
			m &= ^uint64(0) << (k + size)
		}
		if i = max(from, end); from < i {
			n += copy(out[n:], b[from:i])
		}
	}
	for i < len(b) {
		if b[i] != '\\' || i+1 >= len(b) {
			out[n] = b[i]
			i, n = i+1, n+1
			continue
		}
		size := 2
		if c := b[i+1]; c != 'u' {
			out[n] = plain[c]
			n++
		} else if n, size = unescapeUnit(out, n, b, i); size == 0 {
			break
		}
		i += size
	}
	return unsafe.String(unsafe.SliceData(out), n) // nobody else has it
}

// piece is how much is copied at once between escapes: most runs are shorter, and
// so need no branch that can be guessed wrong.
const piece = 32

// copyPiece copies the piece at src to dst. It is in words for the compiler, which
// would take the two for overlapping.
func copyPiece(dst, src *[piece]byte) {
	w0, w1 := binary.LittleEndian.Uint64(src[:]), binary.LittleEndian.Uint64(src[8:])
	w2, w3 := binary.LittleEndian.Uint64(src[16:]), binary.LittleEndian.Uint64(src[24:])
	binary.LittleEndian.PutUint64(dst[:], w0)
	binary.LittleEndian.PutUint64(dst[8:], w1)
	binary.LittleEndian.PutUint64(dst[16:], w2)
	binary.LittleEndian.PutUint64(dst[24:], w3)
}

// plain is what an escape of two bytes stands for, by its second byte; a byte
// that is none stands for itself.
var plain = func() (t [256]byte) {
	for c := range t {
		t[c] = byte(c)
	}
	t['b'], t['f'], t['n'], t['r'], t['t'] = '\b', '\f', '\n', '\r', '\t'
	return t
}()

// unescapeUnit decodes the \u escape at i to out[n:], with the one behind it when
// the two are a pair. It returns where that ends, and how long they are; 0 for one
// that the text ends in.
func unescapeUnit(out []byte, n int, b []byte, i int) (end, size int) {
	if i+6 > len(b) {
		return n, 0
	}
	u := hex4(b[i+2:])
	if u >= 0xd800 && u < 0xdc00 && i+12 <= len(b) && b[i+6] == '\\' && b[i+7] == 'u' {
		if lo := hex4(b[i+8:]); lo >= 0xdc00 && lo < 0xe000 {
			r := 0x10000 + (u-0xd800)<<10 + (lo - 0xdc00)
			return n + copy(out[n:], []byte{byte(0xf0 | r>>18), byte(0x80 | r>>12&0x3f), byte(0x80 | r>>6&0x3f), byte(0x80 | r&0x3f)}), 12
		}
	}
	return len(appendUnit(out[:n], u)), 6
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
