package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/outcrop-dev/outcrop"
)

const (
	// SchemaVersion is the user_version of the files that this version reads and
	// writes.
	SchemaVersion = 1
	// ApplicationID marks a file as ours: "Outc".
	ApplicationID = 0x4F757463
	// dshApplicationID is that of dsh's own store: "DSHP".
	dshApplicationID = 0x44534850
)

const schema = `
CREATE TABLE sessions (
	key       INTEGER PRIMARY KEY,
	id        TEXT NOT NULL UNIQUE,
	header    BLOB NOT NULL,
	epoch     INTEGER NOT NULL,
	next_seq  INTEGER NOT NULL,
	updated   INTEGER NOT NULL,
	turns     INTEGER NOT NULL,
	open_turn INTEGER NOT NULL,
	title     TEXT NOT NULL,
	titled    INTEGER NOT NULL,
	bytes     INTEGER NOT NULL
) STRICT;
CREATE TABLE events (
	session           INTEGER NOT NULL REFERENCES sessions(key) ON DELETE CASCADE,
	seq               INTEGER NOT NULL,
	count             INTEGER NOT NULL,
	type              TEXT NOT NULL,
	time              INTEGER NOT NULL,
	data              BLOB NOT NULL,
	source_event_seqs TEXT,
	surface_op        TEXT,
	ignorable         INTEGER,
	line              BLOB,
	PRIMARY KEY (session, seq)
) STRICT, WITHOUT ROWID;
CREATE TABLE objects (
	id   TEXT PRIMARY KEY,
	data BLOB NOT NULL
) STRICT;
`

type state int

const (
	empty state = iota // nothing is in it
	ours
)

// check says what a file is. It writes nothing. The error names a file that is
// not ours.
func (s *Store) check(ctx context.Context, q interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}) (state, error) {
	var app, version, objects int64
	for _, v := range []struct {
		query string
		to    *int64
	}{
		{"PRAGMA application_id", &app},
		{"PRAGMA user_version", &version},
		{"SELECT count(*) FROM sqlite_schema", &objects},
	} {
		if err := q.QueryRowContext(ctx, v.query).Scan(v.to); err != nil {
			return empty, s.failed("open", "", err)
		}
	}
	refuse := func(reason error, msg, hint string) error { return s.problem("open", reason, msg, hint) }
	switch {
	case app == 0 && version == 0 && objects == 0:
		return empty, nil
	case app == ApplicationID && version == SchemaVersion:
		return ours, nil
	case app == ApplicationID:
		return empty, refuse(outcrop.ErrUnsupported, fmt.Sprintf("its schema version is %d, this version of outcrop reads %d", version, SchemaVersion),
			"nothing is migrated: copy its sessions out with convert of the version of outcrop that wrote it")
	case app == dshApplicationID:
		return empty, refuse(outcrop.ErrUnsupported, fmt.Sprintf("it is a store of DeepSeek Harness (schema version %d), not of outcrop", version),
			"name another file; nothing was changed")
	}
	names, err := s.tables(ctx)
	if err != nil {
		return empty, err
	}
	return empty, refuse(outcrop.ErrUnsupported, "it is the database of another program: "+names, "name another file; nothing was changed")
}

// tables names what is in a file of somebody else.
func (s *Store) tables(ctx context.Context) (string, error) {
	db, err := s.open("ro", 1)
	if err != nil {
		return "", err
	}
	defer db.Close()
	rows, err := db.QueryContext(ctx, "SELECT type || ' ' || name FROM sqlite_schema ORDER BY name LIMIT 6")
	if err != nil {
		return "", s.failed("open", "", err)
	}
	defer rows.Close()
	var names []string
	for rows.Next() {
		var n string
		if err := rows.Scan(&n); err != nil {
			return "", s.failed("open", "", err)
		}
		if names = append(names, n); len(names) == 6 {
			names[5] = "..."
		}
	}
	if len(names) == 0 {
		return "it has no tables, but a version or an application id", nil
	}
	return strings.Join(names, ", "), rows.Err()
}

// ready makes a file ready to be written: it checks it, makes the tables of an
// empty one, and turns the write-ahead log on.
func (s *Store) ready(ctx context.Context, db *sql.DB) error {
	st, err := s.check(ctx, db)
	if err != nil {
		return err
	}
	// The journal mode cannot change inside a transaction, and is in the file.
	var mode string
	if err := db.QueryRowContext(ctx, "PRAGMA journal_mode").Scan(&mode); err != nil {
		return s.failed("open", "", err)
	}
	if mode != "wal" {
		if err := db.QueryRowContext(ctx, "PRAGMA journal_mode=WAL").Scan(&mode); err != nil || mode != "wal" {
			s.opt.Logger.Warn("no write-ahead log here: the database uses a rollback journal, readers and writers wait for each other", "path", s.path, "mode", mode, "err", err)
		}
	}
	if st == ours {
		return nil
	}
	return s.transact(ctx, db, "make", "", func(tx *sql.Tx) error {
		// Somebody else may have been faster.
		st, err := s.check(ctx, tx)
		if err != nil || st == ours {
			return err
		}
		_, err = tx.Exec(schema + fmt.Sprintf("PRAGMA application_id=%d; PRAGMA user_version=%d;", ApplicationID, SchemaVersion))
		return err
	})
}

// transact runs f in one transaction, which a context that ends does not cut.
func (s *Store) transact(ctx context.Context, db *sql.DB, op, id string, f func(tx *sql.Tx) error) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	tx, err := db.BeginTx(context.WithoutCancel(ctx), nil)
	if err != nil {
		return s.failed(op, id, err)
	}
	if err := f(tx); err != nil {
		tx.Rollback()
		return s.failed(op, id, err)
	}
	if err := tx.Commit(); err != nil {
		tx.Rollback()
		return s.failed(op, id, err)
	}
	return nil
}

// failed names an error of the database.
func (s *Store) failed(op, id string, err error) error {
	var known *outcrop.Error
	if errors.As(err, &known) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	reason, msg, hint := err, "", ""
	var e *sqlite.Error
	if errors.As(err, &e) {
		switch e.Code() & 0xff {
		case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
			msg, hint = fmt.Sprintf("another program has been writing the database for %s", s.opt.Busy), "try again when it is done"
		case sqlite3.SQLITE_FULL:
			msg, hint = "the disk is full", "make room: nothing of the batch was stored, and it is tried again"
		case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM:
			reason = errors.Join(outcrop.ErrReadOnly, err)
			msg, hint = "the database cannot be written here", "a session is continued only where the file can be written; it can be read"
		case sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT:
			reason = errors.Join(outcrop.ErrDamaged, err)
			msg = "the file is no SQLite database, or it is damaged: " + err.Error()
			hint = "keep the file; copy it with its -wal and -shm files before anything else"
		case sqlite3.SQLITE_CANTOPEN:
			msg, hint = "the database cannot be opened: "+err.Error(), "its folder must be writable for the write-ahead log"
		}
	}
	return &outcrop.Error{Op: op, Session: id, Path: s.path, Seq: -1, Offset: -1, Err: reason, Msg: msg, Hint: hint}
}
