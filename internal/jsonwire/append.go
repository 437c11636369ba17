package jsonwire

import (
	"encoding/binary"
	"strconv"
	"unicode/utf8"
)

const hexDigits = "0123456789abcdef"

// AppendString appends s as a JSON string, escaped as JSON.stringify does:
// only quotes, backslashes and control characters, nothing for HTML. A WTF-8
// surrogate becomes a \ud8xx escape; other invalid UTF-8 becomes U+FFFD, so
// that what is written is always valid.
func AppendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	start, i := 0, 0
	for i < len(s) {
		if i+8 <= len(s) {
			w := le64(s, i)
			if (special(w)|w)&high1 == 0 {
				i += 8
				continue
			}
		}
		c := s[i]
		if c >= 0x20 && c < utf8.RuneSelf && c != '"' && c != '\\' {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			if r != utf8.RuneError || n != 1 {
				i += n
				continue
			}
			dst = append(dst, s[start:i]...)
			if c == 0xed && i+2 < len(s) && s[i+1] >= 0xa0 && s[i+1] <= 0xbf && s[i+2]&0xc0 == 0x80 {
				u := uint32(c&0x0f)<<12 | uint32(s[i+1]&0x3f)<<6 | uint32(s[i+2]&0x3f)
				dst = append(dst, '\\', 'u', hexDigits[u>>12], hexDigits[u>>8&15], hexDigits[u>>4&15], hexDigits[u&15])
				i += 3
			} else {
				dst = append(dst, "\ufffd"...)
				i++
			}
			start = i
			continue
		}
		dst = append(dst, s[start:i]...)
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\b':
			dst = append(dst, '\\', 'b')
		case '\f':
			dst = append(dst, '\\', 'f')
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
		i++
		start = i
	}
	dst = append(dst, s[start:]...)
	return append(dst, '"')
}

func le64(s string, i int) uint64 {
	var b [8]byte
	copy(b[:], s[i:i+8])
	return binary.LittleEndian.Uint64(b[:])
}

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
