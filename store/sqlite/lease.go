package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/filelock"
	"github.com/outcrop-dev/outcrop/store/jsonl"
	"github.com/outcrop-dev/outcrop/wire"
)

// lease is the right to write one log.
type lease struct {
	s      *Store
	header outcrop.Header
	lock   *filelock.Lock // nil before a new log is published
	key    int64
	epoch  int64
	next   outcrop.Seq
	head   head
	loaded bool
	enc    *wire.Encoder
	buf    []byte
	dead   error
}

// head is what the row of a session says about its log, for listings.
type head struct {
	updated  int64
	turns    int
	openTurn bool
	title    string
	titled   bool
	bytes    int64
}

// Create is store.Store's.
func (s *Store) Create(ctx context.Context, h outcrop.Header) (store.Lease, error) {
	if h.ID == "" {
		return nil, s.sessionProblem("create", "", "HEADER_ID", outcrop.ErrRefused, "the session id is empty", "")
	}
	db, err := s.reader(ctx)
	if err != nil {
		return nil, err
	}
	if db != nil {
		switch _, err := s.find(ctx, db, h.ID); {
		case err == nil:
			return nil, s.exists(h.ID)
		case !errors.Is(err, outcrop.ErrNotFound):
			return nil, err
		}
	}
	return &lease{s: s, header: h, loaded: true}, context.Cause(ctx)
}

// Acquire is store.Store's.
func (s *Store) Acquire(ctx context.Context, id string) (store.Lease, error) {
	r, err := s.reader(ctx)
	if err != nil {
		return nil, err
	}
	if r == nil {
		return nil, s.notFound("open", id)
	}
	if _, err := s.find(ctx, r, id); err != nil {
		return nil, err
	}
	l := &lease{s: s}
	if l.lock, err = s.takeLock(id); err != nil {
		return nil, store.Problem("open", id, err, "", "end it there first; reading needs no lock")
	}
	if err := l.raise(ctx, id); err != nil {
		l.lock.Release()
		return nil, err
	}
	return l, nil
}

// raise begins a new epoch, so that whoever wrote before does so no more.
func (l *lease) raise(ctx context.Context, id string) error {
	db, err := l.s.writer(ctx)
	if err != nil {
		return err
	}
	return l.s.transact(ctx, db, "open", id, func(tx *sql.Tx) error {
		row, err := l.s.find(ctx, tx, id)
		if err != nil {
			return err
		}
		l.header, l.key, l.epoch, l.next, l.head = row.header, row.key, row.epoch+1, row.next, row.head
		_, err = tx.Exec("UPDATE sessions SET epoch = ? WHERE key = ?", l.epoch, l.key)
		return err
	})
}

// locks is the folder of the lock files.
func (s *Store) locks() string { return s.path + ".locks" }

func (s *Store) lockPath(id string) string {
	return filepath.Join(s.locks(), jsonl.EncodeSegment(id)+".lock")
}

func (s *Store) takeLock(id string) (*filelock.Lock, error) {
	if err := os.MkdirAll(s.locks(), 0o700); err != nil {
		return nil, s.problem("lock", err, "", "a session is continued only where a folder can be made beside the database")
	}
	since := int64(0)
	if s.opt.Now != nil {
		since = s.opt.Now()
	}
	return filelock.Take(s.lockPath(id), s.opt.Program, since)
}

// Header is store.Lease's.
func (l *lease) Header() outcrop.Header { return l.header }

// Tail is store.Lease's: a transaction has none.
func (l *lease) Tail() store.Tail { return store.Tail{} }

// Records is store.Lease's.
func (l *lease) Records() iter.Seq2[outcrop.Record, error] {
	return func(yield func(outcrop.Record, error) bool) {
		if l.loaded {
			return
		}
		l.loaded = true
		db, err := l.s.reader(context.Background())
		if err != nil {
			yield(outcrop.Record{}, err)
			return
		}
		log := session{header: l.header, key: l.key, next: l.next}
		for r, err := range l.s.records(db, log, 0, wire.NewLines(l.header.ID, l.s.results(db, l.key))) {
			if !yield(r, err) {
				return
			}
		}
	}
}

