package folded

import (
	"sync"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/brief"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/message"
	"github.com/outcrop-dev/outcrop/viewer/internal/strata"
)

// Prices are the estimated tokens of nodes, and the widths of columns that come
// of them. A node is priced once. All methods may be called from any goroutine.
type Prices struct {
	mu     sync.Mutex
	tokens []int64
	widths strata.Widths
}

// Catch prices the nodes that are new in a snapshot of the forest.
func (p *Prices) Catch(s strata.Snapshot, log outcrop.Log) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := len(p.tokens); i < s.Len(); i++ {
		n := s.Node(i)
		t := Tokens(log.At(n.Seq))
		p.tokens = append(p.tokens, t)
		if len(s.Kids(i)) == 0 {
			p.widths.Add(t)
		}
	}
}

// Use gives the tokens of nodes, by number, and the widths of columns to f.
func (p *Prices) Use(f func(tokens []int64, widths *strata.Widths)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f(p.tokens, &p.widths)
}

// Tokens is the estimate for the message of an event of the surface.
func Tokens(ev outcrop.Event) int64 {
	blocks, err := message.ParseBlocks(jsonwire.Get(brief.MessageOf(ev), "content"))
	if err != nil {
		return 0
	}
	return llm.EstimateTokens(message.Message{Content: blocks})
}
