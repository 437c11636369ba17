package dsh_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/history/cut"
	"github.com/outcrop-dev/outcrop/history/dsh"
	"github.com/outcrop-dev/outcrop/internal/conformance"
	"github.com/outcrop-dev/outcrop/message"
)

func session(t *testing.T, events []json.RawMessage) *outcrop.Session {
	t.Helper()
	h := outcrop.NewHeader("s1", 1000, "/srv/demo")
	h.Outcrop = 0
	s, err := outcrop.Inspect(h, func(yield func(outcrop.Record, error) bool) {
		for _, raw := range events {
			ev, err := outcrop.DecodeEvent(raw)
			if !yield(outcrop.Record{Event: ev}, err) {
				return
			}
		}
	}, outcrop.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestPairingVectors(t *testing.T) {
	type vector struct {
		Name, Kind string
		Events     []json.RawMessage
		Expect     struct {
			Cuts []struct {
				Seq           outcrop.Seq
				Before, After any
			}
		}
	}
	ran := 0
	conformance.Cases(t, "compaction", func(v *vector) string { return v.Name }, func(t *testing.T, v *vector) {
		if v.Kind != "pairing" {
			return
		}
		ran++
		s := session(t, v.Events)
		view := s.Surface().View()
		cuts, err := dsh.Cuts(s.Log(), view.Nodes())
		for _, c := range v.Expect.Cuts {
			at := view.Index(c.Seq)
			for side, want := range map[int]any{0: c.Before, 1: c.After} {
				var got any
				switch {
				case errors.Is(err, dsh.ErrUnmatched):
					got = map[string]any{"errorClass": "pairing-unmatched-result"}
				case at < 0:
					got = map[string]any{"errorClass": "pairing-seq-absent"}
				default:
					got = cuts[at+side]
				}
				if at < 0 && err != nil {
					continue // the surface is refused before the seq is looked up, or after
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("node %d side %d: %s", c.Seq, side, diff)
				}
			}
		}
	})
	if ran != 52 {
		t.Errorf("%d cases ran", ran)
	}
}

func TestRangeVectors(t *testing.T) {
	type vector struct {
		Name, Kind string
		Events     []json.RawMessage
		Expect     struct {
			Nodes         json.RawMessage // another shape in other kinds
			SurfaceTokens int64
			Baseline      struct {
				Kind   dsh.Baseline
				Tokens int64
			}
			SurfaceDeltaTokens, TotalTokens int64
			Selections                      []struct {
				RetainTokens int64
				Range        *struct {
					Start, End outcrop.Seq
					ErrorClass string
				}
			}
		}
	}
	ran := 0
	conformance.Cases(t, "compaction", func(v *vector) string { return v.Name }, func(t *testing.T, v *vector) {
		if v.Kind != "range" {
			return
		}
		ran++
		s := session(t, v.Events)
		var once dsh.Meter
		got := once.Measure(s.Log())
		want := dsh.Measurement{
			Baseline: v.Expect.Baseline.Kind, Tokens: v.Expect.Baseline.Tokens, Delta: v.Expect.SurfaceDeltaTokens,
			Total: v.Expect.TotalTokens, Surface: v.Expect.SurfaceTokens,
		}
		if err := json.Unmarshal(v.Expect.Nodes, &want.Nodes); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("measurement (-want +got): %s", diff)
		}
		var steps dsh.Meter
		for n := range s.Len() {
			steps.Measure(outcrop.Prefix(s.Log(), n))
		}
		if diff := cmp.Diff(got, steps.Measure(s.Log()), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("event by event it measures otherwise: %s", diff)
		}
		for _, sel := range v.Expect.Selections {
			first, last, ok, err := dsh.Select(s.Log(), got.Nodes, sel.RetainTokens)
			switch want := sel.Range; {
			case want == nil:
				if ok || err != nil {
					t.Errorf("retain %d: %d..%d, error %v, want nothing", sel.RetainTokens, first, last, err)
				}
			case want.ErrorClass != "":
				if !errors.Is(err, dsh.ErrUnmatched) {
					t.Errorf("retain %d: error %v", sel.RetainTokens, err)
				}
			case err != nil || !ok || got.Nodes[first].Seq != want.Start || got.Nodes[last].Seq != want.End:
				t.Errorf("retain %d: %d..%d, %v, error %v, want %d..%d", sel.RetainTokens, first, last, ok, err, want.Start, want.End)
			}
		}
	})
	if ran != 34 {
		t.Errorf("%d cases ran", ran)
	}
}

func TestPruneVectors(t *testing.T) {
	type vector struct {
		Name, Kind string
		Config     map[string]any
		Blocks     json.RawMessage
		Expect     struct {
			Measure, MeasureAfter int
			Pruned                json.RawMessage
			OK                    bool
			ErrorClass            string
		}
	}
	classes := map[error]string{dsh.ErrThreshold: "prune-config-threshold", dsh.ErrBudget: "prune-config-budget", dsh.ErrSum: "prune-config-sum"}
	ran := map[string]int{}
	conformance.Cases(t, "prune", func(v *vector) string { return v.Name }, func(t *testing.T, v *vector) {
		if v.Kind == "session" {
			return
		}
		ran[v.Kind]++
		p, class := pruner(v.Config)
		if class == "" {
			class = classes[p.Check()]
		}
		if v.Kind == "config" {
			if class != v.Expect.ErrorClass {
				t.Errorf("refused with %q, want %q", class, v.Expect.ErrorClass)
			}
			return
		}
		blocks, err := message.ParseBlocks(v.Blocks)
		if err != nil {
			t.Fatal(err)
		}
		if n := cut.Points(blocks); n != v.Expect.Measure {
			t.Errorf("%d code points, want %d", n, v.Expect.Measure)
		}
		short, ok := p.Prune(blocks)
		if wanted := string(v.Expect.Pruned) != "null"; ok != wanted {
			t.Fatalf("pruned %v, want %v", ok, wanted)
		}
		if !ok {
			return
		}
		var want, got any
		if err := json.Unmarshal(v.Expect.Pruned, &want); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(message.AppendBlocks(nil, short), &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("pruned (-want +got): %s", diff)
		}
		if n := cut.Points(short); n != v.Expect.MeasureAfter {
			t.Errorf("%d code points are left, want %d", n, v.Expect.MeasureAfter)
		}
	})
	if ran["content"] != 82 || ran["config"] != 15 {
		t.Errorf("ran %v", ran)
	}
}

// pruner reads numbers as dsh's options have them. Here they are typed, so a
// fraction or a name that is not known cannot reach Check.
func pruner(config map[string]any) (p dsh.Pruner, class string) {
	p = dsh.DefaultPruner
	for name, v := range config {
		into, class := &p.Threshold, "prune-config-threshold"
		switch name {
		case "thresholdChars":
		case "headChars":
			into, class = &p.Head, "prune-config-budget"
		case "tailChars":
			into, class = &p.Tail, "prune-config-budget"
		default:
			return p, "prune-config-key"
		}
		if v == nil {
			continue
		}
		f := v.(float64)
		if f != float64(int(f)) {
			return p, class
		}
		*into = int(f)
	}
	return p, ""
}
