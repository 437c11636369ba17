//go:build unix

package storetest_test

import (
	"bufio"
	"bytes"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/doctor"
	"github.com/outcrop-dev/outcrop/message"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/jsonl"
	"github.com/outcrop-dev/outcrop/store/sqlite"
	"github.com/outcrop-dev/outcrop/store/storetest"
	"github.com/outcrop-dev/outcrop/wire"
)

var (
	long     = flag.Bool("long", false, "run ten times as many rounds")
	killSeed = flag.Uint64("seed", 1, "the first round of the kills")
)

// kinds are the stores that outlive a process.
var kinds = map[string]func(dir string) (store.Store, error){
	"plain": func(dir string) (store.Store, error) {
		return jsonl.New(filepath.Join(dir, "sessions"), jsonl.Options{Plain: true, Program: "a test"})
	},
	"zstd": func(dir string) (store.Store, error) {
		return jsonl.New(filepath.Join(dir, "sessions"), jsonl.Options{Program: "a test"})
	},
	"sqlite": func(dir string) (store.Store, error) {
		return sqlite.New(filepath.Join(dir, "sessions.db"), sqlite.Options{Program: "a test", Busy: 500 * time.Millisecond})
	},
}

const (
	envKind = "OUTCROP_TEST_KILL"
	envDir  = "OUTCROP_TEST_DIR"
	envID   = "OUTCROP_TEST_ID"
	envSeed = "OUTCROP_TEST_SEED"
	envStay = "OUTCROP_TEST_STAY" // never closes its session
)

