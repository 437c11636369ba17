package facts

import (
	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/brief"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/internal/usage"
	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/message"
	"github.com/outcrop-dev/outcrop/viewer/internal/folded"
)

const (
	// cutText is where texts of a list of items are cut, in bytes.
	cutText = 20_000
	// cutWhole is where those of one item are cut.
	cutWhole = 8 << 20
	// MostItems is the longest list of items.
	MostItems = 200
)

// Place is an item in the list that is asked for, with what the index knows of
// it.
type Place struct {
	at      int // in the list
	item    folded.Item
	fold    folded.Entry // By is 0 for an item
	first   outcrop.Seq  // of the fold
	last    outcrop.Seq
	count   int // messages in the fold
	covered outcrop.Seq
	up      outcrop.Seq // the node directly above, -1
	pinned  bool
	rewound bool
	nodes   int // that an edit took the place of
	ver     []outcrop.Seq
	// For pairing calls and results: seqs of the results behind a reply, of
	// the reply before a result.
	results []outcrop.Seq
	reply   outcrop.Seq
	more    bool // the log goes on behind it within the turn
}

// Places finds the items from to of the list; all says whether it is the full
// one.
func Places(x *folded.Index, from, limit int, all bool) (list []Place, lo, total int) {
	total = len(x.Visible)
	if all {
		total = len(x.Items)
	}
	lo, hi := windowOf(from, limit, total)
	for i := lo; i < hi; i++ {
		if all {
			list = append(list, placeOf(x, i, i))
			continue
		}
		list = append(list, entryOf(x, i))
	}
	return list, lo, total
}

// entryOf is the entry i of the list that people see.
func entryOf(x *folded.Index, i int) Place {
	e := x.Visible[i]
	if e.By == 0 {
		return placeOf(x, int(e.From), i)
	}
	p := Place{at: i, fold: e, item: x.Items[e.From], first: x.Items[e.From].Seq, last: x.Items[e.To].Seq, up: -1, covered: -1}
	for _, it := range x.Items[e.From : e.To+1] {
		if it.Kind <= folded.Context {
			p.count++
		}
	}
	return p
}

// PlaceOf finds the item of an event, in the list that is asked for.
func PlaceOf(x *folded.Index, seq outcrop.Seq, all bool) (Place, bool) {
	i, ok := x.Item(seq)
	if !ok {
		return Place{}, false
	}
	at := i
	if !all {
		at, _ = x.Seen(i)
	}
	return placeOf(x, i, at), true
}

// pairing is how many items are looked through for the other half of a call.
const pairing = 512

func placeOf(x *folded.Index, i, at int) Place {
	it := x.Items[i]
	p := Place{at: at, item: it, covered: -1, up: -1, reply: -1}
	_, p.rewound = x.Seen(i)
	p.more = x.OpenTurn == int(it.Turn) && it.Turn != 0
	if n := x.Forest.Find(it.Seq); n >= 0 {
		root, _ := x.Forest.Root(n, x.Len())
		if root != n {
			p.covered = x.Forest.Node(root).Seq
			p.up = x.Forest.Node(x.Forest.Up(n, x.Len())).Seq
		}
		p.pinned = x.Pinned(it.Seq)
		p.nodes = len(x.Forest.Kids(n))
	}
	switch it.Kind {
	case folded.User:
		if v := x.Versions[it.Seq]; v != nil {
			p.ver = v.Seqs[:len(v.Seqs):len(v.Seqs)]
		}
	case folded.Assistant:
		for k := i + 1; k < min(i+pairing, len(x.Items)); k++ {
			switch x.Items[k].Kind {
			case folded.Result:
				p.results = append(p.results, x.Items[k].Seq)
			case folded.Assistant, folded.Turn:
				k = len(x.Items)
			}
		}
	case folded.Result:
		for k := i - 1; k >= max(0, i-pairing); k-- {
			if x.Items[k].Kind == folded.Assistant {
				p.reply = x.Items[k].Seq
				break
			}
			if x.Items[k].Kind == folded.Turn {
				break
			}
		}
	}
	return p
}

