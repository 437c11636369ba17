// Package opencode reads the sessions that opencode keeps, in every form that it
// has had:
//
//	storage/session/PROJECT/SESSION.json     a session; its messages are in
//	                                         storage/message/SESSION/MESSAGE.json, the
//	                                         parts of each in storage/part/MESSAGE/PART.json
//	project/NAME/storage/session/info/SESSION.json
//	                                         the same of the first versions, with
//	                                         session/message/SESSION and
//	                                         session/part/SESSION/MESSAGE beside info
//	opencode.db                              SQLite: tables session, message and part; later
//	                                         session_v2 and session_message
//	{"info":...,"messages":[{"info":...,"parts":[...]}]}
//	                                         what opencode export prints
//
// below ~/.local/share/opencode. The facts are those of opencode's public source:
// the shapes of its messages and parts (MessageV2), of the messages before them
// that hold their parts themselves, and of the later session messages.
//
// # What becomes of it
//
// A message of a person becomes a prompt; text that the program added to it
// (synthetic) a context message. A message of the model becomes a reply a step,
// with the results of its calls; where a message has several steps each has a
// reply. A message marked as a summary becomes a compaction, which stands for
// everything before it, or up to the message where the kept tail begins. What the
// person had taken back when the session was stored (revert) is a rewind at the
// end. A session with a parent is a sub-agent's.
//
// Results that opencode left out of later requests (time.compacted) are whole in
// the log. Snapshots, patches and retries are the program's own records and are
// left out; the report counts them. A part that cannot be read is left out by
// itself.
//
// Files are only read; a database is opened as package foreigndb does.
package opencode

import (
	"bytes"
	"context"
	"iter"
	"path/filepath"
	"strings"

	"github.com/outcrop-dev/outcrop/exchange"
	"github.com/outcrop-dev/outcrop/internal/foreigndb"
)

// Name is the name of the format.
const Name = "opencode"

// Format is the format for an importer.
func Format() exchange.Format {
	var h homes
	return exchange.Format{Name: Name, Label: "opencode", Home: []string{".local/share/opencode"}, Claims: Claims, Open: h.open}
}

// databaseName is what opencode calls its database.
const databaseName = "opencode.db"

// Claims reports whether a file is a session, a database or an export of
// opencode. Files of messages and parts belong to their session. A database that
// cannot be read, or lacks tables, is one by its name: it will be named.
func Claims(path string, head []byte) bool {
	switch kindOf(path, head) {
	case isSession, isExport:
		return true
	case isDatabase:
		named := filepath.Base(path) == databaseName
		if application, _, ok := foreigndb.HeadIdentity(path); ok && application != 0 {
			return false // another program has put its mark on it
		}
		f, err := foreigndb.Open(context.Background(), path)
		if err != nil {
			return named
		}
		defer f.Close()
		return named || ours(f.Identity())
	}
	return false
}

type kind int

const (
	isNothing kind = iota
	isSession
	isDatabase
	isExport
)

// kindOf tells by name and first bytes what a file would be.
func kindOf(path string, head []byte) kind {
	if bytes.HasPrefix(head, []byte("SQLite format 3\x00")) {
		return isDatabase
	}
	head = bytes.TrimLeft(head, " \t\r\n\ufeff")
	if len(head) == 0 || head[0] != '{' || !strings.HasSuffix(path, ".json") && !strings.HasSuffix(path, ".txt") {
		return isNothing
	}
	if _, ok := layoutOf(path); ok {
		return isSession
	}
	rest := bytes.TrimLeft(head[1:], " \t\r\n")
	if rest, ok := bytes.CutPrefix(rest, []byte(`"info"`)); ok && bytes.Contains(rest[:min(len(rest), 400)], []byte(`"ses_`)) {
		return isExport
	}
	return isNothing
}

// Open is a file as a source.
func Open(path string) exchange.Source { return new(homes).open(path) }

func (h *homes) open(path string) exchange.Source {
	src := exchange.Source{Format: Name, Path: path, Sessions: func(ctx context.Context, r *exchange.Report) iter.Seq2[*exchange.Session, error] {
		return h.sessions(ctx, path, r)
	}}
	if foreigndb.Is(path) || filepath.Base(path) == databaseName {
		src.Stamp = func() (string, error) { return databaseStamp(path) }
		return src
	}
	if l, ok := layoutOf(path); ok {
		src.Size, src.Stamp = l.weigh()
	}
	return src
}

// Sessions yields the sessions of a file: one for the file of a session or an
// export, all for a database, parents first. r hears of what belongs to none of
// them; it may be nil.
func Sessions(ctx context.Context, path string, r *exchange.Report) iter.Seq2[*exchange.Session, error] {
	return new(homes).sessions(ctx, path, r)
}

func (h *homes) sessions(ctx context.Context, path string, r *exchange.Report) iter.Seq2[*exchange.Session, error] {
	if foreigndb.Is(path) || filepath.Base(path) == databaseName {
		return fromDatabase(ctx, path, r)
	}
	if l, ok := layoutOf(path); ok {
		return fromFolder(ctx, l, h, r)
	}
	return fromExport(ctx, path, r)
}

// layout is where the files of one session are.
type layout struct {
	path     string // of the session's file
	messages string // folder of its messages
	parts    func(message string) string
	id       string
	database string // that may have the session too
}

// layoutOf is the layout that a path of a session's file belongs to.
func layoutOf(path string) (layout, bool) {
	name := filepath.Base(path)
	id, ok := strings.CutSuffix(name, ".json")
	if !ok || id == "" || strings.HasPrefix(name, ".") {
		return layout{}, false
	}
	dir := filepath.Dir(path)
	session := filepath.Dir(dir)
	if filepath.Base(session) != "session" || filepath.Base(filepath.Dir(session)) != "storage" {
		return layout{}, false
	}
	storage := filepath.Dir(session)
	l := layout{path: path, id: id}
	switch filepath.Base(dir) {
	case "message", "part", "diff", "share":
		return layout{}, false
	case "info":
		l.messages = filepath.Join(session, "message", id)
		l.parts = func(message string) string { return filepath.Join(session, "part", id, message) }
		// storage is in project/NAME, which is beside the later files.
		l.database = filepath.Join(filepath.Dir(filepath.Dir(filepath.Dir(storage))), databaseName)
	default:
		l.messages = filepath.Join(storage, "message", id)
		l.parts = func(message string) string { return filepath.Join(storage, "part", message) }
		l.database = filepath.Join(filepath.Dir(storage), databaseName)
	}
	return l, true
}
