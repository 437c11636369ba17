package tty

import (
	"bytes"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// maxPaste is how much of one paste is kept, in bytes.
	maxPaste = 1 << 20
	// maxSequence is the longest control sequence that is waited for.
	maxSequence = 256
)

// Decoder turns bytes from a terminal into keys. The zero value is ready. Its
// memory is bounded whatever comes.
type Decoder struct {
	rest    []byte // the beginning of something
	paste   []byte
	pasting bool
}

// Waiting reports that the bytes so far are the Escape key or the beginning of
// something: more decides, or Flush.
func (d *Decoder) Waiting() bool { return !d.pasting && len(d.rest) > 0 }

// Flush takes what waits for what it is by itself.
func (d *Decoder) Flush() (keys []Key) {
	if d.pasting || len(d.rest) == 0 {
		return nil
	}
	rest := d.rest
	d.rest = nil
	if rest[0] == 0x1b {
		keys = append(keys, Key{Name: Escape})
	}
	return keys
}

var pasteEnd = []byte("\x1b[201~")

// Feed takes the next bytes and returns the keys that are complete.
func (d *Decoder) Feed(b []byte) (keys []Key) {
	b = append(d.rest, b...)
	d.rest = nil
	for len(b) > 0 {
		if d.pasting {
			i := bytes.Index(b, pasteEnd)
			if i < 0 {
				// The end may be cut in two.
				n := max(len(b)-len(pasteEnd)+1, 0)
				d.keepPasted(b[:n])
				d.rest = append([]byte(nil), b[n:]...)
				return keys
			}
			d.keepPasted(b[:i])
			b = b[i+len(pasteEnd):]
			d.pasting = false
			if text := pasted(d.paste); text != "" {
				keys = append(keys, Key{Name: Paste, Text: text})
			}
			d.paste = nil
			continue
		}
		k, n, ok := d.next(b)
		if n == 0 {
			d.rest = append([]byte(nil), b...)
			return keys
		}
		b = b[n:]
		if ok {
			keys = append(keys, k)
		}
	}
	return keys
}

func (d *Decoder) keepPasted(b []byte) {
	d.paste = append(d.paste, b[:min(len(b), maxPaste-len(d.paste))]...)
}

// pasted is text as an editor takes it: lines end in \n, what is no text is left
// out.
func pasted(b []byte) string {
	s := strings.ToValidUTF8(string(b), "\ufffd")
	s = strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\r", "\n")
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && unicode.IsControl(r) {
			return -1
		}
		return r
	}, s)
}

// next reads one key. n is 0 when more bytes are needed; ok is false for what is
// no key.
func (d *Decoder) next(b []byte) (k Key, n int, ok bool) {
	c := b[0]
	switch {
	case c == 0x1b:
		return d.escape(b)
	case c < 0x20 || c == 0x7f:
		return control(c), 1, true
	case c < 0x80:
		return Key{Name: Text, Text: string(rune(c))}, 1, true
	}
	if !utf8.FullRune(b) {
		return Key{}, 0, false
	}
	r, n := utf8.DecodeRune(b)
	if r == utf8.RuneError && n == 1 || unicode.IsControl(r) {
		return Key{}, n, false
	}
	return Key{Name: Text, Text: string(r)}, n, true
}

func control(c byte) Key {
	switch c {
	case '\r':
		return Key{Name: Enter}
	case '\n':
		return Key{Name: NewLine}
	case '\t':
		return Key{Name: Tab}
	case 0x7f, 0x08:
		return Key{Name: Backspace}
	case 0:
		return Key{Name: Ctrl, Text: " "}
	}
	if c <= 26 {
		return Key{Name: Ctrl, Text: string(rune('a' + c - 1))}
	}
	return Key{Name: Ctrl, Text: string(rune(c + 0x40))}
}

// escape reads what begins with an escape character.
func (d *Decoder) escape(b []byte) (k Key, n int, ok bool) {
	if len(b) == 1 {
		return Key{}, 0, false
	}
	switch b[1] {
	case '[':
		return d.sequence(b)
	case 'O':
		if len(b) < 3 {
			return Key{}, 0, false
		}
		k, ok = arrow(b[2], 0)
		return k, 3, ok
	case ']', 'P', '_', '^', 'X': // an answer of the terminal, up to BEL or ESC \
		return skipString(b)
	case '\r', '\n':
		return Key{Name: NewLine}, 2, true
	case 0x7f, 0x08:
		return Key{Name: WordBackspace}, 2, true
	case 0x1b:
		return Key{Name: Escape}, 1, true
	}
	if !utf8.FullRune(b[1:]) {
		return Key{}, 0, false
	}
	r, size := utf8.DecodeRune(b[1:])
	if r == utf8.RuneError && size == 1 || unicode.IsControl(r) {
		return Key{Name: Escape}, 1, true
	}
	return Key{Name: Alt, Text: string(r)}, 1 + size, true
}

