package cli

import (
	"fmt"
	"strings"

	"github.com/outcrop-dev/outcrop/internal/answer"
	"github.com/outcrop-dev/outcrop/internal/term"
	"github.com/outcrop-dev/outcrop/internal/usage"
	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/message"
)

// sumJSON adds a sum to an answer.
func sumJSON(o *answer.Object, s *usage.Sum) *answer.Object {
	o.Number("calls", s.Calls).Number("failed", s.Failed)
	if s.Known == 0 {
		o.Raw("usage", []byte("null"))
	} else {
		u := message.Usage{InputTokens: s.Input, OutputTokens: s.Output, CacheReadTokens: &s.CacheRead, CacheWriteTokens: &s.CacheWrite, ReasoningTokens: &s.Reasoning}
		o.Raw("usage", u.AppendJSON(nil))
	}
	if micro, ok := s.Total(); ok {
		o.Number("costMicroUSD", micro)
	} else {
		o.Raw("costMicroUSD", []byte("null"))
	}
	return o.Number("knownCostMicroUSD", s.Cost).Number("unpriced", s.Unpriced)
}

// usageRows prints the sessions and their sum.
func (a *app) usageRows(rows []spent, all usage.Sum) error {
	if a.Flags.JSON {
		for i := range rows {
			r := &rows[i]
			o := sumJSON(answer.Inner().Text("id", r.id).TextOrNull("parent", r.parent), &r.Own)
			if r.Inherited.Calls > 0 {
				o.Raw("inherited", sumJSON(answer.Inner(), &r.Inherited).End())
			} else {
				o.Raw("inherited", []byte("null"))
			}
			if err := a.Line(answer.New().Raw("session", o.TextOrNull("reason", r.reason).End()).End()); err != nil {
				return err
			}
		}
		o := answer.Inner().Number("sessions", int64(len(rows)))
		return a.Line(answer.New().Raw("total", sumJSON(o, &all).End()).End())
	}
	st := a.Style()
	a.Text(st.Bold(sumHead("SESSION")) + "\n")
	for i := range rows {
		r := &rows[i]
		a.Text(sumRow(r.id, &r.Own) + "\n")
		if r.Inherited.Calls > 0 {
			a.Text(st.Dim(sumRow("  taken over", &r.Inherited)) + "\n")
		}
		for _, l := range term.Wrap(r.reason, term.Width-2) {
			if l != "" {
				a.Text("  " + st.Red(l) + "\n")
			}
		}
	}
	if len(rows) > 1 {
		a.Text(st.Bold(sumRow(term.Plural(len(rows), "session"), &all)) + "\n")
	}
	return nil
}

func sumHead(what string) string {
	return term.Pad(what, 22) + tabled("CALLS", 6) + tabled("FAILED", 7) + tabled("INPUT", 8) + tabled("CACHED", 8) + tabled("WRITTEN", 8) + tabled("OUTPUT", 8) + tabled("COST", 12)
}

func sumRow(what string, s *usage.Sum) string {
	count := func(n int64) string { return tabled(tokens(n), 8) }
	row := term.Pad(term.Cut(term.Line(what), 22), 22) + tabled(tokens(s.Calls), 6) + tabled(tokens(s.Failed), 7)
	if s.Known == 0 && s.Calls > 0 {
		row += strings.Repeat(tabled("?", 8), 4)
	} else {
		row += count(s.Input) + count(s.CacheRead) + count(s.CacheWrite) + count(s.Output)
	}
	cost := microDollars(s.Cost)
	switch _, ok := s.Total(); {
	case s.Calls == 0:
		cost = "-"
	case !ok && s.Cost == 0:
		cost = "?"
	case !ok:
		cost = ">" + cost
	}
	return row + tabled(cost, 12)
}

func tabled(s string, n int) string { return term.PadLeft(s, n) }

// tokens writes a number in at most seven columns.
func tokens(n int64) string {
	switch {
	case n < 1_000_000:
		return term.Count(n)
	case n < 100_000_000:
		return fmt.Sprintf("%d.%02dM", n/1_000_000, n/10_000%100)
	case n < 1_000_000_000_000:
		return term.Count(n/1_000_000) + "M"
	}
	return "many"
}

