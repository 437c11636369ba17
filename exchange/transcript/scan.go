package transcript

import (
	"slices"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/history/rewind"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/store"
)

// scan is the first pass: facts, and what rewinds took away.
type scan struct {
	t     *Transcript
	sum   store.Summary
	nodes []outcrop.Seq
	under map[outcrop.Seq][]outcrop.Seq // what each replacement covers
}

func (s *scan) add(r *outcrop.Record) {
	t := s.t
	if t.o.Before > 0 && r.Seq >= t.o.Before {
		return
	}
	s.sum.Add(*r)
	t.Events = int(r.Last()) + 1
	if r.Run != nil {
		return
	}
	ev := &r.Event
	if ev.Type == outcrop.TypeRequestHeader {
		s.model(ev)
	}
	if !ev.Type.Surface() {
		return
	}
	if speaks(ev) {
		t.Messages++
	}
	if ev.Op.IsAppend() {
		s.nodes = append(s.nodes, ev.Seq)
		return
	}
	start, end, ok := ev.Op.Range()
	if !ok {
		return
	}
	i := slices.Index(s.nodes, start)
	if i < 0 {
		return // no valid log; there is nothing to follow
	}
	n := slices.Index(s.nodes[i:], end)
	if n < 0 {
		return
	}
	if s.under == nil {
		s.under = map[outcrop.Seq][]outcrop.Seq{}
	}
	covered := slices.Clone(s.nodes[i : i+n+1])
	s.under[ev.Seq] = covered
	s.nodes = slices.Replace(s.nodes, i, i+n+1, ev.Seq)
	if !t.o.Rewound && rewind.IsPlace(*ev) {
		s.take(covered)
	}
}

// take marks everything that lies under these nodes as gone.
func (s *scan) take(nodes []outcrop.Seq) {
	if s.t.gone == nil {
		s.t.gone = map[outcrop.Seq]bool{}
	}
	rest := slices.Clone(nodes)
	for len(rest) > 0 {
		n := rest[len(rest)-1]
		rest = rest[:len(rest)-1]
		if !s.t.gone[n] {
			s.t.gone[n] = true
			rest = append(rest, s.under[n]...)
		}
	}
}

func (s *scan) model(ev *outcrop.Event) {
	cfg := jsonwire.Get(jsonwire.Get(ev.Data, "header"), "config")
	provider, _ := jsonwire.Text(jsonwire.Get(cfg, "provider"))
	model, _ := jsonwire.Text(jsonwire.Get(cfg, "model"))
	name := provider + ":" + model
	if model != "" && !slices.Contains(s.t.Models, name) && len(s.t.Models) < 100 {
		s.t.Models = append(s.t.Models, name)
	}
}

func (s *scan) end() {
	t := s.t
	t.Title, t.Given = t.mask.Text(s.sum.Title), s.sum.Titled()
	t.Updated, t.Turns, t.OpenTurn = s.sum.Updated, s.sum.Turns, s.sum.OpenTurn
	if t.Header.Cwd != nil {
		t.Cwd = t.mask.Text(*t.Header.Cwd)
	}
}

// speaks reports an event that put a message into the conversation: it was
// appended to the surface, or stands in a log without surface markers.
func speaks(ev *outcrop.Event) bool {
	_, _, isReplace := ev.Op.Range()
	return ev.Op.IsAppend() || ev.Type.Surface() && !isReplace
}
