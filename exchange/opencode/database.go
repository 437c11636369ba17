package opencode

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"strings"
	"sync"
	"time"

	"github.com/outcrop-dev/outcrop/exchange"
	"github.com/outcrop-dev/outcrop/exchange/internal/fields"
	"github.com/outcrop-dev/outcrop/internal/foreigndb"
)

// ours reports whether a database is one of opencode's.
func ours(id foreigndb.Identity) bool {
	return id.Has("session") && id.Has("message") && id.Has("part") || id.Has("session_message") && (id.Has("session_v2") || id.Has("session"))
}

// databaseStamp changes when the database or its log does.
func databaseStamp(path string) (string, error) {
	s, err := exchange.FileStamp(path)
	if err != nil {
		return "", err
	}
	log, err := exchange.FileStamp(path + "-wal")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	return s + " " + log, nil
}

// database is an opencode.db that is open.
type database struct {
	*foreigndb.File
	sessions string          // the table
	columns  map[string]bool // of it
	seq      bool            // session_message has a column seq
}

func openDatabase(ctx context.Context, path string) (*database, error) {
	f, err := foreigndb.Open(ctx, path)
	if err != nil {
		return nil, err
	}
	d := &database{File: f, sessions: "session"}
	if !ours(f.Identity()) {
		f.Close()
		return nil, exchange.Unreadable(path, 0, -1, "it is no database of opencode: %s", f.Identity())
	}
	if f.Identity().Has("session_v2") {
		d.sessions = "session_v2"
	}
	if d.columns, err = d.columnsOf(ctx, d.sessions); err == nil && f.Identity().Has("session_message") {
		var c map[string]bool
		c, err = d.columnsOf(ctx, "session_message")
		d.seq = c["seq"]
	}
	if err == nil {
		err = d.complete(ctx, path)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return d, nil
}

// complete refuses a database without the columns that are asked for. Others are
// left out where they are missing.
func (d *database) complete(ctx context.Context, path string) error {
	for _, t := range [...]struct {
		name    string
		columns []string
	}{{d.sessions, []string{"id"}}, {"message", []string{"id", "session_id", "time_created", "data"}}, {"part", []string{"id", "message_id", "data"}},
		{"session_message", []string{"id", "session_id", "type", "data"}}} {
		if !d.Identity().Has(t.name) {
			continue
		}
		has, err := d.columnsOf(ctx, t.name)
		if err != nil {
			return err
		}
		for _, c := range t.columns {
			if !has[c] {
				return exchange.Unreadable(path, 0, -1, "its table %s has no column %s: it is of a version of opencode that is not known", t.name, c)
			}
		}
	}
	return nil
}

// orphans counts messages whose session is not there.
func (d *database) orphans(ctx context.Context, r *exchange.Report) error {
	for _, table := range [...]string{"message", "session_message"} {
		if !d.Identity().Has(table) {
			continue
		}
		var n int64
		err := d.DB().QueryRowContext(ctx, "SELECT count(*) FROM "+table+" WHERE session_id NOT IN (SELECT id FROM "+d.sessions+" WHERE id IS NOT NULL)").Scan(&n)
		if err != nil {
			return d.Failed("import", err)
		}
		for range n {
			r.Dropped("message", "its session is not there", 0)
		}
	}
	return nil
}

func (d *database) columnsOf(ctx context.Context, table string) (map[string]bool, error) {
	rows, err := d.DB().QueryContext(ctx, "SELECT name FROM pragma_table_info(?)", table)
	if err != nil {
		return nil, d.Failed("import", err)
	}
	defer rows.Close()
	all := map[string]bool{}
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, d.Failed("import", err)
		}
		all[name] = true
	}
	return all, d.Failed("import", rows.Err())
}

