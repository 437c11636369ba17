package view

import (
	"fmt"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/history"
	"github.com/outcrop-dev/outcrop/history/rewind"
	"github.com/outcrop-dev/outcrop/internal/term"
	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/message"
)

// Edits says in lines what a compaction or a pruning did, or would do.
func Edits(r history.Report) (lines []string) {
	line := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	var invalidates int64 // the edit nearest to the head counts: it takes the others' part along
	for _, p := range r.Planned {
		most := "at most "
		if p.Kind == history.KindPrune {
			most = ""
		}
		line("would %s %s: %s tokens to %s%s", verb(p.Kind), nodeRange(p.Nodes), llm.Thousands(p.Tokens), most, llm.Thousands(p.AtMost))
		invalidates = max(invalidates, p.Invalidates)
	}
	if invalidates > 0 {
		line("%s tokens of the last request would leave the cache", llm.Thousands(invalidates))
	}
	for _, e := range r.Edits {
		kind, how := history.KindPrune, ""
		if e.ID != "" {
			kind = history.KindCompaction
		}
		if e.ModelFree {
			how = ", without a model"
		}
		line("%s -> %d: %s -> %s tokens%s", term.Pad(verb(kind)+" "+nodeRange(e.Shadowed), 24), e.Replacement,
			llm.Thousands(e.TokensBefore), llm.Thousands(e.TokensAfter), how)
	}
	if len(r.Queued) > 0 {
		line("%s will be shortened before the next step: dsh, for which this session must stay readable, allows it only in a turn; it is forgotten when this program ends first", term.Plural(len(r.Queued), "result"))
	}
	if r.Notice != "" {
		line("%s", term.Line(r.Notice))
	}
	switch {
	case len(r.Edits) > 0:
		line("the next request has %s tokens instead of %s", llm.Thousands(r.After), llm.Thousands(r.Before))
	case len(r.Planned) > 0:
		line("the next request would have at most %s tokens instead of %s", llm.Thousands(r.After), llm.Thousands(r.Before))
	case len(lines) == 0:
		line("nothing to do")
	}
	return lines
}

func verb(kind string) string {
	if kind == history.KindPrune {
		return "prune"
	}
	return "compact"
}

func nodeRange(nodes []outcrop.Seq) string {
	if len(nodes) == 1 {
		return fmt.Sprintf("node %d", nodes[0])
	}
	return fmt.Sprintf("nodes %d..%d", nodes[0], nodes[len(nodes)-1])
}

// Rewound says in lines what a rewind took back, or would take back.
func Rewound(p rewind.Plan, dropped []message.Message, dry bool) (lines []string) {
	line := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	if len(p.Removed) == 0 {
		line("nothing to do: the conversation stands there already")
		return lines
	}
	did, pin := "taken back:", "ended"
	if dry {
		did, pin = "would be taken back:", "would end"
	}
	line("%s %s, about %s tokens", did, term.Plural(p.Messages, "message"), llm.Thousands(p.Tokens))
	for _, n := range p.Pins {
		line("  the pin of %d %s", n, pin)
	}
	if len(p.Effects) > 0 {
		line("not undone:")
	}
	for _, e := range p.Effects {
		line("%s", term.Cut("  "+term.Pad(term.Line(e.Tool), 6)+" "+term.Line(e.What), term.Width))
	}
	for _, m := range dropped {
		line("dropped from the inbox: %s", term.Line(message.PlainText(m.Content)))
	}
	return lines
}
