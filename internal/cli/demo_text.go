package cli

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/message"
)

// told is one thing that a turn did.
type told struct {
	tool, what, measure string // a call
	answer              string // or the last text
}

// turns tells what happened in each turn, from the log.
func (d *demo) turns() [][]told {
	var all [][]told
	now := func() *[]told { return &all[len(all)-1] }
	calls := map[string]int{} // by call id: index in the turn
	for ev := range outcrop.Events(d.log, 0) {
		switch ev.Type {
		case outcrop.TypeTurnStart:
			all = append(all, nil)
			clear(calls)
		case outcrop.TypeToolCall:
			id, _ := jsonwire.Text(jsonwire.Get(ev.Data, "callId"))
			name, _ := jsonwire.Text(jsonwire.Get(ev.Data, "name"))
			args, _ := jsonwire.Text(jsonwire.Get(ev.Data, "arguments"))
			t := told{tool: name, what: briefCall(args)}
			if content, ok := jsonwire.Text(jsonwire.Get([]byte(args), "content")); ok {
				t.measure = count(int64(len(content))) + " bytes"
			}
			calls[id] = len(*now())
			*now() = append(*now(), t)
		case outcrop.TypeToolResult:
			if !ev.Op.IsAppend() {
				continue
			}
			id, _ := jsonwire.Text(jsonwire.Get(jsonwire.Get(jsonwire.Get(ev.Data, "message"), "source"), "callId"))
			t := &(*now())[calls[id]]
			out := resultText(ev)
			switch {
			case t.tool == "shell":
				n, _, _ := strings.Cut(strings.TrimSpace(out), " ")
				t.measure = n + " lines"
			case t.measure == "":
				t.measure = count(int64(len(out))) + " bytes"
			}
		case outcrop.TypeAssistantMessage:
			m, err := message.Parse(jsonwire.Get(ev.Data, "message"))
			if err != nil {
				continue
			}
			text := ""
			for _, b := range m.Content {
				switch b.Type {
				case message.TextBlock:
					text += b.Text
				case message.ToolCallBlock:
					text = ""
				}
			}
			if text != "" {
				*now() = append(*now(), told{answer: text})
			}
		}
	}
	return all
}

// text is what a person sees of the demo.
func (d *demo) text(root *cobra.Command) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("Outcrop demo: a scripted model, real tools, no key, no network.")
	line("")
	for i, turn := range d.turns() {
		line("turn %d   %q", i+1, demoPrompts[i])
		for _, t := range turn {
			if t.answer != "" {
				line("  >      %s", oneLine(t.answer))
				continue
			}
			line("  %-6s %s%s", escapeLine(t.tool), t.what, padLeft(t.measure, 40-columns(t.what)))
		}
		if i == 1 {
			head := fmt.Sprintf("prune    node %d -> %d", d.pruned, d.prune.Replacement)
			line("%s%s", head, tokens(d.prune.TokensBefore, d.prune.TokensAfter, head))
			head = fmt.Sprintf("compact  nodes %d..%d -> %d", d.fold.Shadowed[0], d.fold.Shadowed[len(d.fold.Shadowed)-1], d.fold.Replacement)
			line("%s%s", head, tokens(d.fold.TokensBefore, d.fold.TokensAfter, head))
		}
	}
	line("")
	line("The surface is what the model sees. The log below it keeps everything.")
	line("")
	b.WriteString(strata(d.log))
	line("")
	line("crash    cut inside %q: %s, step and turn closed, nothing run twice", d.crash.tool, plural(d.crash.results, "result"))
	if len(d.faults) == 0 {
		line("check    surface = fold at %d prefixes; %d of %d requests rebuilt; verify ok, ok", d.prefixes, d.requests, len(d.sent))
	} else {
		for _, f := range d.faults {
			line("check    NOT OK: %s", escapeLine(f))
		}
	}
	line("")
	line("Look at it (export OUTCROP_STORE=%s):", shellWord(d.store()))
	b.WriteString(d.invitations(root))
	return b.String()
}

func tokens(before, after int64, head string) string {
	return padLeft(count(before), 49-columns(head)-4) + " -> " + padLeft(count(after), 5) + " tokens"
}

