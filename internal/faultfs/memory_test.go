package faultfs

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"pgregory.net/rapid"
)

// The same calls have the same outcome in memory as on the machine.
func TestMemoryDoesWhatTheMachineDoes(t *testing.T) {
	names := []string{"a", "b", "d", "d/a", "d/b", "d/e", "d/e/a", "x/y"}
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(t.TempDir(), "")
		if err != nil {
			rt.Fatal(err)
		}
		m := NewMemory()
		if _, err := MakeFolders(m, dir); err != nil {
			rt.Fatal(err)
		}
		open := [2]map[string]File{{}, {}}
		appends := map[string]bool{} // of those that are open
		defer func() {
			for _, f := range open[0] {
				f.Close()
			}
		}()
		name := rapid.SampledFrom(names)
		for range rapid.IntRange(1, 40).Draw(rt, "steps") {
			a, b := filepath.Join(dir, name.Draw(rt, "a")), filepath.Join(dir, name.Draw(rt, "b"))
			flag := rapid.SampledFrom([]int{os.O_RDONLY, os.O_WRONLY, os.O_RDWR | os.O_CREATE, os.O_WRONLY | os.O_CREATE | os.O_EXCL,
				os.O_WRONLY | os.O_APPEND, os.O_RDWR | os.O_CREATE | os.O_TRUNC, os.O_WRONLY | os.O_CREATE | os.O_APPEND}).Draw(rt, "flag")
			data := bytes.Repeat([]byte{rapid.Byte().Draw(rt, "byte")}, rapid.IntRange(0, 9).Draw(rt, "length"))
			at := rapid.Int64Range(0, 20).Draw(rt, "at")
			do := rapid.SampledFrom([]string{"open", "open", "write", "write", "writeat", "read", "truncate", "sync", "close",
				"mkdir", "remove", "rename", "renamenew", "link", "stat", "readdir", "syncdir"}).Draw(rt, "do")
			run := func(f FS, i int) (string, error) {
				h := open[i][a]
				switch do {
				case "open":
					h, err := f.OpenFile(a, flag, 0o600)
					if err == nil {
						if old := open[i][a]; old != nil {
							old.Close()
						}
						open[i][a] = h
						appends[a] = flag&os.O_APPEND != 0
					}
					return "", err
				case "mkdir":
					return "", f.Mkdir(a, 0o700)
				case "remove":
					return "", f.Remove(a)
				case "rename", "renamenew":
					fi, err := f.Stat(a)
					to, err2 := f.Stat(b)
					if err == nil && fi.IsDir() || err2 == nil && to.IsDir() || err == nil && err2 == nil && SameFile(fi, to) {
						return "", nil // files only, and not onto themselves
					}
					if do == "rename" {
						return "", f.Rename(a, b)
					}
					return "", f.RenameNew(a, b)
				case "link":
					if fi, err := f.Stat(a); err == nil && fi.IsDir() {
						return "", nil
					}
					return "", f.Link(a, b)
				case "stat":
					fi, err := f.Stat(a)
					if err != nil {
						return "", err
					}
					size := fi.Size()
					if fi.IsDir() {
						size = 0
					}
					return fmt.Sprint(fi.Name(), size, fi.Mode()), nil
				case "readdir":
					list, err := f.ReadDir(a)
					return fmt.Sprint(list), err
				case "syncdir":
					if fi, err := f.Stat(a); err == nil && !fi.IsDir() {
						return "", nil
					}
					return "", f.SyncDir(a)
				}
				if h == nil {
					return "", nil
				}
				if fi, err := h.Stat(); err == nil && fi.IsDir() {
					return "", nil
				}
				switch do {
				case "write":
					n, err := h.Write(data)
					return fmt.Sprint(n), err
				case "writeat":
					if appends[a] {
						return "", nil // the machine refuses that
					}
					n, err := h.WriteAt(data, at)
					return fmt.Sprint(n), err
				case "read":
					b := make([]byte, 30)
					n, err := h.ReadAt(b, at)
					return fmt.Sprintf("%q", b[:n]), err
				case "truncate":
					return "", h.Truncate(at)
				case "sync":
					return "", h.Sync()
				}
				delete(open[i], a)
				return "", h.Close()
			}
			got, gotErr := run(m, 1)
			want, wantErr := run(Real, 0)
			if do == "read" && errors.Is(wantErr, syscall.EBADF) {
				continue // memory lets a writer read
			}
			if gotErr != nil && wantErr != nil && (do == "rename" || do == "renamenew" || do == "link") {
				continue // which of the two names is looked at first is nobody's business
			}
			if got != want || class(gotErr) != class(wantErr) {
				rt.Fatalf("%s %s %s: %q, %v in memory; %q, %v on the machine", do, a, b, got, gotErr, want, wantErr)
			}
		}
	})
}

