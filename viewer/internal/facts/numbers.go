package facts

import (
	"cmp"
	"slices"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/viewer/internal/folded"
	"github.com/outcrop-dev/outcrop/viewer/internal/strata"
)

// Numbers are what a session took.
type Numbers struct {
	Schema
	Fields     []string    `json:"fields"`
	Calls      [][]*int64  `json:"calls"`
	Total      Total       `json:"total"`
	CacheShare *float64    `json:"cacheShare"`
	Tools      []ToolTimes `json:"tools"`
	Largest    []Node      `json:"largest"`
	Window     *int64      `json:"window"`
	Joined     int         `json:"joined"`
	Masked     int         `json:"masked"`
}

// Total is what all calls of a session took.
type Total struct {
	Calls  int64 `json:"calls"`
	Failed int64 `json:"failed"`
	Sum
	Cost     *int64 `json:"costMicroUSD"`
	Unpriced int64  `json:"unpriced"`
}

// ToolTimes are the durations of one tool's calls.
type ToolTimes struct {
	Name   Text   `json:"name"`
	Calls  int    `json:"calls"`
	Errors int    `json:"errors"`
	MS     Spread `json:"ms"`
}

// Spread says how values lie, in milliseconds.
type Spread struct {
	Total  int64 `json:"total"`
	Median int64 `json:"median"`
	P95    int64 `json:"p95"`
	Most   int64 `json:"most"`
}

var callFields = []string{"index", "time", "turn", "step", "attempt", "input", "cacheRead", "cacheWrite", "output", "reasoning", "costMicroUSD", "ms",
	"system", "tools", "user", "assistant", "tool", "context", "checkpoint"}

const (
	mostCalls   = 4000
	mostLargest = 20
)

// Scene is what the numbers need of an index.
type Scene struct {
	nodes  strata.Snapshot
	shown  []Node // of the surface, largest first
	tokens []int64
	window int64
}

// SceneOf takes it. Prices must have caught up.
func SceneOf(x *folded.Index) Scene {
	s := Scene{nodes: x.Forest.Snapshot(), window: x.Window}
	s.shown = nodesOf(x, x.Forest.Surface())
	slices.SortFunc(s.shown, func(a, b Node) int { return cmp.Or(cmp.Compare(b.Tokens, a.Tokens), cmp.Compare(a.Seq, b.Seq)) })
	s.shown = s.shown[:min(len(s.shown), mostLargest)]
	x.Prices.Use(func(tokens []int64, _ *strata.Widths) { s.tokens = tokens[:s.nodes.Len():s.nodes.Len()] })
	return s
}

// NumbersOf makes the numbers of a session.
func NumbersOf(log outcrop.Log, a *folded.Account, s Scene, v *Veil) *Numbers {
	n := &Numbers{Schema: V1, Fields: callFields, Calls: [][]*int64{}, Tools: []ToolTimes{}, Largest: s.shown, Joined: 1,
		Total: Total{Calls: a.Sum.Calls, Failed: a.Sum.Failed, Sum: SumOf(&a.Sum), Cost: CostOf(&a.Sum), Unpriced: a.Sum.Unpriced}}
	if all := a.Sum.Input + a.Sum.CacheRead + a.Sum.CacheWrite; all > 0 {
		n.CacheShare = pointer(float64(a.Sum.CacheRead) / float64(all))
	}
	if s.window > 0 {
		n.Window = &s.window
	}
	if k := len(a.Calls); k > mostCalls {
		n.Joined = (k + mostCalls - 1) / mostCalls
	}
	shares := sharesOf(log, a, s)
	for i := 0; i < len(a.Calls); i += n.Joined {
		n.Calls = append(n.Calls, joined(i, a.Calls[i:min(i+n.Joined, len(a.Calls))], shares[min(i+n.Joined, len(a.Calls))-1]))
	}
	for _, t := range a.Tools {
		n.Tools = append(n.Tools, ToolTimes{v.Line(t.Name), t.Calls, t.Errors, spreadOf(t.MS)})
	}
	say(n.Largest, log, v)
	n.Masked = v.Masked
	return n
}

func spreadOf(ms []int64) Spread {
	var s Spread
	if len(ms) == 0 {
		return s
	}
	for _, n := range ms {
		s.Total += n
	}
	s.Median, s.P95, s.Most = ms[len(ms)/2], ms[min(len(ms)*95/100, len(ms)-1)], ms[len(ms)-1]
	return s
}

// joined is the line of one call, or of several in a row.
func joined(i int, calls []folded.Call, shares Shares) []*int64 {
	var sum [7]*int64 // input, cacheRead, cacheWrite, output, reasoning, cost, ms
	add := func(k int, n *int64) {
		if n == nil {
			return
		}
		if sum[k] == nil {
			sum[k] = new(int64)
		}
		*sum[k] += *n
	}
	for k := range calls {
		c := &calls[k]
		if u := c.Usage.Usage; c.Found && u != nil {
			add(0, &u.InputTokens)
			add(1, u.CacheReadTokens)
			add(2, u.CacheWriteTokens)
			add(3, &u.OutputTokens)
			add(4, u.ReasoningTokens)
		}
		if c.Found {
			add(5, c.Usage.Cost)
		}
		add(6, knownOrNull(c.MS()))
	}
	c := &calls[len(calls)-1]
	line := []*int64{pointer(int64(i)), &c.Started, pointer(int64(c.Turn)), pointer(int64(c.Step)), pointer(int64(c.N))}
	line = append(line, sum[:]...)
	return append(line, &shares.System, &shares.Tools, &shares.User, &shares.Assistant, &shares.Tool, &shares.Context, &shares.Checkpoint)
}

// sharesOf are the sources of tokens in each request: the nodes that stood on
// the surface then, added up as they came and went.
func sharesOf(log outcrop.Log, a *folded.Account, s Scene) []Shares {
	calls := a.Calls
	order := make([]int, len(calls))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(calls[a].Prefix, calls[b].Prefix) })
	out := make([]Shares, len(calls))
	var now Shares
	header, node := 0, 0
	for _, i := range order {
		at := calls[i].Prefix
		for ; node < s.nodes.Len() && s.nodes.Node(node).Seq <= at; node++ {
			*now.of(s.nodes.Node(node).Kind) += s.tokens[node]
			for _, k := range s.nodes.Kids(node) {
				*now.of(s.nodes.Node(int(k)).Kind) -= s.tokens[k]
			}
		}
		for ; header < len(a.Headers) && a.Headers[header] <= at; header++ {
			now.System, now.Tools = headerShares(jsonwire.Get(log.At(a.Headers[header]).Data, "header"))
		}
		out[i] = now
	}
	return out
}

func headerShares(raw []byte) (system, tools int64) {
	if s := text(raw, "system"); s != "" {
		system = llm.EstimateText(s)
	}
	for t := range jsonwire.Elements(jsonwire.Get(raw, "tools")) {
		tools += llm.EstimateText(string(t))
	}
	return system, tools
}
