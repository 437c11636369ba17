package outcrop

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/outcrop-dev/outcrop/message"
)

func fixed(ms int64) func() int64 { return func() int64 { return ms } }

func user(text string) UserMessage {
	return UserMessage{message.Message{ID: "u-" + text, Source: message.FromUser, Content: []message.Block{message.Text(text)}}}
}

func TestTypedPayloadsAreWrittenInTheFormatsOrder(t *testing.T) {
	turn, seven, at := 3, int64(7), Seq(5)
	reply := message.Message{ID: "a1", Source: message.FromModel("p", "m"), Content: []message.Block{
		message.Reasoning("hm"), message.Text("hi"), message.ToolCall("c1", "read", `{"path":"a"}`)}}
	failed := &message.Failure{Message: "busy", Code: "RATE_LIMIT", Status: 429, RetryAfterMs: 250}
	blocks := []message.Block{message.Text("s")}
	for _, c := range []struct {
		log  LogPayload
		surf SurfacePayload
		want string
	}{
		{log: TurnStart{3}, want: `{"turn":3}`},
		{log: TurnEnd{3, TurnReason{Kind: Completed}}, want: `{"turn":3,"reason":{"kind":"completed"}}`},
		{log: TurnEnd{3, TurnReason{Kind: TurnAborted, Abort: AbortReason{Kind: "user"}}}, want: `{"turn":3,"reason":{"kind":"aborted","reason":{"kind":"user"}}}`},
		{log: TurnEnd{3, TurnReason{Kind: TurnAborted, Abort: AbortReason{Kind: "hook", Reason: "step limit 200 reached"}}}, want: `{"turn":3,"reason":{"kind":"aborted","reason":{"kind":"hook","reason":"step limit 200 reached"}}}`},
		{log: TurnEnd{3, TurnReason{Kind: TurnError, Error: failed}}, want: `{"turn":3,"reason":{"kind":"error","error":{"message":"busy","code":"RATE_LIMIT","status":429,"providerRetryAfterMs":250}}}`},
		{log: StepStart{3, 1}, want: `{"turn":3,"step":1}`},
		{log: StepEnd{3, 1}, want: `{"turn":3,"step":1}`},
		{log: ToolCall{3, 1, "c1", "read", `{"a":"\n"}`}, want: `{"turn":3,"step":1,"callId":"c1","name":"read","arguments":"{\"a\":\"\\n\"}"}`},
		{log: AssistantChunk{3, 1, message.Chunk{Type: message.ToolCallDelta, Index: 2, ID: "c1", Text: "{"}}, want: `{"turn":3,"step":1,"chunk":{"type":"tool-call-delta","index":2,"id":"c1","argumentsDelta":"{"}}`},
		{log: AssistantChunk{3, 1, message.Chunk{Type: message.BlockEnd, Index: 1, Block: &reply.Content[1]}}, want: `{"turn":3,"step":1,"chunk":{"type":"block-end","index":1,"block":{"type":"text","text":"hi"}}}`},
		{log: AssistantChunk{3, 1, message.Chunk{Type: message.UsageChunk, Usage: &message.Usage{InputTokens: 1, OutputTokens: 2, CacheReadTokens: &seven}}}, want: `{"turn":3,"step":1,"chunk":{"type":"usage","usage":{"inputTokens":1,"outputTokens":2,"cacheReadTokens":7}}}`},
		{log: AssistantChunk{3, 1, message.Chunk{Type: message.FinishChunk, Reason: &message.Finish{Kind: message.Errored, Failure: failed}}}, want: `{"turn":3,"step":1,"chunk":{"type":"finish","reason":{"kind":"error","failure":{"message":"busy","code":"RATE_LIMIT","status":429,"providerRetryAfterMs":250}}}}`},
		{log: InboxSpliced{Target: NextTurn, Inserted: []message.Message{{ID: "u1", Role: message.User, Source: message.FromUser, Content: blocks}}}, want: `{"target":"next-turn","start":0,"inserted":[{"content":[{"type":"text","text":"s"}],"source":{"kind":"user"},"role":"user","id":"u1"}]}`},
		{log: InboxSpliced{Target: NextStep, Start: 1, RemovedCount: 2, Canceled: true}, want: `{"target":"next-step","start":1,"removedCount":2,"inserted":[],"outcome":"canceled"}`},
		{log: RequestHeader{[]byte(`{"config":{"provider":"p","model":"m"}}`), "initial"}, want: `{"header":{"config":{"provider":"p","model":"m"}},"reason":"initial"}`},
		{log: RequestContext{"p", "m", 128000}, want: `{"provider":"p","model":"m","contextWindow":128000}`},
		{log: CompactionStart{"k", "", nil}, want: `{"compactionId":"k","turn":null}`},
		{log: CompactionStart{"k", "cmd", &turn}, want: `{"compactionId":"k","sourceCommandId":"cmd","turn":3}`},
		{log: CompactionSummary{CompactionID: "k", Summary: blocks, RawOutput: blocks, LLMStreamCall: true, Shadowed: []Seq{4, 9}, ShadowedTokenCount: 8, Provider: "p", Model: "m", MaxTokens: 10, Usage: &message.Usage{InputTokens: 1}, Level: 2},
			want: `{"compactionId":"k","summary":[{"type":"text","text":"s"}],"rawOutput":[{"type":"text","text":"s"}],"llmStreamCall":true,"shadowedRange":{"start":4,"end":9},"shadowedSeqs":[4,9],"shadowedTokenCount":8,"provider":"p","model":"m","maxTokens":10,"usage":{"inputTokens":1,"outputTokens":0},"level":2}`},
		{log: CompactionEnd{"k", "", nil, "boom"}, want: `{"compactionId":"k","turn":null,"error":"boom"}`},
		{log: CompactionPrune{[]Seq{5}, 12}, want: `{"shadowedRange":{"start":5,"end":5},"shadowedSeqs":[5],"shadowedTokenCount":12}`},
		{log: LLMRetry{RetryID: "r", Turn: 3, Step: 1, Provider: "p", PolicyKey: "[]", Retry: 1, MaxRetries: 5, DelayMs: 250, Failure: failed}, want: `{"retryId":"r","turn":3,"step":1,"provider":"p","mode":"normal","policyKey":"[]","retry":1,"maxRetries":5,"delayMs":250,"failure":{"message":"busy","code":"RATE_LIMIT","status":429,"providerRetryAfterMs":250}}`},
		{log: LLMRetryStarted{"r", 3, 1, 1}, want: `{"retryId":"r","turn":3,"step":1,"retry":1}`},
		{log: ApprovalAsked{"q", "shell", "c1", ""}, want: `{"id":"q","toolName":"shell","callId":"c1"}`},
		{log: ApprovalDecided{"q", "rejected"}, want: `{"id":"q","outcome":"rejected"}`},
		{log: ApprovalPolicy{"ask"}, want: `{"policy":"ask"}`},
		{log: CommandRun{"x", "prune", "9", "user"}, want: `{"commandId":"x","name":"prune","args":"9","source":"user"}`},
		{log: CommandDone{"x", "success", "", &at}, want: `{"commandId":"x","kind":"success","sourceEventSeq":5}`},
		{log: SessionTitle{"t", []Seq{1}, "user"}, want: `{"title":"t","messageSeqs":[1],"source":"user"}`},
		{log: TodoWrite{[]Todo{{"a", "pending"}}}, want: `{"todos":[{"content":"a","status":"pending"}]}`},
		{log: OutcropRequest{3, 1, 1, "turn", 9, "v1:x", "openai/1", 0, false}, want: `{"turn":3,"step":1,"attempt":1,"purpose":"turn","prefix":9,"digest":"v1:x","encoder":"openai/1"}`},
		{log: OutcropRequest{3, 1, 1, "turn", 9, "v1:x", "openai/1", 800, true}, want: `{"turn":3,"step":1,"attempt":1,"purpose":"turn","prefix":9,"digest":"v1:x","encoder":"openai/1","maxOutput":800,"images":true}`},
		{log: OutcropEdit{9, "prune", 100, 10, 50}, want: `{"replaceSeq":9,"kind":"prune","tokensBefore":100,"tokensAfter":10,"cacheInvalidated":50}`},
		{log: OutcropSummarizerCall{Purpose: "compaction", Call: 1, Model: "p:m", Prefix: 9, Through: 7, Mode: "cut", Digest: "v1:x"}, want: `{"purpose":"compaction","call":1,"model":"p:m","prefix":9,"through":7,"mode":"cut","extra":[],"digest":"v1:x"}`},
		{log: OutcropRewind{To: 4, Prompt: &at}, want: `{"to":4,"prompt":5}`},
		{log: OutcropPin{7, true}, want: `{"node":7,"pinned":true}`},
		{log: OutcropTag{"x", false}, want: `{"tag":"x","set":false}`},
		{log: OutcropRedacted{[]Seq{1, 2}, "key"}, want: `{"seqs":[1,2],"reason":"key"}`},
		{surf: user("hi"), want: `{"content":[{"type":"text","text":"hi"}],"source":{"kind":"user"},"role":"user","id":"u-hi"}`},
		{surf: ContextMessage{message.Message{Source: message.Source{Kind: "outcrop", Form: "snapshot"}, Content: blocks}}, want: `{"content":[{"type":"text","text":"s"}],"source":{"kind":"outcrop","form":"snapshot"},"role":"user","id":"new"}`},
		{surf: AssistantMessage{Turn: 3, Step: 1, Message: reply, Usage: &message.Usage{InputTokens: 1}, Interrupted: true}, want: `{"turn":3,"step":1,"message":{"role":"assistant","content":[{"type":"reasoning","text":"hm"},{"type":"text","text":"hi"},{"type":"tool-call","id":"c1","name":"read","arguments":"{\"path\":\"a\"}"}],"source":{"kind":"model","provider":"p","model":"m"},"id":"a1"},"interrupted":true,"usage":{"inputTokens":1,"outputTokens":0}}`},
		{surf: func() ToolResult {
			r := NewToolResult(3, 1, "c1", true, message.Text("no"))
			r.Error, r.Meta = &ToolError{"E", "X"}, []byte(`{"exitCode":1}`)
			return r
		}(), want: `{"turn":3,"step":1,"message":{"source":{"kind":"tool","callId":"c1"},"content":[{"type":"tool-result","toolCallId":"c1","content":[{"type":"text","text":"no"}],"isError":true}],"role":"user","id":"new"},"error":{"name":"E","code":"X"},"meta":{"exitCode":1}}`},
	} {
		s, _ := New(NewHeader("s1", 1, ""), Options{Now: fixed(9), NewID: func() string { return "new" }})
		var ev Event
		var err error
		if c.log != nil {
			ev, err = s.Append(c.log)
		} else {
			ev, err = s.AppendSurface(c.surf, Tail, NoSources)
		}
		if err != nil {
			t.Errorf("%s: %v", c.want, err)
			continue
		}
		if string(ev.Data) != c.want {
			t.Errorf("%s is written as\n%s, want\n%s", ev.Type, ev.Data, c.want)
		}
		if !ev.Type.Known() {
			t.Errorf("%s is not known", ev.Type)
		}
		if ours := strings.HasPrefix(string(ev.Type), "outcrop/"); ours != ev.Ignorable {
			t.Errorf("%s: ignorable is %v", ev.Type, ev.Ignorable)
		}
		// What was accepted live is accepted on load, to the byte.
		back, err := Restore(s.Header(), func(yield func(Record, error) bool) {
			for r := range s.Log().Records(0) {
				e, err := DecodeEvent(slices.Clone(r.Line()))
				if !yield(Record{Event: e}, err) {
					return
				}
			}
		}, Options{})
		if err != nil {
			t.Errorf("%s: restore: %v", ev.Type, err)
		} else if string(back.Log().At(0).Line()) != string(ev.Line()) {
			t.Errorf("%s: restored as %s", ev.Type, back.Log().At(0).Line())
		}
	}
}