// microDollars writes micro-dollars in at most eleven columns.
func microDollars(micro int64) string {
	switch {
	case micro < 1_000_000_000:
		return fmt.Sprintf("$%d.%06d", micro/1_000_000, micro%1_000_000)
	case micro < 1_000_000_000_000:
		return fmt.Sprintf("$%s.%02d", term.Count(micro/1_000_000), micro/10_000%100)
	}
	return "$" + tokens(micro/1_000_000)
}

// callList prints the calls of one session.
type callList struct {
	a       *app
	session string
	model   string // of the line above
	lines   int
}

func (a *app) newCallList(session string) *callList { return &callList{a: a, session: session} }

func (l *callList) add(c *usage.Call) error {
	l.lines++
	if l.a.Flags.JSON {
		return l.a.Line(answer.New().Raw("call", callJSON(l.session, c)).End())
	}
	st := l.a.Style()
	if l.lines == 1 {
		l.a.Text(st.Bold(term.Pad("CALL", 22)+tabled("INPUT", 8)+tabled("CACHED", 8)+tabled("WRITTEN", 8)+tabled("OUTPUT", 8)+tabled("COST", 12)+"  NOTE") + "\n")
	}
	if model := term.Line(c.Provider + ":" + c.Model); model != l.model && model != ":" {
		l.model = model
		l.a.Text(st.Cyan(term.Cut(model, term.Width)) + "\n")
	}
	what := c.Purpose
	if c.Purpose == string(llm.Turn) {
		what = fmt.Sprintf("turn %d step %d", c.Turn, c.Step)
		if c.Attempt > 1 {
			what += fmt.Sprintf(" try %d", c.Attempt)
		}
	} else if c.Calls > 1 {
		what += ", " + term.Plural(c.Calls, "call")
	}
	row := term.Pad(term.Cut(term.Line(what), 22), 22)
	unknown := "-"
	if c.Unpriced {
		unknown = "?"
	}
	if u := c.Usage; u == nil {
		row += strings.Repeat(tabled(unknown, 8), 4)
	} else {
		for _, n := range [...]*int64{&u.InputTokens, u.CacheReadTokens, u.CacheWriteTokens, &u.OutputTokens} {
			if n == nil {
				row += tabled("-", 8)
			} else {
				row += tabled(tokens(*n), 8)
			}
		}
	}
	if c.Cost == nil {
		row += tabled(unknown, 12)
	} else {
		row += tabled(microDollars(*c.Cost), 12)
	}
	l.a.Text(row)
	switch {
	case c.Outcome == usage.Failed:
		l.a.Text("  " + st.Red("failed"))
	case c.Outcome != usage.Answered:
		l.a.Text("  " + st.Yellow(string(c.Outcome)))
	case c.CacheBreak != "":
		l.a.Text("  " + st.Dim("new "+c.CacheBreak))
	}
	l.a.Text("\n")
	return nil
}

func callJSON(session string, c *usage.Call) []byte {
	positive := func(n int) int64 {
		if n == 0 {
			return -1
		}
		return int64(n)
	}
	o := answer.Inner().Text("session", session).Number("seq", int64(c.Seq)).Number("time", c.Time).
		Text("purpose", c.Purpose).NumberOrNull("turn", positive(c.Turn)).NumberOrNull("step", positive(c.Step)).
		NumberOrNull("attempt", positive(c.Attempt)).Number("calls", int64(c.Calls)).
		TextOrNull("provider", c.Provider).TextOrNull("model", c.Model).Text("outcome", string(c.Outcome)).
		Raw("usage", c.Usage.AppendJSON(nil))
	if c.Cost == nil {
		o.Raw("costMicroUSD", []byte("null"))
	} else {
		o.Number("costMicroUSD", *c.Cost)
	}
	return o.TextOrNull("cacheBreak", c.CacheBreak).End()
}
