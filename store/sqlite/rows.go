package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"iter"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
)

// row is a row of events. Its members are spans of a line, or of what the
// database lends.
type row struct {
	seq, count int64
	typ        string
	time       int64
	data       []byte
	sources    []byte // nil: NULL
	op         []byte
	ignorable  bool
	line       []byte // nil: the members give the line
}

// rowOf takes a line of a log file apart. It is one that the encoder made, so
// it is in order. room is memory for a comparison, which comes back.
func rowOf(line, room []byte) (r row, _ []byte, err error) {
	if outcrop.IsRow(line) {
		run, err := outcrop.DecodeRun(line)
		if err != nil {
			return r, room, err
		}
		r.seq, r.count = int64(run.First), int64(run.Len)
		r.typ, _ = jsonwire.Text(jsonwire.Get(line, "type"))
		r.time, _ = jsonwire.Int(jsonwire.Get(line, "time0"))
		r.data = jsonwire.Get(line, "data")
	} else {
		e, err := outcrop.DecodeEvent(line)
		if err != nil {
			return r, room, err
		}
		r.seq, r.count, r.typ, r.time = int64(e.Seq), 1, string(e.Type), e.Time
		r.data, r.sources, r.ignorable = e.Data, e.Sources.JSON(), e.Ignorable
		if bytes.Contains(line, []byte(`"surfaceOp"`)) {
			r.op = jsonwire.Get(line, "surfaceOp")
		}
	}
	if r.data == nil {
		r.data = []byte{}
	}
	if room = r.appendLine(room[:0]); !bytes.Equal(room, line) {
		r.line = line
	}
	return r, room, nil
}

// packed reports a packed row, which may stand for a single event. No event has
// the type of one.
func (r *row) packed() bool {
	return r.typ == "text-chunks" || r.typ == "reasoning-chunks" || r.typ == "tool-call-chunks"
}

// appendLine appends the line without its newline.
func (r *row) appendLine(dst []byte) []byte {
	if r.line != nil {
		return append(dst, r.line...)
	}
	dst = append(dst, `{"type":`...)
	dst = jsonwire.AppendString(dst, r.typ)
	if r.packed() {
		dst = jsonwire.AppendIntMember(dst, "seq0", r.seq)
		dst = jsonwire.AppendIntMember(dst, "time0", r.time)
	} else {
		dst = jsonwire.AppendIntMember(dst, "seq", r.seq)
		dst = jsonwire.AppendIntMember(dst, "time", r.time)
	}
	dst = jsonwire.AppendRawMember(dst, "data", r.data)
	if r.sources != nil {
		dst = jsonwire.AppendRawMember(dst, "sourceEventSeqs", r.sources)
	}
	if r.op != nil {
		dst = jsonwire.AppendRawMember(dst, "surfaceOp", r.op)
	}
	if r.ignorable {
		dst = append(dst, `,"ignorable":true`...)
	}
	return append(dst, '}')
}

const insertEvent = `INSERT INTO events
	(session, seq, count, type, time, data, source_event_seqs, surface_op, ignorable, line)
	VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

// insert adds the row to a log.
func (r *row) insert(ctx context.Context, stmt *sql.Stmt, session int64) error {
	_, err := stmt.ExecContext(ctx, session, r.seq, r.count, r.typ, r.time, r.data, textOrNull(r.sources), textOrNull(r.op), oneOrNull(r.ignorable), bytesOrNull(r.line))
	return err
}

func textOrNull(b []byte) any {
	if b == nil {
		return nil
	}
	return string(b)
}

func bytesOrNull(b []byte) any {
	if b == nil {
		return nil
	}
	return b
}

func oneOrNull(b bool) any {
	if b {
		return 1
	}
	return nil
}

const selectEvents = `SELECT seq, count, type, time, data, source_event_seqs, surface_op, ignorable, line
	FROM events WHERE session = ? AND seq >= ? AND seq < ? ORDER BY seq`

// lines splits what the encoder made into its lines.
func lines(text []byte) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for len(text) > 0 {
			line, rest, _ := bytes.Cut(text, []byte{'\n'})
			if !yield(line, nil) {
				return
			}
			text = rest
		}
	}
}
