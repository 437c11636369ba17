package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"iter"
	"path/filepath"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/store"
)

var _ store.Rewriter = (*Store)(nil)

// Rewrite is store.Rewriter's: one transaction, then a VACUUM and a checkpoint
// that empties the write-ahead log, so that the file has nothing left of the old
// rows: deleting alone leaves parts of them in pages that stay in use. That
// takes as long as copying the file does. A warning in the log says when another
// program kept the file from being cleaned.
func (s *Store) Rewrite(ctx context.Context, id string, change func(outcrop.Header, iter.Seq2[outcrop.Record, error]) (iter.Seq2[outcrop.Record, error], error)) (err error) {
	held, err := s.Acquire(ctx, id)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, held.Close()) }()
	l := held.(*lease)
	recs, err := change(l.header, l.Records())
	if err != nil {
		return err
	}
	text := newSpool(filepath.Dir(s.path))
	defer text.close()
	b := batch{s: s}
	if err := text.encode(ctx, &b, recs); err != nil {
		return err
	}
	b.head.bytes = text.size
	db, err := s.writer(ctx)
	if err != nil {
		return err
	}
	if err := s.transact(ctx, db, "rewrite", id, func(ctx context.Context, c *sql.Conn) error {
		if err := l.replace(ctx, c, &b, text.lines()); err != nil {
			return err
		}
		return l.same(c, text.digest(), b.next)
	}); err != nil {
		return err
	}
	var busy, pages, done int64
	_, err = db.ExecContext(context.WithoutCancel(ctx), "VACUUM")
	if err == nil {
		err = db.QueryRow("PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &pages, &done)
	}
	if err != nil || busy != 0 {
		s.opt.Logger.Warn("the rewritten log is stored, but the database may still hold parts of the old one: run VACUUM when nobody else uses it", "path", s.path, "error", err)
	}
	return nil
}

// replace puts other rows in the place of those of the lease's log.
func (l *lease) replace(ctx context.Context, c *sql.Conn, b *batch, text iter.Seq2[[]byte, error]) error {
	h := &b.head
	res, err := c.ExecContext(ctx, `UPDATE sessions SET next_seq = ?, updated = ?, turns = ?, open_turn = ?, title = ?, titled = ?, bytes = ?
		WHERE key = ? AND epoch = ? AND next_seq = ?`,
		int64(b.next), h.updated, h.turns, h.openTurn, h.title, h.titled, h.bytes, l.key, l.epoch, int64(l.next))
	if err != nil {
		return err
	}
	if n, err := res.RowsAffected(); err != nil || n != 1 {
		return l.s.sessionProblem("rewrite", l.header.ID, "", store.ErrMoved, "another program took the session over", "nothing was changed")
	}
	if _, err := c.ExecContext(ctx, "DELETE FROM events WHERE session = ?", l.key); err != nil {
		return err
	}
	return l.insert(ctx, c, text)
}
