package jsonl

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/faultfs"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/storetest"
	"github.com/outcrop-dev/outcrop/wire"
)

func TestPublicationSyncsTheLogThenItsNameThenTheFolders(t *testing.T) {
	top := t.TempDir()
	// Two folders above the root are new too.
	s, err := New(filepath.Join(top, "a", "b", "sessions"), Options{Plain: true, Rand: bytes.NewReader(bytes.Repeat([]byte{0xab}, 6))})
	must(t, err)
	var steps []string
	short := func(path string) string {
		rel, err := filepath.Rel(top, path)
		must(t, err)
		return filepath.ToSlash(rel)
	}
	s.disk = faultfs.Inject(faultfs.Real, func(op faultfs.Op) (f faultfs.Fault) {
		switch op.Kind {
		case faultfs.OpSync, faultfs.OpSyncDir:
			if name := short(op.Path); !strings.HasPrefix(name, "..") {
				steps = append(steps, "sync "+name)
			}
		case faultfs.OpLink:
			steps = append(steps, "link "+short(op.To))
		}
		return f
	})
	session(t, s, "s1", 1)
	const project = "a/b/sessions/--home-dev-project--"
	want := []string{
		"sync " + project + "/s1/session.jsonl.abababababab.tmp",
		"link " + project + "/s1/session.jsonl",
		"sync " + project + "/s1", "sync " + project, "sync a/b/sessions", "sync a/b",
		"sync a", "sync .",
	}
	if d := cmp.Diff(want, steps); d != "" {
		t.Fatalf("steps (-want +got):\n%s", d)
	}
	for _, name := range names(t, top) {
		if strings.HasSuffix(name, ".tmp") {
			t.Fatalf("%s was left", name)
		}
	}
}

func TestPublicationWithoutHardLinks(t *testing.T) {
	for _, err := range []error{syscall.EPERM, syscall.ENOTSUP, syscall.ENOSYS} {
		s := root(t, Options{})
		s.disk = faultfs.Inject(faultfs.Real, faultfs.ByRule(&faultfs.Rule{Kind: faultfs.OpLink, Fault: faultfs.Fault{Err: err}}))
		want := session(t, s, "s1", 2)
		got, _, err := store.Inspect(bg, s, "s1", outcrop.Options{})
		must(t, err)
		if outcrop.LogDigest(got.Log()) != outcrop.LogDigest(want.Log()) {
			t.Fatal("the stored log differs")
		}
	}
}

// Between the name and the folders' syncs nothing may go wrong: the log would be
// there, and the session would not know it.
func TestAPublishedLogIsNotOpenedAgain(t *testing.T) {
	if !movesOpenFiles {
		return
	}
	s := root(t, Options{})
	s.disk = faultfs.Inject(faultfs.Real, faultfs.ByRule(&faultfs.Rule{Kind: faultfs.OpOpen,
		Match: func(op faultfs.Op) bool {
			return op.Flag&os.O_WRONLY != 0 && filepath.Base(op.Path) == logName(wire.Zstd)
		},
		Fault: faultfs.Fault{Err: syscall.EMFILE}}))
	l, err := store.Create(bg, s, storetest.Header("s1"), store.Options{})
	must(t, err)
	for turn := 1; turn <= 2; turn++ {
		must(t, storetest.Turn(l.Session(), turn))
		must(t, l.Flush(bg))
	}
	must(t, l.Close(bg))
	s.disk = faultfs.Real
	got, _, err := store.Inspect(bg, s, "s1", outcrop.Options{})
	must(t, err)
	if outcrop.LogDigest(got.Log()) != outcrop.LogDigest(l.Session().Log()) {
		t.Fatal("the stored log is not the session's")
	}
}

// What a dead writer left may be nowhere but in the memory of the machine. Who
// goes on from it makes it durable first, and says so when it cannot.
func TestWhatIsOpenedIsMadeDurable(t *testing.T) {
	s := root(t, Options{Plain: true})
	session(t, s, "s1", 1)
	var steps []string
	s.disk = faulty(func(op faultfs.Op) (f faultfs.Fault) {
		if rel, err := filepath.Rel(filepath.Dir(s.root), op.Path); err == nil && !strings.HasPrefix(rel, "..") && (op.Kind == faultfs.OpSync || op.Kind == faultfs.OpSyncDir) {
			steps = append(steps, filepath.ToSlash(rel))
		}
		return f
	})
	l, err := store.Open(bg, s, "s1", store.Options{})
	must(t, err)
	const project = "sessions/--home-dev-project--"
	if d := cmp.Diff([]string{project + "/s1/session.jsonl", project + "/s1", project, "sessions", "."}, steps); d != "" {
		t.Fatalf("steps (-want +got):\n%s", d)
	}
	must(t, l.Close(bg))
	for _, kind := range []faultfs.Kind{faultfs.OpSync, faultfs.OpSyncDir} {
		s.disk = faultfs.Inject(faultfs.Real, faultfs.ByRule(&faultfs.Rule{Kind: kind, Fault: faultfs.Fault{Err: syscall.EIO}}))
		if _, err := store.Open(bg, s, "s1", store.Options{}); !errors.Is(err, store.ErrSync) {
			t.Errorf("%s: %v", kind, err)
		}
	}
	s.disk = unsynced()
	l, err = store.Open(bg, s, "s1", store.Options{}) // nobody holds it
	must(t, err)
	must(t, l.Close(bg))
}

