package opencode_test

import (
	"context"
	"database/sql"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	_ "modernc.org/sqlite" // the driver called sqlite
	"pgregory.net/rapid"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/exchange"
	"github.com/outcrop-dev/outcrop/exchange/exchangetest"
	"github.com/outcrop-dev/outcrop/exchange/opencode"
	"github.com/outcrop-dev/outcrop/store/memory"
)

// object is a JSON object that a test writes.
type object = map[string]any

// told is one message with its parts.
type told struct {
	id    string
	info  object
	parts []object
}

// story is one session.
type story struct {
	id       string
	info     object
	messages []told
}

func tb(t exchangetest.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%v", err)
	}
}

func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

// with is an object with more members.
func with(o object, more ...any) object {
	out := object{}
	for k, v := range o {
		out[k] = v
	}
	for i := 0; i < len(more); i += 2 {
		out[more[i].(string)] = more[i+1]
	}
	return out
}

func write(t exchangetest.TB, path string, b []byte) {
	t.Helper()
	tb(t, os.MkdirAll(filepath.Dir(path), 0o700))
	tb(t, os.WriteFile(path, b, 0o600))
}

func partID(m told, i int) string { return fmt.Sprintf("prt_%s_%03d", m.id, i) }

// form writes stories below a folder and says which path to import.
type form struct {
	name  string
	write func(t exchangetest.TB, dir string, all ...story) string
}

var forms = []form{
	{"storage", func(t exchangetest.TB, dir string, all ...story) string {
		root := filepath.Join(dir, "storage")
		for _, s := range all {
			write(t, filepath.Join(root, "session", "project1", s.id+".json"), encode(with(s.info, "id", s.id, "projectID", "project1")))
			for _, m := range s.messages {
				write(t, filepath.Join(root, "message", s.id, m.id+".json"), encode(with(m.info, "id", m.id, "sessionID", s.id)))
				for i, p := range m.parts {
					id := partID(m, i)
					write(t, filepath.Join(root, "part", m.id, id+".json"), encode(with(p, "id", id, "messageID", m.id, "sessionID", s.id)))
				}
			}
		}
		return dir
	}},
	{"first", func(t exchangetest.TB, dir string, all ...story) string {
		root := filepath.Join(dir, "project", "home-dev-x", "storage", "session")
		for _, s := range all {
			write(t, filepath.Join(root, "info", s.id+".json"), encode(with(s.info, "id", s.id)))
			for _, m := range s.messages {
				write(t, filepath.Join(root, "message", s.id, m.id+".json"), encode(with(m.info, "id", m.id, "sessionID", s.id)))
				for i, p := range m.parts {
					id := partID(m, i)
					write(t, filepath.Join(root, "part", s.id, m.id, id+".json"), encode(with(p, "id", id, "messageID", m.id, "sessionID", s.id)))
				}
			}
		}
		return dir
	}},
	{"database", func(t exchangetest.TB, dir string, all ...story) string {
		path := filepath.Join(dir, "opencode.db")
		db, err := sql.Open("sqlite", path+"?_pragma=journal_mode(wal)&_pragma=synchronous(off)")
		tb(t, err)
		db.SetMaxOpenConns(1)
		exec := func(q string, args ...any) {
			_, err := db.Exec(q, args...)
			tb(t, err)
		}
		exec(`CREATE TABLE IF NOT EXISTS session (id text PRIMARY KEY, project_id text NOT NULL, parent_id text, slug text NOT NULL, directory text NOT NULL, title text NOT NULL,
			version text NOT NULL, revert text, time_created integer NOT NULL, time_updated integer NOT NULL)`)
		exec(`CREATE TABLE IF NOT EXISTS message (id text PRIMARY KEY, session_id text NOT NULL, time_created integer NOT NULL, time_updated integer NOT NULL, data text NOT NULL)`)
		exec(`CREATE TABLE IF NOT EXISTS part (id text PRIMARY KEY, message_id text NOT NULL, session_id text NOT NULL, time_created integer NOT NULL, time_updated integer NOT NULL, data text NOT NULL)`)
		if len(all) > 1 {
			// With the indexes that opencode makes; else without.
			exec("CREATE INDEX IF NOT EXISTS message_session_time_created_id_idx ON message (session_id, time_created, id)")
			exec("CREATE INDEX IF NOT EXISTS part_message_id_id_idx ON part (message_id, id)")
		}
		for _, s := range all {
			str := func(name string) string { v, _ := s.info[name].(string); return v }
			var parent, revert any
			if p := str("parentID"); p != "" {
				parent = p
			}
			if r, ok := s.info["revert"]; ok {
				revert = string(encode(r))
			}
			at, updated := s.info["time"].(object)["created"], s.info["time"].(object)["updated"]
			exec("INSERT OR REPLACE INTO session VALUES (?, 'project1', ?, '', ?, ?, ?, ?, ?, ?)", s.id, parent, str("directory"), str("title"), str("version"), revert, at, updated)
			for _, m := range s.messages {
				at := any(0)
				if tm, ok := m.info["time"].(object); ok {
					at = tm["created"]
				}
				exec("INSERT OR REPLACE INTO message VALUES (?, ?, ?, ?, ?)", m.id, s.id, at, at, string(encode(m.info)))
				for i, p := range m.parts {
					exec("INSERT OR REPLACE INTO part VALUES (?, ?, ?, 0, 0, ?)", partID(m, i), m.id, s.id, string(encode(p)))
				}
			}
		}
		tb(t, db.Close())
		return path
	}},
	{"export", func(t exchangetest.TB, dir string, all ...story) string {
		for _, s := range all {
			messages := []object{}
			for _, m := range s.messages {
				messages = append(messages, object{"info": with(m.info, "id", m.id, "sessionID", s.id), "parts": append([]object{}, m.parts...)})
			}
			// encoding/json sorts: id would not come first in a large info.
			info := append([]byte(`{"id":`), encode(s.id)...)
			info = append(append(info, ','), encode(s.info)[1:]...)
			write(t, filepath.Join(dir, s.id+".json"), fmt.Appendf(nil, `{"info":%s,"messages":%s}`, info, encode(messages)))
		}
		return dir
	}},
}

