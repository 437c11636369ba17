package jsonl

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/storetest"
)

func TestWhatLiesInARoot(t *testing.T) {
	both(t, func(t *testing.T, o Options) {
		s := root(t, o)
		l, err := store.Create(bg, s, storetest.Header("s/1"), store.Options{})
		must(t, err)
		if _, err := os.Stat(s.root); !errors.Is(err, fs.ErrNotExist) {
			t.Fatal("something is on disk before the first flush")
		}
		must(t, storetest.Turn(l.Session(), 1))
		must(t, l.Flush(bg))
		log := "session.jsonl.zstd"
		if o.Plain {
			log = "session.jsonl"
		}
		const dir = "--home-dev-project--/s~002F1"
		want := []string{"--home-dev-project--", dir, dir + "/" + log, dir + "/session.lock"}
		if d := cmp.Diff(want, names(t, s.root)); d != "" {
			t.Fatalf("files (-want +got):\n%s", d)
		}
		must(t, l.Close(bg))
		if d := cmp.Diff(want, names(t, s.root)); d != "" {
			t.Fatalf("files after closing (-want +got):\n%s", d)
		}
		if runtime.GOOS == "windows" {
			return
		}
		for _, name := range append(want, "") {
			fi, err := os.Stat(filepath.Join(s.root, name))
			must(t, err)
			mode := fs.FileMode(0o600)
			if fi.IsDir() {
				mode = 0o700
			}
			if fi.Mode().Perm() != mode {
				t.Errorf("%s has mode %v, want %v", name, fi.Mode().Perm(), mode)
			}
		}
	})
}

func TestASessionWithoutAWorkingDirectory(t *testing.T) {
	s := root(t, Options{})
	l, err := store.Create(bg, s, outcrop.NewHeader("s1", 1, ""), store.Options{})
	must(t, err)
	must(t, storetest.Turn(l.Session(), 1))
	must(t, l.Close(bg))
	if path := logPath(t, s, "s1"); filepath.Base(filepath.Dir(filepath.Dir(path))) != "_no-cwd" {
		t.Fatal(path)
	}
}

func TestIdsThatLookStrange(t *testing.T) {
	s := root(t, Options{Plain: true})
	ids := []string{"..", "~", "a b", "日本", "😀", "\xed\xa0\xbd", "\xed\xb0\x80x", "A", "a", "COM1", "-", "session-1.jsonl"}
	for _, id := range ids {
		l, err := store.Create(bg, s, storetest.Header(id), store.Options{})
		must(t, err)
		must(t, storetest.Turn(l.Session(), 1))
		if err := l.Close(bg); err != nil {
			t.Fatalf("%q: %v", id, err)
		}
		again, err := store.Open(bg, s, id, store.Options{})
		if err != nil || again.Session().ID() != id {
			t.Fatalf("%q: %v", id, err)
		}
		must(t, again.Close(bg))
	}
	infos, err := s.List(bg, store.ListOptions{})
	must(t, err)
	var got []string
	for _, in := range infos {
		if in.State != store.StateOK {
			t.Errorf("%+v", in)
		}
		got = append(got, in.ID)
	}
	slices.Sort(got)
	slices.Sort(ids)
	if d := cmp.Diff(ids, got); d != "" {
		t.Fatalf("ids (-want +got):\n%s", d)
	}
}

func TestAnIdTooLongForTheFileSystem(t *testing.T) {
	s := root(t, Options{})
	long := strings.Repeat("x", 300)
	_, err := store.Open(bg, s, long, store.Options{})
	if !errors.Is(err, outcrop.ErrNotFound) {
		t.Fatal(err)
	}
	l, err := store.Create(bg, s, storetest.Header(long), store.Options{})
	must(t, err)
	must(t, storetest.Turn(l.Session(), 1))
	if err := l.Flush(bg); err == nil || !strings.Contains(err.Error(), "shorter session id") {
		t.Fatal(err)
	}
	l.Close(bg)
	if left := names(t, filepath.Dir(s.root)); len(left) != 0 {
		t.Fatalf("a session that could not be stored left %v", left)
	}
}

func TestFolderNamesKeepIdsApart(t *testing.T) {
	id := rapid.StringMatching(`([a-zA-Z0-9._~/ ü日😀-]|\x00){1,12}`)
	rapid.Check(t, func(t *rapid.T) {
		a, b := id.Draw(t, "a"), id.Draw(t, "b")
		if (EncodeSegment(a) == EncodeSegment(b)) != (a == b) {
			t.Fatalf("%q and %q have one folder", a, b)
		}
		if got := decodeSegment(EncodeSegment(a)); got != a {
			t.Fatalf("%q is decoded as %q", a, got)
		}
	})
}