// Append is store.Lease's: one transaction, durable on return.
func (l *lease) Append(ctx context.Context, recs iter.Seq[outcrop.Record]) error {
	if l.dead != nil {
		return l.dead
	}
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if l.s.opt.fail != nil {
		if err := l.s.opt.fail("append"); err != nil {
			return err
		}
	}
	if l.enc == nil {
		l.enc = wire.NewEncoder(wire.Plain)
	}
	next, head, err := l.next, l.head, error(nil)
	text, encErr := l.enc.Batch(l.buf[:0], func(yield func(outcrop.Record) bool) {
		sum := store.Summary{Title: head.title, Turns: head.turns, OpenTurn: head.openTurn, Updated: head.updated}
		sum.SetTitled(head.titled)
		for r := range recs {
			if r.Seq != next {
				err = l.s.sessionProblem("append", l.header.ID, "SEQ_GAP", outcrop.ErrRefused, fmt.Sprintf("event %d follows event %d", r.Seq, next-1), "")
				return
			}
			next = r.Last() + 1
			sum.Add(r)
			if !yield(r) {
				return
			}
		}
		head.title, head.titled, head.turns, head.openTurn, head.updated = sum.Title, sum.Titled(), sum.Turns, sum.OpenTurn, sum.Updated
	})
	if err == nil {
		err = encErr
	}
	if err != nil {
		return err
	}
	if l.buf = nil; cap(text) <= 1<<20 {
		l.buf = text
	}
	head.bytes += int64(len(text))
	publish := l.lock == nil
	if publish {
		if l.lock, err = l.s.takeLock(l.header.ID); err != nil {
			return store.Problem("create", l.header.ID, err, "", "")
		}
	}
	if err := l.commit(ctx, text, next, head, publish); err != nil {
		if publish {
			l.lock.Release()
			l.lock = nil
		}
		return err
	}
	l.next, l.head = next, head
	return nil
}

// commit writes a batch in one transaction.
func (l *lease) commit(ctx context.Context, text []byte, next outcrop.Seq, h head, publish bool) error {
	db, err := l.s.writer(ctx)
	if err != nil {
		return err
	}
	return l.s.transact(ctx, db, "append", l.header.ID, func(tx *sql.Tx) error {
		if publish {
			if err := l.publish(ctx, tx); err != nil {
				return err
			}
		}
		res, err := tx.Exec(`UPDATE sessions SET next_seq = ?, updated = ?, turns = ?, open_turn = ?, title = ?, titled = ?, bytes = ?
			WHERE key = ? AND epoch = ? AND next_seq = ?`,
			int64(next), h.updated, h.turns, h.openTurn, h.title, h.titled, h.bytes, l.key, l.epoch, int64(l.next))
		if err != nil {
			return err
		}
		if n, err := res.RowsAffected(); err != nil || n != 1 {
			l.dead = l.s.sessionProblem("append", l.header.ID, "", store.ErrMoved, "another program took the session over",
				"nothing was written over it; open the session again to go on from what is there")
			return l.dead
		}
		stmt, err := tx.Prepare(insertEvent)
		if err != nil {
			return err
		}
		defer stmt.Close()
		for line := range lines(text) {
			r, err := rowOf(line)
			if err != nil {
				return err
			}
			if err := r.insert(stmt, l.key); err != nil {
				return err
			}
		}
		return nil
	})
}

// publish makes the row of a new session.
func (l *lease) publish(ctx context.Context, tx *sql.Tx) error {
	switch _, err := l.s.find(ctx, tx, l.header.ID); {
	case err == nil:
		return l.s.exists(l.header.ID)
	case !errors.Is(err, outcrop.ErrNotFound):
		return err
	}
	res, err := tx.Exec(`INSERT INTO sessions (id, header, epoch, next_seq, updated, turns, open_turn, title, titled, bytes)
		VALUES (?, ?, 1, 0, 0, 0, 0, '', 0, 0)`, l.header.ID, []byte(l.header.Line()))
	if err != nil {
		return err
	}
	l.epoch = 1
	l.key, err = res.LastInsertId()
	return err
}

// Sync is store.Lease's: what Append has written is durable already.
func (l *lease) Sync(context.Context) error {
	if l.dead != nil {
		return l.dead
	}
	if l.s.opt.fail != nil {
		if err := l.s.opt.fail("sync"); err != nil {
			l.dead = l.s.sessionProblem("sync", l.header.ID, "", errors.Join(store.ErrSync, err), err.Error(), "")
			return l.dead
		}
	}
	return nil
}

// Close is store.Lease's.
func (l *lease) Close() error {
	var err error
	if l.lock != nil {
		err = l.lock.Release()
		l.lock = nil
	}
	if l.dead == nil {
		l.dead = l.s.sessionProblem("append", l.header.ID, "", store.ErrClosed, "", "")
	}
	return err
}

// Put is store.Store's. The records are read before the transaction begins, so
// that a slow source keeps nobody waiting.
func (s *Store) Put(ctx context.Context, h outcrop.Header, recs iter.Seq2[outcrop.Record, error]) error {
	lse, err := s.Create(ctx, h)
	if err != nil {
		return err
	}
	defer lse.Close()
	var all []outcrop.Record
	for r, err := range recs {
		if err != nil {
			return err
		}
		all = append(all, r)
	}
	return lse.Append(ctx, slices.Values(all))
}
