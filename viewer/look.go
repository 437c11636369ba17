package viewer

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/viewer/internal/facts"
	"github.com/outcrop-dev/outcrop/viewer/internal/folded"
	"github.com/outcrop-dev/outcrop/viewer/internal/opened"
	"github.com/outcrop-dev/outcrop/viewer/internal/strata"
)

// mostSeqs is how many single events one question may name.
const mostSeqs = 100

// seqList reads seqs with commas between; nil for none.
func seqList(text string) ([]outcrop.Seq, error) {
	if text == "" {
		return nil, nil
	}
	list := []outcrop.Seq{}
	for part := range strings.SplitSeq(text, ",") {
		n, err := strconv.ParseInt(part, 10, 64)
		if err != nil || len(list) == mostSeqs {
			return nil, badRequest("seqs: give at most %d seqs with commas between", mostSeqs)
		}
		list = append(list, outcrop.Seq(n))
	}
	return list, nil
}

// priced reads the index when every node of it has its price. Most of the work
// is done while nobody waits for the index.
func priced(s *opened.Session, f func(x *folded.Index, log outcrop.Log)) {
	var prices *folded.Prices
	var nodes strata.Snapshot
	var log outcrop.Log
	s.Read(func(x *folded.Index, l outcrop.Log) { prices, nodes, log = x.Prices, x.Forest.Snapshot(), l })
	prices.Catch(nodes, log)
	s.Read(func(x *folded.Index, l outcrop.Log) {
		x.Prices.Catch(x.Forest.Snapshot(), l)
		f(x, l)
	})
}

// px is the width of a picture.
func (p *params) px() int {
	n := p.number("px", 1600)
	if n < 1 {
		p.wrong("px", "a number of pixels")
	}
	return min(max(n, strata.MinPx), facts.MostPx)
}

// strata is the picture of the surface and of what lies under it.
func (v *Viewer) strata(a *answerer, s *opened.Session) error {
	p := a.params()
	look := facts.Look{From: p.float("from"), To: p.float("to"), Px: p.px(), Compared: p.has("compare")}
	switch p.q.Get("widths") {
	case "", "tokens":
	case "equal":
		look.Equal = true
	default:
		p.wrong("widths", "tokens or equal")
	}
	var b []byte
	priced(s, func(x *folded.Index, _ outcrop.Log) {
		look.At, look.Compare = p.moment("at", x), p.moment("compare", x)
		b = facts.Strata(nil, x, look)
	})
	if p.err != nil {
		return p.err
	}
	a.raw(http.StatusOK, b)
	return nil
}

// strataNode is one node, for keys.
func (v *Viewer) strataNode(a *answerer, s *opened.Session) error {
	seq, err := seqOf(a, s)
	if err != nil {
		return err
	}
	p := a.params()
	var out facts.NodePlace
	var found bool
	var log outcrop.Log
	priced(s, func(x *folded.Index, l outcrop.Log) {
		out, found = facts.NodeAt(x, seq, p.moment("at", x))
		log = l
	})
	if p.err != nil {
		return p.err
	}
	if !found {
		return notFound("EVENT_NOT_FOUND", "event %d is no node of the surface at that moment", seq)
	}
	veil := a.veil()
	out.Say(log, veil)
	return a.ok(out)
}

// strataTable is the surface in words.
func (v *Viewer) strataTable(a *answerer, s *opened.Session) error {
	p := a.params()
	limit := p.limit(200, facts.MostNodes)
	from := p.number("from", 0)
	var out facts.Table
	var log outcrop.Log
	priced(s, func(x *folded.Index, l outcrop.Log) {
		out, log = facts.TableAt(x, p.moment("at", x), from, limit), l
	})
	if p.err != nil {
		return p.err
	}
	out.Say(log, a.veil())
	return a.ok(out)
}

// band is the picture of the log.
func (v *Viewer) band(a *answerer, s *opened.Session) error {
	p := a.params()
	from, to, px := p.number("from", 0), p.number("to", 0), p.px()
	if p.err != nil {
		return p.err
	}
	var accounts *folded.Accounts
	s.Read(func(x *folded.Index, _ outcrop.Log) { accounts = x.Accounts })
	var calls []folded.Call
	if acc := v.account(accounts, s); acc != nil {
		calls = acc.Calls
	}
	var b []byte
	s.Read(func(x *folded.Index, _ outcrop.Log) { b = facts.Band(nil, x, calls, from, to, px) })
	a.raw(http.StatusOK, b)
	return nil
}

