package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/store"
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
	key       INTEGER PRIMARY KEY AUTOINCREMENT,
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

// check says what a file is. It writes nothing, and looks at one moment of a
// file that somebody may be making. The error names a file that is not ours.
func (s *Store) check(ctx context.Context, q querier) (state, error) {
	var app, version, objects int64
	err := q.QueryRowContext(ctx, `SELECT (SELECT application_id FROM pragma_application_id), (SELECT user_version FROM pragma_user_version),
		(SELECT count(*) FROM sqlite_schema)`).Scan(&app, &version, &objects)
	if err != nil {
		return empty, s.failed("open", "", err)
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

// errNoLog: the write-ahead log of a new file cannot be opened where it is.
var errNoLog = errors.New("no write-ahead log can be here")

// ready makes a file ready to be written: it checks it, and makes the tables of
// an empty one, which gets a write-ahead log when wal says so. What journal a
// file has is in the file and stays.
func (s *Store) ready(ctx context.Context, db *sql.DB, wal bool) error {
	st, err := s.check(ctx, db)
	if err != nil || st == ours {
		return err
	}
	if wal {
		// The journal mode cannot change inside a transaction. That the log
		// cannot be opened shows when it is first used.
		err := s.switchToLog(ctx, db)
		if err == nil {
			_, err = s.check(ctx, db)
		}
		switch {
		case err != nil && cannotOpen(err):
			return errNoLog
		case err != nil:
			return s.failed("make", "", err)
		}
	}
	return s.transact(ctx, db, "make", "", func(ctx context.Context, c *sql.Conn) error {
		// Somebody else may have been faster.
		st, err := s.check(ctx, c)
		if err != nil || st == ours {
			return err
		}
		_, err = c.ExecContext(ctx, schema+fmt.Sprintf("PRAGMA application_id=%d; PRAGMA user_version=%d;", ApplicationID, SchemaVersion))
		return err
	})
}

// switchToLog needs the file for itself for a moment, for which SQLite does not
// wait by itself: somebody else may be making it too.
func (s *Store) switchToLog(ctx context.Context, db *sql.DB) error {
	const pause = 2 * time.Millisecond
	for waited := time.Duration(0); ; waited += pause {
		var mode string
		err := db.QueryRowContext(ctx, "PRAGMA journal_mode=WAL").Scan(&mode)
		if !isBusy(err) || waited > s.opt.Busy {
			return err
		}
		time.Sleep(pause)
	}
}

// withoutLog gives an empty file its rollback journal back. A connection that
// has the file for itself needs no shared memory for that.
func (s *Store) withoutLog(ctx context.Context) error {
	db, err := s.open("rw", 1, "locking_mode(EXCLUSIVE)")
	if err != nil {
		return err
	}
	var mode string
	err = db.QueryRowContext(ctx, "PRAGMA journal_mode=DELETE").Scan(&mode)
	if err = errors.Join(err, db.Close()); err != nil {
		return s.failed("make", "", err)
	}
	return nil
}

func codeOf(err error) int {
	var e *sqlite.Error
	if errors.As(err, &e) {
		return e.Code() & 0xff
	}
	return sqlite3.SQLITE_OK
}

func isBusy(err error) bool {
	return codeOf(err) == sqlite3.SQLITE_BUSY || codeOf(err) == sqlite3.SQLITE_LOCKED
}

// cannotOpen reports that files beside the database cannot be made or opened.
func cannotOpen(err error) bool {
	switch codeOf(err) {
	case sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_PERM:
		return true
	}
	return false
}

// transact runs f in one transaction, which begins as a write. A context that
// ends is looked at before it and while it waits for this process's other
// writes, and does not reach what is under way.
func (s *Store) transact(ctx context.Context, db *sql.DB, op, id string, f func(ctx context.Context, c *sql.Conn) error) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	c, err := db.Conn(ctx)
	if err != nil {
		return s.failed(op, id, err)
	}
	defer c.Close()
	ctx = context.WithoutCancel(ctx)
	if _, err := c.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		return s.failed(op, id, err)
	}
	err = f(ctx, c)
	if err == nil && s.opt.fail != nil {
		if e := s.opt.fail("sync"); e != nil {
			err = s.unsynced(op, id, e)
		}
	}
	if err == nil {
		_, err = c.ExecContext(ctx, "COMMIT")
	}
	if err != nil {
		// Some errors have ended the transaction already.
		c.ExecContext(ctx, "ROLLBACK")
		return s.failed(op, id, err)
	}
	return nil
}

// unsynced ends the writing: after a failed sync nobody knows which frames of
// the write-ahead log are on the disk, and those that follow a lost one are lost
// with it.
func (s *Store) unsynced(op, id string, err error) error {
	e := s.sessionProblem(op, id, "", errors.Join(store.ErrSync, err), "the disk did not keep what was written: "+err.Error(),
		"look after the disk, then open the session again; this process does not write the database any more")
	s.sick.CompareAndSwap(nil, e)
	return e
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
		switch e.Code() {
		case sqlite3.SQLITE_IOERR_FSYNC, sqlite3.SQLITE_IOERR_DIR_FSYNC:
			return s.unsynced(op, id, err)
		}
		switch e.Code() & 0xff {
		case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
			msg, hint = fmt.Sprintf("another program has been writing the database for %s", s.opt.Busy), "try again when it is done"
		case sqlite3.SQLITE_PROTOCOL:
			// SQLite itself has tried for ten seconds: who reads needs these locks
			// for a moment only.
			msg, hint = "another program holds the locks of the database and does not go on", "it may be stopped, or the machine too busy: let it go on or end it, and try again"
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
			msg, hint = "the database cannot be opened: "+err.Error(), "its folder must be able to hold the files of the write-ahead log (-wal, -shm), or copy the database with its -wal to one that is"
		case sqlite3.SQLITE_IOERR:
			msg, hint = "the disk answers with an error: "+err.Error(), "look after the disk; nothing of the batch was stored, and it is tried again"
		}
	}
	return &outcrop.Error{Op: op, Session: id, Path: s.path, Seq: -1, Offset: -1, Err: reason, Msg: msg, Hint: hint}
}
