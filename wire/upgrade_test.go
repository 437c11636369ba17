package wire_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/wire"
)

// view is an event as a reader sees it: type and data.
func view(e outcrop.Event) string { return string(e.Type) + " " + string(e.Data) }

func TestEachOldShapeIsReadAsTheCurrentOne(t *testing.T) {
	for _, c := range []struct{ name, typ, data, op, want string }{
		{"turn/start with a trigger", "turn/start", `{"turn":1,"trigger":{"kind":"message","source":{}}}`, "", `turn/start {"turn":1}`},
		{"turn/start as it is now", "turn/start", `{"turn":1,"x":2}`, "", `turn/start {"turn":1,"x":2}`},
		{"turn/end aborted", "turn/end", `{"turn":1,"reason":{"kind":"aborted"}}`, "", `turn/end {"turn":1,"reason":{"kind":"aborted","reason":{"kind":"legacy"}}}`},
		{"turn/end disposed", "turn/end", `{"turn":1,"reason":{"kind":"disposed"}}`, "", `turn/end {"turn":1,"reason":{"kind":"aborted","reason":{"kind":"disposed"}}}`},
		{"turn/end with a failure", "turn/end", `{"turn":1,"reason":{"kind":"error","step":2,"failure":{"message":"m","code":"C","status":500}}}`, "", `turn/end {"turn":1,"reason":{"kind":"error","error":{"message":"m","code":"C","status":500}}}`},
		{"turn/end with a message", "turn/end", `{"turn":1,"reason":{"kind":"error","step":0,"message":"x"}}`, "", `turn/end {"turn":1,"reason":{"kind":"error","error":{"message":"x","code":"UNKNOWN"}}}`},
		{"turn/end with message and code", "turn/end", `{"turn":1,"reason":{"code":"E","message":"x","step":0,"kind":"error"}}`, "", `turn/end {"turn":1,"reason":{"kind":"error","error":{"message":"x","code":"E"}}}`},
		{"turn/end of a kind to come", "turn/end", `{"turn":1,"reason":{"kind":"future","x":1}}`, "", `turn/end {"turn":1,"reason":{"kind":"future","x":1}}`},
		{"steering with a message", "steering/message", `{"turn":1,"message":{"id":"sm","role":"user","content":[],"source":{"kind":"user"}}}`, `"append"`, `user/message {"id":"sm","role":"user","content":[],"source":{"kind":"user"}}`},
		{"steering with content", "steering/message", `{"turn":1,"content":[],"source":{"kind":"user"}}`, `"append"`, `user/message {"content":[],"source":{"kind":"user"},"id":"legacy-message:s1:0","role":"user"}`},
		{"user/message without id", "user/message", `{"content":[],"source":{"kind":"user"}}`, `"append"`, `user/message {"content":[],"source":{"kind":"user"},"id":"legacy-message:s1:0","role":"user"}`},
		{"user/message with a role only", "user/message", `{"content":[],"source":{},"role":"user"}`, `"append"`, `user/message {"content":[],"source":{},"role":"user"}`},
		{"assistant/message flat", "assistant/message", `{"turn":1,"step":1,"content":[{"type":"text","text":"\ud83d"}],"provenance":{"provider":"acme","model":"tiny"},"usage":{}}`, `"append"`,
			`assistant/message {"turn":1,"step":1,"usage":{},"message":{"id":"legacy-message:s1:0","role":"assistant","content":[{"type":"text","text":"\ud83d"}],"source":{"provider":"acme","model":"tiny","kind":"model"}}}`},
		{"tool/result flat", "tool/result", `{"turn":1,"step":1,"callId":"k","content":[],"isError":false}`, `"append"`,
			`tool/result {"turn":1,"step":1,"message":{"id":"legacy-message:s1:0","role":"user","content":[{"type":"tool-result","toolCallId":"k","content":[],"isError":false}],"source":{"kind":"tool","callId":"k"}}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			line := fmt.Sprintf(`{"type":%q,"seq":0,"time":1,"data":%s}`, c.typ, c.data)
			if c.op != "" {
				line = strings.TrimSuffix(line, "}") + `,"surfaceOp":` + c.op + "}"
			}
			got := readAll(plainLog(line), wire.Plain)
			if !got.OK || got.Events != 1 {
				t.Fatalf("got %v", got)
			}
			e := got.recs[0].Event
			if view(e) != c.want {
				t.Errorf("got  %s\nwant %s", view(e), c.want)
			}
			if string(e.Line()) != line {
				t.Errorf("the line became %s", e.Line())
			}
			if c.op != "" && !e.Op.IsAppend() {
				t.Error("the op is lost")
			}
		})
	}
}

// Compactions under their old names, one without an id and one with.
func TestOldCompactionsAreReadAsCurrentOnes(t *testing.T) {
	log := func(i int, typ, data string) string {
		return fmt.Sprintf(`{"type":%q,"seq":%d,"time":1,"data":%s}`, typ, i, data)
	}
	checkpoint := `{"content":[],"source":{"kind":"plugin","plugin":"compact"},"role":"user","id":"u"}`
	lines := []string{
		log(0, "compact/start", `{"turn":1}`), log(1, "compact/summary", `{"summary":[]}`),
		strings.TrimSuffix(log(2, "user/message", checkpoint), "}") + `,"surfaceOp":"append"}`,
		log(3, "compact/end", `{"turn":1}`), log(4, "compact/prune", `{"shadowedSeqs":[2]}`),
		strings.TrimSuffix(log(5, "user/message", checkpoint), "}") + `,"surfaceOp":"append"}`,
		log(6, "compact/start", `{"turn":1,"compactionId":"k"}`), log(7, "compact/end", `{"turn":1,"compactionId":"k"}`),
		log(8, "compact/start", `{"turn":1}`), log(9, "session/end-seed", `{}`), log(10, "compact/end", `{"turn":1}`),
	}
	want := []string{
		`compaction/start {"turn":1,"compactionId":"legacy-compaction:s1:0"}`,
		`compaction/summary {"summary":[],"compactionId":"legacy-compaction:s1:0"}`,
		`user/message {"content":[],"source":{"kind":"plugin","plugin":"compact","compactionId":"legacy-compaction:s1:0"},"role":"user","id":"u"}`,
		`compaction/end {"turn":1,"compactionId":"legacy-compaction:s1:0"}`,
		`compaction/prune {"shadowedSeqs":[2]}`, `user/message ` + checkpoint,
		`compaction/start {"turn":1,"compactionId":"k"}`, `compaction/end {"turn":1,"compactionId":"k"}`,
		`compaction/start {"turn":1,"compactionId":"legacy-compaction:s1:8"}`, `session/end-seed {}`, `compaction/end {"turn":1}`,
	}
	got := readAll(plainLog(lines...), wire.Plain)
	if !got.OK || len(got.recs) != len(want) {
		t.Fatalf("got %v", got)
	}
	for i, r := range got.recs {
		if view(r.Event) != want[i] || string(r.Line()) != lines[i] {
			t.Errorf("%d: got %s, want %s", i, view(r.Event), want[i])
		}
	}
}

func TestHalfAnOldShapeIsRefusedAndPassedBy(t *testing.T) {
	for _, c := range []struct{ typ, data, code string }{
		{"turn/start", `{"turn":1,"trigger":{}}`, "LEGACY_TURN_START"},
		{"turn/start", `{"turn":0,"trigger":{"kind":"x"}}`, "LEGACY_TURN_START"},
		{"turn/start", `{"turn":1,"trigger":{"kind":"x"},"y":1}`, "LEGACY_TURN_START"},
		{"turn/end", `{"turn":0,"reason":{"kind":"completed"}}`, "LEGACY_TURN_END"},
		{"turn/end", `{"turn":1}`, "LEGACY_TURN_END"},
		{"turn/end", `{"turn":1,"reason":"completed"}`, "LEGACY_TURN_END"},
		{"turn/end", `{"turn":1,"reason":{"kind":"completed","note":1}}`, "LEGACY_TURN_END"},
		{"turn/end", `{"turn":1,"reason":{"kind":"aborted","x":1}}`, "LEGACY_TURN_END"},
		{"turn/end", `{"turn":1,"reason":{"kind":"error"}}`, "LEGACY_TURN_END"},
		{"turn/end", `{"turn":1,"reason":{"kind":"error","step":-1,"message":"x"}}`, "LEGACY_TURN_END"},
		{"turn/end", `{"turn":1,"reason":{"kind":"error","error":{},"step":1}}`, "LEGACY_TURN_END"},
		{"turn/end", `{"turn":1,"reason":{"kind":"error","step":1,"failure":{"message":"x"}}}`, "LEGACY_TURN_END"},
		{"turn/end", `5`, "LEGACY_TURN_END"},
		{"steering/message", `{"turn":1}`, "LEGACY_STEERING"},
		{"steering/message", `null`, "LEGACY_STEERING"},
	} {
		file := plainLog(fmt.Sprintf(`{"type":%q,"seq":0,"time":1,"data":%s}`, c.typ, c.data), turnStart(1, 1))
		r := open(t, file, wire.Plain)
		var code outcrop.Code
		var seqs []outcrop.Seq
		for rec, err := range r.Records() {
			if err != nil {
				code = outcrop.CodeOf(err)
			}
			seqs = append(seqs, rec.Seq)
		}
		if string(code) != c.code || fmt.Sprint(seqs) != "[0 1]" {
			t.Errorf("%s %s: %s, events %v", c.typ, c.data, code, seqs)
		}
	}
}

func TestAReplacingOldToolResultTakesTheIDOfTheReplacedOne(t *testing.T) {
	old := func(seq int, op string) string {
		return fmt.Sprintf(`{"type":"tool/result","seq":%d,"time":1,"data":{"callId":"k","content":[],"isError":false},"surfaceOp":%s,"sourceEventSeqs":[0]}`, seq, op)
	}
	current := func(seq int, id string) string {
		return fmt.Sprintf(`{"type":"tool/result","seq":%d,"time":1,"data":{"message":{"id":%q}},"surfaceOp":"append"}`, seq, id)
	}
	got := readAll(plainLog(
		current(0, "r-0"),
		old(1, `"append"`),
		old(2, `{"op":"replace","start":1,"end":1}`),
		old(3, `{"op":"replace","start":2,"end":2}`),
		old(4, `{"op":"replace","start":0,"end":0}`),
		current(5, "r-5"),
		old(6, `{"op":"replace","start":5,"end":5}`),
		old(7, `{"op":"replace","start":99,"end":99}`),
	), wire.Plain)
	if got.Events != 8 {
		t.Fatalf("got %v", got)
	}
	for seq, id := range map[int]string{
		1: "legacy-message:s1:1", 2: "legacy-message:s1:1", 3: "legacy-message:s1:1", 4: "r-0", 6: "r-5", 7: "legacy-message:s1:7",
	} {
		if data := string(got.recs[seq].Data); !strings.Contains(data, `"id":"`+id+`"`) {
			t.Errorf("event %d has not the id %s: %s", seq, id, data)
		}
	}
}
