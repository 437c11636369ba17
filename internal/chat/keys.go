package chat

import (
	"strings"

	"github.com/outcrop-dev/outcrop/internal/chat/edit"
	"github.com/outcrop-dev/outcrop/internal/chat/tty"
	"github.com/outcrop-dev/outcrop/internal/term"
)

// key takes a key.
func (m *model) key(k tty.Key) []any {
	m.hint, m.choices = "", nil
	if k.Name == tty.Ctrl {
		switch k.Text {
		case "c":
			return m.interrupt()
		case "l":
			return []any{clearEffect{}}
		case "z":
			return []any{suspendEffect{}}
		}
	}
	m.focus()
	if q := m.question; q != nil && q.shown {
		switch {
		case !m.drafted():
			return m.answerKey(k)
		case k.Name == tty.Tab || k.Name == tty.Enter:
			q.armed = true
			return nil
		}
		q.shown = false // the person types on: the question waits for a pause again
	}
	m.lastKey = m.now
	switch {
	case k.Name == tty.Ctrl && k.Text == "d" && m.edit.Empty():
		return m.leave()
	case k.Name == tty.Ctrl && k.Text == "o":
		return m.unfoldLast()
	case k.Name == tty.Tab:
		return m.complete()
	case m.edit.Key(k):
		return nil
	case k.Name == tty.Enter:
		return m.enter()
	case k.Name == tty.Paste || k.Name == tty.Text || k.Name == tty.NewLine:
		m.hint = "there is no room: a message has at most " + term.Size(edit.MaxText)
	}
	return nil
}

// interrupt is Ctrl-C: it stops what runs; while that ends, and when nothing
// runs, it leaves.
func (m *model) interrupt() []any {
	switch {
	case m.action != "":
		m.hint = m.action + " is being stopped"
		return []any{stopEffect{}}
	case m.busy && !m.stopping:
		m.stopping = true
		return []any{cancelEffect{}}
	}
	return m.leave()
}

// leave ends the chat. A text that was not sent is kept in the history.
func (m *model) leave() []any {
	if q := m.question; q != nil {
		m.leaveReason()
	}
	if text := m.edit.Text(); strings.TrimSpace(text) != "" {
		return []any{rememberEffect{m.edit.Take()}, leaveEffect{}}
	}
	return []any{leaveEffect{}}
}

// enter sends what was typed, or does it.
func (m *model) enter() []any {
	text := strings.TrimSpace(m.edit.Text())
	switch {
	case text == "" && len(m.files) == 0:
		return nil
	case m.action == starting:
		m.early = true
		return nil
	case m.action != "":
		m.hint = "wait for " + m.action + ", or stop it with Ctrl-C"
		return nil
	case strings.HasPrefix(text, "/"):
		if effects, ok := m.slash(text); ok {
			return effects
		}
	}
	var effects []any
	m.edit.Set(text)
	if text != "" {
		effects = append(effects, rememberEffect{m.edit.Take()})
	}
	files := m.files
	m.files = nil
	return append(effects, sendEffect{text: text, files: append(files, mentioned(text)...), steer: m.busy})
}

// mentioned are the files that a text names as @path.
func mentioned(text string) (paths []string) {
	for word := range strings.FieldsSeq(text) {
		if p, ok := strings.CutPrefix(word, "@"); ok && p != "" {
			paths = append(paths, p)
		}
	}
	return paths
}

// slash runs an action. It reports false for a text that only begins with a
// slash, as a path does.
func (m *model) slash(text string) ([]any, bool) {
	name, arg, _ := strings.Cut(text[1:], " ")
	if strings.Contains(name, "/") {
		return nil, false
	}
	a, ok := find(m.actions, name)
	switch {
	case !ok:
		m.hint = "there is no /" + term.Cut(term.Line(name), 20) + meant(name, m.actions)
		return []any{rememberEffect{m.edit.Take()}}, true // Up brings it back
	case a.Idle && m.busy:
		m.hint = "/" + a.Name + " waits for the end of the turn: Ctrl-C stops it"
		return nil, true
	}
	m.action = "/" + a.Name
	return []any{rememberEffect{m.edit.Take()}, actionEffect{a, strings.TrimSpace(arg)}}, true
}

// unfoldLast shows the last thing that was folded.
func (m *model) unfoldLast() []any {
	switch {
	case m.action != "":
		return nil
	case len(m.shown) == 0:
		m.hint = "nothing is folded yet"
		return nil
	}
	a, _ := find(m.actions, "show")
	m.action = "/show"
	return []any{actionEffect{a, ""}}
}

// complete completes the word before the cursor: an action, or a path after @.
func (m *model) complete() []any {
	before := m.edit.Before()
	word := before[strings.LastIndexAny(before, " \t")+1:]
	switch {
	case strings.HasPrefix(word, "/") && word == m.edit.Text():
		var names []string
		for _, a := range m.actions {
			if strings.HasPrefix(a.Name, word[1:]) {
				names = append(names, "/"+a.Name)
			}
		}
		m.choose(choiceOf(word, names))
	case strings.HasPrefix(word, "@"), strings.HasPrefix(before, "/attach "):
		return []any{completeEffect{word}}
	default:
		m.edit.Insert("\t")
	}
	return nil
}

// choiceOf is what a completion comes to: the text that all names begin with,
// and the names, when there are several.
func choiceOf(typed string, names []string) choiceMsg {
	msg := choiceMsg{typed: typed, to: typed}
	if len(names) == 0 {
		return msg
	}
	msg.to = names[0]
	for _, n := range names[1:] {
		for !strings.HasPrefix(n, msg.to) {
			r := []rune(msg.to)
			msg.to = string(r[:len(r)-1])
		}
	}
	if len(names) == 1 {
		if !strings.HasSuffix(msg.to, "/") {
			msg.to += " "
		}
		return msg
	}
	msg.choices = names
	return msg
}

// choose puts a completion in place, unless the text changed meanwhile.
func (m *model) choose(c choiceMsg) {
	if !strings.HasSuffix(m.edit.Before(), c.typed) {
		return
	}
	if strings.HasPrefix(c.to, c.typed) && c.to != c.typed {
		m.edit.Replace(len(c.typed), c.to)
	}
	m.choices = c.choices
}
