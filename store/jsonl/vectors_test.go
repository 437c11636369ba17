package jsonl

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/conformance"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/wire"
)

func TestPathVectors(t *testing.T) {
	type vector struct {
		Name, Kind string
		Expect     struct {
			OK    bool
			Value string
		}
	}
	for _, line := range conformance.Lines(t, "paths") {
		var v vector
		if err := json.Unmarshal(line, &v); err != nil {
			t.Fatal(err)
		}
		t.Run(v.Name, func(t *testing.T) {
			// encoding/json would turn lone surrogates into U+FFFD.
			input, ok := jsonwire.Text(jsonwire.Get(line, "input"))
			if !ok {
				t.Fatal("no input")
			}
			f := ProjectKey
			if v.Kind == "encodeSegment" {
				f = EncodeSegment
			}
			if got := f(input); got != v.Expect.Value {
				t.Fatalf("%q gives %q, want %q", input, got, v.Expect.Value)
			}
			if v.Kind == "encodeSegment" && v.Expect.OK {
				if got := decodeSegment(v.Expect.Value); got != input {
					t.Fatalf("%q is decoded as %q, want %q", v.Expect.Value, got, input)
				}
			}
		})
	}
}

// fileVector is a case of files.jsonl.
type fileVector struct {
	Name, Compression, ID, Cwd, File string
	Base64                           *[]byte
	Cut                              *int
	Layout                           []struct {
		Path   string
		Base64 []byte
	}
	Expect struct {
		Stored, Inspect, Load, List expectation
	}
}

type expectation struct {
	OK         bool
	Same       string
	ErrorClass string
	Events     int
	Closers    []string
	Log        []json.RawMessage
	Changed    bool
	FileBytes  int
	FileSha256 string
	TextBytes  int
	TextSha256 string
	IDs        []string
}

// differences are the cases where this store answers otherwise than dsh on
// purpose, and why. Every one must differ.
var differences = map[string]string{
	"plain/blank-line-at-end":               "blank lines are read over and kept",
	"plain/blank-line-middle":               "blank lines are read over and kept",
	"plain/blank-line-in-tail":              "blank lines are read over and kept",
	"plain/blank-line-after-header":         "blank lines are read over and kept",
	"plain/space-line-at-end":               "blank lines are read over and kept",
	"plain/null-line-tail":                  "null in the tail is a bad line like any other; dsh fails on it by accident",
	"layout/opposite-encoding-same-session": "a log is read in either encoding; only creating one in a root of the other is refused",
	"layout/flat-legacy-file":               "a stray file is listed as damaged and stops nobody",
	"zstd/bad-checksum-last":                "a bad frame without a later turn/end is a torn tail",
	"zstd/bad-block-last":                   "a bad frame without a later turn/end is a torn tail",
	"zstd/bad-block-middle":                 "a bad frame without a later turn/end is a torn tail",
	"zstd/bad-magic-second":                 "a bad frame without a later turn/end is a torn tail",
	"zstd/reserved-bit":                     "a bad frame without a later turn/end is a torn tail",
	"zstd/nul-tail-4":                       "zeros after a loss of power are a torn tail",
	"zstd/nul-tail-64":                      "zeros after a loss of power are a torn tail",
	"zstd/garbage-tail":                     "a bad frame without a later turn/end is a torn tail",
	"zstd/complete-frame-no-newline":        "a last line without newline is a torn tail in both encodings",
	"zstd/blank-line-in-last-frame":         "blank lines are read over and kept",
	"zstd/damaged-line-no-turn-end":         "a bad line without a later turn/end is a torn tail in both encodings",
	"zstd/duplicate-frame-tail":             "a repeated seq without a later turn/end is a torn tail in both encodings",
}

// TestFileVectors lays each file down as dsh would, opens the session, which
// repairs it on disk, and looks at what is stored then.
func TestFileVectors(t *testing.T) {
	seen := map[string]bool{}
	conformance.Cases(t, "files", func(v *fileVector) string { return v.Name }, func(t *testing.T, v *fileVector) {
		root := layDown(t, v)
		before := names(t, root)
		want := v.Expect.Load
		if want.Same != "" {
			want = v.Expect.Stored
		}
		if l := v.Expect.List; len(l.IDs) > 0 || l.OK {
			listVector(t, root, l.IDs)
		}
		err := loadVector(t, root, v, want)
		why, listed := differences[v.Name]
		switch {
		case listed && err == "":
			t.Fatalf("does not differ any more (%s)", why)
		case listed:
			seen[v.Name] = true
		case err != "":
			t.Fatal(err)
		}
		for _, name := range names(t, root) {
			base := filepath.Base(name)
			if !slices.Contains(before, name) && base != "session.lock" && !strings.HasPrefix(base, "session.torn-") {
				t.Errorf("%s was made", name)
			}
		}
	})
	for name := range differences {
		if !seen[name] {
			t.Errorf("no case %s", name)
		}
	}
}

func (v *fileVector) encoding() wire.Encoding {
	if v.Compression == "zstd" {
		return wire.Zstd
	}
	return wire.Plain
}

