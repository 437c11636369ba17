package store

import (
	"context"
	"errors"
)

// ErrNobody: nobody answers for a session.
var ErrNobody = errors.New("nobody answers for the session")

// Reachable is a store whose processes can reach each other.
type Reachable interface {
	// Courier carries messages between the processes that have the store open.
	Courier(ctx context.Context) (Courier, error)
}

// Courier carries messages between processes that share a store. What it loses
// is lost: nothing that has to arrive is given to it alone. All methods may be
// called from any goroutine.
type Courier interface {
	// Ask asks whoever answers for a session. ErrNobody when nobody does, or
	// nobody says so in time. No error says that the question did not arrive.
	Ask(ctx context.Context, session string, question []byte) ([]byte, error)

	// Answer answers for a session until stop is called, each question on a
	// goroutine of its own, whose ctx ends soon after nobody waits for the answer
	// any more. stop waits for the questions that are being answered.
	Answer(session string, answer func(ctx context.Context, question []byte) []byte) (stop func(), err error)

	// Wake calls a session's name out: to one of those who hear wakes, or to each.
	Wake(ctx context.Context, session string, each bool) error

	// Wakes hears wakes until stop is called. one says that nobody else heard of
	// this one. An empty name says that a process which held sessions may be
	// gone. f returns at once.
	Wakes(f func(session string, one bool)) (stop func(), err error)
}
