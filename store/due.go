package store

import (
	"context"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/message"
)

// Due folds what a log leaves to be done: input that waits, and a turn that a
// crash cut before its answer was there. It is kept beside a log as it grows, in
// memory that does not grow with it. NewDue makes one; a store that keeps heads of
// its logs keeps the members there, and goes on with them after For.
//
// What a seed holds is its parent's and is not counted.
type Due struct {
	// NextStep and NextTurn are how many messages wait in the two lists of the
	// inbox.
	NextStep, NextTurn int
	// Open: a turn has begun and not ended. Somebody runs it, or died at it.
	Open bool
	// Cut: the turn that is open, or the last one when it was interrupted or
	// handed over, has input to which there is no complete answer.
	Cut bool
	// Cuts is how many processes in a row died over a turn, up to the last turn
	// that ended; one that was handed over does not count, and a person's input
	// begins the count anew.
	Cuts int

	own outcrop.Seq // events below it are the seed
}

// NewDue is that of a log with this header and no events.
func NewDue(h outcrop.Header) *Due {
	d := &Due{}
	d.For(h)
	return d
}

// For says whose log the next records are of.
func (d *Due) For(h outcrop.Header) {
	if d.own = 0; h.SeedLength != nil {
		d.own = outcrop.Seq(*h.SeedLength)
	}
}

// Pending is how many messages wait in the inbox.
func (d *Due) Pending() int { return d.NextStep + d.NextTurn }

// Add takes the next record of the log.
func (d *Due) Add(r outcrop.Record) {
	if r.Run != nil || r.Seq < d.own {
		return
	}
	switch r.Type {
	case outcrop.TypeInboxSpliced:
		d.splice(r.Data)
	case outcrop.TypeTurnStart:
		d.Open = true // Cut stays what it was until something enters
	case outcrop.TypeAssistantMessage:
		if d.Open && r.Op.IsAppend() {
			d.Cut = !final(r.Data)
		}
	case outcrop.TypeUserMessage, outcrop.TypeToolResult, outcrop.TypeContextMessage:
		if d.Open && r.Op.IsAppend() {
			d.Cut = true
		}
	case outcrop.TypeTurnEnd:
		kind := interruption(jsonwire.Get(r.Data, "reason"))
		d.Cut = d.Open && d.Cut && kind != ""
		d.Open = false
		switch {
		case kind == outcrop.TurnInterrupted:
			d.Cuts++
		case !d.Cut:
			d.Cuts = 0
		}
	case outcrop.TypeOutcropRewind:
		d.Cut, d.Cuts = d.Open && d.Cut, 0
	}
}

// HandedOver is the reason, as that of a hook, with which a turn ends that is
// stopped so that another process goes on with it.
const HandedOver = "handed over"

// interruption is the kind of a reason that ends a turn which is not done, else
// "".
func interruption(reason []byte) outcrop.ReasonKind {
	switch kind, _ := jsonwire.Text(jsonwire.Get(reason, "kind")); kind {
	case string(outcrop.TurnInterrupted):
		return outcrop.TurnInterrupted
	case string(outcrop.TurnAborted):
		if jsonwire.TextIs(jsonwire.Get(jsonwire.Get(reason, "reason"), "reason"), HandedOver) {
			return outcrop.TurnAborted
		}
	}
	return ""
}

// final reports that a reply is whole and asks for nothing more.
func final(data []byte) bool {
	if v := jsonwire.Get(data, "interrupted"); len(v) > 0 && v[0] == 't' {
		return false
	}
	for b := range jsonwire.Elements(jsonwire.Get(jsonwire.Get(data, "message"), "content")) {
		if jsonwire.TextIs(jsonwire.Get(b, "type"), string(message.ToolCallBlock)) {
			return false
		}
	}
	return true
}

// splice applies a change of the inbox by the rules of package agent: one that
// reaches beyond its list is cut to what is there.
func (d *Due) splice(data []byte) {
	var list *int
	switch target, _ := jsonwire.Text(jsonwire.Get(data, "target")); target {
	case string(outcrop.NextStep):
		list = &d.NextStep
	case string(outcrop.NextTurn):
		list = &d.NextTurn
	default:
		return
	}
	start, _ := jsonwire.Int(jsonwire.Get(data, "start"))
	start = min(max(start, 0), int64(*list))
	removed, _ := jsonwire.Int(jsonwire.Get(data, "removedCount"))
	*list -= int(min(max(removed, 0), int64(*list)-start))
	for v := range jsonwire.Elements(jsonwire.Get(data, "inserted")) {
		if _, err := message.Parse(v); err == nil {
			*list++
		}
		if jsonwire.TextIs(jsonwire.Get(jsonwire.Get(v, "source"), "kind"), message.FromUser.Kind) {
			d.Cuts = 0
		}
	}
}

// Work reports whether the log leaves something to be done, for somebody who
// goes on with turns that were cut.
func (d *Due) Work() bool { return d.Pending() > 0 || d.Open || d.Cut }

// Looker is a store that tells of one session as List does, without reading its
// log.
type Looker interface {
	// Look returns what List says about one session. ErrNotFound.
	Look(ctx context.Context, id string) (Info, error)
}

// DueOf is what a stored log leaves to be done. Where the store does not keep
// it, the log is read. Damage behind what was read is its error.
func DueOf(ctx context.Context, st Store, id string) (*Due, error) {
	if l, ok := st.(Looker); ok {
		in, err := l.Look(ctx, id)
		if err != nil {
			return nil, err
		}
		if in.Due != nil {
			return in.Due, nil
		}
	}
	sd, err := st.Read(ctx, id)
	if err != nil {
		return nil, err
	}
	defer sd.Close()
	d := NewDue(sd.Header())
	for r, err := range cancellable(ctx, sd.Records()) {
		if err != nil {
			return nil, err
		}
		d.Add(r)
	}
	return d, nil
}