func layDown(t *testing.T, v *fileVector) (root string) {
	t.Helper()
	root = t.TempDir()
	put := func(path string, b []byte) {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range v.Layout {
		put(filepath.Join(root, filepath.FromSlash(f.Path)), f.Base64)
	}
	var b []byte
	switch {
	case v.Base64 != nil:
		b = *v.Base64
	case v.File != "":
		var err error
		if b, err = os.ReadFile(filepath.Join(conformance.Dir(), "vectors", v.File)); err != nil {
			t.Fatal(err)
		}
		if v.Cut != nil {
			b = b[:*v.Cut]
		}
	default:
		return root
	}
	project := noCwd
	if v.Cwd != "" {
		project = ProjectKey(v.Cwd)
	}
	put(filepath.Join(root, project, EncodeSegment(v.ID), logName(v.encoding())), b)
	return root
}

// listVector checks that what dsh lists is listed here, and that what only this
// store lists has a reason.
func listVector(t *testing.T, root string, ids []string) {
	t.Helper()
	s, err := New(root, Options{})
	if err != nil {
		t.Fatal(err)
	}
	infos, err := s.List(context.Background(), store.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, in := range infos {
		if !slices.Contains(ids, in.ID) && (in.Reason == "" || in.State != store.StateDamaged && in.State != store.StateNewer) {
			t.Errorf("dsh does not list %+v", in)
		}
	}
	for _, id := range ids {
		if !slices.ContainsFunc(infos, func(in store.Info) bool { return in.ID == id }) {
			t.Errorf("%s is not listed", id)
		}
	}
}

// loadVector opens the session, closes it, and compares what is stored. It
// answers how that differs.
func loadVector(t *testing.T, root string, v *fileVector, want expectation) string {
	t.Helper()
	ctx := context.Background()
	s, err := New(root, Options{})
	if err != nil {
		t.Fatal(err)
	}
	s.disk = unsynced()
	l, err := store.Open(ctx, s, v.ID, store.Options{})
	if err != nil {
		if want.OK {
			return "refused: " + err.Error()
		}
		return ""
	}
	closers := 0
	for e := range outcrop.Events(l.Session().Log(), l.Session().Stored()) {
		if e.Type != outcrop.TypeEndSeed {
			closers++
		}
	}
	if err := l.Close(ctx); err != nil {
		return err.Error()
	}
	if !want.OK {
		return "opened, and dsh refuses it as " + want.ErrorClass
	}
	got, tail, err := store.Inspect(ctx, s, v.ID, outcrop.Options{})
	if err != nil || tail.Torn {
		t.Fatalf("after the repair: %v, %+v", err, tail)
	}
	n := got.Len()
	if n == 0 || got.Log().At(outcrop.Seq(n-1)).Type != outcrop.TypeEndSeed {
		return "the stored log does not end with session/end-seed"
	}
	if int(l.Session().Stored())+closers == n-1 {
		n-- // our end-seed, which dsh writes when it goes on
	}
	if n != want.Events {
		return "another number of events is stored"
	}
	for i, w := range v.Expect.Inspect.Log {
		// Texts that explain closers are ours.
		e := got.Log().At(outcrop.Seq(i))
		// Old shapes are compared as they are seen, not as they are stored.
		seen := outcrop.Event{Type: e.Type, Seq: e.Seq, Time: e.Time, Data: e.Data, Sources: e.Sources, Op: e.Op, Ignorable: e.Ignorable}.AppendJSON(nil)
		if !reflect.DeepEqual(value(t, seen), value(t, w)) && !strings.Contains(string(w), "<text>") {
			return fmt.Sprintf("event %d is %s, want %s", i, seen, w)
		}
	}
	// Where dsh and we write the same closers, the text is the same up to our
	// end-seed.
	if slices.Contains(v.Expect.Inspect.Closers, "tool/result") {
		return ""
	}
	text, size, sum := repaired(t, s, v), want.FileBytes, want.FileSha256
	if v.encoding() == wire.Zstd {
		size, sum = want.TextBytes, want.TextSha256
	}
	if sum == "" {
		return ""
	}
	if len(text) < size {
		return "the text is shorter than dsh's"
	}
	if got := sha256.Sum256(text[:size]); hex.EncodeToString(got[:]) != sum {
		return "the text is not dsh's"
	}
	if rest := text[size:]; len(rest) > 0 && (bytes.Count(rest, []byte("\n")) != 1 || !bytes.Contains(rest, []byte(`"session/end-seed"`))) {
		return "more than an end-seed follows"
	}
	return ""
}

func repaired(t *testing.T, s *Store, v *fileVector) []byte {
	t.Helper()
	f, err := s.find(v.ID)
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(f.path())
	if err != nil {
		t.Fatal(err)
	}
	if v.encoding() != wire.Zstd {
		return b
	}
	z, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	if b, err = z.DecodeAll(b, nil); err != nil {
		t.Fatal(err)
	}
	return b
}

func value(t *testing.T, b []byte) any {
	t.Helper()
	// What is infinite to JavaScript is null in its JSON.
	b = bytes.ReplaceAll(b, []byte("1e999"), []byte("null"))
	var v any
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatal(err)
	}
	return v
}
