package benchsuite

import (
	"math"
	"testing"
)

func TestEveryWorkGivesFigures(t *testing.T) {
	env := Env{Sizes: Sizes{
		Append: 2_000, Fold: 2_000, Steps: 20, Nodes: 200, Text: 256 << 10, Fork: 256 << 10,
		Sessions: 5, Batches: 3, Growth: []int64{64 << 10, 128 << 10},
	}, Dir: t.TempDir()}
	for _, w := range Works() {
		if w.Process {
			continue // the benchmarks build the program that these need
		}
		t.Run(w.Name, func(t *testing.T) {
			figures, err := Measure(t.Context(), w, env, 0)
			if err != nil {
				t.Fatal(err)
			}
			if len(figures) == 0 {
				t.Fatal("no figure")
			}
			for _, f := range figures {
				if f.Name == "" || f.Unit == "" || math.IsNaN(f.Value) || math.IsInf(f.Value, 0) {
					t.Errorf("not a figure: %+v", f)
				}
				if (f.FloorIs != "") != (f.Floor > 0) {
					t.Errorf("a floor without a name, or the reverse: %+v", f)
				}
				if (f.Target != "") != (f.Reached != nil) {
					t.Errorf("a target without an answer, or the reverse: %+v", f)
				}
			}
		})
	}
}

func TestFindTakesWorksByPartsOfTheirNames(t *testing.T) {
	for _, c := range []struct {
		words   []string
		want    int
		unknown string
	}{
		{nil, len(Works()), ""},
		{[]string{"append"}, 2, ""},
		{[]string{"load", "fold"}, 4, ""},
		{[]string{"fold", "nothing"}, 0, "nothing"},
	} {
		got, unknown := Find(c.words...)
		if len(got) != c.want || unknown != c.unknown {
			t.Errorf("Find(%q) gives %d works and %q, want %d and %q", c.words, len(got), unknown, c.want, c.unknown)
		}
	}
}