func TestAnAppendDuringAnAppendIsRefused(t *testing.T) {
	var s *Session
	var inner []error
	try := func(Event) {
		_, err := s.Append(TurnStart{2})
		inner = append(inner, err)
	}
	s, _ = New(NewHeader("s1", 1, ""), Options{
		Observers: []func(Event){try},
		Vetoes:    []func(Event) error{func(ev Event) error { try(ev); return nil }},
	})
	if _, err := s.Append(TurnStart{1}); err != nil {
		t.Fatal(err)
	}
	for _, err := range inner {
		if !errors.Is(err, ErrAppendInFlight) {
			t.Errorf("got %v", err)
		}
	}
	if len(inner) != 2 || s.Len() != 1 {
		t.Errorf("%d inner appends, %d events", len(inner), s.Len())
	}
	if _, err := s.Append(TurnEnd{1, TurnReason{Kind: Completed}}); err != nil {
		t.Errorf("after it: %v", err)
	}
}

func TestReadsSeeACommittedPrefixFromAnyGoroutine(t *testing.T) {
	s, _ := New(NewHeader("s1", 1, ""), Options{})
	stop := make(chan struct{})
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for {
				log, view, msgs := s.Log(), s.Surface().View(), s.Messages()
				if n := log.Len(); n > 0 && log.At(Seq(n-1)).Seq != Seq(n-1) {
					t.Errorf("the last event of %d has seq %d", n, log.At(Seq(n-1)).Seq)
				}
				for _, seq := range view.Nodes() {
					if int(seq) >= view.LogLen() {
						t.Errorf("node %d in a surface of %d events", seq, view.LogLen())
					}
				}
				if len(msgs) > s.Len() {
					t.Error("more messages than events")
				}
				select {
				case <-stop:
					return
				default:
				}
			}
		})
	}
	for i := range 2000 {
		ev, err := s.AppendSurface(user(fmt.Sprint(i)), Tail, NoSources)
		if err != nil {
			t.Fatal(err)
		}
		if i%5 == 4 {
			if _, err := s.AppendSurface(user("sum"), Replace(ev.Seq, ev.Seq), SourcesOf(ev.Seq)); err != nil {
				t.Fatal(err)
			}
		}
	}
	close(stop)
	readers.Wait()
}

