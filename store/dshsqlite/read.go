package dshsqlite

import (
	"context"
	"errors"
	"iter"
	"math"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/wire"
)

// selectEvents selects the rows of a session, in the columns of scanRow.
func selectEvents(schema int64) string {
	ignorable := "ignorable"
	if schema < 15 {
		ignorable = "NULL"
	}
	return "SELECT seq, type, time, data, source_event_seqs, surface_op, " + ignorable + " FROM events WHERE session_id = ?"
}

func scanRow(scan func(...any) error) (r row, err error) {
	err = scan(&r.seq, &r.typ, &r.time, &r.data, &r.sources, &r.op, &r.ignorable)
	return r, err
}

// log is the rows of one session. It is for one goroutine.
type log struct {
	s       *Store
	file    *lent
	in      session
	decoder *decoder
	decode  *wire.Lines
	tail    store.Tail
	block   []byte // lines lie in blocks that are not written again
	size    int    // of the last block
}

func (s *Store) newLog(f *lent, in session) *log {
	l := &log{s: s, file: f, in: in, decoder: newDecoder(f.Identity().UserVersion)}
	l.decode = wire.NewLines(in.id, s.results(context.Background(), f, in.id, newDecoder(f.Identity().UserVersion)))
	return l
}

const (
	firstBlock   = 8 << 10
	largestBlock = 1 << 20
)

// line makes the line of a row in the present block, or in the next one.
func (l *log) line(r *row) ([]byte, error) {
	p, err := l.decoder.take(r)
	if err != nil {
		return nil, err
	}
	need := p.size()
	if cap(l.block)-len(l.block) < need {
		l.size = min(max(2*l.size, firstBlock), largestBlock)
		l.block = make([]byte, 0, max(l.size, need))
	}
	n := len(l.block)
	l.block = p.appendLine(l.block)
	return l.block[n:len(l.block):len(l.block)], nil
}

// records yields the log from a seq on at which a record begins. A torn tail
// ends it quietly; tail says so then.
func (l *log) records(ctx context.Context, from outcrop.Seq) iter.Seq2[outcrop.Record, error] {
	return func(yield func(outcrop.Record, error) bool) {
		l.tail = store.Tail{}
		rows, err := l.file.DB().QueryContext(ctx, selectEvents(l.decoder.schema)+" AND seq >= ? ORDER BY seq", l.in.id, int64(from))
		if err != nil {
			yield(outcrop.Record{}, l.file.Failed("read", err))
			return
		}
		defer rows.Close()
		next := from
		for rows.Next() {
			r, err := scanRow(rows.Scan)
			if err != nil {
				yield(outcrop.Record{}, l.file.Failed("read", err))
				return
			}
			rec, err := l.record(&r, next)
			if err != nil {
				l.stop(ctx, &r, rec, err, next, yield)
				return
			}
			next = rec.Last() + 1
			if !yield(rec, nil) {
				return
			}
		}
		if err := rows.Err(); err != nil {
			yield(outcrop.Record{}, l.file.Failed("read", err))
			return
		}
		if l.file.Moved() {
			yield(outcrop.Record{}, l.s.problem("read", l.in.id, store.ErrMoved, "another program wrote the database while it was read", "read it again"))
		}
	}
}

// record decodes a row that must begin at next. The errors are *rowError and
// *outcrop.Error.
func (l *log) record(r *row, next outcrop.Seq) (outcrop.Record, error) {
	line, err := l.line(r)
	if err != nil {
		return outcrop.Record{}, err
	}
	rec, err := l.decode.Record(line)
	if err == nil && rec.Seq != next {
		err = bad("SEQ_GAP", "seq gap: event %d expected, the row has %d", next, rec.Seq)
	}
	return rec, err
}

