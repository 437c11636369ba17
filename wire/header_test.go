package wire_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/conformance"
	"github.com/outcrop-dev/outcrop/wire"
)

func TestEncodingOfAPath(t *testing.T) {
	for path, want := range map[string]wire.Encoding{
		"a/session.jsonl": wire.Plain, "session.jsonl.zstd": wire.Zstd, "session.v3.jsonl": wire.Plain,
		"session.json": "", "jsonl": "", "x.zstd": "",
	} {
		if got, ok := wire.EncodingOf(path); got != want || ok != (want != "") {
			t.Errorf("%s: %q %v, want %q", path, got, ok, want)
		}
	}
}

func TestAFileThatIsNoLogIsNamed(t *testing.T) {
	line := headerLine + "\n"
	tar := append(make([]byte, 0, 512), strings.Repeat("x", 257)+"ustar\x00"...)
	for _, c := range []struct {
		name   string
		enc    wire.Encoding
		file   string
		code   outcrop.Code
		reason error
		says   string
	}{
		{"empty", wire.Plain, "", "FILE_EMPTY", outcrop.ErrDamaged, "empty"},
		{"empty zstd", wire.Zstd, "", "FILE_EMPTY", outcrop.ErrDamaged, "empty"},
		{"a header without newline", wire.Plain, headerLine, "FILE_NO_HEADER", outcrop.ErrDamaged, "has no end"},
		{"a torn first frame", wire.Zstd, string(frame(headerLine)[:40]), "FILE_NO_HEADER", outcrop.ErrDamaged, "torn"},
		{"zero bytes", wire.Plain, "\x00\x00\x00\x00", "FILE_NO_HEADER", outcrop.ErrDamaged, "zero bytes"},
		{"sqlite", wire.Plain, "SQLite format 3\x00....", "FILE_KIND", outcrop.ErrRefused, "SQLite"},
		{"gzip", wire.Zstd, "\x1f\x8b\x08....", "FILE_KIND", outcrop.ErrRefused, "gzip"},
		{"tar", wire.Plain, string(tar), "FILE_KIND", outcrop.ErrRefused, "tar"},
		{"zip", wire.Plain, "PK\x03\x04", "FILE_KIND", outcrop.ErrRefused, "zip"},
		{"a byte order mark", wire.Plain, "\xef\xbb\xbf" + line, "FILE_KIND", outcrop.ErrRefused, "byte order mark"},
		{"UTF-16", wire.Plain, "\xff\xfe{\x00", "FILE_KIND", outcrop.ErrRefused, "UTF-16"},
		{"a zstd log called plain", wire.Plain, string(frame(headerLine)), "FILE_KIND", outcrop.ErrRefused, "zstd log"},
		{"a plain log called zstd", wire.Zstd, line, "FRAME_MAGIC", outcrop.ErrDamaged, "plain text"},
		{"a chat export", wire.Plain, `[{"title":"x","mapping":{}}]`, "FILE_KIND", outcrop.ErrRefused, "chat export"},
		{"an OpenAI request", wire.Plain, `{"messages":[{"role":"user"}]}` + "\n", "HEADER_SHAPE", outcrop.ErrRefused, "OpenAI"},
		{"a log without header", wire.Plain, turnStart(0, 1) + "\n", "HEADER_SHAPE", outcrop.ErrRefused, "without its header"},
		{"no JSON", wire.Plain, "hello\nworld\n", "HEADER_NOT_JSON", outcrop.ErrRefused, "not JSON"},
		{"a newer format", wire.Plain, `{"type":"session","version":42,"id":"x"}` + "\n", "HEADER_VERSION", outcrop.ErrUnsupported, "upgrade"},
		{"an older format", wire.Plain, `{"type":"session","version":-1,"id":"x"}` + "\n", "HEADER_VERSION", outcrop.ErrUnsupported, "older"},
		{"format 3 of dsh without the rest", wire.Plain, `{"version":3,"id":"s1"}` + "\n", "HEADER_SHAPE", outcrop.ErrRefused, "dsh format 3: "},
		{"format 4 of dsh in zstd, seeded perhaps", wire.Zstd, string(frame(`{"type":"session","version":4,"id":"s1","createdAt":1,"delegationDepth":0,"isSeeded":1}`)), "HEADER_SHAPE", outcrop.ErrRefused, "isSeeded"},
		{"a format that dsh does not have yet", wire.Plain, `{"version":5,"id":"s1"}` + "\n", "HEADER_VERSION", outcrop.ErrUnsupported, "formats 0 to 4"},
		{"retired members", wire.Plain, strings.Replace(line, "}", `,"sandboxMode":"x"}`, 1), "HEADER_RETIRED", outcrop.ErrRefused, "retired"},
		{"two lines in the first frame", wire.Zstd, string(frame(headerLine, turnStart(0, 1))), "FRAME_HEADER", outcrop.ErrDamaged, "more than the header"},
		{"no newline in the first frame", wire.Zstd, string(frameOf(headerLine)), "FRAME_HEADER", outcrop.ErrDamaged, "no complete line"},
		{"a bad first frame", wire.Zstd, string(broken(frame(headerLine), -1)), "FRAME_CHECKSUM", outcrop.ErrDamaged, "checksum"},
		{"a bomb as first frame", wire.Zstd, string(bomb('a', 64<<20)), "FRAME_HEADER", outcrop.ErrDamaged, "too long"},
		{"a first line without end", wire.Plain, "{" + strings.Repeat(" ", 40<<20), "FILE_NO_HEADER", outcrop.ErrDamaged, "longer than"},
		{"an unknown encoding", "xml", line, "FILE_KIND", outcrop.ErrUnsupported, "unknown encoding"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := wire.NewReader(strings.NewReader(c.file), int64(len(c.file)), c.enc)
			var e *outcrop.Error
			if !errors.As(err, &e) {
				t.Fatalf("error %v", err)
			}
			if e.Code != c.code || !errors.Is(err, c.reason) || !strings.Contains(err.Error(), c.says) || e.Op != "open" || e.Line != 1 {
				t.Errorf("error %v, wants %s and %q", err, c.code, c.says)
			}
		})
	}
}

