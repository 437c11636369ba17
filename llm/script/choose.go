package script

import (
	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/message"
)

// Attempt is a model call as a log tells of it. Code is the code of the
// failure it ended in, "" when it succeeded.
type Attempt struct {
	Turn    int
	Step    int
	Attempt int // from 1
	Purpose llm.Purpose
	Code    string
}

// Resume tells the model what a log says about earlier calls: the finished
// attempts of this script, in order. The choice is run over them without
// playing, and what it picks counts as used, so that the session goes on with
// the reply that is due. The text in a when counts as found. An attempt that a
// crash cut off is left out by the caller, and its reply is played again.
//
// An attempt that was refused before a reply was chosen used none: one that
// ended in a code of the model's own (INVALID_REQUEST,
// CONTEXT_WINDOW_EXCEEDED, SCRIPT_END) counts only when the reply it would have
// got ends in that very code.
//
// Call it before the first Stream. It does nothing for a model without Script.
func (m *Model) Resume(attempts []Attempt) {
	if m.Script == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, a := range attempts {
		if a.Purpose == "" {
			a.Purpose = llm.Turn
		}
		i := m.choose(a, func(string) bool { return true })
		if i < 0 {
			continue
		}
		switch a.Code {
		case message.CodeInvalidRequest, message.CodeContextWindow, CodeEnd:
			if m.Script.Replies[i].failureCode() != a.Code {
				continue
			}
		}
		m.use(i)
	}
}

func (r *Reply) failureCode() string {
	if r.Error != nil {
		return r.Error.Code
	}
	for i := range r.Chunks {
		if f := finishFailure(&r.Chunks[i]); f != nil {
			return f.Code
		}
	}
	return ""
}

// choose returns the index of the reply for a call, or -1. The caller holds
// the lock.
func (m *Model) choose(a Attempt, contains func(string) bool) int {
	if m.used == nil {
		m.used = make([]bool, len(m.Script.Replies))
	}
	open := -1
	for i := range m.Script.Replies {
		w := &m.Script.Replies[i].When
		if m.used[i] || open >= 0 && !w.placed() || !w.fits(a, contains) {
			continue
		}
		if w.placed() {
			return i
		}
		open = i
	}
	return open
}

// use marks a reply. The caller holds the lock.
func (m *Model) use(i int) {
	purpose := m.Script.Replies[i].When.Purpose
	if purpose == "" {
		purpose = llm.Turn
	}
	if m.last == nil {
		m.last = make(map[llm.Purpose]int)
	}
	m.used[i], m.last[purpose] = true, i
}
