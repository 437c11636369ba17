package workspace

import (
	"strings"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/message"
)

// Due returns those of the wanted contexts that have to be appended now, with
// the text to append. It looks at every message; a session that goes on asks a
// Seen.
func Due(messages []*outcrop.Message, want []Context) []Context {
	return new(Seen).Due(messages, want)
}

// Seen knows which contexts stand on the surface of one session. Each question
// costs what changed since the one before: a derived message never changes, so
// the messages up to the first other pointer are the same. The zero value is
// ready; one goroutine uses it.
type Seen struct {
	from   []*outcrop.Message
	copies []found // in model order
}

// found is a copy of a context on the surface.
type found struct {
	at   int // index in from
	name string
}

// Due is the function of this name, for a surface that was seen before.
func (s *Seen) Due(messages []*outcrop.Message, want []Context) []Context {
	s.update(messages)
	var due []Context
	for _, c := range want {
		have, digest, ok := s.newest(c.Name)
		switch {
		case !ok && !c.Gone:
			due = append(due, c)
		case !ok, c.Digest != "" && c.Digest == digest, strings.TrimSuffix(have, replaces) == c.Text:
		case c.Gone:
			due = append(due, c)
		default:
			c.Text += replaces
			due = append(due, c)
		}
	}
	return due
}

func (s *Seen) update(now []*outcrop.Message) {
	same := 0
	for same < len(s.from) && same < len(now) && s.from[same] == now[same] {
		same++
	}
	for len(s.copies) > 0 && s.copies[len(s.copies)-1].at >= same {
		s.copies = s.copies[:len(s.copies)-1]
	}
	for i := same; i < len(now); i++ {
		if now[i].Role != string(message.User) {
			continue
		}
		if name := nameOf(jsonwire.Get(now[i].Raw, "source")); name != "" {
			s.copies = append(s.copies, found{i, name})
		}
	}
	s.from = now
}

// newest is the newest copy of a context.
func (s *Seen) newest(name string) (text, digest string, ok bool) {
	for i := len(s.copies) - 1; i >= 0; i-- {
		if s.copies[i].name != name {
			continue
		}
		raw := s.from[s.copies[i].at].Raw
		blocks, err := message.ParseBlocks(jsonwire.Get(raw, "content"))
		if err != nil {
			continue
		}
		digest, _ = jsonwire.Text(jsonwire.Get(jsonwire.Get(raw, "source"), "digest"))
		return message.PlainText(blocks), digest, true
	}
	return "", "", false
}
