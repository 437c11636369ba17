package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/wire/formats"
)

// headChunk is how much is read at once while looking for the header.
const headChunk = 8 << 10

// ReadHeader reads the header of a log and no more of the file than it needs,
// in parts of 8 KiB. It returns the header line too, without its newline. Of a
// later format that says isSeeded SeedLength is not known.
// Errors are *outcrop.Error, as from NewReader.
func ReadHeader(r io.Reader, enc Encoding) (outcrop.Header, []byte, error) {
	h, line, _, _, err := readHeader(r, enc)
	return h, line, err
}

// readHeader also returns the offset behind the header line or frame, and
// whether the number of inherited events is still to be found.
func readHeader(r io.Reader, enc Encoding) (h outcrop.Header, line []byte, end int64, seeded bool, err error) {
	switch enc {
	case Plain:
		line, end, err = plainHeader(r)
	case Zstd:
		line, end, err = frameHeader(r)
	default:
		err = headerError("FILE_KIND", outcrop.ErrUnsupported, "unknown encoding "+string(enc), "use Plain or Zstd")
	}
	if err != nil {
		return outcrop.Header{}, nil, 0, false, err
	}
	if h, seeded, err = formats.Header(line); err != nil {
		e := &outcrop.Error{Code: outcrop.CodeOf(err), Err: err, Msg: err.Error()}
		if inner := (*outcrop.Error)(nil); errors.As(err, &inner) {
			c := *inner
			e = &c
		}
		e.Op, e.Line, e.Offset, e.Seq = "open", 1, 0, -1
		if k := kindOf(line); k != "" && !errors.Is(err, outcrop.ErrUnsupported) {
			e.Msg += "; it looks like " + k
		}
		if e.Hint == "" {
			e.Hint = "if this is a session log, take the first line from a backup or repair it by hand"
		}
		return outcrop.Header{}, line, 0, false, e
	}
	return h, line, end, seeded, nil
}

// otherFile is what can be done about a file that is no log.
const otherFile = "name another file"

func headerError(code outcrop.Code, reason error, msg, hint string) *outcrop.Error {
	return &outcrop.Error{Op: "open", Code: code, Seq: -1, Line: 1, Err: reason, Msg: msg, Hint: hint}
}

// grow reads the next part of the file behind what b holds.
func grow(r io.Reader, b []byte) ([]byte, bool, error) {
	n := len(b)
	want := max(headChunk, n) // double, so that a long header costs no square
	b = append(b, make([]byte, want)...)
	m, err := io.ReadFull(r, b[n:])
	b = b[:n+m]
	switch {
	case err == nil:
		return b, false, nil
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return b, true, nil
	}
	return b, true, headerError("", err, "the file cannot be read: "+err.Error(), "")
}

func plainHeader(r io.Reader) ([]byte, int64, error) {
	var b []byte
	for seen := 0; ; {
		var last bool
		var err error
		if b, last, err = grow(r, b); err != nil {
			return nil, 0, err
		}
		if seen == 0 {
			if err := sniff(b, Plain); err != nil {
				return nil, 0, err
			}
		}
		if i := bytes.IndexByte(b[seen:], '\n'); i >= 0 {
			i += seen
			return bytes.Clone(b[:i]), int64(i) + 1, nil
		}
		if seen = len(b); last || seen > MaxHeader {
			return nil, 0, noHeader(b, last)
		}
	}
}

// noHeader is the error for a file whose first line does not end.
func noHeader(b []byte, whole bool) error {
	if !whole {
		return headerError("FILE_NO_HEADER", outcrop.ErrDamaged,
			fmt.Sprintf("the first line is longer than %d bytes, so it is no session header", MaxHeader), otherFile)
	}
	if kindOf(b) != "" {
		return headerError("FILE_KIND", outcrop.ErrRefused, "this is no session log; it looks like "+kindOf(b), otherFile)
	}
	return headerError("FILE_NO_HEADER", outcrop.ErrDamaged,
		"the header line has no end: the file holds no session", "writing was cut off when the session was made; nothing was in it yet")
}

func frameHeader(r io.Reader) ([]byte, int64, error) {
	var b []byte
	for first := true; ; first = false {
		var last bool
		var err error
		if b, last, err = grow(r, b); err != nil {
			return nil, 0, err
		}
		if first {
			if err := sniff(b, Zstd); err != nil {
				return nil, 0, err
			}
		}
		f, bad, _ := scanFrame(memory(b), 0)
		switch {
		case bad != nil:
			return nil, 0, frameRefused(bad)
		case !f.torn:
			return headerText(b, f)
		case last:
			return nil, 0, headerError("FILE_NO_HEADER", outcrop.ErrDamaged,
				"the first frame is torn: the file holds no session", "writing was cut off when the session was made; nothing was in it yet")
		case len(b) > 2*MaxHeader:
			return nil, 0, headerError("FRAME_HEADER", outcrop.ErrDamaged, "the first frame is too long for a header", "decompress the file and read it as plain text")
		}
	}
}

