package repair

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/faultfs"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/jsonl"
)

const (
	gapHeader = `{"type":"session","version":0,"id":"gap","createdAt":1,"delegationDepth":0}` + "\n"
	gapGood   = gapHeader + `{"type":"turn/start","seq":0,"time":2,"data":{"turn":1}}
{"type":"turn/end","seq":1,"time":2,"data":{"turn":1,"reason":{"kind":"completed"}}}
`
	gapBehind = `{"type":"turn/start","seq":3,"time":2,"data":{"turn":2}}
{"type":"turn/end","seq":4,"time":2,"data":{"turn":2,"reason":{"kind":"completed"}}}
`
)

// disk is a file system in memory with one damaged log at /logs/a.jsonl.
func disk(t testing.TB) *faultfs.Memory {
	t.Helper()
	m := faultfs.NewMemory()
	if _, err := faultfs.MakeFolders(m, "/logs"); err != nil {
		t.Fatal(err)
	}
	f, err := m.OpenFile("/logs/a.jsonl", os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write([]byte(gapGood + gapBehind)); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Sync(), f.Close(), m.SyncDir("/logs"), m.SyncDir("/")); err != nil {
		t.Fatal(err)
	}
	return m
}

func filesOn(d faultfs.FS) Files {
	return Files{Log: "/logs/a.jsonl", Keep: "/state/doctor", Stamp: "a", Program: "test", disk: d}
}

