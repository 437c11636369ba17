package jsonl

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/genlog"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/memory"
	"github.com/outcrop-dev/outcrop/wire"
	"github.com/outcrop-dev/outcrop/wire/formats"
)

// aged is a log of some events in a format from 0 to 4, and its events in the
// words of format 0. The header's id is gen-SEED.
func aged(t testing.TB, seed uint64, n, format int, enc wire.Encoding) (file []byte, h outcrop.Header, events []string) {
	t.Helper()
	file, err := genlog.Aged(seed, n, format, enc)
	ok(t, err)
	r, err := wire.NewReader(bytes.NewReader(file), int64(len(file)), enc)
	ok(t, err)
	for rec, err := range r.Records() {
		ok(t, err)
		for e := range rec.Events() {
			events = append(events, string(e.AppendJSON(nil)))
		}
	}
	return file, genlog.Header(seed), events
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// keep is what lies under a folder: names, contents and times.
func keep(t *testing.T, root string) map[string]string {
	t.Helper()
	all := map[string]string{}
	must(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		fi, err := d.Info()
		must(t, err)
		text := fi.ModTime().String()
		if !d.IsDir() {
			b, err := os.ReadFile(path)
			must(t, err)
			text += string(b)
		}
		all[path] = text
		return nil
	}))
	return all
}

func putLog(t *testing.T, s *Store, h outcrop.Header, format int, enc wire.Encoding, file []byte) string {
	t.Helper()
	path, err := s.pathFor(h, enc)
	must(t, err)
	must(t, os.MkdirAll(filepath.Dir(path), 0o700))
	path = filepath.Join(filepath.Dir(path), FileName(format, enc))
	must(t, os.WriteFile(path, file, 0o600))
	return path
}

// Whatever is done with logs of later formats, their folders stay what they are,
// times and all; what goes on is a new session of format 0.
func TestLaterFormatsAreReadAndNeverWritten(t *testing.T) {
	for _, enc := range []wire.Encoding{wire.Zstd, wire.Plain} {
		t.Run(string(enc), func(t *testing.T) {
			s := root(t, Options{Plain: enc == wire.Plain})
			want := map[string][]string{}
			var folders []string
			for format := 1; format <= formats.Newest; format++ {
				file, h, events := aged(t, uint64(format), 200, format, enc)
				path := putLog(t, s, h, format, enc, file)
				// What it was before lies beside it.
				old, oh, _ := aged(t, uint64(format), 40, 0, enc)
				putLog(t, s, oh, 0, enc, old)
				want[h.ID] = events
				folders = append(folders, filepath.Dir(path))
			}
			before := make([]map[string]string, len(folders))
			for i, dir := range folders {
				before[i] = keep(t, dir)
			}
			for _, full := range []bool{false, true} {
				infos, err := s.List(bg, store.ListOptions{Full: full})
				must(t, err)
				if len(infos) != len(want) {
					t.Fatalf("%d sessions", len(infos))
				}
				for _, in := range infos {
					format, _ := FormatOf(in.Path)
					if in.State != store.StateOK || in.Reason != LaterReason(format) || in.Header.Format != int64(format) || format == 0 {
						t.Errorf("%+v", in)
					}
					if n := int64(len(want[in.ID])); in.Events != n && !(in.Events == -1 && !full && format >= 2) {
						t.Errorf("%s: %d events, want %d", in.ID, in.Events, n)
					}
				}
			}
			known, err := s.ListKnown(bg, nil)
			must(t, err)
			if len(known) != len(want) {
				t.Errorf("%d known", len(known))
			}
			elsewhere := memory.New()
			for id, events := range want {
				sd, err := s.Read(bg, id)
				must(t, err)
				var got []string
				for r, err := range sd.Records() {
					must(t, err)
					for e := range r.Events() {
						got = append(got, string(e.AppendJSON(nil)))
					}
				}
				must(t, sd.Close())
				if d := cmp.Diff(events, got); d != "" {
					t.Errorf("%s: %s", id, d)
				}
				f, err := s.Follow(bg, id)
				must(t, err)
				if got, err := drain(f); err != nil || !slices.Equal(got, events) {
					t.Errorf("following %s: %d events, %v", id, len(got), err)
				}
				must(t, f.Close())
				_, err = store.Open(bg, s, id, store.Options{})
				if !errors.Is(err, outcrop.ErrReadOnly) || outcrop.CodeOf(err) != CodeLaterFormat || errors.Is(err, outcrop.ErrUnsupported) {
					t.Errorf("opening %s: %v", id, err)
				}
				must(t, store.Copy(bg, elsewhere, s, id))
				for i, make := range []func() (outcrop.Header, error){
					func() (outcrop.Header, error) {
						return store.Fork(bg, s, id, -1, store.Child{ID: id + "-fork", CreatedAt: 5})
					},
					func() (outcrop.Header, error) {
						return store.GoOn(bg, s, s, id, store.Child{ID: id + "-on", CreatedAt: 5})
					},
				} {
					h, err := make()
					must(t, err)
					if h.ParentSession == nil || *h.ParentSession != id || h.ParentFormat == 0 || *h.SeedLength != int64(len(events)) || h.Format != 0 {
						t.Errorf("child %d of %s: %s", i, id, h.Line())
					}
					l, err := store.Open(bg, s, h.ID, store.Options{})
					must(t, err)
					if n := l.Session().Len(); n != len(events)+1 || filepath.Base(logPath(t, s, h.ID)) != "session."+string(enc) {
						t.Errorf("child %d of %s has %d events", i, id, n)
					}
					must(t, l.Close(bg))
				}
			}
			for i, dir := range folders {
				if d := cmp.Diff(before[i], keep(t, dir)); d != "" {
					t.Errorf("%s was written:\n%s", dir, d)
				}
			}
		})
	}
}

