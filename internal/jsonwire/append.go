package jsonwire

import (
	"encoding/binary"
	"math/bits"
	"slices"
	"strconv"
	"unicode/utf8"
	"unsafe"
)

const hexDigits = "0123456789abcdef"

// AppendString appends s as a JSON string, escaped as JSON.stringify does:
// only quotes, backslashes and control characters, nothing for HTML. A WTF-8
// surrogate becomes a \ud8xx escape; other invalid UTF-8 becomes U+FFFD, so
// that what is written is always valid.
func AppendString(dst []byte, s string) []byte {
	b := unsafe.Slice(unsafe.StringData(s), len(s))
	dst = append(slices.Grow(dst, len(b)+len(b)/8+16), '"')
	n := len(dst)
	dst = dst[:cap(dst)]
	i := 0
	if len(b) >= 64+piece && utf8.ValidString(s) {
		dst, n, i = appendBlocks(dst, n, b)
	}
	// Words are copied before it is known what is in them: what is behind a
	// special byte is written over.
	for i < len(b) {
		if n+16 > len(dst) {
			dst = slices.Grow(dst[:n], len(b)-i+16)
			dst = dst[:cap(dst)]
		}
		if i+8 <= len(b) {
			w := binary.LittleEndian.Uint64(b[i:])
			binary.LittleEndian.PutUint64(dst[n:], w)
			m := (special(w) | w) & high1
			if m == 0 {
				i, n = i+8, n+8
				continue
			}
			k := bits.TrailingZeros64(m) >> 3
			i, n = i+k, n+k
		}
		c := b[i]
		if c < utf8.RuneSelf {
			i++
			n = appendByte(dst, n, c)
			continue
		}
		if r, size := utf8.DecodeRune(b[i:]); r != utf8.RuneError || size != 1 {
			n += copy(dst[n:], b[i:i+size])
			i += size
		} else if c == 0xed && i+2 < len(b) && b[i+1] >= 0xa0 && b[i+1] <= 0xbf && b[i+2]&0xc0 == 0x80 {
			u := uint32(c&0x0f)<<12 | uint32(b[i+1]&0x3f)<<6 | uint32(b[i+2]&0x3f)
			n += copy(dst[n:], []byte{'\\', 'u', hexDigits[u>>12], hexDigits[u>>8&15], hexDigits[u>>4&15], hexDigits[u&15]})
			i += 3
		} else {
			n += copy(dst[n:], "\ufffd")
			i++
		}
	}
	return append(dst[:n], '"')
}

// appendBlocks escapes as much of b, which is valid UTF-8, as it can in blocks of
// 64 bytes to dst[n:]. It returns dst, which may have grown, where it ends in it,
// and how much of b that is.
func appendBlocks(dst []byte, n int, b []byte) (to []byte, end, done int) {
	i := 0
	for ; i+64+piece <= len(b); i += 64 {
		if n+64*6+piece > len(dst) {
			dst = slices.Grow(dst[:n], len(b)-i+64*6+piece)
			dst = dst[:cap(dst)]
		}
		from := i
		for m := specials(blockOf(b, i)); m != 0; m &= m - 1 {
			p := i + bits.TrailingZeros64(m)
			copyPiece((*[piece]byte)(dst[n:]), (*[piece]byte)(b[from:]))
			if p-from > piece {
				copy(dst[n:], b[from:p])
			}
			n += p - from
			if e := escapes[b[p]]; e != 'u' {
				dst[n], dst[n+1] = '\\', e
				n += 2
			} else {
				n = appendByte(dst, n, b[p])
			}
			from = p + 1
		}
		n += copy(dst[n:], b[from:i+64])
	}
	for i > 0 && !utf8.RuneStart(b[i]) { // a character that goes on behind the blocks
		i, n = i-1, n-1
	}
	return dst, n, i
}

// appendByte writes a byte of ASCII, escaped where it must be, to dst[n:], which
// has room for six bytes, and returns where it ends.
func appendByte(dst []byte, n int, c byte) int {
	switch e := escapes[c]; e {
	case 0:
		dst[n] = c
		return n + 1
	case 'u':
		n += copy(dst[n:], `\u00`)
		dst[n], dst[n+1] = hexDigits[c>>4], hexDigits[c&15]
		return n + 2
	default:
		dst[n], dst[n+1] = '\\', e
		return n + 2
	}
}

// escapes are what stands behind the backslash for a byte of ASCII: 0 for one
// that stands for itself, u for four digits.
var escapes = func() (t [utf8.RuneSelf]byte) {
	for c := range byte(0x20) {
		t[c] = 'u'
	}
	t['"'], t['\\'], t['\b'], t['\f'], t['\n'], t['\r'], t['\t'] = '"', '\\', 'b', 'f', 'n', 'r', 't'
	return t
}()

// AppendInt appends n in decimal.
func AppendInt(dst []byte, n int64) []byte {
	if uint64(n) < 10 {
		return append(dst, byte('0'+n))
	}
	if uint64(n) >= 1e8 {
		return strconv.AppendInt(dst, n, 10)
	}
	var room [8]byte
	i, v := len(room), uint32(n)
	for v >= 10 {
		q := v / 10
		i--
		room[i] = byte('0' + v - q*10)
		v = q
	}
	i--
	room[i] = byte('0' + v)
	return append(dst, room[i:]...)
}

// AppendMember appends a comma when dst does not end in an opening brace, then
// name and colon. The name must need no escaping.
func AppendMember(dst []byte, name string) []byte {
	if n := len(dst); n > 0 && dst[n-1] != '{' {
		dst = append(dst, ',')
	}
	dst = append(dst, '"')
	dst = append(dst, name...)
	return append(dst, '"', ':')
}

// AppendStringMember appends a string member.
func AppendStringMember(dst []byte, name, value string) []byte {
	return AppendString(AppendMember(dst, name), value)
}

// AppendIntMember appends an integer member.
func AppendIntMember(dst []byte, name string, value int64) []byte {
	return AppendInt(AppendMember(dst, name), value)
}

// AppendRawMember appends a member whose value is JSON text.
func AppendRawMember(dst []byte, name string, value []byte) []byte {
	return append(AppendMember(dst, name), value...)
}
