// Package rewind takes the surface of a session back to what it was at the end
// of an earlier turn. The log goes on: the part that is taken away stays in it,
// and files that were changed stay changed.
//
// Find makes a plan and changes nothing; Commit does it, as one group:
//
//	outcrop/rewind     to, and the prompt that is sent again
//	context/message    replace: no content, the model sees nothing of it
//	outcrop/pin        one for each pin that ends
//	outcrop/edit
//
// A session that has only types that dsh knows gets a user/message of a plugin
// in the place of the context/message, with a sentence for the model.
//
// What stays is the longest beginning of the surface whose nodes all stand for
// events at or before the point; a checkpoint or a pruned copy counts by the
// originals under it. Everything behind is taken away. A checkpoint that stands
// for events on both sides of the point cannot be split: the way back behind it
// is a fork.
package rewind

import (
	"fmt"
	"slices"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/history/pin"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/message"
)

// Codes of the errors of this package; all wrap outcrop.ErrRefused.
const (
	CodeBusy      outcrop.Code = "BUSY"
	CodeNoPoint   outcrop.Code = "NO_POINT"
	CodeStraddles outcrop.Code = "CHECKPOINT_STRADDLES"
	CodeNoPrompt  outcrop.Code = "NO_PROMPT"
)

// Plan is a rewind that has not been done.
type Plan struct {
	// To is the turn/end that is gone back to; 0: before everything.
	To outcrop.Seq
	// Removed are the nodes that are taken away, in model order. Without any
	// there is nothing to do.
	Removed []outcrop.Seq
	// Messages is how many messages the removed nodes derive to, Tokens their
	// estimate.
	Messages int
	Tokens   int64
	// Pins are the pinned nodes among the removed ones.
	Pins []outcrop.Seq
	// Effects are the calls after the point that may have changed something.
	Effects []Effect
	// Prompt is the prompt that will be sent again, 0 when none.
	Prompt outcrop.Seq

	generation int // of the surface that was looked at
	logLen     int
}

// Find plans a rewind of an idle session. target is the seq of a turn/end, or 0
// for the time before everything, or the seq of a prompt: then the point is the
// end of the turn before it.
func Find(s *outcrop.Session, target outcrop.Seq) (Plan, error) {
	log := s.Log()
	if _, _, open := outcrop.OpenTurn(log); open {
		return Plan{}, refuse(s, CodeBusy, -1, "a turn is open", "wait for its end, or cancel it")
	}
	to, err := point(s, log, target)
	if err != nil {
		return Plan{}, err
	}
	view := s.Surface().View()
	p := Plan{To: max(to, 0), generation: view.Generation(), logLen: log.Len()}
	nodes := view.Nodes()
	fold, err := outcrop.FoldSurface(log.Records(0))
	if err != nil {
		return Plan{}, err
	}
	spans := spansOf(fold.Replacements)
	keep := 0
	for keep < len(nodes) && spans.of(nodes[keep]).last <= to {
		keep++
	}
	if keep == len(nodes) || keep == len(nodes)-1 && IsPlace(log.At(nodes[keep])) {
		return p, nil
	}
	if sp := spans.of(nodes[keep]); sp.first <= to {
		return Plan{}, refuse(s, CodeStraddles, to, fmt.Sprintf("it lies inside checkpoint %d", nodes[keep]),
			fmt.Sprintf("use outcrop fork %s --at %d", s.ID(), to))
	}
	p.Removed = slices.Clone(nodes[keep:])
	p.weigh(s)
	for _, n := range pin.Of(log, nodes).Held {
		if slices.Contains(p.Removed, n) {
			p.Pins = append(p.Pins, n)
		}
	}
	p.Effects = effects(log, to)
	return p, nil
}

// point finds the end of the turn that is gone back to; -1 is before
// everything.
func point(s *outcrop.Session, log outcrop.Log, target outcrop.Seq) (outcrop.Seq, error) {
	if target == 0 {
		return -1, nil
	}
	if target < 0 || int(target) >= log.Len() {
		return 0, refuse(s, CodeNoPoint, -1, fmt.Sprintf("there is no event %d: the log has the events 0 to %d", target, log.Len()-1), "")
	}
	ev := log.At(target)
	switch {
	case ev.Type == outcrop.TypeTurnEnd:
		return target, nil
	case isPrompt(ev):
		return turnEndBefore(log, target), nil
	}
	hint := "name the end of a turn or a prompt, or 0 for the beginning"
	if end := turnEndBefore(log, target); end >= 0 {
		hint = fmt.Sprintf("name the end of a turn or a prompt; the last end of a turn before it is %d", end)
	}
	return 0, refuse(s, CodeNoPoint, target, "it is of type "+string(ev.Type), hint)
}

func turnEndBefore(log outcrop.Log, seq outcrop.Seq) outcrop.Seq {
	for seq--; seq >= 0; seq-- {
		if log.At(seq).Type == outcrop.TypeTurnEnd {
			return seq
		}
	}
	return -1
}

