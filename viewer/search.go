package viewer

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/search"
	"github.com/outcrop-dev/outcrop/viewer/internal/facts"
)

// indexer keeps the text index up to date while somebody searches.
type indexer struct {
	v *Viewer

	mu        sync.Mutex
	running   bool
	done, all int64
	at        time.Time // when it was up to date last
	took      time.Duration
}

// The index is brought up to date when it is older, and not more often than that
// it takes a small share of the time.
const (
	indexEvery = 2 * time.Second
	indexShare = 10
)

func newIndexer(v *Viewer) *indexer { return &indexer{v: v} }

// catchUp brings the index up to date beside the question.
func (x *indexer) catchUp() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.running || !x.at.IsZero() && time.Since(x.at) < max(indexEvery, indexShare*x.took) {
		return
	}
	x.running = x.v.spawn(func(ctx context.Context) {
		began := time.Now()
		_, err := x.v.o.Search.Update(ctx, x.v.o.Store, func(done, all int64) {
			x.mu.Lock()
			defer x.mu.Unlock()
			x.done, x.all = done, all
		})
		if err != nil && ctx.Err() == nil {
			x.v.log.Warn("the text index is not up to date", "err", err)
		}
		x.mu.Lock()
		defer x.mu.Unlock()
		x.running, x.at, x.took = false, time.Now(), time.Since(began)
	})
}

// waitAtMost is how long a question waits for the index.
const waitAtMost = 300 * time.Millisecond

// progress is how far the index is, nil when it is up to date. It waits a
// moment, because mostly little is new.
func (x *indexer) progress(ctx context.Context) *progress {
	deadline := time.NewTimer(waitAtMost)
	defer deadline.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		x.mu.Lock()
		running, p := x.running, progress{x.done, x.all}
		x.mu.Unlock()
		if !running {
			return nil
		}
		select {
		case <-tick.C:
		case <-deadline.C:
			return &p
		case <-ctx.Done():
			return &p
		}
	}
}

type progress struct {
	Done int64 `json:"done"`
	All  int64 `json:"all"`
}

// searchHit is a message that was found.
type searchHit struct {
	Session facts.Text  `json:"session"`
	Title   *facts.Text `json:"title"`
	Seq     outcrop.Seq `json:"seq"`
	Time    int64       `json:"time"`
	Role    string      `json:"role"`
	Text    facts.Text  `json:"text"`
	Spans   [][2]int    `json:"spans"`
}

// searchAll looks for text in all sessions.
func (v *Viewer) searchAll(a *answerer) error {
	if v.o.Search == nil {
		return notFound("NO_SEARCH", "this server has no index of texts")
	}
	p := a.params()
	q := search.Query{Text: p.q.Get("q"), Store: v.o.Store.Address(), Limit: p.limit(20, 200), Offset: p.number("from", 0)}
	switch {
	case p.err != nil:
		return p.err
	case q.Text == "" || len(q.Text) > 1000:
		return badRequest("q: give words, at most 1,000 bytes")
	case q.Offset < 0:
		return badRequest("from=%d: give a number from 0 on", q.Offset)
	}
	v.index.catchUp()
	indexing := v.index.progress(a.r.Context())
	hits, more, err := v.o.Search.Search(a.r.Context(), q)
	if errors.Is(err, search.ErrQuery) {
		return badRequest("q: %v", err)
	}
	if err != nil {
		return err
	}
	veil := a.veil()
	out := struct {
		facts.Schema
		Indexing *progress   `json:"indexing"`
		Masked   int         `json:"masked"`
		More     bool        `json:"more"`
		From     int         `json:"from"`
		Hits     []searchHit `json:"hits"`
	}{facts.V1, indexing, 0, more, q.Offset, []searchHit{}}
	for _, h := range hits {
		hit := searchHit{Session: facts.Text(h.Session), Title: veil.LineOrNil(h.Title), Seq: h.Seq, Time: h.Time, Role: string(h.Role)}
		hit.Text, hit.Spans = facts.Snippet(h.Snippet, veil)
		out.Hits = append(out.Hits, hit)
	}
	out.Masked = veil.Masked
	return a.ok(out)
}
