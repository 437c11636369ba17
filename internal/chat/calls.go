package chat

import (
	"fmt"
	"strings"
	"time"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/brief"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/internal/term"
	"github.com/outcrop-dev/outcrop/message"
)

// calls are the calls of the running step, in the model's order.
type calls struct{ list []*call }

// call is one call, folded to a line.
type call struct {
	id, name, what string
	number         int // for /show
	start          int64
	took           time.Duration
	began, done    bool
	failed         bool
	result         string // how its result begins
}

// add takes a call that the model asked for.
func (cs *calls) add(b message.Block, number int) {
	what := brief.Call(b.Arguments)
	if what == "{}" {
		what = ""
	}
	cs.list = append(cs.list, &call{id: b.ID, name: b.Name, what: what, number: number})
}

func (cs *calls) find(id string) *call {
	for _, c := range cs.list {
		if c.id == id && !c.done {
			return c
		}
	}
	return nil
}

// started is told that a call runs, or is asked about.
func (cs *calls) started(ev outcrop.Event) {
	id, _ := jsonwire.Text(jsonwire.Get(ev.Data, "callId"))
	if c := cs.find(id); c != nil {
		c.began, c.start = true, ev.Time
	}
}

// restart is told that a person answered about a call: the time of asking is not
// the call's.
func (cs *calls) restart(id string, at int64) {
	if c := cs.find(id); c != nil {
		c.start = at
	}
}

// ended is told of a result and returns its call.
func (cs *calls) ended(ev outcrop.Event) *call {
	msg, err := message.Parse(brief.MessageOf(ev))
	if err != nil || len(msg.Content) == 0 {
		return nil
	}
	c := cs.find(msg.Content[0].ToolCallID)
	if c == nil {
		return nil
	}
	c.done, c.failed = true, msg.Content[0].IsError
	if c.began {
		c.took = time.Duration(max(ev.Time-c.start, 0)) * time.Millisecond
	}
	if c.failed {
		text := message.PlainText(msg.Content[0].Content)
		c.result = term.OneLine(text[:min(len(text), 400)])
	}
	return c
}

// callLine is a call as one line: state, what it does, how long it took, its
// number.
func (m *model) callLine(c *call) string {
	state, end := m.style.Dim("·"), ""
	switch {
	case c.done && c.failed:
		state, end = m.style.Red("✗"), seconds(c.took)
	case c.done:
		state, end = m.style.Green("✓"), seconds(c.took)
	case c.began:
		state, end = m.style.Cyan(m.spinner()), seconds(m.now.Sub(time.UnixMilli(c.start)))
	}
	if end != "" {
		end = " " + end
	}
	end += fmt.Sprintf(" [%d]", c.number)
	if term.Columns(end) > m.textWidth()/2 {
		end = ""
	}
	room := m.textWidth() - 2 - term.Columns(end)
	name := term.Cut(term.Line(c.name), max(room/2, 4))
	text := name
	if left := room - term.Columns(name) - 1; left > 3 && c.what != "" {
		text += " " + m.style.Dim(term.Cut(c.what, left))
		if left -= term.Columns(term.Cut(c.what, left)) + 2; c.result != "" && left > 10 {
			text += "  " + m.style.Red(term.Cut(c.result, left))
		}
	}
	return state + " " + text + m.style.Dim(end)
}

// seconds is a duration for people; below a tenth of a second nothing.
func seconds(d time.Duration) string {
	switch {
	case d < 100*time.Millisecond:
		return ""
	case d < 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < 2*time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	}
	return fmt.Sprintf("%d min", int(d.Minutes()))
}

// fold is something that was shown as a line, or not at all, and can be shown
// in full: a block of a message, and the result of a call.
type fold struct {
	seq    outcrop.Seq // of the assistant/message
	block  int
	result outcrop.Seq // 0: none yet
}

// fold remembers what can be shown and returns its number, from 1.
func (m *model) fold(f fold) int {
	m.shown = append(m.shown, f)
	return len(m.shown)
}

// maxShown is how many lines of something that was folded are shown.
const maxShown = 400

// unfold is what /show prints.
func (m *model) unfold(log outcrop.Log, number int) string {
	if number < 1 || number > len(m.shown) {
		return "there is no number " + fmt.Sprint(number) + " here"
	}
	f := m.shown[number-1]
	msg, err := message.Parse(brief.MessageOf(log.At(f.seq)))
	if err != nil || f.block >= len(msg.Content) {
		return "nothing is left of it"
	}
	var b strings.Builder
	block := msg.Content[f.block]
	if block.Type != message.ToolCallBlock {
		b.WriteString(m.style.Bold(fmt.Sprintf("[%d] reasoning", number)) + "\n")
		b.WriteString(m.body(block.Text, f.seq))
		return b.String()
	}
	b.WriteString(m.style.Bold(fmt.Sprintf("[%d] %s", number, term.Line(block.Name))) + "\n")
	b.WriteString(m.body(arguments(block.Arguments), f.seq))
	if f.result == 0 {
		return b.String()
	}
	res, err := message.Parse(brief.MessageOf(log.At(f.result)))
	if err != nil || len(res.Content) == 0 {
		return b.String()
	}
	head := "result"
	if res.Content[0].IsError {
		head = "error"
	}
	b.WriteString(m.style.Dim("-- "+head) + "\n")
	b.WriteString(m.body(message.PlainText(res.Content[0].Content), f.result))
	return b.String()
}

// arguments are the arguments of a call for people: one plain member as it is,
// else indented JSON.
func arguments(args string) string {
	if s := brief.Arguments(args); s != args {
		return s
	}
	return string(jsonwire.Indent([]byte(args)))
}

// body is text, indented, at most maxShown lines of it.
func (m *model) body(text string, seq outcrop.Seq) string {
	if text == "" {
		return ""
	}
	lines := strings.Split(strings.TrimRight(term.Text(text), "\n"), "\n")
	end := ""
	if n := len(lines) - maxShown; n > 0 {
		lines = lines[:maxShown]
		end = m.style.Dim(fmt.Sprintf("  (%s; all of it is event %d of the log)", term.Plural(n, "more line"), seq)) + "\n"
	}
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(strings.TrimRight("  "+strings.ReplaceAll(l, "\t", "    "), " ") + "\n")
	}
	return b.String() + end
}
