package dshsqlite

import (
	"context"
	"database/sql"
	"errors"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/wire"
)

var _ store.Cataloguer = (*Store)(nil)

// List is store.Store's. A session whose row is out of contract is in the list
// with its reason. Nobody can tell whether a dsh has a session open, so none is
// listed as locked.
func (s *Store) List(ctx context.Context, o store.ListOptions) ([]store.Info, error) {
	listed, err := s.list(ctx, o.Full, nil)
	if err != nil {
		return nil, err
	}
	infos := make([]store.Info, len(listed))
	for i := range listed {
		infos[i] = *listed[i].Info
	}
	store.SortInfos(infos)
	return infos, nil
}

// ListKnown is store.Cataloguer's. The stamp of a session is its incarnation and
// its revision, which dsh raises with every change.
func (s *Store) ListKnown(ctx context.Context, known func(place string) (store.Kept, bool)) ([]store.Listed, error) {
	return s.list(ctx, false, known)
}

func (s *Store) list(ctx context.Context, full bool, known func(place string) (store.Kept, bool)) ([]store.Listed, error) {
	f, err := s.open(ctx)
	if err != nil {
		return nil, err
	}
	defer s.back(f)
	all, err := s.sessions(ctx, f)
	if err != nil {
		return nil, err
	}
	lk, err := newLooker(ctx, f)
	if err != nil {
		return nil, err
	}
	defer lk.close()
	out := make([]store.Listed, 0, len(all))
	for _, in := range all {
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		l := store.Listed{Place: in.id, Stamp: in.stamp}
		if known != nil {
			if k, ok := known(in.id); ok && k.Stamp == in.stamp && k.ID == in.id {
				out = append(out, l)
				continue
			}
		}
		info := s.info(in)
		l.Info = &info
		if l.Info.State != store.StateOK {
			out = append(out, l)
			continue
		}
		switch err := lk.look(ctx, s, in, l.Info); {
		case errors.Is(err, outcrop.ErrDamaged):
			// Pages of the database that hold this log: others may be whole.
			l.Info.State, l.Info.Reason = store.StateDamaged, err.Error()
			out = append(out, l)
			continue
		case err != nil:
			return nil, err
		}
		if full {
			s.readAll(ctx, f, in, l.Info)
		}
		out = append(out, l)
	}
	return out, nil
}

// info is what the row of a session says.
func (s *Store) info(in session) store.Info {
	i := store.Info{ID: in.id, CreatedAt: in.header.CreatedAt, UpdatedAt: in.header.CreatedAt, Events: -1, Turns: -1,
		State: store.StateOK, Path: s.path, Header: in.header}
	if in.header.Cwd != nil {
		i.Cwd = *in.header.Cwd
	}
	if in.bad != nil {
		i.State, i.Reason = store.StateDamaged, in.bad.Error()
		if errors.Is(in.bad, outcrop.ErrUnsupported) {
			i.State = store.StateNewer
		}
	}
	return i
}

// The sums need no look into data: SQLite knows the length of a column without
// reading it.
const selectSums = `SELECT ifnull(sum(octet_length(data)), 0), count(iif(type = 'turn/start', 1, NULL)),
	ifnull(max(iif(type = 'turn/start', seq, NULL)), -1), ifnull(max(iif(type = 'turn/end', seq, NULL)), -1),
	ifnull(max(iif(type = 'session/title', seq, NULL)), -1), ifnull(min(iif(type = 'user/message', seq, NULL)), -1)
	FROM events WHERE session_id = ?`

// looker looks at sessions without reading their logs.
type looker struct {
	file           *lent
	decoder        *decoder
	sums, last, at *sql.Stmt
}

func newLooker(ctx context.Context, f *lent) (*looker, error) {
	l := &looker{file: f, decoder: newDecoder(f.Identity().UserVersion)}
	for _, p := range []struct {
		to    **sql.Stmt
		query string
	}{
		{&l.sums, selectSums},
		{&l.last, selectEvents(l.decoder.schema) + " ORDER BY seq DESC LIMIT 1"},
		{&l.at, selectEvents(l.decoder.schema) + " AND seq = ?"},
	} {
		stmt, err := f.DB().PrepareContext(ctx, p.query)
		if err != nil {
			l.close()
			return nil, f.Failed("list", err)
		}
		*p.to = stmt
	}
	return l, nil
}

func (l *looker) close() {
	l.decoder.close()
	for _, stmt := range [...]*sql.Stmt{l.sums, l.last, l.at} {
		if stmt != nil {
			stmt.Close()
		}
	}
}

// look fills in how long a log is, how it ends, its title.
func (l *looker) look(ctx context.Context, s *Store, in session, i *store.Info) error {
	var turns, started, ended, title, prompt int64
	if err := l.sums.QueryRowContext(ctx, in.id).Scan(&i.Bytes, &turns, &started, &ended, &title, &prompt); err != nil {
		return l.file.Failed("list", err)
	}
	i.Turns = int(turns)
	if started > ended {
		i.State, i.Reason = store.StateOpenTurn, "the last turn was not closed"
	}
	decode := wire.NewLines(in.id, s.results(ctx, l.file, in.id, newDecoder(l.decoder.schema)))
	last, ok, err := l.record(l.last.QueryRowContext(ctx, in.id), decode)
	if err != nil {
		return err
	}
	var sum store.Summary
	for _, seq := range [...]int64{prompt, title} {
		if seq < 0 {
			continue
		}
		rec, ok, err := l.record(l.at.QueryRowContext(ctx, in.id, seq), decode)
		if err != nil {
			return err
		}
		if ok {
			sum.Add(rec)
		}
	}
	i.Title = sum.Title
	if ok {
		i.Events = int64(last.Last()) + 1
		var end store.Summary
		end.Add(last)
		i.UpdatedAt = end.Updated
	} else if turns == 0 && i.Bytes == 0 {
		i.Events = 0
	}
	return nil
}

// record decodes a row; ok is false where there is none, and for one that
// reading the log names.
func (l *looker) record(row *sql.Row, decode *wire.Lines) (rec outcrop.Record, ok bool, err error) {
	r, err := scanRow(row.Scan)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return rec, false, nil
	case err != nil:
		return rec, false, l.file.Failed("list", err)
	}
	line, err := l.decoder.line(&r)
	if err != nil {
		return rec, false, nil
	}
	rec, err = decode.Record(line)
	return rec, err == nil, nil
}

// readAll reads the whole log into its entry.
func (s *Store) readAll(ctx context.Context, f *lent, in session, i *store.Info) {
	var sum store.Summary
	l := s.newLog(f, in)
	defer l.decoder.close()
	for r, err := range l.records(ctx, 0) {
		if err != nil {
			i.State, i.Reason = store.StateDamaged, err.Error()
			return
		}
		sum.Add(r)
	}
	i.State, i.Reason = store.StateOK, ""
	sum.Into(i)
}