func TestOfManyCreatorsOfOneSessionOneWins(t *testing.T) {
	s := root(t, Options{})
	const n = 12
	var all sync.WaitGroup
	var winners atomic.Int32
	lives := make([]*store.Live, n)
	for i := range n {
		l, err := store.Create(bg, s, storetest.Header("s1"), store.Options{})
		must(t, err)
		must(t, storetest.Turn(l.Session(), 1))
		lives[i] = l
	}
	for _, l := range lives {
		all.Go(func() {
			err := l.Flush(bg)
			switch {
			case err == nil:
				winners.Add(1)
			case !errors.Is(err, store.ErrExists) && !errors.Is(err, store.ErrLocked):
				t.Error(err)
			}
		})
	}
	all.Wait()
	if winners.Load() != 1 {
		t.Fatalf("%d of %d creators stored the session", winners.Load(), n)
	}
	// Nobody else can open it while the winner has it, also not after the
	// losers gave up.
	for _, l := range lives {
		if l.Err() != nil {
			l.Close(bg)
		}
	}
	if _, err := store.Open(bg, s, "s1", store.Options{}); !errors.Is(err, store.ErrLocked) {
		t.Fatalf("opened while it is held: %v", err)
	}
	for _, l := range lives {
		l.Close(bg)
	}
	l, err := store.Open(bg, s, "s1", store.Options{})
	must(t, err)
	must(t, l.Close(bg))
	for _, name := range names(t, s.root) {
		if strings.HasSuffix(name, ".tmp") {
			t.Errorf("%s was left", name)
		}
	}
}

func TestALeftoverOfADeadWriterIsNoSession(t *testing.T) {
	s := root(t, Options{})
	session(t, s, "s1", 1)
	path := logPath(t, s, "s1")
	must(t, os.Rename(path, path+".0123456789ab.tmp"))
	if infos, err := s.List(bg, store.ListOptions{}); err != nil || len(infos) != 0 {
		t.Fatal(infos, err)
	}
	// It goes when the session is written again, and nothing else does.
	others := []string{path + ".tmp", path + ".0123456789.tmp", path + ".0123456789ag.tmp", path + ".0123456789ab", filepath.Join(filepath.Dir(path), "a.0123456789ab.tmp")}
	for _, name := range others {
		must(t, os.WriteFile(name, nil, 0o600))
	}
	session(t, s, "s1", 2)
	got, _, err := store.Inspect(bg, s, "s1", outcrop.Options{})
	must(t, err)
	if got.Len() != 30 {
		t.Fatalf("%d events", got.Len())
	}
	if _, err := os.Lstat(path + ".0123456789ab.tmp"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the leftover is there still: %v", err)
	}
	for _, name := range others {
		if _, err := os.Lstat(name); err != nil {
			t.Error(err)
		}
	}
}

func TestAPutThatFailsLeavesNoFolder(t *testing.T) {
	s := root(t, Options{})
	src := root(t, Options{Plain: true})
	session(t, src, "s1", 2)
	path := logPath(t, src, "s1")
	// The source is damaged in its middle.
	b, err := os.ReadFile(path)
	must(t, err)
	i := bytes.Index(b, []byte(`"tool/call"`))
	b[i] = 'x'
	must(t, os.WriteFile(path, b, 0o600))
	if err := store.Copy(bg, s, src, "s1"); !errors.Is(err, outcrop.ErrDamaged) || !strings.Contains(err.Error(), path) {
		t.Fatalf("got %v", err)
	}
	if got := names(t, filepath.Dir(s.root)); len(got) != 0 {
		t.Fatalf("left %v", got)
	}
	ctx, cancel := context.WithCancel(bg)
	cancel()
	b[i] = '"'
	must(t, os.WriteFile(path, b, 0o600))
	if err := store.Copy(ctx, s, src, "s1"); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	if got := names(t, filepath.Dir(s.root)); len(got) != 0 {
		t.Fatalf("left %v", got)
	}
	must(t, store.Copy(bg, s, src, "s1"))
}

