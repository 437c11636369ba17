package codex

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/outcrop-dev/outcrop/exchange"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
)

// maxWindow is the largest window of a zstd frame that is read, in bytes.
const maxWindow = 128 << 20

// maxWhole is the longest file of the oldest form that is read: it is held as a
// whole.
const maxWhole = 256 << 20

// zstdMagic begins a compressed file.
const zstdMagic = "\x28\xb5\x2f\xfd"

// rollout is one file.
type rollout struct {
	path string
	file func() (io.ReadCloser, error)
	head header

	unfinished bool // the program may still be writing it

	sum    hash.Hash // of the last reading, of the text
	length int64
}

// header is what the first line says.
type header struct {
	id, cwd, version, provider, system, from, parent string
	subagent                                         bool
	time                                             int64
	bare                                             bool
	whole                                            bool // the oldest form
}

// counter tells a report how much of a file was read.
type counter struct {
	r      io.Reader
	report *exchange.Report
}

func (c counter) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.report.Advance(int64(n))
	return n, err
}

// open begins a reading of the text.
func (x *rollout) open(r *exchange.Report) (io.Reader, func(), error) {
	f, err := x.file()
	if err != nil {
		return nil, nil, err
	}
	in := bufio.NewReaderSize(counter{f, r}, 64<<10)
	if magic, _ := in.Peek(len(zstdMagic)); string(magic) != zstdMagic && !strings.HasSuffix(x.path, ".zst") {
		return in, func() { f.Close() }, nil
	}
	z, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderLowmem(true))
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return z, func() { z.Close(); f.Close() }, nil
}

// session reads the first line and makes the session of the file.
func (x *rollout) session() (*exchange.Session, error) {
	if strings.HasSuffix(x.path, ".json") {
		x.head.whole = true
		if err := x.readWholeHead(); err != nil {
			return nil, err
		}
	} else if err := x.readHead(); err != nil {
		// A file of the oldest form that has another ending.
		if strings.HasSuffix(x.path, ".jsonl") || strings.HasSuffix(x.path, ".zst") || x.readWholeHead() != nil {
			return nil, err
		}
		x.head.whole = true
	}
	if x.head.id == "" {
		x.head.id = idOfName(x.path)
	}
	s := &exchange.Session{
		Program: Name, Version: x.head.version, Source: x.head.id, CreatedAt: x.head.time, Cwd: x.head.cwd,
		Parent: x.head.parent, Subagent: x.head.subagent, Unfinished: x.unfinished,
		Extent: func() (int64, string) { return x.length, "sha256:" + hex.EncodeToString(x.sum.Sum(nil)) },
	}
	if !s.Subagent && x.head.from != "" {
		s.Parent = x.head.from
	}
	s.Feed = func(b *exchange.Builder) error {
		if x.head.whole {
			return x.feedWhole(b)
		}
		return x.feed(b)
	}
	return s, nil
}

// readHead reads the first line that says anything.
func (x *rollout) readHead() error {
	in, done, err := x.open(nil)
	if err != nil {
		return err
	}
	defer done()
	for line, err := range exchange.Lines(in, nil) {
		if err != nil {
			return exchange.Unreadable(x.path, line.Number, line.Offset, "it cannot be read: %v", err)
		}
		if len(line.Text) == 0 {
			continue
		}
		if err := jsonwire.Valid(line.Text); err != nil {
			if line.Number < 10 && !line.Torn {
				continue
			}
			return exchange.Unreadable(x.path, line.Number, line.Offset, "it has no line that is JSON")
		}
		switch {
		case framed(line.Text):
			if jsonwire.TextIs(jsonwire.Get(line.Text, "type"), "session_meta") {
				x.head = metaOf(jsonwire.Get(line.Text, "payload"))
			}
			if x.head.time == 0 {
				x.head.time = timeOf(jsonwire.Get(line.Text, "timestamp"))
			}
		case bareHead(line.Text):
			x.head.id, _ = jsonwire.Text(jsonwire.Get(line.Text, "id"))
			x.head.system, _ = jsonwire.Text(jsonwire.Get(line.Text, "instructions"))
			x.head.time = timeOf(jsonwire.Get(line.Text, "timestamp"))
			x.head.bare = true
		default:
			return exchange.Unreadable(x.path, line.Number, line.Offset, "%v", errForeign)
		}
		return nil
	}
	return exchange.Unreadable(x.path, 1, 0, "the file is empty")
}

