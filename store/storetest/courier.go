package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/outcrop-dev/outcrop/store"
)

// RunCourier runs the contract of store.Courier; open gives the couriers of two
// processes that share a store.
func RunCourier(t *testing.T, open func(t *testing.T) (a, b store.Courier)) {
	for _, c := range []struct {
		name string
		run  func(t *testing.T, a, b store.Courier)
	}{
		{"a question is answered by whoever answers for the session", asked},
		{"nobody answers before Answer and after stop", nobody},
		{"stop waits for what is being answered", stopWaits},
		{"the question of one who waits no more ends", askerGone},
		{"a wake reaches one, or each", wakes},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, b := open(t)
			c.run(t, a, b)
		})
	}
}

const courierSession = "a session/with. odd * > signs \u00e9"

// within is how long a test waits for what must come.
func within(t *testing.T) context.Context {
	ctx, stop := context.WithTimeout(context.Background(), 20*time.Second)
	t.Cleanup(stop)
	return ctx
}

// eventually asks until somebody answers: interest spreads through servers.
func eventually(t *testing.T, c store.Courier, session, question string) string {
	t.Helper()
	ctx := within(t)
	for {
		got, err := c.Ask(ctx, session, []byte(question))
		if err == nil {
			return string(got)
		}
		if !errors.Is(err, store.ErrNobody) {
			t.Fatal(err)
		}
	}
}

func answer(t *testing.T, c store.Courier, session string, f func(ctx context.Context, q []byte) []byte) (stop func()) {
	t.Helper()
	stop, err := c.Answer(session, f)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return stop
}

func asked(t *testing.T, a, b store.Courier) {
	answer(t, a, courierSession, func(_ context.Context, q []byte) []byte { return append([]byte("one "), q...) })
	answer(t, a, "two", func(_ context.Context, q []byte) []byte { return append([]byte("two "), q...) })
	for _, c := range []store.Courier{a, b} {
		if got := eventually(t, c, courierSession, "x"); got != "one x" {
			t.Errorf("answered %q", got)
		}
	}
	if got := eventually(t, b, "two", ""); got != "two " {
		t.Errorf("answered %q", got)
	}
}

func nobody(t *testing.T, a, b store.Courier) {
	if _, err := b.Ask(within(t), "s", nil); !errors.Is(err, store.ErrNobody) {
		t.Errorf("before Answer: %v", err)
	}
	stop := answer(t, a, "s", func(context.Context, []byte) []byte { return nil })
	eventually(t, b, "s", "")
	stop()
	stop()
	if _, err := b.Ask(within(t), "s", nil); !errors.Is(err, store.ErrNobody) {
		t.Errorf("after stop: %v", err)
	}
	answer(t, b, "s", func(context.Context, []byte) []byte { return []byte("again") })
	if got := eventually(t, a, "s", ""); got != "again" {
		t.Errorf("answered %q", got)
	}
}

func stopWaits(t *testing.T, a, b store.Courier) {
	began, end := make(chan struct{}), make(chan struct{})
	var mu sync.Mutex
	ended := false
	stop := answer(t, a, "s", func(_ context.Context, q []byte) []byte {
		if string(q) == "hello" {
			return nil
		}
		close(began)
		<-end
		mu.Lock()
		defer mu.Unlock()
		ended = true
		return []byte("done")
	})
	eventually(t, b, "s", "hello")
	got := make(chan error, 1)
	go func() {
		v, err := b.Ask(within(t), "s", []byte("long"))
		if err == nil && string(v) != "done" {
			err = fmt.Errorf("answered %q", v)
		}
		got <- err
	}()
	<-began
	go close(end)
	stop()
	mu.Lock()
	defer mu.Unlock()
	if !ended {
		t.Error("stop came back before the answer")
	}
	if err := <-got; err != nil {
		t.Error(err)
	}
}

func askerGone(t *testing.T, a, b store.Courier) {
	gone, asked := make(chan struct{}), make(chan struct{})
	answer(t, a, "s", func(ctx context.Context, q []byte) []byte {
		if string(q) == "hello" {
			return nil
		}
		<-ctx.Done()
		close(gone)
		<-asked // an answer now could be in time, where the asker hears of its end last
		return nil
	})
	eventually(t, b, "s", "hello")
	defer close(asked)
	ctx, stop := context.WithTimeout(context.Background(), 500*time.Millisecond)
	defer stop()
	if _, err := b.Ask(ctx, "s", []byte("for ever")); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the asker got %v", err)
	}
	select {
	case <-gone:
	case <-within(t).Done():
		t.Error("the question goes on")
	}
}

func wakes(t *testing.T, a, b store.Courier) {
	type heard struct {
		who, session string
		one          bool
	}
	all := make(chan heard, 1000)
	for name, c := range map[string]store.Courier{"a": a, "b": b} {
		stop, err := c.Wakes(func(session string, one bool) {
			if session != "" { // a process that is gone may have been another test's
				all <- heard{name, session, one}
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(stop)
	}
	ctx := within(t)
	next := func() heard {
		select {
		case h := <-all:
			return h
		case <-ctx.Done():
			t.Fatal("a wake did not arrive")
			return heard{}
		}
	}
	// Until both hear, what is called out reaches those who do.
	for who := map[string]bool{}; len(who) < 2; {
		if err := a.Wake(ctx, "hello", true); err != nil {
			t.Fatal(err)
		}
		h := next()
		who[h.who] = true
	}
	for range 3 {
		if err := a.Wake(ctx, courierSession, true); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Wake(ctx, "last", false); err != nil {
		t.Fatal(err)
	}
	each, ones := map[string]int{}, 0
	for each["a"] < 3 || each["b"] < 3 || ones < 1 {
		switch h := next(); {
		case h.session == courierSession && !h.one:
			each[h.who]++
		case h.session == "last" && h.one:
			ones++
		case h.session != "hello":
			t.Fatalf("heard %+v", h)
		}
	}
	if !slices.Equal([]int{each["a"], each["b"], ones}, []int{3, 3, 1}) {
		t.Errorf("heard %v, and %d alone", each, ones)
	}
}
