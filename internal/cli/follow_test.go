package cli_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/jsonl"
	"github.com/outcrop-dev/outcrop/store/storetest"
)

// A follower shows what another writer stores, while it is stored, and ends when
// it is interrupted.
func TestShowFollowsALogThatIsBeingWritten(t *testing.T) {
	for _, c := range []struct {
		name  string
		flags []string
		seen  func(turn string) string // what shows of a turn
	}{
		{"the conversation", nil, func(turn string) string { return "prompt " + turn }},
		{"as JSON", []string{"--json"}, func(turn string) string { return `"prompt ` + turn }},
		{"the log", []string{"--log"}, func(turn string) string { return "turn " + turn + " completed" }},
		{"the log as JSON", []string{"--log", "--json"}, func(turn string) string {
			return `"data":{"turn":` + turn + `,"reason":{"kind":"completed"}}`
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newDesk(t, strings.NewReader(""))
			st, err := jsonl.New(filepath.Join(d.dir, "sessions"), jsonl.Options{})
			if err != nil {
				t.Fatal(err)
			}
			l, err := store.Create(t.Context(), st, storetest.Header("s1"), store.Options{})
			if err != nil {
				t.Fatal(err)
			}
			turn := func(n int) {
				t.Helper()
				if err := storetest.Turn(l.Session(), n); err != nil {
					t.Fatal(err)
				}
				if err := l.Flush(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			turn(1)
			shown := make(chan string, 1)
			d.out.seen = func(text string) {
				select {
				case <-shown:
				default:
				}
				shown <- text
			}
			ctx, interrupt := context.WithCancel(t.Context())
			defer interrupt()
			ended := make(chan int, 1)
			go func() { ended <- d.run(ctx, append([]string{"show", "s1", "--follow"}, c.flags...)...) }()
			until := func(want string) {
				t.Helper()
				for {
					select {
					case text := <-shown:
						if strings.Contains(text, want) {
							return
						}
					case code := <-ended:
						t.Fatalf("it ended with %d: %s", code, d.err.String())
					}
				}
			}
			until(c.seen("1"))
			turn(2)
			until(c.seen("2"))
			// An event that is not flushed is written in the end, too.
			if err := storetest.Turn(l.Session(), 3); err != nil {
				t.Fatal(err)
			}
			until(c.seen("3"))
			if err := l.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			interrupt()
			if code := <-ended; code != 130 || d.err.String() != "" {
				t.Errorf("it ended with %d: %s", code, d.err.String())
			}
			for _, n := range []string{"1", "2", "3"} {
				if got := strings.Count(d.out.String(), c.seen(n)); got != 1 {
					t.Errorf("turn %s shows %d times", n, got)
				}
			}
		})
	}
}

func TestAFollowerEndsWhenItsLogIsGone(t *testing.T) {
	d := newDesk(t, strings.NewReader(""))
	st, err := jsonl.File(filepath.Join(d.dir, "a.jsonl"), jsonl.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := outcrop.New(storetest.Header("s1"), outcrop.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := storetest.Turn(s, 1); err != nil {
		t.Fatal(err)
	}
	if err := st.Put(t.Context(), s.Header(), func(yield func(outcrop.Record, error) bool) {
		for r := range s.Log().Records(0) {
			if !yield(r, nil) {
				return
			}
		}
	}); err != nil {
		t.Fatal(err)
	}
	d.out.seen = func(string) {
		if err := os.Remove(filepath.Join(d.dir, "a.jsonl")); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
		}
	}
	if code := d.run(t.Context(), "show", "a.jsonl", "--follow"); code != 1 || !strings.Contains(d.err.String(), "the log is gone") {
		t.Errorf("exit code %d: %s", code, d.err.String())
	}
}
