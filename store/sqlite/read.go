package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"math"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/faultfs"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/filelock"
	"github.com/outcrop-dev/outcrop/wire"
)

type querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// session is a row of sessions.
type session struct {
	header outcrop.Header
	key    int64
	epoch  int64
	next   outcrop.Seq
	head   head
}

const selectSession = "SELECT key, id, header, epoch, next_seq, updated, turns, open_turn, title, titled, bytes FROM sessions"

// find reads the row of a session. The errors wrap outcrop.ErrNotFound, or are
// those of a header that cannot be read.
func (s *Store) find(ctx context.Context, q querier, id string) (session, error) {
	in, err := s.scan(q.QueryRowContext(ctx, selectSession+" WHERE id = ?", id))
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return in.session, s.notFound("open", id)
	case err != nil:
		return in.session, s.failed("open", id, err)
	}
	return in.session, in.bad
}

// stored is a row of sessions as it was found, readable or not.
type stored struct {
	session
	id  string
	bad error // why its header cannot be read
}

func (s *Store) scan(row interface{ Scan(...any) error }) (in stored, err error) {
	var line []byte
	err = row.Scan(&in.key, &in.id, &line, &in.epoch, &in.next, &in.head.updated, &in.head.turns, &in.head.openTurn, &in.head.title, &in.head.titled, &in.head.bytes)
	if err != nil {
		return in, err
	}
	in.header, err = outcrop.ParseHeader(line)
	switch {
	case err != nil:
		in.bad = store.Problem("open", in.id, err, "", "")
	case in.header.ID != in.id:
		in.bad = s.sessionProblem("open", in.id, "HEADER_ID", outcrop.ErrDamaged, fmt.Sprintf("its header is that of session %q", in.header.ID), "")
	}
	return in, nil
}

// Read is store.Store's. The log is read up to where it ended now.
func (s *Store) Read(ctx context.Context, id string) (store.Stored, error) {
	db, err := s.reader(ctx)
	if err != nil {
		return nil, err
	}
	if db == nil {
		return nil, s.notFound("read", id)
	}
	in, err := s.find(ctx, db, id)
	if err != nil {
		return nil, err
	}
	return &reading{s: s, db: db, session: in}, nil
}

// reading is a log opened for reading.
type reading struct {
	session
	s  *Store
	db *sql.DB
}

func (r *reading) Header() outcrop.Header { return r.header }
func (r *reading) Path() string           { return "" }
func (r *reading) Tail() store.Tail       { return store.Tail{} }
func (r *reading) Close() error           { return nil }
func (r *reading) Records() iter.Seq2[outcrop.Record, error] {
	return r.s.records(r.db, r.session, 0, wire.NewLines(r.header.ID, r.s.results(r.db, r.key)))
}

// records yields the log of a session, as its row was read, from a seq on at
// which a record begins.
func (s *Store) records(db *sql.DB, of session, from outcrop.Seq, decode *wire.Lines) iter.Seq2[outcrop.Record, error] {
	id, end := of.header.ID, of.next
	return func(yield func(outcrop.Record, error) bool) {
		conn, err := db.Conn(context.Background())
		if err != nil {
			yield(outcrop.Record{}, s.failed("read", id, err))
			return
		}
		defer conn.Close()
		ahead, stop := make(chan portion, 4), make(chan struct{})
		go scan(conn, of.key, int64(from), int64(end), ahead, stop)
		defer func() {
			close(stop)
			for range ahead {
			}
		}()
		next := from
		for p := range ahead {
			for _, r := range p.rows {
				rec, err := decode.Record(r.line)
				if err == nil && (rec.Seq != outcrop.Seq(r.seq) || rec.Seq != next || int64(rec.Count()) != r.count) {
					err = s.sessionProblem("read", id, "SEQ_GAP", outcrop.ErrDamaged, fmt.Sprintf("seq gap: event %d expected, the row has %d", next, r.seq), "")
				}
				if err != nil {
					// The record that was refused goes along, as readers of files give it.
					yield(rec, store.Problem("read", id, err, "", "the events before it can be read"))
					return
				}
				next = rec.Last() + 1
				if !yield(rec, nil) {
					return
				}
			}
			if p.err != nil {
				yield(outcrop.Record{}, s.failed("read", id, p.err))
				return
			}
		}
		if next != end {
			yield(outcrop.Record{}, s.sessionProblem("read", id, "SEQ_GAP", outcrop.ErrDamaged,
				fmt.Sprintf("the log has %d events, its session says %d", next, end), "rows were removed: restore the file from a copy, with its -wal"))
		}
	}
}

