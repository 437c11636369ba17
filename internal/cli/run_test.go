package cli_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/cli"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/jsonl"
)

// desk is a person's place: a folder with a store, a terminal, a clock that
// stands still.
type desk struct {
	t        *testing.T
	dir      string
	in       io.Reader
	out, err *screen
	ids      int
}

// screen is a terminal that calls seen after each write.
type screen struct {
	mu   sync.Mutex
	b    bytes.Buffer
	seen func(text string)
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	s.b.Write(p)
	text, seen := s.b.String(), s.seen
	s.mu.Unlock()
	if seen != nil {
		seen(text)
	}
	return len(p), nil
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func newDesk(t *testing.T, input io.Reader) *desk {
	return &desk{t: t, dir: t.TempDir(), in: input, out: &screen{}, err: &screen{}}
}

// file writes a file into the folder.
func (d *desk) file(name string, lines ...string) {
	d.t.Helper()
	if err := os.WriteFile(filepath.Join(d.dir, name), []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		d.t.Fatal(err)
	}
}

func (d *desk) run(ctx context.Context, args ...string) int {
	return cli.Main(ctx, args, cli.Env{
		Stdin: d.in, Stdout: d.out, Stderr: d.err, Dir: d.dir, Program: "outcrop",
		Terminal: func(any) bool { return true },
		Getenv:   func(name string) string { return map[string]string{"OUTCROP_HOME": d.dir, "NO_COLOR": "1"}[name] },
		Now:      func() time.Time { return startTime },
		NewID:    func() string { d.ids++; return fmt.Sprintf("id-%d", d.ids) },
	})
}

// log is everything that is stored of a session, one line an event.
func (d *desk) log(session string) string {
	d.t.Helper()
	st, err := jsonl.New(filepath.Join(d.dir, "sessions"), jsonl.Options{})
	if err != nil {
		d.t.Fatal(err)
	}
	s, _, err := store.Inspect(context.Background(), st, session, outcrop.Options{})
	if err != nil {
		d.t.Fatal(err)
	}
	var b strings.Builder
	for ev := range outcrop.Events(s.Log(), 0) {
		b.Write(append(ev.AppendJSON(nil), '\n'))
	}
	return b.String()
}

func wants(t *testing.T, what, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%s does not hold %q:\n%s", what, part, text)
		}
	}
}

func TestRunStreamsToATerminal(t *testing.T) {
	d := newDesk(t, strings.NewReader(""))
	d.file("a.txt", "alpha")
	d.file("s.jsonl", `{"text":"I look.","tools":[{"name":"read","args":{"path":"a.txt"}}]}`, `{"text":"It says \u001b[31malpha."}`)
	if code := d.run(t.Context(), "run", "--script", "s.jsonl", "what"); code != 0 {
		t.Fatalf("exit %d: %s", code, d.err)
	}
	if got, want := d.out.String(), "I look.\nIt says \\e[31malpha.\n"; got != want {
		t.Errorf("stdout %q, want %q", got, want)
	}
	if got, want := d.err.String(), "  read   a.txt\nsession id-1 | outcrop chat --session id-1 --script s.jsonl\n"; got != want {
		t.Errorf("stderr %q, want %q", got, want)
	}
}

func TestARetrySaysWhy(t *testing.T) {
	d := newDesk(t, strings.NewReader(""))
	d.file("s.jsonl", `{"error":{"code":"SERVER","message":"the server is busy","status":503,"retryAfterMs":5}}`, `{"text":"there"}`)
	if code := d.run(t.Context(), "run", "--script", "s.jsonl", "hello"); code != 0 {
		t.Fatalf("exit %d: %s", code, d.err)
	}
	wants(t, "stderr", d.err.String(), "outcrop: the server is busy: trying again in 0.0 s\n")
}

