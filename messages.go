package outcrop

import (
	"encoding/json"

	"github.com/outcrop-dev/outcrop/internal/jsonwire"
)

// Message is one derived message: what a surface node gives to the model. Raw
// is the message exactly as its event has it; nothing is decoded. It is
// read-only and shared by everybody who asks.
type Message struct {
	Seq  Seq
	Role string // "user" or "assistant"; a tool result has role user
	ID   string
	Raw  json.RawMessage
}

// Messages derives the surface into messages, in model order: the data of a
// user/message and context/message, the message of an assistant/message and a
// tool/result; an assistant or context message without content gives nothing.
//
// The slice is shared and must not be changed; it does not change either when
// the session goes on. With nothing new it costs a few nanoseconds and no
// allocation; new nodes cost O(new), a replace O(nodes) pointer moves.
func (s *Session) Messages() []*Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.derive()
}

// derive brings the messages up to date. The caller holds mu.
func (s *Session) derive() []*Message {
	f := &s.surface
	if f.open == 1 {
		f.messages[f.openAt] = s.message(f.nodes[f.openAt])
	} else if f.open > 1 {
		for i, m := range f.messages {
			if m == pending {
				f.messages[i] = s.message(f.nodes[i])
			}
		}
	}
	f.open = 0
	before := len(f.messages)
	for _, seq := range f.nodes[before:] {
		f.messages = append(f.messages, s.message(seq))
	}
	if f.nils == 0 {
		return f.messages[:len(f.messages):len(f.messages)]
	}
	if f.list == nil {
		f.list = make([]*Message, 0, len(f.nodes)+16)
		before = 0
	}
	for _, m := range f.messages[before:] {
		if m != nil {
			f.list = append(f.list, m)
		}
	}
	return f.list[:len(f.list):len(f.list)]
}

// message derives one node; nil when it gives nothing.
func (s *Session) message(seq Seq) *Message {
	f := &s.surface
	e, _ := s.log.entry(s.log.find(seq))
	if e.flags&flagEmpty != 0 {
		f.nils++
		return nil
	}
	if len(f.slab) == 0 {
		f.slab = make([]Message, 32)
	}
	into := &f.slab[0]
	f.slab = f.slab[1:]
	line := e.line()
	end := e.msgOff + e.msgLen
	into.Seq = seq
	into.Role = "user"
	if e.typ == idAssistant {
		into.Role = "assistant"
	}
	into.Raw = line[e.msgOff:end:end]
	id := line[e.idOff:]
	into.ID, _ = jsonwire.Text(id[:jsonwire.Skip(id, 0)])
	return into
}

// DeriveMessages derives messages from a log and a list of surface nodes: the
// detached form of Messages, for a surface folded at another seq.
func DeriveMessages(log Log, nodes []Seq) []*Message {
	out := []*Message{}
	for _, seq := range nodes {
		ev := log.At(seq)
		cls := ev.class()
		if !cls.surface() {
			continue
		}
		var info msgInfo
		if code, _ := checkMessage(cls, ev.Data, &info); code != "" || info.empty {
			continue
		}
		end := info.off + info.len
		m := &Message{Seq: seq, Role: "user", Raw: ev.Data[info.off:end:end]}
		if cls == classAssistant {
			m.Role = "assistant"
		}
		id := ev.Data[info.idOff:]
		m.ID, _ = jsonwire.Text(id[:jsonwire.Skip(id, 0)])
		out = append(out, m)
	}
	return out
}
