package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/outcrop-dev/outcrop/internal/cli"
	"github.com/outcrop-dev/outcrop/store/jetstream/natstest"
)

// stream is what a command prints while it runs.
type stream struct {
	mu  sync.Mutex
	buf bytes.Buffer
	new chan struct{}
}

func newStream() *stream { return &stream{new: make(chan struct{}, 1)} }

func (s *stream) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, err := s.buf.Write(b)
	select {
	case s.new <- struct{}{}:
	default:
	}
	return n, err
}

func (s *stream) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.String()
}

// until waits until the text holds what.
func (s *stream) until(t *testing.T, what string) string {
	t.Helper()
	late := time.NewTimer(3 * time.Minute)
	defer late.Stop()
	for {
		if text := s.String(); strings.Contains(text, what) {
			return text
		}
		select {
		case <-s.new:
		case <-late.C:
			t.Fatalf("no %q in\n%s", what, s)
		}
	}
}

// site is a folder from which commands are run on a realm.
type site struct {
	t   *testing.T
	dir string
	env map[string]string
}

func newSite(t *testing.T, files map[string]string) *site {
	t.Helper()
	c := natstest.Start(t, natstest.Options{})
	s := &site{t: t, dir: t.TempDir()}
	s.env = map[string]string{"HOME": s.dir, "OUTCROP_HOME": filepath.Join(s.dir, "data"), "OUTCROP_STORE": c.Address("fleet")}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s.does(0, "realm", "init", "--single", "--lease", "2s")
	return s
}

func (s *site) main(ctx context.Context, out, errOut io.Writer, args ...string) int {
	return cli.Main(ctx, args, cli.Env{Stdin: strings.NewReader(""), Stdout: out, Stderr: errOut, Dir: s.dir, Program: "outcrop",
		Terminal: func(any) bool { return false }, Getenv: func(n string) string { return s.env[n] }})
}

// does runs a command to its end.
func (s *site) does(code int, args ...string) string {
	s.t.Helper()
	var out, errOut bytes.Buffer
	if got := s.main(context.Background(), &out, &errOut, args...); got != code {
		s.t.Fatalf("outcrop %s: exit %d: %s", strings.Join(args, " "), got, errOut.String())
	}
	return out.String() + errOut.String()
}

// works runs a worker until end is called.
func (s *site) works(args ...string) (out, errOut *stream, end func()) {
	out, errOut = newStream(), newStream()
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan int, 1)
	go func() { done <- s.main(ctx, out, errOut, append([]string{"worker"}, args...)...) }()
	end = sync.OnceFunc(func() {
		stop()
		if code := <-done; code != 0 {
			s.t.Errorf("the worker ended with %d: %s", code, errOut)
		}
	})
	s.t.Cleanup(end)
	return out, errOut, end
}

