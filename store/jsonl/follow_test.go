package jsonl

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/genlog"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/wire"
)

// logBytes is a log of some batches, and where each batch ends.
func logBytes(t testing.TB, enc wire.Encoding, batches, events int) (file []byte, ends []int, all []string) {
	t.Helper()
	e := wire.NewEncoder(enc)
	file = e.Header(nil, genlog.Header(1))
	ends = []int{len(file)}
	recs := slices.Collect(genlog.Records(1, batches*events))
	for part := range slices.Chunk(recs, events) {
		var err error
		if file, err = e.Batch(file, slices.Values(part)); err != nil {
			t.Fatal(err)
		}
		ends = append(ends, len(file))
	}
	for _, r := range recs {
		all = append(all, string(r.AppendJSON(nil)))
	}
	return file, ends, all
}

func followFile(t testing.TB, path string) store.Following {
	t.Helper()
	s, err := File(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	f, err := s.Follow(context.Background(), "")
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func drain(f store.Following) (events []string, failed error) {
	for r, err := range f.Next(context.Background()) {
		if err != nil {
			failed = err
			continue
		}
		for e := range r.Events() {
			events = append(events, string(e.AppendJSON(nil)))
		}
	}
	return events, failed
}

// However a log grows, byte by byte or all at once: what was yielded is always
// the beginning of it, in a zstd log only of whole frames, and in the end all.
func TestAGrowingLogIsFollowedWithoutAGapOrATwin(t *testing.T) {
	for _, enc := range []wire.Encoding{wire.Plain, wire.Zstd} {
		file, ends, all := logBytes(t, enc, 12, 30)
		path := filepath.Join(t.TempDir(), "a."+string(enc))
		rapid.Check(t, func(rt *rapid.T) {
			size := ends[0] + rapid.IntRange(0, 200).Draw(rt, "first")
			if err := os.WriteFile(path, file[:size], 0o600); err != nil {
				rt.Fatal(err)
			}
			f := followFile(t, path)
			defer f.Close()
			w, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
			if err != nil {
				rt.Fatal(err)
			}
			defer w.Close()
			var got []string
			for {
				events, err := drain(f)
				if err != nil {
					rt.Fatal(err)
				}
				got = append(got, events...)
				if len(got) > len(all) || len(got) > 0 && got[len(got)-1] != all[len(got)-1] {
					rt.Fatalf("after %d bytes: %d events that are not the first ones", size, len(got))
				}
				frames := 0
				for _, end := range ends[1:] {
					if end <= size {
						frames++
					}
				}
				if whole := min(frames*30, len(all)); len(got) < whole || enc == wire.Zstd && len(got) > whole {
					rt.Fatalf("after %d bytes: %d events, %d are whole", size, len(got), whole)
				}
				if size == len(file) {
					break
				}
				n := min(rapid.OneOf(rapid.IntRange(1, 40), rapid.IntRange(1, len(file))).Draw(rt, "more"), len(file)-size)
				if _, err := w.Write(file[size : size+n]); err != nil {
					rt.Fatal(err)
				}
				size += n
			}
			if d := cmp.Diff(all, got); d != "" {
				rt.Fatalf("(-log +followed):\n%s", d)
			}
		})
	}
}

// What was read once is not read again: it could as well be something else.
func TestFollowingReadsOnlyWhatIsNew(t *testing.T) {
	for _, enc := range []wire.Encoding{wire.Plain, wire.Zstd} {
		file, ends, all := logBytes(t, enc, 3, 30)
		path := filepath.Join(t.TempDir(), "a."+string(enc))
		if err := os.WriteFile(path, file[:ends[2]], 0o600); err != nil {
			t.Fatal(err)
		}
		f := followFile(t, path)
		defer f.Close()
		if got, err := drain(f); err != nil || len(got) != 60 {
			t.Fatalf("%d events, %v", len(got), err)
		}
		w, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		if _, err := w.WriteAt(bytes.Repeat([]byte{'x'}, ends[2]-ends[0]), int64(ends[0])); err != nil {
			t.Fatal(err)
		}
		if _, err := w.WriteAt(file[ends[2]:], int64(ends[2])); err != nil {
			t.Fatal(err)
		}
		got, err := drain(f)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(all[60:], got); d != "" {
			t.Errorf("%s (-want +got):\n%s", enc, d)
		}
	}
}

func TestALogThatIsNotWhatItWasIsNotFollowedOn(t *testing.T) {
	file, ends, _ := logBytes(t, wire.Plain, 3, 30)
	for _, c := range []struct {
		name   string
		change func(path string) error
		want   error
	}{
		{"it is gone", os.Remove, outcrop.ErrNotFound},
		{"another file is in its place", func(path string) error {
			if err := os.WriteFile(path+".new", file, 0o600); err != nil {
				return err
			}
			return os.Rename(path+".new", path)
		}, store.ErrMoved},
		{"it was cut", func(path string) error { return os.Truncate(path, int64(ends[1])) }, store.ErrMoved},
		{"other events follow", func(path string) error {
			return os.WriteFile(path, append(slices.Clone(file[:ends[2]]), file[ends[1]:]...), 0o600)
		}, store.ErrMoved},
		{"events are missing", func(path string) error {
			cut := bytes.IndexByte(file[ends[2]:], '\n') + 1
			return os.WriteFile(path, append(slices.Clone(file[:ends[2]]), file[ends[2]+cut:]...), 0o600)
		}, store.ErrMoved},
		{"damage before the end of a turn", func(path string) error {
			b := append(slices.Clone(file[:ends[2]]), "junk\n"...)
			return os.WriteFile(path, append(b, `{"type":"turn/end","seq":61,"time":1,"data":{"turn":1,"reason":{"kind":"completed"}}}`+"\n"...), 0o600)
		}, outcrop.ErrDamaged},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "a.jsonl")
			if err := os.WriteFile(path, file[:ends[2]], 0o600); err != nil {
				t.Fatal(err)
			}
			f := followFile(t, path)
			defer f.Close()
			if got, err := drain(f); err != nil || len(got) != 60 {
				t.Fatalf("%d events, %v", len(got), err)
			}
			if err := c.change(path); err != nil {
				t.Fatal(err)
			}
			got, err := drain(f)
			if len(got) != 0 || !errors.Is(err, c.want) {
				t.Errorf("%d events, %v", len(got), err)
			}
			var e *outcrop.Error
			if c.want == outcrop.ErrDamaged && (!errors.As(err, &e) || e.Offset != int64(ends[2]) || e.Path != path) {
				t.Errorf("the place is wrong: %+v", e)
			}
		})
	}
}

