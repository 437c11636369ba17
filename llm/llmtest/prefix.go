package llmtest

import (
	"bytes"
	"strings"
	"sync"

	"github.com/outcrop-dev/outcrop/internal/jsonwire"
)

// Referee holds bodies against all rules. It remembers the last accepted
// request of each session for rule 13. It is safe for use by several
// goroutines.
type Referee struct {
	Rules

	mu       sync.Mutex
	sessions map[string]*session
}

type session struct {
	system, tools []byte
	messages      [][]byte // without cache marks
	announced     string   // why the next request may begin in another way
}

// NewReferee makes a referee without any memory.
func NewReferee(r Rules) *Referee {
	return &Referee{Rules: r, sessions: map[string]*session{}}
}

// Judge holds the next body of a session against rules 1 to 13; nil means that
// it is accepted. Without a session's name rule 13 is left out.
func (r *Referee) Judge(name string, body []byte) *Refusal {
	_, f := r.judge(name, body)
	return f
}

func (r *Referee) judge(name string, body []byte) (prompt int64, f *Refusal) {
	prompt, f = r.check(body)
	if f != nil || name == "" {
		return prompt, f
	}
	now := &session{system: withoutMarks(jsonwire.Get(body, "system")), tools: withoutMarks(jsonwire.Get(body, "tools"))}
	for v := range jsonwire.Elements(jsonwire.Get(body, "messages")) {
		now.messages = append(now.messages, withoutMarks(v))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if was := r.sessions[name]; was != nil && was.announced == "" {
		if f := was.goesOn(now); f != nil {
			return prompt, f
		}
	}
	r.sessions[name] = now
	return prompt, nil
}

// Announce says that the next accepted request of a session may begin in
// another way than the one before, and why: the log has an edit, or another
// request header.
func (r *Referee) Announce(name, why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.sessions[name]; s != nil {
		s.announced = why
	}
}

// goesOn is rule 13: what was sent stands at the beginning of what is sent now.
// Only the last message may have become longer.
func (s *session) goesOn(now *session) *Refusal {
	switch {
	case !bytes.Equal(s.system, now.system):
		return refuse(13, -1, "system changed, and nothing announced it")
	case !bytes.Equal(s.tools, now.tools):
		return refuse(13, -1, "tools changed, and nothing announced it")
	}
	last := len(s.messages) - 1
	for i, was := range s.messages {
		switch {
		case i >= len(now.messages):
			return refuse(13, i, "the request before had this message, this one ends before it, and nothing announced that")
		case bytes.Equal(was, now.messages[i]):
		case i == last && longer(was, now.messages[i]):
		default:
			at := 0
			for at < min(len(was), len(now.messages[i])) && was[at] == now.messages[i][at] {
				at++
			}
			return refuse(13, i, "the message is not the one of the request before, and nothing announced that: %.60q was %.60q", now.messages[i][at:], was[at:])
		}
	}
	return nil
}

// longer reports whether a message is an earlier one with more content: text
// that goes on, or blocks behind those that were there. Text alone is the same
// as a list with that text.
func longer(was, now []byte) bool {
	if text(was, "role") != text(now, "role") {
		return false
	}
	a, b := blocks(jsonwire.Get(was, "content")), blocks(jsonwire.Get(now, "content"))
	if len(a) == 0 || len(b) < len(a) {
		return false
	}
	last := len(a) - 1
	for i := range last {
		if !bytes.Equal(a[i], b[i]) {
			return false
		}
	}
	if bytes.Equal(a[last], b[last]) {
		return true
	}
	return text(a[last], "type") == "text" && text(b[last], "type") == "text" && strings.HasPrefix(text(b[last], "text"), text(a[last], "text"))
}

// blocks is content as a list.
func blocks(v []byte) (out [][]byte) {
	if jsonwire.Kind(v) == '"' {
		return [][]byte{jsonwire.AppendRawMember([]byte(`{"type":"text"`), "text", append(v[:len(v):len(v)], '}'))}
	}
	for b := range jsonwire.Elements(v) {
		out = append(out, b)
	}
	return out
}

// withoutMarks is a JSON text without its cache_control members and without
// white space between its parts: they move on while a conversation grows.
func withoutMarks(v []byte) []byte {
	v = bytes.Clone(jsonwire.Compact(v))
	const member = `"cache_control":`
	for i := 0; i < len(v); {
		if v[i] != '"' {
			i++
			continue
		}
		end, err := jsonwire.String(v, i)
		if err != nil {
			return v
		}
		if !bytes.HasPrefix(v[i:], []byte(member)) {
			i = end
			continue
		}
		end = jsonwire.Skip(v, i+len(member))
		switch {
		case v[i-1] == ',':
			i--
		case end < len(v) && v[end] == ',':
			end++
		}
		v = append(v[:i], v[end:]...)
	}
	return v
}
