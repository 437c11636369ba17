package search

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/outcrop-dev/outcrop"
)

// Role says whose words a message holds.
type Role string

const (
	User       Role = "user"
	Assistant  Role = "assistant"
	Tool       Role = "tool"
	Context    Role = "context"
	Checkpoint Role = "checkpoint"
)

// Query says what is looked for, and where. Zero members restrict nothing.
type Query struct {
	Text    string
	Store   string // address of a store
	Session string // id
	Roles   []Role
	Tool    string   // results of this tool, and messages that call it
	NoTools []string // no results of these tools, and no messages that call them
	Cwd     string   // workspace, or a folder above it
	Since   int64    // Unix milliseconds
	Until   int64
	Newest  bool // order by time and not by how well it fits
	Limit   int  // most hits; 0 means 20
	Offset  int
}

// Hit is a message that fits.
type Hit struct {
	Store   string
	Session string
	Title   string
	Cwd     string
	Seq     outcrop.Seq
	Time    int64
	Role    Role
	Tool    string
	Snippet []Span // one line around the first place
}

// Span is a part of a snippet.
type Span struct {
	Text string
	Hit  bool // it is one of the words that were looked for
}

// ErrQuery: the query looks for nothing.
var ErrQuery = errors.New("the query has no word in it")

// Search returns the hits, best or newest first, and whether there are more.
func (ix *Index) Search(ctx context.Context, q Query) (hits []Hit, more bool, err error) {
	all := terms(q.Text)
	if len(all) == 0 {
		return nil, false, ErrQuery
	}
	if q.Limit <= 0 {
		q.Limit = 20
	}
	where, args := []string{"words MATCH ?"}, []any{match(all)}
	only := func(cond string, v ...any) { where, args = append(where, cond), append(args, v...) }
	if q.Store != "" {
		only("s.store = ?", q.Store)
	}
	if q.Session != "" {
		only("s.id = ?", q.Session)
	}
	if len(q.Roles) > 0 {
		names := make([]any, len(q.Roles))
		for i, r := range q.Roles {
			names[i] = string(r)
		}
		only("d.role IN (?"+strings.Repeat(", ?", len(q.Roles)-1)+")", names...)
	}
	for _, name := range q.NoTools {
		only("instr(d.tool, ?) = 0", " "+name+" ")
	}
	if q.Tool != "" {
		// tool holds the names of all tools of a message, each between spaces.
		only("instr(d.tool, ?) > 0", " "+q.Tool+" ")
	}
	if q.Cwd != "" {
		dir := strings.TrimRight(q.Cwd, `/\`)
		only("(s.cwd = ? OR substr(s.cwd, 1, ?) = ?)", dir, len([]rune(dir))+1, dir+"/")
	}
	if q.Since != 0 {
		only("d.time >= ?", q.Since)
	}
	if q.Until != 0 {
		only("d.time < ?", q.Until)
	}
	order := "bm25(words), d.time DESC"
	if q.Newest {
		order = "d.time DESC, d.key DESC"
	}
	ix.mu.RLock()
	defer ix.mu.RUnlock()
	rows, err := ix.db.QueryContext(ctx, `SELECT s.store, s.id, s.title, s.cwd, d.seq, d.time, d.role, d.tool, d.text
		FROM words JOIN docs d ON d.key = words.rowid JOIN sessions s ON s.key = d.session
		WHERE `+strings.Join(where, " AND ")+" ORDER BY "+order+" LIMIT ? OFFSET ?", append(args, q.Limit+1, max(q.Offset, 0))...)
	if err != nil {
		return nil, false, fmt.Errorf("search: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var h Hit
		var text sql.RawBytes
		var role, tool string
		if err := rows.Scan(&h.Store, &h.Session, &h.Title, &h.Cwd, &h.Seq, &h.Time, &role, &tool, &text); err != nil {
			return nil, false, fmt.Errorf("search: %w", err)
		}
		if len(hits) == q.Limit {
			return hits, true, nil
		}
		h.Role, h.Tool, h.Snippet = Role(role), strings.TrimSpace(tool), snippet(string(text), all)
		hits = append(hits, h)
	}
	if err := rows.Err(); err != nil {
		return nil, false, fmt.Errorf("search: %w", err)
	}
	return hits, false, nil
}
