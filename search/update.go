package search

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/message"
	"github.com/outcrop-dev/outcrop/store"
)

// Report says what an update did.
type Report struct {
	Sessions int   // that the store has
	Read     int   // of which there was something to read
	Messages int   // that were added
	Bytes    int64 // of text in them
	Removed  int   // sessions that are gone from the store
	Troubles []Trouble
}

// Trouble is a session that could not be read, or not to its end. What is good
// of it is in the index.
type Trouble struct {
	Session string
	Path    string
	Err     error
}

// Progress hears how far an update is, in stored bytes.
type Progress func(done, all int64)

// Update brings the index up to what a store has now: it reads what is new at
// the end of each log, and takes out what is gone. One session that cannot be
// read does not stop it. An update that is cancelled keeps what it did; one that
// finds the index damaged makes it anew.
func (ix *Index) Update(ctx context.Context, st store.Store, progress Progress) (Report, error) {
	r, err := ix.update(ctx, st, progress)
	if damaged(err) {
		if err := ix.anew(ctx, err); err != nil {
			return r, fmt.Errorf("search: %s: %w", ix.path, err)
		}
		return ix.update(ctx, st, progress)
	}
	return r, err
}

func (ix *Index) update(ctx context.Context, st store.Store, progress Progress) (r Report, err error) {
	ix.mu.RLock()
	defer ix.mu.RUnlock()
	infos, err := st.List(ctx, store.ListOptions{})
	if err != nil {
		return r, err
	}
	known, err := ix.known(ctx, st.Address(), "")
	if err != nil {
		return r, err
	}
	r.Sessions = len(infos)
	var done, all int64
	for _, in := range infos {
		all += in.Bytes
	}
	for _, in := range infos {
		if progress != nil {
			progress(done, all)
		}
		done += in.Bytes
		if err := ctx.Err(); err != nil {
			return r, err
		}
		k, had := known[in.ID]
		delete(known, in.ID)
		if in.ID == "" {
			r.Troubles = append(r.Troubles, Trouble{Path: in.Path, Err: errors.New(in.Reason)})
			continue
		}
		if had && k.updated == in.UpdatedAt && k.bytes == in.Bytes {
			if k.trouble != "" {
				r.Troubles = append(r.Troubles, Trouble{Session: in.ID, Path: in.Path, Err: errors.New(k.trouble)})
			}
			continue
		}
		trouble, err := ix.read(ctx, st, in, k, &r)
		if err != nil {
			return r, err
		}
		if trouble != nil {
			r.Troubles = append(r.Troubles, Trouble{Session: in.ID, Path: in.Path, Err: trouble})
		}
	}
	for _, k := range known {
		if err := ix.forget(ctx, k.key); err != nil {
			return r, err
		}
		r.Removed++
	}
	if progress != nil {
		progress(all, all)
	}
	return r, nil
}

// Refresh brings one session of a store up to what is stored of it now, and
// returns the seq behind the last event that is in the index.
func (ix *Index) Refresh(ctx context.Context, st store.Store, id string) (outcrop.Seq, error) {
	ix.mu.RLock()
	defer ix.mu.RUnlock()
	known, err := ix.known(ctx, st.Address(), id)
	if err != nil {
		return 0, err
	}
	var r Report
	// Size and time are those of a listing, which was not made: the next Update
	// looks at the session once more.
	trouble, err := ix.read(ctx, st, store.Info{ID: id, State: store.StateOK}, known[id], &r)
	if err == nil {
		err = trouble
	}
	if err != nil {
		return 0, err
	}
	known, err = ix.known(ctx, st.Address(), id)
	return known[id].next, err
}

// entry is what the index knows of a session.
type entry struct {
	key     int64 // 0: nothing
	updated int64
	bytes   int64
	next    outcrop.Seq
	mark    string
	calls   map[outcrop.Seq]string // names of calls without a result yet, by the seq of the tool/call
	title   string
	trouble string
}

