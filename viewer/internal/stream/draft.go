package stream

import (
	"strings"
	"unicode"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/message"
	"github.com/outcrop-dev/outcrop/viewer/internal/facts"
	"github.com/outcrop-dev/outcrop/viewer/internal/folded"
)

// draft is the reply that is being written, put together from its chunks.
type draft struct {
	turn, step int
	parts      message.Assembler
	dirty      bool // listeners do not have all of it
}

// block is a block of a draft as listeners have it.
type block struct {
	Index  int         `json:"index"`
	Type   string      `json:"type,omitzero"`
	Name   *facts.Text `json:"name,omitzero"`
	Text   *facts.Text `json:"text,omitzero"`
	Append *facts.Text `json:"append,omitzero"`
}

// begin finds what is being written at the end of a log.
func (d *draft) begin(x *folded.Index, log outcrop.Log) {
	d.end()
	if x.OpenStep == 0 {
		return
	}
	at := x.Len()
	for at > 0 && !startsDraft(log.At(at-1).Type) {
		at--
	}
	d.add(log, max(at-1, 0), x.Len())
}

// startsDraft reports the events that end what was written before.
func startsDraft(t outcrop.Type) bool {
	switch t {
	case outcrop.TypeTurnStart, outcrop.TypeTurnEnd, outcrop.TypeStepStart, outcrop.TypeStepEnd,
		outcrop.TypeOutcropRequest, outcrop.TypeLLMRetryStarted, outcrop.TypeAssistantMessage:
		return true
	}
	return false
}

func (d *draft) end() {
	if d.turn != 0 {
		d.dirty = true
	}
	d.turn, d.step, d.parts = 0, 0, message.Assembler{}
}

// add takes the events from first up to, not including, end.
func (d *draft) add(log outcrop.Log, first, end outcrop.Seq) {
	for r := range log.Records(first) {
		if r.Seq >= end {
			return
		}
		if r.Run == nil {
			d.take(&r.Event)
			continue
		}
		for ev := range r.Run.Events() {
			if ev.Seq < end {
				d.take(&ev)
			}
		}
	}
}

func (d *draft) take(ev *outcrop.Event) {
	if startsDraft(ev.Type) {
		d.end()
		return
	}
	if ev.Type != outcrop.TypeAssistantChunk {
		return
	}
	c, err := message.ParseChunk(jsonwire.Get(ev.Data, "chunk"))
	if err != nil {
		return
	}
	turn, _ := jsonwire.Int(jsonwire.Get(ev.Data, "turn"))
	step, _ := jsonwire.Int(jsonwire.Get(ev.Data, "step"))
	d.turn, d.step, d.dirty = int(max(turn, 1)), int(step), true
	d.parts.Add(c)
}

// blocks is the draft as it is shown: the last word is left out while it may
// still grow, because what looks secret is known by whole words.
func (d *draft) blocks(veil *facts.Veil) []block {
	var out []block
	all := d.parts.Blocks()
	for i := range all {
		b := block{Index: i}
		var text string
		switch m := &all[i]; m.Type {
		case message.TextBlock:
			b.Type, text = "text", m.Text
		case message.ReasoningBlock:
			b.Type, text = "reasoning", m.Text
		case message.ToolCallBlock:
			name := veil.Line(m.Name)
			b.Type, b.Name, text = "call", &name, m.Arguments
		default:
			continue
		}
		if !veil.Show && i == len(all)-1 {
			text = wholeWords(text)
		}
		t := veil.Text(text)
		b.Text = &t
		out = append(out, b)
	}
	return out
}

// longestWord is how much of a last word is held back at most, in bytes.
const longestWord = 512

func wholeWords(s string) string {
	i := strings.LastIndexFunc(s, unicode.IsSpace)
	if len(s)-i-1 > longestWord {
		return s
	}
	return s[:i+1]
}

// drafted is a draft as listeners have it.
type drafted struct {
	turn, step int
	blocks     []block
}

// event tells what came to the draft since listeners had was; nothing when
// nothing did.
func (d *draft) event(was drafted, veil *facts.Veil) (b []byte, now drafted) {
	now = drafted{d.turn, d.step, d.blocks(veil)}
	reset := len(was.blocks) == 0 || len(was.blocks) > len(now.blocks)
	var tell []block
	for i := range now.blocks {
		is := now.blocks[i]
		if i >= len(was.blocks) {
			tell = append(tell, is)
			continue
		}
		old := was.blocks[i]
		if old.Type != is.Type || old.Index != is.Index {
			reset = true
			break
		}
		if *is.Text == *old.Text {
			continue
		}
		if more, ok := strings.CutPrefix(string(*is.Text), string(*old.Text)); ok {
			is = block{Index: is.Index, Append: pointerTo(facts.Text(more))}
		}
		tell = append(tell, is)
	}
	if reset {
		if len(was.blocks) == 0 && len(now.blocks) == 0 {
			return nil, now
		}
		return now.whole(), now
	}
	if len(tell) == 0 {
		return nil, now
	}
	return encodeDraft(now.turn, now.step, false, tell), now
}

// whole tells the draft to who has nothing of it.
func (d *drafted) whole() []byte { return encodeDraft(d.turn, d.step, true, d.blocks) }

func pointerTo[T any](v T) *T { return &v }

func encodeDraft(turn, step int, reset bool, blocks []block) []byte {
	if blocks == nil {
		blocks = []block{}
	}
	out, err := jsonwire.Marshal(struct {
		Turn   int     `json:"turn"`
		Step   int     `json:"step"`
		Reset  bool    `json:"reset"`
		Blocks []block `json:"blocks"`
	}{turn, step, reset, blocks})
	if err != nil {
		return nil
	}
	return Event("draft", "", out)
}
