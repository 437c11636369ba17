package dshsqlite

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/store"
)

var (
	_ store.Follower = (*Store)(nil)
	_ store.Marked   = (*following)(nil)
)

// Follow is store.Follower's: a dsh may be writing the file.
func (s *Store) Follow(ctx context.Context, id string) (store.Following, error) {
	f, err := s.open(ctx)
	if err != nil {
		return nil, err
	}
	defer s.back(f)
	in, err := s.find(ctx, f, id)
	if err != nil {
		return nil, err
	}
	return &following{s: s, in: in}, nil
}

// following reads the log on in the file as it is each time.
type following struct {
	s     *Store
	in    session
	seen  outcrop.Seq // events below it were yielded
	stamp string      // of the log when there was nothing more in it
}

func (w *following) Header() outcrop.Header { return w.in.header }
func (w *following) Close() error           { return nil }

// Next is store.Following's.
func (w *following) Next(ctx context.Context) iter.Seq2[outcrop.Record, error] {
	return func(yield func(outcrop.Record, error) bool) {
		f, err := w.s.open(ctx)
		if err != nil {
			yield(outcrop.Record{}, err)
			return
		}
		defer w.s.back(f)
		now, err := w.s.find(ctx, f, w.in.id)
		if err == nil && incarnation(now.stamp) != incarnation(w.in.stamp) {
			err = w.s.problem("read", w.in.id, store.ErrMoved, "another log is in its place", "follow it anew")
		}
		if err != nil {
			yield(outcrop.Record{}, err)
			return
		}
		if now.stamp == w.stamp {
			return
		}
		l := w.s.newLog(f, now)
		defer l.decoder.close()
		ended := true
		for r, err := range l.records(ctx, w.seen) {
			if err == nil {
				w.seen = r.Last() + 1
			} else if ended = false; errors.Is(err, store.ErrMoved) {
				return // what was seen is whole; the next look opens it anew
			}
			if !yield(r, err) {
				return
			}
		}
		if ended {
			w.stamp = now.stamp
		}
	}
}

// incarnation is the part of a stamp that stays while a log grows.
func incarnation(stamp string) string {
	name, _, _ := strings.Cut(stamp, " ")
	return name
}

// Mark is store.Marked's: which log it is and the next seq.
func (w *following) Mark() string { return fmt.Sprintf("dsh %d %s", w.seen, incarnation(w.in.stamp)) }

// Resume is store.Marked's.
func (w *following) Resume(mark string) bool {
	var seen int64
	var name string
	if n, err := fmt.Sscanf(mark, "dsh %d %s", &seen, &name); n != 2 || err != nil || name != incarnation(w.in.stamp) || seen < 0 {
		return false
	}
	w.seen = outcrop.Seq(seen)
	return true
}
