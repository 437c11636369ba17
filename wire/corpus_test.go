package wire_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/conformance"
	"github.com/outcrop-dev/outcrop/wire"
)

// corpus yields the path of every real log, relative to the corpus.
func corpus(t testing.TB) []string {
	t.Helper()
	root := filepath.Join(conformance.Dir(), "corpus")
	var out []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			if _, ok := wire.EncodingOf(path); ok {
				rel, _ := filepath.Rel(root, path)
				out = append(out, filepath.ToSlash(rel))
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(out) < 50 {
		t.Fatalf("the corpus has only %d logs", len(out))
	}
	return out
}

func corpusFile(t testing.TB, rel string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(conformance.Dir(), "corpus", filepath.FromSlash(rel)))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// expected is what dsh reads from a log, its closers of an open turn included.
type expected struct {
	Error        string
	EventCount   int
	EventsSHA256 string
	Types        []string
}

func corpusExpected(t *testing.T, rel string) (e expected) {
	t.Helper()
	parts := strings.Split(rel, "/") // CASE/sessions/PROJECT/SESSION/FILE
	b, err := os.ReadFile(filepath.Join(conformance.Dir(), "corpus", parts[0], "expected", parts[1], parts[3]+".json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &e); err != nil {
		t.Fatal(err)
	}
	return e
}

// cuts are the damaged logs of the corpus that have a torn tail.
var cuts = []string{"torn-plain-midline", "torn-plain-garbage", "torn-plain-nul", "torn-plain-nonewline", "torn-plain-badlast-terminated"}

func TestRealLogsAreReadAsDSHReadsThem(t *testing.T) {
	for _, rel := range corpus(t) {
		t.Run(rel, func(t *testing.T) {
			enc, _ := wire.EncodingOf(rel)
			got := readAll(corpusFile(t, rel), enc)
			want := corpusExpected(t, rel)
			caseName, part, _ := strings.Cut(rel, "/")
			if want.Error != "" {
				code := outcrop.Code("FILE_NO_HEADER")
				if caseName == "corrupt-plain-committed" {
					code = "LINE_NOT_JSON"
				}
				if got.OK || got.code != code {
					t.Errorf("got %v, want %s (dsh: %s)", got, code, want.Error)
				}
				return
			}
			if !got.OK {
				t.Fatalf("got %v", got)
			}
			if cut := slices.Contains(cuts, caseName) && strings.HasPrefix(part, "before-"); cut != got.tail.Torn {
				t.Errorf("torn is %v, want %v: %v", got.tail.Torn, cut, got.tail.Reason)
			}
			sum := sha256.New()
			n := 0
			for _, rec := range got.recs {
				for e := range rec.Events() {
					if n < len(want.Types) && string(e.Type) != want.Types[n] {
						t.Fatalf("event %d is a %s, want %s", n, e.Type, want.Types[n])
					}
					if n > 0 {
						sum.Write([]byte{'\n'})
					}
					sum.Write(e.AppendJSON(nil))
					n++
				}
			}
			if n == want.EventCount {
				if s := hex.EncodeToString(sum.Sum(nil)); s != want.EventsSHA256 {
					t.Errorf("the digest of the events is %s, want %s", s, want.EventsSHA256)
				}
				return
			}
			for _, typ := range want.Types[n:] { // what is missing are closers
				if n > want.EventCount || !slices.Contains([]string{"tool/result", "step/end", "turn/end"}, typ) {
					t.Errorf("%d events, want %d; a %s is missing", n, want.EventCount, typ)
				}
			}
		})
	}
}

func TestAnUntouchedLogIsWrittenBackByteForByte(t *testing.T) {
	for _, rel := range corpus(t) {
		enc, _ := wire.EncodingOf(rel)
		file := corpusFile(t, rel)
		got := readAll(file, enc)
		if !got.OK || got.tail.Torn {
			continue
		}
		r, err := wire.NewReader(bytes.NewReader(file), int64(len(file)), enc)
		if err != nil {
			t.Fatal(err)
		}
		text := append(bytes.Clone(r.HeaderLine()), '\n')
		for rec := range r.Records() {
			line := rec.Line()
			if rec.Run != nil {
				line = rec.Run.Line()
			}
			text = append(append(text, line...), '\n')
		}
		if want := plainText(t, file, enc); !bytes.Equal(text, want) {
			t.Errorf("%s: the lines are not those of the file", rel)
		}
		// Written anew in batches, the events stay the same.
		for _, out := range []wire.Encoding{wire.Plain, wire.Zstd} {
			e := wire.NewEncoder(out)
			again := e.Header(nil, r.Header())
			for batch := range slices.Chunk(got.recs, 7) {
				if again, err = e.Batch(again, slices.Values(batch)); err != nil {
					t.Fatal(err)
				}
			}
			if !bytes.Equal(eventsText(readAll(again, out)), eventsText(got)) {
				t.Errorf("%s as %s: other events", rel, out)
			}
		}
	}
}

// eventsText is the JSON of all events.
func eventsText(o outcome) []byte {
	var b []byte
	for _, rec := range o.recs {
		for e := range rec.Events() {
			b = append(e.AppendJSON(b), '\n')
		}
	}
	return b
}
