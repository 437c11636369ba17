//go:build unix

package shell

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/outcrop-dev/outcrop/message"
	"github.com/outcrop-dev/outcrop/tool"
)

func call(t *testing.T, ctx context.Context, o Options, command string) (text string, out tool.Outcome) {
	t.Helper()
	tl, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	r, err := tool.NewRegistry(tool.Options{}, tl)
	if err != nil {
		t.Fatal(err)
	}
	args, err := json.Marshal(map[string]any{"command": command})
	if err != nil {
		t.Fatal(err)
	}
	tl, c, bad := r.Check("c1", "shell", string(args))
	if bad != nil {
		t.Fatal(bad)
	}
	out = r.Run(ctx, tl, c)
	return message.PlainText(out.Content), out
}

func TestShellReturnsOutputAndExitCode(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, command, text, meta string }{
		{"output", "ls", "a.txt\n", `{"exitCode":0}`},
		{"errors and output in their order", "echo one; echo two >&2; echo three", "one\ntwo\nthree\n", `{"exitCode":0}`},
		{"exit code", "echo no; exit 3", "no\n[exit code 3]", `{"exitCode":3}`},
		{"nothing", "true", "(no output)", `{"exitCode":0}`},
		{"no newline at the end", "printf x; exit 1", "x\n[exit code 1]", `{"exitCode":1}`},
		{"no input", "cat", "(no output)", `{"exitCode":0}`},
		{"a signal", "kill -TERM $$", "[ended by signal: terminated]", `{"exitCode":-1,"signal":"terminated"}`},
		{"not UTF-8", `printf 'a\377b'`, "a\uFFFDb", `{"exitCode":0}`},
		{"unknown command", "no-such-command-here 2>/dev/null", "[exit code 127]", `{"exitCode":127}`},
		{"a process in the background is killed", "sleep 100000 & echo left", "left\n", `{"exitCode":0}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			text, out := call(t, context.Background(), Options{Dir: dir}, c.command)
			if text != c.text || string(out.Meta) != c.meta || out.IsError {
				t.Errorf("got %q %s %v, want %q %s", text, out.Meta, out.IsError, c.text, c.meta)
			}
		})
	}
}

func TestShellGivesTheEnvironmentItIsGiven(t *testing.T) {
	text, _ := call(t, context.Background(), Options{Dir: t.TempDir(), Env: []string{"A=1"}}, `echo "$A ${HOME-none}"`)
	if text != "1 none\n" {
		t.Errorf("%q", text)
	}
}

func TestACommandIsToldByItsCall(t *testing.T) {
	tl, err := New(Options{Dir: t.TempDir(), Env: []string{"A=1"}})
	if err != nil {
		t.Fatal(err)
	}
	got, err := tl.Run(t.Context(), tool.Call{ID: "c", Key: "s1:9:c", Epoch: 3, Arguments: []byte(`{"command":"echo $A $OUTCROP_CALL_KEY $OUTCROP_EPOCH"}`)})
	if err != nil || message.PlainText(got.Content) != "1 s1:9:c 3\n" {
		t.Errorf("%q, %v", message.PlainText(got.Content), err)
	}
}

func TestShellTimeOutKillsTheWholeGroup(t *testing.T) {
	text, out := call(t, context.Background(), Options{Dir: t.TempDir(), Timeout: 50 * time.Millisecond}, "echo begun; sleep 100000 & sleep 100000")
	if text != "begun\n[killed after 50ms]" && text != "[killed after 50ms]" {
		t.Errorf("%q", text)
	}
	if !out.IsError || string(out.Meta) != `{"exitCode":-1,"timedOut":true}` {
		t.Errorf("%v %s", out.IsError, out.Meta)
	}
}

func TestShellCancelKillsTheWholeGroup(t *testing.T) {
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	held := make(chan error, 1)
	go func() {
		// Opens when the command has opened its side, and ends when nobody
		// in the group holds it any more.
		f, err := os.Open(fifo)
		cancel()
		if err == nil {
			_, err = io.ReadAll(f)
			f.Close()
		}
		held <- err
	}()
	text, out := call(t, ctx, Options{Dir: dir}, "exec 3>fifo; (sleep 100000; true) & sleep 100000")
	if out.Err == nil || out.Err.Code != "ABORTED" {
		t.Errorf("%q %+v", text, out.Err)
	}
	if err := <-held; err != nil {
		t.Error(err)
	}
}

func TestShellRefusesCommandsThatMakeNoSense(t *testing.T) {
	for _, args := range []string{`{"command":"  "}`, `{"command":"a\u0000b"}`, `{"command":"ls","timeout":-1}`, `{"command":"ls","timeout":999999}`, `{"command":"ls","timeout":9223372036854775807}`} {
		tl, err := New(Options{Dir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		_, err = tl.Run(context.Background(), tool.Call{Name: "shell", Arguments: json.RawMessage(args)})
		var coded *tool.Error
		if e, ok := err.(*tool.Error); ok {
			coded = e
		}
		if coded == nil || coded.Code != "INVALID_ARGS" {
			t.Errorf("%s: %v", args, err)
		}
	}
}

func TestShellPreviewIsTheCompleteCommand(t *testing.T) {
	tl, err := New(Options{Dir: "/srv/demo"})
	if err != nil {
		t.Fatal(err)
	}
	pre, err := tl.(tool.Previewer).Preview(context.Background(), tool.Call{Arguments: json.RawMessage(`{"command":"rm -r x &&\n echo"}`)})
	if err != nil || pre.Body != "rm -r x &&\n echo" || pre.Dir != "/srv/demo" {
		t.Errorf("%+v %v", pre, err)
	}
	if !strings.Contains(tl.Description(), "not confined") {
		t.Error("the description does not say that it is not confined")
	}
}

// Of any stream the capture keeps both ends and counts what is between.
func TestCaptureKeepsBothEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := capture{half: rapid.IntRange(8, 64).Draw(t, "half")}
		all := []byte(strings.Repeat("0123456789abcdeé", 16))[:rapid.IntRange(0, 250).Draw(t, "total")]
		for rest := all; len(rest) > 0; {
			n := min(rapid.IntRange(1, 100).Draw(t, "piece"), len(rest))
			c.add(rest[:n])
			rest = rest[n:]
		}
		text := c.text()
		if !utf8.ValidString(text) {
			t.Fatal("not UTF-8")
		}
		if len(all) <= 2*c.half {
			if text != strings.ToValidUTF8(string(all), "\uFFFD") {
				t.Fatal("a stream that fits is not kept as it is")
			}
			return
		}
		dropped := len(all) - 2*c.half
		head, tail, ok := strings.Cut(text, fmt.Sprintf("\n[... %d bytes of output not kept ...]\n", dropped))
		if !ok {
			t.Fatalf("%d bytes were dropped; the text is %q", dropped, text)
		}
		// At the gap a character that would be cut is left out; the end of
		// the stream itself may be one.
		first, last := all[:c.half], all[len(all)-c.half:]
		if !bytes.HasPrefix(first, []byte(head)) || len(first)-len(head) >= utf8.UTFMax {
			t.Fatalf("head %q of %q", head, first)
		}
		if want := strings.ToValidUTF8(string(last), "\uFFFD"); !strings.HasSuffix(want, tail) || len(want)-len(tail) > len("\uFFFD") {
			t.Fatalf("tail %q of %q", tail, want)
		}
	})
}
