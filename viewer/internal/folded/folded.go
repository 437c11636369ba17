// Package folded keeps what a viewer asks about one session, folded from its
// log as the log grows: the list of events with runs of chunks as one row, the
// strata of the surface, the conversation, turns, and what the session is about.
//
// Everything is found in one pass, record by record, and nothing of a record's
// data is kept: what is shown is read from the log again.
//
// # Conversation
//
// An Item is a piece of what people read, in log order: what was appended to the
// surface, the edits of it, the beginnings of turns, unhappy ends, names. When a
// rewind takes a part away, the part is one entry of the list that people see
// (Visible), and the items stay in the full list (Items).
//
//	items     turn user asst result asst | turn user asst | rewind | turn user
//	visible   turn user asst result asst | fold(3)        |        | turn user
package folded

import (
	"errors"
	"fmt"
	"slices"
	"sort"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/brief"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/message"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/viewer/internal/strata"
)

// Lane says which part of the program an event is about.
type Lane uint8

const (
	Turns Lane = iota
	Messages
	Tools
	History
	Other
	lanes
)

// Lanes are the names of the lanes, by number.
var Lanes = [lanes]string{"turns", "messages", "tools", "history", "other"}

func (l Lane) String() string { return Lanes[l] }

// Row is an entry of the list of events: one event, or a run of chunks that
// goes on to the row after it.
type Row struct {
	Seq  outcrop.Seq
	Lane Lane
	Run  bool
}

// ItemKind says what an item is.
type ItemKind uint8

const (
	User ItemKind = iota
	Assistant
	Result
	Context
	Checkpoint
	Prune
	Rewind
	Turn
	End
	Title
	Notice
	Fold // only in Visible
)

var itemKinds = [...]string{"user", "assistant", "result", "context", "checkpoint", "prune", "rewind", "turn", "end", "title", "notice", "rewound"}

func (k ItemKind) String() string { return itemKinds[k] }

// Item is a piece of the conversation.
type Item struct {
	Seq  outcrop.Seq
	Turn int32 // 0 outside of turns
	Step int32 // 0 outside of steps
	Kind ItemKind
}

// Entry is what stands in the list that people see: the item From, or, when By
// is not 0, the items from From to To, which the rewind By took away.
type Entry struct {
	From, To int32
	By       outcrop.Seq
}

// Bounds are those of a turn. EndRow and EndSeq are -1 while it is open.
type Bounds struct {
	Turn        int
	Row, EndRow int
	Seq, EndSeq outcrop.Seq
	Column      int // columns before it
}

// Pin is a node that outcrop/pin names.
type Pin struct {
	Seq  outcrop.Seq
	Held bool // it is on the surface
}

// Index is what is known about a log so far. One goroutine adds, under the
// lock of whoever owns the index; all else only reads.
type Index struct {
	Header outcrop.Header

	Rows    []Row
	Forest  strata.Forest
	Items   []Item
	Visible []Entry
	TurnsOf []Bounds
	Prompts []outcrop.Seq // what people wrote

	Title     string
	titled    bool
	Tags      []string
	Updated   int64 // time of the last event
	Model     string
	Window    int64
	HeaderAt  outcrop.Seq // of the request header in force, -1
	NoMarkers bool
	// OpenTurn and OpenStep are those of the open turn, 0 when none is open.
	OpenTurn, OpenStep int
	// Versions are the prompts that were sent in each other's place.
	Versions map[outcrop.Seq]*Versions
	// Bytes is how much text the log has so far.
	Bytes int64
	// Prices are those of the nodes, Accounts what is known of calls.
	Prices   *Prices
	Accounts *Accounts

	n          outcrop.Seq
	pinned     map[outcrop.Seq]bool
	rewindAt   outcrop.Seq   // of the last outcrop/rewind, -1
	again      outcrop.Seq   // the prompt that the next one stands for, -1
	generation []outcrop.Seq // the events that replaced
	epochs     []outcrop.Seq // the session/end-seed events
}

// Versions are prompts that were sent in each other's place, oldest first.
type Versions struct{ Seqs []outcrop.Seq }

// New begins the index of a log.
func New(h outcrop.Header) *Index {
	return &Index{Header: h, HeaderAt: -1, rewindAt: -1, again: -1, pinned: map[outcrop.Seq]bool{}, Prices: new(Prices), Accounts: new(Accounts), Versions: map[outcrop.Seq]*Versions{}}
}

// Len is the number of events so far.
func (x *Index) Len() outcrop.Seq { return x.n }

