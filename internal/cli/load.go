package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/desk"
	"github.com/outcrop-dev/outcrop/internal/exit"
	"github.com/outcrop-dev/outcrop/internal/records"
	"github.com/outcrop-dev/outcrop/internal/term"
	"github.com/outcrop-dev/outcrop/store"
)

// viewFlags are the flags of commands that look at a log at some point.
type viewFlags struct {
	at     int64
	closed bool
}

// everything stands for a log without --at.
const everything = -1

// seen is a log as a command shows it: a prefix of what is stored, with the
// closers of its open turn when they were asked for.
type seen struct {
	header  outcrop.Header
	log     outcrop.Log
	at      outcrop.Seq // last event, -1 when there is none
	fold    outcrop.Fold
	turn    int
	step    int
	open    bool // a turn is open
	closers int  // how many of the events are closers that are not stored

	objects store.Objects // attachments of the store, nil when it keeps none

	noMarkers bool // the log has messages and no surface markers: the fold is empty
}

// load reads the log of a target for a command that prints it. Damage behind
// the part that is shown is noted and makes the exit code 3.
func (a *app) load(ctx context.Context, name string, v viewFlags) (*seen, error) {
	t, err := a.Resolve(ctx, name)
	if err != nil {
		return nil, err
	}
	return a.loadTarget(ctx, t, v)
}

func (a *app) loadTarget(ctx context.Context, t *desk.Target, v viewFlags) (*seen, error) {
	sd, err := t.Read(ctx)
	if err != nil {
		return nil, err
	}
	defer sd.Close()
	s, err := outcrop.Inspect(sd.Header(), a.watched(sd, records.Through(ctx, sd.Records(), outcrop.Seq(v.at))), outcrop.Options{})
	if err != nil && ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err := a.judge(t, sd.Tail(), store.Located(err, sd), s.Len(), v.at); err != nil {
		return nil, err
	}
	a.formatNote(sd.Header())
	l, err := see(sd.Header(), s, v)
	if err == nil {
		l.objects = store.ObjectsOf(t.Store)
	}
	return l, err
}

// judge decides what the end of a log means for a reader that has its first n
// events and wants those through at: nothing, a note, exit code 3, or an error.
func (a *app) judge(t *desk.Target, tail store.Tail, damage error, n int, at int64) error {
	if at >= int64(n) {
		if damage != nil {
			return exit.With(3, fmt.Errorf("event %d cannot be read: %w", at, damage))
		}
		if n == 0 {
			return exit.Usagef("--at %d: there is no such event, the log is empty", at)
		}
		return exit.Usagef("--at %d: there is no such event, the last one is %d", at, n-1)
	}
	if at >= 0 {
		return nil
	}
	if damage != nil {
		what := "nothing of the log is"
		switch n {
		case 0:
		case 1:
			what = "only event 0 is"
		default:
			what = fmt.Sprintf("only events 0 to %d are", n-1)
		}
		a.missing = exit.With(3, fmt.Errorf("%s shown: %w", what, damage))
		return nil
	}
	a.tornNote(t, tail)
	return nil
}

// formatNote tells that a log is seen through a conversion, whose seqs are not
// those of the file.
func (a *app) formatNote(h outcrop.Header) {
	if h.Format >= 2 {
		a.Note("this log is in format %d of dsh: it is shown as format 0, and so are its seqs", h.Format)
	}
}

// tornNote tells of a torn tail.
func (a *app) tornNote(t *desk.Target, tail store.Tail) {
	if !tail.Torn {
		return
	}
	why := ""
	if tail.Reason != nil {
		var e *outcrop.Error
		if errors.As(tail.Reason, &e) && e.Msg != "" {
			why = ": " + e.Msg
		} else {
			why = ": " + tail.Reason.Error()
		}
	}
	saved := ""
	if tail.Recovered > 0 {
		saved = fmt.Sprintf("; %s saved from it", term.Plural(tail.Recovered, "event"))
	}
	a.Note("%s: torn tail of %d bytes at byte %d is left out%s%s; the next writer cuts it off and keeps the bytes",
		term.Line(t.Name), tail.Bytes, tail.Offset, term.Line(why), saved)
}

// see folds the part of a loaded log that a command shows.
func see(h outcrop.Header, s *outcrop.Session, v viewFlags) (*seen, error) {
	l := &seen{header: h, log: s.Log(), noMarkers: s.NoMarkers()}
	if v.at >= 0 {
		l.log = outcrop.Prefix(l.log, int(v.at)+1)
	}
	if v.closed && !l.noMarkers {
		if err := l.close(); err != nil {
			return nil, err
		}
	}
	l.at = outcrop.Seq(l.log.Len() - 1)
	l.turn, l.step, l.open = outcrop.OpenTurn(l.log)
	if l.noMarkers {
		return l, nil
	}
	var err error
	l.fold, err = outcrop.FoldSurface(l.log.Records(0))
	return l, err
}

// close puts the closers of an open turn behind the log.
func (l *seen) close() error {
	closers := outcrop.Closers(l.log)
	if len(closers) == 0 {
		return nil
	}
	stored := l.log
	s, err := outcrop.Inspect(l.header, func(yield func(outcrop.Record, error) bool) {
		for r := range stored.Records(0) {
			if !yield(r, nil) {
				return
			}
		}
		for _, ev := range closers {
			if !yield(outcrop.Record{Event: ev}, nil) {
				return
			}
		}
	}, outcrop.Options{})
	l.log, l.closers = s.Log(), len(closers)
	return err
}

// messages derives the surface.
func (l *seen) messages() []*outcrop.Message { return outcrop.DeriveMessages(l.log, l.fold.Nodes) }

// id is the session's id for text.
func (l *seen) id() string { return term.Line(l.header.ID) }
