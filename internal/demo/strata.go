package demo

import (
	"strconv"
	"strings"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/brief"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/internal/term"
)

// strata draws the surface over what its nodes cover, layer by layer, over the
// log.
func strata(log outcrop.Log) string {
	fold, err := outcrop.FoldSurface(log.Records(0))
	if err != nil {
		return ""
	}
	under := map[outcrop.Seq][]outcrop.Seq{}
	for _, r := range fold.Replacements {
		under[r.Seq] = r.Shadowed
	}
	var b strings.Builder
	layer := fold.Nodes
	name, open, shut := "surface", "[", "]"
	indent := 0
	for depth := 0; len(layer) > 0; depth++ {
		row := "  " + term.Pad(name, 8)
		row += strings.Repeat(" ", max(indent-term.Columns(row), 0))
		if depth > 0 {
			row += strings.Repeat(" ", max(0, 12-term.Columns(row)))
		} else {
			row += "  "
		}
		var next []outcrop.Seq
		mark := -1
		for i, seq := range layer {
			word := open + nodeName(log, seq) + shut
			if depth > 0 { // the lower layers are long
				word = strings.Replace(word, "assistant", "asst", 1)
			}
			gap := ""
			if i > 0 {
				gap = "  "
				if depth == 0 {
					gap = " "
				}
			}
			if term.Columns(row)+term.Columns(gap)+term.Columns(word)+4 > term.Width && i < len(layer)-1 {
				row += " ..."
				break
			}
			if mark < 0 && len(under[seq]) > 0 {
				mark, next = term.Columns(row)+term.Columns(gap)+term.Columns(word)/2, under[seq]
			}
			row += gap + word
		}
		b.WriteString(row + "\n")
		if mark < 0 {
			break
		}
		b.WriteString(strings.Repeat(" ", mark) + "|\n")
		indent = 0
		if len(next) == 1 { // right below its bar
			indent = max(12, mark-term.Columns(nodeName(log, next[0]))/2)
		}
		layer, name, open, shut = next, "covered", "", ""
	}
	last := strconv.Itoa(log.Len() - 1)
	events := "   " + term.Plural(log.Len(), "event")
	head := "  " + term.Pad("log", 10) + "0 "
	b.WriteString(head + strings.Repeat(".", max(3, 62-term.Columns(head)-term.Columns(last))) + " " + last + events + "\n")
	return b.String()
}

// nodeName names a node in a few letters: a star marks a result that was pruned.
func nodeName(log outcrop.Log, seq outcrop.Seq) string {
	ev := log.At(seq)
	name := map[outcrop.Type]string{
		outcrop.TypeUserMessage: "user", outcrop.TypeAssistantMessage: "assistant", outcrop.TypeContextMessage: "context",
	}[ev.Type]
	switch {
	case ev.Type == outcrop.TypeToolResult:
		name = toolOf(log, ev)
		if !ev.Op.IsAppend() {
			name += "*"
		}
	case brief.IsCheckpoint(jsonwire.Get(brief.MessageOf(ev), "source")):
		name = "checkpoint"
	}
	return strconv.FormatInt(int64(seq), 10) + " " + name
}

// toolOf is the tool whose result an event is; a rewritten result cites the one
// it stands for, that one its call.
func toolOf(log outcrop.Log, ev outcrop.Event) string {
	for range log.Len() {
		if ev.Type == outcrop.TypeToolCall {
			name, _ := jsonwire.Text(jsonwire.Get(ev.Data, "name"))
			return term.Line(name)
		}
		seqs := ev.Sources.Seqs()
		if len(seqs) == 0 {
			break
		}
		ev = log.At(seqs[0])
	}
	return "result"
}