// A reader that counts what is taken from it.
type counting struct {
	r *bytes.Reader
	n int
}

func (c *counting) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.n += n
	return n, err
}

func TestTheHeaderIsReadWithoutTheRest(t *testing.T) {
	for _, rel := range corpus(t) {
		if strings.HasPrefix(rel, "corrupt-plain-header") {
			continue
		}
		enc, _ := wire.EncodingOf(rel)
		file := corpusFile(t, rel)
		c := &counting{r: bytes.NewReader(file)}
		h, line, err := wire.ReadHeader(c, enc)
		if err != nil || c.n > 8<<10 {
			t.Errorf("%s: %d bytes, %v", rel, c.n, err)
			continue
		}
		if !bytes.Equal(h.Line(), line) || h.ID == "" || !h.Compatible() {
			t.Errorf("%s: %+v", rel, h)
		}
		out := wire.NewEncoder(wire.Plain).Header(nil, h)
		if want := plainText(t, file, enc); !bytes.HasPrefix(want, out) && !strings.HasPrefix(rel, "torn") && !strings.HasPrefix(rel, "corrupt") {
			t.Errorf("%s: the header is written as %s", rel, out)
		}
	}
}

func TestALongHeaderIsRead(t *testing.T) {
	long := strings.Replace(headerLine, "}", `,"x":"`+strings.Repeat("y", 100_000)+`"}`, 1)
	for _, enc := range encodings {
		file := []byte(long + "\n")
		if enc == wire.Zstd {
			file = frame(long)
		}
		if r := open(t, file, enc); string(r.HeaderLine()) != long || r.HeaderEnd() != int64(len(file)) {
			t.Errorf("%s: %d bytes, ends at %d", enc, len(r.HeaderLine()), r.HeaderEnd())
		}
	}
}

type headerCase struct {
	Name   string
	Kind   string
	Line   string
	Expect struct {
		OK   bool
		Load *struct {
			OK          bool
			ErrorName   string
			Unsupported bool
		}
	}
}

func TestHeaderLinesAreJudgedAsDSHJudgesThem(t *testing.T) {
	n := 0
	conformance.Cases(t, "header", func(c *headerCase) string { return c.Name }, func(t *testing.T, c *headerCase) {
		if c.Kind != "line" || c.Expect.Load == nil {
			return
		}
		n++
		h, _, err := wire.ReadHeader(strings.NewReader(c.Line+"\n"), wire.Plain)
		if h.Format > 0 || c.Name == "line/version-future-id" {
			// Later formats are read here, and judged like all others.
			if !c.Expect.Load.Unsupported || errors.Is(err, outcrop.ErrUnsupported) {
				t.Errorf("%s: error %v, dsh %+v", c.Line, err, *c.Expect.Load)
			}
			return
		}
		if (err == nil) != c.Expect.Load.OK && c.Expect.Load.ErrorName != "" {
			t.Errorf("%s: error %v, dsh %+v", c.Line, err, *c.Expect.Load)
		}
		if errors.Is(err, outcrop.ErrUnsupported) != c.Expect.Load.Unsupported {
			t.Errorf("%s: error %v, dsh %+v", c.Line, err, *c.Expect.Load)
		}
	})
	if n < 20 {
		t.Errorf("only %d header lines", n)
	}
}

func TestADirectoryIsAReadingError(t *testing.T) {
	f, err := os.Open(filepath.Join(conformance.Dir(), "corpus"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	_, err = wire.NewReader(f, 10, wire.Plain)
	var e *outcrop.Error
	if !errors.As(err, &e) || errors.Is(err, outcrop.ErrDamaged) {
		t.Errorf("error %v", err)
	}
}
