package folded_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/history/pin"
	"github.com/outcrop-dev/outcrop/history/rewind"
	"github.com/outcrop-dev/outcrop/message"
	"github.com/outcrop-dev/outcrop/viewer/internal/folded"
)

// must is a value that was made without an error.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// drawn is a session of turns, with prompts that were sent again, pins, titles
// and compactions.
func drawn(t *rapid.T) *outcrop.Session {
	s := must(outcrop.New(outcrop.NewHeader("s", 1, "/w"), outcrop.Options{Now: func() int64 { return 1 }}))
	user := outcrop.UserMessage{Message: message.Message{ID: "m", Role: message.User, Source: message.FromUser, Content: []message.Block{message.Text("x")}}}
	turn := 0
	for range rapid.IntRange(0, 12).Draw(t, "acts") {
		nodes := s.Surface().Nodes()
		switch rapid.IntRange(0, 5).Draw(t, "act") {
		default:
			turn++
			must(s.Append(outcrop.TurnStart{Turn: turn}))
			must(s.Append(outcrop.StepStart{Turn: turn, Step: 1}))
			must(s.AppendSurface(user, outcrop.Tail, outcrop.NoSources))
			first := outcrop.Seq(s.Len())
			for range rapid.IntRange(0, 5).Draw(t, "chunks") {
				must(s.Append(outcrop.AssistantChunk{Turn: turn, Step: 1, Chunk: message.Chunk{Type: message.TextDelta, Text: "a"}}))
			}
			reply := outcrop.AssistantMessage{Turn: turn, Step: 1, Message: message.Message{ID: "a", Role: message.Assistant, Source: message.FromModel("p", "m"), Content: []message.Block{message.Text("y")}}}
			must(s.AppendSurface(reply, outcrop.Tail, outcrop.SourceRange(first, outcrop.Seq(s.Len()-1))))
			must(s.Append(outcrop.StepEnd{Turn: turn, Step: 1}))
			must(s.Append(outcrop.TurnEnd{Turn: turn, Reason: outcrop.TurnReason{Kind: outcrop.Completed}}))
		case 3:
			if len(nodes) > 1 {
				a := rapid.IntRange(0, len(nodes)-2).Draw(t, "a")
				must(s.AppendSurface(user, outcrop.Replace(nodes[a], nodes[a+1]), outcrop.SourcesOf(nodes[a:a+2]...)))
			}
		case 4:
			var points []outcrop.Seq
			for ev := range outcrop.Events(s.Log(), 0) {
				if ev.Type == outcrop.TypeTurnEnd || ev.Type == outcrop.TypeUserMessage && ev.Op.IsAppend() {
					points = append(points, ev.Seq)
				}
			}
			if len(points) == 0 {
				continue
			}
			// What lies inside a checkpoint is refused, and that is right.
			if p, err := rewind.Find(s, rapid.SampledFrom(points).Draw(t, "to")); err == nil {
				must(rewind.Commit(s, p, "r"))
			}
		case 5:
			if len(nodes) > 0 {
				must(pin.Set(s, rapid.SampledFrom(nodes).Draw(t, "pin")))
			}
		}
	}
	return s
}

func index(t rapid.TB, s *outcrop.Session) *folded.Index {
	t.Helper()
	x := folded.New(s.Header())
	for r := range s.Log().Records(0) {
		if err := x.Add(r); err != nil {
			t.Fatal(err)
		}
	}
	return x
}

func TestTheIndexAgreesWithTheSession(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawn(t)
		x := index(t, s)
		var nodes []outcrop.Seq
		for _, i := range x.Forest.Surface() {
			nodes = append(nodes, x.Forest.Node(int(i)).Seq)
		}
		if !slices.Equal(nodes, s.Surface().Nodes()) || x.Forest.Generation() != s.Surface().Generation() || int(x.Len()) != s.Len() {
			t.Fatalf("nodes %v generation %d, not %v and %d", nodes, x.Forest.Generation(), s.Surface().Nodes(), s.Surface().Generation())
		}
		st := pin.Of(s.Log(), nodes)
		var held, lost []outcrop.Seq
		for _, p := range x.Pins() {
			if p.Held {
				held = append(held, p.Seq)
			} else {
				lost = append(lost, p.Seq)
			}
		}
		slices.Sort(st.Held)
		if !slices.Equal(held, st.Held) || !slices.Equal(lost, st.Lost) {
			t.Fatalf("pins %v and %v, not %+v", held, lost, st)
		}
	})
}