func TestACloserThatCannotBeWrittenEndsTheSession(t *testing.T) {
	s, _ := New(NewHeader("s1", 1, ""), Options{})
	if _, err := s.AppendSurface(ToolResult{Message: message.Message{ID: "x"}}, Tail, NoSources); err == nil {
		t.Fatal("a tool result without a call was accepted")
	}
	if _, err := s.Append(TurnStart{1}); !errors.Is(err, ErrFailed) {
		t.Errorf("the next append says %v", err)
	}
	if s.Len() != 0 {
		t.Error("something was appended")
	}
}

func TestClosersAreNotVetoed(t *testing.T) {
	no := errors.New("no")
	s, _ := New(NewHeader("s1", 1, ""), Options{Vetoes: []func(Event) error{func(ev Event) error {
		if ev.Type != TypeTurnStart {
			return no
		}
		return nil
	}}})
	s.Append(TurnStart{1})
	if _, err := s.Append(StepStart{1, 1}); !errors.Is(err, ErrVetoed) || !errors.Is(err, no) {
		t.Errorf("got %v", err)
	}
	if _, err := s.Append(TurnEnd{1, TurnReason{Kind: Completed}}); err != nil {
		t.Errorf("a closer was vetoed: %v", err)
	}
}

// model is the surface by the plain reading of the rules.
type model struct {
	nodes []Seq
	gen   int
}

