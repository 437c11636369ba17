package chat

import (
	"strings"
	"sync"

	"github.com/outcrop-dev/outcrop/internal/term"
)

// notes take what the program says on stderr while the screen is drawn, from any
// goroutine, the loop's too: a writer never waits.
type notes struct {
	style term.Style
	come  chan struct{} // there is something

	mu    sync.Mutex
	lines []string
	lost  int
}

// mostNotes is how many lines wait to be shown.
const mostNotes = 1000

func newNotes(style term.Style) *notes { return &notes{style: style, come: make(chan struct{}, 1)} }

// Write implements io.Writer.
func (n *notes) Write(b []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for l := range strings.SplitSeq(strings.TrimRight(term.Text(string(b)), "\n"), "\n") {
		if len(n.lines) == mostNotes {
			n.lost++
			continue
		}
		n.lines = append(n.lines, n.style.Dim(l))
	}
	select {
	case n.come <- struct{}{}:
	default:
	}
	return len(b), nil
}

// take returns what came.
func (n *notes) take() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	lines := n.lines
	if n.lost > 0 {
		lines = append(lines, n.style.Dim("("+term.Plural(n.lost, "more line")+")"))
	}
	n.lines, n.lost = nil, 0
	return lines
}
