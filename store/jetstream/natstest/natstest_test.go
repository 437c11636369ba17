package natstest

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	natsjs "github.com/nats-io/nats.go/jetstream"
)

func TestMain(m *testing.M) { Main(m) }

// both runs a test with servers in this process and with processes.
func both(t *testing.T, run func(t *testing.T, o Options)) {
	for name, o := range map[string]Options{"here": {}, "processes": {Processes: true}} {
		t.Run(name, func(t *testing.T) { run(t, o) })
	}
}

func TestAServerThatCannotStartSaysWhyAtOnce(t *testing.T) {
	both(t, func(t *testing.T, o Options) {
		dir := t.TempDir()
		// Where its folder should be is a file.
		if err := os.WriteFile(filepath.Join(dir, "n0"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := New(dir, o)
		if err == nil || !strings.Contains(err.Error(), "server n0") || !strings.Contains(err.Error(), "its log:\n\t[INF] Starting nats-server") || !strings.Contains(err.Error(), "[FTL] Can't start JetStream") {
			t.Fatalf("a server without a folder: %v", err)
		}
	})
}

func TestAPortThatSomebodyTookIsWaitedFor(t *testing.T) {
	both(t, func(t *testing.T, o Options) {
		c := Start(t, o)
		if err := c.Kill(0); err != nil {
			t.Fatal(err)
		}
		in, err := net.Listen("tcp", c.nodes[0].client)
		if err != nil {
			t.Fatal(err)
		}
		defer in.Close()
		// To start a cluster there needs other ports.
		if err := c.nodes[0].start(); !errors.Is(err, errPort) || !strings.Contains(err.Error(), "its log") {
			t.Fatalf("started on a port that is in use: %v", err)
		}
		done := make(chan error, 1)
		go func() { done <- c.Restart(0) }()
		in.Close()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if err := c.Ready(); err != nil {
			t.Fatal(err)
		}
		nc, err := c.Connect()
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		js, err := natsjs.New(nc)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := js.CreateStream(t.Context(), natsjs.StreamConfig{Name: "s", Storage: natsjs.FileStorage}); err != nil {
			t.Fatal(err)
		}
	})
}

func TestTheEndOfALogIsKept(t *testing.T) {
	var said tail
	for i := range 10_000 {
		fmt.Fprintf(&said, "line %d\n", i)
	}
	text := said.String()
	if len(text) > 2*tailBytes || !strings.HasPrefix(text, "the end of its log:\n\tline ") || !strings.HasSuffix(text, "\n\tline 9999") {
		t.Fatalf("kept is %q … %q", text[:40], text[len(text)-40:])
	}
}