// Item is a piece of the conversation.
type Item struct {
	Index   int          `json:"index"`
	Seq     outcrop.Seq  `json:"seq"`
	Kind    string       `json:"kind"`
	Time    int64        `json:"time"`
	Turn    *int32       `json:"turn"`
	Step    *int32       `json:"step"`
	Covered *outcrop.Seq `json:"covered"`
	Pinned  bool         `json:"pinned"`
	Rewound bool         `json:"rewound"`
	Tokens  int64        `json:"tokens"`
	// Count is how many nodes an edit took the place of, or how many messages
	// are folded.
	Count *int `json:"count,omitzero"`
	*Said
	*Prompt
	*Reply
	*Returned
	*Edited
	*Folded
	*Told
}

// Said is what has blocks.
type Said struct {
	Blocks []Block `json:"blocks"`
}

// Prompt is what stands in a user's place.
type Prompt struct {
	Source   Source    `json:"source"`
	Versions *Versions `json:"versions"`
}

// Source says who wrote a message.
type Source struct {
	Kind    Text  `json:"kind"`
	Plugin  *Text `json:"plugin"`
	Form    *Text `json:"form"`
	Summary *Text `json:"summary"`
}

// Versions are prompts that were sent in each other's place.
type Versions struct {
	N    int           `json:"n"`
	Seqs []outcrop.Seq `json:"seqs"`
}

// Reply is what a model said.
type Reply struct {
	Model       *Text  `json:"model"`
	Interrupted bool   `json:"interrupted"`
	Usage       *Usage `json:"usage"`
	Cost        *int64 `json:"costMicroUSD"`
}

// Returned is what a tool gave.
type Returned struct {
	CallID  Text         `json:"callId"`
	CallSeq *outcrop.Seq `json:"callSeq"`
	Tool    *Text        `json:"tool"`
	IsError bool         `json:"isError"`
	Error   *CallError   `json:"error"`
	MS      *int64       `json:"ms"`
	Pruned  *outcrop.Seq `json:"pruned"`
}

// CallError is the coded failure of a call.
type CallError struct {
	Name Text `json:"name"`
	Code Text `json:"code"`
}

// Edited is an edit of the surface.
type Edited struct {
	Of               *outcrop.Seq `json:"of,omitzero"`
	Start            outcrop.Seq  `json:"start"`
	End              outcrop.Seq  `json:"end"`
	To               *outcrop.Seq `json:"to,omitzero"`
	TokensBefore     *int64       `json:"tokensBefore"`
	TokensAfter      *int64       `json:"tokensAfter"`
	CacheInvalidated *int64       `json:"cacheInvalidated"`
	Level            *int64       `json:"level"`
	ModelFree        *bool        `json:"modelFree"`
}

// Folded stands for items that a rewind took away.
type Folded struct {
	Items int32       `json:"items"`
	By    outcrop.Seq `json:"by"`
	First outcrop.Seq `json:"first"`
	Last  outcrop.Seq `json:"last"`
}

// Told is a line about something that happened.
type Told struct {
	What   *Text `json:"what,omitzero"`
	Reason *Text `json:"reason,omitzero"`
	Text   Text  `json:"text"`
}

// Block is a part of what is said.
type Block struct {
	Type       string       `json:"type"`
	Text       *Text        `json:"text,omitzero"`
	Cut        bool         `json:"cut,omitzero"`
	Bytes      *int64       `json:"bytes,omitzero"`
	ID         *Text        `json:"id,omitzero"`
	Name       *Text        `json:"name,omitzero"`
	Arguments  *Text        `json:"arguments,omitzero"`
	Result     *outcrop.Seq `json:"result,omitzero"`
	State      string       `json:"state,omitzero"`
	Attachment *Text        `json:"attachment,omitzero"`
	MediaType  *Text        `json:"mediaType,omitzero"`
	Width      *int64       `json:"width,omitzero"`
	Height     *int64       `json:"height,omitzero"`
	Raw        *Text        `json:"raw,omitzero"`
}

// Reader makes items of places in a log.
type Reader struct {
	Log   outcrop.Log
	Veil  *Veil
	Price usage.Price // nil: no prices are known
	cut   int
}

