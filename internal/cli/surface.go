package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
)

func (a *app) newSurfaceCommand() *cobra.Command {
	var v viewFlags
	var diff string
	c := &cobra.Command{
		Use:   "surface TARGET",
		Short: "What the model sees: the nodes, and what each one covers",
		Args:  exactly("TARGET"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := v.check(c); err != nil {
				return err
			}
			var d span
			if diff != "" {
				if v.closed || v.at >= 0 {
					return usagef("--diff says both ends: it takes neither --at nor --closed")
				}
				var err error
				if d, err = parseSpan(diff); err != nil {
					return err
				}
				v.at = int64(d.to)
			}
			l, err := a.load(c.Context(), args[0], v)
			if err != nil {
				return err
			}
			if diff != "" {
				return a.surfaceDiff(l, d)
			}
			if a.flags.json {
				return a.line(surfaceJSON(l))
			}
			a.surfaceText(l)
			return nil
		},
	}
	v.register(c)
	c.Flags().StringVar(&diff, "diff", "", "what changed between two events, `A..B`")
	return c
}

// register adds --at and --closed.
func (v *viewFlags) register(c *cobra.Command) {
	v.registerAt(c)
	c.Flags().BoolVar(&v.closed, "closed", false, "with the closers of an open turn, as a writer would add them")
}

func (v *viewFlags) registerAt(c *cobra.Command) {
	c.Flags().Int64Var(&v.at, "at", everything, "as it was after the event `SEQ`")
	noDefault(c, "at")
}

// noDefault keeps the help from showing a default that only stands for "not
// given".
func noDefault(c *cobra.Command, names ...string) {
	for _, name := range names {
		c.Flags().Lookup(name).DefValue = "0"
	}
}

func (v *viewFlags) check(c *cobra.Command) error {
	if c.Flags().Changed("at") && v.at < 0 {
		return usagef("--at %d: an event has a seq from 0 on", v.at)
	}
	return nil
}

func surfaceJSON(l *seen) []byte {
	o := newAnswer().text("session", l.header.ID).number("at", int64(l.at)).
		raw("nodes", seqs(l.fold.Nodes)).number("generation", int64(l.fold.Generation)).
		boolean("openTurn", l.open).
		raw("replacements", list(len(l.fold.Replacements), func(dst []byte, i int) []byte {
			r := l.fold.Replacements[i]
			return append(dst, object().number("seq", int64(r.Seq)).number("start", int64(r.Start)).
				number("end", int64(r.End)).raw("shadowed", seqs(r.Shadowed)).end()...)
		}))
	return l.fallback(o).end()
}

// fallback marks an answer about a log without surface markers.
func (l *seen) fallback(o *answer) *answer {
	if l.noMarkers {
		o.text("fallback", "no-markers")
	}
	return o
}

// surfaceText draws the strata: a line for each node, below it what it covers.
func (a *app) surfaceText(l *seen) {
	st := a.style()
	after := ""
	if l.at >= 0 {
		after = fmt.Sprintf(" after event %d", l.at)
	}
	a.text(st.bold("surface of "+cut(l.id(), 44)) + after + "\n")
	a.text(fmt.Sprintf("%s over %s, %s\n", plural(len(l.fold.Nodes), "node"), plural(l.log.Len(), "event"), plural(l.fold.Generation, "edit")))
	if l.noMarkers {
		a.text("the messages of this log carry no surface markers: it can be looked at, not continued\n")
		return
	}
	under := map[outcrop.Seq]outcrop.Replacement{}
	for _, r := range l.fold.Replacements {
		under[r.Seq] = r
	}
	w := len(itoa(l.at))
	for _, n := range l.fold.Nodes {
		a.text(a.nodeLine(l.log, n, w, st))
		a.covered(l.log, under, n, w, st)
	}
	if l.open {
		a.text(st.yellow(fmt.Sprintf("turn %d is open", l.turn)) + "\n")
	}
}

