package script

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	outcrop "github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/message"
)

func TestParseReadsEveryMember(t *testing.T) {
	n := func(v int64) *int64 { return &v }
	tests := []struct {
		name string
		line string
		want Reply
	}{
		{"an empty reply", `{}`, Reply{}},
		{"reasoning, text and tools", `{"reasoning":"r","text":"t","tools":[{"name":"read","args":{ "path" : "a" }},{"id":"x","name":"b","raw":"{\"pa"},{"name":"c"}]}`,
			Reply{Reasoning: "r", Text: "t", Tools: []Call{{"", "read", `{"path":"a"}`}, {"x", "b", `{"pa`}, {"", "c", "{}"}}}},
		{"blocks in any order", `{"blocks":[{"type":"tool-call","name":"a","arguments":"{"},{"type":"reasoning","text":"r"},{"type":"image","attachment":{"attachmentId":"x"}}]}`,
			Reply{Blocks: []message.Block{message.ToolCall("", "a", "{"), message.Reasoning("r"), {Type: message.ImageBlock, Attachment: []byte(`{"attachmentId":"x"}`)}}}},
		{"chunks", `{"chunks":[{"type":"text-delta","index":1,"text":"\ud83d"},{"type":"finish","reason":{"kind":"stop"},"replayState":{}}]}`,
			Reply{Chunks: []message.Chunk{{Type: message.TextDelta, Index: 1, Text: "\xed\xa0\xbd"}, {Type: message.FinishChunk, Reason: &message.Finish{Kind: message.Stop}, ReplayState: []byte(`{}`)}}}},
		{"no chunks at all", `{"chunks":[]}`, Reply{Chunks: []message.Chunk{}}},
		{"finish", `{"finish":"max-tokens"}`, Reply{Finish: message.MaxTokens}},
		{"usage", `{"usage":{"input":1,"cacheRead":0,"cacheWrite":3,"output":4,"reasoning":5}}`,
			Reply{Usage: &message.Usage{InputTokens: 1, OutputTokens: 4, CacheReadTokens: n(0), CacheWriteTokens: n(3), ReasoningTokens: n(5)}}},
		{"error", `{"error":{"code":"RATE_LIMIT","message":"slow","status":429,"retryAfterMs":50},"after":3}`,
			Reply{Error: &message.Failure{Code: "RATE_LIMIT", Message: "slow", Status: 429, RetryAfterMs: 50}, After: 3}},
		{"cut and delay", `{"text":"t","cut":"hang","after":1,"delayMs":1500}`, Reply{Text: "t", Cut: CutHang, After: 1, Delay: 1500 * time.Millisecond}},
		{"when", `{"when":{"purpose":"compaction","turn":2,"step":1,"attempt":3,"contains":"x"}}`,
			Reply{When: When{llm.Compaction, 2, 1, 3, "x"}}},
		{"expect", `{"expect":{"contains":"a","absent":"b","tools":["read"],"messages":7}}`, Reply{Expect: Expect{"a", "b", []string{"read"}, 7}}},
		{"expect no tools", `{"expect":{"tools":[]}}`, Reply{Expect: Expect{Tools: []string{}}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, err := Parse("demo.jsonl", []byte(tt.line))
			if err != nil {
				t.Fatal(err)
			}
			tt.want.Line = 1
			if d := cmp.Diff([]Reply{tt.want}, s.Replies); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestParseHeaderAndLines(t *testing.T) {
	s, err := Parse("dir/demo.jsonl", []byte("\n# comment\r\n  \n{\"text\":\"a\"}\r\n\n{\"text\":\"b\"}"))
	if err != nil {
		t.Fatal(err)
	}
	want := Header{Model: "demo.jsonl", Window: 32000, MaxOutput: 4096, Piece: 12, End: EndError}
	if s.Header != want {
		t.Errorf("header %+v, want %+v", s.Header, want)
	}
	if len(s.Replies) != 2 || s.Replies[0].Line != 4 || s.Replies[1].Line != 6 {
		t.Errorf("replies %+v, want lines 4 and 6", s.Replies)
	}
	s, err = Parse("x", []byte(`{"script":1,"model":"hello","window":0,"maxOutput":9,"piece":3,"delayMs":20,"end":"last"}`+"\n{}\n"+`{"delayMs":0}`))
	if err != nil {
		t.Fatal(err)
	}
	want = Header{Model: "hello", MaxOutput: 9, Piece: 3, Delay: 20 * time.Millisecond, End: EndLast}
	if s.Header != want || s.Replies[0].Delay != want.Delay || s.Replies[1].Delay != 0 {
		t.Errorf("header %+v, delays %v %v", s.Header, s.Replies[0].Delay, s.Replies[1].Delay)
	}
}

func TestParseRefuses(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"a line that is not JSON", "{", "not JSON"},
		{"two values on a line", "{} {}", "trailing bytes"},
		{"a line that is no object", "[]", "must be a JSON object"},
		{"a comment that is set in", "  # x", "not JSON"},
		{"a byte order mark", "\ufeff{}", "not JSON"},
		{"invalid UTF-8", "{\"text\":\"\xff\"}", "invalid UTF-8"},
		{"a repeated member", `{"text":"a","text":"b"}`, `duplicate name "text"`},
		{"an unknown member", `{"txt":"a"}`, `unknown member "txt"`},
		{"a header of another version", `{"script":2}`, "script is version 2; this program reads version 1"},
		{"an unknown member of the header", `{"script":1,"windw":1}`, `unknown member "windw"`},
		{"a header without its version", `{"model":"x"}`, `unknown member "model"`},
		{"an empty model", `{"script":1,"model":""}`, "model must not be empty"},
		{"a piece of nothing", `{"script":1,"piece":0}`, "piece must be a whole number from 1"},
		{"a negative window", `{"script":1,"window":-1}`, "window must be a whole number from 0"},
		{"an unknown end", `{"script":1,"end":"loop"}`, "end must be error, last or stop"},
		{"a text of another kind", `{"text":1}`, "text must be a string"},
		{"tools that are no array", `{"tools":{}}`, "tools must be an array"},
		{"a tool that is no object", `{"tools":["read"]}`, "tools[0] must be an object"},
		{"a tool without a name", `{"tools":[{"args":{}}]}`, "tools[0].name is missing"},
		{"a tool with args and raw", `{"tools":[{"name":"a","args":{},"raw":""}]}`, "tools[0] has args and raw"},
		{"args that are no object", `{"tools":[{"name":"a","args":"{}"}]}`, "tools[0].args must be an object"},
		{"an unknown member of a tool", `{"tools":[{"name":"a","arguments":{}}]}`, `unknown member "tools[0].arguments"`},
		{"a finish that does not exist", `{"finish":"length"}`, "finish must be stop, tool-calls or max-tokens"},
		{"a fraction of a token", `{"usage":{"input":1.5}}`, "usage.input must be a whole number"},
		{"an error without a code", `{"error":{"message":"m"}}`, "error.code is missing"},
		{"an odd status", `{"error":{"code":"A","status":42}}`, "error.status must be a whole number from 100 to 599"},
		{"an unknown cut", `{"cut":"off"}`, "cut must be eof, reset or hang"},
		{"error and cut", `{"error":{"code":"A"},"cut":"eof"}`, "error and cut exclude each other"},
		{"after alone", `{"text":"a","after":2}`, "after needs error or cut"},
		{"blocks and text", `{"blocks":[],"text":""}`, "blocks and text exclude each other"},
		{"chunks and usage", `{"chunks":[],"usage":{}}`, "chunks and usage exclude each other"},
		{"a block that a reply cannot have", `{"blocks":[{"type":"tool-result"}]}`, "blocks[0].type must be text, reasoning, tool-call or image"},
		{"a text block without text", `{"blocks":[{"type":"text"}]}`, "blocks[0].text is missing"},
		{"a call block with a text", `{"blocks":[{"type":"tool-call","text":""}]}`, `unknown member "blocks[0].text"`},
		{"a chunk of no type", `{"chunks":[{"type":"x"}]}`, `chunks[0].type "x" is no chunk type`},
		{"a chunk without its index", `{"chunks":[{"type":"text-delta","text":""}]}`, "chunks[0].index is missing"},
		{"a chunk with a member too many", `{"chunks":[{"type":"usage","usage":{},"index":0}]}`, `unknown member "chunks[0].index"`},
		{"a purpose that does not exist", `{"when":{"purpose":"test"}}`, "when.purpose must be turn, compaction or title"},
		{"turn 0", `{"when":{"turn":0}}`, "when.turn must be a whole number from 1"},
		{"an expectation of another kind", `{"expect":{"tools":[1]}}`, "expect.tools[0] must be a string"},
		{"a delay of days", `{"delayMs":99999999999}`, "delayMs must be a whole number from 0"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Parse("dir/demo.jsonl", []byte("{}\n\n"+tt.text))
			if strings.Contains(tt.text, `"script"`) {
				_, err = Parse("dir/demo.jsonl", []byte("\n\n"+tt.text))
			}
			var e *outcrop.Error
			if !errors.As(err, &e) || !errors.Is(err, ErrInvalid) {
				t.Fatalf("Parse returned %v", err)
			}
			if e.Path != "dir/demo.jsonl" || e.Line != 3 || !strings.Contains(e.Msg, tt.want) {
				t.Errorf("%q in line %d of %s, want %q in line 3", e.Msg, e.Line, e.Path, tt.want)
			}
		})
	}
	if _, err := Parse("x", []byte("{}\n{\"script\":1}")); err == nil || !strings.Contains(err.Error(), "header in the middle") {
		t.Errorf("a header on the second line: %v", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("{\"script\":1,\"model\":\"hello\",\"piece\":2}\n# turn 1\n{\"reasoning\":\"r\",\"text\":\"t\",\"tools\":[{\"name\":\"read\",\"args\":{\"a\":1}}]}\n"))
	f.Add([]byte(`{"when":{"turn":2,"step":1},"error":{"code":"SERVER","message":"m","status":503},"after":1,"text":"abc"}`))
	f.Add([]byte(`{"chunks":[{"type":"block-end","index":0,"block":{"type":"text","text":"\ud83d"}},{"type":"finish","reason":{"kind":"error"}}]}`))
	f.Add([]byte(`{"blocks":[{"type":"tool-call","name":"","arguments":"\udc00x"}],"expect":{"tools":[],"absent":"x"}}`))
	for _, path := range []string{"testdata/hello.jsonl"} {
		if b, err := os.ReadFile(filepath.FromSlash(path)); err == nil {
			f.Add(b)
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := Parse("f.jsonl", text)
		if err != nil {
			if !errors.Is(err, ErrInvalid) {
				t.Fatalf("%v is no ErrInvalid", err)
			}
			return
		}
		m := &Model{Script: s, Sleep: noSleep}
		for i := range s.Replies {
			r := &s.Replies[i]
			if r.Cut == CutHang {
				return
			}
			req := request(max(r.When.Turn, 1), max(r.When.Step, 1), "x")
			req.Purpose, req.Attempt = r.When.Purpose, max(r.When.Attempt, 1)
			for c, err := range m.Stream(t.Context(), req) {
				if err == nil {
					if _, err := message.ParseChunk(c.AppendJSON(nil)); err != nil {
						t.Fatalf("chunk %s: %v", c.AppendJSON(nil), err)
					}
				}
			}
		}
	})
}
