package strata_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/message"
	"github.com/outcrop-dev/outcrop/viewer/internal/strata"
)

// history is a session with edits of all shapes, and its strata beside it.
type history struct {
	s      *outcrop.Session
	f      strata.Forest
	w      strata.Widths
	tokens []int64
}

func newHistory(t rapid.TB) *history {
	s, err := outcrop.New(outcrop.NewHeader("s", 1, "/w"), outcrop.Options{Now: func() int64 { return 1 }})
	if err != nil {
		t.Fatal(err)
	}
	return &history{s: s}
}

func user(text string) outcrop.UserMessage {
	return outcrop.UserMessage{Message: message.Message{ID: "m", Role: message.User, Source: message.FromUser, Content: []message.Block{message.Text(text)}}}
}

func (h *history) append(t rapid.TB, tokens int64) {
	ev, err := h.s.AppendSurface(user("x"), outcrop.Tail, outcrop.NoSources)
	if err != nil {
		t.Fatal(err)
	}
	h.f.Append(ev.Seq, strata.Kind(int(ev.Seq)%len(strata.Kinds)))
	h.w.Add(tokens)
	h.tokens = append(h.tokens, tokens)
}

// replace puts a node in the place of the nodes from a to b, by position.
func (h *history) replace(t rapid.TB, a, b int) {
	nodes := h.s.Surface().Nodes()
	ev, err := h.s.AppendSurface(user("y"), outcrop.Replace(nodes[a], nodes[b]), outcrop.SourcesOf(nodes[a:b+1]...))
	if err != nil {
		t.Fatal(err)
	}
	if err := h.f.Replace(ev.Seq, nodes[a], nodes[b], strata.Checkpoint, false); err != nil {
		t.Fatal(err)
	}
	h.tokens = append(h.tokens, 1)
}

// other is an event outside of the surface.
func (h *history) other(t rapid.TB) {
	if _, err := h.s.Append(outcrop.OutcropTag{Tag: "a"}); err != nil {
		t.Fatal(err)
	}
}

func drawn(t *rapid.T) *history {
	h := newHistory(t)
	for range rapid.IntRange(0, 60).Draw(t, "events") {
		n := h.s.Surface().Len()
		switch k := rapid.IntRange(0, 9).Draw(t, "what"); {
		case k < 5 || n == 0:
			h.append(t, int64(rapid.IntRange(0, 3000).Draw(t, "tokens")))
		case k < 9:
			a := rapid.IntRange(0, n-1).Draw(t, "a")
			b := min(n-1, a+rapid.IntRange(0, 6).Draw(t, "more"))
			if rapid.Bool().Draw(t, "deep") {
				a, b = max(0, n-2), n-1 // one stratum on top of the other
			}
			h.replace(t, a, b)
		default:
			h.other(t)
		}
	}
	return h
}

func (h *history) picture(at outcrop.Seq) strata.Picture {
	return strata.Picture{At: at, Px: strata.MinPx, Tokens: func(i int) int64 { return h.tokens[i] }}
}

// seqs are the seqs of nodes.
func seqs(f *strata.Forest, nodes []int32) []outcrop.Seq {
	out := []outcrop.Seq{}
	for _, i := range nodes {
		out = append(out, f.Node(int(i)).Seq)
	}
	return out
}

func TestRow0IsTheSurfaceAtEveryMoment(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := drawn(t)
		for at := outcrop.Seq(-1); int(at) < h.s.Len(); at++ {
			fold, err := outcrop.SurfaceAt(h.s.Log(), at)
			if err != nil {
				t.Fatal(err)
			}
			want := append([]outcrop.Seq{}, fold.Nodes...)
			if d := cmp.Diff(want, seqs(&h.f, h.f.SurfaceAt(at))); d != "" {
				t.Fatalf("at %d: %s", at, d)
			}
			if h.f.GenerationAt(at) != fold.Generation {
				t.Fatalf("at %d: generation %d, not %d", at, h.f.GenerationAt(at), fold.Generation)
			}
			// So wide that nothing is joined: each tile is a node.
			p := h.picture(at)
			p.Px = 1 << 20
			d := h.f.Draw(&h.w, p)
			var row0 []outcrop.Seq
			x := 0.0
			for _, tile := range d.Tiles {
				if tile.Row != 0 {
					continue
				}
				if tile.Count != 1 || tile.X != x {
					t.Fatalf("at %d: tile %+v does not begin at %g", at, tile, x)
				}
				row0, x = append(row0, tile.Seq), tile.X+tile.W
			}
			if x != d.Width || !slices.Equal(row0, fold.Nodes) {
				t.Fatalf("at %d: row 0 is %v up to %g, not %v up to %g", at, row0, x, fold.Nodes, d.Width)
			}
		}
	})
}

func TestUnderATileLieTheNodesThatItTookThePlaceOf(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := drawn(t)
		fold, err := outcrop.FoldSurface(h.s.Log().Records(0))
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range fold.Replacements {
			i := h.f.Find(r.Seq)
			n := h.f.Node(i)
			if d := cmp.Diff(r.Shadowed, seqs(&h.f, h.f.Kids(i))); d != "" {
				t.Fatal(d)
			}
			border, under := n.A, int32(0)
			for _, k := range h.f.Kids(i) {
				kid := h.f.Node(int(k))
				if kid.A != border || h.f.Up(int(k), outcrop.Seq(h.s.Len())) != i || h.f.Up(int(k), r.Seq-1) == i {
					t.Fatalf("node %d under %d: %+v, border %d", kid.Seq, r.Seq, kid, border)
				}
				border, under = kid.B, under+1+kid.Under
			}
			if border != n.B || under != n.Under {
				t.Fatalf("node %d covers up to %d with %d under it, not %d and %d", r.Seq, border, under, n.B, n.Under)
			}
		}
	})
}

