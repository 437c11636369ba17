// Package growth tells how far a list of messages is the one that was looked at
// before, so that only what is new costs time.
//
// Messages are the same when their content is the same memory, and a list whose
// first message lies where the first one lay before is the same array: when it
// still has the last message that was seen, it is taken for the earlier list
// and what was appended to it, without a look at each. So neither the content
// nor the elements of a list may be changed after it was given away; a list
// that must change is copied.
package growth

import "github.com/outcrop-dev/outcrop/message"

// Seen remembers a list of messages. The zero value has seen nothing.
type Seen struct {
	first *message.Message // of the list that was seen last; it keeps the array
	given []identity
}

// identity tells messages apart without looking into them.
type identity struct {
	seq     int64
	role    message.Role
	content *message.Block
	n       int
}

func identify(seq int64, m *message.Message) identity {
	id := identity{seq: seq, role: m.Role, n: len(m.Content)}
	if id.n > 0 {
		id.content = &m.Content[0]
	}
	return id
}

// Len is the number of messages that were seen.
func (s *Seen) Len() int { return len(s.given) }

// Add remembers one more message, and the seq of its event where there is one.
func (s *Seen) Add(seq int64, m *message.Message) {
	s.given = append(s.given, identify(seq, m))
}

// Cut forgets all but the first n messages.
func (s *Seen) Cut(n int) { s.given = s.given[:n] }

// Same is the number of messages at the beginning of a list of n that are the
// ones that were seen. It costs no time when the list only grew.
func (s *Seen) Same(n int, at func(i int) (int64, *message.Message)) int {
	if n == 0 || len(s.given) == 0 {
		s.first = nil
		if n > 0 {
			_, s.first = at(0)
		}
		return 0
	}
	was := s.first
	_, s.first = at(0)
	most := min(n, len(s.given))
	if was == s.first && n >= len(s.given) && identify(at(most-1)) == s.given[most-1] {
		return most
	}
	for i := range most {
		if identify(at(i)) != s.given[i] {
			return i
		}
	}
	return most
}
