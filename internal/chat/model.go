package chat

import (
	"strings"
	"time"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/agent"
	"github.com/outcrop-dev/outcrop/internal/chat/edit"
	"github.com/outcrop-dev/outcrop/internal/chat/markdown"
	"github.com/outcrop-dev/outcrop/internal/chat/tty"
	"github.com/outcrop-dev/outcrop/internal/term"
	"github.com/outcrop-dev/outcrop/message"
)

// model is the state of the screen. It does no I/O and reads no clock: what
// happens comes to update, what is to be done comes out as effects, what is
// finished goes to out, and view draws what is live.
type model struct {
	style         term.Style
	width, height int
	now           time.Time
	actions       []Action

	out  []string // finished lines that are not printed yet
	gap  bool     // the last finished line is empty
	edit edit.Editor

	// The answer that is being written.
	answer   *markdown.Stream
	streamed bool   // a part of this attempt's text came as chunks
	thought  string // the end of the reasoning that came
	thinking int    // its length in characters
	building string // the call that is being written
	built    int    // its length in bytes
	calls    calls
	retries  int // of the step

	queue    queue
	question *question
	asked    map[string]string // questions that the log knows and nobody answered: their calls
	files    []string          // attached to the next message

	status   agent.Status
	busy     bool // the agent has something to do
	stopping bool // the turn was cancelled here
	began    time.Time
	lastKey  time.Time
	action   string // the action that runs, with its slash
	early    bool   // Enter came before the agent was there
	hint     string // one line that stays until the next key
	choices  []string
	replay   bool // old events are shown again

	name  string // of the model that answers
	gauge gauge
	cost  cost
	shown []fold
}

// What update takes.
type (
	keyMsg   struct{ tty.Key }
	eventMsg struct{ outcrop.Event }
	tickMsg  struct{ status agent.Status }
	sizeMsg  struct{ cols, rows int }
	printMsg struct{ text string } // safe text for people, from the program
	busyMsg  struct{ busy bool }
	endMsg   struct{ err error } // the agent is idle; what went wrong besides
	failMsg  struct{ err error }
	askMsg   struct{ question *question }
	unaskMsg struct {
		id        string // of the question that is gone
		elsewhere bool   // somebody answered it on the page
	}
	backMsg   struct{ text string }
	fileMsg   struct{ name string }
	choiceMsg struct {
		typed, to string
		choices   []string
	}
	funcMsg struct{ f func(*model) }
	ranMsg  struct{ err error } // the action ended
)

// What update wants done.
type (
	sendEffect struct {
		text  string
		files []string
		steer bool
	}
	cancelEffect struct{}
	answerEffect struct {
		question *question
		answer   agent.Answer
	}
	actionEffect struct {
		action Action
		arg    string
	}
	stopEffect     struct{} // the action that runs
	completeEffect struct{ word string }
	rememberEffect struct{ entry string }
	clearEffect    struct{}
	suspendEffect  struct{}
	leaveEffect    struct{}
)

func newModel(style term.Style, cols, rows int, actions []Action) *model {
	m := &model{style: style, gap: true, actions: actions, asked: map[string]string{}}
	m.answer = markdown.New(style, cols)
	m.resize(cols, rows)
	return m
}

func (m *model) resize(cols, rows int) {
	m.width, m.height = max(cols, 8), max(rows, 3)
	m.answer.Resize(m.textWidth())
}

// textWidth is how wide prose is: lines that are longer are hard to read.
func (m *model) textWidth() int { return min(m.width-1, 100) }

// update takes what happened at a time.
func (m *model) update(now time.Time, msg any) (effects []any) {
	m.now = now
	switch msg := msg.(type) {
	case keyMsg:
		return m.key(msg.Key)
	case eventMsg:
		m.event(msg.Event)
	case tickMsg:
		m.status = msg.status
		m.focus()
	case sizeMsg:
		m.resize(msg.cols, msg.rows)
	case printMsg:
		m.print(strings.Split(strings.TrimRight(msg.text, "\n"), "\n")...)
	case busyMsg:
		if msg.busy && !m.busy {
			m.began = now
		}
		m.busy = msg.busy
		m.stopping = m.stopping && msg.busy
	case endMsg:
		if msg.err != nil {
			m.problem(msg.err)
		}
	case failMsg:
		m.problem(msg.err)
	case askMsg:
		m.question = msg.question
		m.question.at = now
		m.focus()
	case unaskMsg:
		m.unask(msg.id, msg.elsewhere)
	case backMsg:
		m.giveBack(msg.text)
	case fileMsg:
		m.files = append(m.files, msg.name)
	case choiceMsg:
		m.choose(msg)
	case funcMsg:
		msg.f(m)
	case ranMsg:
		m.action = ""
		if msg.err != nil {
			m.problem(msg.err)
		}
		if m.early {
			m.early = false
			return m.enter()
		}
	}
	return nil
}

// print finishes lines; text of data in them is safe.
func (m *model) print(lines ...string) {
	for _, l := range lines {
		m.out = append(m.out, l)
		m.gap = l == ""
	}
}

// space finishes an empty line, unless there is one.
func (m *model) space() {
	if !m.gap {
		m.print("")
	}
}

// note prints a line of the program's own, wrapped.
func (m *model) note(paint func(string) string, text string) {
	for _, l := range term.Wrap(text, m.textWidth()) {
		m.print(paint(l))
	}
}

func (m *model) problem(err error) {
	m.flush()
	m.note(m.style.Red, explain(err))
}

// giveBack puts text that was not used into the input line, before what stands
// there.
func (m *model) giveBack(text string) {
	if text == "" {
		return
	}
	if now := m.edit.Text(); strings.TrimSpace(now) != "" {
		text += "\n" + now
	}
	m.edit.Set(text)
}

// drain returns what is finished and was not printed yet.
func (m *model) drain() []string {
	m.print(m.answer.Lines()...)
	out := m.out
	m.out = nil
	return out
}

// flush finishes what was being written.
func (m *model) flush() {
	m.answer.Close()
	m.print(m.answer.Lines()...)
	m.thought, m.thinking, m.building, m.built = "", 0, "", 0
}

// queue is what waits in the inbox: the fold of agent/inbox/spliced.
type queue struct{ step, turn []queued }

type queued struct{ id, text string }

func (q *queue) len() int { return len(q.step) + len(q.turn) }

func queuedOf(m message.Message) queued { return queued{m.ID, typed(m)} }

// typed is what a person typed of a message, without what was attached.
func typed(m message.Message) string {
	for _, b := range m.Content {
		if b.Type == message.TextBlock {
			return b.Text
		}
	}
	return ""
}