// results reads the results of a log that mixes old and new shapes.
func (s *Store) results(db *sql.DB, key int64) func(before outcrop.Seq) iter.Seq2[outcrop.Seq, []byte] {
	return func(before outcrop.Seq) iter.Seq2[outcrop.Seq, []byte] {
		return func(yield func(outcrop.Seq, []byte) bool) {
			rows, err := db.Query("SELECT seq, data FROM events WHERE session = ? AND seq < ? AND type = 'tool/result' ORDER BY seq", key, int64(min(before, math.MaxInt64)))
			if err != nil {
				return
			}
			defer rows.Close()
			for rows.Next() {
				var seq int64
				var data []byte
				if rows.Scan(&seq, &data) != nil || !yield(outcrop.Seq(seq), data) {
					return
				}
			}
		}
	}
}

// List is store.Store's. Everything that it says is in the rows of sessions;
// with Full each log is read, and what is wrong with it found.
func (s *Store) List(ctx context.Context, o store.ListOptions) ([]store.Info, error) {
	db, err := s.reader(ctx)
	if err != nil || db == nil {
		return nil, err
	}
	rows, err := db.QueryContext(ctx, selectSession)
	if err != nil {
		return nil, s.failed("list", "", err)
	}
	defer rows.Close()
	var infos []store.Info
	var full []session
	for rows.Next() {
		in, err := s.scan(rows)
		if err != nil {
			return nil, s.failed("list", "", err)
		}
		infos = append(infos, s.info(in))
		full = append(full, in.session)
	}
	if err := rows.Err(); err != nil {
		return nil, s.failed("list", "", err)
	}
	rows.Close()
	if o.Full {
		for i := range infos {
			if infos[i].State != store.StateDamaged && ctx.Err() == nil {
				s.look(db, full[i], &infos[i])
			}
		}
	}
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	store.SortInfos(infos)
	return infos, nil
}

// info describes a session by its row.
func (s *Store) info(in stored) store.Info {
	i := store.Info{ID: in.id, Title: in.head.title, CreatedAt: in.header.CreatedAt, UpdatedAt: in.head.updated,
		Events: int64(in.next), Turns: in.head.turns, Bytes: in.head.bytes, State: store.StateOK, Header: in.header}
	if in.header.Cwd != nil {
		i.Cwd = *in.header.Cwd
	}
	if in.bad != nil {
		i.State, i.Reason = store.StateDamaged, in.bad.Error()
		return i
	}
	if in.head.openTurn {
		i.State, i.Reason = store.StateOpenTurn, "the last turn was not closed"
	}
	if h, held := filelock.HolderOf(faultfs.Real, s.lockPath(in.id)); held {
		i.State, i.Reason = store.StateLocked, (&store.LockedError{Holder: h}).Error()
	}
	return i
}

// look reads a whole log.
func (s *Store) look(db *sql.DB, in session, i *store.Info) {
	var sum store.Summary
	for r, err := range s.records(db, in, 0, wire.NewLines(i.ID, s.results(db, in.key))) {
		if err != nil {
			i.State, i.Reason = store.StateDamaged, err.Error()
			return
		}
		sum.Add(r)
	}
	state, reason := i.State, i.Reason
	sum.Into(i)
	if state == store.StateLocked {
		i.State, i.Reason = state, reason
	}
}
