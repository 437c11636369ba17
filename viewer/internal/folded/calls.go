package folded

import (
	"sort"
	"sync"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/history"
	"github.com/outcrop-dev/outcrop/history/meter"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/internal/requests"
	"github.com/outcrop-dev/outcrop/internal/usage"
)

// Call is a model call of a turn: the request, and what became of it.
type Call struct {
	requests.Attempt
	// Found says that the call's usage is known to the account of the log; the
	// members below are zero without.
	Found   bool
	Usage   usage.Call
	Prompt  int64 // tokens that the provider counted in the request, -1 unknown
	Window  int64 // of the model, 0 unknown
	Started int64 // Unix milliseconds, of the event that the request was built from
	Break   *Break
}

// MS is how long the call took, -1 when that is not known.
func (c *Call) MS() int64 {
	if !c.Found || c.Usage.Time < c.Started {
		return -1
	}
	return c.Usage.Time - c.Started
}

// Break is why a request could not begin as the one before it did.
type Break struct {
	Why      string        // edit, header
	Edits    []outcrop.Seq // the outcrop/edit events between
	Foretold int64         // -1 unknown
	Held     int64         // -1 unknown
	Read     int64         // -1 unknown
	Lost     int64         // -1 unknown
	Cost     int64         // micro-dollars, -1 unknown
}

// Tool is what the calls of one tool took.
type Tool struct {
	Name   string
	Calls  int
	Errors int
	MS     []int64 // of each call that has a result, sorted
}

// Account is what a log says about its model calls and tools.
type Account struct {
	Calls []Call
	Sum   usage.Sum // of the session's own calls, of every purpose
	Tools []Tool    // by name
	// Headers are the request/header events.
	Headers []outcrop.Seq
}

// Accounts keeps the account of a log while the log does not grow. Its methods
// may be called from any goroutine.
type Accounts struct {
	work sync.Mutex // held by the one who counts

	mu   sync.Mutex
	n    int
	last *Account
}

// Of is the account of a log that is the index's.
func (a *Accounts) Of(h outcrop.Header, log outcrop.Log, price usage.Price) *Account {
	a.work.Lock()
	defer a.work.Unlock()
	if last, n := a.Latest(); last != nil && n == log.Len() {
		return last
	}
	now := account(h, log, price)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.last, a.n = now, log.Len()
	return now
}

// Latest is the account that was made last, nil for none, and of how many
// events it is. It does not wait.
func (a *Accounts) Latest() (last *Account, events int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.last, a.n
}

func account(h outcrop.Header, log outcrop.Log, price usage.Price) *Account {
	type key struct{ turn, step, attempt int }
	out := &Account{}
	found := map[key]usage.Call{}
	scan := usage.NewScan(h, price, func(c usage.Call) {
		if !c.Inherited {
			out.Sum.Add(&c)
		}
		if c.Purpose == "turn" {
			found[key{c.Turn, c.Step, c.Attempt}] = c
		}
	})
	type window struct {
		seq    outcrop.Seq
		tokens int64
	}
	var windows []window
	tools := toolTimes{open: map[string]outcrop.Event{}, by: map[string]*Tool{}}
	for r := range log.Records(0) {
		scan.Add(r)
		if r.Run != nil {
			continue
		}
		switch r.Type {
		case outcrop.TypeRequestContext:
			windows = append(windows, window{r.Seq, max(outcrop.ParseRequestContext(r.Data).ContextWindow, 0)})
		case outcrop.TypeRequestHeader:
			out.Headers = append(out.Headers, r.Seq)
		case outcrop.TypeToolCall, outcrop.TypeToolResult:
			tools.event(r.Event)
		}
	}
	scan.End()
	out.Tools = tools.list()
	edits := map[outcrop.Seq]history.CacheEdit{}
	for _, e := range history.CacheAccount(log) {
		edits[e.Next] = e
	}
	for _, at := range requests.Find(log) {
		c := Call{Attempt: at, Prompt: -1}
		if at.Prefix >= 0 && int(at.Prefix) < log.Len() {
			c.Started = log.At(at.Prefix).Time
		}
		if i := sort.Search(len(windows), func(i int) bool { return windows[i].seq > at.Prefix }); i > 0 {
			c.Window = windows[i-1].tokens
		}
		if c.Usage, c.Found = found[key{at.Turn, at.Step, at.N}]; c.Found {
			if u := c.Usage.Usage; u != nil {
				if n, ok := meter.PromptTokens(u); ok {
					c.Prompt = n
				}
			}
			c.Break = breakOf(&c, edits, price)
		}
		out.Calls = append(out.Calls, c)
	}
	return out
}

func breakOf(c *Call, edits map[outcrop.Seq]history.CacheEdit, price usage.Price) *Break {
	if c.Usage.CacheBreak == "" {
		return nil
	}
	b := &Break{Why: c.Usage.CacheBreak, Foretold: -1, Held: -1, Read: -1, Lost: -1, Cost: -1}
	e, ok := edits[c.Usage.Seq]
	if !ok {
		return b
	}
	b.Edits, b.Foretold = e.Edits, e.Invalidated
	if e.Held > 0 {
		b.Held = e.Held
	}
	if e.Read != nil {
		b.Read = *e.Read
	}
	lost, ok := e.Lost()
	if !ok {
		return b
	}
	b.Lost = lost
	if price == nil {
		return b
	}
	if p := price(c.Usage.Provider, c.Usage.Model); p != nil && p.Input >= p.CacheRead && lost < 1<<40 && p.Input < 1<<20*1000 {
		b.Cost = lost * (p.Input - p.CacheRead) / 1_000_000
	}
	return b
}

// toolTimes pairs calls of tools with their results.
type toolTimes struct {
	open map[string]outcrop.Event // by call id
	by   map[string]*Tool
}

// maxOpen is how many calls without a result are remembered, and how many tools
// are told apart.
const maxOpen = 4096

func (t *toolTimes) event(ev outcrop.Event) {
	if ev.Type == outcrop.TypeToolCall {
		id, _ := jsonwire.Text(jsonwire.Get(ev.Data, "callId"))
		if len(t.open) < maxOpen {
			t.open[id] = ev
		}
		return
	}
	if !ev.Op.IsAppend() {
		return
	}
	msg := jsonwire.Get(ev.Data, "message")
	id, _ := jsonwire.Text(jsonwire.Get(jsonwire.Get(msg, "source"), "callId"))
	call, ok := t.open[id]
	if !ok {
		return
	}
	delete(t.open, id)
	name, _ := jsonwire.Text(jsonwire.Get(call.Data, "name"))
	tool := t.by[name]
	if tool == nil {
		if len(t.by) >= maxOpen {
			return
		}
		tool = &Tool{Name: name}
		t.by[name] = tool
	}
	tool.Calls++
	tool.MS = append(tool.MS, max(ev.Time-call.Time, 0))
	for block := range jsonwire.Elements(jsonwire.Get(msg, "content")) {
		if string(jsonwire.Get(block, "isError")) == "true" {
			tool.Errors++
		}
		break
	}
}

func (t *toolTimes) list() []Tool {
	out := make([]Tool, 0, len(t.by))
	for _, tool := range t.by {
		sort.Slice(tool.MS, func(i, j int) bool { return tool.MS[i] < tool.MS[j] })
		out = append(out, *tool)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Name < out[j].Name })
	return out
}