// TestOneBadNeighbourHidesNobody puts every kind of wrong thing beside good
// sessions.
func TestOneBadNeighbourHidesNobody(t *testing.T) {
	s := root(t, Options{Plain: true})
	for _, id := range []string{"good", "other", "double", "moved", "pipe", "folder", "dangling", "both", "newer", "closed", "locked", "empty", "leftover"} {
		session(t, s, id, 1)
	}
	project := filepath.Join(s.root, "--home-dev-project--")
	file := func(id string) string { return filepath.Join(project, id, "session.jsonl") }
	body := func(id string) []byte {
		b, err := os.ReadFile(file(id))
		must(t, err)
		return b
	}
	put := func(path string, b []byte) {
		must(t, os.MkdirAll(filepath.Dir(path), 0o700))
		must(t, os.WriteFile(path, b, 0o600))
	}
	put(filepath.Join(s.root, "notes.txt"), []byte("x"))
	put(filepath.Join(s.root, "x.jsonl"), nil)
	put(filepath.Join(project, "flat.jsonl"), body("good"))
	put(filepath.Join(project, "readme.md"), nil)
	put(filepath.Join(s.root, "--elsewhere--", "double", "session.jsonl"), body("double"))
	must(t, os.Rename(filepath.Dir(file("moved")), filepath.Join(s.root, "--elsewhere--", "moved")))
	put(filepath.Join(project, "wrong-id", "session.jsonl"), body("good"))
	must(t, os.Remove(file("folder")))
	must(t, os.Mkdir(file("folder"), 0o700))
	must(t, os.Remove(file("dangling")))
	must(t, os.Symlink("nowhere", file("dangling")))
	must(t, os.Remove(file("pipe")))
	makePipe(t, file("pipe"))
	put(file("both")+".zstd", []byte("x"))
	put(filepath.Join(project, "newer", "session.v5.jsonl"), []byte("x"))
	put(filepath.Join(project, "newest", "session.v12.jsonl.zstd"), []byte("x"))
	put(file("empty"), nil)
	must(t, os.Rename(file("leftover"), file("leftover")+".0123456789ab.tmp"))
	must(t, os.MkdirAll(filepath.Join(project, "nothing"), 0o700))
	l, err := store.Open(bg, s, "locked", store.Options{})
	must(t, err)
	defer l.Close(bg)

	want := map[string]store.State{
		"good": store.StateOK, "other": store.StateOK, "closed": store.StateOK, "locked": store.StateLocked,
		"double": store.StateDamaged, "moved": store.StateDamaged, "wrong-id": store.StateDamaged,
		"pipe": store.StateDamaged, "folder": store.StateDamaged, "dangling": store.StateDamaged, "both": store.StateDamaged,
		"newer": store.StateNewer, "newest": store.StateNewer, "empty": store.StateDamaged, "flat.jsonl": store.StateDamaged,
	}
	for _, full := range []bool{false, true} {
		infos, err := s.List(bg, store.ListOptions{Full: full})
		must(t, err)
		got := map[string]store.State{}
		for _, in := range infos {
			name := in.ID
			if name == "" {
				name = filepath.Base(in.Path)
			}
			if in.State != store.StateOK && in.Reason == "" {
				t.Errorf("%+v has no reason", in)
			}
			if old, twice := got[name]; twice && (name != "double" || old != in.State) {
				t.Errorf("%s is listed twice", name)
			}
			got[name] = in.State
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Fatalf("full %v (-want +got):\n%s", full, d)
		}
	}
	for id, code := range map[string]outcrop.Code{
		"double": "DUPLICATE_ID", "moved": "MISPLACED_LOG", "wrong-id": "IDENTITY_MISMATCH", "newer": "NEWER_GENERATION", "newest": "NEWER_GENERATION",
		"empty": "FILE_EMPTY", "leftover": outcrop.CodeSessionNotFound, "nothing": outcrop.CodeSessionNotFound,
		"pipe": "", "folder": "", "dangling": "", "both": "",
	} {
		_, err := store.Open(bg, s, id, store.Options{})
		if err == nil || outcrop.CodeOf(err) != code {
			t.Errorf("opening %s: %v, want code %q", id, err, code)
		}
	}
	// What cannot be continued can be read where that is safe.
	for _, id := range []string{"moved", "newer"} {
		sd, err := s.Read(bg, id)
		if err != nil {
			t.Errorf("reading %s: %v", id, err)
			continue
		}
		must(t, sd.Close())
	}
	_, err = store.Open(bg, s, "newer", store.Options{})
	if !errors.Is(err, outcrop.ErrReadOnly) || !errors.Is(err, outcrop.ErrUnsupported) {
		t.Errorf("opening a folder with a newer generation: %v", err)
	}
	// The good ones go on.
	for _, id := range []string{"other", "closed"} {
		l, err := store.Open(bg, s, id, store.Options{})
		must(t, err)
		must(t, l.Close(bg))
	}
	session(t, s, "one-more", 1)
}

