package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/faultfs"
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
	return l.s.transact(ctx, db, "open", id, func(ctx context.Context, c *sql.Conn) error {
		row, err := l.s.find(ctx, c, id)
		if err != nil {
			return err
		}
		l.header, l.key, l.epoch, l.next, l.head = row.header, row.key, row.epoch+1, row.next, row.head
		_, err = c.ExecContext(ctx, "UPDATE sessions SET epoch = ? WHERE key = ?", l.epoch, l.key)
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
	return filelock.Take(faultfs.Real, s.lockPath(id), s.opt.Program, since)
}

// Header is store.Lease's.
func (l *lease) Header() outcrop.Header { return l.header }

// Epoch is store.Epocher's.
func (l *lease) Epoch() uint64 { return uint64(l.epoch) }

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
	if l.enc == nil {
		l.enc = wire.NewEncoder(wire.Plain)
	}
	b := batch{s: l.s, next: l.next, head: l.head}
	text, err := l.enc.Batch(l.buf[:0], b.through(recs))
	if err = cmp.Or(b.err, err); err != nil {
		return err
	}
	if l.buf = nil; cap(text) <= 1<<20 {
		l.buf = text
	}
	b.head.bytes += int64(len(text))
	return l.store(ctx, &b, lines(text), nil)
}

// batch is what becomes of a log when some records follow it.
type batch struct {
	s    *Store
	next outcrop.Seq
	head head
	err  error
}

// through passes records on that follow the log, and keeps count.
func (b *batch) through(recs iter.Seq[outcrop.Record]) iter.Seq[outcrop.Record] {
	return func(yield func(outcrop.Record) bool) {
		sum := store.Summary{Title: b.head.title, Turns: b.head.turns, OpenTurn: b.head.openTurn, Updated: b.head.updated}
		sum.SetTitled(b.head.titled)
		for r := range recs {
			if r.Seq != b.next {
				b.err = b.s.sessionProblem("append", "", "SEQ_GAP", outcrop.ErrRefused, fmt.Sprintf("event %d follows event %d", r.Seq, b.next-1), "")
				return
			}
			b.next = r.Last() + 1
			sum.Add(r)
			if !yield(r) {
				break
			}
		}
		b.head.title, b.head.titled, b.head.turns, b.head.openTurn, b.head.updated = sum.Title, sum.Titled(), sum.Turns, sum.OpenTurn, sum.Updated
	}
}

// store writes a batch, and publishes a new session with it. same is asked
// before it is committed.
func (l *lease) store(ctx context.Context, b *batch, text iter.Seq2[[]byte, error], same func(ctx context.Context, c *sql.Conn) error) (err error) {
	if l.s.opt.fail != nil {
		if err := l.s.opt.fail("append"); err != nil {
			return err
		}
	}
	publish := l.lock == nil
	if publish {
		if l.lock, err = l.s.takeLock(l.header.ID); err != nil {
			return store.Problem("create", l.header.ID, err, "", "")
		}
	}
	if err := l.commit(ctx, b, text, publish, same); err != nil {
		if publish {
			l.lock.Release()
			l.lock = nil
		}
		if errors.Is(err, store.ErrSync) {
			l.dead = err
		}
		return err
	}
	l.next, l.head = b.next, b.head
	return nil
}

// commit writes a batch in one transaction.
func (l *lease) commit(ctx context.Context, b *batch, text iter.Seq2[[]byte, error], publish bool, same func(ctx context.Context, c *sql.Conn) error) error {
	db, err := l.s.writer(ctx)
	if err != nil {
		return err
	}
	return l.s.transact(ctx, db, "append", l.header.ID, func(ctx context.Context, c *sql.Conn) error {
		if publish {
			if err := l.publish(ctx, c); err != nil {
				return err
			}
		}
		h := &b.head
		res, err := c.ExecContext(ctx, `UPDATE sessions SET next_seq = ?, updated = ?, turns = ?, open_turn = ?, title = ?, titled = ?, bytes = ?
			WHERE key = ? AND epoch = ? AND next_seq = ?`,
			int64(b.next), h.updated, h.turns, h.openTurn, h.title, h.titled, h.bytes, l.key, l.epoch, int64(l.next))
		if err != nil {
			return err
		}
		if n, err := res.RowsAffected(); err != nil || n != 1 {
			l.dead = l.s.sessionProblem("append", l.header.ID, "", store.ErrMoved, "another program took the session over",
				"nothing was written over it; open the session again to go on from what is there")
			return l.dead
		}
		if err := l.insert(ctx, c, text); err != nil {
			return err
		}
		if same != nil {
			return same(ctx, c)
		}
		return nil
	})
}

// insert adds lines as rows.
func (l *lease) insert(ctx context.Context, c *sql.Conn, text iter.Seq2[[]byte, error]) error {
	stmt, err := c.PrepareContext(ctx, insertEvent)
	if err != nil {
		return err
	}
	defer stmt.Close()
	var room []byte
	for line, err := range text {
		var r row
		if err == nil {
			r, room, err = rowOf(line, room)
		}
		if err == nil {
			err = r.insert(ctx, stmt, l.key)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// publish makes the row of a new session.
func (l *lease) publish(ctx context.Context, c *sql.Conn) error {
	switch _, err := l.s.find(ctx, c, l.header.ID); {
	case err == nil:
		return l.s.exists(l.header.ID)
	case !errors.Is(err, outcrop.ErrNotFound):
		return err
	}
	res, err := c.ExecContext(ctx, `INSERT INTO sessions (id, header, epoch, next_seq, updated, turns, open_turn, title, titled, bytes)
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
