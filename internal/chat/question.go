package chat

import (
	"strings"
	"time"

	"github.com/outcrop-dev/outcrop/agent"
	"github.com/outcrop-dev/outcrop/internal/ask"
	"github.com/outcrop-dev/outcrop/internal/chat/tty"
	"github.com/outcrop-dev/outcrop/internal/term"
)

// question is a call that waits for a person.
type question struct {
	agent.Question
	answer chan agent.Answer // takes one answer without waiting

	at     time.Time // when it came
	shown  bool      // it is on the screen and takes keys
	armed  bool      // Tab or Enter gave it the keys although there is a draft
	sure   bool      // a was pressed, and waits for Enter
	why    bool      // the reason for a no is being typed
	draft  string    // what stood in the input line meanwhile
	stated bool      // the call was printed
}

// settle is how long no key must have come before a question takes keys: what a
// person was typing when it appeared must not answer it.
const settle = 500 * time.Millisecond

const choices = "[y] once  [a] this exact call for this session  [n] no  [e] no, and tell the model why"

// What stands in place of the choices: while a draft has the keys, and before a
// call is allowed for as long as the session lasts.
const (
	drafting   = "a question waits: Tab or Enter first"
	confirming = "allow this exact call for the whole session? Enter: yes  any other key: back"
)

// drafted reports that the input holds a draft, whose letters must not answer
// the question that is on the screen.
func (m *model) drafted() bool {
	q := m.question
	return q != nil && q.shown && !q.armed && !q.why && !m.edit.Empty()
}

// focus gives the keys to a question that waits, when it is on the screen and
// nobody is typing.
func (m *model) focus() {
	q := m.question
	if q == nil || q.shown {
		return
	}
	if _, known := m.asked[q.ID]; !known {
		return // what led to it was not shown yet
	}
	if !q.stated {
		m.flush()
		m.space()
		m.print(strings.Split(strings.TrimRight(ask.Text(q.Question, m.style), "\n"), "\n")...)
		q.stated = true
	}
	q.shown = m.now.Sub(q.at) >= settle && m.now.Sub(m.lastKey) >= settle
}

// unask takes a question away that is not asked any more.
func (m *model) unask(id string, elsewhere bool) {
	q := m.question
	if q == nil || q.ID != id {
		return
	}
	m.leaveReason()
	m.question = nil
	if elsewhere && q.stated {
		m.note(m.style.Dim, "answered on the page")
	}
}

func (m *model) leaveReason() {
	if q := m.question; q.why {
		q.why = false
		m.edit.Set(q.draft)
	}
}

// answerKey takes a key for the question. Enter alone means no; behind a it
// confirms.
func (m *model) answerKey(k tty.Key) []any {
	q := m.question
	if q.why {
		switch k.Name {
		case tty.Enter:
			reason := strings.TrimSpace(m.edit.Text())
			m.leaveReason()
			return m.decide(agent.Answer{Verdict: agent.Reject, Reason: reason}, "no: "+term.OneLine(reason))
		case tty.Escape:
			m.leaveReason()
			return nil
		}
		m.edit.Key(k)
		return nil
	}
	if q.sure {
		q.sure = false
		if k.Name == tty.Enter {
			return m.decide(agent.Answer{Verdict: agent.AllowSame}, "yes, this exact call for this session")
		}
		return nil
	}
	switch {
	case k.Name == tty.Enter:
		return m.decide(agent.Answer{Verdict: agent.Reject}, "no")
	case k.Name != tty.Text:
		return nil
	}
	switch strings.ToLower(k.Text) {
	case "y":
		return m.decide(agent.Answer{Verdict: agent.AllowOnce}, "yes, once")
	case "a":
		q.sure = true
	case "n":
		return m.decide(agent.Answer{Verdict: agent.Reject}, "no")
	case "e":
		q.why, q.draft = true, m.edit.Text()
		m.edit.Set("")
	}
	return nil
}

func (m *model) decide(a agent.Answer, said string) []any {
	q := m.question
	m.question = nil
	paint := m.style.Yellow
	if a.Verdict != agent.Reject {
		paint = m.style.Green
	}
	m.note(paint, said)
	return []any{answerEffect{q, a}}
}
