package jsonl

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/storetest"
)

func TestMain(m *testing.M) {
	if root := os.Getenv("OUTCROP_TEST_WRITER"); root != "" {
		writer(root)
		return
	}
	os.Exit(m.Run())
}

// writer is another process: it opens the session s1, says so, then appends
// and flushes a turn for each line on its standard input, or without end when
// the line is "on", and says after each flush how many events are durable.
func writer(root string) {
	fail := func(err error) {
		fmt.Println("error", err)
		os.Exit(1)
	}
	s, err := New(root, Options{Program: "the other process"})
	if err != nil {
		fail(err)
	}
	l, err := store.Open(bg, s, "s1", store.Options{})
	if err != nil {
		fail(err)
	}
	fmt.Println("open", os.Getpid())
	in := bufio.NewScanner(os.Stdin)
	for turn := 100; in.Scan(); {
		for again := true; again; again = in.Text() == "on" {
			if err := storetest.Turn(l.Session(), turn); err != nil {
				fail(err)
			}
			if err := l.Flush(bg); err != nil {
				fail(err)
			}
			turn++
			fmt.Println("durable", int64(l.Durable()))
		}
	}
	if err := l.Close(bg); err != nil {
		fail(err)
	}
}

// process is a running writer.
type process struct {
	t   *testing.T
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

func start(t *testing.T, root string) *process {
	t.Helper()
	exe, err := os.Executable()
	must(t, err)
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), "OUTCROP_TEST_WRITER="+root)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	must(t, err)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	return &process{t, cmd, in, bufio.NewScanner(out)}
}

// next reads a line and checks its first word.
func (p *process) next(word string) string {
	p.t.Helper()
	if !p.out.Scan() {
		p.t.Fatalf("the process ended: %v", p.out.Err())
	}
	first, rest, _ := strings.Cut(p.out.Text(), " ")
	if first != word {
		p.t.Fatalf("the process says %q, want %s", p.out.Text(), word)
	}
	return rest
}

func (p *process) durable() int {
	p.t.Helper()
	n, err := strconv.Atoi(p.next("durable"))
	must(p.t, err)
	return n
}

func TestASecondProcessIsRefusedWithTheHoldersName(t *testing.T) {
	s := root(t, Options{Program: "this test", Now: func() int64 { return 1_700_000_000_000 }})
	session(t, s, "s1", 1)

	p := start(t, s.root)
	pid := p.next("open")
	_, err := store.Open(bg, s, "s1", store.Options{})
	var le *store.LockedError
	if !errors.As(err, &le) || strconv.Itoa(le.Holder.PID) != pid || le.Holder.Program != "the other process" || le.Holder.Host == "" {
		t.Fatalf("got %v, %+v", err, le)
	}
	for _, part := range []string{"the other process", "process " + pid} {
		if !strings.Contains(err.Error(), part) {
			t.Fatalf("the error does not say %q: %v", part, err)
		}
	}
	infos, err := s.List(bg, store.ListOptions{})
	must(t, err)
	if infos[0].State != store.StateLocked || !strings.Contains(infos[0].Reason, pid) {
		t.Fatalf("listed as %+v", infos[0])
	}
	fmt.Fprintln(p.in, "turn")
	p.durable()
	must(t, p.in.Close())
	must(t, p.cmd.Wait())

	l, err := store.Open(bg, s, "s1", store.Options{})
	must(t, err)
	// The other way round.
	q := start(t, s.root)
	if said := q.next("error"); !strings.Contains(said, "this test") || !strings.Contains(said, strconv.Itoa(os.Getpid())) {
		t.Fatalf("the refused process says %q", said)
	}
	q.cmd.Wait()
	must(t, l.Close(bg))
}

func TestAKilledWriterLosesNothingThatWasAcknowledged(t *testing.T) {
	both(t, func(t *testing.T, o Options) {
		s := root(t, o)
		session(t, s, "s1", 1)
		acknowledged := 0
		for range 5 {
			p := start(t, s.root)
			p.next("open")
			fmt.Fprintln(p.in, "on")
			for range 3 {
				acknowledged = p.durable()
			}
			must(t, p.cmd.Process.Kill()) // in the middle of the next batch
			for p.out.Scan() {
				if n, ok := strings.CutPrefix(p.out.Text(), "durable "); ok {
					acknowledged, _ = strconv.Atoi(n)
				}
			}
			p.cmd.Wait()
			got, _, err := store.Inspect(bg, s, "s1", outcrop.Options{})
			must(t, err)
			if got.Len() < acknowledged {
				t.Fatalf("%d events are stored, %d were acknowledged", got.Len(), acknowledged)
			}
		}
		// The dead writer's lock is nobody's.
		infos, err := s.List(bg, store.ListOptions{})
		must(t, err)
		if infos[0].State == store.StateLocked {
			t.Fatalf("listed as %+v", infos[0])
		}
		l, err := store.Open(bg, s, "s1", store.Options{})
		must(t, err)
		if int(l.Session().Stored()) < acknowledged {
			t.Fatalf("%d events are stored, %d were acknowledged", l.Session().Stored(), acknowledged)
		}
		must(t, storetest.Turn(l.Session(), 9))
		must(t, l.Close(bg))
	})
}

