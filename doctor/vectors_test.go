package doctor_test

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/outcrop-dev/outcrop/doctor"
	"github.com/outcrop-dev/outcrop/internal/conformance"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/wire"
)

// differences lists the files that Outcrop takes otherwise than dsh on
// purpose, and why. A file that is listed must differ; nothing else may.
var differences = map[string]string{
	"plain/blank-line-at-end":       "blank lines are kept and read over",
	"plain/blank-line-middle":       "blank lines are kept and read over",
	"plain/blank-line-in-tail":      "blank lines are kept and read over",
	"plain/blank-line-after-header": "blank lines are kept and read over",
	"plain/space-line-at-end":       "blank lines are kept and read over",
	"zstd/blank-line-in-last-frame": "blank lines are kept and read over",
	"plain/null-line-tail":          "a line that is no object is damage like any other; dsh stumbles over null",

	"plain/version-1": "format 1 has the events of format 0, and is read",
	"zstd/version-1":  "format 1 has the events of format 0, and is read",

	"plain/header-wrong-id":          "a file is judged alone, wherever it lies",
	"plain/header-cwd-elsewhere":     "a file is judged alone, wherever it lies",
	"zstd/wrong-id":                  "a file is judged alone, wherever it lies",
	"layout/flat-legacy-file":        "a file is judged alone, whatever lies beside it",
	"layout/same-id-in-two-projects": "a file is judged alone, whatever lies beside it",

	"zstd/bad-checksum-last":         "a zstd tail with no finished turn behind the damage is cut",
	"zstd/bad-block-last":            "a zstd tail with no finished turn behind the damage is cut",
	"zstd/bad-block-middle":          "a zstd tail with no finished turn behind the damage is cut",
	"zstd/bad-magic-second":          "a zstd tail with no finished turn behind the damage is cut",
	"zstd/reserved-bit":              "a zstd tail with no finished turn behind the damage is cut",
	"zstd/nul-tail-4":                "a zstd tail with no finished turn behind the damage is cut",
	"zstd/nul-tail-64":               "a zstd tail with no finished turn behind the damage is cut",
	"zstd/garbage-tail":              "a zstd tail with no finished turn behind the damage is cut",
	"zstd/complete-frame-no-newline": "a zstd tail with no finished turn behind the damage is cut",
	"zstd/damaged-line-no-turn-end":  "a zstd tail with no finished turn behind the damage is cut",
	"zstd/duplicate-frame-tail":      "a zstd tail with no finished turn behind the damage is cut",
}

// dig follows member names down.
func dig(b []byte, names ...string) []byte {
	for _, n := range names {
		b = jsonwire.Get(b, n)
	}
	return b
}

func text(b []byte, names ...string) string {
	s, _ := jsonwire.Text(dig(b, names...))
	return s
}

func num(b []byte, names ...string) int64 {
	n, ok := jsonwire.Int(dig(b, names...))
	if !ok {
		return -1
	}
	return n
}

func yes(b []byte, names ...string) bool { return string(dig(b, names...)) == "true" }

// fileCase is one case of files.jsonl.
type fileCase struct {
	raw   []byte
	name  string
	enc   wire.Encoding
	bytes []byte // nil: there is no file
}

func fileCases(t *testing.T) (out []fileCase) {
	t.Helper()
	whole := map[string][]byte{}
	for _, raw := range conformance.Lines(t, "files") {
		c := fileCase{raw: raw, name: text(raw, "name"), enc: wire.Plain}
		if text(raw, "compression") == "zstd" {
			c.enc = wire.Zstd
		}
		if b64 := dig(raw, "base64"); b64 != nil {
			s, _ := jsonwire.Text(b64)
			b, err := base64.StdEncoding.DecodeString(s)
			if err != nil {
				t.Fatal(err)
			}
			c.bytes = append([]byte{}, b...)
		} else if f := text(raw, "file"); f != "" {
			if whole[f] == nil {
				b, err := os.ReadFile(filepath.Join(conformance.Dir(), "vectors", filepath.FromSlash(f)))
				if err != nil {
					t.Fatal(err)
				}
				whole[f] = b
			}
			c.bytes = whole[f]
			if cut := dig(raw, "cut"); cut != nil {
				c.bytes = whole[f][:num(raw, "cut")]
			}
		}
		out = append(out, c)
	}
	if len(out) == 0 {
		t.Fatal("no cases")
	}
	return out
}

