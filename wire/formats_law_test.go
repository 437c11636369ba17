package wire_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/wire"
	"github.com/outcrop-dev/outcrop/wire/formats"
)

// drawn is a session of format 0 that is being made up.
type drawn struct {
	t      *rapid.T
	s      *outcrop.Session
	turn   int
	step   int
	calls  int
	ids    int
	system string // the member of the next request/header, with its comma
	chunks []outcrop.Seq
}

func (d *drawn) raw(typ outcrop.Type, data string, op outcrop.SurfaceOp, src outcrop.Sources) outcrop.Seq {
	e, err := d.s.AppendRaw(outcrop.Event{Type: typ, Data: []byte(data), Op: op, Sources: src, Ignorable: !typ.DSH() && typ != outcrop.TypeContextMessage})
	if err != nil {
		d.t.Fatalf("%s %s: %v", typ, data, err)
	}
	return e.Seq
}

func (d *drawn) log(typ outcrop.Type, format string, args ...any) outcrop.Seq {
	return d.raw(typ, fmt.Sprintf(format, args...), outcrop.SurfaceOp{}, outcrop.NoSources)
}

func (d *drawn) chance(what string, percent int) bool {
	return rapid.IntRange(0, 99).Draw(d.t, what) < percent
}

func (d *drawn) id() int { d.ids++; return d.ids }

// plain draws a string token without bytes that a log is not written with.
func (d *drawn) plain() string {
	return rapid.SampledFrom([]string{`""`, `"a"`, `"two words"`, `"\\\""`, `"é\u0007"`, `"\ud83d"`, `"日\n"`}).Draw(d.t, "text")
}

// stream draws the chunks of a reply. Some events may come between them.
func (d *drawn) stream() {
	d.chunks = nil
	chunk := func(format string, args ...any) {
		d.chunks = append(d.chunks, d.log(outcrop.TypeAssistantChunk, `{"turn":%d,"step":%d,"chunk":%s}`, d.turn, d.step, fmt.Sprintf(format, args...)))
	}
	for block := range rapid.IntRange(0, 3).Draw(d.t, "blocks") {
		kind := rapid.SampledFrom([]string{"text", "reasoning", "tool-call"}).Draw(d.t, "block")
		chunk(`{"type":"block-start","index":%d,"blockType":%q}`, block, kind)
		for range rapid.IntRange(0, 5).Draw(d.t, "deltas") {
			switch {
			case kind == "tool-call" && d.chance("named", 50):
				chunk(`{"type":"tool-call-delta","index":%d,"id":"c","name":"read","argumentsDelta":%s}`, block, d.plain())
			case kind == "tool-call":
				chunk(`{"type":"tool-call-delta","index":%d,"id":"c","argumentsDelta":%s}`, block, d.plain())
			default:
				chunk(`{"type":"%s-delta","index":%d,"text":%s}`, kind, block, d.plain())
			}
			if d.chance("between", 5) {
				d.log("agent/inbox/spliced", `{"target":"next-turn","start":0,"inserted":[{"content":[],"source":{"kind":"plugin","plugin":"tools-code-mode"},"role":"user","id":"b%d"}]}`, d.id())
			}
		}
	}
	if d.chance("usage", 70) {
		chunk(`{"type":"usage","usage":{"inputTokens":5,"outputTokens":1}}`)
	}
	if d.chance("odd chunk", 5) {
		chunk(`{"type":"text-delta","index":0,"text":"x","more":1}`)
	}
}

func (d *drawn) user(source string, op outcrop.SurfaceOp, src outcrop.Sources) outcrop.Seq {
	return d.raw(outcrop.TypeUserMessage, fmt.Sprintf(`{"content":[{"type":"text","text":%s}],"source":%s,"role":"user","id":"u%d"}`, d.plain(), source, d.id()), op, src)
}

func (d *drawn) requestHeader() {
	if d.chance("another prompt", 40) {
		d.system = rapid.SampledFrom([]string{"", `"system":"",`, `"system":"You.",`, `"system":"Other \ud83d prompt.",`}).Draw(d.t, "prompt")
	}
	d.log(outcrop.TypeRequestHeader, `{"header":{"config":{"provider":"p","model":"m"},%s"tools":[{"name":"read"}]},"reason":"change"}`, d.system)
}

