// Package foreigndb opens SQLite files that belong to other programs, for
// reading, so that nothing beside them is made, changed or removed: not the
// file, not its write-ahead log, not the log's index.
//
// SQLite's own read-only mode makes and rebuilds the files -wal and -shm beside
// a database that is in WAL mode, and cannot read one whose writer died in a
// folder that cannot be written. So how a file is opened depends on what lies
// beside it:
//
//	no write-ahead log, or an empty one   as a file that nobody changes; File.Moved
//	                                      tells afterwards whether somebody did
//	a log and its index (-shm)            shared, the index only read: a writer may
//	                                      be at work, and its last commit is seen
//	a log without its index               from a private copy of both: a writer died,
//	                                      or the files were copied from elsewhere
//	a rollback journal                    shared; when the journal is one that a
//	                                      dead writer left, from a private copy in
//	                                      which it is rolled back
//
// A private copy lies in the system's folder for temporary files, with mode
// 0700, until Close.
package foreigndb

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"modernc.org/sqlite" // the driver called sqlite
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/outcrop-dev/outcrop"
)

// magic is how every SQLite file begins.
const magic = "SQLite format 3\x00"

// Is reports whether a file begins as a SQLite database does. One that is not
// there, or is no regular file, does not.
func Is(path string) bool {
	head, err := readHead(path)
	return err == nil && head != nil
}

// readHead is the first 100 bytes of a database; nil for another file.
func readHead(path string) ([]byte, error) {
	fi, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !fi.Mode().IsRegular() {
		return nil, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	head := make([]byte, 100)
	if _, err := io.ReadFull(f, head); err != nil || string(head[:len(magic)]) != magic {
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			err = nil
		}
		return nil, err
	}
	return head, nil
}

// Identity is what a database says about itself.
type Identity struct {
	ApplicationID int64
	UserVersion   int64
	Tables        []string // sorted, without SQLite's own
}

// Has reports whether there is a table.
func (id Identity) Has(table string) bool {
	for _, t := range id.Tables {
		if t == table {
			return true
		}
	}
	return false
}

// String says it to a person who named the wrong file.
func (id Identity) String() string {
	var b strings.Builder
	if id.ApplicationID != 0 {
		fmt.Fprintf(&b, "application id 0x%08x, ", uint32(id.ApplicationID))
	}
	fmt.Fprintf(&b, "schema version %d, ", id.UserVersion)
	switch n := len(id.Tables); {
	case n == 0:
		b.WriteString("no tables")
	case n > 5:
		fmt.Fprintf(&b, "tables %s and %d more", strings.Join(id.Tables[:5], ", "), n-5)
	default:
		b.WriteString("tables " + strings.Join(id.Tables, ", "))
	}
	return b.String()
}

// File is such a database, open. Its methods may be called from any goroutine.
type File struct {
	path string
	db   *sql.DB
	id   Identity

	still  bool   // nothing but a look tells whether it changed
	before []mark // of its files, when it was opened
	copied string // the folder of a private copy, "" for none
}

