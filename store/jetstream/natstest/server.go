package natstest

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// here is a server in this process.
type here struct {
	s    *server.Server
	said *tail
}

func startHere(conf string) (runner, error) {
	h := &here{said: &tail{}}
	var err error
	if h.s, err = serve(conf, h.said); err != nil {
		if h.s != nil {
			h.kill()
		}
		return nil, fmt.Errorf("%w; %s", err, h.said)
	}
	return h, nil
}

// errPort: a port that was free is another program's now.
var errPort = errors.New("a port of it is in use")

// listening is what servers say when they cannot listen.
const listening = "Error listening on "

// serve starts a server that logs to w and waits until it takes connections. With
// an error the server may be there, and has to be shut down.
func serve(conf string, w io.Writer) (*server.Server, error) {
	o, err := server.ProcessConfigFile(conf)
	if err != nil {
		return nil, err
	}
	o.NoLog, o.NoSigs = true, true
	s, err := server.NewServer(o)
	if err != nil {
		return nil, err
	}
	l := newLogger(w)
	s.SetLogger(l, false, false)
	go s.Start()
	late := time.Now().Add(readyWithin)
	for !s.ReadyForConnections(lookEvery) {
		select {
		case why := <-l.fatal:
			if strings.HasPrefix(why, listening) {
				return s, fmt.Errorf("%w: %s", errPort, why)
			}
			return s, errors.New(why)
		default:
		}
		if time.Now().After(late) {
			return s, fmt.Errorf("it takes no connections after %s", readyWithin)
		}
	}
	return s, nil
}

func (h *here) kill() error {
	h.s.Shutdown()
	h.s.WaitForShutdown()
	return nil
}

func (h *here) pause(bool) error {
	return errors.New("natstest: only a process can be stopped: set Options.Processes")
}

func (h *here) log() string { return h.said.String() }

// childEnv names the configuration of the server that a process is.
const childEnv = "OUTCROP_NATSTEST_CONF"

// sideBySide is how many tests run at once: they wait for servers, which wait for
// each other, and hardly for processors.
const sideBySide = 8

// Main runs the tests of a package, or the server that this process was started
// to be. It is for TestMain. More of those that call t.Parallel run at once than
// there are processors, unless -parallel says how many; after is called when all
// are done.
func Main(m *testing.M, after ...func()) {
	Child()
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given && runtime.GOMAXPROCS(0) < sideBySide {
		if err := flag.Set("test.parallel", strconv.Itoa(sideBySide)); err != nil {
			panic(err) // package testing has this flag
		}
	}
	code := m.Run()
	for _, f := range after {
		f()
	}
	os.Exit(code)
}

// exitPort is how a child says errPort.
const exitPort = 98

// Child becomes a server, and does not return, in a process that was started to
// be one. It logs to stderr.
func Child() {
	conf := os.Getenv(childEnv)
	if conf == "" {
		return
	}
	if _, err := serve(conf, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "natstest:", err)
		if errors.Is(err, errPort) {
			os.Exit(exitPort)
		}
		os.Exit(1)
	}
	os.Stdout.WriteString("ready\n")
	// Who started it holds the other end: it ends when they do.
	io.Copy(io.Discard, os.Stdin)
	os.Exit(0)
}

// process is a server of its own.
type process struct {
	cmd  *exec.Cmd
	in   io.WriteCloser
	said *tail
}

func startProcess(conf string) (runner, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &process{cmd: exec.Command(exe), said: &tail{}}
	p.cmd.Env = append(os.Environ(), childEnv+"="+conf)
	p.cmd.Stderr = p.said
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	ready := make(chan error, 1)
	go func() {
		_, err := io.ReadFull(out, make([]byte, len("ready\n")))
		ready <- err
	}()
	// The child has the same patience, and says more.
	late := time.NewTimer(readyWithin + readyWithin/4)
	defer late.Stop()
	select {
	case err = <-ready:
	case <-late.C:
		err = fmt.Errorf("its process does not come up within %s", readyWithin+readyWithin/4)
	}
	if err != nil {
		p.kill()
		if p.cmd.ProcessState != nil && p.cmd.ProcessState.ExitCode() == exitPort {
			err = errPort
		}
		return nil, fmt.Errorf("%w; %s", err, p.said)
	}
	return p, nil
}

func (p *process) kill() error {
	err := p.cmd.Process.Kill()
	p.cmd.Wait() // that it was killed is no news
	p.in.Close()
	return err
}

func (p *process) log() string { return p.said.String() }
