package store

import (
	"context"
	"iter"

	"github.com/outcrop-dev/outcrop"
)

// Follower is a store whose logs can be read while they are written.
type Follower interface {
	// Follow opens a log for reading, as Read does, and for what comes later.
	Follow(ctx context.Context, id string) (Following, error)
}

// Following is a log that is read while somebody may write it, in this process
// or another one. One goroutine uses it.
type Following interface {
	// Header is the log's header.
	Header() outcrop.Header

	// Next yields what came to the log since the last Next, in order; the first
	// time everything. It reads no more than that, and does not wait: with
	// nothing new there is nothing. A torn tail may be what is being written,
	// so nothing of it is yielded before it is whole. Events may be seen before
	// they are durable.
	//
	// The errors are those of Stored.Records; besides, outcrop.ErrNotFound when
	// the log is gone, and ErrMoved when another one is in its place or what was
	// yielded is not its beginning any more. Who stops ranging early goes on
	// behind the record where that was.
	Next(ctx context.Context) iter.Seq2[outcrop.Record, error]

	Close() error
}

// Awaited is a Following that can be slept on. Where there is none, Next is asked
// now and then.
type Awaited interface {
	Following
	// Wait returns nil when Next has something to yield or an error to tell; it
	// may return early. The error is the reason of ctx. It is for the goroutine of
	// Next.
	Wait(ctx context.Context) error
}