// Open opens a database. The errors are *outcrop.Error with the path; they wrap
// fs.ErrNotExist, outcrop.ErrRefused for a file that is no database, and
// outcrop.ErrDamaged.
func Open(ctx context.Context, path string) (*File, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	f := &File{path: abs}
	fi, err := os.Stat(abs)
	switch {
	case err != nil:
		return nil, f.problem(err, "", "")
	case !fi.Mode().IsRegular():
		return nil, f.problem(outcrop.ErrRefused, "it is no regular file", "name the file of a database")
	}
	head, err := readHead(abs)
	switch {
	case err != nil:
		return nil, f.problem(err, "", "")
	case head == nil:
		return nil, f.problem(outcrop.ErrRefused, "it is no SQLite database", "name the file of a database")
	}
	f.before = f.marks()
	if err := f.open(ctx, head); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// open opens the file as what lies beside it asks.
func (f *File) open(ctx context.Context, head []byte) error {
	size := func(suffix string) int64 {
		if fi, err := os.Stat(f.path + suffix); err == nil {
			return fi.Size()
		}
		return -1
	}
	// Byte 19 is the format version for reading: 2 is WAL mode.
	if head[19] != 2 {
		err := f.try(ctx, f.path, "mode=ro")
		if err != nil && size("-journal") > 0 && cannot(err) {
			return f.tryCopy(ctx, "-journal")
		}
		return f.Failed("open", err)
	}
	switch wal, shm := size("-wal"), size("-shm"); {
	case wal <= 0:
		f.still = true
		return f.Failed("open", f.try(ctx, f.path, "mode=ro&immutable=1"))
	case shm > 0:
		err := f.try(ctx, f.path, "mode=ro&readonly_shm=1")
		if err != nil && (cannot(err) || busy(err)) {
			// The index is of no use without being written.
			return f.tryCopy(ctx, "-wal")
		}
		return f.Failed("open", err)
	}
	return f.tryCopy(ctx, "-wal")
}

// try opens a path and reads its identity.
func (f *File) try(ctx context.Context, path, mode string) error {
	q := url.Values{}
	for _, p := range [...]string{"busy_timeout(5000)", "query_only(1)", "trusted_schema(0)", "mmap_size(0)"} {
		q.Add("_pragma", p)
	}
	u := url.URL{Scheme: "file", OmitHost: true, Path: filepath.ToSlash(path), RawQuery: mode + "&" + q.Encode()}
	db, err := sql.Open("sqlite", u.String())
	if err != nil {
		return err
	}
	db.SetMaxIdleConns(4)
	id, err := identify(ctx, db)
	if err != nil {
		return errors.Join(err, db.Close())
	}
	f.db, f.id = db, id
	return nil
}

func identify(ctx context.Context, db *sql.DB) (id Identity, err error) {
	// One statement: the file at one moment.
	rows, err := db.QueryContext(ctx, `SELECT (SELECT application_id FROM pragma_application_id), (SELECT user_version FROM pragma_user_version), name
		FROM (SELECT NULL AS name UNION ALL SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT GLOB 'sqlite_*') ORDER BY name`)
	if err != nil {
		return id, err
	}
	defer rows.Close()
	for rows.Next() {
		var name sql.NullString
		if err := rows.Scan(&id.ApplicationID, &id.UserVersion, &name); err != nil {
			return id, err
		}
		if name.Valid {
			id.Tables = append(id.Tables, name.String)
		}
	}
	return id, rows.Err()
}

// tryCopy opens a private copy of the file and of one beside it.
func (f *File) tryCopy(ctx context.Context, beside string) error {
	dir, err := os.MkdirTemp("", "outcrop-copy-")
	if err != nil {
		return f.problem(err, "a log that was left beside it can only be read in a private copy, which cannot be made: "+err.Error(), "set TMPDIR to a folder with room")
	}
	f.copied, f.still = dir, true
	to := filepath.Join(dir, "copy.db")
	for _, suffix := range [...]string{"", beside} {
		if err := copyFile(ctx, to+suffix, f.path+suffix); err != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return f.problem(err, "a log that was left beside it can only be read in a private copy, which cannot be made: "+err.Error(), "set TMPDIR to a folder with room")
		}
	}
	if f.Moved() {
		return f.problem(outcrop.ErrRefused, "another program wrote it while it was copied for reading", "try again")
	}
	return f.Failed("open", f.try(ctx, to, "mode=rw"))
}

// copyFile copies a file; a context that ends stops it.
func copyFile(ctx context.Context, to, from string) error {
	src, err := os.Open(from)
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(dst, untilDone{ctx, src})
	return errors.Join(err, dst.Close())
}

type untilDone struct {
	ctx context.Context
	r   io.Reader
}

