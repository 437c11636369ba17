package chat_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/outcrop-dev/outcrop/internal/chat"
	"github.com/outcrop-dev/outcrop/internal/cli"
)

// The tests of this file drive the whole program in a real terminal, tmux. Each
// has a tmux server of its own.

// asProgram makes the test binary the program: it is what tmux runs.
const asProgram = "OUTCROP_TEST_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		os.Exit(cli.Main(context.Background(), os.Args[1:], cli.Env{Program: "outcrop"}))
	}
	os.Exit(m.Run())
}

// pane is one terminal with a program in it.
type pane struct {
	t      *testing.T
	dir    string
	socket string
}

const patience = 60 * time.Second

func newPane(t *testing.T, cols, rows int, script ...string) *pane {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("tmux is not installed: .ci/run installs it")
		}
		t.Skip("tmux is not installed")
	}
	p := &pane{t: t, dir: t.TempDir()}
	p.socket = filepath.Join(p.dir, "tmux")
	if err := os.Mkdir(filepath.Join(p.dir, "work"), 0o700); err != nil {
		t.Fatal(err)
	}
	p.file("s.jsonl", strings.Join(script, "\n")+"\n")
	p.file("tmux.conf", "set -g default-terminal screen-256color\nset -g escape-time 0\nset -g status off\n")
	p.tmux("-f", filepath.Join(p.dir, "tmux.conf"), "new-session", "-d", "-s", "t", "-x", strconv.Itoa(cols), "-y", strconv.Itoa(rows),
		"-c", filepath.Join(p.dir, "work"), "env", "-i", "PATH="+os.Getenv("PATH"), "HOME="+p.dir, "OUTCROP_HOME="+filepath.Join(p.dir, "home"),
		"TERM=screen-256color", "PS1=$ ", asProgram+"=1", "sh")
	t.Cleanup(func() { _ = exec.Command("tmux", "-S", p.socket, "kill-server").Run() })
	p.sees("$")
	return p
}

