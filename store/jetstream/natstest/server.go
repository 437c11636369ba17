package natstest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// here is a server in this process.
type here struct{ s *server.Server }

func startHere(conf string) (runner, error) {
	s, err := newServer(conf)
	if err != nil {
		return nil, err
	}
	go s.Start()
	if !s.ReadyForConnections(readyWithin) {
		s.Shutdown()
		return nil, errors.New("it takes no connections")
	}
	return &here{s}, nil
}

func newServer(conf string) (*server.Server, error) {
	o, err := server.ProcessConfigFile(conf)
	if err != nil {
		return nil, err
	}
	o.NoLog, o.NoSigs = true, true
	return server.NewServer(o)
}

func (h *here) kill() error {
	h.s.Shutdown()
	h.s.WaitForShutdown()
	return nil
}

func (h *here) pause(bool) error {
	return errors.New("natstest: only a process can be stopped: set Options.Processes")
}

// childEnv names the configuration of the server that a process is.
const childEnv = "OUTCROP_NATSTEST_CONF"

// Main runs the tests of a package, or the server that this process was started
// to be. It is for TestMain.
func Main(m *testing.M) {
	Child()
	os.Exit(m.Run())
}

// Child becomes a server, and does not return, in a process that was started to
// be one.
func Child() {
	conf := os.Getenv(childEnv)
	if conf == "" {
		return
	}
	s, err := newServer(conf)
	if err != nil {
		fmt.Fprintln(os.Stderr, "natstest:", err)
		os.Exit(1)
	}
	go s.Start()
	if !s.ReadyForConnections(readyWithin) {
		os.Exit(1)
	}
	os.Stdout.WriteString("ready\n")
	// Who started it holds the other end: it ends when they do.
	io.Copy(io.Discard, os.Stdin)
	os.Exit(0)
}

// process is a server of its own.
type process struct {
	cmd *exec.Cmd
	in  io.WriteCloser
}

func startProcess(conf string) (runner, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), childEnv+"="+conf)
	var said bytes.Buffer
	cmd.Stderr = &said
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	ready := make(chan error, 1)
	go func() {
		_, err := io.ReadFull(out, make([]byte, len("ready\n")))
		ready <- err
	}()
	p := &process{cmd, in}
	select {
	case err = <-ready:
	case <-time.After(readyWithin):
		err = errors.New("it takes no connections")
	}
	if err != nil {
		p.kill()
		return nil, fmt.Errorf("%w: %s", err, said.String())
	}
	return p, nil
}

func (p *process) kill() error {
	err := p.cmd.Process.Kill()
	p.cmd.Wait() // that it was killed is no news
	p.in.Close()
	return err
}
