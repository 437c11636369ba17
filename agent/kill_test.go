package agent_test

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/agent"
	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/llm/script"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/jsonl"
	"github.com/outcrop-dev/outcrop/tool"
)

// victimDir is the variable by which the test binary is told to be the process
// that is killed, and where.
const victimDir = "OUTCROP_TEST_VICTIM"

func TestMain(m *testing.M) {
	if dir := os.Getenv(victimDir); dir != "" {
		if err := victim(dir, os.Getenv("OUTCROP_TEST_PLAIN") != "", os.Getenv("OUTCROP_TEST_TURNS")); err != nil {
			fmt.Println("error", strings.ReplaceAll(err.Error(), "\n", " "))
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// tellingLive tells the parent what is acknowledged: how many events, and the
// digest of all of them.
type tellingLive struct {
	*store.Live
	mu     sync.Mutex
	digest store.Digest
}

func (l *tellingLive) Flush(ctx context.Context) error {
	n := outcrop.Seq(l.Session().Len())
	if err := l.Live.Flush(ctx); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.digest.Len() >= n {
		return nil
	}
	for r := range outcrop.Prefix(l.Session().Log(), int(n)).Records(l.digest.Len()) {
		l.digest.Add(r)
	}
	fmt.Printf("acknowledged %d %s\n", n, l.digest.Sum())
	return nil
}

// victim goes on with the session in dir and runs turns, without end or as many
// as it is told, and says on its standard output what it does.
func victim(dir string, plain bool, turns string) error {
	ctx := context.Background()
	st, err := jsonl.New(filepath.Join(dir, "store"), jsonl.Options{Plain: plain})
	if err != nil {
		return err
	}
	live, err := store.Open(ctx, st, "s1", store.Options{})
	if errors.Is(err, outcrop.ErrNotFound) {
		live, err = store.Create(ctx, st, ownHeader(), store.Options{})
	}
	if err != nil {
		return err
	}
	effects, err := os.OpenFile(filepath.Join(dir, "effects"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	live.Session().Observe(func(ev outcrop.Event) { fmt.Println("event", ev.Seq) })
	j, n := newJudges(), 0
	model := &script.Model{Reply: func(req llm.Request) script.Reply {
		if err := j.judge(req); err != nil {
			fmt.Println("error", strings.ReplaceAll(err.Error(), "\n", " "))
			os.Exit(1)
		}
		n++
		r := script.Reply{Reasoning: "What is next?", Text: "Working on it, piece by piece."}
		if req.Step <= 2 {
			for i, name := range []string{"note", "note", "append", "note"} {
				// No other reply, of this process or another, has such an id.
				id := fmt.Sprintf("c-%d-%d-%d-%d", os.Getpid(), live.Session().FirstLive(), n, i)
				r.Tools = append(r.Tools, script.Call{ID: id, Name: name, Arguments: `{}`})
			}
		}
		return r
	}}
	effect := func(_ context.Context, call tool.Call) (tool.Result, error) {
		_, err := fmt.Fprintf(effects, "%s %s\n", call.Key, call.ID)
		return tool.Text("ran " + call.Key), err
	}
	reg, err := tool.NewRegistry(tool.Options{},
		&fakeTool{name: "note", class: tool.Read, parallel: true, run: effect}, &fakeTool{name: "append", class: tool.Read, run: effect})
	if err != nil {
		return err
	}
	a, err := agent.New(agent.Options{Live: &tellingLive{Live: live}, Provider: model, Config: llm.Config{Model: "m1"}, Tools: reg, Policy: agent.AllowAll})
	if err != nil {
		return err
	}
	limit, _ := strconv.Atoi(turns)
	for n := 1; limit == 0 || n <= limit; n++ {
		if _, err := a.Send(ctx, said("Go on.")); err != nil {
			return err
		}
		if out, err := a.Wait(ctx); err != nil || out.Err != nil || out.Reason.Kind != outcrop.Completed {
			return fmt.Errorf("turn %d: %+v, %v", out.Turn, out, err)
		}
	}
	return errors.Join(a.Close(ctx), live.Close(ctx), effects.Close())
}

// killed is what a parent knows of one session whose process it kills again
// and again.
type killed struct {
	dir   string
	plain bool
	log   outcrop.Log // as stored, after the last kill
	acked outcrop.Seq
	sum   string // of the acknowledged events
}

// run starts the process and kills it when it has said as many lines. With
// turns it is left to end by itself.
func (k *killed) run(lines, turns int) error {
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), victimDir+"="+k.dir)
	if k.plain {
		cmd.Env = append(cmd.Env, "OUTCROP_TEST_PLAIN=1")
	}
	if turns > 0 {
		cmd.Env = append(cmd.Env, fmt.Sprintf("OUTCROP_TEST_TURNS=%d", turns))
	}
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	said, rd := 0, bufio.NewReader(out)
	for {
		if said == lines && turns == 0 {
			_ = cmd.Process.Kill() // it may have ended
		}
		line, err := rd.ReadString('\n')
		if err == io.EOF {
			break // half a line was not said
		}
		if err != nil {
			return err
		}
		said++
		if text, ok := strings.CutPrefix(line, "error "); ok {
			_ = cmd.Process.Kill()
			return errors.Join(errors.New(text), cmd.Wait())
		}
		if n, sum, ok := strings.Cut(strings.TrimPrefix(strings.TrimSuffix(line, "\n"), "acknowledged "), " "); ok && strings.HasPrefix(line, "acknowledged ") {
			seq, err := strconv.Atoi(n)
			if err != nil {
				return err
			}
			k.acked, k.sum = outcrop.Seq(seq), sum
		}
	}
	err = cmd.Wait()
	if turns > 0 && err != nil {
		return fmt.Errorf("%w: %s", err, complaints.String())
	}
	if complaints.Len() > 0 {
		return errors.New(complaints.String())
	}
	return nil
}

// check looks at what a kill left.
func (k *killed) check() error {
	st, err := jsonl.New(filepath.Join(k.dir, "store"), jsonl.Options{Plain: k.plain})
	if err != nil {
		return err
	}
	stored, err := st.Read(context.Background(), "s1")
	if errors.Is(err, outcrop.ErrNotFound) && k.acked == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	defer stored.Close()
	var recs []outcrop.Record
	var digest store.Digest
	var sum string
	for r, err := range stored.Records() {
		if err != nil {
			return err
		}
		for ev := range r.Events() {
			digest.Add(outcrop.Record{Event: ev})
			if digest.Len() == k.acked {
				sum = digest.Sum()
			}
		}
		recs = append(recs, r)
	}
	if k.acked > 0 && sum != k.sum {
		return fmt.Errorf("%d events were acknowledged with the digest %s; %d are stored, with %s", k.acked, k.sum, digest.Len(), sum)
	}
	s, err := outcrop.Restore(stored.Header(), func(yield func(outcrop.Record, error) bool) {
		for _, r := range recs {
			if !yield(r, nil) {
				return
			}
		}
	}, outcrop.Options{})
	if err != nil {
		return err
	}
	k.log = s.Log()
	return cmp.Or(checked(k.log), newJudges().renders(k.log, outcrop.Seq(k.log.Len()-1)), k.once())
}

// once checks that no call ran twice, and that each call whose result says that
// it ran did.
func (k *killed) once() error {
	text, err := os.ReadFile(filepath.Join(k.dir, "effects"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	ran := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		key, id, _ := strings.Cut(strings.TrimSpace(line), " ")
		if ran[key] || ran[id] {
			return fmt.Errorf("the call %s, %s, ran twice", key, id)
		}
		ran[key], ran[id] = true, true
	}
	for ev := range outcrop.Events(k.log, 0) {
		if ev.Type != outcrop.TypeToolResult {
			continue
		}
		if _, key, ok := strings.Cut(string(ev.Data), `"text":"ran `); ok {
			if key, _, _ = strings.Cut(key, `"`); !ran[key] {
				return fmt.Errorf("event %d says that %s ran, and it did not", ev.Seq, key)
			}
		}
	}
	return nil
}

// A process that is killed with SIGKILL at any point loses nothing that it
// acknowledged, and the one after it runs no call again and sends requests that
// every provider accepts.
func TestKilledAtAnyPointNothingIsLostAndNothingRunsTwice(t *testing.T) {
	sessions, kills := 12, 25
	if testing.Short() {
		sessions, kills = 3, 10
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	for n := range sessions {
		t.Run(fmt.Sprintf("session %d", n), func(t *testing.T) {
			t.Parallel()
			draw := rand.New(rand.NewPCG(seed, uint64(n)))
			k := &killed{dir: t.TempDir(), plain: n%2 == 1}
			for i := range kills {
				lines := draw.IntN(120)
				err := k.run(lines, 0)
				if err == nil {
					err = k.check()
				}
				if err != nil {
					t.Fatalf("seed %d, kill %d, after %d lines: %.4000s", seed, i+1, lines, err)
				}
			}
			if err := cmp.Or(k.run(0, 2), k.check()); err != nil {
				t.Errorf("seed %d, after %d kills: %.4000s", seed, kills, err)
			}
			if k.acked < 200 {
				t.Errorf("seed %d: only %d events came together", seed, k.acked)
			}
		})
	}
}