// Items makes the items of a list, with long texts cut.
func (r Reader) Items(list []Place) []Item {
	r.cut = cutText
	out := make([]Item, 0, len(list))
	for _, p := range list {
		out = append(out, r.item(p))
	}
	return out
}

// Item makes one item, whole.
func (r Reader) Item(p Place) Item {
	r.cut = cutWhole
	return r.item(p)
}

func (r *Reader) item(p Place) Item {
	ev := r.Log.At(p.item.Seq)
	it := Item{Index: p.at, Seq: p.item.Seq, Kind: p.item.Kind.String(), Time: ev.Time, Pinned: p.pinned, Rewound: p.rewound, Covered: knownOrNull(p.covered)}
	if p.item.Turn > 0 {
		it.Turn = &p.item.Turn
	}
	if p.item.Step > 0 {
		it.Step = &p.item.Step
	}
	if p.fold.By != 0 {
		it.Kind, it.Rewound = folded.Fold.String(), true
		it.Count, it.Folded = &p.count, &Folded{Items: p.fold.To - p.fold.From + 1, By: p.fold.By, First: p.first, Last: p.last}
		return it
	}
	switch p.item.Kind {
	case folded.User, folded.Context, folded.Assistant, folded.Result, folded.Checkpoint:
		r.message(&it, p, ev)
	case folded.Prune:
		it.Count, it.Edited = &p.nodes, r.edited(p, ev)
		it.Edited.Of = &it.Edited.Start
	case folded.Rewind:
		it.Count, it.Edited = &p.nodes, r.edited(p, ev)
		if ev.Seq > 0 {
			if to, ok := jsonwire.Int(jsonwire.Get(r.Log.At(ev.Seq-1).Data, "to")); ok {
				it.Edited.To = pointer(outcrop.Seq(to))
			}
		}
	case folded.End:
		it.Told = &Told{Reason: pointer(r.Veil.Line(text(ev.Data, "reason", "kind"))), Text: r.Veil.Line(brief.Ending(ev.Data))}
	case folded.Title:
		it.Told = &Told{Text: r.Veil.Line(text(ev.Data, "title"))}
	case folded.Notice:
		it.Told = &Told{What: pointer(Text(ev.Type)), Text: r.notice(ev)}
	}
	return it
}

func (r *Reader) notice(ev outcrop.Event) Text {
	switch ev.Type {
	case outcrop.TypeApprovalDecided:
		return r.Veil.Line("a call was not approved: " + text(ev.Data, "outcome"))
	case outcrop.TypeRequestHeader:
		return r.Veil.Line("the model is now " + text(ev.Data, "header", "config", "provider") + ":" + text(ev.Data, "header", "config", "model"))
	case outcrop.TypeLLMRetry:
		why := text(ev.Data, "error", "message")
		if why == "" {
			why = brief.Event(ev)
		}
		return r.Veil.Line("the model is asked again: " + why)
	}
	return r.Veil.Line(brief.Event(ev))
}

func (r *Reader) message(it *Item, p Place, ev outcrop.Event) {
	raw := brief.MessageOf(ev)
	m, err := message.Parse(raw)
	if err != nil {
		t, _, cut := r.Veil.Part(raw, r.cut)
		it.Said = &Said{[]Block{{Type: "other", Name: pointer(Text("message")), Raw: &t, Cut: cut, Bytes: pointer(int64(len(raw)))}}}
		return
	}
	it.Tokens = llm.EstimateTokens(m)
	blocks := m.Content
	switch p.item.Kind {
	case folded.Assistant:
		it.Reply = &Reply{Interrupted: isTrue(jsonwire.Get(ev.Data, "interrupted"))}
		if m.Source.Model != "" {
			it.Reply.Model = pointer(r.Veil.Line(m.Source.Provider + ":" + m.Source.Model))
		}
		if u := message.ParseUsage(jsonwire.Get(ev.Data, "usage")); u != nil {
			it.Reply.Usage = usageOf(u)
			if r.Price != nil {
				if c, ok := llm.Cost(u, r.Price(m.Source.Provider, m.Source.Model)); ok {
					it.Reply.Cost = &c
				}
			}
		}
	case folded.Result:
		it.Returned, blocks = r.returned(p, ev, m)
	case folded.Checkpoint:
		it.Count, it.Edited = &p.nodes, r.edited(p, ev)
	default:
		s := m.Source
		it.Prompt = &Prompt{Source: Source{r.Veil.Line(s.Kind), orNull(r.Veil.Line(s.Plugin)), orNull(r.Veil.Line(s.Form)), orNull(r.Veil.Line(s.Summary))}}
		for i, seq := range p.ver {
			if seq == ev.Seq {
				it.Prompt.Versions = &Versions{i + 1, p.ver}
			}
		}
	}
	it.Said = &Said{make([]Block, 0, len(blocks))}
	for i := range blocks {
		it.Blocks = append(it.Blocks, r.block(&blocks[i], p))
	}
}

