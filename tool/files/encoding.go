package files

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

const utf8BOM = "\ufeff"

// utf16Name is the encoding that a byte order mark tells of, "" for any other.
func utf16Name(b []byte) string {
	switch {
	case bytes.HasPrefix(b, []byte{0xff, 0xfe}):
		return "UTF-16 LE"
	case bytes.HasPrefix(b, []byte{0xfe, 0xff}):
		return "UTF-16 BE"
	}
	return ""
}

// fromUTF16 turns a text with a byte order mark into UTF-8, without the mark.
func fromUTF16(b []byte) []byte {
	var order binary.ByteOrder = binary.LittleEndian
	if b[0] == 0xfe {
		order = binary.BigEndian
	}
	units := make([]uint16, 0, len(b)/2)
	for b = b[2:]; len(b) >= 2; b = b[2:] {
		units = append(units, order.Uint16(b))
	}
	return []byte(string(utf16.Decode(units)))
}

// isBinary looks at the beginning of a file: a NUL, or text that is mostly no
// UTF-8.
func isBinary(head []byte) bool {
	if bytes.IndexByte(head, 0) >= 0 {
		return true
	}
	bad, total := 0, 0
	for len(head) > 0 {
		r, n := utf8.DecodeRune(head)
		if r == utf8.RuneError && n == 1 && utf8.FullRune(head) {
			bad++
		}
		total++
		head = head[n:]
	}
	return bad*10 > total
}

// lineEnds counts the line ends of a text, and those that are CRLF.
func lineEnds(text string) (all, crlf int) {
	return strings.Count(text, "\n"), strings.Count(text, "\r\n")
}

// countLines counts lines; the last one needs no line end.
func countLines(text string) int {
	n := strings.Count(text, "\n")
	if text != "" && !strings.HasSuffix(text, "\n") {
		n++
	}
	return n
}

// size is a text's size for people and models.
func size(text string) string {
	return plural(len(text), "byte") + ", " + plural(countLines(text), "line")
}

func plural[N int | int64](n N, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}

// isText reports a beginning without what no text has: control characters other
// than those of lines. Such bytes that are no UTF-8 are another encoding.
func isText(head []byte) bool {
	return bytes.IndexFunc(head, func(r rune) bool { return r < ' ' && !strings.ContainsRune("\t\n\v\f\r\x1b", r) || r == 0x7f }) < 0
}
