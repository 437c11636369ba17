package lineage_test

import (
	"slices"
	"testing"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/history"
	"github.com/outcrop-dev/outcrop/internal/genlog"
	"github.com/outcrop-dev/outcrop/internal/lineage"
	"github.com/outcrop-dev/outcrop/message"
)

func TestAnEventIsFollowedInBothDirections(t *testing.T) {
	s, err := outcrop.SeedRecords(genlog.Header(1), func(yield func(outcrop.Record, error) bool) {
		for r := range genlog.Records(1, 100) {
			if !yield(r, nil) {
				return
			}
		}
	}, outcrop.Options{})
	if err != nil {
		t.Fatal(err)
	}
	result := outcrop.Seq(-1)
	for _, n := range s.Surface().Nodes() {
		if s.Log().At(n).Type == outcrop.TypeToolResult {
			result = n
			break
		}
	}
	edit, err := history.CommitPrune(s, result, []message.Block{message.Text("short")})
	if err != nil {
		t.Fatal(err)
	}
	fold, err := outcrop.FoldSurface(s.Log().Records(0))
	if err != nil {
		t.Fatal(err)
	}
	for ev := range outcrop.Events(s.Log(), 0) {
		g := lineage.Of(s.Log(), fold, ev.Seq)
		want := "log"
		switch {
		case slices.Contains(fold.Nodes, ev.Seq):
			want = "surface"
		case ev.Seq == result:
			want = "shadowed"
		}
		if g.State != want {
			t.Errorf("event %d: %s, want %s", ev.Seq, g.State, want)
		}
		if o := g.Origins[0]; o.First != ev.Seq || o.Depth != 0 || o.Type != ev.Type {
			t.Errorf("event %d begins with %+v", ev.Seq, o)
		}
		for _, o := range g.Origins[1:] {
			if o.First >= ev.Seq || o.Last < o.First || o.Depth < 1 {
				t.Errorf("event %d is made from %+v", ev.Seq, o)
			}
		}
	}
	if g := lineage.Of(s.Log(), fold, result); !slices.Equal(g.ShadowedBy, []outcrop.Seq{edit.Replacement}) {
		t.Errorf("covered by %v, want %d", g.ShadowedBy, edit.Replacement)
	}
	g := lineage.Of(s.Log(), fold, edit.Replacement)
	var types []outcrop.Type
	for _, o := range g.Origins {
		types = append(types, o.Type)
	}
	for _, want := range []outcrop.Type{outcrop.TypeToolResult, outcrop.TypeToolCall} {
		if !slices.Contains(types, want) {
			t.Errorf("no %s among %v", want, types)
		}
	}
}