// isPrompt reports what a person sent.
func isPrompt(ev outcrop.Event) bool {
	return ev.Type == outcrop.TypeUserMessage && ev.Op.IsAppend() &&
		jsonwire.TextIs(jsonwire.Get(jsonwire.Get(ev.Data, "source"), "kind"), message.FromUser.Kind)
}

// IsPlace reports the message that a rewind left in the place of what it took
// away.
func IsPlace(ev outcrop.Event) bool {
	source := jsonwire.Get(ev.Data, "source")
	switch ev.Type {
	case outcrop.TypeContextMessage:
		return jsonwire.TextIs(jsonwire.Get(source, "kind"), ownKind) && jsonwire.TextIs(jsonwire.Get(source, "form"), ownForm)
	case outcrop.TypeUserMessage:
		return jsonwire.TextIs(jsonwire.Get(source, "plugin"), ownKind) && jsonwire.TextIs(jsonwire.Get(source, "summary"), dshSummary)
	}
	return false
}

// weigh counts what the removed nodes are to the model.
func (p *Plan) weigh(s *outcrop.Session) {
	gone := make(map[outcrop.Seq]bool, len(p.Removed))
	for _, n := range p.Removed {
		gone[n] = true
	}
	for _, m := range s.Messages() {
		if !gone[m.Seq] {
			continue
		}
		if parsed, err := message.Parse(m.Raw); err == nil {
			p.Messages++
			p.Tokens += llm.EstimateTokens(parsed)
		}
	}
}

// span is the first and the last original event under a node.
type span struct{ first, last outcrop.Seq }

type spans map[outcrop.Seq]span

func spansOf(replacements []outcrop.Replacement) spans {
	out := make(spans, len(replacements))
	for _, r := range replacements {
		all := out.of(r.Shadowed[0])
		for _, n := range r.Shadowed[1:] {
			sp := out.of(n)
			all = span{min(all.first, sp.first), max(all.last, sp.last)}
		}
		out[r.Seq] = all
	}
	return out
}

func (s spans) of(n outcrop.Seq) span {
	if sp, ok := s[n]; ok {
		return sp
	}
	return span{n, n}
}

// What the message in the place of the removed part says that it is.
const (
	ownKind    = "outcrop"
	ownForm    = "rewind"
	dshSummary = "rewound"
)

// dshNotice is what a model reads in the place of the removed part, in a
// session that cannot hold a message without content there.
const dshNotice = "The conversation was taken back to this point. Later messages were removed; files were not changed."

// Commit does what was planned, on the session that the plan was made from;
// nothing may have been appended since. id is the id of the message that takes
// the place, "" for one that the session makes. It returns the seq of that
// message. A plan that removes nothing commits nothing and returns -1.
func Commit(s *outcrop.Session, p Plan, id string) (outcrop.Seq, error) {
	if len(p.Removed) == 0 {
		return -1, nil
	}
	if s.Len() != p.logLen || s.Surface().View().Generation() != p.generation {
		return -1, refuse(s, CodeBusy, -1, "the session went on since the rewind was planned", "plan it again")
	}
	first := outcrop.Seq(s.Len())
	rewound := outcrop.OutcropRewind{To: p.To}
	if p.Prompt > 0 {
		rewound.Prompt = &p.Prompt
	}
	op := outcrop.Replace(p.Removed[0], p.Removed[len(p.Removed)-1])
	sources := outcrop.SourcesOf(append([]outcrop.Seq{first}, p.Removed...)...)
	m := message.Message{ID: id, Role: message.User, Content: []message.Block{}}
	var after int64
	var place outcrop.Candidate
	if s.Header().Compatible() {
		m.Content = []message.Block{message.Text(dshNotice)}
		m.Source = message.Source{Kind: "plugin", Plugin: ownKind, Form: "notice", Summary: dshSummary}
		place = outcrop.SurfaceCandidate(outcrop.UserMessage{Message: m}, op, sources)
		after = llm.EstimateTokens(m)
	} else {
		m.Source = message.Source{Kind: ownKind, Form: ownForm}
		place = outcrop.SurfaceCandidate(outcrop.ContextMessage{Message: m}, op, sources)
	}
	group := []outcrop.Candidate{outcrop.LogCandidate(rewound), place}
	for _, n := range p.Pins {
		group = append(group, outcrop.LogCandidate(outcrop.OutcropPin{Node: n}))
	}
	group = append(group, outcrop.LogCandidate(outcrop.OutcropEdit{
		ReplaceSeq: first + 1, Kind: "rewind", TokensBefore: p.Tokens, TokensAfter: after, CacheInvalidated: p.Tokens}))
	if _, err := s.AppendAll(group...); err != nil {
		return -1, err
	}
	return first + 1, nil
}

func refuse(s *outcrop.Session, code outcrop.Code, seq outcrop.Seq, msg, hint string) error {
	return &outcrop.Error{Op: "rewind", Session: s.ID(), Code: code, Seq: seq, Offset: -1, Err: outcrop.ErrRefused, Msg: msg, Hint: hint}
}
