package chat

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/brief"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/message"
)

// gauge is how full the window is. It stands on what the provider counted last;
// what came since is estimated.
type gauge struct {
	window  int64 // tokens, 0 unknown
	counted int64 // by the provider: request and reply of the last call
	since   int64 // estimate of what is on the surface since
	writing int64 // characters of the reply that is being written
	// measure estimates the whole surface: where nothing was counted, and when
	// the history was edited.
	measure func() int64
}

func (g *gauge) event(ev outcrop.Event) {
	if _, _, replaced := ev.Op.Range(); replaced {
		g.again()
		return
	}
	switch ev.Type {
	case outcrop.TypeAssistantChunk:
		g.chunk(jsonwire.Get(ev.Data, "chunk"))
	case outcrop.TypeAssistantMessage:
		g.since += (g.writing + 3) / 4
		g.writing = 0
	case outcrop.TypeUserMessage, outcrop.TypeContextMessage, outcrop.TypeToolResult:
		if m, err := message.Parse(brief.MessageOf(ev)); err == nil {
			g.since += llm.EstimateTokens(m)
		}
	case outcrop.TypeLLMRetry, outcrop.TypeTurnEnd:
		g.writing = 0
	}
}

func (g *gauge) chunk(c []byte) {
	for _, name := range [...]string{"text", "argumentsDelta"} {
		if s, ok := jsonwire.Text(jsonwire.Get(c, name)); ok {
			g.writing += int64(utf8.RuneCountInString(s))
		}
	}
	if u := message.ParseUsage(jsonwire.Get(c, "usage")); u != nil {
		if n := total(u); n > 0 {
			g.counted, g.since, g.writing = n, 0, 0
		}
	}
}

// again measures anew.
func (g *gauge) again() {
	g.counted, g.since, g.writing = 0, 0, 0
	if g.measure != nil {
		g.since = g.measure()
	}
}

func total(u *message.Usage) int64 {
	n := u.InputTokens + u.OutputTokens
	for _, p := range [...]*int64{u.CacheReadTokens, u.CacheWriteTokens} {
		if p != nil {
			n += *p
		}
	}
	return n
}

func (g *gauge) used() int64 { return g.counted + g.since + (g.writing+3)/4 }

// String is "12.3k/128k 9%", or "12.3k tokens" where the window is unknown.
func (g *gauge) String() string {
	used := g.used()
	if g.window <= 0 {
		return short(used) + " tokens"
	}
	return fmt.Sprintf("%s/%s %d%%", short(used), short(g.window), used*100/g.window)
}

// share is the used part of the window in percent, 0 when it is unknown.
func (g *gauge) share() int64 {
	if g.window <= 0 {
		return 0
	}
	return g.used() * 100 / g.window
}

// short writes a number of tokens in at most five columns.
func short(n int64) string {
	switch {
	case n < 1000:
		return fmt.Sprint(n)
	case n < 100_000:
		return strings.TrimSuffix(fmt.Sprintf("%.1f", float64(n)/1000), ".0") + "k"
	case n < 10_000_000:
		return fmt.Sprintf("%dk", n/1000)
	}
	return fmt.Sprintf("%dM", n/1_000_000)
}

// cost is what was spent since the chat began, for the line with the state.
type cost struct {
	price    *llm.Price // of the model that answers, nil unknown
	microUSD int64
	unknown  bool // a part of it is not known
}

func (c *cost) add(u *message.Usage) {
	if u == nil {
		return
	}
	n, ok := llm.Cost(u, c.price)
	c.microUSD += n
	c.unknown = c.unknown || !ok
}

// String is dollars, "" when nothing is known.
func (c *cost) String() string {
	if c.microUSD == 0 {
		return ""
	}
	more := ""
	if c.unknown {
		more = "+"
	}
	return fmt.Sprintf("$%.4f%s", float64(c.microUSD)/1e6, more)
}