// takeStep draws one step.
func (d *drawn) takeStep() {
	d.step++
	d.log(outcrop.TypeStepStart, `{"turn":%d,"step":%d}`, d.turn, d.step)
	if d.step == 1 {
		d.user(`{"kind":"user"}`, outcrop.Tail, outcrop.NoSources)
	}
	if d.chance("context", 20) {
		d.raw(outcrop.TypeContextMessage, fmt.Sprintf(`{"content":[{"type":"text","text":"now"}],"source":{"kind":"runtime"},"role":"user","id":"x%d"}`, d.id()), outcrop.Tail, outcrop.NoSources)
	}
	if d.chance("request/header", 50) || d.s.Len() < 6 {
		d.requestHeader()
	}
	if d.chance("failed attempt", 20) {
		d.stream()
		d.log(outcrop.TypeLLMRetry, `{"turn":%d,"step":%d,"retryId":"r"}`, d.turn, d.step)
	}
	d.log(outcrop.TypeOutcropRequest, `{"turn":%d,"step":%d,"attempt":1,"purpose":"turn","prefix":%d,"digest":"v1:0","encoder":"e"}`, d.turn, d.step, d.s.Len()-1)
	d.stream()
	var calls []string
	content := `{"type":"text","text":"said"}`
	for range rapid.IntRange(0, 2).Draw(d.t, "calls") {
		d.calls++
		calls = append(calls, fmt.Sprintf("c%d", d.calls))
		content += fmt.Sprintf(`,{"type":"tool-call","id":"c%d","name":"read","arguments":"{}"}`, d.calls)
	}
	src := outcrop.SourcesOf(d.chunks...)
	d.raw(outcrop.TypeAssistantMessage, fmt.Sprintf(`{"turn":%d,"step":%d,"message":{"role":"assistant","content":[%s],"source":{"kind":"model","provider":"p","model":"m"},"id":"a%d"},"usage":{"inputTokens":5,"outputTokens":1}}`,
		d.turn, d.step, content, d.id()), outcrop.Tail, src)
	for _, c := range calls {
		call := d.log(outcrop.TypeToolCall, `{"turn":%d,"step":%d,"callId":%q,"name":"read","arguments":"{}"}`, d.turn, d.step, c)
		if d.chance("code", 20) {
			d.log("tool/code-dispatch-start", `{"rootCallId":%q,"parentCallId":%q,"subCallId":"s%d","name":"read","arguments":{}}`, c, c, d.id())
		}
		result := d.raw(outcrop.TypeToolResult, fmt.Sprintf(`{"turn":%d,"step":%d,"message":{"source":{"kind":"tool","callId":%q},"content":[{"type":"tool-result","toolCallId":%q,"content":[{"type":"text","text":%s}],"isError":%v}],"role":"user","id":"t%d"}}`,
			d.turn, d.step, c, c, d.plain(), d.chance("error", 20), d.id()), outcrop.Tail, outcrop.SourcesOf(call))
		if d.chance("prune", 15) {
			e := d.s.Log().At(result)
			cut := bytes.Replace(e.Data, []byte(`"content":[{"type":"text"`), []byte(`"content":[{"cut":1,"type":"text"`), 1)
			d.log(outcrop.TypeCompactionPrune, `{"shadowedRange":{"start":%d,"end":%d},"shadowedSeqs":[%d],"shadowedTokenCount":3}`, result, result, result)
			d.raw(outcrop.TypeToolResult, string(cut), outcrop.Replace(result, result), outcrop.SourcesOf(result))
		}
	}
	if d.chance("bookkeeping", 20) {
		nodes := d.s.Surface().View().Nodes()
		n := nodes[rapid.IntRange(0, len(nodes)-1).Draw(d.t, "node")]
		d.log(outcrop.TypeSessionTitle, `{"title":"T","messageSeqs":[%d],"source":{"kind":"user"}}`, n)
		d.log(outcrop.TypeOutcropPin, `{"node":%d,"pinned":true}`, n)
		d.log("acme/thing", `{"seq":1,"start":2}`)
		d.log("subagent/descriptor", `{"mode":"one-shot","version":2,"provider":"p"}`)
		d.log("agent-preset/selected", `{"agentPreset":"code"}`)
		d.log("command/done", `{"commandId":"k","kind":"success","sourceEventSeq":%d}`, n)
	}
	if d.chance("no end of the step", 10) {
		return
	}
	d.log(outcrop.TypeStepEnd, `{"turn":%d,"step":%d}`, d.turn, d.step)
}