func skipString(b []byte) (Key, int, bool) {
	for i := 2; i < len(b); i++ {
		switch {
		case b[i] == 0x07:
			return Key{}, i + 1, false
		case b[i] == 0x1b && i+1 < len(b) && b[i+1] == '\\':
			return Key{}, i + 2, false
		case i >= maxSequence:
			return Key{}, i, false
		}
	}
	return Key{}, 0, false
}

// sequence reads ESC [ parameters final.
func (d *Decoder) sequence(b []byte) (k Key, n int, ok bool) {
	i := 2
	for i < len(b) && b[i] >= 0x20 && b[i] < 0x40 {
		i++
	}
	switch {
	case i >= maxSequence:
		return Key{}, i, false
	case i == len(b):
		return Key{}, 0, false
	case b[i] < 0x40 || b[i] > 0x7e: // broken off by something else
		return Key{}, i, false
	}
	final, n := b[i], i+1
	params := strings.Split(string(b[2:i]), ";")
	first, mods := number(params, 0), max(number(params, 1)-1, 0)
	switch final {
	case '~':
		switch first {
		case 200:
			d.pasting = true
			return Key{}, n, false
		case 27: // modifyOtherKeys: 27;mods;code
			k, ok = coded(number(params, 2), mods)
			return k, n, ok
		}
		k, ok = numbered(first, mods)
	case 'u':
		k, ok = coded(first, mods)
	case 'Z':
		return Key{Name: BackTab}, n, true
	default:
		k, ok = arrow(final, mods)
	}
	return k, n, ok
}

// number is parameter i before its colon, 0 when there is none.
func number(params []string, i int) int {
	if i >= len(params) {
		return 0
	}
	s, _, _ := strings.Cut(params[i], ":")
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0
	}
	return n
}

// The bits of a modifier parameter, after 1 was taken from it.
const (
	shiftBit = 1
	altBit   = 2
	ctrlBit  = 4
)

func arrow(final byte, mods int) (Key, bool) {
	word := mods&(altBit|ctrlBit) != 0
	switch final {
	case 'A':
		return Key{Name: Up}, true
	case 'B':
		return Key{Name: Down}, true
	case 'C':
		if word {
			return Key{Name: WordRight}, true
		}
		return Key{Name: Right}, true
	case 'D':
		if word {
			return Key{Name: WordLeft}, true
		}
		return Key{Name: Left}, true
	case 'H':
		return Key{Name: Home}, true
	case 'F':
		return Key{Name: End}, true
	case 'M': // keypad Enter
		return Key{Name: Enter}, true
	}
	return Key{}, false
}

func numbered(n, _ int) (Key, bool) {
	switch n {
	case 1, 7:
		return Key{Name: Home}, true
	case 3:
		return Key{Name: Delete}, true
	case 4, 8:
		return Key{Name: End}, true
	case 5:
		return Key{Name: PageUp}, true
	case 6:
		return Key{Name: PageDown}, true
	}
	return Key{}, false
}

// coded is a key that a terminal names by its character code.
func coded(code, mods int) (Key, bool) {
	switch code {
	case '\r', 57414: // Enter, keypad Enter
		if mods&(shiftBit|altBit|ctrlBit) != 0 {
			return Key{Name: NewLine}, true
		}
		return Key{Name: Enter}, true
	case '\t':
		if mods&shiftBit != 0 {
			return Key{Name: BackTab}, true
		}
		return Key{Name: Tab}, true
	case 0x1b:
		return Key{Name: Escape}, true
	case 0x7f, 0x08:
		if mods&(altBit|ctrlBit) != 0 {
			return Key{Name: WordBackspace}, true
		}
		return Key{Name: Backspace}, true
	}
	if code < 0x20 || code > unicode.MaxRune || code >= 0xe000 && code <= 0xf8ff || !utf8.ValidRune(rune(code)) {
		return Key{}, false
	}
	text := string(rune(code))
	switch {
	case mods&ctrlBit != 0:
		return Key{Name: Ctrl, Text: strings.ToLower(text)}, true
	case mods&altBit != 0:
		return Key{Name: Alt, Text: text}, true
	}
	return Key{Name: Text, Text: text}, true
}
