package cli

import (
	"context"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/desk"
	"github.com/outcrop-dev/outcrop/internal/exit"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/internal/term"
	"github.com/outcrop-dev/outcrop/store"
)

// beforeCompaction finds the last event before a compaction, and the turns that
// began behind it. What stands there in the middle of a turn, the fork cuts at
// the end of a step.
func (a *app) beforeCompaction(ctx context.Context, t *desk.Target, which string) (at outcrop.Seq, lost []int, err error) {
	s, _, err := store.Inspect(ctx, t.Store, t.ID, outcrop.Options{})
	if err != nil {
		return 0, nil, exit.Unreadable(err)
	}
	want := outcrop.Seq(-1)
	if which != store.Last {
		if want, err = seqArg(which); err != nil {
			return 0, nil, err
		}
	}
	start, open := outcrop.Seq(-1), outcrop.Seq(-1)
	for rec := range s.Log().Records(0) {
		switch rec.Type {
		case outcrop.TypeCompactionStart:
			open = rec.Seq
		case outcrop.TypeCompactionEnd:
			// One that failed has put nothing in the place of anything.
			if open >= 0 && jsonwire.Get(rec.Data, "error") == nil && (want < 0 || open <= want && want <= rec.Seq) {
				start = open
			}
			open = -1
		}
	}
	switch {
	case start < 0 && want >= 0:
		return 0, nil, exit.Usagef("--before %d: no compaction holds this event (outcrop show TARGET --log lists compaction/start)", want)
	case start < 0:
		return 0, nil, exit.Usagef("--before %s: the session has no compaction", term.Quote(which))
	case start == 0:
		return 0, nil, exit.Usagef("--before %s: nothing stands before it", term.Quote(which))
	}
	return start - 1, after(s.Log(), start), nil
}

// after are the numbers of the turns that begin behind an event.
func after(log outcrop.Log, seq outcrop.Seq) (turns []int) {
	for rec := range log.Records(seq) {
		if rec.Type == outcrop.TypeTurnStart {
			n, _ := jsonwire.Int(jsonwire.Get(rec.Data, "turn"))
			turns = append(turns, int(n))
		}
	}
	return turns
}
