package term

import (
	"fmt"
	"io"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// JSONWriter makes JSON text safe for a terminal. Control characters, format
// characters and line separators become the escapes of a JSON string, where
// alone they can stand, so that the text means the same; a byte that is no UTF-8
// becomes \ufffd, as which it is read, and a carriage return at the end of a line
// a space. Close it.
type JSONWriter struct {
	W    io.Writer
	held []byte // the beginning of a character
	out  []byte
}

// Write implements io.Writer. A character may come in two parts.
func (j *JSONWriter) Write(p []byte) (int, error) {
	rest := p
	if len(j.held) > 0 {
		rest = append(j.held, p...)
	}
	j.out = j.out[:0]
	for len(rest) > 0 && utf8.FullRune(rest) {
		r, n := utf8.DecodeRune(rest)
		j.out = appendJSONSafe(j.out, r, rest[:n])
		rest = rest[n:]
	}
	j.held = append([]byte(nil), rest...)
	if _, err := j.W.Write(j.out); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Close writes what is left of a character that never came whole. It does not
// close W.
func (j *JSONWriter) Close() error {
	if len(j.held) == 0 {
		return nil
	}
	j.held = nil
	_, err := io.WriteString(j.W, `\ufffd`)
	return err
}

func appendJSONSafe(dst []byte, r rune, text []byte) []byte {
	switch {
	case r >= 0x20 && r < 0x7f || r == '\n' || r == '\t':
		return append(dst, byte(r))
	case r == '\r':
		return append(dst, ' ')
	case r == utf8.RuneError && len(text) == 1:
		return append(dst, `\ufffd`...)
	case !acts(r):
		return append(dst, text...)
	case r > 0xffff:
		high, low := utf16.EncodeRune(r)
		return fmt.Appendf(dst, `\u%04x\u%04x`, high, low)
	}
	return fmt.Appendf(dst, `\u%04x`, r)
}

// acts reports a character that acts on a terminal instead of being shown.
func acts(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) && r != zeroWidthJoiner || r == 0x2028 || r == 0x2029
}