func TestAPictureCountsEachNodeOnceAndHasAtMostTwoTilesAPixel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := drawn(t)
		at := outcrop.Seq(rapid.IntRange(-1, h.s.Len()).Draw(t, "at"))
		p := h.picture(at)
		p.Equal = rapid.Bool().Draw(t, "equal")
		p.Px = rapid.IntRange(1, 400).Draw(t, "px")
		p.From = rapid.Float64Range(-10, 600).Draw(t, "from")
		p.To = rapid.Float64Range(-10, 600).Draw(t, "to")
		d := h.f.Draw(&h.w, p)
		if len(d.Tiles) > 2*max(p.Px, strata.MinPx) {
			t.Fatalf("%d tiles on %d pixels", len(d.Tiles), p.Px)
		}
		// The same without joining, node by node.
		wide := p
		wide.Px = 1 << 22
		all := h.f.Draw(&h.w, wide)
		if all.From != d.From || all.To != d.To {
			t.Fatalf("%g..%g and %g..%g", d.From, d.To, all.From, all.To)
		}
		count := func(tiles []strata.Tile) (rows [strata.Rows + 1]int, tokens int64) {
			for _, tile := range tiles {
				rows[tile.Row] += tile.Count
				tokens += tile.Tokens
				if tile.X+tile.W <= d.From || tile.X >= d.To {
					t.Fatalf("tile %+v lies outside of %g..%g", tile, d.From, d.To)
				}
			}
			return rows, tokens
		}
		rows, tokens := count(d.Tiles)
		wantRows, wantTokens := count(all.Tiles)
		if rows != wantRows || tokens != wantTokens {
			t.Fatalf("nodes by row %v, %d tokens; not %v, %d", rows, tokens, wantRows, wantTokens)
		}
		for i := 1; i < len(d.Tiles); i++ {
			a, b := d.Tiles[i-1], d.Tiles[i]
			if a.Row > b.Row || a.Row == b.Row && b.X < a.X+a.W-1e-6 {
				t.Fatalf("%+v stands before %+v", a, b)
			}
		}
	})
}

func TestAComparedPictureMarksWhatCameAndWhatWent(t *testing.T) {
	h := newHistory(t)
	for range 4 {
		h.append(t, 100)
	}
	before := outcrop.Seq(h.s.Len() - 1)
	h.replace(t, 1, 2)
	h.append(t, 100)
	p := h.picture(outcrop.Seq(h.s.Len() - 1))
	p.Px, p.Compare, p.Compared = 4000, before, true
	var got []string
	for _, tile := range h.f.Draw(&h.w, p).Tiles {
		got = append(got, fmt.Sprint(tile.Row, tile.Seq, tile.Flags&(strata.FlagAdded|strata.FlagRemoved)))
	}
	want := []string{"0 0 0", "0 4 32", "0 3 0", "0 5 32", "1 1 64", "1 2 64"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestWhatLiesDeeperThanTheRowsIsOneTile(t *testing.T) {
	h := newHistory(t)
	h.append(t, 100)
	for range 40 {
		h.append(t, 100)
		h.replace(t, 0, 1)
	}
	p := h.picture(outcrop.Seq(h.s.Len() - 1))
	p.Px = 4000
	d := h.f.Draw(&h.w, p)
	if d.Rows != strata.Rows+1 {
		t.Errorf("%d rows", d.Rows)
	}
	total := 0
	for _, tile := range d.Tiles {
		total += tile.Count
	}
	if total != h.f.Len() {
		t.Errorf("%d nodes of %d", total, h.f.Len())
	}
}

func TestAReplaceOfWhatIsNotOnTheSurfaceIsRefusedAndChangesNothing(t *testing.T) {
	var f strata.Forest
	f.Append(0, strata.User)
	f.Append(1, strata.User)
	for _, c := range [][2]outcrop.Seq{{1, 0}, {0, 9}, {9, 9}, {-1, 1}} {
		if f.Replace(5, c[0], c[1], strata.User, false) == nil {
			t.Errorf("%v was replaced", c)
		}
	}
	if f.Len() != 2 || f.Generation() != 0 {
		t.Errorf("%d nodes, generation %d", f.Len(), f.Generation())
	}
}

func BenchmarkDraw(b *testing.B) {
	for _, c := range []struct {
		name           string
		columns, every int
	}{{"10000 nodes", 10_000, 0}, {"300000 nodes", 300_000, 0}, {"300000 columns under 7500 checkpoints", 300_000, 40}} {
		b.Run(c.name, func(b *testing.B) {
			var f strata.Forest
			var w strata.Widths
			seq := outcrop.Seq(0)
			var tokens []int64
			for i := range c.columns {
				f.Append(seq, strata.Kind(i%3))
				w.Add(int64(i % 900))
				tokens = append(tokens, int64(i%900))
				seq++
				if c.every > 0 && i%c.every == c.every-1 {
					on := f.Surface()
					from := on[len(on)-c.every]
					if err := f.Replace(seq, f.Node(int(from)).Seq, seq-1, strata.Checkpoint, false); err != nil {
						b.Fatal(err)
					}
					tokens = append(tokens, 50)
					seq++
				}
			}
			at := outcrop.Seq(0)
			for b.Loop() {
				at = (at + 997) % seq
				f.Draw(&w, strata.Picture{At: at, Px: 1600, Tokens: func(i int) int64 { return tokens[i] }})
			}
		})
	}
}