func TestTheLockFileNamesItsHolderAndIsEmptiedNotRemoved(t *testing.T) {
	s := root(t, Options{Program: "a program", Now: func() int64 { return 1_700_000_000_000 }})
	session(t, s, "s1", 1)
	path := lockIn(filepath.Dir(logPath(t, s, "s1")))
	l, err := store.Open(bg, s, "s1", store.Options{})
	must(t, err)
	b, err := os.ReadFile(path)
	must(t, err)
	var h store.Holder
	must(t, json.Unmarshal(bytes.TrimSpace(b), &h))
	host, _ := os.Hostname()
	if h != (store.Holder{PID: os.Getpid(), Host: host, Program: "a program", Since: 1_700_000_000_000}) {
		t.Fatalf("the holder is %+v", h)
	}
	must(t, l.Close(bg))
	if b, err := os.ReadFile(path); err != nil || len(b) != 0 {
		t.Fatalf("after closing the lock file holds %q, %v", b, err)
	}
	// A file that somebody scribbled on is a lock all the same.
	must(t, os.WriteFile(path, []byte("{]"), 0o600))
	l, err = store.Open(bg, s, "s1", store.Options{})
	must(t, err)
	must(t, os.WriteFile(path, []byte("{]"), 0o600))
	if _, err := store.Open(bg, s, "s1", store.Options{}); !errors.Is(err, store.ErrLocked) || !strings.Contains(err.Error(), "another program") {
		t.Fatalf("got %v", err)
	}
	must(t, l.Close(bg))
}

func TestOneFile(t *testing.T) {
	both(t, func(t *testing.T, o Options) {
		s := root(t, o)
		want := session(t, s, "s1", 2)
		from := logPath(t, s, "s1")
		_, ending, _ := strings.Cut(filepath.Base(from), ".")
		dir := t.TempDir()
		path := filepath.Join(dir, "a copy."+ending)
		b, err := os.ReadFile(from)
		must(t, err)
		must(t, os.WriteFile(path, b[:len(b)-2], 0o600)) // with a torn tail

		in, err := ReadFile(path)
		must(t, err)
		if in.Header().ID != "s1" || in.Path() != path {
			t.Fatalf("%+v", in.Header())
		}
		must(t, in.Close())
		one, err := File(path, Options{Program: "this test"})
		must(t, err)
		if id, err := one.ID(); id != "s1" || err != nil {
			t.Fatal(id, err)
		}
		if got := names(t, dir); len(got) != 1 {
			t.Fatalf("reading made %v", got)
		}

		l, err := OpenFile(bg, path, Options{Program: "this test"}, store.Options{})
		must(t, err)
		if !l.Tail().Torn {
			t.Fatal("the torn tail is not seen")
		}
		if _, err := OpenFile(bg, path, Options{}, store.Options{}); !errors.Is(err, store.ErrLocked) || !strings.Contains(err.Error(), "this test") {
			t.Fatalf("a second writer: %v", err)
		}
		infos, err := one.List(bg, store.ListOptions{Full: true})
		if err != nil || len(infos) != 1 || infos[0].ID != "s1" || infos[0].State != store.StateLocked {
			t.Fatalf("%+v, %v", infos, err)
		}
		must(t, storetest.Turn(l.Session(), 3))
		must(t, l.Close(bg))
		wantNames := []string{"a copy." + ending, "a copy." + ending + ".lock", "a copy." + ending + ".torn-" + itoa(l.Tail().Offset)}
		if got := names(t, dir); strings.Join(got, " ") != strings.Join(wantNames, " ") {
			t.Fatalf("files %v, want %v", got, wantNames)
		}
		for _, name := range []string{"", "s1"} {
			got, _, err := store.Inspect(bg, one, name, outcrop.Options{})
			must(t, err)
			if got.Len() <= want.Len()/2 {
				t.Fatalf("%d events", got.Len())
			}
		}
		if _, err := one.Read(bg, "s2"); !errors.Is(err, outcrop.ErrNotFound) {
			t.Fatalf("another id: %v", err)
		}
		if _, err := one.Create(bg, storetest.Header("s1")); !errors.Is(err, store.ErrExists) {
			t.Fatalf("creating over a file: %v", err)
		}

		// A new file, as convert makes it.
		fresh, err := File(filepath.Join(dir, "new.jsonl"), Options{})
		must(t, err)
		if infos, err := fresh.List(bg, store.ListOptions{}); len(infos) != 0 || err != nil {
			t.Fatal(infos, err)
		}
		if _, err := fresh.Read(bg, ""); !errors.Is(err, outcrop.ErrNotFound) {
			t.Fatal(err)
		}
		must(t, store.Copy(bg, fresh, s, "s1"))
		got, _, err := store.Inspect(bg, fresh, "", outcrop.Options{})
		must(t, err)
		if outcrop.LogDigest(got.Log()) != outcrop.LogDigest(want.Log()) {
			t.Fatal("the copy differs")
		}
	})
}

