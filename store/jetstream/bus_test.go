package jetstream

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/jetstream/natstest"
	"github.com/outcrop-dev/outcrop/store/storetest"
)

func courierOf(t *testing.T, s *Store) store.Courier {
	t.Helper()
	c, err := s.Courier(bg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestCourierOfARealm(t *testing.T) {
	t.Parallel()
	realm := realmsAhead(t, three.start(t))
	storetest.RunCourier(t, func(t *testing.T) (a, b store.Courier) {
		address := realm(t)
		return courierOf(t, open(t, address, Options{})), courierOf(t, open(t, address, Options{}))
	})
}

func TestAQuestionThatIsTooLongForTheServersIsRefused(t *testing.T) {
	t.Parallel()
	address := newRealm(t, natstest.Start(t, natstest.Options{MaxPayload: 64 << 10}))
	c := courierOf(t, open(t, address, Options{}))
	if _, err := c.Ask(bg, "s", bytes.Repeat([]byte("x"), 100<<10)); !errors.Is(err, outcrop.ErrRefused) {
		t.Error(err)
	}
}

func TestAWorkerThatIsGoneIsNoticed(t *testing.T) {
	t.Parallel()
	address := newRealmWith(t, natstest.Start(t, natstest.Options{}), lapsing)
	gone := make(chan struct{}, 100)
	stop, err := courierOf(t, open(t, address, Options{})).Wakes(func(session string, _ bool) {
		if session == "" {
			gone <- struct{}{}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	other := open(t, address, Options{})
	l, err := store.Create(bg, other, storetest.Header("s1"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Session().Append(outcrop.SessionTitle{Title: "x"}); err != nil {
		t.Fatal(err)
	}
	if err := l.Flush(bg); err != nil {
		t.Fatal(err)
	}
	// As long as it lives nobody is told. Its key has to be seen first.
	ctx, cancel := context.WithTimeout(bg, 3*time.Minute)
	defer cancel()
	for seen := 0; seen < 3; {
		ws, err := other.Workers(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if len(ws) > 0 {
			seen++
		}
		select {
		case <-gone:
			t.Fatal("a worker that lives was said to be gone")
		case <-time.After(lapsing / 2): // longer than the time between two looks
		}
	}
	if err := l.Close(bg); err != nil {
		t.Fatal(err)
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-gone:
	case <-ctx.Done():
		t.Error("nobody noticed")
	}
}
