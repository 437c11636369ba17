package demo

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/outcrop-dev/outcrop/internal/term"
)

// Text is what a person sees of the demo, in at most 80 columns: what happened,
// the strata, and commands to go on with. Those are for a program that was
// started as program, and only the ones that it has.
func (r *Result) Text(program string, has func(command string) bool) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("Outcrop demo: a scripted model, real tools, no key, no network.")
	line("")
	for i, turn := range r.Turns {
		line("turn %d   %q", i+1, turn.Prompt)
		for _, t := range turn.Done {
			if t.Answer != "" {
				line("  >      %s", term.OneLine(t.Answer))
				continue
			}
			line("  %-6s %s%s", term.Line(t.Tool), t.What, term.PadLeft(t.Measure, 40-term.Columns(t.What)))
		}
		if i == 1 {
			head := fmt.Sprintf("prune    node %d -> %d", r.Pruned, r.Prune.Replacement)
			line("%s%s", head, tokens(r.Prune.TokensBefore, r.Prune.TokensAfter, head))
			head = fmt.Sprintf("compact  nodes %d..%d -> %d", r.Compaction.Shadowed[0], r.Compaction.Shadowed[len(r.Compaction.Shadowed)-1], r.Compaction.Replacement)
			line("%s%s", head, tokens(r.Compaction.TokensBefore, r.Compaction.TokensAfter, head))
		}
	}
	line("")
	line("The surface is what the model sees. The log below it keeps everything.")
	line("")
	b.WriteString(strata(r.Log))
	line("")
	line("crash    cut inside %q: %s, step and turn closed, nothing run twice", r.Crash.Tool, term.Plural(r.Crash.Results, "result"))
	if len(r.Faults) == 0 {
		line("check    surface = fold at %d prefixes; %d of %d requests rebuilt; verify ok, ok", r.Prefixes, r.Rebuilt, r.Requests)
	} else {
		for _, f := range r.Faults {
			line("check    NOT OK: %s", term.Line(f))
		}
	}
	line("")
	line("Look at it (export OUTCROP_STORE=%s):", term.Word(r.Store))
	b.WriteString(r.invitations(program, has))
	return b.String()
}

func tokens(before, after int64, head string) string {
	return term.PadLeft(term.Count(before), 49-term.Columns(head)-4) + " -> " + term.PadLeft(term.Count(after), 5) + " tokens"
}

// invitations are commands to go on with, as far as they exist, two in a row
// where they fit.
func (r *Result) invitations(program string, has func(command string) bool) string {
	var all []string
	for _, args := range [][]string{
		{"show", "last"}, {"surface", "last"}, {"lineage", "last", strconv.FormatInt(int64(r.Compaction.Replacement), 10)},
		{"request", "last", "--turn", "1", "--step", "2"}, {"serve"},
	} {
		if has(args[0]) {
			all = append(all, program+" "+strings.Join(args, " "))
		}
	}
	all = append(all, "rm -r "+term.Word(r.Dir))
	const column = 31
	var b strings.Builder
	for len(all) > 0 {
		if len(all) > 1 && term.Columns(all[0]) < column-1 && column+2+term.Columns(all[1]) <= term.Width {
			b.WriteString("  " + term.Pad(all[0], column) + all[1] + "\n")
			all = all[2:]
			continue
		}
		b.WriteString("  " + all[0] + "\n")
		all = all[1:]
	}
	return b.String()
}
