// Package dshsqlitetest writes SQLite files in the form of DeepSeek Harness, as
// package dshsqlite describes it, for tests.
package dshsqlitetest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"

	"github.com/klauspost/compress/zstd"
	_ "modernc.org/sqlite" // the driver called sqlite

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
)

// Session is a session to be written.
type Session struct {
	Header outcrop.Header
	Events []outcrop.Event
	// Batch is how many events go into the file at once: runs of deltas are
	// packed inside a batch. 0: all of them.
	Batch int
}

// Write makes a file, or adds sessions to one, in a schema: 14, 15 or 17.
func Write(ctx context.Context, path string, schema int64, sessions ...Session) (err error) {
	db, err := Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if err := Tables(ctx, db, schema); err != nil {
		return err
	}
	for i, s := range sessions {
		if err := write(ctx, db, schema, i, s); err != nil {
			return err
		}
	}
	return nil
}

// Open opens a file for writing, with a write-ahead log. Nothing is synced.
func Open(path string) (*sql.DB, error) {
	u := url.URL{Scheme: "file", OmitHost: true, Path: filepath.ToSlash(path), RawQuery: "_pragma=journal_mode(wal)&_pragma=foreign_keys(1)&_pragma=synchronous(off)"}
	db, err := sql.Open("sqlite", u.String())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	return db, nil
}

// Tables makes the tables of a schema where there are none.
func Tables(ctx context.Context, db *sql.DB, schema int64) error {
	data, sources, ignorable := "TEXT", "TEXT", ""
	switch schema {
	case 15:
		ignorable = "ignorable INTEGER,"
	case 17:
		data, sources, ignorable = "ANY", "ANY", "ignorable INTEGER CHECK (ignorable IS NULL OR ignorable IN (0, 1)),"
	}
	_, err := db.ExecContext(ctx, fmt.Sprintf(`
		PRAGMA application_id = 1146308688;
		PRAGMA user_version = %d;
		CREATE TABLE IF NOT EXISTS persistence_state ( singleton INTEGER PRIMARY KEY CHECK (singleton = 1), store_id TEXT NOT NULL ) STRICT;
		INSERT OR IGNORE INTO persistence_state VALUES (1, '11111111-2222-4333-8444-555555555555');
		CREATE TABLE IF NOT EXISTS sessions ( id TEXT PRIMARY KEY, version INTEGER NOT NULL, created_at INTEGER NOT NULL, cwd TEXT, parent_session TEXT,
			seed_length INTEGER, origin TEXT, delegation_depth INTEGER, agent_preset TEXT, incarnation TEXT NOT NULL, revision INTEGER NOT NULL ) STRICT;
		CREATE TABLE IF NOT EXISTS events ( session_id TEXT NOT NULL REFERENCES sessions(id) ON DELETE CASCADE, seq INTEGER NOT NULL, type TEXT NOT NULL,
			time INTEGER NOT NULL, data %s NOT NULL, source_event_seqs %s, surface_op TEXT, %s PRIMARY KEY (session_id, seq) ) STRICT;`,
		schema, data, sources, ignorable))
	return err
}

