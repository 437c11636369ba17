package store_test

import (
	"context"
	"fmt"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/memory"
)

// A session is created, written, and opened again after its turn was left
// open: opening closes the turn.
func Example() {
	ctx := context.Background()
	st := memory.New() // or jsonl.New(dir, jsonl.Options{})

	l, err := store.Create(ctx, st, outcrop.NewHeader("s1", 1_700_000_000_000, "/home/dev/project"), store.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := l.Session().Append(outcrop.TurnStart{Turn: 1}); err != nil {
		fmt.Println(err)
		return
	}
	if err := l.Flush(ctx); err != nil { // now the turn's start is durable
		fmt.Println(err)
		return
	}
	if err := l.Close(ctx); err != nil {
		fmt.Println(err)
		return
	}

	l, err = store.Open(ctx, st, "s1", store.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer l.Close(ctx)
	for e := range outcrop.Events(l.Session().Log(), 0) {
		fmt.Println(e.Seq, e.Type)
	}
	// Output:
	// 0 turn/start
	// 1 turn/end
	// 2 session/end-seed
}
