package viewer

import (
	"context"
	"strings"
	"time"

	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/viewer/internal/facts"
	"github.com/outcrop-dev/outcrop/viewer/internal/listing"
	"github.com/outcrop-dev/outcrop/viewer/internal/stream"
)

// rows are all sessions with what is known of them.
func (v *Viewer) rows(ctx context.Context) ([]listing.Row, int, error) {
	v.mu.Lock()
	here := make(map[string]bool, len(v.running))
	for id := range v.running {
		here[id] = true
	}
	v.mu.Unlock()
	return v.list.Rows(ctx, here)
}

// sessions is a page of the list of sessions.
func (v *Viewer) sessions(a *answerer) error {
	p := a.params()
	limit := p.limit(100, listing.MostSessions)
	if p.err != nil {
		return p.err
	}
	f := listing.Filter{Words: strings.Fields(strings.ToLower(p.q.Get("q"))), Cwd: p.q.Get("cwd"), Tag: p.q.Get("tag"), Parent: p.q.Get("parent")}
	if s := p.q.Get("state"); s != "" {
		f.States = strings.Split(s, ",")
	}
	behind, err := listing.ParsePlace(p.q.Get("cursor"))
	if err != nil {
		return badRequest("%v", err)
	}
	rows, pending, err := v.rows(a.r.Context())
	if err != nil {
		return err
	}
	out := listing.PageOf(rows, f, behind, limit, a.veil())
	out.Pending = pending
	return a.ok(out)
}

// tree is one family of sessions.
func (v *Viewer) tree(a *answerer) error {
	rows, pending, err := v.rows(a.r.Context())
	if err != nil {
		return err
	}
	out, ok := listing.FamilyOf(rows, a.r.URL.Query().Get("root"), a.veil())
	if !ok {
		return notFound("SESSION_NOT_FOUND", "no session has this id")
	}
	out.Pending = pending
	return a.ok(out)
}

// liveList is the stream of the list of sessions.
func (v *Viewer) liveList(a *answerer) error {
	leave, err := v.admit()
	if err != nil {
		return err
	}
	defer leave()
	if _, err := v.list.Infos(a.r.Context()); err != nil {
		return err
	}
	a.stream()
	if a.send(stream.Event("hello", "", []byte("{}"))) != nil {
		return nil
	}
	seen := v.list.Stamps()
	look, ping := time.NewTicker(stream.WriterEvery), time.NewTicker(stream.PingEvery)
	defer look.Stop()
	defer ping.Stop()
	for {
		var out []byte
		select {
		case <-a.r.Context().Done():
			return nil
		case <-v.life.Done():
			return nil
		case <-ping.C:
			out = stream.Ping(v.o.Now())
		case <-look.C:
			if _, err := v.list.Infos(a.r.Context()); err != nil {
				continue
			}
			now := v.list.Stamps()
			out = changedEvent(seen, now)
			seen = now
		}
		if a.send(out) != nil {
			return nil
		}
	}
}

// changedEvent tells what two listings differ in, nothing when it is nothing.
func changedEvent(before, now map[string]listing.Stamp) []byte {
	ids, removed := listing.Changed(before, now)
	if len(ids)+len(removed) == 0 {
		return nil
	}
	b, err := jsonwire.Marshal(struct {
		IDs     []facts.Text `json:"ids"`
		Removed []facts.Text `json:"removed"`
	}{ids, removed})
	if err != nil {
		return nil
	}
	return stream.Event("sessions", "", b)
}
