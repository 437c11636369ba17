package agent

import (
	"fmt"
	"time"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/history"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/message"
)

// Limits bound what a turn may take. Zero values are the defaults.
type Limits struct {
	// Steps is the most steps of a turn; 0: no limit.
	Steps int
	// CostMicroUSD stops before the next model call once this agent has spent
	// as much, in micro-dollars; 0: no limit. It needs a Price.
	CostMicroUSD int64
	// Inbox is the most messages that may be pending; default 1,000.
	Inbox int
	// Parallel is how many calls may run at the same time; default 10.
	Parallel int
	// IdleStream ends an attempt when no chunk came for so long; default
	// 300 s.
	IdleStream time.Duration
	// Grace is how long a cancelled tool is waited for before its call is
	// answered without it; default 5 s.
	Grace time.Duration
}

// refusalsInARow end a turn: the model keeps asking for what it is not given.
const refusalsInARow = 3

func (l Limits) withDefaults() Limits {
	if l.Inbox <= 0 {
		l.Inbox = 1000
	}
	if l.Parallel <= 0 {
		l.Parallel = 10
	}
	if l.IdleStream <= 0 {
		l.IdleStream = 300 * time.Second
	}
	if l.Grace <= 0 {
		l.Grace = 5 * time.Second
	}
	return l
}

// stepLimit is the reason for which no further step is opened, or "".
func (t *turn) stepLimit() string {
	if n := t.a.o.Limits.Steps; n > 0 && t.step >= n {
		return fmt.Sprintf("step limit %d reached", n)
	}
	return t.a.costLimit()
}

// costLimit is the reason for which no model is called any more, or "".
func (a *Agent) costLimit() string {
	if most := a.o.Limits.CostMicroUSD; most > 0 && a.spent >= most {
		return "cost limit $" + dollars(most) + " reached"
	}
	return ""
}

func dollars(micro int64) string {
	s := fmt.Sprintf("%d.%06d", micro/1_000_000, micro%1_000_000)
	for len(s) > 4 && s[len(s)-1] == '0' && s[len(s)-3] != '.' {
		s = s[:len(s)-1]
	}
	return s
}

// Clock is the time that an agent lives by.
type Clock interface {
	// Timer fires once, after d.
	Timer(d time.Duration) Timer
}

// Timer is a timer of a Clock. After Reset or Stop no earlier time comes out of
// C any more, as with time.Timer.
type Timer interface {
	C() <-chan time.Time
	Reset(d time.Duration)
	Stop()
}

type systemClock struct{}

func (systemClock) Timer(d time.Duration) Timer { return systemTimer{time.NewTimer(d)} }

type systemTimer struct{ t *time.Timer }

func (s systemTimer) C() <-chan time.Time   { return s.t.C }
func (s systemTimer) Reset(d time.Duration) { s.t.Reset(d) }
func (s systemTimer) Stop()                 { s.t.Stop() }

// chargeSummary adds what calls for a summary took to what this agent has
// spent. A model that is not the agent's own has no price here.
func (a *Agent) chargeSummary(ev outcrop.Event) {
	u := message.ParseUsage(jsonwire.Get(ev.Data, "usage"))
	name, _ := jsonwire.Text(jsonwire.Get(ev.Data, "model"))
	if ev.Type == outcrop.TypeCompactionSummary {
		provider, _ := jsonwire.Text(jsonwire.Get(ev.Data, "provider"))
		if name = provider + ":" + name; u == nil {
			return // no model wrote it, or its calls tell for themselves
		}
	} else if jsonwire.TextIs(jsonwire.Get(ev.Data, "outcome"), string(history.OutcomeNothing)) {
		return
	}
	var price *llm.Price
	if name == a.model.Config.Provider+":"+a.model.Config.Model {
		price = a.model.Price
	}
	cost, known := llm.Cost(u, price)
	a.spent += cost
	a.show(func(st *Status) {
		if st.SpentMicroUSD = a.spent; !known {
			st.Unpriced++
		}
	})
}