// ErrOrder: a record is not the next one, or edits what is not on the surface.
var ErrOrder = errors.New("record does not follow")

// Add takes the next record. After an error the index is what it was.
func (x *Index) Add(r outcrop.Record) error {
	if r.Seq != x.n && r.Run == nil || r.Run != nil && r.Run.First != x.n {
		return fmt.Errorf("%w: it has seq %d, not %d", ErrOrder, r.Seq, x.n)
	}
	if r.Run != nil {
		x.chunk(r.Run.First)
		x.Updated = r.Run.At(r.Run.Len - 1).Time
		x.Bytes += int64(len(r.Run.Line()))
		x.n += outcrop.Seq(r.Run.Len)
		return nil
	}
	ev := &r.Event
	if ev.Type == outcrop.TypeAssistantChunk {
		x.chunk(ev.Seq)
	} else if err := x.event(ev); err != nil {
		return err
	}
	x.Updated = ev.Time
	x.Bytes += int64(len(ev.Line()))
	x.n++
	return nil
}

// chunk takes a piece of a reply, which belongs to the run before it.
func (x *Index) chunk(seq outcrop.Seq) {
	if k := len(x.Rows); k > 0 && x.Rows[k-1].Run {
		return
	}
	x.Rows = append(x.Rows, Row{Seq: seq, Lane: Messages, Run: true})
}

func (x *Index) event(ev *outcrop.Event) error {
	lane := laneOf(ev)
	if isSurface(ev.Type) {
		if err := x.surface(ev, &lane); err != nil {
			return err
		}
	}
	x.Rows = append(x.Rows, Row{Seq: ev.Seq, Lane: lane})
	switch ev.Type {
	case outcrop.TypeTurnStart:
		x.OpenTurn, x.OpenStep = number(ev.Data, "turn"), 0
		x.TurnsOf = append(x.TurnsOf, Bounds{Turn: x.OpenTurn, Row: len(x.Rows) - 1, EndRow: -1, Seq: ev.Seq, EndSeq: -1, Column: x.Forest.Columns()})
		x.item(ev.Seq, Turn)
	case outcrop.TypeStepStart:
		x.OpenStep = number(ev.Data, "step")
	case outcrop.TypeStepEnd:
		x.OpenStep = 0
	case outcrop.TypeTurnEnd:
		if k := len(x.TurnsOf); k > 0 && x.TurnsOf[k-1].EndSeq < 0 {
			x.TurnsOf[k-1].EndRow, x.TurnsOf[k-1].EndSeq = len(x.Rows)-1, ev.Seq
		}
		if !jsonwire.TextIs(jsonwire.Get(jsonwire.Get(ev.Data, "reason"), "kind"), string(outcrop.Completed)) {
			x.item(ev.Seq, End)
		}
		x.OpenTurn, x.OpenStep = 0, 0
	case outcrop.TypeSessionTitle:
		x.Title, _ = jsonwire.Text(jsonwire.Get(ev.Data, "title"))
		x.titled = x.Title != ""
		x.item(ev.Seq, Title)
	case outcrop.TypeLLMRetry:
		x.item(ev.Seq, Notice)
	case outcrop.TypeApprovalDecided:
		if o := jsonwire.Get(ev.Data, "outcome"); !jsonwire.TextIs(o, "allowed-once") {
			x.item(ev.Seq, Notice)
		}
	case outcrop.TypeRequestHeader:
		config := jsonwire.Get(jsonwire.Get(ev.Data, "header"), "config")
		p, _ := jsonwire.Text(jsonwire.Get(config, "provider"))
		m, _ := jsonwire.Text(jsonwire.Get(config, "model"))
		name := p + ":" + m
		if x.Model != "" && name != x.Model {
			x.item(ev.Seq, Notice)
		}
		x.Model, x.HeaderAt = name, ev.Seq
	case outcrop.TypeRequestContext:
		x.Window = max(outcrop.ParseRequestContext(ev.Data).ContextWindow, 0)
	case outcrop.TypeEndSeed:
		x.epochs = append(x.epochs, ev.Seq)
	case outcrop.TypeOutcropRewind:
		x.rewindAt, x.again = ev.Seq, -1
		if n, ok := jsonwire.Int(jsonwire.Get(ev.Data, "prompt")); ok {
			x.again = outcrop.Seq(n)
		}
	case outcrop.TypeOutcropPin:
		if n, ok := jsonwire.Int(jsonwire.Get(ev.Data, "node")); ok {
			if string(jsonwire.Get(ev.Data, "pinned")) == "true" {
				x.pinned[outcrop.Seq(n)] = true
			} else {
				delete(x.pinned, outcrop.Seq(n))
			}
		}
	case outcrop.TypeOutcropTag:
		x.tag(ev.Data)
	}
	return nil
}