const start = 1_755_000_000_000

func session(id string, more ...any) story {
	return story{id: id, info: with(object{"version": "1.2.3", "directory": "/home/dev/x", "title": "Fix the parser",
		"time": object{"created": start, "updated": start + 9000}}, more...)}
}

func at(n int) object { return object{"created": start + n} }

func user(n int, parts ...object) told {
	return told{fmt.Sprintf("msg_%03d", n), object{"role": "user", "time": at(n), "agent": "build", "model": object{"providerID": "anthropic", "modelID": "claude"}}, parts}
}

func reply(n int, more []any, parts ...object) told {
	return told{fmt.Sprintf("msg_%03d", n), with(object{"role": "assistant", "time": object{"created": start + n, "completed": start + n + 5}, "parentID": "msg_000", "providerID": "anthropic", "modelID": "claude",
		"mode": "build", "path": object{"cwd": "/home/dev/x", "root": "/home/dev"}, "cost": 0.1, "finish": "stop",
		"tokens": object{"input": 10, "output": 5, "reasoning": 2, "cache": object{"read": 7, "write": 3}}}, more...), parts}
}

func says(s string, more ...any) object { return with(object{"type": "text", "text": s}, more...) }

func tool(id, name string, state object) object {
	return object{"type": "tool", "callID": id, "tool": name, "state": state}
}

var pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

// full is a session with everything in it.
func full() []story {
	s := session("ses_parent0000000001")
	s.messages = []told{
		user(1, says("Look at this"), object{"type": "file", "mime": "image/png", "filename": "shot.png", "url": "data:image/png;base64," + pixel},
			says("Called the Read tool", "synthetic", true), says("contents of a.go", "synthetic", true),
			object{"type": "file", "mime": "text/plain", "filename": "a.go", "url": "file:///home/dev/x/a.go"}, object{"type": "agent", "name": "plan"}),
		reply(2, nil, object{"type": "step-start", "snapshot": "abc"}, object{"type": "reasoning", "text": "hm", "metadata": object{"anthropic": object{"signature": "c2ln"}}, "time": object{"start": start}},
			says("I read it."),
			tool("call_1", "read", object{"status": "completed", "input": object{"path": "a.go"}, "output": "package a", "title": "a.go", "metadata": object{}, "time": object{"start": start + 2, "end": start + 3, "compacted": start + 900},
				"attachments": []object{{"type": "file", "mime": "image/png", "url": "data:image/png;base64," + pixel}}}),
			tool("call_2", "bash", object{"status": "error", "input": object{"command": "x"}, "error": "not allowed", "time": object{"start": 1, "end": start + 4}}),
			tool("call_3", "bash", object{"status": "running", "input": object{"command": "sleep"}, "time": object{"start": 1}}),
			object{"type": "step-finish", "reason": "tool-calls", "cost": 0.2, "tokens": object{"input": 1, "output": 1, "reasoning": 0, "cache": object{"read": 0, "write": 0}}},
			object{"type": "step-start"}, says("Two steps in one message."),
			object{"type": "patch", "hash": "h", "files": []string{"a.go"}}, object{"type": "snapshot", "snapshot": "s"}, object{"type": "retry", "attempt": 1}),
		user(3, says("go on")),
		reply(4, []any{"error", object{"name": "MessageAbortedError", "data": object{"message": "stopped"}}}, says("I wa")),
		user(5, says("again")),
		reply(6, []any{"error", object{"name": "APIError", "data": object{"message": "overloaded", "statusCode": 529, "isRetryable": true}}}),
		user(7, object{"type": "compaction", "auto": true}),
		reply(8, []any{"summary", true}, says("SUMMARY")),
		user(9, says("and now?"), object{"type": "hologram", "shape": "cube"}),
		reply(10, []any{"finish", "length"}, says("Done.")),
		user(11, object{"type": "compaction", "auto": false, "tail_start_id": "msg_009"}),
		reply(12, []any{"summary", true}, says("SUMMARY 2")),
		user(13, object{"type": "subtask", "prompt": "count lines", "description": "count", "agent": "general", "command": "count"}),
		reply(14, nil, tool("call_1", "task", object{"status": "completed", "input": object{"prompt": "count lines"}, "output": "7", "title": "count", "metadata": object{"sessionId": "ses_child00000000001"}, "time": object{"start": 1, "end": start + 20}})),
		reply(15, nil, says("Seven.")),
	}
	child := session("ses_child00000000001", "parentID", "ses_parent0000000001", "title", "count (@general subagent)", "time", object{"created": start + 13, "updated": start + 14})
	child.messages = []told{user(31, says("count lines")), reply(32, nil, says("7"))}
	return []story{s, child}
}