func (p *pane) file(name, text string) {
	p.t.Helper()
	if err := os.WriteFile(filepath.Join(p.dir, name), []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

func (p *pane) tmux(args ...string) string {
	p.t.Helper()
	var errOut bytes.Buffer
	cmd := exec.Command("tmux", append([]string{"-S", p.socket}, args...)...)
	cmd.Stderr = &errOut
	out, err := cmd.Output()
	if err != nil {
		p.t.Fatalf("tmux %s: %v: %s", strings.Join(args, " "), err, errOut.String())
	}
	return string(out)
}

// start types the command into the shell.
func (p *pane) start(args string) {
	p.t.Helper()
	exe, err := os.Executable()
	if err != nil {
		p.t.Fatal(err)
	}
	p.line("clear; " + exe + " chat --script ../s.jsonl " + args + "; echo left with $?")
	p.sees("/help lists the commands", ">\n")
}

func (p *pane) keys(keys ...string) {
	p.t.Helper()
	p.tmux(append([]string{"send-keys", "-t", "t"}, keys...)...)
}

func (p *pane) text(s string) { p.keys("-l", s) }

func (p *pane) line(s string) {
	p.t.Helper()
	p.text(s)
	p.keys("Enter")
}

// shows is everything in the terminal, with its scrollback.
func (p *pane) shows() string {
	p.t.Helper()
	return strings.TrimRight(p.tmux("capture-pane", "-p", "-S", "-", "-t", "t"), "\n") + "\n"
}

// sees looks at the terminal until it shows all of the texts.
func (p *pane) sees(texts ...string) string {
	p.t.Helper()
	return p.until(fmt.Sprintf("%q", texts), func(all string) bool {
		for _, text := range texts {
			if !strings.Contains(all, text) {
				return false
			}
		}
		return true
	})
}

// idle waits for the end of a turn whose answer has the text.
func (p *pane) idle(text string) {
	p.t.Helper()
	p.until("the end of "+text, func(all string) bool {
		_, after, found := strings.Cut(all, text)
		return found && strings.Contains(after, "\n>\n") && !strings.ContainsAny(after, strings.Join(chat.Spin[:], ""))
	})
}

func (p *pane) until(what string, wanted func(all string) bool) string {
	p.t.Helper()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for end := time.Now().Add(patience); time.Now().Before(end); <-again.C {
		if all := p.shows(); wanted(all) {
			return all
		}
	}
	p.t.Fatalf("waiting for %s, the terminal shows:\n%s", what, p.shows())
	return ""
}

func TestTmuxAnAnswerStreamsAndStaysInTheScrollback(t *testing.T) {
	p := newPane(t, 80, 10, `{"script":1,"model":"m","piece":3,"window":0}`,
		`{"text":"# Title\n\n- one\n- two\n\nA **bold** end.","tools":[{"name":"list","args":{}}]}`, `{"text":"`+strings.Repeat(`line\n\n`, 30)+`the end"}`)
	p.start("")
	p.line("go")
	all := p.sees("the end\n\n>")
	for _, want := range []string{"> go\n", "Title\n", "- one\n- two\n", "A bold end.\n", "✓ list"} {
		if strings.Count(all, want) != 1 {
			t.Errorf("%q is there %d times:\n%s", want, strings.Count(all, want), all)
		}
	}
	if n := strings.Count(all, "line\n"); n != 30 {
		t.Errorf("%d lines of 30:\n%s", n, all)
	}
	p.keys("C-d")
	p.sees("| outcrop chat --session ", "left with 0")
	p.line("echo the shell is back")
	p.sees("\nthe shell is back\n")
}

func TestTmuxCtrlCStopsThenLeaves(t *testing.T) {
	p := newPane(t, 80, 24, `{"text":"The beginning of it","cut":"hang","after":1}`)
	p.start("")
	p.line("go")
	p.sees("The beginnin")
	p.line("and more")
	p.sees("queued: and more")
	p.keys("C-c")
	p.sees("(cut off here)", "stopped", "> and more")
	p.keys("C-c")
	p.sees("left with 0")
	p.keys("Up")
	p.line("echo ok")
}

func TestTmuxApproval(t *testing.T) {
	p := newPane(t, 80, 30, `{"tools":[{"name":"shell","args":{"command":"echo \u001b[31mred >out.txt"}}]}`,
		`{"tools":[{"name":"shell","args":{"command":"echo no >out2.txt"}}]}`, `{"text":"Done."}`)
	p.start("")
	p.line("go")
	p.sees(`| echo \e[31mred >out.txt`, "[y] once")
	p.text("y")
	p.until("the second question", func(all string) bool {
		return strings.Contains(all, "yes, once") && strings.Contains(all, "| echo no >out2.txt") && strings.Contains(all, "[y] once")
	})
	p.keys("Enter")
	p.sees("Done.")
	if _, err := os.Stat(filepath.Join(p.dir, "work", "out.txt")); err != nil {
		t.Error("what was approved was not run:", err)
	}
	if _, err := os.Stat(filepath.Join(p.dir, "work", "out2.txt")); !os.IsNotExist(err) {
		t.Error("what was refused was run:", err)
	}
}

func TestTmuxASteerWhileAToolRuns(t *testing.T) {
	p := newPane(t, 80, 24, `{"tools":[{"name":"shell","args":{"command":"until [ -e go ]; do sleep 0.05; done"}}]}`,
		`{"expect":{"contains":"the other way"},"text":"As you say."}`)
	p.start("--yes")
	p.line("go")
	p.sees("running")
	p.line("the other way")
	p.sees("queued: the other way")
	p.file("work/go", "")
	p.sees("> the other way", "As you say.")
}

func TestTmuxASessionGoesOnAfterKill9(t *testing.T) {
	p := newPane(t, 80, 30, `{"tools":[{"name":"shell","args":{"command":"echo $PPID >pid; until [ -e never ]; do sleep 0.05; done"}}]}`)
	p.start("--yes --store jsonl:../store")
	p.line("go")
	pid := ""
	p.until("the tool to run", func(string) bool {
		b, err := os.ReadFile(filepath.Join(p.dir, "work", "pid"))
		pid = strings.TrimSpace(string(b))
		return err == nil && pid != ""
	})
	p.tmux("run-shell", "-t", "t", "kill -9 "+pid)
	p.sees("left with 137")
	p.text("stty sane; echo sane$((1+1))") // what a person does after that
	p.keys("C-j")
	p.sees("sane2") // an Enter before would not end a line
	p.file("s.jsonl", `{"script":1,"model":"other"}`+"\n"+`{"expect":{"contains":"no result was recorded"},"text":"I look first."}`+"\n")
	p.start("--store jsonl:../store --session last")
	p.sees("> go", "turn 1 was cut off when the program that ran it stopped; outcome unknown: shell", "/continue goes on from there")
	p.line("/continue")
	p.sees("I look first.")
	p.keys("C-d")
	p.until("the end", func(all string) bool { return strings.Contains(all, "left with 0") })
	p.file("work/never", "") // for the tool, should it have outlived the program
}

func TestTmuxAttachPasteAndHistory(t *testing.T) {
	p := newPane(t, 80, 24, `{"expect":{"contains":"alpha beta"},"text":"I have it."}`, `{"expect":{"contains":"two"},"text":"Both lines."}`)
	p.file("work/alpha.txt", "alpha beta\n")
	p.start("")
	p.text("look at @al")
	p.keys("Tab")
	p.sees("> look at @alpha.txt")
	p.keys("Enter")
	p.sees("I have it.")
	p.tmux("set-buffer", "-b", "b", "one\ntwo\n")
	p.tmux("paste-buffer", "-p", "-b", "b", "-t", "t")
	p.sees("> one\n  two")
	p.keys("Enter")
	p.sees("Both lines.")
	p.keys("Up", "Up", "Up")
	p.until("the first message", func(all string) bool { return strings.HasSuffix(lastLines(all, 2), "> look at @alpha.txt\n") })
	p.keys("C-u")
	p.text("漢字")
	p.keys("M-Enter")
	p.text("zwei")
	p.until("two lines", func(all string) bool { return strings.HasSuffix(lastLines(all, 3), "> 漢字\n  zwei\n") })
}

// lastLines are n lines of what a terminal shows, without the line of the state.
func lastLines(all string, n int) string {
	lines := strings.SplitAfter(all, "\n")
	lines = lines[:max(len(lines)-2, 0)]
	return strings.Join(lines[max(len(lines)-n, 0):], "")
}

func TestTmuxAResizeKeepsWhatStandsAbove(t *testing.T) {
	p := newPane(t, 90, 24, `{"text":"An answer that is short."}`, `{"tools":[{"name":"write","args":{"path":"x","content":"y"}}]}`, `{"text":"Done."}`)
	p.start("")
	p.line("first")
	p.sees("An answer that is short.\n\n>")
	p.line("second")
	p.sees("[y] once")
	for _, size := range [][2]string{{"60", "24"}, {"40", "20"}, {"120", "30"}, {"80", "12"}} {
		p.tmux("resize-window", "-t", "t", "-x", size[0], "-y", size[1])
		p.until("one question at "+size[0], func(all string) bool {
			return strings.Count(all, "[y] once") == 1 && strings.Count(all, "  asks  ") == 1 &&
				strings.Count(all, "An answer that is short.") == 1 && strings.Count(all, "  | +y") == 1
		})
	}
	p.text("n")
	p.sees("Done.")
}

func TestTmuxANarrowTerminalAndNoColour(t *testing.T) {
	p := newPane(t, 40, 12, `{"text":"A **bold** answer that does not fit into one line."}`)
	p.line("export NO_COLOR=1")
	p.start("")
	p.line("go")
	p.sees("A **bold** answer that does not fit\ninto one line.\n\n>")
	if raw := p.tmux("capture-pane", "-p", "-e", "-t", "t"); strings.Contains(raw, "\x1b[") {
		t.Errorf("colours with NO_COLOR: %q", raw)
	}
}

func TestTmuxWithoutATerminalItSaysWhatToUse(t *testing.T) {
	p := newPane(t, 80, 24, `{"text":"x"}`)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"TERM=dumb " + exe + " chat --script ../s.jsonl", exe + " chat --script ../s.jsonl </dev/null", exe + " chat --script ../s.jsonl | cat"} {
		p.line("clear; " + command)
		p.sees("outcrop: chat needs a terminal: use run\n")
	}
}
