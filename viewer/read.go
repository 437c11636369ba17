package viewer

import (
	"context"
	"mime"
	"net/http"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/viewer/internal/facts"
	"github.com/outcrop-dev/outcrop/viewer/internal/folded"
	"github.com/outcrop-dev/outcrop/viewer/internal/opened"
	"github.com/outcrop-dev/outcrop/viewer/internal/stream"
)

// one opens the session of a path for a handler.
func (v *Viewer) one(h func(a *answerer, s *opened.Session) error) handler {
	return func(a *answerer) error {
		s, done, err := v.use(a)
		if err != nil {
			return err
		}
		defer done()
		return h(a, s)
	}
}

// maxID is longer than any id of a session, in bytes.
const maxID = 512

func (v *Viewer) use(a *answerer) (*opened.Session, func(), error) {
	id := a.r.PathValue("session")
	if id == "" || len(id) > maxID || !utf8.ValidString(id) {
		return nil, nil, notFound("SESSION_NOT_FOUND", "no session has this id")
	}
	return v.open.Use(a.r.Context(), id)
}

// seq reads the seq of a path.
func seqOf(a *answerer, s *opened.Session) (outcrop.Seq, error) {
	text := a.r.PathValue("seq")
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, badRequest("%.40s is no seq", text)
	}
	last := outcrop.Seq(-1)
	s.Read(func(x *folded.Index, _ outcrop.Log) { last = x.Len() - 1 })
	if n < 0 || outcrop.Seq(n) > last {
		return 0, notFound("EVENT_NOT_FOUND", "there is no event %d: the last one is %d", n, last)
	}
	return outcrop.Seq(n), nil
}

// moment is the parameter at: a moment of the log.
func (p *params) moment(name string, x *folded.Index) outcrop.Seq {
	n := p.number(name, int(x.Len())-1)
	if n < -1 {
		p.wrong(name, "the seq of an event, or -1 for the time before all")
	}
	return min(outcrop.Seq(n), x.Len()-1)
}

// session is what one session is about.
func (v *Viewer) session(a *answerer, s *opened.Session) error {
	veil := a.veil()
	var out *facts.Session
	var log outcrop.Log
	var accounts *folded.Accounts
	s.Read(func(x *folded.Index, l outcrop.Log) {
		out, log, accounts = facts.About(x, veil), l, x.Accounts
		out.Cursor = stream.CursorOf(s.ID(), x, l)
	})
	out.ContextTokens = facts.LastRequest(log)
	if acc := v.account(accounts, s); acc != nil {
		sum := facts.SumOf(&acc.Sum)
		out.Tokens, out.Cost, out.Unpriced = &sum, facts.CostOf(&acc.Sum), acc.Sum.Unpriced
	}
	out.Durable = out.LastSeq
	if problem := s.Problem(); problem != nil {
		out.State, out.Reason = "damaged", textOf(veil, problem.Error())
	}
	v.tellWriter(a.r.Context(), s, out, veil)
	out.Masked = veil.Masked
	return a.ok(out)
}

func textOf(veil *facts.Veil, s string) *facts.Text {
	t := veil.Text(s)
	return &t
}

// account is what is known of a session's calls so far. What is not known yet is
// found out beside the request.
func (v *Viewer) account(accounts *folded.Accounts, s *opened.Session) *folded.Account {
	acc, n := accounts.Latest()
	if n == s.Len() {
		return acc
	}
	v.countSoon(accounts, s)
	return acc
}

// countAfter is how long counting waits.
const countAfter = 300 * time.Millisecond

// countSoon brings an account up to date, one at a time.
func (v *Viewer) countSoon(accounts *folded.Accounts, s *opened.Session) {
	var h outcrop.Header
	var log outcrop.Log
	s.Read(func(x *folded.Index, l outcrop.Log) { h, log = x.Header, l })
	select {
	case v.counting <- struct{}{}:
	default:
		return // somebody counts; the next question asks again
	}
	if !v.spawn(func(ctx context.Context) {
		defer func() { <-v.counting }()
		// What a person looks at comes first.
		timer := time.NewTimer(countAfter)
		defer timer.Stop()
		select {
		case <-timer.C:
			accounts.Of(h, log, v.o.Price)
		case <-ctx.Done():
		}
	}) {
		<-v.counting
	}
}

// conversation is a part of the conversation.
func (v *Viewer) conversation(a *answerer, s *opened.Session) error {
	p := a.params()
	limit := p.limit(50, facts.MostItems)
	from, all := p.number("from", -limit), p.flag("all")
	if p.has("around") {
		around := outcrop.Seq(p.number("around", 0))
		s.Read(func(x *folded.Index, _ outcrop.Log) {
			from = max(facts.IndexOf(x, around, all)-limit/2, 0)
		})
	}
	if p.err != nil {
		return p.err
	}
	veil := a.veil()
	out := struct {
		facts.Schema
		From   int          `json:"from"`
		Total  int          `json:"total"`
		All    bool         `json:"all"`
		Cursor string       `json:"cursor"`
		Items  []facts.Item `json:"items"`
		Masked int          `json:"masked"`
	}{Schema: facts.V1, All: all}
	var places []facts.Place
	var log outcrop.Log
	s.Read(func(x *folded.Index, l outcrop.Log) {
		places, out.From, out.Total = facts.Places(x, from, limit, all)
		out.Cursor, log = stream.CursorOf(s.ID(), x, l), l
	})
	out.Items = facts.Reader{Log: log, Veil: veil, Price: v.o.Price}.Items(places)
	out.Masked = veil.Masked
	return a.ok(out)
}