func TestWhatIsReadBackMustBeWhatWasGiven(t *testing.T) {
	s := root(t, Options{Plain: true})
	src := root(t, Options{Plain: true})
	session(t, src, "s1", 2)
	// The medium loses a byte and says nothing.
	s.disk = faulty(func(op faultfs.Op) (f faultfs.Fault) {
		f.Instead = bytes.Replace(op.Data, []byte("prompt 1"), []byte("prompt 7"), 1)
		return f
	})
	if err := store.Copy(bg, s, src, "s1"); !errors.Is(err, outcrop.ErrDamaged) {
		t.Fatalf("got %v", err)
	}
	if got := names(t, filepath.Dir(s.root)); len(got) != 0 {
		t.Fatalf("left %v", got)
	}
}

func TestAForkOnABorderCopiesBytes(t *testing.T) {
	both(t, func(t *testing.T, o Options) {
		s := root(t, o)
		want := session(t, s, "parent", 5)
		parent, err := os.ReadFile(logPath(t, s, "parent"))
		must(t, err)
		in, err := ReadFile(logPath(t, s, "parent"))
		must(t, err)
		head := int(in.Reader().HeaderEnd())
		must(t, in.Close())
		// Each turn has 15 events and its own batch.
		for _, at := range []outcrop.Seq{14, 29, 59, 74, -1} {
			id := "child" + itoa(int64(at))
			copied, err := s.PutPrefix(bg, "parent", at,
				func(p outcrop.Header, n outcrop.Seq) outcrop.Header { return p.Child(id, 1, int64(n)) },
				func(n outcrop.Seq, last outcrop.Type) []outcrop.Event {
					if last != outcrop.TypeTurnEnd {
						t.Errorf("the last event is %s", last)
					}
					return nil
				})
			if err != nil || !copied {
				t.Fatalf("at %d: %v, %v", at, copied, err)
			}
			child, err := os.ReadFile(logPath(t, s, id))
			must(t, err)
			in, err := ReadFile(logPath(t, s, id))
			must(t, err)
			body := child[in.Reader().HeaderEnd():]
			must(t, in.Close())
			if !bytes.HasPrefix(parent[head:], body) {
				t.Fatalf("at %d: the bytes are not the parent's", at)
			}
			got, _, err := store.Inspect(bg, s, id, outcrop.Options{})
			must(t, err)
			if at < 0 {
				at = outcrop.Seq(want.Len() - 1)
			}
			if got.Len() != int(at)+1 {
				t.Fatalf("at %d: %d events", at, got.Len())
			}
		}
		for _, at := range []outcrop.Seq{0, 20, 75} { // inside a turn, behind the end
			copied, err := s.PutPrefix(bg, "parent", at,
				func(p outcrop.Header, n outcrop.Seq) outcrop.Header { return p.Child("x", 1, int64(n)) },
				func(outcrop.Seq, outcrop.Type) []outcrop.Event { return nil })
			if err != nil || copied {
				t.Fatalf("at %d: %v, %v", at, copied, err)
			}
			if _, err := s.Read(bg, "x"); !errors.Is(err, outcrop.ErrNotFound) {
				t.Fatalf("at %d: something was left: %v", at, err)
			}
		}
	})
}

func TestAForkOfALogWithADamagedEnd(t *testing.T) {
	s := root(t, Options{Plain: true})
	session(t, s, "parent", 3)
	path := logPath(t, s, "parent")
	b, err := os.ReadFile(path)
	must(t, err)
	// Damaged in the third turn, before its end.
	i := bytes.Index(b, []byte(`"seq":31`))
	b[i] = 'x'
	must(t, os.WriteFile(path, b, 0o600))
	if _, err := store.Open(bg, s, "parent", store.Options{}); !errors.Is(err, outcrop.ErrDamaged) {
		t.Fatal(err)
	}
	if _, err := store.Fork(bg, s, "parent", 44, store.Child{ID: "late", CreatedAt: 1}); err == nil {
		// A prefix with the damage inside is copied as bytes; it cannot be
		// opened, and the parent says the same of itself.
		if _, err := store.Open(bg, s, "late", store.Options{}); !errors.Is(err, outcrop.ErrDamaged) {
			t.Fatalf("the damaged child was opened: %v", err)
		}
	}
	if _, err := store.ForkAt(bg, s, "parent", 40, store.Child{ID: "inside", CreatedAt: 1}); !errors.Is(err, outcrop.ErrDamaged) {
		t.Fatalf("behind the damage: %v", err)
	}
	must(t, func() error {
		_, err := store.Fork(bg, s, "parent", 29, store.Child{ID: "rescued", CreatedAt: 1})
		return err
	}())
	l, err := store.Open(bg, s, "rescued", store.Options{})
	must(t, err)
	must(t, storetest.Turn(l.Session(), 3))
	must(t, l.Close(bg))
}
