package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/outcrop-dev/outcrop/internal/cli"
	"github.com/outcrop-dev/outcrop/internal/conformance"
)

// sample is the path of the sample log.
func sample(t testing.TB) string {
	t.Helper()
	p, err := filepath.Abs(filepath.Join("testdata", "sample.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// failing is a stdout that cannot be written.
type failing struct{ err error }

func (f failing) Write([]byte) (int, error) {
	return 0, &fs.PathError{Op: "write", Path: "/dev/full", Err: f.err}
}

func TestAnOutputThatCannotBeWrittenIsSaidInOneSentence(t *testing.T) {
	for _, args := range [][]string{
		{"--version"}, {"--help"}, {"show", sample(t)}, {"show", sample(t), "--raw"}, {"show", sample(t), "--log", "--json"},
		{"surface", sample(t), "--json"}, {"messages", sample(t), "--json"}, {"request", sample(t), "--body"}, {"verify", sample(t), "--json"},
	} {
		var errOut bytes.Buffer
		code := cli.Main(context.Background(), args, cli.Env{Stdout: failing{syscall.ENOSPC}, Stderr: &errOut, Getenv: func(string) string { return "" }})
		if code != 1 || strings.Count(errOut.String(), "\n") != 1 || !strings.Contains(errOut.String(), "no space left on device") || !strings.Contains(errOut.String(), "make room") {
			t.Errorf("%v: exit %d: %s", args, code, errOut.String())
		}
	}
}

func TestAnInterruptEndsWith130(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, args := range [][]string{
		{"show", sample(t)}, {"show", sample(t), "--log"}, {"show", sample(t), "--raw"}, {"surface", sample(t)},
		{"messages", sample(t)}, {"request", sample(t)}, {"lineage", sample(t), "3"}, {"verify", sample(t)},
		{"verify", sample(t), sample(t)}, {"convert", sample(t), filepath.Join(t.TempDir(), "x.jsonl")},
	} {
		var errOut bytes.Buffer
		code := cli.Main(ctx, args, cli.Env{Stdout: io.Discard, Stderr: &errOut, Getenv: func(string) string { return "" }})
		if code != 130 || errOut.String() != "outcrop: interrupted\n" {
			t.Errorf("%v: exit %d: %s", args, code, errOut.String())
		}
	}
}

func TestColourStandsOnlyOnATerminalThatWantsIt(t *testing.T) {
	for _, c := range []struct {
		name     string
		terminal bool
		env      map[string]string
		want     bool
	}{
		{"a pipe", false, nil, false},
		{"a terminal", true, nil, true},
		{"NO_COLOR", true, map[string]string{"NO_COLOR": "1"}, false},
		{"a dumb terminal", true, map[string]string{"TERM": "dumb"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, args := range [][]string{{"surface", sample(t)}, {"show", sample(t)}, {"verify", sample(t)}, {"lineage", sample(t), "60"}, {"request", sample(t)}, {"config"}} {
				var out bytes.Buffer
				code := cli.Main(context.Background(), args, cli.Env{Stdout: &out, Stderr: io.Discard, Dir: t.TempDir(),
					Terminal: func(s any) bool { return c.terminal && s == any(&out) }, Getenv: func(n string) string {
						if n == "HOME" {
							return "/nowhere"
						}
						return c.env[n]
					}})
				if has := strings.Contains(out.String(), "\x1b["); code != 0 || has != c.want {
					t.Errorf("%s: exit %d, colour %v, want %v", args[0], code, has, c.want)
				}
				if strings.Contains(out.String(), "\x1b[31mrepeat") {
					t.Errorf("%s: the log's own escape reaches the terminal", args[0])
				}
			}
		})
	}
}

// A log of dsh says nothing about its requests. Each of its steps must still
// give a request, whose messages end where the model began to answer.
func TestRequestsOfRealLogsAreFoundByTheirChunks(t *testing.T) {
	for _, c := range []struct {
		log        string
		turn, step int
		messages   int
	}{
		{"tool-roundtrip", 1, 1, 2}, {"tool-roundtrip", 1, 2, 4}, {"multiturn", 1, 1, 2}, {"multiturn", 2, 1, 4},
	} {
		found, err := filepath.Glob(filepath.Join(conformance.Dir(), "corpus", c.log, "sessions", "*", "*", "session.jsonl*"))
		if err != nil || len(found) == 0 {
			t.Fatal(c.log, err)
		}
		code, out, errText := run(t, "", nil, "request", found[0], "--turn", fmt.Sprint(c.turn), "--step", fmt.Sprint(c.step), "--json")
		if code != 0 {
			t.Errorf("%s turn %d step %d: exit %d: %s", c.log, c.turn, c.step, code, errText)
			continue
		}
		got := decode[struct {
			Attempt  int
			Messages []any
			Recorded any
			Digest   string
		}](t, out)
		if got.Attempt != 1 || len(got.Messages) != c.messages || got.Recorded != false || !strings.HasPrefix(got.Digest, "v1:") {
			t.Errorf("%s turn %d step %d: attempt %d, %d messages, recorded %v", c.log, c.turn, c.step, got.Attempt, len(got.Messages), got.Recorded)
		}
	}
}

func TestLongWorkShowsProgressOnATerminalAlone(t *testing.T) {
	for _, c := range []struct {
		name            string
		terminal, quiet bool
		want            bool
	}{{"a terminal", true, false, true}, {"no terminal", false, false, false}, {"--quiet", true, true, false}} {
		for _, args := range [][]string{{"surface", manyChunks(t)}, {"verify", manyChunks(t)}} {
			var out, errOut bytes.Buffer
			clock := startTime
			if c.quiet {
				args = append(args, "--quiet")
			}
			code := cli.Main(context.Background(), args, cli.Env{Stdout: &out, Stderr: &errOut, Getenv: func(string) string { return "" },
				Terminal: func(s any) bool { return c.terminal && s == any(&errOut) },
				Now:      func() time.Time { clock = clock.Add(time.Second); return clock }})
			has := strings.Contains(errOut.String(), "%")
			if code != 0 || has != c.want {
				t.Errorf("%s %s: exit %d, progress %v: %q", c.name, args[0], code, has, errOut.String())
			}
			if lines := strings.Split(errOut.String(), "\r"); has && strings.TrimSpace(lines[len(lines)-1]+lines[len(lines)-2]) != "" {
				t.Errorf("%s %s: the bar stays: %q", c.name, args[0], errOut.String())
			}
			if strings.Contains(out.String(), "%") {
				t.Errorf("%s %s: progress among the data", c.name, args[0])
			}
		}
	}
}

// manyChunks is a real log with more than a thousand lines.
func manyChunks(t testing.TB) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(conformance.Dir(), "corpus", "many-chunks-jsonl", "sessions", "*", "*", "session.jsonl"))
	if err != nil || len(found) != 1 {
		t.Fatal(found, err)
	}
	return found[0]
}

// Every request that a log of ours recorded is rebuilt with the recorded
// digest, from the recorded prefix.
func TestRecordedRequestsAreRebuilt(t *testing.T) {
	for _, c := range [][3]string{{"1", "1", "1"}, {"1", "2", "1"}, {"2", "1", "1"}, {"2", "1", "2"}, {"3", "1", "1"}} {
		_, out, errText := run(t, "", nil, "request", sample(t), "--turn", c[0], "--step", c[1], "--attempt", c[2], "--json")
		got := decode[struct{ Digest, Recorded string }](t, out)
		if got.Digest == "" || got.Digest != got.Recorded {
			t.Errorf("%v: %+v %s", c, got, errText)
		}
	}
}

func TestModelsOfAProviderAreListed(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.Header.Get("Authorization") != "Bearer secret" {
			w.WriteHeader(http.StatusUnauthorized)
			io.WriteString(w, `{"error":{"message":"bad key"}}`)
			return
		}
		io.WriteString(w, `{"data":[{"id":"b"},{"id":"a","context_length":1000}]}`)
	})}
	done := make(chan error, 1)
	go func() { done <- srv.Serve(l) }()
	defer func() {
		srv.Close()
		if err := <-done; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	}()
	dir := t.TempDir()
	text := "[providers.here]\nbase_url = \"http://" + l.Addr().String() + "/v1\"\nkey_env = \"HERE_KEY\"\n[providers.here.models.a]\nmax_output = 10\nprice = { input = 5, output = 6 }\n"
	if err := os.WriteFile(filepath.Join(dir, "c.toml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, errText := run(t, dir, map[string]string{"HERE_KEY": "secret"}, "models", "here", "--config", "c.toml", "--json")
	want := `{"schema":1,"provider":"here","model":"a","window":1000,"maxOutput":10,"images":false,"price":{"input":5,"cacheRead":0,"cacheWrite":0,"output":6}}
{"schema":1,"provider":"here","model":"b","window":null,"maxOutput":null,"images":false,"price":null}
`
	if code != 0 || out != want {
		t.Errorf("exit %d\ngot  %swant %s%s", code, out, want, errText)
	}
	code, out, errText = run(t, dir, map[string]string{"HERE_KEY": "wrong"}, "models", "here", "--config", "c.toml")
	if code != 1 || out != "" || !strings.Contains(errText, "here: the key was refused (401): check HERE_KEY") {
		t.Errorf("exit %d: %s%s", code, out, errText)
	}
}

func decode[T any](t testing.TB, text string) (v T) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v in %q", err, text)
	}
	return v
}
