package history_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/history"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/message"
)

// laws are what no operation may break.
func laws(t *rapid.T, s *outcrop.Session) {
	check(t, s)
	log := s.Log()
	onSurface := map[outcrop.Seq]bool{}
	results := map[string]bool{} // call ids whose result is on the surface, pruned or not
	for _, n := range s.Surface().Nodes() {
		onSurface[n] = true
		if ev := log.At(n); ev.Type == outcrop.TypeToolResult {
			id, _ := jsonwire.Text(jsonwire.Get(jsonwire.Get(jsonwire.Get(ev.Data, "message"), "source"), "callId"))
			results[id] = true
		}
	}
	answered := map[string]bool{}
	pins := map[outcrop.Seq]bool{}
	for ev := range outcrop.Events(log, 0) {
		switch ev.Type {
		case outcrop.TypeToolResult:
			id, _ := jsonwire.Text(jsonwire.Get(jsonwire.Get(jsonwire.Get(ev.Data, "message"), "source"), "callId"))
			answered[id] = true
		case outcrop.TypeOutcropPin:
			n, _ := jsonwire.Int(jsonwire.Get(ev.Data, "node"))
			pins[outcrop.Seq(n)] = string(jsonwire.Get(ev.Data, "pinned")) == "true"
		}
	}
	for ev := range outcrop.Events(log, 0) {
		if ev.Type != outcrop.TypeAssistantMessage {
			continue
		}
		blocks, _ := message.ParseBlocks(jsonwire.Get(jsonwire.Get(ev.Data, "message"), "content"))
		for _, b := range blocks {
			if b.Type == message.ToolCallBlock && answered[b.ID] && onSurface[ev.Seq] != results[b.ID] {
				t.Fatalf("call %s is on the surface %v, its result %v", b.ID, onSurface[ev.Seq], results[b.ID])
			}
		}
	}
	for n, pinned := range pins {
		if pinned && !onSurface[n] {
			t.Fatalf("the pinned node %d was covered", n)
		}
	}
}

