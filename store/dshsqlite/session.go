package dshsqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/store"
)

// session is a row of sessions as it was found.
type session struct {
	id     string
	stamp  string // changes whenever dsh changes the log
	header outcrop.Header
	bad    error // why the header cannot be used
}

const selectSession = `SELECT id, version, created_at, cwd, parent_session, seed_length, origin, delegation_depth, agent_preset, incarnation, revision FROM sessions`

// scanSession reads a row of selectSession. The error is that of the database;
// what is wrong with the row itself is in bad.
func (s *Store) scanSession(scan func(...any) error) (in session, err error) {
	var v [11]any
	if err := scan(&v[0], &v[1], &v[2], &v[3], &v[4], &v[5], &v[6], &v[7], &v[8], &v[9], &v[10]); err != nil {
		return in, err
	}
	in.id, _ = v[0].(string)
	in.stamp = fmt.Sprint(v[9], " ", v[10])
	in.header, in.bad = header(in.id, v[:])
	if in.bad != nil {
		p := store.Problem("open", in.id, in.bad, "", "the other sessions of the file can be read")
		p.Path = s.path
		if errors.Is(in.bad, outcrop.ErrUnsupported) {
			p.Hint = "read it with the dsh that wrote it"
		}
		in.bad = p
	}
	return in, nil
}

// header makes the header of a row.
func header(id string, v []any) (outcrop.Header, error) {
	wrong := func(column string) (outcrop.Header, error) {
		return outcrop.Header{ID: id}, &outcrop.Error{Code: codeColumn, Seq: -1, Offset: -1, Err: outcrop.ErrDamaged,
			Msg: "the session's row has a " + column + " that is out of contract"}
	}
	if id == "" {
		return wrong("id")
	}
	h := outcrop.Header{ID: id}
	var ok bool
	if h.Version, ok = v[1].(int64); !ok {
		return wrong("version")
	}
	if h.CreatedAt, ok = v[2].(int64); !ok || h.CreatedAt < 0 || h.CreatedAt > jsonwire.MaxSafe {
		return wrong("created_at")
	}
	text := func(v any, to **string) bool {
		if v == nil {
			return true
		}
		t, ok := v.(string)
		*to = &t
		return ok
	}
	switch {
	case !text(v[3], &h.Cwd):
		return wrong("cwd")
	case !text(v[4], &h.ParentSession):
		return wrong("parent_session")
	case !text(v[8], &h.AgentPreset):
		return wrong("agent_preset")
	}
	if v[5] != nil {
		n, ok := v[5].(int64)
		if !ok || n < 0 {
			return wrong("seed_length")
		}
		h.SeedLength = &n
	}
	if v[6] != nil {
		if h.Origin, ok = v[6].(string); !ok || h.Origin != "subagent" {
			return wrong("origin")
		}
	}
	if v[7] != nil {
		if h.DelegationDepth, ok = v[7].(int64); !ok || h.DelegationDepth < 0 {
			return wrong("delegation_depth")
		}
	}
	// The line is judged as that of a log file is.
	return outcrop.ParseHeader(h.Line())
}

// find reads the row of a session. The errors wrap outcrop.ErrNotFound, or are
// those of a row that cannot be used.
func (s *Store) find(ctx context.Context, f *lent, id string) (session, error) {
	in, err := s.scanSession(f.DB().QueryRowContext(ctx, selectSession+" WHERE id = ?", id).Scan)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return in, s.notFound("read", id)
	case err != nil:
		return in, f.Failed("read", err)
	}
	return in, in.bad
}

// sessions reads all rows.
func (s *Store) sessions(ctx context.Context, f *lent) ([]session, error) {
	rows, err := f.DB().QueryContext(ctx, selectSession)
	if err != nil {
		return nil, f.Failed("list", err)
	}
	defer rows.Close()
	var all []session
	for rows.Next() {
		in, err := s.scanSession(rows.Scan)
		if err != nil {
			return nil, f.Failed("list", err)
		}
		all = append(all, in)
	}
	return all, f.Failed("list", rows.Err())
}