func FuzzSurfaceOps(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 200, 1, 3, 201, 0, 0}, uint64(1))
	f.Add([]byte{0, 0, 0, 210, 0, 2, 0, 220, 1, 1, 230, 9, 9}, uint64(2))
	f.Fuzz(func(t *testing.T, ops []byte, seed uint64) {
		if len(ops) > 400 {
			return
		}
		rng := rand.New(rand.NewPCG(seed, 7))
		s, _ := New(NewHeader("s1", 1, ""), Options{})
		var m model
		pick := func(b byte) Seq {
			if len(m.nodes) > 0 && b%4 > 0 {
				return m.nodes[int(b)%len(m.nodes)]
			}
			return Seq(b % 32)
		}
		for i := 0; i+2 < len(ops); i += 3 {
			next := Seq(s.Len())
			if ops[i] < 150 {
				if _, err := s.AppendSurface(user("x"), Tail, NoSources); err != nil {
					t.Fatal(err)
				}
				m.nodes = append(m.nodes, next)
				continue
			}
			start, end := pick(ops[i+1]), pick(ops[i+2])
			a, b := slices.Index(m.nodes, start), slices.Index(m.nodes, end)
			legal := a >= 0 && b >= 0 && a <= b
			var cite []Seq
			if legal {
				cite = slices.Clone(m.nodes[a : b+1])
				rng.Shuffle(len(cite), func(i, j int) { cite[i], cite[j] = cite[j], cite[i] })
			} else {
				cite = []Seq{0}
			}
			if ops[i] > 240 && len(cite) > 1 {
				cite, legal = cite[1:], false
			}
			before := s.Surface().View()
			_, err := s.AppendSurface(user("sum"), Replace(start, end), SourcesOf(cite...))
			if (err == nil) != (legal && cite[0] < next) {
				t.Fatalf("replace %d..%d citing %v on %v: %v", start, end, cite, m.nodes, err)
			}
			if err == nil {
				m.nodes = slices.Replace(slices.Clone(m.nodes), a, b+1, next)
				m.gen++
			} else if after := s.Surface().View(); !slices.Equal(before.Nodes(), after.Nodes()) || s.Len() != int(next) {
				t.Fatal("a refused candidate left a trace")
			}
			if rng.IntN(3) == 0 {
				s.Messages()
			}
		}
		fold, err := FoldSurface(s.Log().Records(0))
		if err != nil {
			t.Fatal(err)
		}
		at, _ := SurfaceAt(s.Log(), Seq(s.Len()-1))
		view := s.Surface().View()
		for name, nodes := range map[string][]Seq{"live": view.Nodes(), "fold": fold.Nodes, "SurfaceAt": at.Nodes} {
			if !slices.Equal(nodes, m.nodes) {
				t.Fatalf("%s surface %v, want %v", name, nodes, m.nodes)
			}
		}
		if view.Generation() != m.gen || fold.Generation != m.gen || len(fold.Replacements) != m.gen {
			t.Fatalf("generation %d and %d, want %d", view.Generation(), fold.Generation, m.gen)
		}
		msgs := s.Messages()
		want := DeriveMessages(s.Log(), m.nodes)
		if len(msgs) != len(want) {
			t.Fatalf("%d messages, want %d", len(msgs), len(want))
		}
		for i := range msgs {
			if msgs[i].Seq != want[i].Seq || string(msgs[i].Raw) != string(want[i].Raw) || msgs[i].ID != want[i].ID {
				t.Fatalf("message %d is of event %d, want %d", i, msgs[i].Seq, want[i].Seq)
			}
		}
	})
}

