package mcp

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/outcrop-dev/outcrop/tool/internal/group"
)

// process is a server that runs as a program. It has a process group of its
// own, of which nothing stays when the program ends or this one is gone.
type process struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout *os.File
	stderr *os.File
	exited chan struct{} // closed when the program has ended and was waited for
	said   *stderrLog
	silent chan struct{} // closed when its standard error has ended
	ending sync.Once
}

// start runs the program. Its output is read through pipes of our own, so that
// waiting for it does not wait for what it left behind.
func start(cfg Server, o Options, log *slog.Logger) (*process, error) {
	p := &process{exited: make(chan struct{}), silent: make(chan struct{}), said: &stderrLog{name: cfg.Name, w: o.Stderr, log: log}}
	p.cmd = exec.Command(cfg.Command[0], cfg.Command[1:]...)
	p.cmd.Dir, p.cmd.Env = cfg.Dir, cfg.Env
	group.Own(p.cmd)
	var files [4]*os.File // ours and the program's, of stdout and of stderr
	var err error
	if files[0], files[1], err = os.Pipe(); err == nil {
		files[2], files[3], err = os.Pipe()
	}
	if err == nil {
		p.cmd.Stdout, p.cmd.Stderr = files[1], files[3]
		if p.stdin, err = p.cmd.StdinPipe(); err == nil {
			err = p.cmd.Start()
		}
	}
	closeFile(files[1])
	closeFile(files[3])
	if err != nil {
		closeFile(files[0])
		closeFile(files[2])
		if p.stdin != nil {
			_ = p.stdin.Close() // it may be closed already
		}
		return nil, notStarted(cfg.Command[0], err)
	}
	p.stdout, p.stderr = files[0], files[2]
	guard := watch(p.cmd, cfg.Name, log)
	go func() {
		p.said.fill(p.stderr)
		close(p.silent)
	}()
	go func() {
		_ = group.Reap(p.cmd) // how it ended is in ProcessState
		if guard != nil {
			guard.Release()
		}
		close(p.exited)
	}()
	return p, nil
}

// watch sees to it that the program ends when this one is killed outright: one
// that hangs in a call does not hear that its input has ended. A program runs
// without a guard where there is no shell to be one.
func watch(cmd *exec.Cmd, name string, log *slog.Logger) *group.Guard {
	g, err := group.NewGuard()
	if err == nil {
		if err = g.Watch(cmd); err == nil {
			return g
		}
		g.Release()
	}
	log.Debug("mcp server without a guard: it may outlive a kill of this program", "server", name, "err", err)
	return nil
}

func closeFile(f *os.File) {
	if f != nil {
		_ = f.Close() // a pipe, nothing is lost
	}
}

// errStart says that a program could not be started at all.
type errStart struct{ text string }

func (e *errStart) Error() string { return e.text }

func notStarted(program string, err error) error {
	if errors.Is(err, exec.ErrNotFound) {
		return &errStart{"there is no program " + program}
	}
	return &errStart{"it cannot be started: " + err.Error()}
}

// stop ends the program: its input is closed, and its group killed when it has
// not ended after the grace time. It is an error when it is still there after
// that.
func (p *process) stop(grace time.Duration) (err error) {
	p.ending.Do(func() {
		_ = p.stdin.Close() // it may be gone already
		if !within(p.exited, grace) {
			group.Kill(p.cmd)
			if !within(p.exited, max(grace, time.Second)) {
				err = errors.New("the program does not end when it is killed")
			}
		}
		// What left the group may still hold the pipes.
		closeFile(p.stdout)
		closeFile(p.stderr)
		<-p.silent
	})
	return err
}

// within reports whether something ends in time.
func within(end <-chan struct{}, limit time.Duration) bool {
	t := time.NewTimer(limit)
	defer t.Stop()
	select {
	case <-end:
		return true
	case <-t.C:
		return false
	}
}

// how says how the program ended, "" while it runs.
func (p *process) how() string {
	select {
	case <-p.exited:
		return p.cmd.ProcessState.String()
	default:
		return ""
	}
}

const (
	maxStderr     = 1 << 20 // bytes that are logged of one start
	maxStderrLine = 2 << 10
)

// stderrLog takes a program's standard error: it goes to the logger at debug
// level and to the writer, in lines and within bounds. Nothing that is written
// blocks the program.
type stderrLog struct {
	name string
	w    io.Writer // or nil
	log  *slog.Logger

	mu   sync.Mutex
	last string // the last line that says something
}

func (s *stderrLog) fill(r io.Reader) {
	lines := bufio.NewReaderSize(r, maxStderrLine)
	left := maxStderr
	for {
		line, err := lines.ReadSlice('\n')
		if len(line) > 0 && left > 0 {
			left -= len(line)
			s.line(printable(string(bytes.TrimRight(line, "\r\n"))))
			if left <= 0 {
				s.log.Debug("mcp server writes too much to its standard error; the rest is not shown", "server", s.name)
			}
		}
		// A line that is too long comes in pieces.
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return
		}
	}
}

func (s *stderrLog) line(text string) {
	if strings.TrimSpace(text) == "" {
		return
	}
	s.mu.Lock()
	s.last = text
	s.mu.Unlock()
	s.log.LogAttrs(context.Background(), slog.LevelDebug, "mcp server says", slog.String("server", s.name), slog.String("stderr", text))
	if s.w != nil {
		_, _ = io.WriteString(s.w, s.name+": "+text+"\n") // whoever reads along may have gone
	}
}

// lastLine is the last thing that the program said, cut short.
func (s *stderrLog) lastLine() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return clip(strings.TrimSpace(s.last), 200)
}

// printable is a line without what would act on a terminal.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r != '\t' && !unicode.IsPrint(r) {
			return unicode.ReplacementChar
		}
		return r
	}, s)
}

// clip cuts a text after n code points.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	if r := []rune(s); len(r) > n {
		return string(r[:n]) + "..."
	}
	return s
}