func TestEveryFormGivesTheSameSession(t *testing.T) {
	var first map[string]string
	for _, f := range forms {
		in := exchangetest.Import(t, opencode.Format(), f.write(t, t.TempDir(), full()...))
		got := map[string]string{}
		for _, o := range in.Sessions() {
			got[o.ID] = exchangetest.Dump(t, in.Store, o.ID)
		}
		if len(got) != 2 {
			t.Fatalf("%s: %d sessions: %+v", f.name, len(got), in.Reports)
		}
		if first == nil {
			first = got
			golden(t, "full.golden", exchangetest.Texts(t, in.Store, "ses_parent0000000001")+"\n"+entries(in)+"\n"+got["ses_parent0000000001"]+"\n"+got["ses_child00000000001"])
			continue
		}
		if d := cmp.Diff(first, got); d != "" {
			t.Errorf("%s differs (-storage +%s):\n%s", f.name, f.name, d)
		}
	}
}

// entries are what the reports say.
func entries(in exchangetest.Imported) string {
	var b strings.Builder
	for _, r := range in.Reports {
		if r.Err != nil {
			fmt.Fprintf(&b, "%v\n", r.Err)
		}
		for _, e := range r.Sorted() {
			fmt.Fprintf(&b, "%s\n", e)
		}
	}
	return b.String()
}

// golden compares with a file of testdata; with UPDATE_GOLDEN it is written.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if os.Getenv("UPDATE_GOLDEN") != "" {
		write(t, path, []byte(got))
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s (-want +got):\n%s", name, d)
	}
}

func TestASessionThatHasGrownIsGoneOnWith(t *testing.T) {
	for _, f := range forms {
		dir := t.TempDir()
		s := session("ses_parent0000000001")
		s.messages = []told{user(1, says("one")), reply(2, nil, says("1"))}
		path := f.write(t, dir, s)
		in := exchangetest.Import(t, opencode.Format(), path)
		s.messages = append(s.messages, user(3, says("two")), reply(4, nil, says("2")))
		f.write(t, dir, s)
		for _, r := range in.Again(t, opencode.Format(), path) {
			if len(r.Sessions) != 1 || r.Sessions[0].Verdict != exchange.Continued {
				t.Errorf("%s: %+v", f.name, r.Sessions)
			}
		}
		exchangetest.Check(t, in.Store, s.id)
		if got := exchangetest.Texts(t, in.Store, s.id); got != "user: \"one\"\nmodel: \"1\"\nuser: \"two\"\nmodel: \"2\"\n" {
			t.Errorf("%s: %s", f.name, got)
		}
	}
}

// TestAReplyThatIsBeingWrittenIsLeft: a session that changed just now ends before
// a reply that has not ended; later the whole of it is there.
func TestAReplyThatIsBeingWrittenIsLeft(t *testing.T) {
	for _, f := range forms[:3] {
		dir := t.TempDir()
		now := time.Now()
		s := session("ses_parent0000000001", "time", object{"created": start, "updated": now.UnixMilli()})
		half := reply(4, nil, says("2, and"))
		delete(half.info["time"].(object), "completed")
		s.messages = []told{user(1, says("one")), reply(2, nil, says("1")), user(3, says("two")), half}
		path := f.write(t, dir, s)
		st := memory.New()
		take := func(when time.Time) exchange.Outcome {
			t.Helper()
			im := &exchange.Importer{Store: st, Now: func() time.Time { return when }}
			var last exchange.Outcome
			for src, err := range exchange.Find(t.Context(), []exchange.Format{opencode.Format()}, path, "") {
				tb(t, err)
				r, err := im.Import(t.Context(), src)
				tb(t, err)
				tb(t, r.Err)
				last = r.Sessions[0]
			}
			return last
		}
		if o := take(now); o.Verdict != exchange.Imported || strings.Contains(exchangetest.Texts(t, st, s.id), "and") {
			t.Errorf("%s: %+v\n%s", f.name, o, exchangetest.Texts(t, st, s.id))
		}
		s.messages[3] = reply(4, nil, says("2, and that is it"))
		f.write(t, dir, s)
		if o := take(now.Add(time.Hour)); o.Verdict != exchange.Continued {
			t.Errorf("%s: %+v", f.name, o)
		}
		if got := exchangetest.Texts(t, st, s.id); !strings.HasSuffix(got, "model: \"2, and that is it\"\n") {
			t.Errorf("%s: %s", f.name, got)
		}
		exchangetest.Check(t, st, s.id)
		// One that was never ended is taken as it is.
		s.messages[3] = half
		f.write(t, dir, s)
		st = memory.New()
		if o := take(now.Add(time.Hour)); o.Verdict != exchange.Imported || !strings.Contains(exchangetest.Texts(t, st, s.id), "and") {
			t.Errorf("%s: %+v", f.name, o)
		}
	}
}