func TestRequestDigestFollowsTheSurface(t *testing.T) {
	s, _ := New(NewHeader("s1", 1, ""), Options{})
	if s.RequestDigest() != "" {
		t.Error("a digest without a header")
	}
	check := func() {
		t.Helper()
		want, err := RequestDigestAt(s.Log(), Seq(s.Len()-1))
		if err != nil {
			t.Fatal(err)
		}
		if got := s.RequestDigest(); got != want {
			t.Fatalf("after %d events the live digest is %s, the detached one %s", s.Len(), got, want)
		}
	}
	s.Append(TurnStart{1})
	s.Append(RequestHeader{[]byte(`{"config":{"provider":"p","model":"m"}}`), "initial"})
	rng := rand.New(rand.NewPCG(3, 4))
	for i := range 300 {
		nodes := s.Surface().Nodes()
		switch k := rng.IntN(10); {
		case k < 6 || len(nodes) == 0:
			s.AppendSurface(user(fmt.Sprint(i)), Tail, NoSources)
		case k < 8:
			a := rng.IntN(len(nodes))
			b := a + rng.IntN(len(nodes)-a)
			if _, err := s.AppendSurface(user("sum"), Replace(nodes[a], nodes[b]), SourcesOf(nodes[a:b+1]...)); err != nil {
				t.Fatal(err)
			}
		case k == 8:
			s.AppendSurface(AssistantMessage{Turn: 1, Step: 1, Message: message.Message{Source: message.FromModel("p", "m")}}, Tail, EmptySources)
		default:
			s.Append(RequestHeader{[]byte(fmt.Sprintf(`{"config":{"provider":"p","model":"m%d"}}`, i)), "change"})
		}
		if rng.IntN(2) == 0 {
			check()
		}
	}
	check()
}

func TestOldMessagesWithoutMarkersCanBeLookedAt(t *testing.T) {
	old := `
{"type":"turn/start","seq":0,"time":1,"data":{"turn":1}}
{"type":"user/message","seq":1,"time":1,"data":{"content":[],"source":{"kind":"user"},"role":"user","id":"a"}}
{"type":"turn/end","seq":2,"time":1,"data":{"turn":1,"reason":{"kind":"completed"}}}`
	s, err := Inspect(NewHeader("s1", 1, ""), lines(t, old), Options{})
	if err != nil || !s.NoMarkers() || s.Surface().Len() != 0 || s.Len() != 3 {
		t.Fatalf("%v, no markers %v", err, s.NoMarkers())
	}
	if _, err := Restore(NewHeader("s1", 1, ""), lines(t, old), Options{}); CodeOf(err) != "SURFACE_MARKER_REQUIRED" {
		t.Errorf("restore says %v", err)
	}
	if _, err := s.Append(TurnStart{2}); !errors.Is(err, ErrReadOnly) {
		t.Errorf("append says %v", err)
	}
}