// item is one item of the conversation, whole.
func (v *Viewer) item(a *answerer, s *opened.Session) error {
	seq, err := seqOf(a, s)
	if err != nil {
		return err
	}
	p := a.params()
	all := p.flag("all")
	if p.err != nil {
		return p.err
	}
	var place facts.Place
	var found bool
	var log outcrop.Log
	s.Read(func(x *folded.Index, l outcrop.Log) {
		place, found = facts.PlaceOf(x, seq, all)
		log = l
	})
	if !found {
		return notFound("EVENT_NOT_FOUND", "event %d is no item of the conversation", seq)
	}
	veil := a.veil()
	it := facts.Reader{Log: log, Veil: veil, Price: v.o.Price}.Item(place)
	return a.ok(struct {
		facts.Schema
		Item   facts.Item `json:"item"`
		Masked int        `json:"masked"`
	}{facts.V1, it, veil.Masked})
}

// events is a part of the list of events.
func (v *Viewer) events(a *answerer, s *opened.Session) error {
	p := a.params()
	limit, raw := p.limit(200, facts.MostEvents), p.flag("raw")
	row, from, to := p.number("row", 0), p.number("from", 0), p.number("to", 1<<40)
	seqs, err := seqList(p.q.Get("seqs"))
	if err != nil {
		return err
	}
	if p.err != nil {
		return p.err
	}
	veil := a.veil()
	out := facts.Events{Schema: facts.V1}
	var rows []facts.Row
	var log outcrop.Log
	s.Read(func(x *folded.Index, l outcrop.Log) {
		out.Rows, log = len(x.Rows), l
		switch {
		case seqs != nil:
			for _, seq := range seqs {
				if seq >= 0 && seq < x.Len() {
					rows = append(rows, facts.RowAt(x, seq))
				}
			}
			return
		case p.has("row"):
			rows, out.Row = facts.RowsOf(x, row, limit)
		case x.Len() > 0:
			first := 0
			if from > 0 {
				first = x.RowOf(min(outcrop.Seq(from), x.Len()))
			}
			if outcrop.Seq(from) >= x.Len() {
				first = len(x.Rows)
			}
			rows, out.Row = facts.RowsOf(x, first, limit)
			for k := range rows {
				if rows[k].First() > outcrop.Seq(to) {
					rows = rows[:k]
					break
				}
			}
		}
		if k := len(rows); k > 0 && rows[k-1].Last()+1 < x.Len() {
			next := rows[k-1].Last() + 1
			out.Next = &next
		}
	})
	out.Events = facts.Entries(log, rows, raw, veil)
	out.Masked = veil.Masked
	return a.ok(out)
}

// event is one event with all that is known about it.
func (v *Viewer) event(a *answerer, s *opened.Session) error {
	seq, err := seqOf(a, s)
	if err != nil {
		return err
	}
	var around facts.Around
	var log outcrop.Log
	s.Read(func(x *folded.Index, l outcrop.Log) { around, log = facts.AroundOf(x, seq), l })
	veil := a.veil()
	out := facts.OneEvent(facts.Reader{Log: log, Veil: veil, Price: v.o.Price}, seq, around)
	out.Masked = veil.Masked
	return a.ok(out)
}

// eventRaw is the line of an event, as a file.
func (v *Viewer) eventRaw(a *answerer, s *opened.Session) error {
	seq, err := seqOf(a, s)
	if err != nil {
		return err
	}
	var log outcrop.Log
	s.Read(func(_ *folded.Index, l outcrop.Log) { log = l })
	line := log.At(seq).AppendJSON(nil)
	if veil := a.veil(); !veil.Show {
		masked, _ := veil.JSON(line)
		line = []byte(masked)
	}
	h := a.w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": "event-" + strconv.FormatInt(int64(seq), 10) + ".json"}))
	h.Set("Content-Length", strconv.Itoa(len(line)))
	a.w.WriteHeader(http.StatusOK)
	return a.write(line)
}

// find looks for a text in one session.
func (v *Viewer) find(a *answerer, s *opened.Session) error {
	p := a.params()
	q, limit, from := p.q.Get("q"), p.limit(200, facts.MostHits), p.number("from", 0)
	switch {
	case p.err != nil:
		return p.err
	case q == "" || len(q) > 1000:
		return badRequest("q: give a text of at most 1,000 bytes")
	case from < 0:
		return badRequest("from=%d: give a seq", from)
	}
	var log outcrop.Log
	s.Read(func(_ *folded.Index, l outcrop.Log) { log = l })
	out, err := facts.Find(a.r.Context(), log, q, min(outcrop.Seq(from), outcrop.Seq(log.Len())), limit, a.veil())
	if err != nil {
		return err
	}
	s.Read(func(x *folded.Index, _ outcrop.Log) { out.Locate(x) })
	return a.ok(out)
}
