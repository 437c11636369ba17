package sqlite

import (
	"bytes"
	"database/sql"
	"iter"
	"strings"

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
// it is in order.
func rowOf(line []byte) (r row, err error) {
	if outcrop.IsRow(line) {
		run, err := outcrop.DecodeRun(line)
		if err != nil {
			return r, err
		}
		r.seq, r.count = int64(run.First), int64(run.Len)
		r.typ, _ = jsonwire.Text(jsonwire.Get(line, "type"))
		r.time, _ = jsonwire.Int(jsonwire.Get(line, "time0"))
	} else {
		e, err := outcrop.DecodeEvent(line)
		if err != nil {
			return r, err
		}
		r.seq, r.count, r.typ, r.time = int64(e.Seq), 1, string(e.Type), e.Time
		r.sources, r.op = jsonwire.Get(line, "sourceEventSeqs"), jsonwire.Get(line, "surfaceOp")
		r.ignorable = e.Ignorable
	}
	r.data = jsonwire.Get(line, "data")
	if r.data == nil {
		r.data = []byte{}
	}
	if !bytes.Equal(r.appendLine(nil), line) {
		r.line = line
	}
	return r, nil
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
func (r *row) insert(stmt *sql.Stmt, session int64) error {
	_, err := stmt.Exec(session, r.seq, r.count, r.typ, r.time, r.data, textOrNull(r.sources), textOrNull(r.op), oneOrNull(r.ignorable), bytesOrNull(r.line))
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

// scanner reads rows of events as lines.
type scanner struct {
	rows  *sql.Rows
	arena []byte
	types map[string]string
}

// line reads the present row. The line is its own for good: lines lie in
// blocks that are never written again.
func (s *scanner) line() (r row, line []byte, err error) {
	var typ, data, sources, op, whole sql.RawBytes
	var ignorable sql.NullInt64
	if err := s.rows.Scan(&r.seq, &r.count, &typ, &r.time, &data, &sources, &op, &ignorable, &whole); err != nil {
		return r, nil, err
	}
	t, ok := s.types[string(typ)]
	if !ok {
		t = strings.Clone(string(typ))
		if s.types == nil || len(s.types) > 1000 {
			s.types = map[string]string{}
		}
		s.types[t] = t
	}
	r.typ, r.data, r.sources, r.op, r.line = t, data, sources, op, whole
	r.ignorable = ignorable.Valid
	const block = 1 << 20
	need := len(data) + len(sources) + len(op) + len(whole) + len(typ) + 256
	if cap(s.arena)-len(s.arena) < need {
		s.arena = make([]byte, 0, max(block, need))
	}
	start := len(s.arena)
	s.arena = r.appendLine(s.arena)
	return r, s.arena[start:len(s.arena):len(s.arena)], nil
}

// lines splits what the encoder made into its lines.
func lines(text []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for len(text) > 0 {
			line, rest, _ := bytes.Cut(text, []byte{'\n'})
			if !yield(line) {
				return
			}
			text = rest
		}
	}
}
