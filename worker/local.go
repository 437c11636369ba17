package worker

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/outcrop-dev/outcrop/store"
)

// NewBus makes a bus between the goroutines of one process.
func NewBus() Bus {
	return Over(&local{answers: map[string]*answerer{}})
}

// local is the courier of one process.
type local struct {
	mu      sync.Mutex
	answers map[string]*answerer
	wakes   []*func(string, bool)
}

// answerer answers for one session.
type answerer struct {
	f       func(context.Context, []byte) []byte
	closing bool
	busy    sync.WaitGroup
}

func (b *local) Ask(ctx context.Context, session string, question []byte) ([]byte, error) {
	b.mu.Lock()
	a := b.answers[session]
	if a == nil || a.closing {
		b.mu.Unlock()
		return nil, store.ErrNobody
	}
	a.busy.Add(1)
	b.mu.Unlock()
	got := make(chan []byte, 1)
	go func() {
		defer a.busy.Done()
		got <- a.f(ctx, question)
	}()
	select {
	case reply := <-got:
		return reply, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (b *local) Answer(session string, f func(context.Context, []byte) []byte) (func(), error) {
	a := &answerer{f: f}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.answers[session] = a
	return sync.OnceFunc(func() {
		b.mu.Lock()
		a.closing = true
		if b.answers[session] == a {
			delete(b.answers, session)
		}
		b.mu.Unlock()
		a.busy.Wait()
	}), nil
}

func (b *local) Wake(_ context.Context, session string, each bool) error {
	b.mu.Lock()
	all := slices.Clone(b.wakes)
	b.mu.Unlock()
	if len(all) > 0 && !each {
		(*all[rand.IntN(len(all))])(session, true)
		return nil
	}
	for _, f := range all {
		(*f)(session, false)
	}
	return nil
}

func (b *local) Wakes(f func(string, bool)) (func(), error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.wakes = append(b.wakes, &f)
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.wakes = slices.DeleteFunc(b.wakes, func(g *func(string, bool)) bool { return g == &f })
	}, nil
}