// Each event stands in one row, and the rows in order; only chunks share one.
func TestRowsHoldEachEventOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawn(t)
		x := index(t, s)
		next := outcrop.Seq(0)
		for i, r := range x.Rows {
			last := x.LastOf(i)
			if r.Seq != next || last < r.Seq || last > r.Seq && !r.Run {
				t.Fatalf("row %d: %+v to %d, expected %d", i, r, last, next)
			}
			for seq := r.Seq; seq <= last; seq++ {
				if x.RowOf(seq) != i || (s.Log().At(seq).Type == outcrop.TypeAssistantChunk) != r.Run {
					t.Fatalf("event %d is in row %d", seq, x.RowOf(seq))
				}
			}
			next = last + 1
		}
		if int(next) != s.Len() {
			t.Fatalf("rows to %d of %d events", next, s.Len())
		}
	})
}

// What people see is every item once, in order: by itself or in a fold, and
// exactly what a rewind took away is folded.
func TestTheListThatPeopleSeeHoldsEachItemOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawn(t)
		x := index(t, s)
		next := 0
		for at, e := range x.Visible {
			for next < int(e.From) { // a rewind stands in its fold
				if x.Items[next].Kind != folded.Rewind {
					t.Fatalf("item %d is not seen: %+v", next, x.Items[next])
				}
				next++
			}
			if int(e.From) != next || e.To < e.From || e.By == 0 && e.To != e.From {
				t.Fatalf("entry %d: %+v, expected %d", at, e, next)
			}
			for i := int(e.From); i <= int(e.To); i++ {
				where, inFold := x.Seen(i)
				if where != at || inFold != (e.By != 0) {
					t.Fatalf("item %d is said to be in %d, folded %v; it is in %d: %+v", i, where, inFold, at, e)
				}
			}
			next = int(e.To) + 1
		}
		for i, it := range x.Items {
			n := x.Forest.Find(it.Seq)
			if n < 0 || it.Kind == folded.Rewind || it.Kind == folded.Checkpoint || it.Kind == folded.Prune {
				continue
			}
			if _, inFold := x.Seen(i); inFold != x.Forest.Rewound(n, x.Len()) {
				t.Fatalf("item %d (event %d) is folded: %v; a rewind took it away: %v", i, it.Seq, inFold, !inFold)
			}
		}
	})
}

func TestVersionsAreThoseOfTheRewinds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawn(t)
		if len(s.Surface().Nodes()) > 0 {
			if p, m, err := rewind.Again(s, -1, "again"); err == nil {
				must(rewind.Commit(s, p, "r"))
				must(s.AppendSurface(outcrop.UserMessage{Message: message.Message{ID: "v", Role: message.User, Source: message.FromUser, Content: m.Content}}, outcrop.Tail, outcrop.NoSources))
			}
		}
		x := index(t, s)
		groups := rewind.Versions(s.Log())
		n := 0
		for _, g := range groups {
			for _, seq := range g {
				n++
				if v := x.Versions[seq]; v == nil || !slices.Equal(v.Seqs, g) {
					t.Fatalf("versions of %d: %+v, not %v", seq, v, g)
				}
			}
		}
		if n != len(x.Versions) {
			t.Fatalf("%d prompts have versions, not %d", len(x.Versions), n)
		}
	})
}

func TestARecordThatDoesNotFollowIsRefusedAndChangesNothing(t *testing.T) {
	x := folded.New(outcrop.NewHeader("s", 1, "/w"))
	ok := outcrop.Event{Type: outcrop.TypeTurnStart, Seq: 0, Data: []byte(`{"turn":1}`)}
	if err := x.Add(outcrop.Record{Event: ok}); err != nil {
		t.Fatal(err)
	}
	for _, ev := range []outcrop.Event{
		{Type: outcrop.TypeTurnEnd, Seq: 0}, {Type: outcrop.TypeTurnEnd, Seq: 2},
		{Type: outcrop.TypeUserMessage, Seq: 1, Op: outcrop.Replace(0, 0), Data: []byte(`{}`)},
	} {
		if x.Add(outcrop.Record{Event: ev}) == nil {
			t.Errorf("%+v was taken", ev)
		}
	}
	if x.Len() != 1 || len(x.Rows) != 1 || len(x.Items) != 1 {
		t.Errorf("%d events, %d rows, %d items", x.Len(), len(x.Rows), len(x.Items))
	}
}