// covered draws what lies under a node, in model order. A node that was covered
// may itself cover others; each stratum is one step deeper.
func (a *app) covered(log outcrop.Log, under map[outcrop.Seq]outcrop.Replacement, top outcrop.Seq, w int, st style) {
	type line struct {
		seq   outcrop.Seq
		depth int
		more  int // instead of a node: so many are left out
	}
	stack := []line{}
	push := func(of outcrop.Seq, depth int) {
		r, ok := under[of]
		if !ok {
			return
		}
		// Of a long stratum both ends are shown.
		const head, tail = 6, 3
		from := len(r.Shadowed)
		if n := from; n > head+tail+1 {
			for _, s := range slices.Backward(r.Shadowed[n-tail:]) {
				stack = append(stack, line{s, depth, 0})
			}
			stack = append(stack, line{-1, depth, n - head - tail})
			from = head
		}
		for _, s := range slices.Backward(r.Shadowed[:from]) {
			stack = append(stack, line{s, depth, 0})
		}
	}
	push(top, 1)
	for len(stack) > 0 {
		next := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		text := strings.Repeat("  ", min(next.depth, 12)) + "└ "
		if next.more > 0 {
			text += padLeft("…", w) + " " + plural(next.more, "more node")
		} else {
			text += padLeft(itoa(next.seq), w) + " " + describe(log.At(next.seq))
		}
		a.text(st.dim(cut(text, width)) + "\n")
		if next.more == 0 {
			push(next.seq, next.depth+1)
		}
	}
}

func (a *app) nodeLine(log outcrop.Log, n outcrop.Seq, w int, st style) string {
	ev := log.At(n)
	who, what := nodeParts(ev)
	left := padLeft(itoa(n), w) + " "
	rest := width - columns(left) - columns(who) - 1
	return left + st.cyan(who) + " " + cut(what, max(rest, 10)) + "\n"
}

// describe is one line about an event of the surface.
func describe(ev outcrop.Event) string {
	who, what := nodeParts(ev)
	return who + " " + what
}

// nodeParts says in one line who speaks in an event of the surface, and what.
func nodeParts(ev outcrop.Event) (who, what string) {
	msg := messageOf(ev)
	source := jsonwire.Get(msg, "source")
	kind, _ := jsonwire.Text(jsonwire.Get(source, "kind"))
	_, _, isReplace := ev.Op.Range()
	switch {
	case ev.Type == outcrop.TypeAssistantMessage:
		who = "assistant"
	case ev.Type == outcrop.TypeToolResult && isReplace:
		who = "result*"
	case ev.Type == outcrop.TypeToolResult:
		who = "result"
	case isCheckpoint(source):
		who = "checkpoint"
	case ev.Type == outcrop.TypeContextMessage:
		who = "context"
	case kind == "user":
		who = "user"
	case kind == "":
		who = "user"
	default:
		who = "context"
	}
	return who, oneLine(summary(msg))
}

// isCheckpoint reports the source of a message that stands for compacted ones.
func isCheckpoint(source []byte) bool {
	id, ok := jsonwire.Text(jsonwire.Get(source, "compactionId"))
	return ok && id != ""
}

// messageOf is the message in the data of an event of a surface type.
func messageOf(ev outcrop.Event) []byte {
	switch ev.Type {
	case outcrop.TypeAssistantMessage, outcrop.TypeToolResult:
		return jsonwire.Get(ev.Data, "message")
	}
	return ev.Data
}

// summary is the beginning of what a message says.
func summary(msg []byte) string {
	const enough = 400
	var b strings.Builder
	add := func(s string) {
		if s = strings.TrimSpace(s); s == "" {
			return
		}
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(s[:min(len(s), enough)])
	}
	for block := range jsonwire.Elements(jsonwire.Get(msg, "content")) {
		if b.Len() > enough {
			break
		}
		blockSummary(block, add)
	}
	if b.Len() == 0 {
		return "(empty)"
	}
	return b.String()
}

func blockSummary(block []byte, add func(string)) {
	kind, _ := jsonwire.Text(jsonwire.Get(block, "type"))
	switch kind {
	case "text":
		s, _ := jsonwire.Text(jsonwire.Get(block, "text"))
		add(s)
	case "reasoning":
	case "tool-call":
		name, _ := jsonwire.Text(jsonwire.Get(block, "name"))
		args, _ := jsonwire.Text(jsonwire.Get(block, "arguments"))
		add("[" + name + " " + argumentsLine(args) + "]")
	case "tool-result":
		if string(jsonwire.Get(block, "isError")) == "true" {
			add("(error)")
		}
		for inner := range jsonwire.Elements(jsonwire.Get(block, "content")) {
			blockSummary(inner, add)
		}
	case "image":
		add("[image]")
	default:
		add("[" + kind + "]")
	}
}

// argumentsLine shows the arguments of a call: the value alone when there is
// one plain member, else the JSON text.
func argumentsLine(args string) string {
	if jsonwire.Valid([]byte(args)) != nil {
		return args
	}
	n, value := 0, ""
	for _, v := range jsonwire.Members([]byte(args)) {
		n++
		s, ok := jsonwire.Text(v)
		if !ok {
			s = string(v)
		}
		value = s
	}
	if n == 1 {
		return value
	}
	if n == 0 {
		return ""
	}
	return args
}
