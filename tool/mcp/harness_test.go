package mcp

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/outcrop-dev/outcrop/message"
	"github.com/outcrop-dev/outcrop/tool"
)

// short are limits that tests can wait for.
var short = times{connect: 20 * time.Second, grace: 300 * time.Millisecond, probe: 300 * time.Millisecond, stuck: 300 * time.Millisecond, first: time.Second}

// bench is a set of servers with its registry, its log and what the servers
// write to their standard error.
type bench struct {
	t    *testing.T
	set  *Set
	errs []error
	reg  *tool.Registry
	log  *watched
	said *watched
	now  time.Time
}

// connect brings servers up, and down at the end of the test, when none of
// their goroutines may be left.
func connect(t *testing.T, o Options, servers ...Server) *bench {
	t.Helper()
	b := &bench{t: t, log: newWatched(), said: newWatched(), now: time.Unix(1_800_000_000, 0)}
	if o.times == (times{}) {
		o.times = short
	}
	o.Logger = slog.New(slog.NewTextHandler(b.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	o.Stderr = b.said
	o.Now = func() time.Time { return b.now }
	b.set, b.errs = Connect(t.Context(), servers, o)
	t.Cleanup(func() {
		if err := b.set.Close(); err != nil {
			t.Error(err)
		}
		noGoroutines(t)
	})
	var err error
	if b.reg, err = tool.NewRegistry(tool.Options{}, b.set.Tools()...); err != nil {
		t.Fatal(err)
	}
	return b
}

// up is connect for servers that must come up.
func up(t *testing.T, servers ...Server) *bench {
	t.Helper()
	b := connect(t, Options{}, servers...)
	if len(b.errs) > 0 {
		t.Fatalf("%v\nstderr: %s", b.errs, b.said)
	}
	return b
}

// call runs a call as an agent does.
func (b *bench) call(ctx context.Context, name, args string) tool.Outcome {
	b.t.Helper()
	tl, call, bad := b.reg.Check("call-1", name, args)
	if bad != nil {
		b.t.Fatal(bad)
	}
	call.Key = "session/7/call-1"
	return b.reg.Run(ctx, tl, call)
}

// text is the text of a call that must succeed.
func (b *bench) text(name, args string) string {
	b.t.Helper()
	out := b.call(b.t.Context(), name, args)
	if out.IsError {
		b.t.Fatalf("%s: %s", name, message.PlainText(out.Content))
	}
	return message.PlainText(out.Content)
}

// fails runs a call that must fail with a code, "" for an error of the tool.
func (b *bench) fails(name, args, code string, says ...string) {
	b.t.Helper()
	b.failed(b.call(b.t.Context(), name, args), code, says...)
}

func (b *bench) failed(out tool.Outcome, code string, says ...string) {
	b.t.Helper()
	got := ""
	if out.Err != nil {
		got = out.Err.Code
	}
	text := message.PlainText(out.Content)
	if !out.IsError || got != code {
		b.t.Fatalf("error %v, code %q, want %q: %s", out.IsError, got, code, text)
	}
	for _, s := range says {
		if !strings.Contains(text, s) {
			b.t.Errorf("%q does not say %q", text, s)
		}
	}
}

// watched is a text that can be waited for.
type watched struct {
	mu   sync.Mutex
	more *sync.Cond
	b    bytes.Buffer
}

var _ io.Writer = (*watched)(nil)

func newWatched() *watched {
	w := &watched{}
	w.more = sync.NewCond(&w.mu)
	return w
}

func (w *watched) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.more.Broadcast()
	return w.b.Write(p)
}

func (w *watched) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.String()
}

// await waits until the text holds the pattern, and returns its first group.
func (w *watched) await(pattern string) string {
	re := regexp.MustCompile(pattern)
	w.mu.Lock()
	defer w.mu.Unlock()
	for {
		if m := re.FindSubmatch(w.b.Bytes()); m != nil {
			return string(m[len(m)-1])
		}
		w.more.Wait()
	}
}

var client = regexp.MustCompile(`outcrop/tool/mcp\.|streamableClientConn|\(\*ioConn\)|newIOConn|ClientSession`)

// noGoroutines waits until no goroutine runs code of this package or of the
// SDK's client.
func noGoroutines(t *testing.T) {
	t.Helper()
	stacks := make([]byte, 1<<20)
	for tries := 0; ; tries++ {
		left := ""
		for g := range strings.SplitSeq(string(stacks[:runtime.Stack(stacks, true)]), "\n\n") {
			// Tests run in goroutines too, and so do the servers of their HTTP.
			if client.MatchString(g) && !strings.Contains(g, "_test.go") {
				left += g + "\n\n"
			}
		}
		if left == "" {
			return
		}
		if tries == 5000 {
			t.Errorf("goroutines are left:\n%s", left)
			return
		}
		time.Sleep(time.Millisecond)
	}
}
