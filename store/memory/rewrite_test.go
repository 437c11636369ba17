package memory_test

import (
	"errors"
	"iter"
	"testing"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/memory"
)

func TestARewriteIsAllOrNothingAndNeedsTheLock(t *testing.T) {
	ctx := t.Context()
	st := memory.New()
	live, err := store.Create(ctx, st, outcrop.NewHeader("s1", 1, ""), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := live.Session().Append(outcrop.SessionTitle{Title: "old", Source: "user"}); err != nil {
		t.Fatal(err)
	}
	if err := live.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	change := func(seq outcrop.Seq) error {
		return st.Rewrite(ctx, "s1", func(outcrop.Header, iter.Seq2[outcrop.Record, error]) (iter.Seq2[outcrop.Record, error], error) {
			return func(yield func(outcrop.Record, error) bool) {
				yield(outcrop.Record{Event: outcrop.Event{Type: "session/title", Seq: seq, Data: []byte(`{"title":"new","messageSeqs":[],"source":"user"}`)}}, nil)
			}, nil
		})
	}
	if err := change(0); !errors.Is(err, store.ErrLocked) {
		t.Errorf("in use: %v", err)
	}
	if err := live.Close(ctx); err != nil {
		t.Fatal(err)
	}
	title := func() string {
		infos, err := st.List(ctx, store.ListOptions{Full: true})
		if err != nil || len(infos) != 1 {
			t.Fatalf("%v, %v", infos, err)
		}
		return infos[0].Title
	}
	if err := change(1); outcrop.CodeOf(err) != "SEQ_GAP" || title() != "old" {
		t.Errorf("a gap: %v, title %q", err, title())
	}
	if err := change(0); err != nil || title() != "new" {
		t.Errorf("%v, title %q", err, title())
	}
}