func write(ctx context.Context, db *sql.DB, schema int64, n int, s Session) error {
	h := s.Header
	text := func(p *string) any {
		if p == nil {
			return nil
		}
		return *p
	}
	var origin, seed, depth any
	if h.Origin != "" {
		origin = h.Origin
	}
	if h.SeedLength != nil {
		seed = *h.SeedLength
	}
	if h.DelegationDepth != 0 {
		depth = h.DelegationDepth
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	_, err = tx.ExecContext(ctx, "INSERT INTO sessions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0)", h.ID, h.Version, h.CreatedAt, text(h.Cwd), text(h.ParentSession),
		seed, origin, depth, text(h.AgentPreset), fmt.Sprintf("aaaaaaaa-bbbb-4ccc-8ddd-%012d", n))
	if err != nil {
		return err
	}
	if err := Append(ctx, tx, schema, h.ID, s.Batch, s.Events); err != nil {
		return err
	}
	return tx.Commit()
}

// Execer is a database or a transaction.
type Execer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// Append adds events to a session.
func Append(ctx context.Context, db Execer, schema int64, id string, batch int, events []outcrop.Event) error {
	if batch <= 0 {
		batch = max(len(events), 1)
	}
	for len(events) > 0 {
		n := min(batch, len(events))
		for b := events[:n]; len(b) > 0; {
			took := 1
			if schema == 17 {
				took = run(b)
			}
			var err error
			if took >= 3 {
				err = packed(ctx, db, id, b[:took])
			} else {
				took, err = 1, scalar(ctx, db, schema, id, &b[0])
			}
			if err != nil {
				return err
			}
			b = b[took:]
		}
		if _, err := db.ExecContext(ctx, "UPDATE sessions SET revision = revision + 1 WHERE id = ?", id); err != nil {
			return err
		}
		events = events[n:]
	}
	return nil
}

// scalar writes one event as a row.
func scalar(ctx context.Context, db Execer, schema int64, id string, e *outcrop.Event) error {
	var sources, op, ignorable any
	if e.Sources.Known() {
		sources = string(e.Sources.JSON())
		if schema == 17 {
			b := []byte{}
			var last int64
			i := 0
			for v := range jsonwire.Elements(e.Sources.JSON()) {
				n, _ := jsonwire.Int(v)
				if i == 0 {
					b = leb(b, uint64(n))
				} else if d := n - last; d >= 0 {
					b = leb(b, uint64(2*d))
				} else {
					b = leb(b, uint64(-2*d-1))
				}
				last = n
				i++
			}
			sources = b
		}
	}
	if !e.Op.IsZero() {
		op = string(jsonwire.Get(e.AppendJSON(nil), "surfaceOp"))
	}
	if e.Ignorable {
		ignorable = 1
	}
	if schema == 14 {
		_, err := db.ExecContext(ctx, "INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?)", id, int64(e.Seq), string(e.Type), e.Time, string(e.Data), sources, op)
		return err
	}
	_, err := db.ExecContext(ctx, "INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?)", id, int64(e.Seq), string(e.Type), e.Time, column(schema, e.Data), sources, op, ignorable)
	return err
}

func leb(dst []byte, u uint64) []byte {
	for u >= 0x80 {
		dst = append(dst, byte(u)|0x80)
		u >>= 7
	}
	return append(dst, byte(u))
}

var encoder, _ = zstd.NewWriter(nil, zstd.WithEncoderCRC(false))

// column is data as it is stored: from 4096 bytes on as a frame that is
// smaller.
func column(schema int64, data []byte) any {
	if schema == 17 && len(data) >= 4096 {
		if z := encoder.EncodeAll(data, nil); len(z) < len(data) {
			return z
		}
	}
	return string(data)
}

// delta is what a packed row needs to know of a chunk.
type delta struct {
	row, head string // the row's type, and everything that its members share
	member    []byte
}

// deltaOf takes a chunk apart; ok is false for one that is never packed.
func deltaOf(e *outcrop.Event) (d delta, ok bool) {
	if e.Type != outcrop.TypeAssistantChunk || e.Ignorable {
		return d, false
	}
	turn, step, chunk := jsonwire.Get(e.Data, "turn"), jsonwire.Get(e.Data, "step"), jsonwire.Get(e.Data, "chunk")
	kind, _ := jsonwire.Text(jsonwire.Get(chunk, "type"))
	d.head = fmt.Sprintf(`"turn":%s,"step":%s,"index":%s`, turn, step, jsonwire.Get(chunk, "index"))
	switch kind {
	case "text-delta", "reasoning-delta":
		d.row, d.member = kind[:len(kind)-len("-delta")]+"-chunks", jsonwire.Get(chunk, "text")
	case "tool-call-delta":
		d.row, d.member = "tool-call-chunks", jsonwire.Get(chunk, "argumentsDelta")
		d.head += `|"id":` + string(jsonwire.Get(chunk, "id"))
		if n := jsonwire.Get(chunk, "name"); n != nil {
			d.head += `,"name":` + string(n)
		}
	}
	return d, d.member != nil
}

// run is how many events at the beginning make one row.
func run(events []outcrop.Event) int {
	first, ok := deltaOf(&events[0])
	n := 0
	for ok && n < len(events) && n < 1024 {
		d, same := deltaOf(&events[n])
		if !same || d.row != first.row || d.head != first.head {
			break
		}
		n++
	}
	return n
}

func packed(ctx context.Context, db Execer, id string, events []outcrop.Event) error {
	first, _ := deltaOf(&events[0])
	head, call, name := first.head, "", "texts"
	for i := range head {
		if head[i] == '|' {
			head, call, name = head[:i], ","+head[i+1:], "args"
			break
		}
	}
	data := []byte(`{` + head + `,"dt":[`)
	for i := 1; i < len(events); i++ {
		if i > 1 {
			data = append(data, ',')
		}
		data = jsonwire.AppendInt(data, events[i].Time-events[i-1].Time)
	}
	data = append(data, ']')
	data = append(data, call...)
	data = append(data, `,"`+name+`":[`...)
	for i := range events {
		if i > 0 {
			data = append(data, ',')
		}
		d, _ := deltaOf(&events[i])
		data = append(data, d.member...)
	}
	data = append(data, ']', '}')
	_, err := db.ExecContext(ctx, "INSERT INTO events VALUES (?, ?, ?, ?, ?, NULL, NULL, 0)", id, int64(events[0].Seq), first.row, events[0].Time, column(17, data))
	return err
}
