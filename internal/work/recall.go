package work

import (
	"context"
	"path/filepath"
	"strings"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/search"
	recall "github.com/outcrop-dev/outcrop/tool/history"
)

// indexed answers history_search from the index over all sessions, and from the
// log itself for what is not stored yet. Where there is no index it goes over
// the log.
type indexed struct {
	w *Work
	s *outcrop.Session
}

// Search implements recall.Searcher.
func (x indexed) Search(ctx context.Context, q recall.Query) ([]recall.Hit, bool, error) {
	hits, more, from, err := x.index(ctx, q)
	if ctx.Err() != nil {
		return nil, false, ctx.Err()
	}
	if err != nil {
		x.w.a.Logger.Warn("the search index cannot be used: the log is searched instead", "err", err)
		hits, more, from = nil, false, 0
	}
	newest, moreNew, err := recall.Scan{Log: x.s.Log, From: from}.Search(ctx, q)
	if err != nil {
		return nil, false, err
	}
	all := append(newest, hits...)
	if len(all) > q.Limit {
		return all[:q.Limit], true, nil
	}
	return all, more || moreNew, nil
}

// index asks the index, and says up to which event it knows the session.
func (x indexed) index(ctx context.Context, q recall.Query) (hits []recall.Hit, more bool, from outcrop.Seq, err error) {
	if !x.w.Stored() {
		return nil, false, 0, nil
	}
	home, err := x.w.a.StateHome()
	if err != nil {
		return nil, false, 0, err
	}
	ix, err := search.Open(ctx, filepath.Join(home, "search.db"), search.Options{Logger: x.w.a.Logger})
	if err != nil {
		return nil, false, 0, err
	}
	defer ix.Close()
	if from, err = ix.Refresh(ctx, x.w.store, x.s.ID()); err != nil {
		return nil, false, 0, err
	}
	found, more, err := ix.Search(ctx, search.Query{Text: q.Text, Store: x.w.store.Address(), Session: x.s.ID(), Roles: rolesOf(q.Role),
		NoTools: []string{recall.ReadName, recall.SearchName}, Newest: true, Limit: q.Limit})
	if err != nil {
		return nil, false, 0, err
	}
	for _, h := range found {
		var b strings.Builder
		for _, s := range h.Snippet {
			b.WriteString(s.Text)
		}
		hits = append(hits, recall.Hit{Seq: h.Seq, Snippet: b.String()})
	}
	return hits, more, from, nil
}

func rolesOf(r recall.Role) []search.Role {
	switch r {
	case recall.User:
		return []search.Role{search.User, search.Context, search.Checkpoint}
	case recall.Assistant:
		return []search.Role{search.Assistant}
	case recall.Result:
		return []search.Role{search.Tool}
	}
	return nil
}
