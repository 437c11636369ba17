package chat

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/chat/tty"
	"github.com/outcrop-dev/outcrop/internal/chat/vt"
	"github.com/outcrop-dev/outcrop/internal/desk"
	"github.com/outcrop-dev/outcrop/internal/term"
	"github.com/outcrop-dev/outcrop/internal/work"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/jsonl"
)

var update = flag.Bool("update", false, "write what the screens show into the golden files")

// deadline is when a test gives up that waits for a screen.
const deadline = 60 * time.Second

// place is a folder with a script, a store and a clock that a test moves.
type place struct {
	t   *testing.T
	dir string
	ids int

	mu  sync.Mutex
	now time.Time
}

func newPlace(t *testing.T, script ...string) *place {
	p := &place{t: t, dir: t.TempDir(), now: time.Date(2027, 1, 15, 10, 0, 0, 0, time.UTC)}
	p.file("s.jsonl", strings.Join(script, "\n")+"\n")
	if err := os.Mkdir(filepath.Join(p.dir, "work"), 0o700); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *place) file(name, text string) {
	p.t.Helper()
	if err := os.WriteFile(filepath.Join(p.dir, name), []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

func (p *place) clock() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.now
}

// later moves the clock.
func (p *place) later(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now = p.now.Add(d)
}

// talkTest is one chat and the terminal that it runs in.
type talkTest struct {
	*place
	*vt.Terminal
	chat  *Chat
	ended chan error
	stop  context.CancelFunc
	over  bool
	err   error
}

// chat begins one, with a script, in a new session or in one that is there.
func (p *place) chat(cols, rows int, f work.Flags, style term.Style) *talkTest {
	p.t.Helper()
	f.Unlimited = true
	if f.Script == "" {
		f.Script = "s.jsonl"
	}
	d := desk.New(desk.Env{
		Stdin: strings.NewReader(""), Stdout: &strings.Builder{}, Stderr: &strings.Builder{}, Dir: p.dir, Program: "outcrop",
		Getenv: func(n string) string { return map[string]string{"OUTCROP_HOME": filepath.Join(p.dir, "home")}[n] },
		Now:    p.clock,
		NewID:  func() string { p.mu.Lock(); defer p.mu.Unlock(); p.ids++; return fmt.Sprintf("id-%d", p.ids) },
	})
	d.Flags.Cwd = filepath.Join(p.dir, "work")
	ctx, stop := context.WithCancel(p.t.Context())
	w, err := work.Prepare(ctx, d, f)
	if err != nil {
		p.t.Fatal(err)
	}
	if err := w.Open(ctx); err != nil {
		p.t.Fatal(err)
	}
	c := &talkTest{place: p, Terminal: vt.New(cols, rows), ended: make(chan error, 1), stop: stop}
	c.chat = newChat(w, nil, c.Terminal, style, cols, rows, ownActions())
	d.Divert(c.chat.notes)
	go func() {
		err := c.chat.run(ctx)
		if cerr := w.Close(context.WithoutCancel(ctx)); err == nil {
			err = cerr
		}
		c.ended <- err
	}()
	p.t.Cleanup(func() {
		stop()
		c.wait()
		if faults := c.Faults(); len(faults) > 0 {
			p.t.Errorf("the terminal was sent %q", faults)
		}
	})
	c.idle("/help lists")
	return c
}

// wait waits for the end of the chat.
func (c *talkTest) wait() error {
	if !c.over {
		c.err, c.over = <-c.ended, true
	}
	return c.err
}

// sees waits until the terminal shows all of the texts.
func (c *talkTest) sees(texts ...string) string {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	all, err := c.Wait(ctx, func(all string) bool {
		for _, text := range texts {
			if !strings.Contains(all, text) {
				return false
			}
		}
		return true
	})
	if err != nil {
		c.t.Fatalf("waiting for %q: %v", texts, err)
	}
	return all
}

// idle waits until nothing runs and the input is empty: the last two lines are
// the input and the state.
func (c *talkTest) idle(after ...string) string {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	all, err := c.Wait(ctx, func(all string) bool {
		for _, text := range after {
			if !strings.Contains(all, text) {
				return false
			}
		}
		lines := strings.Split(strings.TrimSuffix(all, "\n"), "\n")
		return len(lines) > 1 && lines[len(lines)-2] == ">" && !strings.ContainsAny(lines[len(lines)-1], strings.Join(spin[:], ""))
	})
	if err != nil {
		c.t.Fatalf("waiting for the end: %v", err)
	}
	return all
}

func (c *talkTest) press(letter string) { c.Type(tty.Key{Name: tty.Ctrl, Text: letter}) }

// log is what is stored, one line an event.
func (p *place) log(session string) string {
	p.t.Helper()
	st, err := jsonl.New(filepath.Join(p.dir, "home", "sessions"), jsonl.Options{})
	if err != nil {
		p.t.Fatal(err)
	}
	s, _, err := store.Inspect(context.Background(), st, session, outcrop.Options{})
	if err != nil {
		p.t.Fatal(err)
	}
	var b strings.Builder
	for ev := range outcrop.Events(s.Log(), 0) {
		b.Write(append(ev.AppendJSON(nil), '\n'))
	}
	return b.String()
}

func (p *place) golden(name, got string) {
	p.t.Helper()
	got = got[strings.Index(got, "> "):] // without the folder above
	path := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			p.t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			p.t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		p.t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		p.t.Error(diff)
	}
}

// logs waits until the stored log has the parts: what the screen shows may not be
// written yet.
func (p *place) logs(session string, parts ...string) {
	p.t.Helper()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for end := time.Now().Add(deadline); time.Now().Before(end); <-again.C {
		log := p.log(session)
		if !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(log, part) }) {
			return
		}
	}
	has(p.t, p.log(session), parts...)
}

func has(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("no %q in:\n%s", part, text)
		}
	}
}

func hasNot(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if strings.Contains(text, part) {
			t.Errorf("%q in:\n%s", part, text)
		}
	}
}

func contextWithDeadline() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), deadline)
}

// crashed writes what the session has now into a log file, as a crash would have
// left it, and returns its name.
func (p *place) crashed(c *talkTest, name string) string {
	p.t.Helper()
	s := c.chat.w.Session()
	path := filepath.Join(p.dir, name)
	var b strings.Builder
	b.Write(append(s.Header().Line(), '\n'))
	for ev := range outcrop.Events(s.Log(), 0) {
		b.Write(append(ev.AppendJSON(nil), '\n'))
	}
	p.file(name, b.String())
	return path
}