// headerText decodes the first frame, which must hold exactly one line.
func headerText(b []byte, f frame) ([]byte, int64, error) {
	wrong := func(msg string) ([]byte, int64, error) {
		return nil, 0, headerError("FRAME_HEADER", outcrop.ErrDamaged, msg,
			"a zstd log has its header alone in its first frame; a log that was compressed as a whole can be read after zstd -d, under .jsonl")
	}
	if f.bound > maxFrameText {
		return wrong("the first frame is too long for a header")
	}
	text, bad := decodeFrame(nil, b[:f.end], f)
	if bad != nil {
		return nil, 0, frameRefused(bad)
	}
	switch i := bytes.IndexByte(text, '\n'); {
	case i < 0:
		return wrong("the first frame holds no complete line")
	case i != len(text)-1:
		return wrong("the first frame holds more than the header line")
	case i > MaxHeader:
		return wrong("the first frame is too long for a header")
	default:
		return bytes.Clone(text[:i]), f.end, nil
	}
}

func frameRefused(bad *outcrop.Error) error {
	e := *bad
	e.Op, e.Line, e.Offset = "open", 1, 0
	e.Hint = "the header is lost with this frame; later frames may still hold events"
	return &e
}

// sniff refuses a file that is plainly something else, by its first bytes.
func sniff(b []byte, enc Encoding) error {
	if len(b) == 0 {
		return headerError("FILE_EMPTY", outcrop.ErrDamaged, "the file is empty: it holds no session", "nothing is lost with it: remove it")
	}
	refuse := func(what, hint string) error {
		if hint == "" {
			hint = otherFile
		}
		return headerError("FILE_KIND", outcrop.ErrRefused, "this is no session log; it looks like "+what, hint)
	}
	isFrame := bytes.HasPrefix(b, magicBytes)
	if enc == Plain && isFrame {
		return refuse("a zstd log under the name of a plain one", "name it .jsonl.zstd")
	}
	if enc == Zstd && !isFrame && bytes.HasPrefix(bytes.TrimLeft(b, " \t\r\n"), []byte(`{"`)) {
		return headerError("FRAME_MAGIC", outcrop.ErrDamaged, "no zstd frame starts here; it looks like plain text under the name of a zstd log",
			"name it .jsonl")
	}
	for _, k := range fileKinds {
		if len(b) >= k.at+len(k.magic) && string(b[k.at:k.at+len(k.magic)]) == k.magic {
			return refuse(k.name, k.hint)
		}
	}
	if enc == Plain && b[0] == 0 {
		return headerError("FILE_NO_HEADER", outcrop.ErrDamaged, "the file begins with zero bytes: the header was never written", "take the file from a backup")
	}
	return nil
}

var fileKinds = []struct {
	at    int
	magic string
	name  string
	hint  string
}{
	{0, "SQLite format 3\x00", "an SQLite database", ""},
	{0, "\x1f\x8b", "a gzip file", "unpack it first"},
	{0, "PK\x03\x04", "a zip archive", "unpack it first"},
	{0, "\xfd7zXZ\x00", "an xz file", "unpack it first"},
	{0, "BZh", "a bzip2 file", "unpack it first"},
	{0, "7z\xbc\xaf\x27\x1c", "a 7z archive", "unpack it first"},
	{257, "ustar", "a tar archive", "unpack it first"},
	{0, "%PDF-", "a PDF document", ""},
	{0, "\x7fELF", "a program", ""},
	{0, "MZ", "a program", ""},
	{0, "\x89PNG", "an image", ""},
	{0, "\xff\xd8\xff", "an image", ""},
	{0, "\xff\xfe", "UTF-16 text", "convert it to UTF-8 without a byte order mark"},
	{0, "\xfe\xff", "UTF-16 text", "convert it to UTF-8 without a byte order mark"},
	{0, "\xef\xbb\xbf", "text that begins with a byte order mark", "remove its first three bytes"},
	{0, "<!", "an HTML or XML page", ""},
	{0, "<?xml", "an HTML or XML page", ""},
}

// kindOf guesses by its first line what other program wrote a text; "" when
// that is not clear.
func kindOf(b []byte) string {
	b = bytes.TrimLeft(b[:min(len(b), headChunk)], " \t\r\n")
	has := func(s string) bool { return bytes.Contains(b, []byte(s)) }
	switch {
	case len(b) == 0:
		return ""
	case b[0] == '[':
		return "a JSON list, perhaps a chat export"
	case b[0] != '{':
		return ""
	case has(`"type":"session"`):
		return ""
	case has(`"mapping"`) && has(`"conversation`), has(`"messages"`) && has(`"role"`):
		return "an OpenAI chat export"
	case has(`"session_meta"`):
		return "a Codex rollout"
	case has(`"sessionId"`) && has(`"parentUuid"`):
		return "a Claude Code transcript"
	case has(`"seq":`) && has(`"type":`):
		return "a log without its header line"
	}
	return ""
}
