package blob

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/faultfs"
)

// files are the files below a folder, with their modes.
func files(t testing.TB, dir string) (out []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		fi, err := d.Info()
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		out = append(out, fmt.Sprintf("%s %v", filepath.ToSlash(rel), fi.Mode().Perm()))
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return out
}

func TestPutGivesAnObjectThatGetReturns(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "attachments", "v1")
	s := Open(dir)
	b := []byte("\x89PNG bytes")
	if ok, err := s.Has(t.Context(), ID(b)); ok || err != nil {
		t.Fatalf("it is there before it was put: %v", err)
	}
	for range 2 {
		id, err := s.Put(t.Context(), b)
		if err != nil || id != ID(b) {
			t.Fatalf("%s, %v", id, err)
		}
	}
	if got, err := s.Get(t.Context(), ID(b)); err != nil || !bytes.Equal(got, b) {
		t.Fatalf("%q, %v", got, err)
	}
	if ok, err := s.Has(t.Context(), ID(b)); !ok || err != nil {
		t.Fatalf("it is not there: %v", err)
	}
	hash := ID(b)[7:]
	mode := "-rw-------"
	if runtime.GOOS == "windows" {
		mode = "-rw-rw-rw-"
	}
	if d := cmp.Diff([]string{"objects/" + hash[:2] + "/" + hash + " " + mode}, files(t, dir)); d != "" {
		t.Errorf("files (-want +got):\n%s", d)
	}
	if fi, err := os.Stat(filepath.Join(dir, "objects", hash[:2])); err != nil || runtime.GOOS != "windows" && fi.Mode().Perm() != 0o700 {
		t.Errorf("the folder: %v, %v", fi.Mode(), err)
	}
}