// all are the sessions, parents first.
func (d *database) all(ctx context.Context) ([]about, error) {
	column := func(name string) string {
		if d.columns[name] {
			return name
		}
		return "NULL"
	}
	rows, err := d.DB().QueryContext(ctx, "SELECT id, "+strings.Join([]string{column("parent_id"), column("title"), column("directory"), column("version"),
		column("time_created"), column("revert"), column("time_updated")}, ", ")+" FROM "+d.sessions+" ORDER BY "+column("time_created")+", id")
	if err != nil {
		return nil, d.Failed("import", err)
	}
	defer rows.Close()
	var found []about
	at := map[string]int{}
	for rows.Next() {
		var v [8]any
		if err := rows.Scan(&v[0], &v[1], &v[2], &v[3], &v[4], &v[5], &v[6], &v[7]); err != nil {
			return nil, d.Failed("import", err)
		}
		str := func(i int) string { s, _ := v[i].(string); return s }
		a := about{id: str(0), parent: str(1), title: str(2), directory: str(3), version: str(4)}
		if a.id == "" {
			continue
		}
		if n, ok := v[5].(int64); ok && n > 0 {
			a.created = n
		}
		a.updated, _ = v[7].(int64)
		if revert := []byte(str(6)); unfit(revert) == "" {
			a.revert = fields.Of(revert).Text("messageID")
		}
		at[a.id] = len(found)
		found = append(found, a)
	}
	if err := rows.Err(); err != nil {
		return nil, d.Failed("import", err)
	}
	// Each behind its parent, whatever the times say; a circle ends where it
	// began.
	sorted, seen := make([]about, 0, len(found)), make([]bool, len(found))
	for i := range found {
		var line []int
		for j, ok := i, true; ok && !seen[j]; j, ok = at[found[j].parent] {
			seen[j] = true
			line = append(line, j)
		}
		for k := len(line) - 1; k >= 0; k-- {
			sorted = append(sorted, found[line[k]])
		}
	}
	return sorted, nil
}

// fromDatabase yields the sessions of a database.
func fromDatabase(ctx context.Context, path string, r *exchange.Report) iter.Seq2[*exchange.Session, error] {
	return func(yield func(*exchange.Session, error) bool) {
		d, err := openDatabase(ctx, path)
		if err != nil {
			yield(nil, err)
			return
		}
		defer d.Close()
		all, err := d.all(ctx)
		if err != nil {
			yield(nil, err)
			return
		}
		for _, a := range all {
			later, any, err := d.form(ctx, a.id)
			if err != nil {
				yield(nil, err)
				return
			}
			if !any {
				r.Dropped("session without messages", "there is nothing in it", 0)
				continue
			}
			first := true
			s := a.session(r.Unfinished(time.UnixMilli(a.updated)), func(give func(*entry) error) error {
				report := r
				if !first {
					report = nil
				}
				first = false
				if later {
					return d.items(ctx, a.id, report, give)
				}
				return d.messages(ctx, a.id, report, give)
			})
			if !yield(s, nil) {
				return
			}
			if d.Moved() {
				yield(nil, exchange.Unreadable(path, 0, -1, "opencode wrote the database while it was read: import it again"))
				return
			}
		}
		if err := d.orphans(ctx, r); err != nil {
			yield(nil, err)
			return
		}
	}
}

// form says in which form a session has its messages: as session messages
// (later), or as messages with parts; where both are there, in the one that has
// the newest. any is false for a session without messages.
func (d *database) form(ctx context.Context, id string) (later, any bool, err error) {
	newest := func(table string) (n int64, ok bool, err error) {
		if !d.Identity().Has(table) {
			return 0, false, nil
		}
		var v sql.NullInt64
		var count int64
		order := "time_created"
		if table == "session_message" {
			if c, err := d.columnsOf(ctx, table); err != nil || !c["time_created"] {
				order = "0"
			}
		}
		err = d.DB().QueryRowContext(ctx, "SELECT max("+order+"), count(*) FROM "+table+" WHERE session_id = ?", id).Scan(&v, &count)
		return v.Int64, count > 0, d.Failed("import", err)
	}
	a, hasA, err := newest("message")
	if err != nil {
		return false, false, err
	}
	b, hasB, err := newest("session_message")
	if err != nil {
		return false, false, err
	}
	return hasB && (!hasA || b > a), hasA || hasB, nil
}

