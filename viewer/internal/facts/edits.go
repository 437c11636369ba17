package facts

import (
	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/history"
	"github.com/outcrop-dev/outcrop/history/rewind"
	"github.com/outcrop-dev/outcrop/message"
)

// Edits is what a compaction or a pruning did, or would do.
type Edits struct {
	Schema
	Edits   []Made        `json:"edits"`
	Planned []Planned     `json:"planned"`
	Queued  []outcrop.Seq `json:"queued"`
	Before  int64         `json:"before"`
	After   int64         `json:"after"`
	Calls   int           `json:"calls"`
	Notice  *Text         `json:"notice"`
	Problem *Text         `json:"problem"`
	DryRun  bool          `json:"dryRun"`
}

// Made is an edit that was made.
type Made struct {
	Kind             string        `json:"kind"`
	CompactionID     *Text         `json:"compactionId"`
	Replacement      outcrop.Seq   `json:"replacement"`
	Shadowed         []outcrop.Seq `json:"shadowed"`
	TokensBefore     int64         `json:"tokensBefore"`
	TokensAfter      int64         `json:"tokensAfter"`
	CacheInvalidated int64         `json:"cacheInvalidated"`
	Level            int           `json:"level"`
	ModelFree        bool          `json:"modelFree"`
}

// Planned is an edit that was not made.
type Planned struct {
	Kind             string        `json:"kind"`
	Nodes            []outcrop.Seq `json:"nodes"`
	Tokens           int64         `json:"tokens"`
	Level            int           `json:"level"`
	CacheInvalidated int64         `json:"cacheInvalidated"`
}

// EditsOf shows a report.
func EditsOf(r history.Report, dry bool, veil *Veil) Edits {
	out := Edits{Schema: V1, Edits: []Made{}, Planned: []Planned{}, Queued: append([]outcrop.Seq{}, r.Queued...),
		Before: r.Before, After: r.After, Calls: r.Calls, Notice: orNull(veil.Line(r.Notice)), DryRun: dry}
	if r.Err != nil {
		out.Problem = pointer(veil.Text(r.Err.Error()))
	}
	for _, e := range r.Edits {
		kind := "prune"
		if e.ID != "" {
			kind = "compact"
		}
		out.Edits = append(out.Edits, Made{kind, orNull(veil.Line(e.ID)), e.Replacement, append([]outcrop.Seq{}, e.Shadowed...), e.TokensBefore, e.TokensAfter, e.CacheInvalidated, e.Level, e.ModelFree})
	}
	for _, p := range r.Planned {
		kind := "compact"
		if p.Kind == history.KindPrune {
			kind = "prune"
		}
		out.Planned = append(out.Planned, Planned{kind, append([]outcrop.Seq{}, p.Nodes...), p.Tokens, p.Level, p.Invalidates})
	}
	return out
}

// Rewound is what a rewind did, or would do.
type Rewound struct {
	Schema
	To          outcrop.Seq   `json:"to"`
	Replacement *outcrop.Seq  `json:"replacement"`
	Removed     []outcrop.Seq `json:"removed"`
	Messages    int           `json:"messages"`
	Tokens      int64         `json:"tokens"`
	PinsEnded   []outcrop.Seq `json:"pinsEnded"`
	NotUndone   []Effect      `json:"notUndone"`
	Dropped     []Text        `json:"dropped"`
	DryRun      bool          `json:"dryRun"`
}

// Effect is a call that a rewind does not undo.
type Effect struct {
	Seq  outcrop.Seq `json:"seq"`
	Tool Text        `json:"tool"`
	What Text        `json:"what"`
}

// RewoundOf shows a plan, and what came of it: the event that took the place, -1
// for none.
func RewoundOf(p rewind.Plan, at outcrop.Seq, dropped []message.Message, dry bool, veil *Veil) Rewound {
	out := Rewound{Schema: V1, To: p.To, Replacement: knownOrNull(at), Removed: append([]outcrop.Seq{}, p.Removed...), Messages: p.Messages, Tokens: p.Tokens,
		PinsEnded: append([]outcrop.Seq{}, p.Pins...), NotUndone: []Effect{}, Dropped: TextsOf(dropped), DryRun: dry}
	for _, e := range p.Effects {
		out.NotUndone = append(out.NotUndone, Effect{e.Seq, veil.Line(e.Tool), veil.Line(e.What)})
	}
	return out
}

// TextsOf are the texts of messages that a person gets back. Nothing of them is
// masked: they are the person's own.
func TextsOf(list []message.Message) []Text {
	out := []Text{}
	for _, m := range list {
		out = append(out, Text(message.PlainText(m.Content)))
	}
	return out
}
