// Package search finds text in many sessions, also in what edits of the surface
// have taken out of the model's sight.
//
// The index is a file of its own, beside no store and holding no truth: it can
// be deleted at any time and is made anew. It knows of each session how far it
// was read, and reads on from there.
//
// # What is indexed
//
// Messages: what people wrote, contexts and checkpoints, what the model wrote,
// thought and called, what tools gave. Of a result that an edit rewrote the
// original is indexed, the copy is not. Text is kept up to MaxText bytes a
// message.
//
// # Queries
//
// A query is words and "quoted phrases"; a message fits when it has all of them.
// Case and accents do not matter. word* is the beginning of a word. Chinese,
// Japanese and Korean text is indexed by character, so a run of it is found
// wherever it stands, as a phrase.
package search

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"sync"

	"modernc.org/sqlite" // and the driver of that name, with FTS5
	sqlite3 "modernc.org/sqlite/lib"
)

// MaxText is how much of one message is indexed, in bytes.
const MaxText = 1 << 20

const (
	applicationID = 0x4F757473 // "Outs"
	indexVersion  = 1
)

const schema = `
CREATE TABLE sessions (
	key     INTEGER PRIMARY KEY,
	store   TEXT NOT NULL,
	id      TEXT NOT NULL,
	title   TEXT NOT NULL,
	cwd     TEXT NOT NULL,
	updated INTEGER NOT NULL,
	bytes   INTEGER NOT NULL,
	next    INTEGER NOT NULL,
	mark    TEXT NOT NULL,
	calls   TEXT NOT NULL,
	trouble TEXT NOT NULL,
	UNIQUE (store, id)
) STRICT;
CREATE TABLE docs (
	key     INTEGER PRIMARY KEY,
	session INTEGER NOT NULL REFERENCES sessions(key) ON DELETE CASCADE,
	seq     INTEGER NOT NULL,
	time    INTEGER NOT NULL,
	role    TEXT NOT NULL,
	tool    TEXT NOT NULL,
	text    TEXT NOT NULL
) STRICT;
CREATE INDEX docs_by_session ON docs (session, seq);
CREATE VIRTUAL TABLE words USING fts5 (body, content='', contentless_delete=1, tokenize='unicode61 remove_diacritics 2');
`

// Options of an index. The zero value is right.
type Options struct {
	Logger *slog.Logger // nil is silent
}

// Index is an open index. Its methods may be called from any goroutine; several
// processes may use one file.
type Index struct {
	path string
	log  *slog.Logger

	mu sync.RWMutex // held for writing while the file is made anew
	db *sql.DB
}

// Open opens an index file, or makes it. One that is damaged, or of another
// version of this program, is deleted and begins anew: it holds nothing that is
// not in the stores. A file that is no index at all is refused and stays.
func Open(ctx context.Context, path string, o Options) (*Index, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("search: %w", err)
	}
	ix := &Index{path: path, log: o.Logger}
	err := ix.open(ctx)
	if errors.Is(err, errStale) {
		err = ix.anew(ctx, err)
	}
	if err != nil {
		return nil, fmt.Errorf("search: %s: %w", path, err)
	}
	return ix, nil
}

// anew deletes the file and begins again.
func (ix *Index) anew(ctx context.Context, reason error) error {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	ix.log.Info("the search index is made anew", "path", ix.path, "reason", reason)
	if ix.db != nil {
		ix.db.Close()
	}
	for _, end := range []string{"", "-wal", "-shm"} {
		if err := os.Remove(ix.path + end); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return ix.open(ctx)
}

// damaged reports an error that says so about the file.
func damaged(err error) bool {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return false
	}
	code := e.Code() & 0xff
	return code == sqlite3.SQLITE_CORRUPT || code == sqlite3.SQLITE_NOTADB
}

// errStale: the file was an index and is none that can be used.
var errStale = errors.New("of another version, or damaged")

func (ix *Index) open(ctx context.Context) error {
	f, err := os.OpenFile(ix.path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	head := make([]byte, 72)
	n, _ := f.ReadAt(head, 0)
	f.Close()
	if n > 0 && (n < 72 || string(head[:16]) != "SQLite format 3\x00") {
		return errors.New("it is no search index: name another file, or remove it")
	}
	q := url.Values{"_txlock": {"immediate"}}
	// Losing the end of an index costs reading it again.
	for _, p := range []string{"busy_timeout(10000)", "foreign_keys(1)", "synchronous(NORMAL)", "journal_mode(WAL)", "cache_size(-16000)"} {
		q.Add("_pragma", p)
	}
	u := url.URL{Scheme: "file", OmitHost: true, Path: filepath.ToSlash(ix.path), RawQuery: q.Encode()}
	db, err := sql.Open("sqlite", u.String())
	if err != nil {
		return err
	}
	var app, version, objects int64
	err = errors.Join(
		db.QueryRowContext(ctx, "PRAGMA application_id").Scan(&app),
		db.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version),
		db.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema").Scan(&objects))
	switch {
	case ctx.Err() != nil:
		err = ctx.Err()
	case err != nil:
		err = errors.Join(errStale, err)
	case app == applicationID && version == indexVersion:
	case app == applicationID:
		err = errStale
	case app != 0 || version != 0 || objects > 0:
		err = errors.New("it is the database of another program: name another file")
	default:
		err = ix.make(ctx, db)
	}
	if err != nil {
		db.Close()
		return err
	}
	ix.db = db
	return nil
}

// make makes the tables, unless another process was faster.
func (ix *Index) make(ctx context.Context, db *sql.DB) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	var version int64
	if err := tx.QueryRow("PRAGMA user_version").Scan(&version); err != nil || version == indexVersion {
		return err
	}
	if _, err := tx.Exec(schema + fmt.Sprintf("PRAGMA application_id=%d; PRAGMA user_version=%d;", applicationID, indexVersion)); err != nil {
		return err
	}
	return tx.Commit()
}

// Close closes the file.
func (ix *Index) Close() error {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	return ix.db.Close()
}