func TestADamagedObjectIsReplacedWhenItIsPutAgain(t *testing.T) {
	s := Open(t.TempDir())
	b := []byte("bytes")
	id, err := s.Put(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.path(id[7:]), []byte("other"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Get(t.Context(), id); !errors.Is(err, outcrop.ErrDamaged) {
		t.Fatalf("%v", err)
	}
	if _, err := s.Put(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Get(t.Context(), id); err != nil || !bytes.Equal(got, b) {
		t.Fatalf("%q, %v", got, err)
	}
}

func TestWhatGoesWrongLeavesNoHalfObject(t *testing.T) {
	for _, c := range []struct {
		name  string
		rule  faultfs.Rule
		there bool // a whole object is left
	}{
		{"a full disk", faultfs.Rule{Kind: faultfs.OpWrite, Fault: faultfs.Fault{Err: syscall.ENOSPC, Part: 1}}, false},
		{"a short write", faultfs.Rule{Kind: faultfs.OpWrite, Fault: faultfs.Fault{Short: true, Part: 1}}, false},
		{"a sync that fails", faultfs.Rule{Kind: faultfs.OpSync, Fault: faultfs.Fault{Err: syscall.EIO}}, false},
		{"a folder that cannot be synced", faultfs.Rule{Kind: faultfs.OpSyncDir, Fault: faultfs.Fault{Err: syscall.EIO}}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			s := Open(dir)
			s.disk = faultfs.Inject(faultfs.Real, faultfs.ByRule(&c.rule))
			b := []byte("bytes")
			if _, err := s.Put(t.Context(), b); err == nil {
				t.Fatal("nothing was said")
			}
			want := 0
			if c.there {
				want = 1
			}
			if got := files(t, dir); len(got) != want {
				t.Errorf("left behind: %v", got)
			}
			if ok, err := s.Has(t.Context(), ID(b)); ok != c.there || err != nil {
				t.Errorf("it is there: %v, %v", ok, err)
			}
			s.disk = faultfs.Real
			if _, err := s.Put(t.Context(), b); err != nil {
				t.Errorf("the next one: %v", err)
			}
		})
	}
}

func TestAFileSystemWithoutLinksIsGoodEnough(t *testing.T) {
	s := Open(t.TempDir())
	s.disk = faultfs.Inject(faultfs.Real, faultfs.ByRule(&faultfs.Rule{Kind: faultfs.OpLink, Fault: faultfs.Fault{Err: syscall.EPERM}}))
	id, err := s.Put(t.Context(), []byte("bytes"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Get(t.Context(), id); err != nil {
		t.Fatal(err)
	}
}

// Every folder on the way is synced after what it holds was made, the object
// before its name.
func TestAnObjectIsDurableWhenPutReturns(t *testing.T) {
	base := t.TempDir()
	s := Open(filepath.Join(base, "attachments", "v1"))
	var order []string
	s.disk = faultfs.Inject(faultfs.Real, func(op faultfs.Op) (f faultfs.Fault) {
		switch op.Kind {
		case faultfs.OpSync:
			order = append(order, "file")
		case faultfs.OpLink:
			order = append(order, "link")
		case faultfs.OpSyncDir:
			rel, err := filepath.Rel(base, op.Path)
			if err != nil {
				t.Error(err)
			}
			if !strings.HasPrefix(rel, "..") {
				order = append(order, filepath.ToSlash(rel))
			}
		}
		return f
	})
	b := []byte("bytes")
	if _, err := s.Put(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	hash := ID(b)[7:]
	bucket := "attachments/v1/objects/" + hash[:2]
	if d := cmp.Diff([]string{"file", "link"}, order[:2]); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	rest := slices.Sorted(slices.Values(order[2:]))
	if d := cmp.Diff([]string{".", "attachments", "attachments/v1", "attachments/v1/objects", bucket}, rest); d != "" {
		t.Errorf("folders (-want +got):\n%s", d)
	}
	// What another process may have left without a sync is synced too.
	order = nil
	if _, err := s.Put(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{bucket, "attachments/v1/objects"}, order); d != "" {
		t.Errorf("again (-want +got):\n%s", d)
	}
}

func TestManyPutTheSameAtOnce(t *testing.T) {
	dir := t.TempDir()
	var all sync.WaitGroup
	for i := range 32 {
		all.Go(func() {
			if _, err := Open(dir).Put(context.Background(), fmt.Append(nil, "bytes ", i%4)); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if got := files(t, dir); len(got) != 4 {
		t.Errorf("%v", got)
	}
}

func TestAllListsWhatWasPutAndNothingElse(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(t.TempDir(), "")
		if err != nil {
			rt.Fatal(err)
		}
		s := Open(dir)
		want := map[string]int64{}
		for _, b := range rapid.SliceOfN(rapid.SliceOfN(rapid.Byte(), 0, 20), 0, 10).Draw(rt, "objects") {
			id, err := s.Put(context.Background(), b)
			if err != nil {
				rt.Fatal(err)
			}
			want[id] = int64(len(b))
		}
		for _, stray := range []string{"objects/x", "objects/00/x", "objects/00/" + ID(nil)[7:], "tmp/put-1"} {
			if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(stray)), 0o700); err != nil {
				rt.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, stray), []byte("x"), 0o600); err != nil {
				rt.Fatal(err)
			}
		}
		got := map[string]int64{}
		for o, err := range s.All(context.Background()) {
			if err != nil {
				rt.Fatal(err)
			}
			got[o.ID] = o.Size
		}
		if d := cmp.Diff(want, got); d != "" {
			rt.Fatalf("(-put +listed):\n%s", d)
		}
	})
}

func TestAListingOfNothingIsEmptyAndOneOfAFileFails(t *testing.T) {
	dir := t.TempDir()
	for _, err := range Open(filepath.Join(dir, "none")).All(t.Context()) {
		t.Errorf("an entry, %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "objects"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	failed := false
	for _, err := range Open(dir).All(t.Context()) {
		failed = err != nil
	}
	if !failed {
		t.Error("a file in the place of the folder is no listing")
	}
	if _, err := Open(dir).Put(t.Context(), []byte("x")); err == nil {
		t.Error("a file in the place of the folder took an object")
	}
}

func TestLimitsAndCancellation(t *testing.T) {
	s := Open(t.TempDir())
	if _, err := s.Put(t.Context(), make([]byte, MaxSize+1)); !errors.Is(err, outcrop.ErrRefused) {
		t.Errorf("too large: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Put(ctx, []byte("x")); !errors.Is(err, context.Canceled) {
		t.Errorf("put: %v", err)
	}
	if _, err := s.Has(ctx, ID(nil)); !errors.Is(err, context.Canceled) {
		t.Errorf("has: %v", err)
	}
	if _, err := s.Has(t.Context(), "sha256:x"); !errors.Is(err, outcrop.ErrRefused) {
		t.Errorf("no id: %v", err)
	}
	if Valid(ID(nil)) != nil || Valid("x") == nil {
		t.Error("Valid tells ids wrongly")
	}
}
