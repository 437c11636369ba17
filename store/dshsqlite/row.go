package dshsqlite

import (
	"errors"
	"fmt"

	"github.com/klauspost/compress/zstd"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/wire"
)

// row is a row of events as the database has it. data, sources and op are nil,
// int64, float64, string or []byte.
type row struct {
	seq, time any
	typ       any
	data      any
	sources   any
	op        any
	ignorable any
}

// decoder makes lines of rows. It is for one goroutine.
type decoder struct {
	schema int64
	zstd   *zstd.Decoder
	text   []byte // of a frame
	nums   []byte // sources as text
}

func newDecoder(schema int64) *decoder { return &decoder{schema: schema} }

func (d *decoder) close() {
	if d.zstd != nil {
		d.zstd.Close()
	}
}

// packedType reports the type of a packed row.
func packedType(t string) bool {
	return t == "text-chunks" || t == "reasoning-chunks" || t == "tool-call-chunks"
}

// rowError is what is wrong with a row.
type rowError struct {
	code outcrop.Code
	msg  string
}

func (e *rowError) Error() string { return e.msg }

func bad(code outcrop.Code, format string, args ...any) error {
	return &rowError{code, fmt.Sprintf(format, args...)}
}

const (
	codeColumn  outcrop.Code = "ROW_COLUMN"    // a column has another type or value than the schema says
	codeFrame   outcrop.Code = "ROW_FRAME"     // data is no zstd frame
	codeSources outcrop.Code = "ROW_SOURCES"   // source_event_seqs cannot be decoded
	codeJSON    outcrop.Code = "LINE_NOT_JSON" // as in a log file
	codeBig     outcrop.Code = "RECORD_TOO_BIG"
)

// parts are what a line is made of. The texts are valid until the next row.
type parts struct {
	seq, time         int64
	typ               string
	packed, ignorable bool
	data              []byte
	sources, op       []byte // nil: absent
}

// take decodes and judges a row.
func (d *decoder) take(r *row) (p parts, err error) {
	var ok bool
	if p.seq, ok = r.seq.(int64); !ok || p.seq < 0 || p.seq > jsonwire.MaxSafe {
		return p, bad(codeColumn, "seq is not a non-negative integer")
	}
	if p.time, ok = r.time.(int64); !ok || p.time > jsonwire.MaxSafe || p.time < -jsonwire.MaxSafe {
		return p, bad(codeColumn, "time is not an integer of milliseconds")
	}
	if p.typ, ok = r.typ.(string); !ok || p.typ == "" {
		return p, bad(codeColumn, "type is not a name")
	}
	ignorable, isNumber := r.ignorable.(int64)
	if r.ignorable != nil && (!isNumber || ignorable != 0 && ignorable != 1) {
		return p, bad(codeColumn, "ignorable is neither NULL nor 0 nor 1")
	}
	p.ignorable = ignorable == 1
	p.packed = d.schema >= 17 && isNumber && ignorable == 0
	switch {
	case p.packed && !packedType(p.typ):
		return p, bad(codeColumn, "the row is marked as packed, and its type is %s", clip(p.typ))
	case p.packed && (r.sources != nil || r.op != nil):
		return p, bad(codeColumn, "a packed row has sources or a marker")
	case !p.packed && packedType(p.typ):
		return p, bad(codeColumn, "an event has the type %s, which is that of a packed row", p.typ)
	}
	if p.data, err = d.data(r.data); err == nil {
		err = isValue(p.data, "data")
	}
	if err == nil && r.sources != nil {
		p.sources, err = d.sources(r.sources)
	}
	if err == nil && r.op != nil {
		op, ok := r.op.(string)
		if !ok {
			return p, bad(codeColumn, "surface_op is not text")
		}
		p.op = []byte(op)
		err = isValue(p.op, "surface_op")
	}
	return p, err
}

// size is at least the length of the line.
func (p *parts) size() int {
	const envelope = 160
	return len(p.data) + len(p.sources) + len(p.op) + 6*len(p.typ) + envelope
}

// appendLine appends the line.
func (p *parts) appendLine(dst []byte) []byte {
	dst = append(dst, `{"type":`...)
	dst = jsonwire.AppendString(dst, p.typ)
	if p.packed {
		dst = jsonwire.AppendIntMember(dst, "seq0", p.seq)
		dst = jsonwire.AppendIntMember(dst, "time0", p.time)
		dst = jsonwire.AppendRawMember(dst, "data", p.data)
		return append(dst, '}')
	}
	dst = jsonwire.AppendIntMember(dst, "seq", p.seq)
	dst = jsonwire.AppendIntMember(dst, "time", p.time)
	dst = jsonwire.AppendRawMember(dst, "data", p.data)
	if p.sources != nil {
		dst = jsonwire.AppendRawMember(dst, "sourceEventSeqs", p.sources)
	}
	if p.op != nil {
		dst = jsonwire.AppendRawMember(dst, "surfaceOp", p.op)
	}
	if p.ignorable {
		dst = append(dst, `,"ignorable":true`...)
	}
	return append(dst, '}')
}

