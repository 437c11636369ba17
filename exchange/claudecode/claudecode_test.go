package claudecode_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"image"
	imagepng "image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/outcrop-dev/outcrop/exchange"
	"github.com/outcrop-dev/outcrop/exchange/claudecode"
	"github.com/outcrop-dev/outcrop/exchange/exchangetest"
)

const session = "11111111-2222-4333-8444-555555555555"

// id is the uuid of line n.
func id(n int) string { return fmt.Sprintf("00000000-0000-4000-8000-%012d", n) }

// file writes lines, in which #N stands for the uuid of line N and @N for a
// time N seconds after the start.
func file(t testing.TB, dir, name string, lines ...string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, l := range lines {
		for n := 60; n > 0; n-- {
			l = strings.ReplaceAll(l, fmt.Sprintf(`"#%d"`, n), `"`+id(n)+`"`)
			l = strings.ReplaceAll(l, fmt.Sprintf(`"@%d"`, n), fmt.Sprintf(`"2026-03-01T10:00:%02d.000Z"`, n))
		}
		b.WriteString(l + "\n")
	}
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// env are the members that every line of the conversation has.
const env = `"isSidechain":false,"userType":"external","cwd":"/home/ada/calc","sessionId":"` + session + `","version":"2.0.72","gitBranch":"main"`

func user(n, parent int, content string, more ...string) string {
	return line("user", n, parent, `"message":{"role":"user","content":`+content+`}`, more...)
}

func assistant(n, parent int, msg, content string, more ...string) string {
	return line("assistant", n, parent, `"message":{"id":"`+msg+`","type":"message","role":"assistant","model":"claude-a-1","content":[`+content+
		`],"stop_reason":null,"usage":{"input_tokens":10,"output_tokens":`+fmt.Sprint(n)+`,"cache_read_input_tokens":7,"cache_creation_input_tokens":3}}`, more...)
}

func line(kind string, n, parent int, body string, more ...string) string {
	up := "null"
	if parent > 0 {
		up = fmt.Sprintf(`"#%d"`, parent)
	}
	l := fmt.Sprintf(`{"parentUuid":%s,%s,"type":%q,%s,"uuid":"#%d","timestamp":"@%d"`, up, env, kind, body, n, n)
	for _, m := range more {
		l += "," + m
	}
	return l + "}"
}

// side makes a line one of a sidechain.
func side(l string) string {
	return strings.Replace(l, `"isSidechain":false`, `"isSidechain":true`, 1)
}

func text(s string) string { return fmt.Sprintf(`{"type":"text","text":%q}`, s) }
func think(s string) string {
	return fmt.Sprintf(`{"type":"thinking","thinking":%q,"signature":"sig-%s"}`, s, s)
}
func use(id string) string {
	return fmt.Sprintf(`{"type":"tool_use","id":%q,"name":"Bash","input":{"command":"ls %s"}}`, id, id)
}
func gives(id string) string {
	return fmt.Sprintf(`[{"tool_use_id":%q,"type":"tool_result","content":"out of %s"}]`, id, id)
}

// png is a picture of 2 by 3 pixels.
var png = func() string {
	var b bytes.Buffer
	if err := imagepng.Encode(&b, image.NewGray(image.Rect(0, 0, 2, 3))); err != nil {
		panic(err)
	}
	return base64.StdEncoding.EncodeToString(b.Bytes())
}()

func TestWhatAModelWouldReadIsTheSame(t *testing.T) {
	for _, c := range []struct {
		name  string
		lines []string
		want  []string // messages of the conversation, then of each other session
		notes []string // entries of the report
	}{
		{"a plain turn", []string{
			user(1, 0, `"2+2?"`),
			assistant(2, 1, "m1", think("easy")),
			assistant(3, 2, "m1", text("4")),
		}, []string{`user: "2+2?"
model: thinks("easy") "4"
`}, nil},
		{"two calls side by side, results written as they came", []string{
			user(1, 0, `[`+text("list")+`]`),
			assistant(2, 1, "m1", text("looking")),
			assistant(3, 2, "m1", use("t1")),
			assistant(4, 3, "m1", use("t2")),
			user(5, 4, gives("t2")),
			user(6, 3, gives("t1")),
			assistant(7, 6, "m2", text("done")),
		}, []string{`user: "list"
model: "looking" call t1 Bash({"command":"ls t1"}) call t2 Bash({"command":"ls t2"})
tool: result t2("out of t2")
tool: result t1("out of t1")
model: "done"
`}, nil},
		{"a turn that was cut off, and a slash command", []string{
			user(1, 0, `"go"`),
			assistant(2, 1, "m1", use("t1")),
			user(3, 2, `[{"type":"tool_result","tool_use_id":"t1","is_error":true,"content":[`+text("no")+`]}]`),
			user(4, 3, `[`+text("[Request interrupted by user for tool use]")+`]`),
			user(5, 4, `"<command-name>/cost</command-name>"`),
			user(6, 5, `"<local-command-stdout>1 USD</local-command-stdout>"`),
			user(7, 6, `"Caveat"`, `"isMeta":true`),
			user(8, 7, `[`+text("see")+`,{"type":"image","source":{"type":"base64","media_type":"image/png","data":"`+png+`"}}]`),
			assistant(9, 8, "m2", text("seen")),
		}, []string{`user: "go"
model: call t1 Bash({"command":"ls t1"})
tool: error t1("no")
outcrop notice: "[Request interrupted by user for tool use]"
user: "<command-name>/cost</command-name>"
outcrop notice: "<local-command-stdout>1 USD</local-command-stdout>"
outcrop notice: "Caveat"
user: "see" image(image/png, PNG bytes)
model: "seen"
`}, nil},
		{"a person went back: the way that was left is a session of its own", []string{
			user(1, 0, `"one"`),
			assistant(2, 1, "m1", text("1")),
			user(3, 2, `"two"`),
			assistant(4, 3, "m2", text("2")),
			user(5, 2, `"deux"`),
			assistant(6, 5, "m3", text("II")),
		}, []string{`user: "one"
model: "1"
user: "deux"
model: "II"
`, `user: "one"
model: "1"
user: "two"
model: "2"
`}, nil},
		{"a compaction, with its boundary", []string{
			user(1, 0, `"one"`),
			assistant(2, 1, "m1", text("1")),
			line("system", 3, 0, `"subtype":"compact_boundary","content":"Conversation compacted","level":"info","logicalParentUuid":"#2","compactMetadata":{"trigger":"auto","preTokens":150000}`),
			user(4, 3, `"SUMMARY"`, `"isCompactSummary":true`, `"isVisibleInTranscriptOnly":true`),
			user(5, 4, `"two"`),
			assistant(6, 5, "m2", text("2")),
		}, []string{`plugin compact: "SUMMARY"
user: "two"
model: "2"
`}, nil},
		{"a compaction that left messages standing", []string{
			user(1, 0, `"one"`),
			assistant(2, 1, "m1", text("1")),
			user(3, 2, `"two"`),
			assistant(4, 3, "m2", text("2")),
			line("system", 5, 0, `"subtype":"compact_boundary","logicalParentUuid":"#4","compactMetadata":{"trigger":"manual","preTokens":10,"preservedSegment":{"headUuid":"#3","anchorUuid":"#6","tailUuid":"#4"}}`),
			user(6, 5, `"SUMMARY"`, `"isCompactSummary":true`),
			user(7, 4, `"three"`),
			assistant(8, 7, "m3", text("3")),
		}, []string{`plugin compact: "SUMMARY"
user: "two"
model: "2"
user: "three"
model: "3"
`}, nil},
		{"a summary without a boundary, as older versions have it", []string{
			user(1, 0, `"one"`),
			assistant(2, 1, "m1", text("1")),
			user(3, 0, `"SUMMARY"`, `"isCompactSummary":true`),
			assistant(4, 3, "m2", text("2")),
		}, []string{`plugin compact: "SUMMARY"
model: "2"
`}, []string{"mapped 1 reply without a prompt: a turn of its own (first in line 4)"}},
		{"a sidechain in the file is a sub-agent's session", []string{
			user(1, 0, `"one"`),
			assistant(2, 1, "m1", `{"type":"tool_use","id":"t1","name":"Task","input":{"prompt":"dig"}}`),
			side(user(3, 0, `"dig"`)),
			side(assistant(4, 3, "s1", text("found"))),
			user(5, 2, gives("t1")),
			assistant(6, 5, "m2", text("1")),
		}, []string{`user: "one"
model: call t1 Task({"prompt":"dig"})
tool: result t1("out of t1")
model: "1"
`, `user: "dig"
model: "found"
`}, nil},
		{"lines that are no part of the conversation", []string{
			`{"type":"summary","summary":"Sums","leafUuid":"#2"}`,
			`{"type":"summary","summary":"Of another","leafUuid":"#50"}`,
			`{"type":"file-history-snapshot","messageId":"#1","snapshot":{},"isSnapshotUpdate":false}`,
			user(1, 0, `"2+2?"`),
			`{"type":"queue-operation","operation":"enqueue","timestamp":"@1","sessionId":"` + session + `"}`,
			line("progress", 3, 1, `"data":{"type":"hook_progress"}`),
			line("attachment", 4, 3, `"attachment":{"type":"queued_command","prompt":"and 3+3?"}`),
			line("attachment", 5, 4, `"attachment":{"type":"file","filename":"/a","content":{"type":"text","file":{"content":"AAA"}}}`),
			line("attachment", 6, 5, `"attachment":{"type":"todo","items":[1]}`),
			assistant(2, 6, "m1", text("4 and 6")),
			line("system", 7, 2, `"subtype":"turn_duration","durationMs":3`),
			`{"type":"custom-title","customTitle":"Mine","sessionId":"` + session + `"}`,
			`{"type":"a-new-kind","x":1}`,
			`no json`,
			`{"type":"user","torn`,
		}, []string{`user: "2+2?"
user: "and 3+3?"
outcrop snapshot: "File /a:\nAAA"
outcrop notice: "[claude-code todo] {\"type\":\"todo\",\"items\":[1]}"
model: "4 and 6"
`}, []string{
			"mapped 1 attachment file: a context message with its text (first in line 8)",
			"mapped 1 attachment todo: a context message with its JSON: what the model read is not in the file (first in line 9)",
			"dropped 2 record: a line that is no JSON object (first in line 14)",
			"dropped 1 record a-new-kind (first in line 13)",
			"dropped 1 record file-history-snapshot: a copy of files, kept by the program (first in line 3)",
			"dropped 1 record progress: what the program showed or counted: the model did not read it (first in line 6)",
			"dropped 1 record queue-operation: the prompt stands where it was taken from the queue (first in line 5)",
			"dropped 1 record system turn_duration: what the program showed or counted: the model did not read it (first in line 11)",
			"dropped 1 title: it is another session's (first in line 2)",
		}},
		{"parents in a circle: the first line of it follows what stands before it", []string{
			user(1, 0, `"one"`),
			assistant(2, 1, "m1", text("1")),
			user(3, 4, `"two"`),
			assistant(4, 3, "m2", text("2")),
			user(5, 4, `"three"`),
			assistant(6, 6, "m3", text("3")),
			side(user(7, 8, `"dig"`)),
			side(assistant(8, 7, "s1", text("found"))),
		}, []string{`user: "one"
model: "1"
user: "two"
model: "2"
user: "three"
model: "3"
`, `user: "dig"
model: "found"
`}, []string{
			"mapped 1 record whose parents lead back to it: it begins anew (first in line 7)",
			"mapped 2 record whose parents lead back to it: it follows the message before it (first in line 3)",
		}},
		{"a line that nests too deeply is named so", []string{
			user(1, 0, `"one"`),
			assistant(2, 1, "m1", text("1")),
			`{"type":"user","deep":` + strings.Repeat("[", 10_002) + strings.Repeat("]", 10_002) + `}`,
			`[]`,
			`{"type":"user","deep":` + strings.Repeat("[", 20_000),
		}, []string{`user: "one"
model: "1"
`}, []string{
			"dropped 1 record: a line that is no JSON object (first in line 4)",
			"dropped 2 record: a line whose values are nested more than 10000 deep (first in line 3)",
		}},
		{"what faults leave", []string{
			user(1, 0, `"one"`),
			user(1, 0, `"one"`),
			assistant(2, 1, "m1", use("t1")),
			assistant(3, 2, "m1", use("t1")),
			assistant(4, 3, "m1", use("")),
			user(5, 4, gives("lost")),
			user(6, 40, `"a parent that is not there"`),
			assistant(7, 6, "m2", text("API Error: 500"), `"isApiErrorMessage":true`),
			user(8, 7, `"again"`),
			assistant(9, 8, "m3", `{"type":"server_tool_use","id":"x","name":"web_search","input":{}},`+text("ok")),
			line("system", 10, 9, `"subtype":"compact_boundary"`),
		}, []string{`user: "one"
model: call t1 Bash({"command":"ls t1"}) call call-5-1 Bash({"command":"ls "})
tool: error t1("No result of this tool call was recorded in the history that this session was imported from. It may have finished, partly finished, or not happened at all. Check before you repeat it.")
tool: error call-5-1("No result of this tool call was recorded in the history that this session was imported from. It may have finished, partly finished, or not happened at all. Check before you repeat it.")
outcrop notice: "The result of tool call \"lost\", which came too late or has no call in this history:" "out of lost"
user: "a parent that is not there"
user: "again"
model: {"type":"server_tool_use","id":"x","name":"web_search","input":{}} "ok"
`}, []string{
			"mapped 1 call with an empty or repeated id or name: one of its own (first in line 5)",
			"mapped 2 call without a result: an error result that says so (first in line 8)",
			"mapped 1 failure of a call to the model: the reason for which its turn ended (first in line 8)",
			"mapped 1 record whose parent is not there: it follows the message before it (first in line 7)",
			"mapped 1 result without a call: a context message with its text (first in line 6)",
			"dropped 1 block of a reply: it was written before, under the same message id (first in line 4)",
			"dropped 1 compaction: its summary did not come (first in line 11)",
			"dropped 1 record user: it was written before, under the same uuid (first in line 2)",
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			file(t, dir, session+".jsonl", c.lines...)
			in := exchangetest.Import(t, claudecode.Format(), dir)
			for k, o := range in.Sessions() {
				if k >= len(c.want) {
					t.Fatalf("one session too many: %+v", o)
				}
				if got := exchangetest.Texts(t, in.Store, o.ID); got != strings.ReplaceAll(c.want[k], "PNG bytes", fmt.Sprint(base64.StdEncoding.DecodedLen(len(png))-strings.Count(png, "="), " bytes")) {
					t.Errorf("session %d, %s:\n%s\nwant\n%s\n%s", k, o.Source, got, c.want[k], exchangetest.Dump(t, in.Store, o.ID))
				}
			}
			if n := len(in.Sessions()); n != len(c.want) {
				t.Errorf("%d sessions, want %d", n, len(c.want))
			}
			var notes []string
			for _, e := range in.Reports[0].Sorted() {
				if e.Fate != exchange.Kept {
					notes = append(notes, e.String())
				}
			}
			if strings.Join(notes, "\n") != strings.Join(c.notes, "\n") {
				t.Errorf("report:\n%s\nwant\n%s", strings.Join(notes, "\n"), strings.Join(c.notes, "\n"))
			}
		})
	}
}
