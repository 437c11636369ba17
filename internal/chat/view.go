package chat

import (
	"fmt"
	"strings"
	"time"

	"github.com/outcrop-dev/outcrop/agent"
	"github.com/outcrop-dev/outcrop/internal/chat/tty"
	"github.com/outcrop-dev/outcrop/internal/term"
)

const (
	mostCalls   = 6 // calls that are shown as running
	mostQueued  = 3
	mostChoices = 4 // rows of completions
)

// view draws what is live: from the answer that is being written down to the
// line with the state. What does not fit is left out from the top.
func (m *model) view() tty.Frame {
	var below []string
	below = append(below, m.callLines()...)
	below = append(below, m.queueLines()...)
	for _, f := range m.files {
		below = append(below, m.style.Dim(term.Cut("attached: "+term.Line(f), m.width-1)))
	}
	if m.hint != "" {
		for _, l := range term.Wrap(m.hint, m.width-1) {
			below = append(below, m.style.Yellow(l))
		}
	}
	below = append(below, m.choiceLines()...)
	input, row, col := m.input()
	status := m.statusLine()

	room := m.height - 1 - len(input) - 1
	if n := len(below) - max(room, 0); n > 0 {
		below = below[n:]
	}
	var lines []string
	if tail := m.tail(room - len(below)); len(tail) > 0 {
		lines = append(lines, tail...)
	}
	lines = append(lines, below...)
	f := tty.Frame{Row: len(lines) + row, Col: col}
	lines = append(lines, input...)
	f.Lines = append(lines, status)
	return f
}

// tail is what is being written now.
func (m *model) tail(room int) []string {
	if room <= 0 {
		return nil
	}
	switch {
	case m.building != "":
		text := "writing a call: " + term.Line(m.building)
		if m.built > 1000 {
			text += ", " + term.Size(int64(m.built))
		}
		return append(m.answer.Tail(room-1), m.style.Dim(term.Cut(text, m.width-1)))
	case m.thinking > 0:
		head := fmt.Sprintf("thinking, %s: ", term.Plural(m.thinking, "character"))
		words := strings.Fields(term.OneLine(m.thought))
		for len(words) > 1 && term.Columns(head)+term.Columns(strings.Join(words, " ")) > m.width-1 {
			words = words[1:]
		}
		return []string{m.style.Dim(term.Cut(head+strings.Join(words, " "), m.width-1))}
	}
	return m.answer.Tail(room)
}

func (m *model) callLines() (lines []string) {
	for i, c := range m.calls.list {
		if i == mostCalls {
			return append(lines, m.style.Dim(term.Plural(len(m.calls.list)-i, "more call")))
		}
		lines = append(lines, m.callLine(c))
	}
	return lines
}

func (m *model) queueLines() (lines []string) {
	n := 0
	for _, list := range [...]struct {
		of   []queued
		name string
	}{{m.queue.step, "queued: "}, {m.queue.turn, "next: "}} {
		for _, q := range list.of {
			if n++; n <= mostQueued {
				lines = append(lines, m.style.Dim(term.Cut(list.name+term.OneLine(q.text[:min(len(q.text), 400)]), m.width-1)))
			}
		}
	}
	if n > mostQueued {
		lines = append(lines, m.style.Dim(fmt.Sprintf("and %d more", n-mostQueued)))
	}
	return lines
}

func (m *model) choiceLines() []string {
	if len(m.choices) == 0 {
		return nil
	}
	var names []string
	for _, c := range m.choices {
		names = append(names, term.Line(c))
	}
	lines := term.Wrap(strings.Join(names, "  "), m.width-1)
	if n := len(lines) - mostChoices; n > 0 {
		lines = append(lines[:mostChoices], "…")
	}
	for i := range lines {
		lines[i] = m.style.Dim(lines[i])
	}
	return lines
}

// input is where a person types, or the choices of a question.
func (m *model) input() (lines []string, row, col int) {
	lead := "> "
	switch q := m.question; {
	case q == nil:
	case q.why:
		lead = "why: "
	case q.shown:
		said := choices
		switch {
		case m.drafted():
			said = drafting
		case q.sure:
			said = confirming
		}
		for _, l := range term.Wrap(said, m.width-2) {
			lines = append(lines, m.style.Bold(l))
		}
		if m.drafted() {
			break
		}
		last := len(lines) - 1
		return lines, last, min(term.Visible(lines[last])+1, m.width-1)
	}
	above := len(lines)
	text, row, col := m.edit.View(m.width-len(lead)-1, max(min(m.height/2, 12), 1))
	for i, l := range text {
		if i == 0 {
			lines = append(lines, m.style.Cyan(lead)+l)
		} else {
			lines = append(lines, strings.Repeat(" ", len(lead))+l)
		}
	}
	return lines, above + row, col + len(lead)
}

// statusLine has what matters most first; what does not fit is left out.
func (m *model) statusLine() string {
	parts := []string{m.state(), m.gauge.String()}
	if n := m.queue.len(); n > 0 {
		parts = append(parts, fmt.Sprintf("%d pending", n))
	}
	if c := m.cost.String(); c != "" {
		parts = append(parts, c)
	}
	line, room := "", m.width-1
	for _, p := range parts {
		if p == "" {
			continue
		}
		if line != "" {
			p = "  " + p
		}
		if w := term.Columns(p); w <= room {
			line += p
			room -= w
		}
	}
	name := term.Line(m.name)
	if _, model, ok := strings.Cut(name, ":"); ok && term.Columns(name)+2 > room {
		name = model
	}
	if line == "" {
		room += 2
	}
	if room > 7 {
		if name = term.Cut(name, room-2); line != "" {
			line = name + "  " + line
		} else {
			line = name
		}
	}
	if m.gauge.share() >= 80 {
		return m.style.Yellow(line)
	}
	return m.style.Dim(line)
}

// state says what goes on, with how long it has been.
func (m *model) state() string {
	if m.action != "" {
		return m.action
	}
	if q := m.question; q != nil && !q.shown {
		return "a question waits for a pause"
	}
	if !m.busy {
		return ""
	}
	what := "working"
	switch {
	case m.stopping:
		return "stopping, Ctrl-C leaves"
	case m.question != nil:
		return "asks"
	case m.thinking > 0:
		what = "thinking"
	case m.streamed || m.building != "":
		what = "writing"
	case m.status.Phase == agent.Retrying:
		what = "trying again"
	case m.status.Phase == agent.Running:
		what = "running"
	case m.status.Phase == agent.Calling:
		what = "waiting"
	}
	text := m.spinner() + " " + what
	if t := seconds(m.now.Sub(m.began).Truncate(time.Second)); t != "" {
		text += " " + strings.Replace(t, ".0", "", 1)
	}
	return text
}

var spin = [...]string{"⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"}

// spinner turns while time goes on.
func (m *model) spinner() string {
	return spin[uint64(m.now.UnixMilli())/125%uint64(len(spin))]
}

// animated reports that the screen changes by time alone.
func (m *model) animated() bool {
	return m.busy || m.action != "" || m.question != nil && !m.question.shown
}