func TestAFileInARootHasTheRootsLock(t *testing.T) {
	s := root(t, Options{Program: "the root"})
	session(t, s, "s1", 1)
	path := logPath(t, s, "s1")
	l, err := store.Open(bg, s, "s1", store.Options{})
	must(t, err)
	if _, err := OpenFile(bg, path, Options{}, store.Options{}); !errors.Is(err, store.ErrLocked) {
		t.Fatalf("the same log by its path: %v", err)
	}
	must(t, l.Close(bg))
	l, err = OpenFile(bg, path, Options{}, store.Options{})
	must(t, err)
	if _, err := store.Open(bg, s, "s1", store.Options{}); !errors.Is(err, store.ErrLocked) {
		t.Fatalf("the same log by its id: %v", err)
	}
	must(t, l.Close(bg))
	if got := names(t, filepath.Dir(path)); len(got) != 2 {
		t.Fatalf("files %v", got)
	}
	// And a newer generation beside it is seen.
	must(t, os.WriteFile(filepath.Join(filepath.Dir(path), "session.v1.jsonl"), nil, 0o600))
	if _, err := OpenFile(bg, path, Options{}, store.Options{}); !errors.Is(err, outcrop.ErrReadOnly) {
		t.Fatalf("with a newer generation: %v", err)
	}
}

// However a log is named, its one lock lies beside the file itself.
func TestALogBehindLinksHasOneLock(t *testing.T) {
	both(t, func(t *testing.T, o Options) {
		s := root(t, o)
		session(t, s, "s1", 1)
		inRoot := logPath(t, s, "s1")
		_, ending, _ := strings.Cut(filepath.Base(inRoot), ".")
		dir := t.TempDir()
		b, err := os.ReadFile(inRoot)
		must(t, err)
		alone := filepath.Join(dir, "alone."+ending)
		must(t, os.WriteFile(alone, b, 0o600))
		for _, log := range []string{inRoot, alone} {
			links := t.TempDir()
			file, chain, folder := filepath.Join(links, "a link."+ending), filepath.Join(links, "b."+ending), filepath.Join(links, "folder")
			for _, l := range [][2]string{{log, file}, {file, chain}, {filepath.Dir(log), folder}} {
				if err := os.Symlink(l[0], l[1]); err != nil {
					t.Fatal(err)
				}
			}
			ways := []string{log, file, chain, filepath.Join(folder, filepath.Base(log))}
			for _, first := range ways {
				l, err := OpenFile(bg, first, Options{}, store.Options{})
				must(t, err)
				for _, second := range ways {
					if _, err := OpenFile(bg, second, Options{}, store.Options{}); !errors.Is(err, store.ErrLocked) {
						t.Errorf("%s and %s have two writers: %v", first, second, err)
					}
					one, err := File(second, Options{})
					must(t, err)
					if infos, err := one.List(bg, store.ListOptions{}); err != nil || len(infos) != 1 || infos[0].State != store.StateLocked {
						t.Errorf("%s is listed as %+v, %v", second, infos, err)
					}
				}
				if log == inRoot {
					if _, err := s.Acquire(bg, "s1"); !errors.Is(err, store.ErrLocked) {
						t.Errorf("%s and its root have two writers: %v", first, err)
					}
				}
				must(t, l.Close(bg))
			}
			if got := names(t, links); len(got) != 3 {
				t.Errorf("files beside the links: %v", got)
			}
		}
	})
}

func TestALockThatIsALinkIsNotWrittenThrough(t *testing.T) {
	s := root(t, Options{})
	session(t, s, "s1", 1)
	path := lockIn(filepath.Dir(logPath(t, s, "s1")))
	other := filepath.Join(t.TempDir(), "a letter")
	must(t, os.WriteFile(other, []byte("dear"), 0o600))
	must(t, os.Remove(path))
	must(t, os.Symlink(other, path))
	_, err := store.Open(bg, s, "s1", store.Options{})
	if err == nil || !strings.Contains(err.Error(), "not a regular file but a symbolic link") {
		t.Errorf("got %v", err)
	}
	if b, err := os.ReadFile(other); err != nil || string(b) != "dear" {
		t.Errorf("the other file holds %q, %v", b, err)
	}
}

func TestPathsThatAreNoLog(t *testing.T) {
	dir := t.TempDir()
	must(t, os.Mkdir(filepath.Join(dir, "folder.jsonl"), 0o700))
	must(t, os.WriteFile(filepath.Join(dir, "empty.jsonl"), nil, 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "text.jsonl.zstd"), []byte("hello\n"), 0o600))
	for _, name := range []string{"folder.jsonl", "empty.jsonl", "text.jsonl.zstd", "missing.jsonl", "session.json"} {
		_, err := ReadFile(filepath.Join(dir, name))
		var e *outcrop.Error
		if !errors.As(err, &e) || e.Path != filepath.Join(dir, name) || e.Msg == "" {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := OpenFile(bg, filepath.Join(dir, name), Options{}, store.Options{}); err == nil {
			t.Errorf("%s was opened", name)
		}
	}
	if got := names(t, dir); len(got) != 3 {
		t.Fatalf("looking made files: %v", got)
	}
}