func TestWhatWasTakenBackIsRewound(t *testing.T) {
	for _, c := range []struct{ to, want, says string }{
		{"msg_003", "user: \"one\"\nmodel: \"1\"\n", ""},
		{"msg_001", "", ""},
		{"msg_004", "user: \"one\"\nmodel: \"1\"\nuser: \"two\"\nmodel: \"2\"\n", "dropped 1 revert: it goes back to the middle of a turn\n"},
		{"msg_999", "user: \"one\"\nmodel: \"1\"\nuser: \"two\"\nmodel: \"2\"\n", "dropped 1 revert: the message that it goes back to is not there\n"},
	} {
		s := session("ses_parent0000000001", "revert", object{"messageID": c.to, "snapshot": "x"})
		s.messages = []told{user(1, says("one")), reply(2, nil, says("1")), user(3, says("two")), reply(4, nil, says("2"))}
		for _, f := range forms {
			in := exchangetest.Import(t, opencode.Format(), f.write(t, t.TempDir(), s))
			if got := exchangetest.Texts(t, in.Store, s.id); got != c.want {
				t.Errorf("%s, to %s:\n%s", f.name, c.to, got)
			}
			if got := entries(in); c.says != "" && !strings.Contains(got, c.says) {
				t.Errorf("%s, to %s: the report has\n%s", f.name, c.to, got)
			}
		}
	}
}

func TestOneBadFileIsNamedAndTheRestIsTaken(t *testing.T) {
	dir := t.TempDir()
	s := session("ses_parent0000000001")
	s.messages = []told{user(1, says("one")), reply(2, nil, says("1"), says("more")), user(3, says("two")), reply(4, nil, says("2"))}
	bad := session("ses_bad0000000000001")
	bad.messages = []told{user(5, says("x"))}
	forms[0].write(t, dir, s, bad)
	storage := filepath.Join(dir, "storage")
	// A torn part, a torn message, parts without their message, a folder that is
	// gone, a file that is being written, a torn session.
	write(t, filepath.Join(storage, "part", "msg_002", partID(s.messages[1], 1)+".json"), []byte(`{"type":"text","te`))
	write(t, filepath.Join(storage, "message", s.id, "msg_003.json"), []byte(`{"role":"us`))
	write(t, filepath.Join(storage, "message", s.id, ".oc-msg_009.json.1.2.tmp"), []byte(`{`))
	write(t, filepath.Join(storage, "part", "msg_777", "prt_1.json"), encode(says("lost")))
	tb(t, os.RemoveAll(filepath.Join(storage, "part", "msg_004")))
	write(t, filepath.Join(storage, "part", "msg_002", partID(s.messages[1], 2)+".json"), []byte(`{"type":"text","text":`+strings.Repeat("[", 20_000)))
	write(t, filepath.Join(storage, "session", "project1", bad.id+".json"), []byte(`{"id":"ses_bad`))
	in := exchangetest.Import(t, opencode.Format(), dir)
	if got, want := exchangetest.Texts(t, in.Store, s.id), "user: \"one\"\nmodel: \"1\"\n"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	got := entries(in)
	for _, want := range []string{"dropped 1 part: it is no JSON object", "dropped 1 part: its values are nested more than 10000 deep", "dropped 1 part: its message cannot be read", "dropped 1 message: it is no JSON object", "dropped 1 reply: it has no content",
		filepath.Join(storage, "session", "project1", bad.id+".json") + ": it is no JSON object"} {
		if !strings.Contains(got, want) {
			t.Errorf("the report lacks %q:\n%s", want, got)
		}
	}
}

func TestADatabaseBesideTheFilesCounts(t *testing.T) {
	dir := t.TempDir()
	s, other := session("ses_parent0000000001"), session("ses_other00000000001")
	s.messages = []told{user(1, says("one")), reply(2, nil, says("1"))}
	other.messages = []told{user(11, says("alone")), reply(12, nil, says("yes"))}
	forms[0].write(t, dir, s, other)
	s.messages = append(s.messages, user(3, says("two")), reply(4, nil, says("2")))
	forms[2].write(t, dir, s)
	in := exchangetest.Import(t, opencode.Format(), dir)
	n := 0
	for _, o := range in.Sessions() {
		if n++; o.Verdict != exchange.Imported {
			t.Errorf("%+v", o)
		}
	}
	if n != 2 || !strings.Contains(entries(in), "dropped 1 session in an older form: opencode.db beside it has the session too") {
		t.Errorf("%d sessions\n%s", n, entries(in))
	}
	if got := exchangetest.Texts(t, in.Store, s.id); !strings.Contains(got, `"2"`) {
		t.Errorf("the session is the one of the files:\n%s", got)
	}
}