func TestMain(m *testing.M) {
	if kind := os.Getenv(envKind); kind != "" {
		seed, _ := strconv.ParseUint(os.Getenv(envSeed), 10, 64)
		if err := victim(kind, os.Getenv(envDir), os.Getenv(envID), seed); err != nil {
			fmt.Println("error", strings.ReplaceAll(err.Error(), "\n", " "))
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// victim writes one session until it is killed, and says on its standard output
// what was acknowledged.
func victim(kind, dir, id string, seed uint64) error {
	st, err := kinds[kind](dir)
	if err != nil {
		return err
	}
	r := rand.New(rand.NewPCG(seed, 2))
	open := func() (*store.Live, error) {
		l, err := store.Open(bg, st, id, store.Options{})
		if errors.Is(err, outcrop.ErrNotFound) {
			return store.Create(bg, st, storetest.Header(id), store.Options{})
		}
		return l, err
	}
	l, err := open()
	for round := 0; ; round++ {
		switch {
		case errors.Is(err, store.ErrLocked):
			fmt.Println("locked")
			return nil
		case errors.Is(err, store.ErrMoved):
			fmt.Println("moved")
			return nil
		case err != nil:
			return err
		}
		switch n := r.IntN(20); {
		case n == 0:
			var id string
			if id, err = store.ObjectsOf(st).Put(bg, fmt.Append(nil, "object ", r.IntN(1000))); err == nil {
				fmt.Println("object", id)
			}
		case n == 1 && os.Getenv(envStay) == "":
			if err = l.Close(bg); err == nil {
				l, err = open()
			}
		default:
			if err = write(l.Session(), r); err == nil && n < 12 {
				k := l.Session().Len()
				if err = l.Flush(bg); err == nil {
					fmt.Println("ack", k, outcrop.LogDigest(l.Session().Log()))
				}
			}
		}
	}
}

// write appends something.
func write(s *outcrop.Session, r *rand.Rand) error {
	turn, step, open := outcrop.OpenTurn(s.Log())
	var err error
	switch {
	case !open && r.IntN(2) == 0:
		return storetest.Turn(s, turnsOf(s)+1)
	case !open:
		return storetest.StartTurn(s, turnsOf(s)+1)
	case step > 0 && r.IntN(2) == 0:
		for i := range 1 + r.IntN(40) {
			if _, err = s.Append(outcrop.AssistantChunk{Turn: turn, Step: step, Chunk: message.Chunk{Type: message.TextDelta, Text: fmt.Sprint("more ", i)}}); err != nil {
				return err
			}
		}
		return nil
	}
	_, err = s.AppendAll(outcrop.LogCandidate(outcrop.TodoWrite{}), outcrop.LogCandidate(outcrop.TurnEnd{Turn: turn, Reason: outcrop.TurnReason{Kind: outcrop.Completed}}))
	return err
}

func turnsOf(s *outcrop.Session) (n int) {
	for e := range outcrop.Events(s.Log(), 0) {
		if e.Type == outcrop.TypeTurnStart {
			n++
		}
	}
	return n
}

// process is a victim that runs.
type process struct {
	cmd   *exec.Cmd
	lines chan string // closed when its output ends
	said  []string
}

func start(t *testing.T, kind, dir, id string, seed uint64, env ...string) *process {
	t.Helper()
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), envKind+"="+kind, envDir+"="+dir, envID+"="+id, envSeed+"="+strconv.FormatUint(seed, 10))
	c.Env = append(c.Env, env...)
	c.Stderr = os.Stderr
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	p := &process{cmd: c, lines: make(chan string, 10_000)}
	go func(out io.Reader) {
		defer close(p.lines)
		for in := bufio.NewScanner(out); in.Scan(); {
			p.lines <- in.Text()
		}
	}(out)
	return p
}

// hear waits for n more lines, or for the end.
func (p *process) hear(n int) {
	for ; n > 0; n-- {
		line, ok := <-p.lines
		if !ok {
			return
		}
		p.said = append(p.said, line)
	}
}

// end hears the rest and waits.
func (p *process) end() {
	for line := range p.lines {
		p.said = append(p.said, line)
	}
	p.cmd.Wait()
}

func (p *process) signal(s syscall.Signal) { p.cmd.Process.Signal(s) }

func (p *process) last() string {
	if len(p.said) == 0 {
		return ""
	}
	return p.said[len(p.said)-1]
}

// 200 rounds a store (-short: 10; -long: 2,000): a process that writes is
// stopped, another one tries to write meanwhile, and it is killed at some
// moment. What it said was acknowledged must be there.
func TestKilledAndPausedWritersLoseNothingThatWasAcknowledged(t *testing.T) {
	for kind, open := range kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			rounds := uint64(200)
			switch {
			case testing.Short():
				rounds = 10
			case *long:
				rounds = 2000
			}
			dir := t.TempDir()
			st, err := open(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer st.Close()
			p := promises{t: t, kind: kind, dir: dir, st: st}
			acks, refused, fenced := 0, 0, 0
			for seed := *killSeed; seed < *killSeed+rounds; seed++ {
				p.round = seed
				r := rand.New(rand.NewPCG(seed, 3))
				if (seed-*killSeed)%8 == 0 {
					p.id, p.acked, p.digest = fmt.Sprint("s", seed), 0, ""
				}
				stop := r.IntN(2) == 0
				steal := stop && kind == "sqlite" && r.IntN(2) == 0
				// A writer that is stopped between two leases has none, and the next
				// one may have the session.
				stay := ""
				if stop {
					stay = "yes"
				}
				a := start(t, kind, dir, p.id, seed, envStay+"="+stay)
				a.hear(1 + r.IntN(12))
				if stop {
					a.signal(syscall.SIGSTOP)
					p.check("a reader while the writer is stopped", a.said, true)
					if steal {
						// As on a file system where locks are not shared.
						os.RemoveAll(filepath.Join(dir, "sessions.db.locks"))
					}
					b := start(t, kind, dir, p.id, seed+1_000_000)
					switch b.hear(1 + r.IntN(3)); {
					case steal && strings.HasPrefix(b.last(), "error") && strings.Contains(b.last(), "has been writing the database"):
						b.end() // the first one was stopped inside a transaction
					case steal:
						// The first one wakes up and is fenced.
						p.take(a.said)
						b.signal(syscall.SIGKILL)
						b.end()
						p.take(b.said)
						a.signal(syscall.SIGCONT)
						before := len(a.said)
						a.end()
						if a.last() != "moved" || len(a.said) > before+1 && !onlyBuffered(a.said[before:]) {
							t.Fatalf("round %d: the first writer went on: %q", seed, a.said[before:])
						}
						fenced++
					default:
						b.end()
						if len(b.said) != 1 || b.said[0] != "locked" {
							t.Fatalf("round %d: the second writer said %q", seed, b.said)
						}
						refused++
					}
					a.signal(syscall.SIGCONT)
					a.hear(r.IntN(6))
				}
				// Some way into the next write.
				for range r.IntN(2000) {
					_ = os.Getpid()
				}
				a.signal(syscall.SIGKILL)
				a.end()
				if strings.HasPrefix(a.last(), "error") {
					t.Fatalf("round %d: %s", seed, a.last())
				}
				acks += len(a.said)
				p.check("after the kill", a.said, false)
			}
			t.Logf("%d rounds: %d acknowledgements, %d second writers refused, %d first ones fenced", rounds, acks, refused, fenced)
		})
	}
}