// messages reads messages with their parts. What is held is one message, and
// where the database has not the index that opencode makes, the order of all
// parts of the session by their ids.
func (d *database) messages(ctx context.Context, id string, r *exchange.Report, give func(*entry) error) error {
	// The ids alone are brought into order, not what they stand for.
	rows, err := d.DB().QueryContext(ctx, `SELECT m.id, p.id FROM message AS m LEFT JOIN part AS p ON p.message_id = m.id
		WHERE m.session_id = ? ORDER BY m.time_created, m.id, p.id`, id)
	if err != nil {
		return d.Failed("import", err)
	}
	defer rows.Close()
	message, err := d.DB().PrepareContext(ctx, "SELECT time_created, data FROM message WHERE id = ?")
	if err != nil {
		return d.Failed("import", err)
	}
	defer message.Close()
	part, err := d.DB().PrepareContext(ctx, "SELECT data FROM part WHERE id = ?")
	if err != nil {
		return d.Failed("import", err)
	}
	defer part.Close()
	var e *entry
	for rows.Next() {
		var id string
		var partID sql.NullString
		if err := rows.Scan(&id, &partID); err != nil {
			return d.Failed("import", err)
		}
		if e == nil || e.id != id {
			if e != nil {
				if err := give(e); err != nil {
					return err
				}
			}
			e = &entry{id: id}
			var at, data any
			if err := message.QueryRowContext(ctx, id).Scan(&at, &data); err != nil {
				return d.Failed("import", err)
			}
			e.time, _ = at.(int64)
			e.info, e.bad = object(data)
			r.Advance(int64(len(e.info.Raw)))
		}
		if !partID.Valid {
			continue
		}
		var data any
		if err := part.QueryRowContext(ctx, partID.String).Scan(&data); err != nil {
			return d.Failed("import", err)
		}
		p, why := object(data)
		if why != "" {
			e.lost = append(e.lost, why)
			continue
		}
		r.Advance(int64(len(p.Raw)))
		e.parts = append(e.parts, p)
	}
	if err := rows.Err(); err != nil {
		return d.Failed("import", err)
	}
	if e != nil {
		return give(e)
	}
	return nil
}

// object is a column that holds a JSON object; why says what another one is.
func object(v any) (o fields.Object, why string) {
	var b []byte
	switch v := v.(type) {
	case string:
		b = []byte(v)
	case []byte:
		b = v
	}
	if len(b) > maxFile {
		return o, fmt.Sprintf("it has more than %d bytes", int64(maxFile))
	}
	if why = unfit(b); why != "" {
		return o, why
	}
	return fields.Of(b), ""
}

// items reads session messages.
func (d *database) items(ctx context.Context, id string, r *exchange.Report, give func(*entry) error) error {
	columns, err := d.columnsOf(ctx, "session_message")
	if err != nil {
		return err
	}
	at, order := "NULL", "id"
	if columns["time_created"] {
		at, order = "time_created", "time_created, id"
	}
	if d.seq {
		order = "seq"
	}
	rows, err := d.DB().QueryContext(ctx, "SELECT id, "+at+", data, type FROM session_message WHERE session_id = ? ORDER BY "+order, id)
	if err != nil {
		return d.Failed("import", err)
	}
	defer rows.Close()
	for rows.Next() {
		var id, at, data, kind any
		if err := rows.Scan(&id, &at, &data, &kind); err != nil {
			return d.Failed("import", err)
		}
		e := &entry{}
		e.id, _ = id.(string)
		e.time, _ = at.(int64)
		if e.kind, _ = kind.(string); e.kind == "" {
			e.kind = "?"
		}
		e.info, e.bad = object(data)
		r.Advance(int64(len(e.info.Raw)))
		if err := give(e); err != nil {
			return err
		}
	}
	return d.Failed("import", rows.Err())
}

// homes remembers which sessions the database of a home has. Its methods may be
// called from any goroutine.
type homes struct {
	mu    sync.Mutex
	path  string
	stamp string
	ids   map[string]bool
}

// has reports whether the database has a session with messages. One that cannot
// be read has none: it is named when it is imported itself.
func (h *homes) has(ctx context.Context, path, id string) bool {
	stamp, err := databaseStamp(path)
	if err != nil {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.path != path || h.stamp != stamp {
		h.path, h.stamp, h.ids = path, stamp, withMessages(ctx, path)
	}
	return h.ids[id]
}

// withMessages are the sessions of a database that have messages.
func withMessages(ctx context.Context, path string) map[string]bool {
	d, err := openDatabase(ctx, path)
	if err != nil {
		return nil
	}
	defer d.Close()
	ids := map[string]bool{}
	for _, table := range [...]string{"message", "session_message"} {
		if !d.Identity().Has(table) {
			continue
		}
		rows, err := d.DB().QueryContext(ctx, "SELECT id FROM "+d.sessions+" AS s WHERE EXISTS (SELECT 1 FROM "+table+" WHERE session_id = s.id)")
		if err != nil {
			continue
		}
		for rows.Next() {
			var id sql.NullString
			if rows.Scan(&id) == nil && id.Valid {
				ids[id.String] = true
			}
		}
		rows.Close()
	}
	return ids
}
