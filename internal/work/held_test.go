package work_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/desk"
	"github.com/outcrop-dev/outcrop/internal/work"
	"github.com/outcrop-dev/outcrop/message"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/jetstream"
	"github.com/outcrop-dev/outcrop/store/jetstream/natstest"
	"github.com/outcrop-dev/outcrop/worker"
)

// notes is a stderr that several goroutines write.
type notes struct {
	mu sync.Mutex
	b  strings.Builder
}

func (n *notes) Write(b []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.b.Write(b)
}

func (n *notes) String() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.b.String()
}

// A session that a person works on in a realm takes input from elsewhere, and
// stops when somebody takes it away.
func TestASessionInARealmIsReachedAndTakenFromElsewhere(t *testing.T) {
	ctx := t.Context()
	address := natstest.Start(t, natstest.Options{}).Address("r")
	if _, err := jetstream.Init(ctx, address, jetstream.RealmOptions{Streams: 1, Single: true, Lease: time.Second}, jetstream.Options{Program: "test"}); err != nil {
		t.Fatal(err)
	}
	dir, said := t.TempDir(), &notes{}
	script := `{"text":"One."}` + "\n" + `{"text":"Two."}` + "\n" + `{"text":"x","cut":"hang","after":1}` + "\n"
	if err := os.WriteFile(filepath.Join(dir, "s.jsonl"), []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	ids := 0
	d := desk.New(desk.Env{Stdin: strings.NewReader(""), Stdout: &strings.Builder{}, Stderr: said, Dir: dir, Program: "outcrop",
		Getenv: func(n string) string {
			return map[string]string{"OUTCROP_HOME": filepath.Join(dir, "home"), "OUTCROP_STORE": address}[n]
		},
		NewID: func() string { ids++; return fmt.Sprintf("id-%d", ids) }})
	w, err := work.Prepare(ctx, d, work.Flags{Script: "s.jsonl", Answers: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Open(ctx); err != nil {
		t.Fatal(err)
	}
	ag, err := w.Engage(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	say := func(id string) message.Message {
		return message.Message{ID: id, Content: []message.Block{message.Text("go")}}
	}
	if _, err := ag.Send(ctx, say("first")); err != nil {
		t.Fatal(err)
	}
	if _, err := ag.Wait(ctx); err != nil {
		t.Fatal(err)
	}
	elsewhere, err := jetstream.New(address, jetstream.Options{Program: "another"})
	if err != nil {
		t.Fatal(err)
	}
	defer elsewhere.Close()
	bus, err := worker.BusOf(ctx, elsewhere)
	if err != nil {
		t.Fatal(err)
	}
	s := worker.Sender{Store: elsewhere, Bus: bus, Name: "another"}
	r, err := s.Send(ctx, w.Session().ID(), say("second"), false)
	if err != nil || r.By != "outcrop" {
		t.Fatalf("%+v, %v", r, err)
	}
	if out, err := ag.Wait(ctx); err != nil || out.Turn != 2 || out.Reason.Kind != outcrop.Completed {
		t.Errorf("%+v, %v", out, err)
	}
	// The third reply hangs, until the session is taken.
	if _, err := s.Send(ctx, w.Session().ID(), say("third"), false); err != nil {
		t.Fatal(err)
	}
	short, stop := context.WithTimeout(ctx, 5*time.Second)
	defer stop()
	l, err := store.TakeOver(short, elsewhere, w.Session().ID(), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if out, err := ag.Wait(ctx); err != nil || out.Turn != 3 || out.Reason.Kind != outcrop.TurnAborted {
		t.Errorf("%+v, %v", out, err)
	}
	if !strings.Contains(said.String(), "may have been taken over") {
		t.Errorf("said %q", said)
	}
	if err := w.Close(ctx); !errors.Is(err, store.ErrMoved) {
		t.Errorf("what came after the take-over was stored: %v", err)
	}
	if err := l.Close(ctx); err != nil {
		t.Error(err)
	}
}