// A record that is too big to be read is told, and the rest comes.
func TestFollowingGoesOnBehindARecordThatCannotBeRead(t *testing.T) {
	file, ends, _ := logBytes(t, wire.Plain, 2, 30)
	path := filepath.Join(t.TempDir(), "a.jsonl")
	deep := append(append([]byte(`{"type":"x","seq":30,"time":1,"data":`), bytes.Repeat([]byte{'['}, 20_000)...), append(bytes.Repeat([]byte{']'}, 20_000), "}\n"...)...)
	if err := os.WriteFile(path, file[:ends[1]], 0o600); err != nil {
		t.Fatal(err)
	}
	f := followFile(t, path)
	defer f.Close()
	if got, err := drain(f); err != nil || len(got) != 30 {
		t.Fatalf("%d events, %v", len(got), err)
	}
	rest := bytes.SplitAfter(file[ends[1]:], []byte("\n"))
	if err := os.WriteFile(path, slices.Concat(file[:ends[1]], deep, bytes.Join(rest[1:], nil)), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := drain(f)
	if outcrop.CodeOf(err) != "RECORD_TOO_BIG" || len(got) == 0 {
		t.Errorf("%d events, %v", len(got), err)
	}
	if more, err := drain(f); len(more) != 0 || err != nil {
		t.Errorf("then %d events, %v", len(more), err)
	}
}