func TestApprovalAtATerminal(t *testing.T) {
	write := `{"tools":[{"name":"write","args":{"path":"new.txt","content":"one\ntwo\n"}}]}`
	for _, c := range []struct {
		name    string
		input   string
		asked   int
		written bool
		logged  string
	}{
		{"y allows the call once, the next one is asked about", "y\nn\n", 2, true, `"outcome":"allowed-once"`},
		{"yes is y", "YES\nno\n", 2, true, `"outcome":"rejected"`},
		{"a allows this exact call for the session", "a\n", 1, true, `"outcome":"allowed-once"`},
		{"n refuses", "n\nn\n", 2, false, `Error: not approved by the user"`},
		{"enter refuses", "\n\n", 2, false, `"outcome":"rejected"`},
		{"e refuses and tells the model why", "e\nnot there\nn\n", 2, false, `Error: not approved by the user: not there"`},
		{"the end of the input refuses", "", 2, false, `"outcome":"rejected"`},
		{"anything else asks again", "what?\ny\nn\n", 3, true, `"outcome":"allowed-once"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newDesk(t, strings.NewReader(c.input))
			d.file("s.jsonl", write, write, `{"text":"Done."}`)
			if code := d.run(t.Context(), "run", "--script", "s.jsonl", "go"); code != 0 {
				t.Fatalf("exit %d: %s", code, d.err)
			}
			if n := strings.Count(d.err.String(), "[y] once  [a] this exact call for this session  [n] no  [e] no, and tell the model why"); n != c.asked {
				t.Errorf("asked %d times, want %d:\n%s", n, c.asked, d.err)
			}
			wants(t, "the question", d.err.String(), "allow write? ", "new.txt", "  | +one\n  | +two\n", "  in "+d.dir)
			wants(t, "the log", d.log("id-1"), c.logged)
			if _, err := os.Stat(filepath.Join(d.dir, "new.txt")); (err == nil) != c.written {
				t.Errorf("written: %v, want %v", err == nil, c.written)
			}
		})
	}
}

func TestQuestionShowsControlCharactersAsEscapes(t *testing.T) {
	d := newDesk(t, strings.NewReader("n\n"))
	d.file("s.jsonl", `{"tools":[{"name":"shell","args":{"command":"echo \u001b[2K\rharmless"}}]}`, `{"text":"Done."}`)
	d.run(t.Context(), "run", "--script", "s.jsonl", "go")
	wants(t, "the question", d.err.String(), `echo \e[2K\rharmless`)
	if strings.ContainsAny(d.err.String(), "\x1b\r") {
		t.Errorf("a control character reached the terminal: %q", d.err)
	}
}

func TestInterruptEndsTheTurnInGoodOrder(t *testing.T) {
	never, answer := io.Pipe() // a person who does not type
	defer answer.Close()
	for _, c := range []struct {
		name   string
		script string
		when   func(d *desk) *screen // whose text the interrupt waits for
		text   string
		logged []string
	}{
		{
			"in the middle of a reply what was seen stays",
			`{"text":"The first part and more","cut":"hang","after":1}`,
			func(d *desk) *screen { return d.out }, "The first pa",
			[]string{`"interrupted":true`, `"type":"step/end"`},
		},
		{
			"while a question waits the call is answered",
			`{"text":"I write.","tools":[{"name":"write","args":{"path":"x","content":"y"}}]}`,
			func(d *desk) *screen { return d.err }, "[y] once",
			[]string{`"outcome":"cancelled"`, `"ABORTED_BEFORE_DISPATCH"`, `"type":"step/end"`},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newDesk(t, never)
			d.file("s.jsonl", c.script)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			c.when(d).seen = func(text string) {
				if strings.Contains(text, c.text) {
					cancel()
				}
			}
			if code := d.run(ctx, "run", "--script", "s.jsonl", "go"); code != 130 {
				t.Errorf("exit %d, want 130", code)
			}
			log := d.log("id-1")
			wants(t, "the log", log, c.logged...)
			wants(t, "the log", log, `"type":"turn/end"`, `"reason":{"kind":"aborted","reason":{"kind":"user"}}`)
			if !strings.HasSuffix(d.err.String(), "outcrop: interrupted\nsession id-1 | outcrop chat --session id-1 --script s.jsonl\n") {
				t.Errorf("stderr ends otherwise: %q", d.err)
			}
			if code := d.run(t.Context(), "verify", "id-1"); code != 0 {
				t.Errorf("verify: exit %d: %s", code, d.out)
			}
		})
	}
}

func TestSessionInUseIsRefused(t *testing.T) {
	d := newDesk(t, strings.NewReader(""))
	d.file("s.jsonl", `{"text":"one"}`, `{"text":"two"}`)
	if code := d.run(t.Context(), "run", "--script", "s.jsonl", "go"); code != 0 {
		t.Fatalf("exit %d: %s", code, d.err)
	}
	st, err := jsonl.New(filepath.Join(d.dir, "sessions"), jsonl.Options{Program: "another program"})
	if err != nil {
		t.Fatal(err)
	}
	live, err := store.Open(t.Context(), st, "id-1", store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	before := d.err.String()
	if code := d.run(t.Context(), "run", "--script", "s.jsonl", "--session", "id-1", "go"); code != 4 {
		t.Errorf("exit %d, want 4", code)
	}
	said := strings.TrimPrefix(d.err.String(), before)
	wants(t, "stderr", said, "another program")
	if strings.Contains(said, "session id-1 |") {
		t.Errorf("it says how to go on with a session that it did not open: %s", said)
	}
	if err := live.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if code := d.run(t.Context(), "run", "--script", "s.jsonl", "--session", "id-1", "go"); code != 0 {
		t.Errorf("exit %d after it was let go: %s", code, d.err)
	}
}

func TestScriptPlaysAReplyAgainThatACrashCut(t *testing.T) {
	for _, c := range []struct {
		name string
		cut  string // the log is cut before this
		want string
	}{
		{"a reply whose end is in the log was used", `{"type":"turn/end"`, "second\n"},
		{"a reply that a crash cut is played again", `{"type":"assistant/chunk","seq":12`, "first\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newDesk(t, strings.NewReader(""))
			d.file("s.jsonl", `{"text":"first"}`, `{"text":"second"}`)
			if code := d.run(t.Context(), "run", "--store", "jsonl+plain:plain", "--script", "s.jsonl", "go"); code != 0 {
				t.Fatalf("exit %d: %s", code, d.err)
			}
			files, _ := filepath.Glob(filepath.Join(d.dir, "plain", "*", "id-1", "session.jsonl"))
			if len(files) != 1 {
				t.Fatalf("log files: %v", files)
			}
			b, err := os.ReadFile(files[0])
			if err != nil {
				t.Fatal(err)
			}
			at := bytes.Index(b, []byte(c.cut))
			if at < 0 {
				t.Fatalf("no %s in\n%s", c.cut, b)
			}
			d.file("crashed.jsonl", strings.TrimSuffix(string(b[:at]), "\n"))
			d.out = &screen{}
			if code := d.run(t.Context(), "run", "--script", "s.jsonl", "--session", "crashed.jsonl", "again"); code != 0 {
				t.Fatalf("exit %d: %s", code, d.err)
			}
			if got := d.out.String(); got != c.want {
				t.Errorf("stdout %q, want %q", got, c.want)
			}
		})
	}
}

func TestPromptWaitsInTheSession(t *testing.T) {
	// A crash after the prompt was stored and before it was taken.
	d := newDesk(t, strings.NewReader(""))
	d.file("s.jsonl", `{"text":"answered","expect":{"contains":"the question"}}`)
	header := outcrop.NewHeader("waiting", 1000, d.dir)
	d.file("waiting.jsonl", string(header.Line()),
		`{"type":"agent/inbox/spliced","seq":0,"time":1000,"data":{"target":"next-turn","start":0,"inserted":[{"content":[{"type":"text","text":"the question"}],"source":{"kind":"user"},"role":"user","id":"m1"}]}}`)
	if code := d.run(t.Context(), "run", "--script", "s.jsonl", "--session", "waiting.jsonl"); code != 0 {
		t.Fatalf("exit %d: %s", code, d.err)
	}
	if got := d.out.String(); got != "answered\n" {
		t.Errorf("stdout %q", got)
	}
}