// onlyBuffered: what a process said before it was stopped may be read later.
func onlyBuffered(said []string) bool {
	for _, line := range said[:len(said)-1] {
		if !strings.HasPrefix(line, "ack ") && !strings.HasPrefix(line, "object ") {
			return false
		}
	}
	return true
}

// promises is what the writers of a session said.
type promises struct {
	t       *testing.T
	kind    string
	dir     string
	st      store.Store
	round   uint64
	id      string
	acked   int
	digest  string
	objects []string
}

func (p *promises) take(said []string) {
	for _, line := range said {
		f := strings.Fields(line)
		switch f[0] {
		case "ack":
			n, _ := strconv.Atoi(f[1])
			if n >= p.acked {
				p.acked, p.digest = n, f[2]
			}
		case "object":
			p.objects = append(p.objects, f[1])
		}
	}
}

// check compares what is stored with what was acknowledged. stopped: the writer
// is, and may have been anywhere.
func (p *promises) check(when string, said []string, stopped bool) {
	p.t.Helper()
	p.take(said)
	fail := func(format string, args ...any) {
		p.t.Helper()
		p.t.Fatalf("round %d, %s: %s\nrun it with -seed %d", p.round, when, fmt.Sprintf(format, args...), p.round)
	}
	s, tail, err := store.Inspect(bg, p.st, p.id, outcrop.Options{})
	switch {
	case errors.Is(err, outcrop.ErrNotFound) && p.acked == 0:
		return
	case stopped && err != nil && strings.Contains(err.Error(), "does not go on"):
		return // it was stopped with a lock that readers need for a moment
	case err != nil:
		fail("%v", err)
	case s.Len() < p.acked:
		fail("%d events are stored, %d were acknowledged", s.Len(), p.acked)
	}
	var d store.Digest
	for e := range outcrop.Events(s.Log(), 0) {
		if int(e.Seq) < p.acked {
			d.Add(outcrop.Record{Event: e})
		}
	}
	if p.digest != "" && d.Sum() != p.digest {
		fail("the first %d events are not those that were acknowledged", p.acked)
	}
	if s.Len()-tail.Recovered < p.acked {
		fail("acknowledged events are in a torn tail: %+v", tail)
	}
	for _, id := range p.objects {
		if _, err := store.ObjectsOf(p.st).Get(bg, id); err != nil {
			fail("%v", err)
		}
	}
	p.objects = nil
	if p.kind == "sqlite" {
		if verdict := integrity(p.t, filepath.Join(p.dir, "sessions.db")); verdict != "ok" {
			fail("integrity_check: %s", verdict)
		}
		return
	}
	sd, err := p.st.Read(bg, p.id)
	if err != nil {
		fail("%v", err)
	}
	defer sd.Close()
	b, err := os.ReadFile(sd.Path())
	if err != nil {
		fail("%v", err)
	}
	enc, _ := wire.EncodingOf(sd.Path())
	findings, sum := doctor.Verify(bg, doctor.Target{Name: p.id, R: bytes.NewReader(b), Size: int64(len(b)), Encoding: enc}, doctor.Options{})
	for f := range findings {
		if f.Severity == doctor.SeverityError {
			fail("the doctor finds %s: %s", f.Code, f.Message)
		}
	}
	if !sum.OK {
		fail("the doctor does not find it well: %v", sum.Err)
	}
}

// integrity is what SQLite itself finds in a file.
func integrity(t *testing.T, path string) (verdict string) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?mode=ro&_pragma=busy_timeout(5000)")
	if err == nil {
		defer db.Close()
		err = db.QueryRow("PRAGMA integrity_check").Scan(&verdict)
	}
	if err != nil {
		return err.Error()
	}
	return verdict
}
