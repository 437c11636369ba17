package search

import (
	"context"
	"iter"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/store"
)

// log is a log that is read from where the index stopped, where its store can
// do that, else from its beginning.
type log struct {
	following store.Following
	stored    store.Stored
}

func openLog(ctx context.Context, st store.Store, id string) (*log, error) {
	if f, ok := st.(store.Follower); ok {
		in, err := f.Follow(ctx, id)
		if err != nil {
			return nil, err
		}
		return &log{following: in}, nil
	}
	in, err := st.Read(ctx, id)
	if err != nil {
		return nil, err
	}
	return &log{stored: in}, nil
}

func (l *log) close() {
	if l.following != nil {
		l.following.Close()
	} else {
		l.stored.Close()
	}
}

// resume goes on at a mark; false when that is not possible.
func (l *log) resume(mark string) bool {
	m, ok := l.following.(store.Marked)
	return ok && m.Resume(mark)
}

// mark is where the reading stopped, "" when it cannot be gone on with.
func (l *log) mark() string {
	if m, ok := l.following.(store.Marked); ok {
		return m.Mark()
	}
	return ""
}

func (l *log) records(ctx context.Context) iter.Seq2[outcrop.Record, error] {
	if l.following != nil {
		return l.following.Next(ctx)
	}
	return l.stored.Records()
}
