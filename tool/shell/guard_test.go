//go:build unix

package shell

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/outcrop-dev/outcrop/tool"
)

// runFor makes this test binary the program that runs one command and is killed.
const runFor = "OUTCROP_TEST_SHELL_COMMAND"

func TestMain(m *testing.M) {
	command, ok := os.LookupEnv(runFor)
	if !ok {
		os.Exit(m.Run())
	}
	tl, err := New(Options{Dir: "."})
	if err == nil {
		var args []byte
		if args, err = json.Marshal(map[string]string{"command": command}); err == nil {
			_, err = tl.Run(context.Background(), tool.Call{Name: "shell", Arguments: args})
		}
	}
	if err != nil {
		os.Stderr.WriteString(err.Error())
	}
	os.Exit(1)
}

func TestACommandDiesWithAProgramThatIsKilled(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	program := exec.Command(os.Args[0])
	program.Dir = dir
	// What runs in the group holds the pipe, the child in the background too.
	program.Env = append(os.Environ(), runFor+"=exec 3>fifo; echo begun >&3; (sleep 100000; true) & sleep 100000; true")
	var said bytes.Buffer
	program.Stderr = &said
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(filepath.Join(dir, "fifo"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	begun := make([]byte, len("begun\n"))
	if _, err := io.ReadFull(f, begun); err != nil {
		t.Fatal(err)
	}
	if err := program.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = program.Wait()
	// Ends when nobody holds the pipe any more.
	if rest, err := io.ReadAll(f); err != nil || len(rest) > 0 {
		t.Errorf("%q %v", rest, err)
	}
	if said.Len() > 0 {
		t.Errorf("the program said %q", said.String())
	}
}

// A terminal belongs to a session; a command is the leader of a new one.
func TestACommandHasASessionOfItsOwn(t *testing.T) {
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	sid := make(chan string, 1)
	go func() {
		defer cancel()
		b, err := os.ReadFile(fifo)
		if err != nil {
			sid <- err.Error()
			return
		}
		pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
		if err != nil {
			sid <- err.Error()
			return
		}
		if got, err := unix.Getsid(pid); err != nil || got != pid {
			sid <- strconv.Itoa(got)
			return
		}
		sid <- "its own"
	}()
	call(t, ctx, Options{Dir: dir}, "echo $$ >fifo; sleep 100000; true")
	if got := <-sid; got != "its own" {
		t.Errorf("session %s", got)
	}
}

func TestTheGuardIsGoneWhenACallEnds(t *testing.T) {
	call(t, context.Background(), Options{Dir: t.TempDir()}, "true")
	// No child of this program is left, so there is nothing to wait for.
	if pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); err != syscall.ECHILD {
		t.Errorf("child %d, %v", pid, err)
	}
}

func TestTheErrorForADirectoryThatIsGoneSaysSo(t *testing.T) {
	_, out := call(t, context.Background(), Options{Dir: filepath.Join(t.TempDir(), "gone")}, "true")
	if len(out.Content) != 1 || !strings.Contains(out.Content[0].Text, "the workspace directory cannot be entered") {
		t.Errorf("%+v", out.Content)
	}
}

// The floor is what the system takes to start the same shell.
func BenchmarkCall(b *testing.B) {
	tl, err := New(Options{Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	c := tool.Call{Name: "shell", Arguments: json.RawMessage(`{"command":"true"}`)}
	b.Run("tool", func(b *testing.B) {
		for b.Loop() {
			if _, err := tl.Run(context.Background(), c); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("floor", func(b *testing.B) {
		for b.Loop() {
			if err := exec.Command(shellPath, shellFlag, "true").Run(); err != nil {
				b.Fatal(err)
			}
		}
	})
}