func TestMessagesThatHoldTheirPartsAreRead(t *testing.T) {
	dir := t.TempDir()
	s := session("ses_parent0000000001")
	s.messages = []told{
		{"msg_001", object{"role": "user", "parts": []object{says("hello")}, "metadata": object{"time": at(1), "sessionID": s.id, "tool": object{}}}, nil},
		{"msg_002", object{"role": "assistant", "parts": []object{{"type": "step-start"}, says("calling"),
			{"type": "tool-invocation", "toolInvocation": object{"state": "result", "toolCallId": "c1", "toolName": "bash", "args": object{"command": "ls"}, "result": "a b"}},
			{"type": "tool-invocation", "toolInvocation": object{"state": "call", "toolCallId": "c2", "toolName": "bash", "args": object{"command": "w"}}},
			{"type": "step-start"}, {"type": "source-url", "sourceId": "1", "url": "https://example.com", "title": "E"}, says("done")},
			"metadata": object{"time": at(2), "sessionID": s.id, "tool": object{"c1": object{"title": "ls", "time": object{"start": start, "end": start + 3}}},
				"assistant": object{"system": []string{"You are", "a bot"}, "modelID": "m", "providerID": "p", "tokens": object{"input": 3, "output": 4, "reasoning": 0, "cache": object{"read": 0, "write": 0}}}}}, nil},
	}
	in := exchangetest.Import(t, opencode.Format(), forms[1].write(t, dir, s))
	want := `user: "hello"
model: "calling" call c1 bash({"command":"ls"}) call c2 bash({"command":"w"})
tool: result c1("a b")
tool: error c2("No result of this tool call was recorded in the history that this session was imported from. It may have finished, partly finished, or not happened at all. Check before you repeat it.")
model: "[E](https://example.com)" "done"
`
	if d := cmp.Diff(want, exchangetest.Texts(t, in.Store, s.id)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if dump := exchangetest.Dump(t, in.Store, s.id); !strings.Contains(dump, `You are\n\na bot`) || !strings.Contains(dump, `"provider":"p","model":"m"`) {
		t.Error(dump)
	}
}

// later writes a database of the later form.
func later(t exchangetest.TB, dir string, rows ...[]any) string {
	path := filepath.Join(dir, "opencode.db")
	db, err := sql.Open("sqlite", path)
	tb(t, err)
	exec := func(q string, args ...any) {
		_, err := db.Exec(q, args...)
		tb(t, err)
	}
	exec("CREATE TABLE session_v2 (id TEXT PRIMARY KEY, directory TEXT NOT NULL, title TEXT, time_created INTEGER, time_updated INTEGER, model TEXT)")
	exec("CREATE TABLE session_message (id TEXT PRIMARY KEY, session_id TEXT NOT NULL, type TEXT NOT NULL, seq INTEGER NOT NULL, time_created INTEGER NOT NULL, data TEXT NOT NULL)")
	exec("INSERT INTO session_v2 VALUES ('ses_later00000000001', '/home/dev/x', 'Later', ?, ?, NULL), ('ses_none000000000001', '/home/dev/x', 'None', 1, 1, NULL)", start, start)
	for i, r := range rows {
		data, ok := r[1].(string)
		if !ok {
			data = string(encode(r[1]))
		}
		exec("INSERT INTO session_message VALUES (?, 'ses_later00000000001', ?, ?, ?, ?)", fmt.Sprintf("evt_%d", len(rows)-i), r[0], i, start+i, data)
	}
	tb(t, db.Close())
	return path
}

func TestSessionMessagesAreRead(t *testing.T) {
	path := later(t, t.TempDir(),
		[]any{"model-switched", object{"model": object{"id": "m1", "providerID": "p1"}}},
		[]any{"user", object{"text": "hi", "time": at(1), "files": []object{{"uri": "data:image/png;base64," + pixel, "mime": "image/png", "name": "p.png"}, {"uri": "file:///x/y.go", "mime": "text/plain", "name": "y.go"}}, "agents": []object{{"name": "plan"}}}},
		[]any{"synthetic", object{"text": "a fact", "time": at(1)}},
		[]any{"assistant", object{"agent": "build", "model": object{"id": "m2", "providerID": "p2"}, "time": at(2), "tokens": object{"input": 1, "output": 2, "reasoning": 3, "cache": object{"read": 0, "write": 0}},
			"content": []object{{"type": "reasoning", "id": "r", "text": "hm"}, says("ok"),
				{"type": "tool", "id": "c1", "name": "read", "state": object{"status": "completed", "input": object{"p": 1}, "content": []object{{"type": "text", "text": "body"}, {"type": "file", "uri": "data:image/png;base64," + pixel, "mime": "image/png"}}, "structured": object{}}, "time": object{"created": 1, "completed": start + 4, "pruned": 5}},
				{"type": "tool", "id": "c2", "name": "bash", "state": object{"status": "error", "input": object{}, "content": []object{}, "error": object{"message": "no"}}, "time": object{}},
				{"type": "tool", "id": "c3", "name": "bash", "state": object{"status": "pending", "input": "{\"a\":"}, "time": object{}}}}},
		[]any{"shell", object{"callID": "s", "command": "ls", "output": "a", "time": at(5)}},
		[]any{"compaction", object{"reason": "auto", "summary": "SO FAR", "include": "KEPT", "time": at(6)}},
		[]any{"agent-switched", object{"agent": "plan"}},
		[]any{"user", object{"text": "go", "time": at(7)}},
		[]any{"assistant", object{"model": object{"id": "m2", "providerID": "p2"}, "time": at(8), "content": []object{says("went")}, "error": object{"type": "unknown", "message": "boom"}}},
		[]any{"teleport", object{}},
		[]any{"user", "{torn"},
	)
	in := exchangetest.Import(t, opencode.Format(), path)
	golden(t, "later.golden", exchangetest.Texts(t, in.Store, "ses_later00000000001")+"\n"+entries(in)+"\n"+exchangetest.Dump(t, in.Store, "ses_later00000000001"))
}

func TestTheFormWithTheNewestMessageCounts(t *testing.T) {
	dir := t.TempDir()
	s := session("ses_parent0000000001")
	s.messages = []told{user(1, says("old form")), reply(2, nil, says("1"))}
	path := forms[2].write(t, dir, s)
	add := func(at int) {
		db, err := sql.Open("sqlite", path)
		tb(t, err)
		_, err = db.Exec("CREATE TABLE IF NOT EXISTS session_message (id TEXT PRIMARY KEY, session_id TEXT, type TEXT, time_created INTEGER, data TEXT)")
		tb(t, err)
		_, err = db.Exec("INSERT OR REPLACE INTO session_message VALUES ('e', ?, 'user', ?, '{\"text\":\"later form\"}')", s.id, at)
		tb(t, errors.Join(err, db.Close()))
	}
	add(start - 5)
	in := exchangetest.Import(t, opencode.Format(), path)
	if got := exchangetest.Texts(t, in.Store, s.id); !strings.Contains(got, "old form") {
		t.Error(got)
	}
	add(start + 500)
	in = exchangetest.Import(t, opencode.Format(), path)
	if got := exchangetest.Texts(t, in.Store, s.id); got != "user: \"later form\"\n" {
		t.Error(got)
	}
}

func TestFilesThatAreNoSourceAreNotClaimed(t *testing.T) {
	dir := t.TempDir()
	forms[0].write(t, dir, full()...)
	write(t, filepath.Join(dir, "storage", "project", "project1.json"), []byte(`{"id":"project1","worktree":"/"}`))
	write(t, filepath.Join(dir, "storage", "session_diff", "ses_1.json"), []byte(`[]`))
	write(t, filepath.Join(dir, "auth.json"), []byte(`{"anthropic":{"type":"api"}}`))
	write(t, filepath.Join(dir, "log", "dev.log"), []byte("INFO"))
	write(t, filepath.Join(dir, "x.json"), []byte(`{"info":{"title":"API"},"openapi":"3"}`))
	n := 0
	for src, err := range exchange.Find(context.Background(), []exchange.Format{opencode.Format()}, dir, "") {
		if err != nil || !strings.Contains(src.Path, filepath.Join("storage", "session", "project1")) {
			t.Errorf("%s: %v", src.Path, err)
		}
		n++
	}
	if n != 2 {
		t.Errorf("%d sources", n)
	}
	other := filepath.Join(dir, "other.db")
	db, err := sql.Open("sqlite", other)
	tb(t, err)
	_, err = db.Exec("CREATE TABLE session (id)")
	tb(t, errors.Join(err, db.Close()))
	head, err := os.ReadFile(other)
	tb(t, err)
	if opencode.Claims(other, head[:100]) {
		t.Error("the database of another program is claimed")
	}
	for _, err := range opencode.Sessions(context.Background(), other, nil) {
		if err == nil || !strings.Contains(err.Error(), "no database of opencode") {
			t.Errorf("another database: %v", err)
		}
	}
}

// TestAVeryLongTextIsTaken holds one message of 100 MB.
func TestAVeryLongTextIsTaken(t *testing.T) {
	if testing.Short() {
		t.Skip("100 MB are written and read; the race detector takes a minute for them")
	}
	s := session("ses_parent0000000001")
	long := strings.Repeat("a line of a long file\n", 100<<20/22)
	s.messages = []told{user(1, says("read it")), reply(2, nil, tool("c", "read", object{"status": "completed", "input": object{}, "output": long, "time": object{}})), reply(3, nil, says("long"))}
	dir := forms[0].write(t, t.TempDir(), s)
	var got int
	for src, err := range exchange.Find(context.Background(), []exchange.Format{opencode.Format()}, dir, "") {
		tb(t, err)
		for ses, err := range src.Sessions(context.Background(), nil) {
			tb(t, err)
			h, err := ses.Header(context.Background(), exchange.Options{})
			tb(t, err)
			for r, err := range ses.Records(context.Background(), h, exchange.Options{}) {
				tb(t, err)
				got = max(got, len(r.Data))
			}
		}
	}
	if got < len(long) {
		t.Errorf("the longest event has %d bytes", got)
	}
}

func TestAnyHistoryBecomesAValidSession(t *testing.T) {
	n := 0
	rapid.Check(t, func(r *rapid.T) {
		dir := t.TempDir()
		var all []story
		for i := range rapid.IntRange(1, 3).Draw(r, "sessions") {
			all = append(all, anyStory(r, fmt.Sprintf("ses_%016d", i)))
		}
		f := rapid.SampledFrom(forms).Draw(r, "form")
		path := f.write(r, dir, all...)
		if f.name == "storage" {
			// Files are cut anywhere.
			files, _ := filepath.Glob(filepath.Join(dir, "storage", "*", "*", "*.json"))
			for range rapid.IntRange(0, 2).Draw(r, "cuts") {
				file := rapid.SampledFrom(files).Draw(r, "file")
				b, err := os.ReadFile(file)
				tb(r, err)
				write(r, file, b[:rapid.IntRange(0, len(b)).Draw(r, "at")])
			}
		}
		in := exchangetest.Import(r, opencode.Format(), path)
		n += len(in.Sessions())
	})
	if n < 20 {
		t.Errorf("only %d sessions were made", n)
	}
}

func anyStory(r *rapid.T, id string) story {
	s := session(id, "title", rapid.SampledFrom([]string{"", "A title", "New session - 2025-10-10T10:10:10.000Z"}).Draw(r, "title"),
		"directory", rapid.SampledFrom([]string{"/home/dev/x", "", "relative", `C:\x`}).Draw(r, "directory"))
	if rapid.Bool().Draw(r, "child") {
		s.info["parentID"] = rapid.SampledFrom([]string{"ses_0000000000000000", "ses_0000000000000001", id, "ses_elsewhere0000001"}).Draw(r, "parent")
	}
	var ids []string
	for i := range rapid.IntRange(0, 9).Draw(r, "messages") {
		m := told{id: fmt.Sprintf("msg_%s_%03d", id, i), info: object{"role": rapid.SampledFrom([]string{"user", "assistant", "assistant", "user", "system"}).Draw(r, "role")}}
		if rapid.IntRange(0, 9).Draw(r, "timed") > 0 {
			m.info["time"] = at(i)
		}
		ids = append(ids, m.id)
		if m.info["role"] == "assistant" {
			if rapid.IntRange(0, 5).Draw(r, "summary") == 0 {
				m.info["summary"] = true
			}
			switch rapid.IntRange(0, 6).Draw(r, "error") {
			case 0:
				m.info["error"] = object{"name": "MessageAbortedError", "data": object{}}
			case 1:
				m.info["error"] = object{"name": "APIError", "data": object{"message": "x", "statusCode": 429}}
			case 2:
				m.info["error"] = object{}
			}
			m.info["tokens"] = object{"input": rapid.IntRange(-1, 9).Draw(r, "input"), "output": 2, "reasoning": 1, "total": rapid.IntRange(0, 20).Draw(r, "total")}
		}
		for range rapid.IntRange(0, 5).Draw(r, "parts") {
			m.parts = append(m.parts, anyPart(r, ids))
		}
		s.messages = append(s.messages, m)
	}
	if len(ids) > 0 && rapid.IntRange(0, 3).Draw(r, "revert") == 0 {
		s.info["revert"] = object{"messageID": rapid.SampledFrom(ids).Draw(r, "to")}
	}
	return s
}

func anyPart(r *rapid.T, ids []string) object {
	str := rapid.SampledFrom([]string{"", "text", "\u2028 \x00 näher", " ", strings.Repeat("long ", 100)})
	switch rapid.IntRange(0, 12).Draw(r, "part") {
	case 0, 1:
		return says(str.Draw(r, "text"), "synthetic", rapid.Bool().Draw(r, "synthetic"))
	case 2:
		return object{"type": "reasoning", "text": str.Draw(r, "text"), "metadata": object{"anthropic": object{"signature": rapid.SampledFrom([]string{"", "c2ln"}).Draw(r, "signature")}, "openai": object{"reasoningEncryptedContent": "x"}}}
	case 3, 4, 5, 6:
		state := object{"status": rapid.SampledFrom([]string{"completed", "error", "running", "pending", "?"}).Draw(r, "status"),
			"input":  rapid.SampledFrom([]any{object{"a": 1}, object{}, nil, "text", `{"b":2}`, []int{1}, 7}).Draw(r, "input"),
			"output": str.Draw(r, "output"), "error": str.Draw(r, "error"), "raw": rapid.SampledFrom([]string{"", "{", `{"c":3}`}).Draw(r, "raw"), "time": object{"start": 1, "end": 2}}
		if rapid.Bool().Draw(r, "attached") {
			state["attachments"] = []object{{"type": "file", "mime": "image/png", "url": "data:image/png;base64," + pixel}, {"mime": "image/png", "url": "data:image/png;base64,!"}, {"mime": "text/plain", "url": "file:///x"}}
		}
		return tool(rapid.SampledFrom([]string{"", "c1", "c2", "c3"}).Draw(r, "call"), rapid.SampledFrom([]string{"", "bash", "read"}).Draw(r, "tool"), state)
	case 7:
		return object{"type": "compaction", "auto": true, "tail_start_id": rapid.SampledFrom(append([]string{"", "msg_elsewhere"}, ids...)).Draw(r, "tail")}
	case 8:
		return object{"type": rapid.SampledFrom([]string{"step-start", "step-finish", "patch", "snapshot", "retry", "agent"}).Draw(r, "own")}
	case 9:
		return object{"type": "file", "mime": rapid.SampledFrom([]string{"text/plain", "image/png", ""}).Draw(r, "mime"), "url": rapid.SampledFrom([]string{"", "file:///a", "data:text/plain;base64,aGk=", "data:,x"}).Draw(r, "url")}
	case 10:
		return object{"type": "subtask", "prompt": str.Draw(r, "prompt")}
	case 11:
		return object{"type": rapid.SampledFrom([]string{"", "hologram", "tool_use", "tool-result"}).Draw(r, "kind"), "x": 1}
	}
	return says("plain")
}

// FuzzExport gives the reader of exports any bytes: it never panics, and what it
// makes is a valid session.
func FuzzExport(f *testing.F) {
	dir := f.TempDir()
	forms[3].write(f, dir, full()...)
	b, err := os.ReadFile(filepath.Join(dir, "ses_parent0000000001.json"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte(`{"info":{"id":"ses_1","revert":{"messageID":"m"}},"messages":[{"info":{"id":"m","role":"user"},"parts":[{"type":"text","text":"x"}]},{"info":{"role":"assistant","summary":true},"parts":[1,{}]}]}`))
	f.Add([]byte(`{"info":{"id":"ses_1"},"messages":[{"info":{"id":"a","role":"assistant","parts":[{"type":"tool-invocation","toolInvocation":{"state":"result"}}],"metadata":{"assistant":{}}}}]}`))
	f.Add([]byte(`{"info":{"id":"ses_1"},"messages":[{"info":{"id":"m1","role":"user"},"parts":[{"type":"text","text":"\ud83d"},{"type":"q","n":-0},{"type":"q","m":1e999},{"type":"q","d":1,"d":2}]},{"info":{"id":"m1","role":"assistant"},"parts":[{"type":"tool","tool":"t","state":{"status":"completed","title":"\ud83d","input":{"a":-0,"b":1,"b":2}}}]}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		path := filepath.Join(t.TempDir(), "e.json")
		write(t, path, b)
		for ses, err := range opencode.Sessions(t.Context(), path, nil) {
			if err != nil {
				return
			}
			h, err := ses.Header(t.Context(), exchange.Options{Objects: exchange.Measure})
			if err != nil {
				return
			}
			if _, err := outcrop.Restore(h, ses.Records(t.Context(), h, exchange.Options{Objects: exchange.Measure}), outcrop.Options{}); err != nil {
				t.Fatalf("%v\n%s", err, b)
			}
		}
	})
}

func ExampleSessions() {
	dir, err := os.MkdirTemp("", "opencode")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "session.json")
	text := `{"info":{"id":"ses_example000000001","title":"A question","directory":"/home/dev/x","time":{"created":1755000000000}},
		"messages":[{"info":{"id":"msg_1","role":"user","time":{"created":1755000000001}},"parts":[{"type":"text","text":"What is 2+2?"}]},
		{"info":{"id":"msg_2","role":"assistant","providerID":"p","modelID":"m","time":{"created":1755000000002}},"parts":[{"type":"text","text":"4"}]}]}`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	for s, err := range opencode.Sessions(ctx, path, nil) {
		if err != nil {
			fmt.Println(err)
			return
		}
		h, err := s.Header(ctx, exchange.Options{})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(h.ID, s.Title)
		for r, err := range s.Records(ctx, h, exchange.Options{}) {
			if err != nil {
				fmt.Println(err)
				return
			}
			fmt.Println(r.Seq, r.Type)
		}
	}
	// Output:
	// ses_example000000001 A question
	// 0 turn/start
	// 1 step/start
	// 2 user/message
	// 3 session/title
	// 4 request/header
	// 5 request/context
	// 6 assistant/message
	// 7 step/end
	// 8 turn/end
	// 9 outcrop/import
}

func init() {
	if b, err := base64.StdEncoding.DecodeString(pixel); err != nil || len(b) != 70 {
		panic("the image of the tests")
	}
}
