package outcrop_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/conformance"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
)

// inspectBoth gives the records of a log to Inspect and to an Inspection, up to
// the first refusal, and compares what they say.
func inspectBoth(t interface {
	Errorf(string, ...any)
	Fatalf(string, ...any)
}, events []outcrop.Event) {
	h := outcrop.NewHeader("s1", 1, "")
	s, err := outcrop.Inspect(h, func(yield func(outcrop.Record, error) bool) {
		for _, e := range events {
			if !yield(outcrop.Record{Event: e}, nil) {
				return
			}
		}
	}, outcrop.Options{})
	results := map[outcrop.Seq][]byte{}
	i, headErr := outcrop.NewInspection(h, func(seq outcrop.Seq) []byte { return results[seq] })
	if headErr != nil {
		t.Fatalf("%v", headErr)
	}
	var refused error
	for _, e := range events {
		if refused = i.Add(outcrop.Record{Event: e}); refused != nil {
			break
		}
		if e.Type == outcrop.TypeToolResult {
			results[e.Seq] = e.Data
		}
	}
	if outcrop.CodeOf(err) != outcrop.CodeOf(refused) || (err == nil) != (refused == nil) {
		t.Fatalf("Inspect says %v, an inspection %v", err, refused)
	}
	n := i.Len()
	if refused != nil {
		n-- // it counts as an event that changes nothing
	}
	if n != s.Len() || !slices.Equal(i.Nodes(), s.Surface().Nodes()) || i.Generation() != s.Surface().Generation() || i.NoMarkers() != s.NoMarkers() {
		t.Errorf("%d events, nodes %v, generation %d; want %d, %v, %d", n, i.Nodes(), i.Generation(), s.Len(), s.Surface().Nodes(), s.Surface().Generation())
	}
	if refused != nil {
		return
	}
	turn, step, open := outcrop.OpenTurn(s.Log())
	if gotTurn, gotStep, gotOpen := i.OpenTurn(); gotTurn != turn || gotStep != step || gotOpen != open {
		t.Errorf("open turn %d %d %v, want %d %d %v", gotTurn, gotStep, gotOpen, turn, step, open)
	}
	var a, b *outcrop.Error
	errors.As(outcrop.CheckClosers(s.Log()), &a)
	errors.As(i.CheckClosers(), &b)
	if (a == nil) != (b == nil) || a != nil && (a.Code != b.Code || a.Seq != b.Seq || a.Msg != b.Msg) {
		t.Errorf("closers: %v, want %v", b, a)
	}
}

func TestAnInspectionAgreesWithInspectOnEverySurfaceLog(t *testing.T) {
	for _, raw := range conformance.Lines(t, "surface") {
		name, _ := jsonwire.Text(jsonwire.Get(raw, "name"))
		t.Run(name, func(t *testing.T) {
			var events []outcrop.Event
			for line := range jsonwire.Elements(jsonwire.Get(raw, "events")) {
				e, err := outcrop.DecodeEvent(line)
				if err != nil {
					return
				}
				events = append(events, e)
			}
			inspectBoth(t, events)
		})
	}
}

func TestAnInspectionAgreesWithInspectOnAnyLog(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var events []outcrop.Event
		for seq := range rapid.IntRange(1, 30).Draw(rt, "events") {
			node := func(label string) int { return rapid.IntRange(0, max(seq, 1)).Draw(rt, label) }
			op := `"surfaceOp":"append"`
			if rapid.Bool().Draw(rt, "replace") {
				start, end := node("start"), node("end")
				op = fmt.Sprintf(`"surfaceOp":{"op":"replace","start":%d,"end":%d},"sourceEventSeqs":[`, start, end)
				for k := min(start, end); k <= max(start, end); k++ {
					op += fmt.Sprintf("%d,", k)
				}
				op = op[:len(op)-1] + "]"
			}
			n := rapid.IntRange(0, 3).Draw(rt, "number")
			data := ""
			switch kind := rapid.SampledFrom([]string{"turn/start", "turn/end", "step/start", "step/end", "user", "assistant", "result", "call", "bad"}).Draw(rt, "kind"); kind {
			case "user":
				data = fmt.Sprintf(`"type":"user/message","data":{"content":[],"source":{"kind":"user"},"role":"user","id":"u"},%s`, op)
			case "assistant":
				data = fmt.Sprintf(`"type":"assistant/message","data":{"turn":1,"step":%d,"message":{"role":"assistant","content":[{"type":"tool-call","id":"c%d","name":"n","arguments":"{}"}],"source":{"kind":"model","provider":"p","model":"m"},"id":"a"}},%s`, n, n, op)
			case "result":
				data = fmt.Sprintf(`"type":"tool/result","data":{"turn":1,"step":1,"message":{"source":{"kind":"tool","callId":"c%d"},"content":[{"type":"tool-result","toolCallId":"c%d","content":[],"isError":false}],"role":"user","id":"r"}},%s`, n, n, op)
			case "call":
				data = fmt.Sprintf(`"type":"tool/call","data":{"turn":1,"step":1,"callId":"c%d"}`, n)
			case "bad":
				data = fmt.Sprintf(`"type":"step/start","data":{"turn":1e999,"step":%d.5}`, n)
			default:
				data = fmt.Sprintf(`"type":%q,"data":{"turn":%d,"step":%d}`, kind, n, n)
			}
			e, err := outcrop.DecodeEvent(fmt.Appendf(nil, `{"seq":%d,"time":1,%s}`, seq, data))
			if err != nil {
				rt.Fatal(err)
			}
			events = append(events, e)
		}
		inspectBoth(rt, events)
	})
}
