package jsonl_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/doctor"
	"github.com/outcrop-dev/outcrop/internal/faultfs"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/storetest"
	"github.com/outcrop-dev/outcrop/wire"
)

// small stores a log of two turns and an open one in three batches, and returns
// its bytes, its events and where its header ends.
func small(t *testing.T, plain bool) (file []byte, lines []string, head int) {
	t.Helper()
	m := faultfs.NewMemory()
	l, err := store.Create(bg, storeOn(m, plain), storetest.Header("s1"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for turn := 1; turn <= 3; turn++ {
		if err = storetest.StartTurn(l.Session(), turn); err == nil && turn < 3 {
			err = storetest.EndTurn(l.Session(), turn)
		}
		if err = errors.Join(err, l.Flush(bg)); err != nil {
			t.Fatal(err)
		}
	}
	lines = linesOf(l.Session(), outcrop.Seq(l.Session().Len()))
	if err := l.Close(bg); err != nil {
		t.Fatal(err)
	}
	file = []byte(read(m, pathOf(m, "s1")))
	r, err := wire.NewReader(bytes.NewReader(file), int64(len(file)), encoding(plain))
	if err != nil {
		t.Fatal(err)
	}
	return file, lines, int(r.HeaderEnd())
}

func encoding(plain bool) wire.Encoding {
	if plain {
		return wire.Plain
	}
	return wire.Zstd
}

// verdict is what is said of a file that was changed.
type verdict struct {
	events int
	torn   bool
	err    error // of reading
	ok     bool  // says the doctor
}

// judge reads a changed file, asks the doctor, and compares what was read with
// the events that were stored; from the seq changed on they may differ.
func judge(t *testing.T, what string, file []byte, plain bool, lines []string, changed int) verdict {
	t.Helper()
	v := verdict{}
	findings, sum := doctor.Verify(bg, doctor.Target{Name: what, R: bytes.NewReader(file), Size: int64(len(file)), Encoding: encoding(plain)}, doctor.Options{})
	for range findings {
	}
	v.ok = sum.OK
	cut := sum.TruncatedAt != nil
	r, err := wire.NewReader(bytes.NewReader(file), int64(len(file)), encoding(plain))
	if err != nil {
		v.err = err
		return v
	}
	s, err := outcrop.Inspect(r.Header(), r.Records(), outcrop.Options{})
	v.err, v.torn, v.events = err, r.Tail().Torn, s.Len()
	if err == nil && cut != v.torn {
		t.Fatalf("%s: the tail is torn: %v, says the doctor: %v", what, v.torn, cut)
	}
	for i, line := range linesOf(s, outcrop.Seq(s.Len())) {
		if i < changed && (i >= len(lines) || line != lines[i]) {
			t.Fatalf("%s: event %d is accepted as\n%s", what, i, line)
		}
	}
	return v
}

func TestEveryByteCutGivesTheRightVerdict(t *testing.T) {
	for _, plain := range []bool{true, false} {
		file, lines, head := small(t, plain)
		for n := range file {
			what := fmt.Sprintf("plain %v, cut at byte %d of %d", plain, n, len(file))
			v := judge(t, what, file[:n], plain, lines, len(lines))
			switch {
			case n < head-1 || n < head && !plain:
				if v.err == nil || v.ok {
					t.Errorf("%s: a file without a whole header is taken for a log", what)
				}
			case v.err != nil && n >= head:
				t.Errorf("%s: %v", what, v.err)
			case v.events == len(lines) && !v.torn && n < len(file)-1:
				t.Errorf("%s: nothing is missed", what)
			}
		}
	}
}

// With a checksum, no changed bit gets through. Without one, what stands before
// the changed line stays as it was.
func TestEveryBitThatFlipsIsFoundWhereThereIsAChecksum(t *testing.T) {
	for _, plain := range []bool{true, false} {
		file, lines, head := small(t, plain)
		header := ""
		if r, err := wire.NewReader(bytes.NewReader(file), int64(len(file)), encoding(plain)); err == nil {
			header = string(r.HeaderLine())
		}
		found, harmless := 0, 0
		for at := range file {
			bits := []byte{1, 2, 4, 8, 16, 32, 64, 128}
			switch {
			case testing.Short() && at%3 != 0:
				continue
			case testing.Short() || plain:
				bits = []byte{1 << (at % 8)}
			}
			for _, bit := range bits {
				b := bytes.Clone(file)
				b[at] ^= bit
				what := fmt.Sprintf("plain %v, byte %d of %d changed by %d", plain, at, len(file), bit)
				changed := len(lines)
				if plain {
					changed = max(0, bytes.Count(file[:at], []byte{'\n'})-1)
				}
				v := judge(t, what, b, plain, lines, changed)
				if plain {
					continue
				}
				if at < head {
					if r, err := wire.NewReader(bytes.NewReader(b), int64(len(b)), wire.Zstd); err == nil && string(r.HeaderLine()) != header {
						t.Fatalf("%s: the header is accepted as %s", what, r.HeaderLine())
					}
				}
				whole := v.err == nil && !v.torn && v.events == len(lines)
				switch {
				case v.err == nil && !v.torn && !whole:
					t.Errorf("%s: %d events of %d, and nothing is said", what, v.events, len(lines))
				case !whole && !v.torn && v.ok:
					t.Errorf("%s: the doctor finds nothing", what)
				case whole:
					harmless++
				default:
					found++
				}
			}
		}
		t.Logf("plain %v: %d bytes; of the changes %d were found, %d changed nothing that counts", plain, len(file), found, harmless)
	}
}

// What is cut or changed is gone on with as a whole log, or refused and left as
// it is.
func TestAChangedLogIsContinuedOrRefused(t *testing.T) {
	for _, plain := range []bool{true, false} {
		file, _, head := small(t, plain)
		path := pathOfStored(t, plain)
		step := 1
		if testing.Short() {
			step = 7
		}
		for at := head; at < len(file); at += step {
			for _, b := range [][]byte{file[:at], append(append(bytes.Clone(file[:at]), file[at]^byte(1<<(at%8))), file[at+1:]...)} {
				m := faultfs.NewMemory()
				put(t, m, path, b)
				st := storeOn(m, plain)
				l, err := store.Open(bg, st, "s1", store.Options{})
				if err != nil {
					var e *outcrop.Error
					if !errors.As(err, &e) {
						t.Fatalf("plain %v, byte %d: %v", plain, at, err)
					}
					if read(m, path) != string(b) {
						t.Fatalf("plain %v, byte %d: a log that was refused was changed", plain, at)
					}
					continue
				}
				if err := errors.Join(storetest.Turn(l.Session(), 9), l.Flush(bg)); err != nil {
					t.Fatalf("plain %v, byte %d: %v", plain, at, err)
				}
				want := linesOf(l.Session(), outcrop.Seq(l.Session().Len()))
				if err := l.Close(bg); err != nil {
					t.Fatal(err)
				}
				s, tail, err := store.Inspect(bg, st, "s1", outcrop.Options{})
				if err != nil || tail.Torn || s.Len() != len(want) {
					t.Fatalf("plain %v, byte %d: after going on %d events of %d, %+v, %v", plain, at, s.Len(), len(want), tail, err)
				}
			}
		}
	}
}

func pathOfStored(t *testing.T, plain bool) string {
	t.Helper()
	m := faultfs.NewMemory()
	st := storeOn(m, plain)
	if err := st.Put(bg, storetest.Header("s1"), func(func(outcrop.Record, error) bool) {}); err != nil {
		t.Fatal(err)
	}
	return pathOf(m, "s1")
}

func put(t *testing.T, m faultfs.FS, path string, b []byte) {
	t.Helper()
	_, err := faultfs.MakeFolders(m, filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	f, err := m.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o600)
	if err == nil {
		_, err = f.Write(b)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}