// bandAt places an event in both pictures.
func (v *Viewer) bandAt(a *answerer, s *opened.Session) error {
	p := a.params()
	seq, row := p.number("seq", 0), p.number("row", 0)
	if p.err != nil {
		return p.err
	}
	var out facts.Spot
	var err error
	s.Read(func(x *folded.Index, _ outcrop.Log) {
		at := outcrop.Seq(seq)
		if p.has("row") {
			if row < 0 || row >= len(x.Rows) {
				err = notFound("EVENT_NOT_FOUND", "there is no row %d", row)
				return
			}
			at = x.LastOf(row)
		}
		if at < 0 || at >= x.Len() {
			err = notFound("EVENT_NOT_FOUND", "there is no event %d", at)
			return
		}
		out = facts.SpotOf(x, at)
	})
	if err != nil {
		return err
	}
	return a.ok(out)
}

// surface is the surface at a moment, or what two moments differ in.
func (v *Viewer) surface(a *answerer, s *opened.Session) error {
	p := a.params()
	limit, from := p.limit(500, facts.MostNodes), p.number("from", 0)
	veil := a.veil()
	var log outcrop.Log
	if p.has("diff") {
		from, to, ok := facts.ParseDiff(p.q.Get("diff"))
		if !ok || from < -1 || to < -1 {
			return badRequest("diff: give two seqs, as A..B")
		}
		var out facts.Diff
		priced(s, func(x *folded.Index, l outcrop.Log) {
			log = l
			out = facts.DiffOf(x, min(from, x.Len()-1), min(to, x.Len()-1))
		})
		out.Say(log, veil)
		return a.ok(out)
	}
	var out facts.Surface
	priced(s, func(x *folded.Index, l outcrop.Log) {
		out, log = facts.SurfaceOf(x, p.moment("at", x), from, limit), l
	})
	if p.err != nil {
		return p.err
	}
	out.Say(log, veil)
	return a.ok(out)
}

// whole is the account of a session as it is now.
func (v *Viewer) whole(s *opened.Session) (*folded.Account, outcrop.Log) {
	var accounts *folded.Accounts
	var h outcrop.Header
	var log outcrop.Log
	s.Read(func(x *folded.Index, l outcrop.Log) { accounts, h, log = x.Accounts, x.Header, l })
	return accounts.Of(h, log, v.o.Price), log
}

// requests is a part of the list of requests.
func (v *Viewer) requests(a *answerer, s *opened.Session) error {
	p := a.params()
	limit := p.limit(100, facts.MostRequests)
	from := p.number("from", -limit)
	if p.err != nil {
		return p.err
	}
	acc, _ := v.whole(s)
	return a.ok(facts.RequestsOf(acc, from, limit, a.veil()))
}

// request is one request, made again.
func (v *Viewer) request(a *answerer, s *opened.Session) error {
	p := a.params()
	ask := facts.Ask{From: p.number("from", 0), Limit: p.limit(500, facts.MostMessages), Raw: p.flag("raw")}
	if p.err != nil {
		return p.err
	}
	acc, log := v.whole(s)
	c, i, err := facts.FindCall(acc, a.r.PathValue("request"))
	if err != nil {
		return err
	}
	out, err := facts.RebuiltOf(log, acc, c, i, ask, a.veil())
	if err != nil {
		return &problem{status: http.StatusUnprocessableEntity, code: "DAMAGED", msg: err.Error()}
	}
	return a.ok(out)
}

// numbers are the numbers of a session.
func (v *Viewer) numbers(a *answerer, s *opened.Session) error {
	var scene facts.Scene
	priced(s, func(x *folded.Index, _ outcrop.Log) { scene = facts.SceneOf(x) })
	acc, log := v.whole(s)
	return a.ok(facts.NumbersOf(log, acc, scene, a.veil()))
}