// known is what the index knows of a store's sessions, or of one of them.
func (ix *Index) known(ctx context.Context, address, id string) (map[string]entry, error) {
	rows, err := ix.db.QueryContext(ctx, "SELECT key, id, updated, bytes, next, mark, calls, title, trouble FROM sessions WHERE store = ? AND (? = '' OR id = ?)", address, id, id)
	if err != nil {
		return nil, fmt.Errorf("search: %w", err)
	}
	defer rows.Close()
	out := map[string]entry{}
	for rows.Next() {
		var k entry
		var id string
		var calls []byte
		if err := rows.Scan(&k.key, &id, &k.updated, &k.bytes, &k.next, &k.mark, &calls, &k.title, &k.trouble); err != nil {
			return nil, fmt.Errorf("search: %w", err)
		}
		if json.Unmarshal(calls, &k.calls) != nil {
			k.mark = ""
		}
		out[id] = k
	}
	return out, rows.Err()
}

// read reads what is new of one session. trouble is what is wrong with its log,
// err what is wrong with the index.
func (ix *Index) read(ctx context.Context, st store.Store, in store.Info, k entry, r *Report) (trouble, err error) {
	before := *r
	trouble, err = ix.readFrom(ctx, st, in, k, r)
	if k.mark != "" && errors.Is(trouble, store.ErrMoved) {
		// The log is not the one that it was.
		*r, k.mark = before, ""
		return ix.readFrom(ctx, st, in, k, r)
	}
	return trouble, err
}

// readFrom is one try, in one transaction.
func (ix *Index) readFrom(ctx context.Context, st store.Store, in store.Info, k entry, r *Report) (trouble, err error) {
	log, trouble := openLog(ctx, st, in.ID)
	if log != nil {
		defer log.close()
	}
	resumed := log != nil && k.key != 0 && k.mark != "" && log.resume(k.mark)
	tx, err := ix.db.BeginTx(context.WithoutCancel(ctx), nil)
	if err != nil {
		return nil, fmt.Errorf("search: %w", err)
	}
	defer tx.Rollback()
	if k.key != 0 && !resumed {
		if err := clear(tx, k.key); err != nil {
			return nil, fmt.Errorf("search: %w", err)
		}
		k.next, k.title, k.calls = 0, "", nil
	}
	if k.key == 0 {
		res, err := tx.Exec("INSERT INTO sessions (store, id, title, cwd, updated, bytes, next, mark, calls, trouble) VALUES (?, ?, '', '', 0, 0, 0, '', '{}', '')", st.Address(), in.ID)
		if err == nil {
			k.key, err = res.LastInsertId()
		}
		if err != nil {
			return nil, fmt.Errorf("search: %w", err)
		}
	}
	r.Read++
	w, err := newWriter(tx, k, r)
	if err != nil {
		return nil, fmt.Errorf("search: %w", err)
	}
	defer w.close()
	if log != nil {
		for rec, bad := range log.records(ctx) {
			if bad != nil {
				trouble = bad
				break
			}
			if err := w.add(rec); err != nil {
				return nil, fmt.Errorf("search: %w", err)
			}
		}
		k.mark = log.mark()
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if trouble == nil && in.State == store.StateDamaged {
		trouble = errors.New(in.Reason)
	}
	told := ""
	if trouble != nil {
		told = trouble.Error()
	}
	_, err = tx.Exec("UPDATE sessions SET title = ?, cwd = ?, updated = ?, bytes = ?, next = ?, mark = ?, calls = ?, trouble = ? WHERE key = ?",
		w.sum.Title, in.Cwd, in.UpdatedAt, in.Bytes, int64(w.next), k.mark, w.openCalls(), told, k.key)
	if err == nil {
		err = tx.Commit()
	}
	if err != nil {
		return nil, fmt.Errorf("search: %w", err)
	}
	return trouble, nil
}

func clear(tx *sql.Tx, key int64) error {
	_, err := tx.Exec("DELETE FROM words WHERE rowid IN (SELECT key FROM docs WHERE session = ?)", key)
	if err == nil {
		_, err = tx.Exec("DELETE FROM docs WHERE session = ?", key)
	}
	return err
}

func (ix *Index) forget(ctx context.Context, key int64) error {
	tx, err := ix.db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("search: %w", err)
	}
	defer tx.Rollback()
	if err = clear(tx, key); err == nil {
		_, err = tx.Exec("DELETE FROM sessions WHERE key = ?", key)
	}
	if err == nil {
		err = tx.Commit()
	}
	if err != nil {
		return fmt.Errorf("search: %w", err)
	}
	return nil
}

