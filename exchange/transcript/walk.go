package transcript

import (
	"fmt"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/history/rewind"
	"github.com/outcrop-dev/outcrop/internal/brief"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/message"
)

// walk is the second pass. The last reply waits for the results of its calls.
type walk struct {
	t       *Transcript
	yield   func(Item, error) bool
	stopped bool

	turn    int
	opening *Item // a turn of which nothing was shown yet
	reply   *Item
	waiting int // its calls without a result
	gone    int // messages of a run that a rewind took away
	goneAt  Item
}

// event takes the next event and reports whether to go on.
func (w *walk) event(ev *outcrop.Event) bool {
	switch {
	case ev.Type == outcrop.TypeTurnStart:
		w.flushReply()
		n, _ := jsonwire.Int(jsonwire.Get(ev.Data, "turn"))
		w.turn = int(n)
		w.opening = &Item{Kind: Turn, Seq: ev.Seq, Time: ev.Time, Turn: w.turn}
	case ev.Type == outcrop.TypeTurnEnd:
		w.flushReply()
		// Of a turn that is gone the end is gone too.
		if how := brief.Ending(ev.Data); how != "completed" && w.opening == nil && w.gone == 0 {
			w.put(Item{Kind: TurnEnd, Seq: ev.Seq, Time: ev.Time, Turn: w.turn, Text: w.t.mask.Text(how)})
		}
		w.opening, w.turn = nil, 0
	case !ev.Type.Surface():
	case w.t.gone[ev.Seq]:
		if speaks(ev) {
			w.flushReply()
			if w.gone++; w.gone == 1 {
				w.goneAt = Item{Kind: Gone, Seq: ev.Seq, Time: ev.Time, Turn: w.turn}
			}
		}
	case !speaks(ev):
		w.flushReply()
		w.put(w.edit(ev))
	case ev.Type == outcrop.TypeToolResult:
		w.result(ev)
	default:
		w.flushReply()
		it := w.message(ev)
		if it.Who == Assistant {
			for i := range it.Blocks {
				if it.Blocks[i].Type == message.ToolCallBlock {
					w.waiting++
				}
			}
			if w.waiting > 0 {
				w.reply = &it
				break
			}
		}
		w.put(it)
	}
	return !w.stopped
}

func (w *walk) end() {
	w.flushReply()
	w.flushGone()
}

// flushGone shows what a rewind took away: one item for a run of turns.
func (w *walk) flushGone() {
	if w.gone == 0 {
		return
	}
	it := w.goneAt
	it.Count = w.gone
	w.gone = 0
	opening := w.opening // of the turn that comes
	w.opening = nil
	w.put(it)
	w.opening = opening
}

// flushReply shows the reply that waits for results.
func (w *walk) flushReply() {
	if it := w.reply; it != nil {
		w.reply, w.waiting = nil, 0
		w.put(*it)
	}
}

// put shows an item that is wanted, and before it the beginning of its turn.
func (w *walk) put(it Item) {
	if it.Kind != Gone {
		w.flushGone()
	}
	o := &w.t.o
	if w.stopped || it.Seq < o.From || it.Time < o.Since ||
		o.FirstTurn > 0 && it.Turn < o.FirstTurn || o.LastTurn > 0 && (it.Turn == 0 || it.Turn > o.LastTurn) {
		return
	}
	if open := w.opening; open != nil && it.Turn == open.Turn {
		w.opening = nil
		if w.stopped = !w.yield(*open, nil); w.stopped {
			return
		}
	}
	w.stopped = !w.yield(it, nil)
}

// message is the item of a message.
func (w *walk) message(ev *outcrop.Event) Item {
	it := Item{Kind: Message, Seq: ev.Seq, Time: ev.Time, Turn: w.turn}
	who, _ := brief.Parts(*ev)
	raw := brief.MessageOf(*ev)
	msg, err := message.Parse(raw)
	if err != nil {
		it.Who, it.Text = Context, "this message cannot be read: "+err.Error()
		return it
	}
	switch who {
	case "assistant":
		it.Who = Assistant
		if s := msg.Source; s.Model != "" {
			it.Model = s.Provider + ":" + s.Model
		}
		it.Interrupted = string(jsonwire.Get(ev.Data, "interrupted")) == "true"
	case "user":
		it.Who = User
	default:
		it.Who = Context
		it.Text = msg.Source.Form
		if it.Text == "" {
			it.Text = msg.Source.Plugin
		}
		it.Text = w.t.mask.Text(it.Text)
	}
	it.Blocks = w.blocks(msg.Content)
	return it
}