func content(t testing.TB, d faultfs.FS, name string) string {
	t.Helper()
	b, err := faultfs.ReadFile(d, name)
	if errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestARepairedCopyStandsBesideNothing(t *testing.T) {
	d := disk(t)
	r, saved, err := Copy(t.Context(), filesOn(d), Options{}, "")
	if err != nil {
		t.Fatal(err)
	}
	if saved.Log != "/state/doctor/a/repaired.jsonl" || saved.Backup != "" || r.Events != 2 || r.Behind != 2 {
		t.Errorf("%+v, %d events", saved, r.Events)
	}
	for name, want := range map[string]string{
		saved.Log: gapGood, "/logs/a.jsonl": gapGood + gapBehind, "/state/doctor/a/behind.jsonl": gapBehind,
	} {
		if got := content(t, d, name); got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
	if report := content(t, d, "/state/doctor/a/report.jsonl"); !strings.Contains(report, `"code":"CUT"`) {
		t.Errorf("report %q", report)
	}
	// Another repair gets another folder; a name that is taken is not.
	if _, again, err := Copy(t.Context(), filesOn(d), Options{}, "/logs/b.jsonl"); err != nil || again.Folder != "/state/doctor/a-2" || content(t, d, "/logs/b.jsonl") != gapGood {
		t.Errorf("%+v, %v", again, err)
	}
	if _, _, err := Copy(t.Context(), filesOn(d), Options{}, "/logs/b.jsonl"); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a name that is taken: %v", err)
	}
	if _, err := d.Stat("/state/doctor/a-3"); err == nil {
		t.Error("a repair that came to nothing left its folder")
	}
}

func TestARepairOfAHealthyLogWritesNothing(t *testing.T) {
	d := disk(t)
	f, err := d.OpenFile("/logs/a.jsonl", os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write([]byte(gapGood)); err != nil {
		t.Fatal(err)
	}
	wrote := func(op faultfs.Op) faultfs.Fault {
		if op.Kind != faultfs.OpOpen && op.Kind != faultfs.OpStat || op.Flag != os.O_RDONLY {
			t.Errorf("%s %s", op.Kind, op.Path)
		}
		return faultfs.Fault{}
	}
	for _, repair := range []func() (*Plan, Saved, error){
		func() (*Plan, Saved, error) {
			return InPlace(t.Context(), filesOn(faultfs.Inject(d, wrote)), Options{})
		},
		func() (*Plan, Saved, error) {
			return Copy(t.Context(), filesOn(faultfs.Inject(d, wrote)), Options{}, "")
		},
	} {
		if r, saved, err := repair(); err != nil || len(r.Changes) > 0 || saved != (Saved{}) {
			t.Errorf("%+v %+v %v", r, saved, err)
		}
	}
}

// At every call, the power goes or the disk fails: the log is what it was or
// what it is to be, and then the backup is there.
func TestARepairInPlaceLosesNothing(t *testing.T) {
	whole := func(t *testing.T, what string, d faultfs.FS) {
		t.Helper()
		switch got := content(t, d, "/logs/a.jsonl"); got {
		case gapGood + gapBehind:
		case gapGood:
			if b := content(t, d, "/state/doctor/a/before.jsonl"); b != gapGood+gapBehind {
				t.Errorf("%s: the log is repaired, the backup is %q", what, b)
			}
			if b := content(t, d, "/state/doctor/a/behind.jsonl"); b != gapBehind {
				t.Errorf("%s: the log is repaired, what was left out is %q", what, b)
			}
		default:
			t.Errorf("%s: the log is %q", what, got)
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	calls := 0
	m := disk(t)
	_, saved, err := InPlace(t.Context(), filesOn(faultfs.Inject(m, func(op faultfs.Op) faultfs.Fault {
		calls++
		for range 20 {
			whole(t, "power lost before "+string(op.Kind)+" "+op.Path, m.PowerCut(r))
		}
		return faultfs.Fault{}
	})), Options{})
	if err != nil || content(t, m, "/logs/a.jsonl") != gapGood || saved.Backup != "/state/doctor/a/before.jsonl" {
		t.Fatalf("%+v %v", saved, err)
	}
	for range 20 {
		cut := m.PowerCut(r)
		if got := content(t, cut, "/logs/a.jsonl"); got != gapGood {
			t.Errorf("power lost afterwards: the log is %q", got)
		}
	}
	if calls < 20 {
		t.Errorf("only %d calls", calls)
	}
	for fail := range calls {
		m := disk(t)
		n := 0
		_, _, err := InPlace(t.Context(), filesOn(faultfs.Inject(m, func(op faultfs.Op) faultfs.Fault {
			if n++; n-1 != fail {
				return faultfs.Fault{}
			}
			return faultfs.Fault{Err: syscall.EIO, Part: len(op.Data) / 2}
		})), Options{})
		whole(t, "a call failed", m)
		if _, statErr := m.Stat("/logs/a.jsonl.repaired.tmp"); err != nil && statErr == nil {
			t.Errorf("call %d: a temporary file is left: %v", fail, err)
		}
	}
}

func TestARepairInPlaceAndAWriterExcludeEachOther(t *testing.T) {
	dir := t.TempDir()
	st, err := jsonl.New(filepath.Join(dir, "root"), jsonl.Options{Plain: true, Program: "writer"})
	if err != nil {
		t.Fatal(err)
	}
	cwd := "/home/x"
	h := outcrop.Header{ID: "s1", CreatedAt: 1, Cwd: &cwd}
	live, err := store.Create(t.Context(), st, h, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := live.Session().Append(outcrop.TurnStart{Turn: 1}); err != nil {
		t.Fatal(err)
	}
	if err := live.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	inRoot := filepath.Join(dir, "root", "--home-x--", "s1", "session.jsonl")
	alone := filepath.Join(dir, "alone.jsonl")
	b, err := os.ReadFile(inRoot)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		path    string
		acquire func() (store.Lease, error)
	}{
		{inRoot, func() (store.Lease, error) { return st.Acquire(t.Context(), "s1") }},
		{alone, func() (store.Lease, error) {
			fs, err := jsonl.File(alone, jsonl.Options{Program: "writer"})
			if err != nil {
				return nil, err
			}
			return fs.Acquire(t.Context(), "")
		}},
	} {
		if err := os.WriteFile(c.path, append(bytes.Clone(b), "torn"...), 0o600); err != nil {
			t.Fatal(err)
		}
		lease, err := c.acquire()
		if err != nil {
			t.Fatal(err)
		}
		files := Files{Log: c.path, Keep: filepath.Join(dir, "state"), Stamp: "a"}
		var held *store.LockedError
		if _, _, err := InPlace(t.Context(), files, Options{}); !errors.As(err, &held) || held.Holder.Program != "writer" {
			t.Errorf("%s: repaired under a writer: %v", c.path, err)
		}
		if err := lease.Close(); err != nil {
			t.Fatal(err)
		}
		if _, _, err := InPlace(t.Context(), files, Options{}); err != nil {
			t.Errorf("%s: %v", c.path, err)
		}
		if lease, err = c.acquire(); err != nil {
			t.Fatal(err)
		}
		if err := lease.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// Another program that writes while the repair works is noticed.
func TestARepairInPlaceNoticesAWriterWithoutALock(t *testing.T) {
	m := disk(t)
	_, _, err := InPlace(t.Context(), filesOn(faultfs.Inject(m, func(op faultfs.Op) faultfs.Fault {
		if op.Kind == faultfs.OpOpen && strings.HasSuffix(op.Path, ".repaired.tmp") && op.Flag != os.O_RDONLY {
			f, err := m.OpenFile("/logs/a.jsonl", os.O_WRONLY|os.O_APPEND, 0)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.WriteString(f, gapBehind); err != nil {
				t.Fatal(err)
			}
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
		}
		return faultfs.Fault{}
	})), Options{})
	if !errors.Is(err, store.ErrMoved) || content(t, m, "/logs/a.jsonl") != gapGood+gapBehind+gapBehind {
		t.Errorf("%v, the log is %q", err, content(t, m, "/logs/a.jsonl"))
	}
}