// writer adds the messages of one log to the index.
type writer struct {
	doc, words *sql.Stmt
	session    int64
	next       outcrop.Seq
	sum        store.Summary
	calls      map[outcrop.Seq]string // names, by the seq of the tool/call
	r          *Report
}

func newWriter(tx *sql.Tx, k entry, r *Report) (*writer, error) {
	w := &writer{session: k.key, next: k.next, calls: k.calls, r: r}
	w.sum.Title = k.title
	if w.calls == nil {
		w.calls = map[outcrop.Seq]string{}
	}
	var err error
	if w.doc, err = tx.Prepare("INSERT INTO docs (session, seq, time, role, tool, text) VALUES (?, ?, ?, ?, ?, ?)"); err != nil {
		return nil, err
	}
	w.words, err = tx.Prepare("INSERT INTO words (rowid, body) VALUES (?, ?)")
	return w, err
}

// openCalls are the calls without a result, as the index keeps them.
func (w *writer) openCalls() string {
	b, err := json.Marshal(w.calls)
	if err != nil || len(w.calls) > 1000 {
		return "{}"
	}
	return string(b)
}

func (w *writer) close() {
	w.doc.Close()
	w.words.Close()
}

func (w *writer) add(rec outcrop.Record) error {
	w.next = rec.Last() + 1
	if rec.Run != nil {
		return nil
	}
	w.sum.Add(rec)
	if rec.Type == outcrop.TypeToolCall {
		name, _ := jsonwire.Text(jsonwire.Get(rec.Data, "name"))
		w.calls[rec.Seq] = name
		return nil
	}
	role, tool, text, ok := w.textOf(rec.Event)
	if !ok || text == "" {
		return nil
	}
	res, err := w.doc.Exec(w.session, int64(rec.Seq), rec.Time, string(role), tool, text)
	if err != nil {
		return err
	}
	key, err := res.LastInsertId()
	if err == nil {
		_, err = w.words.Exec(key, spaced(text))
	}
	w.r.Messages++
	w.r.Bytes += int64(len(text))
	return err
}

// textOf is what a message says; ok is false for what is not indexed.
func (w *writer) textOf(ev outcrop.Event) (role Role, tool, text string, ok bool) {
	raw := []byte(ev.Data)
	switch ev.Type {
	case outcrop.TypeUserMessage, outcrop.TypeContextMessage:
		role = Context
	case outcrop.TypeAssistantMessage:
		raw, role = jsonwire.Get(ev.Data, "message"), Assistant
	case outcrop.TypeToolResult:
		if _, _, copied := ev.Op.Range(); copied {
			return "", "", "", false
		}
		raw, role = jsonwire.Get(ev.Data, "message"), Tool
		for seq := range ev.Sources.All() {
			if name, ok := w.calls[seq]; ok {
				tool = " " + name + " "
				delete(w.calls, seq)
			}
		}
	default:
		return "", "", "", false
	}
	m, err := message.Parse(raw)
	if err != nil {
		return "", "", "", false
	}
	switch {
	case m.Source.CompactionID != "":
		role = Checkpoint
	case role == Context && m.Source.Kind == message.FromUser.Kind:
		role = User
	}
	var b []byte
	for i := range m.Content {
		b, tool = appendBlock(b, tool, &m.Content[i])
		if len(b) > MaxText {
			break
		}
	}
	text = llm.Clean(string(b[:min(len(b), MaxText)]))
	return role, tool, text, true
}

func appendBlock(b []byte, tool string, block *message.Block) ([]byte, string) {
	line := func(s string) {
		if s == "" {
			return
		}
		if len(b) > 0 {
			b = append(b, '\n')
		}
		b = append(b, s[:min(len(s), MaxText)]...)
	}
	switch block.Type {
	case message.TextBlock, message.ReasoningBlock:
		line(block.Text)
	case message.ToolCallBlock:
		line(block.Name + " " + block.Arguments)
		if tool == "" {
			tool = " "
		}
		tool += block.Name + " "
	case message.ToolResultBlock:
		for i := range block.Content {
			b, tool = appendBlock(b, tool, &block.Content[i])
		}
	}
	return b, tool
}
