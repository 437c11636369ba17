// Package kept holds what an encoder made of the messages of a session, so that
// a request that grew encodes only what is new, and hands it on without a copy.
//
// An encoder makes one text of each group of messages that stand together on
// the wire: neighbours of one role, the results of one reply. Texts are appended
// to chunks, which are never written over: a body that is still being sent does
// not see that the next one grows. After a change in the messages, what stands
// before it stays.
package kept

import (
	"slices"

	"github.com/outcrop-dev/outcrop/llm/internal/growth"
	"github.com/outcrop-dev/outcrop/message"
)

const (
	minChunk = 4 << 10
	maxChunk = 256 << 10
)

// Encoder makes the texts. T is what it wants to know of a group later.
type Encoder[T any] interface {
	// End is the index behind the group that begins at message i.
	End(i int) int
	// Append appends the text of messages i to j, one group; before is what it
	// returned for the group before, the zero value for the first.
	Append(dst []byte, i, j int, before T) ([]byte, T)
}

// Messages are the encoded messages of a request. The zero value holds none.
type Messages[T any] struct {
	seen   growth.Seen
	groups []group[T]
	chunks [][]byte
	size   int // of all texts
}

type group[T any] struct {
	end         int // of its messages
	chunk       int // where its text stands
	start, stop int // in the chunk
	size        int // of all texts up to this one
	info        T
}

// Same is the number of messages at the beginning that were encoded before.
func (m *Messages[T]) Same(messages []message.Message) int {
	return m.seen.Same(len(messages), func(i int) (int64, *message.Message) { return 0, &messages[i] })
}

// Back keeps what was encoded of the first same messages, and returns the first
// message that must be encoded now: less than same where the last group goes on.
func (m *Messages[T]) Back(same int, e Encoder[T]) int {
	n := len(m.groups)
	for n > 0 && m.groups[n-1].end > same {
		n--
	}
	if n > 0 && e.End(m.start(n-1)) != m.groups[n-1].end {
		n--
	}
	m.cut(n)
	return m.start(n)
}

// Encode encodes the messages behind those that are kept.
func (m *Messages[T]) Encode(messages []message.Message, e Encoder[T]) {
	var text []byte
	var info T
	n := len(m.groups)
	if n > 0 {
		info = m.groups[n-1].info
	}
	for i := m.start(n); i < len(messages); {
		j := e.End(i)
		text, info = e.Append(text[:0], i, j, info)
		m.add(j, text, info)
		for ; i < j; i++ {
			m.seen.Add(0, &messages[i])
		}
	}
}

// start is the first message of group n.
func (m *Messages[T]) start(n int) int {
	if n == 0 {
		return 0
	}
	return m.groups[n-1].end
}

// cut keeps n groups.
func (m *Messages[T]) cut(n int) {
	if n == len(m.groups) {
		return
	}
	m.seen.Cut(m.start(n))
	clear(m.groups[n:])
	m.groups = m.groups[:n]
	if n == 0 {
		m.chunks, m.size = nil, 0
		return
	}
	g := &m.groups[n-1]
	m.size = g.size
	clear(m.chunks[g.chunk+1:])
	m.chunks = m.chunks[:g.chunk+1]
	m.chunks[g.chunk] = m.chunks[g.chunk][:g.stop:g.stop]
}

func (m *Messages[T]) add(end int, text []byte, info T) {
	at := len(m.chunks) - 1
	if at < 0 || len(m.chunks[at])+len(text) > cap(m.chunks[at]) {
		// A quarter of what there is: a short session takes little memory, a
		// long one few chunks.
		m.chunks = append(m.chunks, make([]byte, 0, max(len(text), min(maxChunk, max(minChunk, m.size/4)))))
		at++
	}
	start := len(m.chunks[at])
	m.chunks[at] = append(m.chunks[at], text...)
	m.size += len(text)
	m.groups = append(m.groups, group[T]{end, at, start, start + len(text), m.size, info})
}

// Groups is the number of groups.
func (m *Messages[T]) Groups() int { return len(m.groups) }

// Info is what the encoder said of group n.
func (m *Messages[T]) Info(n int) T { return m.groups[n].info }

// Insert is text that stands in a body but is not kept: behind the first At
// bytes of a group.
type Insert struct {
	Group, At int
	Text      []byte
}

// Pieces appends the texts to a body, with inserts in between, which are in
// order.
func (m *Messages[T]) Pieces(body [][]byte, inserts ...Insert) [][]byte {
	body = slices.Grow(body, len(m.chunks)+2*len(inserts))
	for i, c := range m.chunks {
		from := 0
		for len(inserts) > 0 && m.groups[inserts[0].Group].chunk == i {
			in := inserts[0]
			to := m.groups[in.Group].start + in.At
			body = append(body, c[from:to], in.Text)
			from, inserts = to, inserts[1:]
		}
		body = append(body, c[from:])
	}
	return body
}
