package claudecode_test

import (
	"encoding/base64"
	"fmt"
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

var png = base64.StdEncoding.EncodeToString([]byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x02\x00\x00\x00\x03\x08\x02\x00\x00\x00\x00\x00\x00\x00"))

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
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			file(t, dir, session+".jsonl", c.lines...)
			in := exchangetest.Import(t, claudecode.Format(), dir)
			for k, o := range in.Sessions() {
				if k >= len(c.want) {
					t.Fatalf("one session too many: %+v", o)
				}
				if got := exchangetest.Texts(t, in.Store, o.ID); got != c.want[k] {
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
