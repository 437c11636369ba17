package outcrop_test

import (
	"bytes"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/message"
)

// What the session promises about its one surface manager, beyond the values
// that the vectors check. docs/traceability.md refers to these tests.

func userMessage(text string) outcrop.UserMessage {
	return outcrop.UserMessage{Message: message.Message{Source: message.Source{Kind: "user"}, Content: []message.Block{message.Text(text)}}}
}

func fresh(t testing.TB, o outcrop.Options) *outcrop.Session {
	t.Helper()
	s, err := outcrop.New(outcrop.NewHeader("s", 1, ""), o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func mustAppend(t testing.TB, s *outcrop.Session, p outcrop.SurfacePayload, op outcrop.SurfaceOp, src outcrop.Sources) outcrop.Seq {
	t.Helper()
	e, err := s.AppendSurface(p, op, src)
	if err != nil {
		t.Fatal(err)
	}
	return e.Seq
}

func TestTheSurfaceIsOneReadOnlyValue(t *testing.T) {
	s := fresh(t, outcrop.Options{})
	if one, other := s.Surface(), s.Surface(); one != other {
		t.Error("the surface is another value each time")
	}
	// Nothing of it judges or changes.
	var methods []string
	for i, typ := 0, reflect.TypeFor[outcrop.Surface](); i < typ.NumMethod(); i++ {
		methods = append(methods, typ.Method(i).Name)
	}
	for _, m := range methods {
		if !slices.Contains([]string{"At", "Generation", "Len", "Nodes", "View"}, m) {
			t.Errorf("the read-only view of the surface has a method %s", m)
		}
	}
	a := mustAppend(t, s, userMessage("a"), outcrop.Tail, outcrop.NoSources)
	surface := s.Surface()
	b := mustAppend(t, s, userMessage("b"), outcrop.Tail, outcrop.NoSources)
	if surface.Len() != 2 {
		t.Errorf("a surface that was asked for earlier has %d nodes", surface.Len())
	}
	// Appending to what was handed out reaches nobody.
	handed := s.Surface().Nodes()
	_ = append(handed, 99)
	c := mustAppend(t, s, userMessage("c"), outcrop.Tail, outcrop.NoSources)
	if got, want := s.Surface().Nodes(), []outcrop.Seq{a, b, c}; !slices.Equal(got, want) {
		t.Errorf("nodes %v, want %v", got, want)
	}
}

func TestAViewStaysWhatItWas(t *testing.T) {
	s := fresh(t, outcrop.Options{})
	for _, text := range []string{"a", "b", "c", "d"} {
		mustAppend(t, s, userMessage(text), outcrop.Tail, outcrop.NoSources)
	}
	type was struct {
		view  outcrop.View
		nodes []outcrop.Seq
		log   outcrop.Log
		len   int
		msgs  []*outcrop.Message
		texts string
	}
	take := func() was {
		v := s.Surface().View()
		return was{v, slices.Clone(v.Nodes()), s.Log(), s.Len(), s.Messages(), texts(s.Messages())}
	}
	kept := []was{take()}
	for _, r := range [][2]int{{1, 2}, {0, 0}, {0, 2}} {
		nodes := s.Surface().Nodes()
		mustAppend(t, s, userMessage("r"), outcrop.Replace(nodes[r[0]], nodes[r[1]]), outcrop.SourcesOf(nodes[r[0]:r[1]+1]...))
		kept = append(kept, take())
		mustAppend(t, s, userMessage("e"), outcrop.Tail, outcrop.NoSources)
		kept = append(kept, take())
	}
	for i, k := range kept {
		if !slices.Equal(k.view.Nodes(), k.nodes) || k.view.LogLen() != k.len || k.log.Len() != k.len || texts(k.msgs) != k.texts {
			t.Errorf("snapshot %d changed: nodes %v, were %v", i, k.view.Nodes(), k.nodes)
		}
		at, err := outcrop.SurfaceAt(s.Log(), outcrop.Seq(k.len-1))
		if err != nil || !slices.Equal(at.Nodes, k.nodes) || at.Generation != k.view.Generation() {
			t.Errorf("snapshot %d: the detached fold gives %v (%v)", i, at.Nodes, err)
		}
	}
}

func texts(msgs []*outcrop.Message) string {
	var b strings.Builder
	for _, m := range msgs {
		b.Write(m.Raw)
		b.WriteByte('\n')
	}
	return b.String()
}

func TestTheDetachedFoldSharesNothing(t *testing.T) {
	s := fresh(t, outcrop.Options{})
	a := mustAppend(t, s, userMessage("a"), outcrop.Tail, outcrop.NoSources)
	mustAppend(t, s, userMessage("b"), outcrop.Replace(a, a), outcrop.SourcesOf(a))
	f, err := outcrop.FoldSurface(s.Log().Records(0))
	if err != nil {
		t.Fatal(err)
	}
	f.Nodes[0], f.Replacements[0].Shadowed[0] = 77, 78
	sameAsFold(t, s, outcrop.Fold{Nodes: []outcrop.Seq{1}, Generation: 1})
	again, err := outcrop.FoldSurface(s.Log().Records(0))
	if err != nil || again.Nodes[0] != 1 || again.Replacements[0].Shadowed[0] != 0 {
		t.Errorf("a second fold gives %+v (%v)", again, err)
	}
}

func TestNothingNewCostsNothing(t *testing.T) {
	s := fresh(t, outcrop.Options{})
	for range 1000 {
		mustAppend(t, s, userMessage("a"), outcrop.Tail, outcrop.NoSources)
	}
	mustAppend(t, s, userMessage("r"), outcrop.Replace(10, 500), outcrop.SourceRange(10, 500))
	first := s.Messages()
	s.Surface().View()
	if n := testing.AllocsPerRun(100, func() {
		s.Surface().Len()
		s.Surface().Generation()
		s.Surface().View()
	}); n > 0 {
		t.Errorf("the surface allocates %v times", n)
	}
	if n := testing.AllocsPerRun(100, func() { s.Messages() }); n > 0 {
		t.Errorf("messages allocate %v times", n)
	}
	// An append derives its own message and no other one anew.
	mustAppend(t, s, userMessage("b"), outcrop.Tail, outcrop.NoSources)
	next := s.Messages()
	if len(next) != len(first)+1 {
		t.Fatalf("%d messages", len(next))
	}
	for i := range first {
		if first[i] != next[i] {
			t.Fatalf("message %d was derived again", i)
		}
	}
	// A replace keeps the messages before and behind its range.
	last := s.Surface().Nodes()
	at := len(last) - 5
	mustAppend(t, s, userMessage("r"), outcrop.Replace(last[at], last[at]), outcrop.SourcesOf(last[at]))
	third := s.Messages()
	for i := range next {
		if i != at && next[i] != third[i] {
			t.Fatalf("message %d was derived again", i)
		}
	}
}

// The compiler keeps surface payloads and log payloads apart: none is both, so
// Append cannot take the first and AppendSurface not the second.
func TestPayloadsAreOfOneKind(t *testing.T) {
	for _, p := range []any{
		outcrop.UserMessage{}, outcrop.ContextMessage{}, outcrop.AssistantMessage{}, outcrop.ToolResult{},
		outcrop.TurnStart{}, outcrop.TurnEnd{}, outcrop.StepStart{}, outcrop.StepEnd{}, outcrop.AssistantChunk{}, outcrop.ToolCall{},
		outcrop.RequestHeader{}, outcrop.RequestContext{}, outcrop.InboxSpliced{}, outcrop.OutcropRequest{}, outcrop.RawPayload{},
	} {
		_, onSurface := p.(outcrop.SurfacePayload)
		logged, inLog := p.(outcrop.LogPayload)
		if onSurface == inLog {
			t.Errorf("%T: surface payload %v, log payload %v", p, onSurface, inLog)
		}
		if inLog && logged.EventType().Surface() {
			t.Errorf("%T can be appended without a marker", p)
		}
	}
	// What the compiler cannot see, admission refuses.
	s := fresh(t, outcrop.Options{})
	if _, err := s.Append(outcrop.RawPayload{Type: outcrop.TypeUserMessage, Data: []byte(`{"content":[],"source":{"kind":"user"},"role":"user","id":"u"}`)}); outcrop.CodeOf(err) != "SURFACE_MARKER_REQUIRED" {
		t.Errorf("a user/message without a marker: %v", err)
	}
	e := outcrop.Event{Type: outcrop.TypeTurnStart, Data: []byte(`{"turn":1}`), Op: outcrop.Tail}
	if _, err := s.AppendRaw(e); outcrop.CodeOf(err) != "SURFACE_NOT_ELIGIBLE_OP" {
		t.Errorf("a turn/start with a marker: %v", err)
	}
	e.Op, e.Sources = outcrop.SurfaceOp{}, outcrop.EmptySources
	if _, err := s.AppendRaw(e); outcrop.CodeOf(err) != "SURFACE_NOT_ELIGIBLE_SOURCES" {
		t.Errorf("a turn/start with sources: %v", err)
	}
	if s.Len() != 0 {
		t.Errorf("%d events were committed", s.Len())
	}
}

func TestShadowedEventsStayInTheLog(t *testing.T) {
	s := fresh(t, outcrop.Options{})
	a := mustAppend(t, s, userMessage("first"), outcrop.Tail, outcrop.NoSources)
	b := mustAppend(t, s, userMessage("second"), outcrop.Tail, outcrop.NoSources)
	before := eventsJSON(s.Log(), 0, s.Len())
	r := mustAppend(t, s, userMessage("both"), outcrop.Replace(a, b), outcrop.SourcesOf(a, b))
	if got := s.Surface().Nodes(); !slices.Equal(got, []outcrop.Seq{r}) {
		t.Errorf("nodes %v", got)
	}
	if got := texts(s.Messages()); strings.Contains(got, "first") || !strings.Contains(got, "both") {
		t.Errorf("messages %s", got)
	}
	for i, want := range before {
		if got := s.Log().At(outcrop.Seq(i)).AppendJSON(nil); !bytes.Equal(got, want) {
			t.Errorf("event %d is now %s", i, got)
		}
	}
}

func TestALogWithoutMarkersIsLookedAtOnly(t *testing.T) {
	lines := [][]byte{
		[]byte(`{"type":"turn/start","seq":0,"time":1,"data":{"turn":1}}`),
		[]byte(`{"type":"user/message","seq":1,"time":1,"data":{"content":[],"source":{"kind":"user"},"role":"user","id":"u"}}`),
	}
	s, err := outcrop.Inspect(testHeader("s"), records(lines), outcrop.Options{})
	if err != nil || !s.NoMarkers() || s.Len() != 2 || s.Surface().Len() != 0 || len(s.Messages()) != 0 {
		t.Errorf("looked at: %v, %d events, %d nodes, %d messages", err, s.Len(), s.Surface().Len(), len(s.Messages()))
	}
	if _, err := outcrop.Restore(testHeader("s"), records(lines), outcrop.Options{}); outcrop.CodeOf(err) != "SURFACE_MARKER_REQUIRED" || failedAt(err) != 1 {
		t.Errorf("restored: %v", err)
	}
	if _, err := outcrop.SeedRecords(testHeader("s"), records(lines), outcrop.Options{}); outcrop.CodeOf(err) != "SURFACE_MARKER_REQUIRED" || failedAt(err) != 1 {
		t.Errorf("as a seed: %v", err)
	}
}

func TestASeedIsACopy(t *testing.T) {
	lines := [][]byte{
		[]byte(`{"type":"user/message","seq":0,"time":1,"data":{"content":[{"type":"text","text":"as it was"}],"source":{"kind":"user"},"role":"user","id":"u"},"surfaceOp":"append"}`),
		[]byte(`{"type":"user/message","seq":1,"time":1,"data":{"content":[],"source":{"kind":"user"},"role":"user","id":"v"},"surfaceOp":{"op":"replace","start":0,"end":0},"sourceEventSeqs":[0]}`),
	}
	want := [][]byte{bytes.Clone(lines[0]), bytes.Clone(lines[1])}
	s, err := outcrop.SeedRecords(testHeader("s"), records(lines), outcrop.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range lines {
		for i := range l {
			l[i] = 'x'
		}
	}
	for i, got := range eventsJSON(s.Log(), 0, 2) {
		if !bytes.Equal(got, want[i]) {
			t.Errorf("event %d is %s", i, got)
		}
	}
	f, err := outcrop.FoldSurface(s.Log().Records(0))
	if err != nil {
		t.Fatal(err)
	}
	sameAsFold(t, s, f)
}

func TestVetoesAreNotAskedAboutClosers(t *testing.T) {
	asked := map[outcrop.Type]bool{}
	refuse := false
	s := fresh(t, outcrop.Options{Vetoes: []func(outcrop.Event) error{func(e outcrop.Event) error {
		asked[e.Type] = true
		if refuse {
			return errNo
		}
		return nil
	}}})
	appendLog := func(p outcrop.LogPayload) error { _, err := s.Append(p); return err }
	for _, p := range []outcrop.LogPayload{outcrop.TurnStart{Turn: 1}, outcrop.StepStart{Turn: 1, Step: 1}, outcrop.ToolCall{Turn: 1, Step: 1, CallID: "c", Name: "n"}} {
		if err := appendLog(p); err != nil {
			t.Fatal(err)
		}
	}
	refuse = true
	if err := appendLog(outcrop.ToolCall{Turn: 1, Step: 1, CallID: "d", Name: "n"}); !errors.Is(err, outcrop.ErrVetoed) || !errors.Is(err, errNo) {
		t.Errorf("a call: %v", err)
	}
	mustAppend(t, s, outcrop.NewToolResult(1, 1, "c", false), outcrop.Tail, outcrop.SourcesOf(2))
	for _, p := range []outcrop.LogPayload{outcrop.StepEnd{Turn: 1, Step: 1}, outcrop.TurnEnd{Turn: 1, Reason: outcrop.TurnReason{Kind: outcrop.Completed}}} {
		if err := appendLog(p); err != nil {
			t.Errorf("%T: %v", p, err)
		}
	}
	for _, typ := range []outcrop.Type{outcrop.TypeToolResult, outcrop.TypeStepEnd, outcrop.TypeTurnEnd} {
		if asked[typ] {
			t.Errorf("a veto was asked about %s", typ)
		}
	}
	// A rewritten result closes nothing, so it is asked about.
	if _, err := s.AppendSurface(outcrop.NewToolResult(1, 1, "c", false), outcrop.Replace(3, 3), outcrop.SourcesOf(3)); !errors.Is(err, outcrop.ErrVetoed) && outcrop.CodeOf(err) == "" {
		t.Errorf("a rewritten result: %v", err)
	}
}

func TestARefusedCloserEndsTheSession(t *testing.T) {
	for name, closer := range map[string]func(*outcrop.Session) error{
		"alone": func(s *outcrop.Session) error {
			_, err := s.AppendSurface(outcrop.NewToolResult(1, 1, "", false), outcrop.Tail, outcrop.NoSources)
			return err
		},
		"in a group": func(s *outcrop.Session) error {
			_, err := s.AppendAll(outcrop.SurfaceCandidate(outcrop.NewToolResult(1, 1, "", false), outcrop.Tail, outcrop.NoSources), outcrop.LogCandidate(outcrop.StepEnd{Turn: 1, Step: 1}))
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := fresh(t, outcrop.Options{})
			if _, err := s.Append(outcrop.TurnStart{Turn: 1}); err != nil {
				t.Fatal(err)
			}
			before := snap(s)
			err := closer(s)
			if !errors.Is(err, outcrop.ErrRefused) {
				t.Fatalf("a result of no call: %v", err)
			}
			if !before.equal(snap(s)) {
				t.Error("the refused closer left a trace")
			}
			_, again := s.Append(outcrop.StepStart{Turn: 1, Step: 1})
			if !errors.Is(again, outcrop.ErrFailed) || !errors.Is(s.Err(), outcrop.ErrFailed) {
				t.Errorf("the session goes on: %v", again)
			}
			if s.Len() != 1 {
				t.Errorf("%d events", s.Len())
			}
		})
	}
}
