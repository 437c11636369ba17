package history

import (
	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/history/meter"
)

// breaker keeps a pass that failed from being made again at each step.
type breaker struct {
	tripped bool
	surface int64       // price of the surface when it failed
	prompt  outcrop.Seq // the newest prompt then

	tried      bool // an overflow was answered
	turn, step int
	at         outcrop.Seq // length of the log then
}

// trip notes a failure.
func (b *breaker) trip(m *meter.Meter) {
	b.tripped, b.surface, b.prompt = true, m.Sum(0, m.Len()), newestPrompt(m)
}

// holds reports whether no pass is made by itself: until the surface has grown
// by a tenth of the limit, or a prompt came.
func (b *breaker) holds(m *meter.Meter, limit int64, prompt bool) bool {
	if b.tripped && (prompt || newestPrompt(m) != b.prompt || m.Sum(0, m.Len()) >= b.surface+limit/10) {
		b.tripped = false
	}
	return b.tripped
}

// mayRecover reports whether an overflow is answered, and notes that it is:
// once a step, and in another step only when a reply or a prompt came since.
func (b *breaker) mayRecover(log outcrop.Log, m *meter.Meter) bool {
	if b.tried {
		if b.turn == m.Turn() && b.step == m.Step() {
			return false
		}
		if !cameSince(log, b.at) {
			return false
		}
	}
	b.tried, b.turn, b.step, b.at = true, m.Turn(), m.Step(), outcrop.Seq(log.Len())
	return true
}

// cameSince reports whether a reply or a prompt was logged from seq on.
func cameSince(log outcrop.Log, seq outcrop.Seq) bool {
	for r := range log.Records(seq) {
		switch {
		case r.Run != nil || !r.Op.IsAppend():
		case r.Type == outcrop.TypeAssistantMessage:
			return true
		case r.Type == outcrop.TypeUserMessage && sourceKind(r.Data) == "user":
			return true
		}
	}
	return false
}

func newestPrompt(m *meter.Meter) outcrop.Seq {
	for i := m.Len() - 1; i >= 0; i-- {
		if n := m.Node(i); n.Kind == meter.Prompt {
			return n.Seq
		}
	}
	return -1
}
