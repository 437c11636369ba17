package worker

import (
	"errors"
	"fmt"
	"testing"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/agent"
	"github.com/outcrop-dev/outcrop/store"
)

// A holder that lost the session, and one whose store is away, refuse nothing for
// good: whoever sends asks again.
func TestAHolderThatCannotWriteIsAskedAgain(t *testing.T) {
	for _, c := range []struct {
		err   error
		again bool
	}{
		{fmt.Errorf("append: %w", fmt.Errorf("%w: %w", outcrop.ErrVetoed, store.ErrMoved)), true},
		{fmt.Errorf("%w: %w", outcrop.ErrVetoed, store.ErrLocked), true},
		{fmt.Errorf("%w: %w", outcrop.ErrVetoed, errors.New("too many events wait for the store")), true},
		{store.ErrMoved, true},
		{agent.ErrClosed, true},
		{errors.New("the servers do not answer"), true},
		{agent.ErrInput, false},
		{agent.ErrInboxFull, false},
		{outcrop.ErrRefused, false},
	} {
		if got := again(&replyError{replyOf(c.err)}); got != c.again {
			t.Errorf("%v: asked again: %v", c.err, got)
		}
	}
}