// A log file of a later format alone is read, and neither written nor locked.
func TestALogFileOfALaterFormat(t *testing.T) {
	file, h, events := aged(t, 9, 100, 3, wire.Zstd)
	for _, name := range []string{"session.v3.jsonl.zstd", "any.jsonl.zstd"} {
		path := filepath.Join(t.TempDir(), name)
		must(t, os.WriteFile(path, file, 0o600))
		before := keep(t, filepath.Dir(path))
		s, err := File(path, Options{})
		must(t, err)
		infos, err := s.List(bg, store.ListOptions{Full: true})
		must(t, err)
		if len(infos) != 1 || infos[0].ID != h.ID || infos[0].Events != int64(len(events)) || infos[0].Header.Format != 3 {
			t.Errorf("%+v", infos)
		}
		if _, err := OpenFile(bg, path, Options{}, store.Options{}); !errors.Is(err, outcrop.ErrReadOnly) || outcrop.CodeOf(err) != CodeLaterFormat {
			t.Errorf("error %v", err)
		}
		if d := cmp.Diff(before, keep(t, filepath.Dir(path))); d != "" {
			t.Errorf("it was written: %s", d)
		}
	}
}

// What a folder holds, by the names and headers of its files.
func TestTheHighestFormatOfAFolderCounts(t *testing.T) {
	v0, h, _ := aged(t, 1, 40, 0, wire.Zstd)
	v3, _, _ := aged(t, 1, 40, 3, wire.Zstd)
	v3plain, _, _ := aged(t, 1, 40, 3, wire.Plain)
	for name, c := range map[string]struct {
		files map[string][]byte
		state store.State
		says  string
		code  outcrop.Code // of opening it
	}{
		"one before":                {map[string][]byte{"session.jsonl.zstd": v0, "session.v3.jsonl.zstd": v3}, store.StateOK, "format 3 of dsh", CodeLaterFormat},
		"one before, broken":        {map[string][]byte{"session.jsonl.zstd": nil, "session.v1.jsonl": nil, "session.v3.jsonl.zstd": v3}, store.StateOK, "format 3 of dsh", CodeLaterFormat},
		"another encoding before":   {map[string][]byte{"session.jsonl.zstd": v0, "session.v3.jsonl": v3plain}, store.StateOK, "format 3 of dsh", CodeLaterFormat},
		"one that is not known":     {map[string][]byte{"session.jsonl.zstd": v0, "session.v9.jsonl": []byte("?")}, store.StateNewer, "session.v9.jsonl, written by a newer dsh (format 9); what is shown is session.jsonl.zstd, which is older", "NEWER_GENERATION"},
		"that, and a later one":     {map[string][]byte{"session.v3.jsonl.zstd": v3, "session.v12.jsonl": nil, "session.v9.jsonl": nil}, store.StateNewer, "(format 12); what is shown is session.v3.jsonl.zstd", "NEWER_GENERATION"},
		"both encodings":            {map[string][]byte{"session.jsonl.zstd": v0, "session.v3.jsonl.zstd": v3, "session.v3.jsonl": v3plain}, store.StateDamaged, "plain and a zstd log", ""},
		"another format inside":     {map[string][]byte{"session.v2.jsonl.zstd": v3}, store.StateDamaged, "the header says session format 3, the name of the file format 2", CodeLaterFormat},
		"a later format under 0":    {map[string][]byte{"session.jsonl.zstd": v3}, store.StateDamaged, "the header says session format 3, the name of the file format 0", "FORMAT_MISMATCH"},
		"nothing in the later one":  {map[string][]byte{"session.jsonl.zstd": v0, "session.v3.jsonl.zstd": nil}, store.StateDamaged, "FILE_EMPTY", CodeLaterFormat},
		"names that are no formats": {map[string][]byte{"session.jsonl.zstd": v0, "session.v0.jsonl": v3plain, "session.v03.jsonl": v3plain, "session.v3.jsonl.bak": nil, "session.vx.jsonl": nil}, store.StateOK, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := root(t, Options{})
			path, err := s.pathFor(h, wire.Zstd)
			must(t, err)
			must(t, os.MkdirAll(filepath.Dir(path), 0o700))
			for name, b := range c.files {
				must(t, os.WriteFile(filepath.Join(filepath.Dir(path), name), b, 0o600))
			}
			infos, err := s.List(bg, store.ListOptions{})
			must(t, err)
			if len(infos) != 1 || infos[0].State != c.state || !strings.Contains(infos[0].Reason, c.says) || c.says == "" && infos[0].Reason != "" || infos[0].ID != h.ID {
				t.Errorf("%+v", infos)
			}
			l, err := store.Open(bg, s, h.ID, store.Options{})
			if c.state == store.StateOK && c.says == "" {
				must(t, err)
				must(t, l.Close(bg))
			} else if err == nil || outcrop.CodeOf(err) != c.code {
				t.Errorf("opening it: %v", err)
			}
		})
	}
}