func (u untilDone) Read(b []byte) (int, error) {
	if err := context.Cause(u.ctx); err != nil {
		return 0, err
	}
	return u.r.Read(b)
}

// DB is the database. Nothing can be written through it that the file would
// keep.
func (f *File) DB() *sql.DB { return f.db }

// Path is the file's path, absolute.
func (f *File) Path() string { return f.path }

// Identity is what the database said about itself when it was opened.
func (f *File) Identity() Identity { return f.id }

// mark is what a look at a file says.
type mark struct {
	size int64 // -1: it is not there
	time time.Time
}

func (f *File) marks() (all []mark) {
	for _, suffix := range [...]string{"", "-wal", "-journal"} {
		fi, err := os.Stat(f.path + suffix)
		switch {
		case err == nil && (suffix == "" || fi.Size() > 0):
			all = append(all, mark{fi.Size(), fi.ModTime()})
		default:
			all = append(all, mark{size: -1})
		}
	}
	return all
}

// Moved reports whether the database may have changed behind what is read from
// f, so that what was read may be of two moments: open it anew. A file that is
// shared with its writers never has.
func (f *File) Moved() bool {
	if !f.still {
		return false
	}
	for i, m := range f.marks() {
		if m.size != f.before[i].size || !m.time.Equal(f.before[i].time) {
			return true
		}
	}
	return false
}

// Close closes the database and removes a private copy.
func (f *File) Close() error {
	var err error
	if f.db != nil {
		err = f.db.Close()
	}
	if f.copied != "" {
		err = errors.Join(err, os.RemoveAll(f.copied))
	}
	return err
}

// Failed names an error of the database by what was being done; nil stays nil,
// and errors that are named already or come from a context stay as they are.
func (f *File) Failed(op string, err error) error {
	var known *outcrop.Error
	if err == nil || errors.As(err, &known) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	reason, msg, hint := err, "", ""
	switch codeOf(err) & 0xff {
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		msg, hint = "another program keeps the database locked", "try again when it is done"
	case sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT:
		reason = errors.Join(outcrop.ErrDamaged, err)
		msg, hint = "the database is damaged: "+err.Error(), "keep the file with its -wal; the sqlite3 shell's .recover may save rows into a new file"
	case sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH:
		msg, hint = "the database cannot be opened: "+err.Error(), "copy it, with the -wal file beside it, to a folder of your own"
	case sqlite3.SQLITE_IOERR:
		msg, hint = "the disk answers with an error: "+err.Error(), "look after the disk; copy the database elsewhere"
	}
	e := f.problem(reason, msg, hint)
	e.Op = op
	return e
}

func (f *File) problem(err error, msg, hint string) *outcrop.Error {
	if pe := (*fs.PathError)(nil); msg == "" && errors.As(err, &pe) {
		msg = pe.Err.Error()
	}
	return &outcrop.Error{Op: "open", Path: f.path, Seq: -1, Offset: -1, Err: err, Msg: msg, Hint: hint}
}

func codeOf(err error) int {
	var e *sqlite.Error
	if errors.As(err, &e) {
		return e.Code()
	}
	return sqlite3.SQLITE_OK
}

// cannot reports that files beside the database would have to be written.
func cannot(err error) bool {
	switch codeOf(err) & 0xff {
	case sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM:
		return true
	}
	return false
}

func busy(err error) bool {
	c := codeOf(err) & 0xff
	return c == sqlite3.SQLITE_BUSY || c == sqlite3.SQLITE_PROTOCOL
}

// HeadIdentity is the application id and the schema version as the first page
// of the file has them, without opening it as a database; ok is false for a file
// that is none. A write-ahead log may hold a newer page.
func HeadIdentity(path string) (application, version int64, ok bool) {
	head, err := readHead(path)
	if err != nil || head == nil {
		return 0, 0, false
	}
	return int64(binary.BigEndian.Uint32(head[68:])), int64(binary.BigEndian.Uint32(head[60:])), true
}
