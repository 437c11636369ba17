package store

import (
	"context"
)

// Mover is a store that can hand a session over as a folder of its own, and
// take it back: a trash and an archive are made of such folders. At every step
// of a move, and after a loss of power at any of them, the session is whole in
// the store or whole in the folder; it may be in both.
type Mover interface {
	// Hold takes the lock of a session, also of one that cannot be read or
	// continued, so that nobody writes it meanwhile. ErrNotFound; ErrLocked.
	Hold(ctx context.Context, id string) (Held, error)

	// TakeBack puts the session in the folder dir, which HandOver made, back to
	// its place, durably. dir stays. Another session in its place is ErrExists;
	// what an earlier call put there is not.
	TakeBack(ctx context.Context, id, place, dir string) error

	// Holds reports whether the store has at place the session that is in the
	// folder dir, or one that went on from it.
	Holds(ctx context.Context, id, place, dir string) (bool, error)
}

// Held is a session that is locked to be moved.
type Held interface {
	// Place says where in the store it is, for TakeBack.
	Place() string

	// HandOver moves the session into the folder dir, which must not exist and
	// whose parent does: a whole copy there is durable before anything is
	// removed from the store, and the removal is durable on return.
	HandOver(ctx context.Context, dir string) error

	// Close hands the lock back.
	Close() error
}

// ObjectRemover is an Objects that can remove an attachment. One that is not
// there is no error. That no log names it is the caller's business.
type ObjectRemover interface {
	Objects
	RemoveObject(ctx context.Context, id string) error
}