func (d *drawn) compact() {
	nodes := d.s.Surface().View().Nodes()
	if len(nodes) < 2 {
		return
	}
	from := rapid.IntRange(0, len(nodes)-2).Draw(d.t, "from")
	to := rapid.IntRange(from+1, len(nodes)-1).Draw(d.t, "to")
	var list []string
	for _, n := range nodes[from : to+1] {
		list = append(list, fmt.Sprint(n))
	}
	covered := append([]outcrop.Seq(nil), nodes[from:to+1]...)
	d.log(outcrop.TypeCompactionStart, `{"compactionId":"k%d","turn":%d}`, d.turn, d.turn)
	d.log(outcrop.TypeCompactionSummary, `{"compactionId":"k%d","summary":[],"shadowedRange":{"start":%d,"end":%d},"shadowedSeqs":[%s],"shadowedTokenCount":9,"provider":"p","model":"m"}`,
		d.turn, nodes[from], nodes[to], strings.Join(list, ","))
	n := d.user(fmt.Sprintf(`{"kind":"plugin","plugin":"compact","compactionId":"k%d"}`, d.turn), outcrop.Replace(nodes[from], nodes[to]), outcrop.SourcesOf(covered...))
	d.log(outcrop.TypeOutcropEdit, `{"replaceSeq":%d,"kind":"compaction","tokensBefore":9,"tokensAfter":1,"cacheInvalidated":9}`, n)
	d.log(outcrop.TypeCompactionEnd, `{"compactionId":"k%d","turn":%d}`, d.turn, d.turn)
}

// drawSession draws a session, which may be a fork and may have been reopened.
func drawSession(t *rapid.T) *outcrop.Session {
	cwd := "/w"
	h := outcrop.Header{ID: "drawn", CreatedAt: 1000, Cwd: &cwd, Outcrop: 1}
	now := int64(1000)
	opts := outcrop.Options{Now: func() int64 { now += 3; return now }}
	s, err := outcrop.New(h, opts)
	if err != nil {
		t.Fatal(err)
	}
	d := &drawn{t: t, s: s, system: `"system":"You.",`}
	for range rapid.IntRange(0, 3).Draw(t, "turns") {
		d.turn, d.step = d.turn+1, 0
		d.log(outcrop.TypeTurnStart, `{"turn":%d}`, d.turn)
		for range rapid.IntRange(1, 3).Draw(t, "steps") {
			d.takeStep()
		}
		if d.chance("compaction", 30) {
			d.compact()
		}
		if d.chance("no end of the turn", 15) {
			break
		}
		d.log(outcrop.TypeTurnEnd, `{"turn":%d,"reason":{"kind":"completed"}}`, d.turn)
	}
	switch rapid.IntRange(0, 2).Draw(t, "life") {
	case 1: // reopened: closers and session/end-seed
		all := s.Log()
		if s, err = outcrop.Restore(h, stream(all), opts); err != nil {
			t.Fatal(err)
		}
	case 2: // a fork
		n := int64(s.Len())
		all := s.Log()
		if s, err = outcrop.Seed(h.Child("drawn-child", 2000, n), all, opts); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func stream(l outcrop.Log) func(func(outcrop.Record, error) bool) {
	return func(yield func(outcrop.Record, error) bool) {
		for r := range l.Records(0) {
			if !yield(r, nil) {
				return
			}
		}
	}
}

// Whatever a session holds, it says the same in each format: the same messages,
// to the byte below format 4, the same nodes, the same events and chunks.
func TestAnySessionSaysTheSameInEveryFormat(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSession(t)
		for format := 1; format <= formats.Newest; format++ {
			after, r := inspectIn(t, s, format)
			if a, b := told(s), told(after); a != b {
				t.Fatalf("format %d: %s\n%s", format, firstDifference(a, b), fileIn(t, s, format))
			}
			if a, b := exactly(s), exactly(after); a != b && format < 4 {
				t.Fatalf("format %d: %s", format, firstDifference(a, b))
			}
			if a, b := s.Header().SeedLength, r.Header().SeedLength; (a == nil) != (b == nil) || a != nil && *a != *b {
				t.Fatalf("format %d: seed of %v and %v", format, a, b)
			}
		}
	})
}