// line is the line of a row by itself.
func (d *decoder) line(r *row) ([]byte, error) {
	p, err := d.take(r)
	if err != nil {
		return nil, err
	}
	return p.appendLine(make([]byte, 0, p.size())), nil
}

// isValue refuses text that is not one JSON value: as a member it could become
// several.
func isValue(text []byte, column string) error {
	end, err := jsonwire.Value(text, jsonwire.Space(text, 0))
	if err == nil && jsonwire.Space(text, end) != len(text) {
		err = errors.New("bytes behind the value")
	}
	if err != nil {
		return bad(codeJSON, "%s is not JSON: %v", column, err)
	}
	return nil
}

// data is the JSON text of a data column, valid until the next row.
func (d *decoder) data(v any) ([]byte, error) {
	switch v := v.(type) {
	case string:
		if len(v) > wire.MaxLine {
			return nil, bad(codeBig, "data has %d bytes, the limit is %d", len(v), wire.MaxLine)
		}
		return []byte(v), nil
	case []byte:
		if d.schema < 17 {
			return nil, bad(codeColumn, "data is not text")
		}
		if d.zstd == nil {
			z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(wire.MaxLine), zstd.WithDecoderMaxWindow(wire.MaxLine))
			if err != nil {
				return nil, err
			}
			d.zstd = z
		}
		text, err := d.zstd.DecodeAll(v, d.text[:0])
		if errors.Is(err, zstd.ErrDecoderSizeExceeded) || errors.Is(err, zstd.ErrWindowSizeExceeded) {
			return nil, bad(codeBig, "data decompresses to more than %d bytes", wire.MaxLine)
		}
		if err != nil {
			return nil, bad(codeFrame, "data is no zstd frame: %v", err)
		}
		if d.text = text; cap(text) > 4<<20 {
			d.text = nil
		}
		return text, nil
	}
	return nil, bad(codeColumn, "data is neither text nor a zstd frame")
}

// sources is the JSON text of a source_event_seqs column, valid until the next
// row.
func (d *decoder) sources(v any) ([]byte, error) {
	switch v := v.(type) {
	case string:
		if d.schema >= 17 {
			return nil, bad(codeColumn, "source_event_seqs is text")
		}
		return []byte(v), isValue([]byte(v), "source_event_seqs")
	case []byte:
		if d.schema < 17 {
			return nil, bad(codeColumn, "source_event_seqs is not text")
		}
		text, err := appendSources(d.nums[:0], v)
		d.nums = text
		return text, err
	}
	return nil, bad(codeColumn, "source_event_seqs is neither NULL nor a list")
}

// appendSources appends the list that a BLOB of schema 17 stands for: the first
// seq as unsigned LEB128, each further one as the zig-zag of its difference to
// the one before. An empty list is a BLOB of no bytes.
func appendSources(dst, b []byte) ([]byte, error) {
	dst = append(dst, '[')
	var last int64
	for first := true; len(b) > 0; first = false {
		u, n := varint(b)
		if n == 0 {
			return dst, bad(codeSources, "source_event_seqs has a number that is cut off or too long")
		}
		b = b[n:]
		if first {
			if u > jsonwire.MaxSafe {
				return dst, bad(codeSources, "source_event_seqs has a seq out of range")
			}
			last = int64(u)
		} else {
			if u > 2*jsonwire.MaxSafe {
				return dst, bad(codeSources, "source_event_seqs has a difference out of range")
			}
			step := int64(u >> 1)
			if u&1 == 1 {
				step = -step - 1
			}
			if last += step; last < 0 || last > jsonwire.MaxSafe {
				return dst, bad(codeSources, "source_event_seqs has a seq out of range")
			}
			dst = append(dst, ',')
		}
		dst = jsonwire.AppendInt(dst, last)
	}
	return append(dst, ']'), nil
}

// varint reads one number; n is 0 for one that is cut off, does not fit, or has
// zeros in front.
func varint(b []byte) (u uint64, n int) {
	for i, c := range b {
		if i > 8 { // a shift above 56
			return 0, 0
		}
		if g := uint64(c & 0x7f); g<<(7*i)>>(7*i) != g {
			return 0, 0
		} else {
			u |= g << (7 * i)
		}
		if c < 0x80 {
			if c == 0 && i > 0 {
				return 0, 0
			}
			return u, i + 1
		}
	}
	return 0, 0
}

// clip shortens a name for a message.
func clip(s string) string {
	const most = 40
	if len(s) > most {
		return fmt.Sprintf("%q...", s[:most])
	}
	return fmt.Sprintf("%q", s)
}
