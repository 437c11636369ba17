package rewind

import (
	"fmt"
	"slices"
	"strings"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/brief"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/workspace"
)

// Effect is a call that may have changed something outside of the log.
type Effect struct {
	Seq  outcrop.Seq // of the tool/call
	Tool string
	What string // its path or its command, in one line
}

// readers are the tools that change nothing. Of any other it is not known.
var readers = []string{"glob", "grep", "history_read", "history_search", "list", "read"}

// notRun are the codes of results whose call did not run.
var notRun = []string{"ABORTED_BEFORE_DISPATCH", "INVALID_ARGS", "NOT_APPROVED", "NOT_RUN", "TOOL_NOT_STARTED", "UNKNOWN_TOOL"}

// effects lists the calls after a point.
func effects(log outcrop.Log, after outcrop.Seq) (out []Effect) {
	skip := map[outcrop.Seq]bool{}
	for rec := range log.Records(after + 1) {
		switch rec.Type {
		case outcrop.TypeToolCall:
			name, _ := jsonwire.Text(jsonwire.Get(rec.Data, "name"))
			if slices.Contains(readers, name) {
				continue
			}
			args, _ := jsonwire.Text(jsonwire.Get(rec.Data, "arguments"))
			out = append(out, Effect{Seq: rec.Seq, Tool: name, What: brief.Call(args)})
		case outcrop.TypeToolResult:
			code, _ := jsonwire.Text(jsonwire.Get(jsonwire.Get(rec.Data, "error"), "code"))
			if slices.Contains(notRun, code) {
				for seq := range rec.Sources.All() {
					skip[seq] = true
				}
			}
		}
	}
	return slices.DeleteFunc(out, func(e Effect) bool { return skip[e.Seq] })
}

// effectsMost is how many calls a notice names.
const effectsMost = 20

// Notice is what the model is told in the first turn after a rewind, when calls
// that were taken out of its sight may have changed something. ok is false when
// there is nothing to tell: no rewind, no such calls, or a turn has ended since.
// Where the notice stands already, workspace.Due leaves it out.
func Notice(log outcrop.Log) (c workspace.Context, ok bool) {
	at := outcrop.Seq(-1)
	for seq := outcrop.Seq(log.Len()) - 1; seq >= 0 && at < 0; seq-- {
		switch log.At(seq).Type {
		case outcrop.TypeOutcropRewind:
			at = seq
		case outcrop.TypeTurnEnd:
			return c, false
		}
	}
	if at < 0 {
		return c, false
	}
	to, _ := jsonwire.Int(jsonwire.Get(log.At(at).Data, "to"))
	did := effects(outcrop.Prefix(log, int(at)), outcrop.Seq(to))
	if len(did) == 0 {
		return c, false
	}
	var b strings.Builder
	b.WriteString("The conversation was taken back to an earlier point. These calls of the removed part were made and are not undone:")
	for i, e := range did {
		if i == effectsMost {
			fmt.Fprintf(&b, "\n- and %d more", len(did)-i)
			break
		}
		what := []rune(e.What)
		if len(what) > 200 {
			what = append(what[:200], []rune("...")...)
		}
		b.WriteString("\n- " + e.Tool + " " + string(what))
	}
	return workspace.Context{Name: fmt.Sprintf("rewound-%d", at), Text: b.String()}, true
}
