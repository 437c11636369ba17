package store

import (
	"context"
	"errors"
)

// Term is a Lease that lasts only as long as it is renewed, or that somebody
// else can take away. Its methods may be called from any goroutine.
type Term interface {
	// Held returns nil while nobody else can have taken the session: at once
	// while the lease was renewed in time, by this machine's monotonic clock,
	// else after asking. The fence is the store's: an append of a lease that was
	// taken away fails whatever Held says. Held is for effects outside of the
	// store, right before they begin.
	Held(ctx context.Context) error

	// Lost is closed when the lease was not renewed in time, and when somebody
	// else took the session: what runs under it is to be ended.
	Lost() <-chan struct{}
}

// Epocher is a Lease with a number that is higher than that of every earlier
// lease of the same session.
type Epocher interface {
	Epoch() uint64
}

// Taker is a store in which a session can be taken from a holder that lives.
type Taker interface {
	// TakeOver is Acquire, also when somebody holds the session: from then on
	// every append of that holder fails with ErrMoved.
	TakeOver(ctx context.Context, id string) (Lease, error)
}

// TakeOver opens a session as Open does, also when somebody else holds it. In a
// store where that cannot be done a session that is held is refused, with the
// holder's name.
func TakeOver(ctx context.Context, st Store, id string, o Options) (*Live, error) {
	t, ok := st.(Taker)
	if !ok {
		l, err := Open(ctx, st, id, o)
		if err != nil {
			return nil, cannotTake(id, err)
		}
		return l, nil
	}
	lease, err := t.TakeOver(ctx, id)
	if err != nil {
		return nil, err
	}
	return Take(ctx, lease, o)
}

// cannotTake says why a lock of a file is not taken away.
func cannotTake(id string, err error) error {
	if !errors.Is(err, ErrLocked) {
		return err
	}
	return Problem("open", id, err, "", "the lock of a program that lives on this machine cannot be taken away: end that program")
}

// Held returns nil while the session is certainly this process's to act for: see
// Term. It is an error for good once a write found the session taken.
func (l *Live) Held(ctx context.Context) error {
	if err := l.barred.Load(); err != nil {
		return err
	}
	if t, ok := l.lease.(Term); ok {
		if err := t.Held(ctx); err != nil {
			return l.problem("hold", err, "", "another process may have gone on with the session: nothing is done for it here any more")
		}
	}
	return nil
}

// Lost is closed when the session may be somebody else's: see Term. Nil where a
// lease lasts until it is handed back.
func (l *Live) Lost() <-chan struct{} {
	if t, ok := l.lease.(Term); ok {
		return t.Lost()
	}
	return nil
}

// Epoch is the number of the lease, 0 where leases have none. A later lease of
// the same session has a higher one.
func (l *Live) Epoch() uint64 {
	if e, ok := l.lease.(Epocher); ok {
		return e.Epoch()
	}
	return 0
}