// returned is what a result says besides its content.
func (r *Reader) returned(p Place, ev outcrop.Event, m message.Message) (*Returned, []message.Block) {
	out := &Returned{Pruned: knownOrNull(p.up), CallSeq: knownOrNull(p.reply)}
	if p.up >= 0 && r.Log.At(p.up).Type != outcrop.TypeToolResult {
		out.Pruned = nil
	}
	blocks := m.Content
	id := m.Source.CallID
	if len(blocks) == 1 && blocks[0].Type == message.ToolResultBlock {
		id, out.IsError, blocks = blocks[0].ToolCallID, blocks[0].IsError, blocks[0].Content
	}
	out.CallID = r.Veil.Line(id)
	if e := jsonwire.Get(ev.Data, "error"); jsonwire.Kind(e) == '{' {
		out.Error = &CallError{r.Veil.Line(text(e, "name")), r.Veil.Line(text(e, "code"))}
	}
	for seq := range ev.Sources.All() {
		if seq < 0 || seq >= ev.Seq {
			break
		}
		if call := r.Log.At(seq); call.Type == outcrop.TypeToolCall {
			out.Tool = orNull(r.Veil.Line(text(call.Data, "name")))
			out.MS = pointer(max(ev.Time-call.Time, 0))
		}
		break
	}
	return out, blocks
}

func (r *Reader) edited(p Place, ev outcrop.Event) *Edited {
	e := &Edited{}
	e.Start, e.End, _ = ev.Op.Range()
	// Behind an edit stands what it saved and what it cost; at most so many
	// events lie between.
	const behind = 64
	for seq := ev.Seq + 1; seq < min(ev.Seq+behind, outcrop.Seq(r.Log.Len())); seq++ {
		next := r.Log.At(seq)
		if next.Type != outcrop.TypeOutcropEdit {
			continue
		}
		if n, ok := jsonwire.Int(jsonwire.Get(next.Data, "replaceSeq")); !ok || outcrop.Seq(n) != ev.Seq {
			continue
		}
		num := func(name string) *int64 {
			if n, ok := jsonwire.Int(jsonwire.Get(next.Data, name)); ok {
				return &n
			}
			return nil
		}
		e.TokensBefore, e.TokensAfter, e.CacheInvalidated = num("tokensBefore"), num("tokensAfter"), num("cacheInvalidated")
		break
	}
	if ev.Seq > 0 {
		if s := r.Log.At(ev.Seq - 1); s.Type == outcrop.TypeCompactionSummary {
			e.Level = pointer(int64(1))
			if n, ok := jsonwire.Int(jsonwire.Get(s.Data, "level")); ok && n > 0 {
				e.Level = &n
			}
			e.ModelFree = pointer(jsonwire.Get(s.Data, "usage") == nil && !isTrue(jsonwire.Get(s.Data, "llmStreamCall")))
		}
	}
	return e
}

// long puts a text that may be long into a block.
func (r *Reader) long(b *Block, s string) *Text {
	// What is masked may cross the place of the cut.
	part, _ := cutAt(s, r.cut+maskMargin)
	masked := r.Veil.Text(part)
	if len(s) > r.cut {
		short, _ := cutAt(string(masked), r.cut)
		b.Cut, b.Bytes, masked = true, pointer(int64(len(s))), Text(short)
	}
	return &masked
}