func class(err error) string {
	switch {
	case err == nil:
		return ""
	case errors.Is(err, fs.ErrNotExist):
		return "not there"
	case errors.Is(err, fs.ErrExist): // ENOTEMPTY too
		return "there"
	}
	return "another"
}

func write(t *testing.T, f FS, name, text string, sync bool) File {
	t.Helper()
	h, err := f.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	must(t, err)
	_, err = h.Write([]byte(text))
	must(t, err)
	if sync {
		must(t, h.Sync())
	}
	return h
}

// outcomes are the contents of a file after many losses of power.
func outcomes(t *testing.T, m *Memory, name string) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	for seed := range uint64(3000) {
		after := m.PowerCut(rand.New(rand.NewPCG(seed, 7)))
		b, err := ReadFile(after, name)
		if errors.Is(err, fs.ErrNotExist) {
			all["gone"] = true
			continue
		}
		must(t, err)
		all[string(b)] = true
	}
	return all
}

func TestWhatALossOfPowerLeaves(t *testing.T) {
	for _, c := range []struct {
		name  string
		do    func(t *testing.T, m *Memory)
		want  []string // some of what must be seen
		never []string
	}{
		{"nothing of a synced file in a synced folder is lost", func(t *testing.T, m *Memory) {
			write(t, m, "/f", "ab", true)
			must(t, m.SyncDir("/"))
		}, []string{"ab"}, []string{"gone", "", "a"}},
		{"a synced file without a synced name may be gone, and is whole else", func(t *testing.T, m *Memory) {
			write(t, m, "/f", "ab", true)
		}, []string{"gone", "ab"}, []string{"", "a"}},
		{"a synced name may lead to a file that lost its bytes, or a part of them", func(t *testing.T, m *Memory) {
			write(t, m, "/f", "ab", false)
			must(t, m.SyncDir("/"))
		}, []string{"", "a", "ab", "a\x00"}, []string{"gone", "b", "\x00b"}},
		{"of two writes the second may be there alone", func(t *testing.T, m *Memory) {
			f := write(t, m, "/f", "12", true)
			must(t, m.SyncDir("/"))
			_, err := f.Write([]byte("ab"))
			must(t, err)
			_, err = f.Write([]byte("cd"))
			must(t, err)
		}, []string{"12", "12ab", "12abcd", "12abc", "12\x00\x00cd", "12a\x00cd"}, []string{"gone", "1", "12cd"}},
		{"a cut may not have happened when what was written behind it did", func(t *testing.T, m *Memory) {
			f := write(t, m, "/f", "1234", true)
			must(t, m.SyncDir("/"))
			must(t, f.Truncate(2))
			_, err := f.Write([]byte("a"))
			must(t, err)
		}, []string{"1234", "12", "12a", "12a4"}, []string{"gone", "1"}},
		{"a rename in a folder is one step", func(t *testing.T, m *Memory) {
			write(t, m, "/f", "old", true)
			write(t, m, "/g", "new", true)
			must(t, m.SyncDir("/"))
			must(t, m.Rename("/g", "/f"))
		}, []string{"old", "new"}, []string{"gone"}},
		{"a file in a new folder needs the folder above too", func(t *testing.T, m *Memory) {
			must(t, m.Mkdir("/d", 0o700))
			write(t, m, "/d/f", "ab", true)
			must(t, m.SyncDir("/d"))
			must(t, m.Link("/d/f", "/f"))
		}, []string{"gone", "ab"}, []string{"a"}},
		{"a second name is the same file", func(t *testing.T, m *Memory) {
			f := write(t, m, "/g", "ab", false)
			must(t, m.Link("/g", "/f"))
			must(t, m.Remove("/g"))
			must(t, f.Sync())
			must(t, m.SyncDir("/"))
		}, []string{"ab"}, []string{"gone", "a"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := NewMemory()
			c.do(t, m)
			seen := outcomes(t, m, "/f")
			for _, w := range c.want {
				if !seen[w] {
					t.Errorf("%q is never seen", w)
				}
			}
			for _, n := range c.never {
				if seen[n] {
					t.Errorf("%q is seen", n)
				}
			}
		})
	}
}

func TestALossOfPowerIsTheSameForTheSameSeedAndChangesNothing(t *testing.T) {
	m := NewMemory()
	f := write(t, m, "/f", strings.Repeat("abc", 50), false)
	must(t, m.SyncDir("/"))
	cut := func() string {
		b, err := ReadFile(m.PowerCut(rand.New(rand.NewPCG(5, 5))), "/f")
		must(t, err)
		return string(b)
	}
	before := cut()
	if before != cut() {
		t.Error("two losses differ")
	}
	if fi, err := f.Stat(); err != nil || fi.Size() != 150 {
		t.Errorf("%v, %v", fi, err)
	}
}

