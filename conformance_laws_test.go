package outcrop_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/outcrop-dev/outcrop"
)

// snapshot is everything of a session that a refused candidate must leave as
// it was.
type snapshot struct {
	nodes      []outcrop.Seq
	generation int
	len        int
	messages   string
	digest     string
	log        string
}

func snap(s *outcrop.Session) snapshot {
	var m strings.Builder
	for _, msg := range s.Messages() {
		fmt.Fprintf(&m, "%d %s %s %s\n", msg.Seq, msg.Role, msg.ID, msg.Raw)
	}
	return snapshot{
		nodes: slices.Clone(s.Surface().Nodes()), generation: s.Surface().Generation(), len: s.Len(),
		messages: m.String(), digest: s.RequestDigest(), log: outcrop.LogDigest(s.Log()),
	}
}

func (a snapshot) equal(b snapshot) bool {
	return slices.Equal(a.nodes, b.nodes) && a.generation == b.generation && a.len == b.len &&
		a.messages == b.messages && a.digest == b.digest && a.log == b.log
}

// machine draws candidates, good ones and bad ones, for one session.
type machine struct {
	s    *outcrop.Session
	veto string // what the veto does next: "", "refuse" or "panic"
}

var errNo = errors.New("no")

func (m *machine) ask(outcrop.Event) error {
	switch m.veto {
	case "refuse":
		return errNo
	case "panic":
		panic("veto")
	}
	return nil
}

func (m *machine) message(t *rapid.T, role, source string) string {
	id := rapid.StringMatching(`m[0-9]{1,3}`).Draw(t, "id")
	content := rapid.SampledFrom([]string{`[]`, `[{"type":"text","text":"a"}]`, `[{"type":"text","text":"\ud83d"}]`, `[{"type":"odd","n":1.50}]`}).Draw(t, "content")
	return `{"content":` + content + `,"source":` + source + `,"role":"` + role + `","id":"` + id + `"}`
}

// base is the length that a candidate is judged against, staged ones of its
// group included.
func (m *machine) candidate(t *rapid.T, base int) outcrop.Event {
	var e outcrop.Event
	switch rapid.IntRange(0, 7).Draw(t, "kind") {
	case 0:
		e.Type, e.Data = "hook/invoked", []byte(`{"n":1}`)
		return e
	case 1:
		e.Type, e.Data = outcrop.TypeRequestHeader, []byte(`{"header":{"config":{"provider":"p","model":"m"}},"reason":"change"}`)
		return e
	case 2:
		e.Type = rapid.SampledFrom([]outcrop.Type{"hook/invoked", "request/header-delta", "text-chunks", "who/knows"}).Draw(t, "bad type")
		e.Data = []byte(rapid.SampledFrom([]string{`{}`, `{"a":-0}`, `{`, `{"a":1,"a":2}`}).Draw(t, "bad data"))
		e.Op = rapid.SampledFrom([]outcrop.SurfaceOp{{}, outcrop.Tail}).Draw(t, "bad op")
		return e
	case 3:
		e.Type, e.Data = outcrop.TypeContextMessage, []byte(m.message(t, "user", `{"kind":"plugin"}`))
	case 4:
		e.Type, e.Data = outcrop.TypeAssistantMessage, []byte(`{"turn":1,"step":1,"message":`+m.message(t, "assistant", `{"kind":"model","provider":"p","model":"m"}`)+`}`)
	case 5:
		text := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "result")
		call := rapid.SampledFrom([]string{"c1", "c1", "c2"}).Draw(t, "call")
		e.Type = outcrop.TypeToolResult
		e.Data = []byte(`{"turn":1,"step":1,"message":{"source":{"kind":"tool","callId":"` + call + `"},"content":[{"type":"tool-result","toolCallId":"` + call + `","content":[{"type":"text","text":"` + text + `"}],"isError":false}],"role":"user","id":"r"}}`)
	default:
		role := rapid.SampledFrom([]string{"user", "user", "user", "user", "assistant"}).Draw(t, "role")
		e.Type, e.Data = outcrop.TypeUserMessage, []byte(m.message(t, role, `{"kind":"user"}`))
	}
	e.Op = outcrop.Tail
	nodes := m.s.Surface().Nodes()
	if len(nodes) > 0 && rapid.Bool().Draw(t, "replace") {
		i := rapid.IntRange(0, len(nodes)-1).Draw(t, "start")
		j := rapid.IntRange(0, len(nodes)-1).Draw(t, "end")
		if i > j && rapid.IntRange(0, 4).Draw(t, "keep reversed") > 0 {
			i, j = j, i
		}
		e.Op = outcrop.Replace(nodes[i], nodes[j])
		if i <= j && rapid.IntRange(0, 5).Draw(t, "forget a source") > 0 {
			e.Sources = outcrop.SourcesOf(nodes[i : j+1]...)
		}
		return e
	}
	switch rapid.IntRange(0, 5).Draw(t, "sources") {
	case 0:
		e.Sources = outcrop.EmptySources
	case 1:
		e.Sources = outcrop.SourcesOf(outcrop.Seq(rapid.IntRange(0, base+1).Draw(t, "source")))
	case 2:
		e.Sources = outcrop.SourcesOf(0, 0)
	}
	return e
}

func TestSurfaceLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &machine{}
		var heard []outcrop.Seq
		deaf := func(outcrop.Event) { panic("observer") }
		var reentered error
		l, err := newLive(outcrop.NewHeader("s", 1, ""), outcrop.Options{
			Vetoes: []func(outcrop.Event) error{m.ask},
			Observers: []func(outcrop.Event){deaf, func(e outcrop.Event) {
				heard = append(heard, e.Seq)
				_, reentered = m.s.Append(outcrop.StepStart{Turn: 1, Step: 1})
			}},
		})
		if err != nil {
			t.Fatal(err)
		}
		m.s = l.Session
		steps := rapid.IntRange(1, 25).Draw(t, "steps")
		for range steps {
			before := snap(m.s)
			heard, reentered = nil, nil
			m.veto = rapid.SampledFrom([]string{"", "", "", "refuse", "panic"}).Draw(t, "veto")
			n := rapid.SampledFrom([]int{0, 0, 1, 2, 3}).Draw(t, "group")
			var events []outcrop.Event
			if n == 0 {
				var e outcrop.Event
				e, err = m.s.AppendRaw(m.candidate(t, before.len))
				events = []outcrop.Event{e}
			} else {
				var group []outcrop.Candidate
				for k := range n {
					group = append(group, outcrop.RawCandidate(m.candidate(t, before.len+k)))
				}
				events, err = m.s.AppendAll(group...)
			}
			if err != nil {
				// A refused or vetoed candidate, and with it its whole group,
				// leaves no trace.
				if after := snap(m.s); !before.equal(after) {
					t.Fatalf("refused (%v), but the session changed:\n%+v\n%+v", err, before, after)
				}
				if heard != nil {
					t.Fatalf("observers heard of a refused candidate: %v", heard)
				}
				if vetoed := errors.Is(err, outcrop.ErrVetoed); vetoed && m.veto == "" {
					t.Fatalf("vetoed by nobody: %v", err)
				} else if !vetoed && !errors.Is(err, outcrop.ErrRefused) {
					t.Fatalf("neither refused nor vetoed: %v", err)
				}
			} else {
				if m.s.Len() != before.len+len(events) {
					t.Fatalf("%d events returned, %d committed", len(events), m.s.Len()-before.len)
				}
				var want []outcrop.Seq
				for i, e := range events {
					want = append(want, outcrop.Seq(before.len+i))
					if got := m.s.Log().At(want[i]); !bytes.Equal(got.AppendJSON(nil), e.AppendJSON(nil)) {
						t.Fatalf("returned %s, committed %s", e.AppendJSON(nil), got.AppendJSON(nil))
					}
				}
				if !slices.Equal(heard, want) {
					t.Fatalf("the observer behind one that panics heard %v, want %v", heard, want)
				}
				if !errors.Is(reentered, outcrop.ErrAppendInFlight) {
					t.Fatalf("an observer's append: %v", reentered)
				}
			}
			f, err := outcrop.FoldSurface(m.s.Log().Records(0))
			if err != nil {
				t.Fatal(err)
			}
			sameFold(t, m.s, f)
		}
		// Each prefix, asked for afterwards, is what it was.
		for seq := range m.s.Len() {
			at, err := outcrop.SurfaceAt(m.s.Log(), outcrop.Seq(seq))
			if err != nil {
				t.Fatal(err)
			}
			seed, err := outcrop.SeedRecords(outcrop.NewHeader("p", 1, ""), prefix(m.s.Log(), seq+1), outcrop.Options{})
			if err != nil {
				t.Fatal(err)
			}
			sameFold(t, seed, at)
		}
	})
}