// invitations are commands to go on with, as far as they exist, two in a row
// where they fit.
func (d *demo) invitations(root *cobra.Command) string {
	var all []string
	for _, args := range [][]string{
		{"show", "last"}, {"surface", "last"}, {"lineage", "last", itoa(d.fold.Replacement)},
		{"request", "last", "--turn", "1", "--step", "2"}, {"serve"},
	} {
		if c, _, err := root.Find(args[:1]); err == nil && c != root {
			all = append(all, d.a.env.Program+" "+strings.Join(args, " "))
		}
	}
	all = append(all, "rm -r "+shellWord(d.root))
	const column = 31
	var b strings.Builder
	for len(all) > 0 {
		if len(all) > 1 && columns(all[0]) < column-1 && column+2+columns(all[1]) <= width {
			b.WriteString("  " + pad(all[0], column) + all[1] + "\n")
			all = all[2:]
			continue
		}
		b.WriteString("  " + all[0] + "\n")
		all = all[1:]
	}
	return b.String()
}

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
		row := "  " + pad(name, 8)
		row += strings.Repeat(" ", max(indent-columns(row), 0))
		if depth > 0 {
			row += strings.Repeat(" ", max(0, 12-columns(row)))
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
			if columns(row)+columns(gap)+columns(word)+4 > width && i < len(layer)-1 {
				row += " ..."
				break
			}
			if mark < 0 && len(under[seq]) > 0 {
				mark, next = columns(row)+columns(gap)+columns(word)/2, under[seq]
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
			indent = max(12, mark-columns(nodeName(log, next[0]))/2)
		}
		layer, name, open, shut = next, "covered", "", ""
	}
	last := itoa(log.Len() - 1)
	events := "   " + plural(log.Len(), "event")
	head := "  " + pad("log", 10) + "0 "
	b.WriteString(head + strings.Repeat(".", max(3, 62-columns(head)-columns(last))) + " " + last + events + "\n")
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
	case isCheckpoint(jsonwire.Get(messageOf(ev), "source")):
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
			return escapeLine(name)
		}
		seqs := ev.Sources.Seqs()
		if len(seqs) == 0 {
			break
		}
		ev = log.At(seqs[0])
	}
	return "result"
}

// facts is the demo as one JSON object.
func (d *demo) facts() []byte {
	turns := d.turns()
	o := newAnswer().text("session", demoSession).text("dir", d.root).text("store", d.store()).
		number("events", int64(d.log.Len())).
		raw("nodes", seqs(d.nodes)).
		raw("turns", list(len(turns), func(dst []byte, i int) []byte {
			t := object().text("prompt", demoPrompts[i]).raw("calls", callFacts(turns[i]))
			for _, x := range turns[i] {
				if x.answer != "" {
					t.text("answer", x.answer)
				}
			}
			return append(dst, t.end()...)
		})).
		raw("prune", object().number("node", int64(d.pruned)).number("replacement", int64(d.prune.Replacement)).
			number("tokensBefore", d.prune.TokensBefore).number("tokensAfter", d.prune.TokensAfter).end()).
		raw("compaction", object().raw("shadowed", seqs(d.fold.Shadowed)).number("replacement", int64(d.fold.Replacement)).
			number("tokensBefore", d.fold.TokensBefore).number("tokensAfter", d.fold.TokensAfter).end()).
		raw("crash", object().text("path", d.crash.path).number("lastEvent", int64(d.crash.cut)).text("tool", d.crash.tool).
			number("results", int64(d.crash.results)).end()).
		raw("checks", object().number("prefixes", int64(d.prefixes)).number("requests", int64(len(d.sent))).
			number("requestsRebuilt", int64(d.requests)).
			raw("faults", list(len(d.faults), func(dst []byte, i int) []byte { return jsonwire.AppendString(dst, d.faults[i]) })).end()).
		boolean("ok", len(d.faults) == 0)
	return o.end()
}

func callFacts(turn []told) []byte {
	var calls []told
	for _, t := range turn {
		if t.tool != "" {
			calls = append(calls, t)
		}
	}
	return list(len(calls), func(dst []byte, i int) []byte {
		return append(dst, object().text("tool", calls[i].tool).text("what", calls[i].what).text("measure", calls[i].measure).end()...)
	})
}