// One more way there and back changes nothing any more.
func TestFormat3ThereAndBackIsTheSameAgain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		once, _ := inspectIn(t, drawSession(t), 3)
		twice, _ := inspectIn(t, once, 3)
		if a, b := whole(once), whole(twice); a != b {
			t.Fatal(firstDifference(a, b))
		}
	})
}

func whole(s *outcrop.Session) string {
	var b strings.Builder
	for e := range outcrop.Events(s.Log(), 0) {
		b.Write(e.AppendJSON(nil))
		b.WriteByte('\n')
	}
	return b.String()
}

// A view grows with its log: what the first lines say is the beginning of what
// all of them say, and each event knows the seq of its line.
func TestAViewGrowsWithItsLog(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSession(t)
		format := rapid.IntRange(2, formats.Newest).Draw(t, "format")
		file := fileIn(t, s, format)
		lines := bytes.SplitAfter(file, []byte{'\n'})
		n := rapid.IntRange(1, len(lines)-1).Draw(t, "lines")
		part := readAll(bytes.Join(lines[:n], nil), wire.Plain)
		all := readAll(file, wire.Plain)
		if !part.OK || !bytes.HasPrefix(eventsText(all), eventsText(part)) {
			t.Fatalf("the first %d lines say something else: %v", n, part)
		}
		// The same, with a reader that goes on.
		r, err := wire.NewReader(bytes.NewReader(file), int64(len(bytes.Join(lines[:n], nil))), wire.Plain)
		if err != nil {
			t.Fatal(err)
		}
		var text []byte
		add := func(r *wire.Reader) {
			for rec, err := range r.Records() {
				if err != nil {
					t.Fatal(err)
				}
				for e := range rec.Events() {
					text = append(e.AppendJSON(text), '\n')
				}
			}
		}
		add(r)
		next, err := wire.NewReader(bytes.NewReader(file), int64(len(file)), wire.Plain)
		if err != nil {
			t.Fatal(err)
		}
		next.GoOn(r)
		add(next)
		if want := eventsText(all); !bytes.Equal(text, want) {
			t.Fatalf("in two readings: %s", firstDifference(string(want), string(text)))
		}
		own := 0
		for seen := outcrop.Seq(0); int(seen) < all.Events; seen++ {
			o, ok := next.Own(seen)
			if !ok || int(o) < own || int(o) >= len(lines)-2 {
				t.Fatalf("event %d is of line %d of %d, behind %d", seen, o, len(lines)-2, own)
			}
			own = int(o)
			if back, ok := next.Seen(o); ok && back < seen {
				t.Fatalf("event %d is of line %d, which became %d", seen, o, back)
			}
		}
		if _, ok := next.Own(outcrop.Seq(all.Events)); ok {
			t.Fatal("an event that there is not has a line")
		}
	})
}

// inspectIn reads a session that went to another format.
func inspectIn(t *rapid.T, s *outcrop.Session, format int) (*outcrop.Session, *wire.Reader) {
	file := fileIn(t, s, format)
	r, err := wire.NewReader(bytes.NewReader(file), int64(len(file)), wire.Plain)
	if err != nil {
		t.Fatal(err)
	}
	after, err := outcrop.Inspect(r.Header(), r.Records(), outcrop.Options{})
	if err != nil {
		t.Fatalf("format %d: %v\n%s", format, err, file)
	}
	return after, r
}

func fileIn(t *rapid.T, s *outcrop.Session, format int) []byte {
	return inFormat(t, s.Header(), s.Log(), format)
}
