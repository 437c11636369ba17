package search

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/message"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/memory"
)

func TestASessionThatIsForgottenIsFoundNoMore(t *testing.T) {
	ctx := t.Context()
	st := memory.New()
	for _, id := range []string{"s1", "s2"} {
		l, err := store.Create(ctx, st, outcrop.NewHeader(id, 1, ""), store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		_, err = l.Session().AppendSurface(outcrop.UserMessage{Message: message.Message{Source: message.FromUser, Content: []message.Block{message.Text("basalt")}}}, outcrop.Tail, outcrop.NoSources)
		if err := errors.Join(err, l.Close(ctx)); err != nil {
			t.Fatal(err)
		}
	}
	ix, err := Open(ctx, filepath.Join(t.TempDir(), "i.db"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer ix.Close()
	if _, err := ix.Update(ctx, st, nil); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := ix.Forget(ctx, st.Address(), "s1"); err != nil {
			t.Fatal(err)
		}
	}
	hits, _, err := ix.Search(ctx, Query{Text: "basalt", Store: st.Address(), Limit: 9})
	if err != nil || len(hits) != 1 || hits[0].Session != "s2" {
		t.Errorf("%+v, %v", hits, err)
	}
}