// metaOf reads the payload of a session_meta.
func metaOf(v []byte) (h header) {
	text := func(v []byte) string { s, _ := jsonwire.Text(v); return s }
	for k, m := range jsonwire.Members(v) {
		switch string(k) {
		case "id":
			h.id = text(m)
		case "cwd":
			h.cwd = text(m)
		case "cli_version":
			h.version = text(m)
		case "model_provider":
			h.provider = text(m)
		case "forked_from_id":
			h.from = text(m)
		case "timestamp":
			h.time = timeOf(m)
		case "instructions":
			if h.system == "" {
				h.system = text(m)
			}
		case "base_instructions":
			if s, ok := jsonwire.Text(m); ok {
				h.system = s
			} else if s := text(jsonwire.Get(m, "text")); s != "" {
				h.system = s
			}
		case "source":
			if sub := jsonwire.Get(m, "subagent"); sub != nil {
				for _, how := range jsonwire.Members(sub) {
					if p := text(jsonwire.Get(how, "parent_thread_id")); p != "" {
						h.parent, h.subagent = p, true
					}
				}
			}
		case "parent_thread_id":
			if p := text(m); p != "" {
				h.parent, h.subagent = p, true
			}
		}
	}
	if h.parent == h.id {
		h.parent, h.subagent = "", false
	}
	return h
}

// idOfName is the id in a file's name, else the name.
func idOfName(path string) string {
	name, _, _ := strings.Cut(filepath.Base(path), ".json")
	if n := len(name); n > 36 && strings.Count(name[n-36:], "-") == 4 {
		return name[n-36:]
	}
	return name
}

// timeOf reads a time; 0 for another value.
func timeOf(v []byte) int64 {
	s, ok := jsonwire.Text(v)
	if !ok {
		return 0
	}
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return 0
	}
	return t.UnixMilli()
}

// feed reads the file and gives it to a builder.
func (x *rollout) feed(b *exchange.Builder) error {
	in, done, err := x.open(b.Report())
	if err != nil {
		return err
	}
	defer done()
	x.sum, x.length = sha256.New(), 0
	f := newFeed(x.head, b)
	copying := x.head.from != "" && !x.head.bare // lines of the parent are coming
	first := int64(0)
	for line, err := range exchange.Lines(in, x.sum) {
		if err != nil {
			return exchange.Unreadable(x.path, line.Number, line.Offset, "it cannot be read: %v", err)
		}
		x.length = line.Offset + line.Bytes
		b.At(line.Number)
		switch {
		case len(line.Text) == 0:
			continue
		case line.Long:
			b.Dropped("record", "a line of more than 256 MiB")
			continue
		}
		fr, err := readFrame(line.Text)
		if err != nil {
			if line.Torn && !errors.Is(err, jsonwire.ErrDepth) {
				b.Dropped("record", "the last line is not complete")
			} else {
				b.Dropped("record", exchange.NoObject(err))
			}
			continue
		}
		if !fr.framed() {
			err = f.bare(line.Text, &fr)
		} else {
			if first == 0 {
				first = fr.at
			}
			if copying && fr.at > first+burst {
				copying = false
				if err := f.seed(); err != nil {
					return err
				}
			}
			err = f.line(&fr)
		}
		if err != nil {
			return err
		}
	}
	if copying {
		if err := f.seed(); err != nil {
			return err
		}
	}
	if x.unfinished && (f.reply != nil || len(f.results) > 0) {
		b.Dropped("reply", "it may not be complete yet: it is left for the next import")
		return nil
	}
	return f.end()
}

// burst is how long after its first line the copy of a parent's lines may be
// written, in milliseconds.
const burst = 1000

// readWhole reads a file of the oldest form.
func (x *rollout) readWhole(r *exchange.Report) ([]byte, error) {
	in, done, err := x.open(r)
	if err != nil {
		return nil, err
	}
	defer done()
	b, err := io.ReadAll(io.LimitReader(in, maxWhole+1))
	switch {
	case err != nil:
		return nil, exchange.Unreadable(x.path, 0, -1, "it cannot be read: %v", err)
	case len(b) > maxWhole:
		return nil, exchange.Unreadable(x.path, 0, -1, "it has more than 256 MiB, all in one object")
	}
	if err := jsonwire.Valid(b); err != nil {
		return nil, exchange.Unreadable(x.path, 0, -1, "it is no JSON: %v", err)
	}
	return b, nil
}

func (x *rollout) readWholeHead() error {
	b, err := x.readWhole(nil)
	if err != nil {
		return err
	}
	s := jsonwire.Get(b, "session")
	if jsonwire.Kind(s) != '{' || jsonwire.Kind(jsonwire.Get(b, "items")) != '[' {
		return exchange.Unreadable(x.path, 0, -1, "it has no session and items")
	}
	x.head.id, _ = jsonwire.Text(jsonwire.Get(s, "id"))
	x.head.system, _ = jsonwire.Text(jsonwire.Get(s, "instructions"))
	x.head.time = timeOf(jsonwire.Get(s, "timestamp"))
	return nil
}

func (x *rollout) feedWhole(b *exchange.Builder) error {
	text, err := x.readWhole(b.Report())
	if err != nil {
		return err
	}
	x.sum, x.length = sha256.New(), int64(len(text))
	x.sum.Write(text)
	f := newFeed(x.head, b)
	for item := range jsonwire.Elements(jsonwire.Get(text, "items")) {
		if err := f.item(item, 0); err != nil {
			return err
		}
	}
	return f.end()
}