// result puts a result under its call.
func (w *walk) result(ev *outcrop.Event) {
	msg, err := message.Parse(brief.MessageOf(*ev))
	if err != nil {
		return
	}
	for i := range msg.Content {
		b := &msg.Content[i]
		if b.Type != message.ToolResultBlock {
			continue
		}
		answer := &Answer{Seq: ev.Seq, Time: ev.Time, IsError: b.IsError, Blocks: w.blocks(b.Content)}
		if call := w.call(b.ToolCallID); call != nil {
			call.Result = answer
			if w.waiting--; w.waiting == 0 {
				w.flushReply()
			}
			continue
		}
		w.flushReply()
		w.put(Item{Kind: Message, Seq: ev.Seq, Time: ev.Time, Turn: w.turn, Who: Result,
			Blocks: []Block{{Type: message.ToolCallBlock, CallID: b.ToolCallID, Result: answer}}})
	}
}

// call is the waiting call with an id, nil when there is none.
func (w *walk) call(id string) *Block {
	if w.reply == nil {
		return nil
	}
	for i := range w.reply.Blocks {
		if b := &w.reply.Blocks[i]; b.Type == message.ToolCallBlock && b.CallID == id && b.Result == nil {
			return b
		}
	}
	return nil
}

// edit is the item of a history edit.
func (w *walk) edit(ev *outcrop.Event) Item {
	it := Item{Kind: Edit, Seq: ev.Seq, Time: ev.Time, Turn: w.turn}
	start, end, _ := ev.Op.Range()
	msg, _ := message.Parse(brief.MessageOf(*ev))
	what := "replaced"
	switch {
	case ev.Type == outcrop.TypeToolResult:
		what = "pruned"
	case rewind.IsPlace(*ev):
		what = "rewound"
	case msg.Source.CompactionID != "":
		what = "compacted"
		it.Blocks = w.blocks(msg.Content)
	default:
		it.Blocks = w.blocks(msg.Content)
	}
	it.Text = fmt.Sprintf("%s: node %d, now %d", what, start, ev.Seq)
	if start != end {
		it.Text = fmt.Sprintf("%s: nodes %d to %d, now %d", what, start, end, ev.Seq)
	}
	return it
}

// blocks masks and takes what a reader needs.
func (w *walk) blocks(in []message.Block) []Block {
	m := &w.t.mask
	out := make([]Block, 0, len(in))
	for i := range in {
		b := &in[i]
		switch b.Type {
		case message.TextBlock, message.ReasoningBlock:
			out = append(out, Block{Type: b.Type, Text: m.Text(b.Text)})
		case message.ToolCallBlock:
			out = append(out, Block{Type: b.Type, CallID: b.ID, Name: m.Text(b.Name), Arguments: m.Arguments(b.Arguments)})
		case message.ToolResultBlock:
			out = append(out, Block{Type: message.ToolCallBlock, CallID: b.ToolCallID, Result: &Answer{IsError: b.IsError, Blocks: w.blocks(b.Content)}})
		case message.ImageBlock:
			img := Block{Type: b.Type}
			img.Image.ID, _ = jsonwire.Text(jsonwire.Get(b.Attachment, "attachmentId"))
			img.Image.MediaType, _ = jsonwire.Text(jsonwire.Get(b.Attachment, "mediaType"))
			name, _ := jsonwire.Text(jsonwire.Get(b.Attachment, "name"))
			img.Name = m.Text(name)
			img.Image.Width, _ = jsonwire.Int(jsonwire.Get(b.Attachment, "width"))
			img.Image.Height, _ = jsonwire.Int(jsonwire.Get(b.Attachment, "height"))
			out = append(out, img)
		default:
			out = append(out, Block{Type: b.Type, Text: string(m.JSON(b.Raw))})
		}
	}
	return out
}