// tag sets or removes a tag of the session.
func (x *Index) tag(data []byte) {
	name, ok := jsonwire.Text(jsonwire.Get(data, "tag"))
	if !ok || name == "" {
		return
	}
	at := slices.Index(x.Tags, name)
	switch set := string(jsonwire.Get(data, "set")) == "true"; {
	case set && at < 0 && len(x.Tags) < maxTags:
		x.Tags = append(slices.Clone(x.Tags), name)
	case !set && at >= 0:
		x.Tags = slices.Delete(slices.Clone(x.Tags), at, at+1)
	}
}

const maxTags = 1000

// surface takes an event that can stand on the surface.
func (x *Index) surface(ev *outcrop.Event, lane *Lane) error {
	kind, item := kindOf(ev)
	start, end, replace := ev.Op.Range()
	switch {
	case replace:
		*lane = History
		rewind := x.rewindAt >= 0 && x.rewindAt == ev.Seq-1
		if err := x.Forest.Replace(ev.Seq, start, end, kind, rewind); err != nil {
			return fmt.Errorf("%w: %w", ErrOrder, err)
		}
		x.generation = append(x.generation, ev.Seq)
		switch {
		case rewind:
			x.fold(ev.Seq)
		case ev.Type == outcrop.TypeToolResult:
			x.item(ev.Seq, Prune)
		default:
			x.item(ev.Seq, Checkpoint)
		}
		return nil
	case ev.Op.IsAppend():
		x.Forest.Append(ev.Seq, kind)
	default:
		x.NoMarkers = true
	}
	x.item(ev.Seq, item)
	if item == User {
		x.prompt(ev)
	}
	return nil
}

func (x *Index) prompt(ev *outcrop.Event) {
	x.Prompts = append(x.Prompts, ev.Seq)
	if x.again >= 0 {
		v := x.Versions[x.again]
		if v == nil {
			v = &Versions{Seqs: []outcrop.Seq{x.again}}
			x.Versions[x.again] = v
		}
		v.Seqs = append(v.Seqs, ev.Seq)
		x.Versions[ev.Seq] = v
		x.again = -1
	}
	if !x.titled && x.Title == "" {
		x.Title = firstWords(*ev)
	}
}

func (x *Index) item(seq outcrop.Seq, k ItemKind) {
	i := int32(len(x.Items))
	x.Items = append(x.Items, Item{Seq: seq, Turn: int32(x.OpenTurn), Step: int32(x.OpenStep), Kind: k})
	x.Visible = append(x.Visible, Entry{From: i, To: i})
}

// fold puts what the rewind at seq took away into one entry: everything since
// the first event that it took away, with the turn that began with it.
func (x *Index) fold(seq outcrop.Seq) {
	n := x.Forest.Node(x.Forest.Len() - 1)
	first := x.Forest.Node(x.Forest.Column(int(n.A))).Seq
	from := x.Place(first)
	// The beginning of the turn stands before its first message.
	for from > 0 && x.Items[from-1].Kind == Turn {
		from--
	}
	to := int32(len(x.Items) - 1)
	x.Items = append(x.Items, Item{Seq: seq, Kind: Rewind})
	if from > int(to) {
		return
	}
	at, _ := x.Seen(from)
	x.Visible = append(x.Visible[:at], Entry{From: x.Visible[at].From, To: to, By: seq})
}

// Place is the place in Items of the first item that is not before the event
// seq.
func (x *Index) Place(seq outcrop.Seq) int {
	return sort.Search(len(x.Items), func(i int) bool { return x.Items[i].Seq >= seq })
}

// Item finds the item of an event.
func (x *Index) Item(seq outcrop.Seq) (i int, ok bool) {
	i = x.Place(seq)
	return i, i < len(x.Items) && x.Items[i].Seq == seq
}

// Seen is where an item stands in Visible: in an entry of its own, or folded.
func (x *Index) Seen(item int) (at int, folded bool) {
	at = sort.Search(len(x.Visible), func(i int) bool { return int(x.Visible[i].To) >= item })
	if at == len(x.Visible) {
		// A rewind that took the last items away is part of their fold.
		return max(at-1, 0), true
	}
	return at, x.Visible[at].By != 0 || int(x.Visible[at].From) > item
}