func TestAWorkerOnARealmIsReachedFromElsewhere(t *testing.T) {
	s := newSite(t, map[string]string{"calls.jsonl": `{"script":1,"model":"calls"}
{"when":{"turn":1,"step":1},"tools":[{"name":"shell","id":"c1","args":{"command":"echo $OUTCROP_CALL_KEY $OUTCROP_EPOCH > key.txt"}}]}
{"when":{"turn":1,"step":2},"text":"Allowed.","cut":"hang","after":1}
{"when":{"turn":2,"step":1},"tools":[{"name":"shell","id":"c2","args":{"command":"echo no > made.txt"}}]}
{"when":{"turn":2,"step":2},"expect":{"contains":"not like this"},"text":"Refused."}
`})
	out, errOut, end := s.works("--script", "calls.jsonl", "--every", "1h", "--metrics", "127.0.0.1:0", "--grace", "100ms")
	said := errOut.until(t, "metrics: http://")
	_, address, _ := strings.Cut(said, "metrics: ")
	address, _, _ = strings.Cut(strings.TrimSpace(address), "\n")
	address = strings.TrimSuffix(address, "/metrics")
	errOut.until(t, "working on")

	// A wake is enough: nothing else makes it look within an hour.
	s.does(0, "send", "--new", "--session", "s", "Do it.")
	question := waitFor(t, func() string { return s.does(0, "send", "s", "--questions", "--json") }, `"call":"c1"`)
	if !strings.Contains(question, `"tool":"shell"`) || !strings.Contains(question, "OUTCROP_CALL_KEY") {
		t.Errorf("asked %s", question)
	}
	if got := s.does(0, "send", "s", "--allow", "c1"); !strings.HasPrefix(got, "s: c1 allowed\n") {
		t.Error(got)
	}
	key := waitFor(t, func() string { b, _ := os.ReadFile(filepath.Join(s.dir, "key.txt")); return string(b) }, "\n")
	if !strings.HasPrefix(key, "s:") || !strings.HasSuffix(key, ":c1 2\n") {
		t.Errorf("the command was told %q", key)
	}
	// The reply hangs. Input for the turn, then the end of it.
	waitFor(t, func() string { return s.does(0, "show", "s", "--log") }, "text-delta")
	if got := s.does(0, "send", "s", "Hurry.", "--steer", "--id", "steer", "--json"); !strings.Contains(got, `"by":"outcrop worker, process `) {
		t.Error(got)
	}
	if got := s.does(0, "send", "s", "--cancel"); !strings.Contains(got, "the turn ends, 1 pending message dropped") {
		t.Error(got)
	}
	out.until(t, "s: turn aborted\n")

	s.does(0, "send", "s", "Now the other.")
	waitFor(t, func() string { return s.does(0, "send", "s", "--questions", "--json") }, `"call":"c2"`)
	s.does(0, "send", "s", "--refuse", "c2", "not like this")
	out.until(t, "s: turn completed\n")
	if _, err := os.Stat(filepath.Join(s.dir, "made.txt")); err == nil {
		t.Error("a call that was refused ran")
	}

	for path, want := range map[string]string{"/healthz": `"ok":true`, "/readyz": `"sync":"`, "/metrics": `outcrop_turns_total{reason="completed"} 1`} {
		code, body := ask(t, address+path)
		if code != 200 || !strings.Contains(body, want) {
			t.Errorf("%s: %d, no %s in %s", path, code, want, body)
		}
		if path != "/metrics" && !json.Valid([]byte(body)) {
			t.Errorf("%s: %s", path, body)
		}
	}
	if _, body := ask(t, address+"/metrics"); !strings.Contains(body, `outcrop_store_duration_seconds_count{op="append",outcome="ok"}`) {
		t.Error("what the store does is not counted")
	}
	end()
	if got := s.does(0, "verify", "s"); !strings.Contains(got, "ok") {
		t.Error(got)
	}
}

// waitFor asks again until the answer holds what.
func waitFor(t *testing.T, answer func() string, what string) string {
	t.Helper()
	late := time.Now().Add(3 * time.Minute)
	for {
		got := answer()
		if strings.Contains(got, what) {
			return got
		}
		if time.Now().After(late) {
			t.Fatalf("no %q in %q", what, got)
		}
	}
}

func ask(t *testing.T, url string) (int, string) {
	t.Helper()
	r, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, string(b)
}

func TestASessionIsTakenFromAWorkerThatLives(t *testing.T) {
	s := newSite(t, map[string]string{"hang.jsonl": `{"script":1,"model":"m"}` + "\n" + `{"text":"Half of it","cut":"hang","after":1}` + "\n",
		"reply.jsonl": `{"script":1,"model":"m2"}` + "\n" + `{"text":"Mine."}` + "\n"})
	_, errOut, end := s.works("--script", "hang.jsonl", "--grace", "100ms")
	errOut.until(t, "working on")
	s.does(0, "send", "--new", "--session", "s", "Go.")
	waitFor(t, func() string { return s.does(0, "show", "s", "--log") }, "text-delta")
	if got := s.does(4, "run", "--session", "s", "--script", "reply.jsonl", "Me."); !strings.Contains(got, "in use by") {
		t.Error(got)
	}
	if got := s.does(0, "run", "--session", "s", "--take-over", "--script", "reply.jsonl", "Me."); !strings.Contains(got, "Mine.") {
		t.Error(got)
	}
	end()
	if got := s.does(0, "show", "s", "--log", "--json"); !strings.Contains(got, `"reason":"handed over"`) {
		t.Error(got)
	}
}