// place is where the case's file lies, with the other files of its root.
func (c *fileCase) place(t *testing.T) *doctor.Place {
	t.Helper()
	project := "_no-cwd"
	if text(c.raw, "cwd") == "/home/a b" {
		project = "--home-a~0020b--"
	}
	id := text(c.raw, "id")
	root := fstest.MapFS{}
	if c.bytes != nil {
		root[project+"/"+id+"/session."+string(c.enc)] = &fstest.MapFile{Data: c.bytes}
	}
	for l := range jsonwire.Elements(dig(c.raw, "layout")) {
		root[text(l, "path")] = &fstest.MapFile{Data: []byte("x")}
	}
	return &doctor.Place{Root: root, Project: project, Session: id, ID: id}
}

func TestDSHVerdictOnEveryFile(t *testing.T) {
	for _, c := range fileCases(t) {
		t.Run(c.name, func(t *testing.T) {
			target := memory(c.bytes, c.enc)
			if c.bytes == nil {
				target.R = nil
			}
			_, sum := verify(t, target, doctor.Options{Place: c.place(t)})
			stored, inspect := dig(c.raw, "expect", "stored"), dig(c.raw, "expect", "inspect")
			if text(inspect, "same") == "stored" {
				inspect = stored
			}
			want, class := doctor.DSHOK, ""
			switch {
			case !yes(inspect, "ok"):
				want, class = doctor.DSHRefused, text(inspect, "errorClass")
			case dig(stored, "truncateTo") != nil:
				want = doctor.DSHCut
			}
			if sum.DSH != want || sum.DSHClass != class {
				t.Errorf("dsh %s %q, want %s %q", sum.DSH, sum.DSHClass, want, class)
			}
		})
	}
}

func TestOwnVerdictOnEveryFile(t *testing.T) {
	for _, c := range fileCases(t) {
		if c.bytes == nil {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			_, sum := verify(t, memory(c.bytes, c.enc), doctor.Options{})
			stored, inspect := dig(c.raw, "expect", "stored"), dig(c.raw, "expect", "inspect")
			if text(inspect, "same") == "stored" {
				inspect = stored
			}
			same := sum.OK == yes(inspect, "ok")
			if sum.OK && same {
				at := int64(-1)
				if sum.TruncatedAt != nil {
					at = *sum.TruncatedAt
				}
				if int64(sum.Events) != num(stored, "events") || int64(sum.LastSeq) != num(stored, "lastSeq") || at != num(stored, "truncateTo") {
					same = false
				}
			}
			why, listed := differences[c.name]
			if same == listed {
				t.Errorf("differs: %v, listed: %v (%s)\nours %s\ndsh  %.300s", !same, listed, why, sum.AppendJSON(nil), stored)
			}
		})
	}
}

// Where the tails that dsh refuses are cut: at the start of the frame with the
// first damage. Events before it stay as they are.
func TestZstdTailsAreCutAtTheDamagedFrame(t *testing.T) {
	want := map[string]struct{ cut, events int64 }{
		"zstd/bad-checksum-last":         {406, 6},
		"zstd/bad-block-last":            {406, 6},
		"zstd/bad-block-middle":          {91, 0},
		"zstd/bad-magic-second":          {91, 0},
		"zstd/reserved-bit":              {91, 0},
		"zstd/nul-tail-4":                {406, 6},
		"zstd/nul-tail-64":               {406, 6},
		"zstd/garbage-tail":              {406, 6},
		"zstd/complete-frame-no-newline": {406, 10},
		"zstd/damaged-line-no-turn-end":  {406, 6},
		"zstd/duplicate-frame-tail":      {728, 11},
	}
	for _, c := range fileCases(t) {
		w, ok := want[c.name]
		if !ok {
			continue
		}
		delete(want, c.name)
		t.Run(c.name, func(t *testing.T) {
			_, sum := verify(t, memory(c.bytes, c.enc), doctor.Options{})
			if sum.TruncatedAt == nil || *sum.TruncatedAt != w.cut || int64(sum.Events) != w.events {
				t.Errorf("%s\nwant a cut at %d with %d events", sum.AppendJSON(nil), w.cut, w.events)
			}
		})
	}
	if len(want) > 0 {
		t.Errorf("no such cases: %v", want)
	}
}