// Whatever happens to a session, in whatever order and however deep it nests,
// pairs stay together, pins stay on the surface, sources are complete, the live
// surface is that of the log, and every request is accepted.
func TestAnyOperationsKeepTheLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := build(t, outcrop.Options{})
		ctx, ed := context.Background(), history.Direct(b.s)
		o := history.Options{
			Policy: rapid.SampledFrom([]history.Policy{history.Layers, history.Layers, history.DSH}).Draw(t, "policy"),
			Window: rapid.SampledFrom([]int64{0, 6000, 12_000}).Draw(t, "window"), MaxOutput: 1000,
		}
		// An answer under 16 is a hostile one, others are a length.
		answers, asked := rapid.SliceOfN(rapid.IntRange(0, 76), 7, 7).Draw(t, "answers"), 0
		o.Provider = provider(func(ctx context.Context, req llm.Request, y func(message.Chunk, error) bool) {
			if err := llm.Check(req); err != nil {
				t.Fatal(err)
			}
			asked++
			if how := answers[asked%len(answers)]; how < 16 {
				hostile[how].answer(ctx, req, y)
			} else {
				say(y, message.Stop, nil, message.Text("A summary. "+strings.Repeat("More of it. ", how-16)))
			}
		})
		m := manager(t, o)
		pinned := []outcrop.Seq{}
		fine := func(err error) {
			if err != nil && !errors.Is(err, outcrop.ErrRefused) {
				t.Fatal(err)
			}
			laws(t, b.s)
		}
		edit := func(open bool) {
			nodes := b.s.Surface().Nodes()
			pick := func(name string) outcrop.Seq { return nodes[rapid.IntRange(0, len(nodes)-1).Draw(t, name)] }
			switch rapid.IntRange(0, 6).Draw(t, "operation") {
			case 0:
				_, err := m.PreStep(ctx, ed, history.Input{})
				fine(err)
			case 1:
				_, _, err := m.Overflow(ctx, ed)
				fine(err)
			case 2:
				_, err := m.Compact(ctx, ed, history.Request{Start: -1, End: -1, ModelFree: rapid.Bool().Draw(t, "free")})
				fine(err)
			case 3:
				start, end := pick("start"), pick("end")
				if open {
					_, err := m.CompactRange(ctx, ed, start, end)
					fine(err)
				} else {
					_, err := m.Compact(ctx, ed, history.Request{Start: start, End: end})
					fine(err)
				}
			case 4:
				_, err := m.Prune(ctx, ed, nil, false)
				fine(err)
			case 5:
				_, err := m.Prune(ctx, ed, []outcrop.Seq{pick("node")}, false)
				fine(err)
			case 6:
				n := pick("pin")
				on := !slices.Contains(pinned, n)
				b.log(outcrop.OutcropPin{Node: n, Pinned: on})
				if on {
					pinned = append(pinned, n)
				} else {
					pinned = slices.DeleteFunc(pinned, func(s outcrop.Seq) bool { return s == n })
				}
			}
		}
		calls := 0
		for turn := 1; turn <= rapid.IntRange(1, 6).Draw(t, "turns"); turn++ {
			b.openTurn(turn)
			for step := 1; step <= rapid.IntRange(1, 4).Draw(t, "steps"); step++ {
				b.openStep(turn, step)
				if turn == 1 && step == 1 {
					b.log(outcrop.RequestHeader{Reason: "initial", Header: llm.HeaderJSON(llm.Config{Provider: "p", Model: "m"}, "s", nil)})
				}
				if step == 1 {
					b.user(strings.Repeat("word ", rapid.IntRange(1, 300).Draw(t, "words")))
				}
				b.request(turn, step)
				var blocks []message.Block
				var ids []string
				for range rapid.IntRange(0, 2).Draw(t, "calls") {
					calls++
					ids = append(ids, fmt.Sprintf("c%d", calls))
					blocks = append(blocks, b.call(ids[len(ids)-1]))
				}
				b.assistant(turn, step, append(blocks, message.Text("So."))...)
				for _, id := range ids {
					if rapid.IntRange(0, 5).Draw(t, "answered") > 0 {
						b.result(turn, step, id, strings.Repeat("line\n", rapid.SampledFrom([]int{1, 100, 1000, 4000}).Draw(t, "lines")))
					}
				}
				b.closeStep(turn, step)
				for range rapid.IntRange(0, 2).Draw(t, "edits") {
					edit(true)
				}
			}
			b.closeTurn(turn)
			for range rapid.IntRange(0, 2).Draw(t, "edits between turns") {
				edit(false)
			}
		}
		laws(t, b.s)
	})
}

// A checkpoint of a checkpoint of a checkpoint, five deep, has a level for each
// and leads back to every original.
func TestFiveDeep(t *testing.T) {
	s := draw(t, "prompt:a=900 step:b=900 step:c=900 step:d=900 step:e=900 step:f=900 step:g=900 end")
	m := manager(t, history.Options{Provider: summariser(nil)})
	first := append([]outcrop.Seq(nil), s.s.Surface().Nodes()...)
	last := outcrop.Seq(-1)
	for depth := 1; depth <= 5; depth++ {
		nodes := s.s.Surface().Nodes()
		end := nodes[2] // an exchange more each time
		if depth == 1 {
			end = nodes[0]
		}
		rep, err := m.Compact(context.Background(), history.Direct(s.s), history.Request{Start: nodes[0], End: end})
		if err != nil || len(rep.Edits) != 1 || rep.Edits[0].Level != depth {
			t.Fatalf("depth %d: %v, %+v", depth, err, rep.Edits)
		}
		if last >= 0 && !slices.Contains(rep.Edits[0].Shadowed, last) {
			t.Errorf("depth %d does not cover the checkpoint before", depth)
		}
		last = rep.Edits[0].Replacement
		check(t, s.s)
	}
	var covered []outcrop.Seq
	var walk func(seq outcrop.Seq)
	walk = func(seq outcrop.Seq) {
		ev := s.s.Log().At(seq)
		if _, _, replace := ev.Op.Range(); !replace {
			if ev.Type.Surface() {
				covered = append(covered, seq)
			}
			return
		}
		for src := range ev.Sources.All() {
			walk(src)
		}
	}
	walk(last)
	slices.Sort(covered)
	if want := first[:9]; !slices.Equal(covered, want) {
		t.Errorf("the sources lead to %v, want %v", covered, want)
	}
}