// stop ends the reading at a bad row: quietly at a torn tail.
func (l *log) stop(ctx context.Context, r *row, rec outcrop.Record, err error, next outcrop.Seq, yield func(outcrop.Record, error) bool) {
	var e *outcrop.Error
	var re *rowError
	switch {
	case errors.As(err, &re):
		e = l.s.damaged(l.in.id, next, re.code, re.msg)
		if n, ok := r.seq.(int64); ok && re.code != "SEQ_GAP" {
			e.Seq = outcrop.Seq(n)
		}
		if re.code == codeBig {
			e.Err = outcrop.ErrRefused
		}
	case errors.As(err, &e):
		c := *e
		e = &c
		e.Op, e.Session, e.Path, e.Seq = "read", l.in.id, l.s.path, next
	default:
		yield(rec, err)
		return
	}
	if errors.Is(e, outcrop.ErrDamaged) {
		ended, err := l.endsBehind(ctx, r.seq)
		if err != nil {
			yield(outcrop.Record{}, err)
			return
		}
		if !ended {
			e.Hint = "no finished turn lies behind it: a copy leaves it out"
			l.tail = store.Tail{Torn: true, Reason: e}
			l.tail.Bytes, _ = l.bytesBehind(ctx, next)
			return
		}
	}
	if e.Hint == "" {
		e.Hint = "a finished turn lies behind the damage, so nothing is left out; the events before it can be read, and taken into a new session by a fork"
	}
	yield(rec, e)
}

// endsBehind reports whether a turn/end that can be read lies at or behind a
// row.
func (l *log) endsBehind(ctx context.Context, seq any) (bool, error) {
	n, ok := seq.(int64)
	if !ok {
		n = math.MinInt64
	}
	rows, err := l.file.DB().QueryContext(ctx, selectEvents(l.decoder.schema)+" AND seq >= ? AND type = 'turn/end' ORDER BY seq DESC", l.in.id, n)
	if err != nil {
		return false, l.file.Failed("read", err)
	}
	defer rows.Close()
	d := newDecoder(l.decoder.schema)
	defer d.close()
	for rows.Next() {
		r, err := scanRow(rows.Scan)
		if err != nil {
			return false, l.file.Failed("read", err)
		}
		line, err := d.line(&r)
		if err != nil {
			continue
		}
		if _, err := outcrop.DecodeEvent(line); err == nil {
			return true, nil
		}
	}
	return false, l.file.Failed("read", rows.Err())
}

// bytesBehind is how much a torn tail has.
func (l *log) bytesBehind(ctx context.Context, from outcrop.Seq) (n int64, err error) {
	err = l.file.DB().QueryRowContext(ctx, "SELECT ifnull(sum(octet_length(data)), 0) FROM events WHERE session_id = ? AND seq >= ?", l.in.id, int64(from)).Scan(&n)
	return n, err
}

// results reads the results of a log that mixes old and new shapes.
func (s *Store) results(ctx context.Context, f *lent, id string, d *decoder) func(before outcrop.Seq) iter.Seq2[outcrop.Seq, []byte] {
	return func(before outcrop.Seq) iter.Seq2[outcrop.Seq, []byte] {
		return func(yield func(outcrop.Seq, []byte) bool) {
			rows, err := f.DB().QueryContext(ctx, "SELECT seq, data FROM events WHERE session_id = ? AND seq < ? AND type = 'tool/result' ORDER BY seq", id, int64(before))
			if err != nil {
				return
			}
			defer rows.Close()
			defer d.close()
			for rows.Next() {
				var seq int64
				var v any
				if rows.Scan(&seq, &v) != nil {
					return
				}
				data, err := d.data(v)
				if err != nil || isValue(data, "data") != nil {
					continue
				}
				if !yield(outcrop.Seq(seq), append([]byte(nil), data...)) {
					return
				}
			}
		}
	}
}

// Read is store.Store's.
func (s *Store) Read(ctx context.Context, id string) (store.Stored, error) {
	f, err := s.open(ctx)
	if err != nil {
		return nil, err
	}
	in, err := s.find(ctx, f, id)
	if err != nil {
		s.back(f)
		return nil, err
	}
	return &reading{log: s.newLog(f, in)}, nil
}

// reading is a log opened for reading.
type reading struct {
	*log
	closed bool
}

func (r *reading) Header() outcrop.Header { return r.in.header }
func (r *reading) Tail() store.Tail       { return r.tail }

// Path is "": the file holds other logs too.
func (r *reading) Path() string { return "" }

// Records is store.Stored's.
func (r *reading) Records() iter.Seq2[outcrop.Record, error] {
	return r.records(context.Background(), 0)
}

// Close is store.Stored's.
func (r *reading) Close() error {
	if r.closed {
		return nil
	}
	r.closed = true
	r.decoder.close()
	return r.s.back(r.file)
}