func prefix(log outcrop.Log, n int) func(func(outcrop.Record, error) bool) {
	return func(yield func(outcrop.Record, error) bool) {
		for i := range n {
			if !yield(outcrop.Record{Event: log.At(outcrop.Seq(i))}, nil) {
				return
			}
		}
	}
}

// sameFold is sameAsFold for rapid, whose T is no testing.TB.
func sameFold(t *rapid.T, s *outcrop.Session, f outcrop.Fold) {
	t.Helper()
	if got := s.Surface().Nodes(); !slices.Equal(got, f.Nodes) {
		t.Fatalf("live surface %v, detached fold %v", got, f.Nodes)
	}
	if s.Surface().Generation() != f.Generation || len(f.Replacements) != f.Generation {
		t.Fatalf("live generation %d, detached fold %d", s.Surface().Generation(), f.Generation)
	}
	got, want := s.Messages(), outcrop.DeriveMessages(s.Log(), f.Nodes)
	same := func(a, b *outcrop.Message) bool {
		return a.Seq == b.Seq && a.Role == b.Role && a.ID == b.ID && bytes.Equal(a.Raw, b.Raw)
	}
	if !slices.EqualFunc(got, want, same) {
		t.Fatalf("live messages %v, derived from the fold %v", got, want)
	}
	digest, err := outcrop.RequestDigestAt(s.Log(), outcrop.Seq(s.Len()-1))
	if err != nil || s.RequestDigest() != digest {
		t.Fatalf("live digest %s, from the log %s (%v)", s.RequestDigest(), digest, err)
	}
}

// A line of a log is one line whatever the candidate's text looked like.
func TestAppendRawKeepsOneLine(t *testing.T) {
	s, err := outcrop.New(outcrop.NewHeader("s", 1, ""), outcrop.Options{})
	if err != nil {
		t.Fatal(err)
	}
	user := `{"type":"user/message","seq":0,"time":1,"data":{"content":[],"source":{"kind":"user"},"role":"user","id":"u"},"surfaceOp":"append"`
	for _, line := range []string{
		user + "}",
		user + ",\"sourceEventSeqs\":[\n0]}",
		"{\"type\":\"user/message\",\"seq\":0,\"time\":1,\"data\":{\"content\":[],\n\"source\":{\"kind\":\"user\"},\"role\":\"user\",\"id\":\"u\"},\"surfaceOp\":\n\"append\"}",
	} {
		e, err := outcrop.DecodeEvent([]byte(line))
		if err != nil {
			t.Fatal(err)
		}
		e, err = s.AppendRaw(e)
		if err != nil {
			continue
		}
		if bytes.ContainsAny(e.AppendJSON(nil), "\r\n") {
			t.Errorf("an event of two lines was committed: %q", e.AppendJSON(nil))
		}
	}
	for i := range s.Len() {
		if _, err := outcrop.DecodeEvent(s.Log().At(outcrop.Seq(i)).Line()); err != nil {
			t.Error(err)
		}
	}
}