func TestARootHasOneEncoding(t *testing.T) {
	for _, c := range []struct {
		name          string
		first, second bool // plain
		refused       bool
		want          string
	}{
		{"a new zstd root", false, false, false, "session.jsonl.zstd"},
		{"a new plain root", true, true, false, "session.jsonl"},
		{"a zstd root opened for plain logs refuses new ones", false, true, true, ""},
		{"a plain root keeps its encoding", true, false, false, "session.jsonl"},
	} {
		t.Run(c.name, func(t *testing.T) {
			first := root(t, Options{Plain: c.first})
			session(t, first, "s1", 1)
			second, err := New(first.root, Options{Plain: c.second})
			must(t, err)
			_, err = store.Create(bg, second, storetest.Header("s2"), store.Options{})
			if c.refused {
				if !errors.Is(err, store.ErrEncoding) || !strings.Contains(err.Error(), "another folder") {
					t.Fatalf("got %v", err)
				}
				// What is there can be continued.
				l, err := store.Open(bg, second, "s1", store.Options{})
				must(t, err)
				must(t, l.Close(bg))
				return
			}
			must(t, err)
			session(t, second, "s2", 1)
			if got := filepath.Base(logPath(t, second, "s2")); got != c.want {
				t.Fatalf("the second session is a %s, want %s", got, c.want)
			}
		})
	}
}

func TestAddresses(t *testing.T) {
	dir := t.TempDir()
	for address, plain := range map[string]bool{"jsonl:" + dir: false, "jsonl+plain:" + dir: true} {
		s, err := FromAddress(address, Options{})
		must(t, err)
		if s.opt.Plain != plain || s.Address() != address || s.Root() != dir {
			t.Errorf("%s is %+v", address, s)
		}
	}
	for _, address := range []string{"", "jsonl:", "sqlite:x", dir, "jsonl+plain:"} {
		if _, err := FromAddress(address, Options{}); err == nil {
			t.Errorf("%q is taken as an address", address)
		}
	}
	file := filepath.Join(dir, "f")
	must(t, os.WriteFile(file, nil, 0o600))
	if _, err := New(file, Options{}); err == nil || !strings.Contains(err.Error(), "a store is a folder") {
		t.Errorf("a file as a root: %v", err)
	}
}

func TestIsLogPath(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	must(t, os.WriteFile("here.jsonl", nil, 0o600))
	for target, want := range map[string]bool{
		"/a/session.jsonl": true, "./x.jsonl.zstd": true, "here.jsonl": true, "gone.jsonl": false,
		"4f2a9c": false, "last": false, "a/b": false, "here.json": false,
	} {
		if got := IsLogPath(target); got != want {
			t.Errorf("%s: %v, want %v", target, got, want)
		}
	}
}

func TestAFolderThatCannotBeReadOrWritten(t *testing.T) {
	if os.Geteuid() == 0 {
		// The superuser may do everything; a file in the place of a folder is
		// the same question.
		dir := t.TempDir()
		must(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o600))
		s, err := New(filepath.Join(dir, "file", "sessions"), Options{})
		if err == nil {
			_, err = s.List(bg, store.ListOptions{})
		}
		var e *outcrop.Error
		if !errors.As(err, &e) || e.Path == "" {
			t.Fatalf("got %v", err)
		}
		return
	}
	s := root(t, Options{})
	session(t, s, "s1", 1)
	dir := filepath.Dir(logPath(t, s, "s1"))
	must(t, os.Chmod(dir, 0o500))
	t.Cleanup(func() { os.Chmod(dir, 0o700) })
	must(t, os.Remove(filepath.Join(dir, "session.lock")))
	if _, err := store.Open(bg, s, "s1", store.Options{}); !errors.Is(err, fs.ErrPermission) {
		t.Fatalf("got %v", err)
	}
}

func TestTwoThatBeginARootAtOnceAgreeOnItsEncoding(t *testing.T) {
	dir := t.TempDir()
	var leases []store.Lease
	for i, plain := range []bool{true, false} {
		s, err := New(dir, Options{Plain: plain})
		must(t, err)
		l, err := s.Create(bg, storetest.Header(fmt.Sprint("s", i)))
		must(t, err)
		defer l.Close()
		leases = append(leases, l)
	}
	first := func(yield func(outcrop.Record) bool) {
		yield(outcrop.Record{Event: outcrop.Event{Type: outcrop.TypeTurnStart, Data: []byte(`{"turn":1}`)}})
	}
	must(t, leases[0].Append(bg, first))
	if err := leases[1].Append(bg, first); !errors.Is(err, store.ErrEncoding) || outcrop.CodeOf(err) != "ROOT_ENCODING" {
		t.Errorf("got %v", err)
	}
	s, err := New(dir, Options{})
	must(t, err)
	infos, err := s.List(bg, store.ListOptions{})
	must(t, err)
	if len(infos) != 1 || infos[0].ID != "s0" {
		t.Errorf("%+v", infos)
	}
}