// A log of a later format that its program still writes is followed, however it
// grows: what was given is always the beginning, and in the end all; and so when
// somebody stops and goes on at a mark.
func TestAGrowingLogOfALaterFormatIsFollowed(t *testing.T) {
	for _, enc := range []wire.Encoding{wire.Plain, wire.Zstd} {
		for _, format := range []int{1, 2, 3} {
			file, _, want := aged(t, 3, 150, format, enc)
			path := filepath.Join(t.TempDir(), "session."+string(enc))
			r, err := wire.NewReader(bytes.NewReader(file), int64(len(file)), enc)
			must(t, err)
			must(t, os.WriteFile(path, file[:r.HeaderEnd()], 0o600))
			f := followFile(t, path)
			var got []string
			mark := ""
			for at := int(r.HeaderEnd()); at < len(file); {
				at = min(at+1+(at*7919)%900, len(file))
				grow(t, path, file[:at])
				more, err := drain(f)
				must(t, err)
				got = append(got, more...)
				if len(got) > len(want) || !slices.Equal(got, want[:len(got)]) {
					t.Fatalf("format %d, %s: at byte %d it is not the beginning:\n%s", format, enc, at, cmp.Diff(want[:min(len(got), len(want))], got))
				}
				if m := f.(store.Marked).Mark(); m != "" && at%5 == 1 {
					// Another one goes on at the mark.
					mark = m
					must(t, f.Close())
					f = followFile(t, path)
					if !f.(store.Marked).Resume(mark) {
						t.Fatalf("format %d, %s: the mark %q is not taken", format, enc, mark)
					}
				}
			}
			must(t, f.Close())
			if len(got) != len(want) || mark == "" {
				t.Errorf("format %d, %s: %d of %d events, mark %q", format, enc, len(got), len(want), mark)
			}
		}
	}
}

// grow makes a file as long as b, which begins with what it holds.
func grow(t *testing.T, path string, b []byte) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0o600)
	must(t, err)
	fi, err := f.Stat()
	must(t, err)
	_, err = f.Write(b[fi.Size():])
	must(t, err)
	must(t, f.Close())
}