// RowOf is the row that an event stands in.
func (x *Index) RowOf(seq outcrop.Seq) int {
	return sort.Search(len(x.Rows), func(i int) bool { return x.Rows[i].Seq > seq }) - 1
}

// LastOf is the last event of a row.
func (x *Index) LastOf(row int) outcrop.Seq {
	if row+1 < len(x.Rows) {
		return x.Rows[row+1].Seq - 1
	}
	return x.n - 1
}

// GenerationAt is how many replaces there were after an event.
func (x *Index) GenerationAt(seq outcrop.Seq) int {
	return sort.Search(len(x.generation), func(i int) bool { return x.generation[i] > seq })
}

// EpochAt is how many writers had taken the session up, after the first one, by
// an event.
func (x *Index) EpochAt(seq outcrop.Seq) int {
	return sort.Search(len(x.epochs), func(i int) bool { return x.epochs[i] > seq })
}

// Pins are the pinned nodes, by seq.
func (x *Index) Pins() []Pin {
	list := make([]Pin, 0, len(x.pinned))
	for seq := range x.pinned {
		i := x.Forest.Find(seq)
		list = append(list, Pin{seq, i >= 0 && x.Forest.Up(i, x.n) < 0})
	}
	slices.SortFunc(list, func(a, b Pin) int { return int(a.Seq - b.Seq) })
	return list
}

// Pinned reports whether a node is pinned.
func (x *Index) Pinned(seq outcrop.Seq) bool { return x.pinned[seq] }

// PinnedSet are the nodes that are pinned. Read it only, under the lock.
func (x *Index) PinnedSet() map[outcrop.Seq]bool { return x.pinned }

// Root is the node that stands for an event of the surface now: itself when it
// is there. ok is false for an event that never was on the surface.
func (x *Index) Root(seq outcrop.Seq) (root outcrop.Seq, ok bool) {
	i := x.Forest.Find(seq)
	if i < 0 {
		return 0, false
	}
	r, _ := x.Forest.Root(i, x.n)
	return x.Forest.Node(r).Seq, true
}

func isSurface(t outcrop.Type) bool {
	switch t {
	case outcrop.TypeUserMessage, outcrop.TypeAssistantMessage, outcrop.TypeToolResult, outcrop.TypeContextMessage:
		return true
	}
	return false
}

func laneOf(ev *outcrop.Event) Lane {
	switch ev.Type {
	case outcrop.TypeTurnStart, outcrop.TypeTurnEnd, outcrop.TypeStepStart, outcrop.TypeStepEnd:
		return Turns
	case outcrop.TypeUserMessage, outcrop.TypeAssistantMessage, outcrop.TypeContextMessage, outcrop.TypeAssistantChunk:
		return Messages
	case outcrop.TypeToolCall, outcrop.TypeToolResult, outcrop.TypeApprovalAsked, outcrop.TypeApprovalDecided:
		return Tools
	case outcrop.TypeCompactionStart, outcrop.TypeCompactionSummary, outcrop.TypeCompactionEnd, outcrop.TypeCompactionPrune,
		outcrop.TypeOutcropEdit, outcrop.TypeOutcropRewind, outcrop.TypeOutcropPin, outcrop.TypeOutcropSummarizer:
		return History
	}
	return Other
}

// kindOf says who speaks in an event of the surface.
func kindOf(ev *outcrop.Event) (strata.Kind, ItemKind) {
	switch ev.Type {
	case outcrop.TypeAssistantMessage:
		return strata.Assistant, Assistant
	case outcrop.TypeToolResult:
		return strata.Tool, Result
	}
	source := jsonwire.Get(ev.Data, "source")
	kind := jsonwire.Get(source, "kind")
	switch {
	case brief.IsCheckpoint(source):
		return strata.Checkpoint, Checkpoint
	case ev.Type == outcrop.TypeContextMessage:
		return strata.Context, Context
	case kind == nil || jsonwire.TextIs(kind, message.FromUser.Kind):
		return strata.User, User
	}
	return strata.Context, Context
}

// KindOf says who speaks in an event of the surface.
func KindOf(ev outcrop.Event) strata.Kind {
	k, _ := kindOf(&ev)
	return k
}

// firstWords are the first line of a prompt, as a listing shows it.
func firstWords(ev outcrop.Event) string {
	var s store.Summary
	s.Add(outcrop.Record{Event: ev})
	return s.Title
}

func number(data []byte, name string) int {
	n, _ := jsonwire.Int(jsonwire.Get(data, name))
	return int(max(min(n, 1<<31-1), 0))
}