func TestLocksExcludeAndEndWithAClose(t *testing.T) {
	for name, f := range map[string]FS{"memory": NewMemory(), "machine": Real} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "lock")
			_, err := MakeFolders(f, filepath.Dir(path))
			must(t, err)
			const flag = os.O_CREATE | os.O_RDONLY
			a, err := f.Lock(path, flag, false)
			must(t, err)
			for _, shared := range []bool{false, true} {
				if _, err := f.Lock(path, flag, shared); !errors.Is(err, ErrHeld) {
					t.Errorf("shared %v: %v", shared, err)
				}
			}
			must(t, a.Close())
			a, err = f.Lock(path, flag, true)
			must(t, err)
			b, err := f.Lock(path, flag, true)
			must(t, err)
			if _, err := f.Lock(path, flag, false); !errors.Is(err, ErrHeld) {
				t.Error(err)
			}
			there, err := f.Stat(path)
			must(t, err)
			if mine, err := b.Stat(); err != nil || !SameFile(mine, there) {
				t.Error(err)
			}
			must(t, errors.Join(a.Close(), b.Close()))
			if _, err := f.Lock(path+"none", os.O_RDONLY, false); !errors.Is(err, fs.ErrNotExist) {
				t.Error(err)
			}
		})
	}
}

func TestRulesMakeTheNthCallGoWrong(t *testing.T) {
	m := NewMemory()
	f := Inject(m, ByRule(
		&Rule{Kind: OpWrite, Skip: 1, Times: 1, Fault: Fault{Err: syscall.ENOSPC, Part: 1}},
		&Rule{Kind: OpWrite, Skip: 1, Times: 1, Fault: Fault{Short: true, Part: 1}},
		&Rule{Kind: OpSync, Times: 1, Fault: Fault{Err: syscall.EIO}},
		&Rule{Kind: OpMkdir, Match: func(op Op) bool { return op.Path == "/no" }, Fault: Fault{Err: syscall.EDQUOT}},
		&Rule{Kind: OpSyncDir, Fault: Fault{Lie: true}},
		&Rule{Kind: OpOpen, Skip: 1, Times: 1, Fault: Fault{Err: syscall.EMFILE}},
	))
	h, err := f.OpenFile("/f", os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	must(t, err)
	for i, want := range []struct {
		n   int
		err error
	}{{2, nil}, {1, syscall.ENOSPC}, {1, nil}, {2, nil}, {2, nil}} {
		if n, err := h.Write([]byte("ab")); n != want.n || !errors.Is(err, want.err) {
			t.Errorf("write %d: %d, %v", i, n, err)
		}
	}
	if b, err := ReadFile(m, "/f"); err != nil || string(b) != "abaaabab" {
		t.Errorf("%q, %v", b, err)
	}
	if err := h.Sync(); !errors.Is(err, syscall.EIO) {
		t.Error(err)
	}
	must(t, h.Sync())
	must(t, f.Mkdir("/yes", 0o700))
	if err := f.Mkdir("/no", 0o700); !errors.Is(err, syscall.EDQUOT) {
		t.Error(err)
	}
	if _, err := Open(f, "/f"); !errors.Is(err, syscall.EMFILE) {
		t.Error(err)
	}
	must(t, f.SyncDir("/"))
	if seen := outcomes(t, m, "/f"); !seen["gone"] {
		t.Error("a sync that was to be left out was made")
	}
}

func TestFoldersAreMadeOnceAndNotInThePlaceOfAFile(t *testing.T) {
	for name, f := range map[string]FS{"memory": NewMemory(), "machine": Real} {
		t.Run(name, func(t *testing.T) {
			base := t.TempDir()
			_, err := MakeFolders(f, base)
			must(t, err)
			made, err := MakeFolders(f, filepath.Join(base, "a", "b"))
			must(t, err)
			if len(made) != 2 || made[1] != filepath.Join(base, "a", "b") {
				t.Errorf("made %v", made)
			}
			if made, err := MakeFolders(f, filepath.Join(base, "a", "b")); err != nil || made != nil {
				t.Errorf("made %v, %v", made, err)
			}
			write(t, f, filepath.Join(base, "f"), "x", false).Close()
			for _, dir := range []string{"f", "f/g"} {
				if _, err := MakeFolders(f, filepath.Join(base, dir)); err == nil {
					t.Errorf("%s was made", dir)
				}
			}
			must(t, SyncAbove(f, filepath.Join(base, "a", "b")))
		})
	}
}