func (r *Reader) block(m *message.Block, p Place) Block {
	b := Block{Type: "other"}
	switch m.Type {
	case message.TextBlock, message.ReasoningBlock:
		b.Type = "text"
		if m.Type == message.ReasoningBlock {
			b.Type = "reasoning"
		}
		b.Text = r.long(&b, m.Text)
	case message.ToolCallBlock:
		b.Type, b.ID, b.Name = "call", pointer(r.Veil.Line(m.ID)), pointer(r.Veil.Line(m.Name))
		b.Arguments = r.long(&b, m.Arguments)
		r.pair(&b, m.ID, p)
	case message.ImageBlock:
		num := func(name string) *int64 {
			if n, ok := jsonwire.Int(jsonwire.Get(m.Attachment, name)); ok {
				return &n
			}
			return nil
		}
		b.Type = "image"
		b.Attachment = orNull(r.Veil.Line(text(m.Attachment, "attachmentId")))
		b.MediaType, b.Name = orNull(r.Veil.Line(text(m.Attachment, "mediaType"))), orNull(r.Veil.Line(text(m.Attachment, "name")))
		b.Width, b.Height, b.Bytes = num("width"), num("height"), num("bytes")
	case message.ToolResultBlock:
		b.Name, b.Text = pointer(Text(m.Type)), r.long(&b, message.PlainText(m.Content))
	default:
		b.Name = pointer(r.Veil.Line(string(m.Type)))
		raw := m.AppendJSON(nil)
		t, _, cut := r.Veil.Part(raw, r.cut)
		b.Raw, b.Cut = &t, cut
		b.Bytes = pointer(int64(len(raw)))
	}
	return b
}

// pair finds the result of a call.
func (r *Reader) pair(b *Block, id string, p Place) {
	b.State = "none"
	if p.more {
		b.State = "running"
	}
	for _, seq := range p.results {
		result := jsonwire.Get(r.Log.At(seq).Data, "message")
		if !jsonwire.TextIs(jsonwire.Get(jsonwire.Get(result, "source"), "callId"), id) {
			continue
		}
		b.Result, b.State = pointer(seq), "ok"
		for block := range jsonwire.Elements(jsonwire.Get(result, "content")) {
			if isTrue(jsonwire.Get(block, "isError")) {
				b.State = "error"
			}
			break
		}
		return
	}
}

// IndexOf is the place in the list of the first item that is not before an
// event.
func IndexOf(x *folded.Index, seq outcrop.Seq, all bool) int {
	i := min(x.Place(seq), len(x.Items)-1)
	if i < 0 || all {
		return max(i, 0)
	}
	at, _ := x.Seen(i)
	return at
}

// FirstChanged is the place in the list that people see of the first item that
// the events from seq on made or folded.
func FirstChanged(x *folded.Index, seq outcrop.Seq) int {
	at := IndexOf(x, seq, false)
	if x.Place(seq) >= len(x.Items) {
		at = len(x.Visible)
	}
	for i := len(x.Visible) - 1; i >= 0 && i >= at-1; i-- {
		if x.Visible[i].By >= seq && x.Visible[i].By != 0 {
			at = min(at, i)
		}
	}
	return at
}

// EffectOf is what an event did to the surface: the nodes that it took the place
// of (at most 1,000, nil when it is no edit), and, for a rewind, the place of
// its fold.
func EffectOf(x *folded.Index, seq outcrop.Seq) (shadowed []outcrop.Seq, folds *int) {
	n := x.Forest.Find(seq)
	if n < 0 {
		return nil, nil
	}
	for i, k := range x.Forest.Kids(n) {
		if i == mostSeqs {
			break
		}
		shadowed = append(shadowed, x.Forest.Node(int(k)).Seq)
	}
	if x.Forest.Node(n).Rewind {
		if i, ok := x.Item(seq); ok {
			at, _ := x.Seen(i)
			folds = &at
		}
	}
	return shadowed, folds
}
