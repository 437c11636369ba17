package message

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestAMessageIsWrittenBackAsItCame(t *testing.T) {
	for _, text := range []string{
		`{"content":[{"type":"text","text":"a\ud83d","extra":{"b":1.0}}],"source":{"kind":"plugin","plugin":"x","sections":[{"name":"n"}],"more":1},"role":"user","id":"m"}`,
		`{"role":"assistant","content":[{"type":"reasoning","text":"hm"},{"type":"tool-call","id":"c","name":"ls","arguments":"{}"},{"type":"video","url":"x"}],"source":{"kind":"model","provider":"p","model":"m","replayState":{"response":[]}},"id":"a"}`,
	} {
		m, err := Parse([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if got := string(m.AppendJSON(nil)); got != text {
			t.Errorf("%s\nis written as\n%s", text, got)
		}
		var again Message
		if err := json.Unmarshal([]byte(text), &again); err != nil || again.ID != m.ID {
			t.Errorf("%v", err)
		}
	}
}

func TestMembersOfTheWrongTypeAreLeftEmpty(t *testing.T) {
	m, err := Parse([]byte(`{"id":1,"role":null,"content":{"a":1},"source":"x"}`))
	if err != nil || m.ID != "" || len(m.Content) != 0 || m.Source.Kind != "" {
		t.Errorf("%+v, %v", m, err)
	}
	if _, err := Parse([]byte(`{"id":`)); err == nil {
		t.Error("half a message was accepted")
	}
}

func TestChunksSurviveARoundTrip(t *testing.T) {
	for _, text := range []string{
		`{"type":"block-start","index":1,"blockType":"tool-call"}`,
		`{"type":"text-delta","index":0,"text":"\udc00"}`,
		`{"type":"tool-call-delta","index":2,"id":"c","name":"ls","argumentsDelta":"{"}`,
		`{"type":"tool-call-delta","index":2,"id":"c","argumentsDelta":""}`,
		`{"type":"block-end","index":0,"block":{"type":"text","text":"x","odd":[1]}}`,
		`{"type":"usage","usage":{"inputTokens":1,"outputTokens":2,"cacheReadTokens":0,"reasoningTokens":1}}`,
		`{"type":"finish","reason":{"kind":"error","failure":{"message":"m","code":"AUTH","status":401}},"replayState":{"response":1}}`,
	} {
		c, err := ParseChunk([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if got := string(c.AppendJSON(nil)); got != text {
			t.Errorf("%s is written as %s", text, got)
		}
	}
}

func chunks(t *testing.T, lines string) *Assembler {
	t.Helper()
	var a Assembler
	for _, l := range strings.Split(strings.TrimSpace(lines), "\n") {
		c, err := ParseChunk([]byte(strings.TrimSpace(l)))
		if err != nil {
			t.Fatal(err)
		}
		a.Add(c)
	}
	return &a
}

func TestTheAssemblerFollowsTheRulesOfTheFormat(t *testing.T) {
	for name, c := range map[string]struct{ chunks, blocks, visible, replay string }{
		"blocks stand in the order in which their index was first seen": {
			`{"type":"text-delta","index":1,"text":"b"}
			 {"type":"reasoning-delta","index":0,"text":"a"}
			 {"type":"text-delta","index":1,"text":"c"}`,
			`[{"type":"text","text":"bc"},{"type":"reasoning","text":"a"}]`, `[{"type":"text","text":"bc"},{"type":"reasoning","text":"a"}]`, ``,
		},
		"block-end counts, deltas and ends behind it do not": {
			`{"type":"block-start","index":0,"blockType":"text"}
			 {"type":"text-delta","index":0,"text":"x"}
			 {"type":"block-end","index":0,"block":{"type":"text","text":"whole"}}
			 {"type":"text-delta","index":0,"text":"late"}
			 {"type":"block-end","index":0,"block":{"type":"text","text":"second"}}`,
			`[{"type":"text","text":"whole"}]`, `[{"type":"text","text":"whole"}]`, ``,
		},
		"a call without an id gets one from its index": {
			`{"type":"tool-call-delta","index":3,"argumentsDelta":"{"}
			 {"type":"tool-call-delta","index":3,"argumentsDelta":"}"}`,
			`[{"type":"tool-call","id":"call-3","name":"","arguments":"{}"}]`, `[]`, ``,
		},
		"after max-tokens calls are dropped, with their replay states": {
			`{"type":"text-delta","index":0,"text":"x"}
			 {"type":"tool-call-delta","index":1,"id":"c","argumentsDelta":"{"}
			 {"type":"finish","reason":{"kind":"max-tokens"},"replayState":{"response":7,"blocks":["a","b"]}}`,
			`[{"type":"text","text":"x"}]`, `[{"type":"text","text":"x"}]`, `{"response":7,"blocks":["a"]}`,
		},
		"a replay state that does not fit is dropped": {
			`{"type":"text-delta","index":0,"text":" \n"}
			 {"type":"finish","reason":{"kind":"stop"},"replayState":{"blocks":["a","b"]}}`,
			`[{"type":"text","text":" \n"}]`, `[]`, ``,
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := chunks(t, c.chunks)
			if got := string(AppendBlocks(nil, a.Blocks())); got != c.blocks {
				t.Errorf("blocks %s, want %s", got, c.blocks)
			}
			if got := string(AppendBlocks(nil, a.Visible())); got != c.visible {
				t.Errorf("visible %s, want %s", got, c.visible)
			}
			if got := string(a.ReplayState()); got != c.replay {
				t.Errorf("replay state %s, want %s", got, c.replay)
			}
		})
	}
	var empty Assembler
	if empty.Finish().Kind != Stop || len(empty.Blocks()) != 0 || empty.Usage() != nil {
		t.Error("a stream without a chunk is not an empty stop")
	}
}
