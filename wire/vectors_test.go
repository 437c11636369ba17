package wire_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/conformance"
	"github.com/outcrop-dev/outcrop/wire"
)

// outcome is what a read of a file gave.
type outcome struct {
	OK         bool   `json:"ok"`
	Events     int    `json:"events"`
	LastSeq    int    `json:"lastSeq"`
	TruncateTo *int64 `json:"truncateTo,omitempty"`
	Recovered  int    `json:"recovered,omitempty"`
	code       outcrop.Code
	recs       []outcrop.Record
	tail       wire.Tail
}

func (o outcome) String() string {
	if !o.OK {
		return fmt.Sprintf("refused %s after %d events", o.code, o.Events)
	}
	s := fmt.Sprintf("%d events", o.Events)
	if o.TruncateTo != nil {
		s += fmt.Sprintf(", cut at %d, %d recovered", *o.TruncateTo, o.Recovered)
	}
	return s
}

// readAll reads a log as far as it goes.
func readAll(file []byte, enc wire.Encoding) outcome {
	r, err := wire.NewReader(bytes.NewReader(file), int64(len(file)), enc)
	if err != nil {
		return outcome{code: outcrop.CodeOf(err), LastSeq: -1}
	}
	o := outcome{OK: true, LastSeq: -1}
	for rec, err := range r.Records() {
		if err != nil {
			o.OK, o.code = false, outcrop.CodeOf(err)
			continue
		}
		o.recs = append(o.recs, rec)
		o.Events += rec.Count()
		o.LastSeq = int(rec.Last())
	}
	o.tail = r.Tail()
	if o.OK && o.tail.Torn {
		good := o.tail.Good
		o.TruncateTo, o.Recovered = &good, o.tail.Recovered
	}
	return o
}

type fileCase struct {
	Name        string
	Note        string
	Compression string
	Base64      []byte
	File        string
	Cut         *int
	Expect      struct {
		Stored struct {
			outcome
			ErrorClass string
		}
		Inspect struct {
			OK         bool
			ErrorClass string
			Closers    []string
			Log        []json.RawMessage
		}
	}
}

func (c *fileCase) encoding() wire.Encoding {
	if c.Compression == "zstd" {
		return wire.Zstd
	}
	return wire.Plain
}

func (c *fileCase) bytes(t testing.TB) []byte {
	if c.File == "" {
		return c.Base64
	}
	b, err := os.ReadFile(filepath.Join(conformance.Dir(), "vectors", filepath.FromSlash(c.File)))
	if err != nil {
		t.Fatal(err)
	}
	if c.Cut != nil {
		b = b[:*c.Cut]
	}
	return b
}

// differences from dsh in how a file is read, on purpose. The value is what we
// do and why.
var differences = map[string]struct{ ours, reason string }{
	// A blank line is read over; dsh begins a torn tail there, or refuses.
	"plain/blank-line-at-end":       {"6 events", "blank lines are read over"},
	"plain/space-line-at-end":       {"6 events", "blank lines are read over"},
	"plain/blank-line-middle":       {"6 events", "blank lines are read over"},
	"plain/blank-line-in-tail":      {"11 events", "blank lines are read over"},
	"plain/blank-line-after-header": {"6 events", "blank lines are read over"},
	"zstd/blank-line-in-last-frame": {"6 events", "blank lines are read over"},
	// The header is judged in full when a file is opened.
	"plain/header-bad-parent": {"refused HEADER_PARENT after 0 events", "the header is judged when the file is opened, not later"},
	// dsh fails on null by accident.
	"plain/null-line-tail": {"6 events, cut at 854, 0 recovered", "a line that is no object is damage like any other"},
	// Old shapes are judged while reading.
	"plain/legacy-turn-start-malformed": {"refused LEGACY_TURN_START after 1 events", "half an old shape is refused while reading"},
	"plain/turn-end-extra-key":          {"refused LEGACY_TURN_END after 1 events", "half an old shape is refused while reading"},
	// Later formats are read.
	"plain/version-1":                  {"6 events", "format 1 has the events of format 0"},
	"plain/version-future-other-shape": {"refused HEADER_SHAPE after 0 events", "a later format is read, and judged like all others"},
	"zstd/version-1":                   {"6 events", "format 1 has the events of format 0"},
	// One tail rule for both encodings: what no finished turn follows is cut.
	"zstd/bad-checksum-last":         {"6 events, cut at 406, 0 recovered", "no finished turn lies behind the bad frame"},
	"zstd/bad-block-last":            {"6 events, cut at 406, 0 recovered", "no finished turn lies behind the bad frame"},
	"zstd/nul-tail-4":                {"6 events, cut at 406, 0 recovered", "no finished turn lies behind the zero bytes"},
	"zstd/nul-tail-64":               {"6 events, cut at 406, 0 recovered", "no finished turn lies behind the zero bytes"},
	"zstd/garbage-tail":              {"6 events, cut at 406, 0 recovered", "no finished turn lies behind the garbage"},
	"zstd/bad-block-middle":          {"0 events, cut at 91, 0 recovered", "the finished turn is inside the frame that cannot be decoded, none lies behind it"},
	"zstd/bad-magic-second":          {"0 events, cut at 91, 0 recovered", "the finished turn is inside the frame that cannot be decoded, none lies behind it"},
	"zstd/reserved-bit":              {"0 events, cut at 91, 0 recovered", "the finished turn is inside the frame that cannot be decoded, none lies behind it"},
	"zstd/complete-frame-no-newline": {"10 events, cut at 406, 4 recovered", "a last line without newline is torn in a whole frame too"},
	"zstd/damaged-line-no-turn-end":  {"6 events, cut at 406, 0 recovered", "a bad line is torn in a whole frame too"},
	"zstd/duplicate-frame-tail":      {"11 events, cut at 728, 0 recovered", "a repeated frame is torn when no finished turn is in it"},
}

// outside are dsh's refusals that a codec cannot see.
var outside = []string{"not-found", "identity-mismatch", "misplaced-log", "layout-encoding-mismatch", "layout-flat-file", "layout-duplicate-id"}

// classes says which code of ours stands for which class of dsh.
var classes = map[string][]outcrop.Code{
	"file-event-json":           {"LINE_NOT_JSON", "ROW"},
	"file-header-json":          {"HEADER_NOT_JSON", "FILE_KIND"},
	"file-header-shape":         {"HEADER_SHAPE"},
	"file-no-frame":             {"FILE_EMPTY", "FILE_NO_HEADER"},
	"file-no-header":            {"FILE_EMPTY", "FILE_NO_HEADER"},
	"file-seq-gap":              {"SEQ_GAP"},
	"file-zstd-header-frame":    {"FRAME_HEADER"},
	"file-zstd-magic":           {"FRAME_MAGIC"},
	"file-zstd-reserved-bit":    {"FRAME_DESCRIPTOR"},
	"headerline-retired-fields": {"HEADER_RETIRED"},
	"unsupported-version":       {"HEADER_VERSION"},
	"zstd-decode":               {"FRAME_CHECKSUM", "FRAME_DECODE"},
}

func TestFilesAreReadAsDSHReadsThem(t *testing.T) {
	used := map[string]bool{}
	conformance.Cases(t, "files", func(c *fileCase) string { return c.Name }, func(t *testing.T, c *fileCase) {
		want := c.Expect.Stored
		if slices.Contains(outside, want.ErrorClass) {
			return
		}
		got := readAll(c.bytes(t), c.encoding())
		same := got.String() == want.outcome.String()
		if !want.OK {
			same = !got.OK && slices.ContainsFunc(classes[want.ErrorClass], func(c outcrop.Code) bool {
				return c == got.code || c == "ROW" && strings.HasPrefix(string(got.code), "ROW_")
			})
		}
		if d, ok := differences[c.Name]; ok {
			used[c.Name] = true
			if same {
				t.Errorf("listed as different (%s), but it is the same: %v", d.reason, got)
			}
			if got.String() != d.ours {
				t.Errorf("got %v, want %s", got, d.ours)
			}
			return
		}
		if !same {
			t.Errorf("%s: got %v, want %v %s", c.Note, got, want.outcome, want.ErrorClass)
		}
	})
	for name := range differences {
		if !used[name] {
			t.Errorf("difference %s is listed, but there is no such case", name)
		}
	}
}

// The log that dsh shows is what we read, old shapes included.
func TestOldShapesAreReadAsDSHShowsThem(t *testing.T) {
	conformance.Cases(t, "files", func(c *fileCase) string { return c.Name }, func(t *testing.T, c *fileCase) {
		in := c.Expect.Inspect
		if !in.OK || len(in.Log) == 0 {
			if strings.HasPrefix(in.ErrorClass, "legacy-malformed-turn-") {
				code := outcrop.Code("LEGACY_" + strings.ToUpper(strings.ReplaceAll(in.ErrorClass[len("legacy-malformed-"):], "-", "_")))
				if got := readAll(c.bytes(t), c.encoding()); got.code != code {
					t.Errorf("got %v, want %s", got, code)
				}
			}
			return
		}
		got := readAll(c.bytes(t), c.encoding())
		var events []outcrop.Event
		for _, rec := range got.recs {
			events = slices.AppendSeq(events, rec.Events())
		}
		want := in.Log[:len(in.Log)-min(len(in.Closers), len(in.Log))]
		if len(in.Log) >= 40 { // the vector holds the first 40 only
			want = in.Log[:min(40, len(events))]
		}
		if len(events) < len(want) {
			t.Fatalf("%d events, want at least %d", len(events), len(want))
		}
		for i, w := range want {
			if got := eventValue(t, events[i]); !reflect.DeepEqual(jsonValue(t, w), got) {
				t.Errorf("event %d is\n%v\nwant\n%s", i, got, w)
			}
		}
	})
}

func jsonValue(t *testing.T, b []byte) any {
	t.Helper()
	var v any
	b = bytes.ReplaceAll(b, []byte("1e999"), []byte("null")) // what JavaScript writes for it
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatalf("%v in %s", err, b)
	}
	return v
}

// eventValue is the event as a reader sees it, not its line.
func eventValue(t *testing.T, e outcrop.Event) any {
	t.Helper()
	v := map[string]any{"type": string(e.Type), "seq": float64(e.Seq), "time": float64(e.Time), "data": jsonValue(t, e.Data)}
	if line := e.Line(); line != nil {
		stored := jsonValue(t, line).(map[string]any)
		for _, k := range []string{"surfaceOp", "sourceEventSeqs", "ignorable"} {
			if s, ok := stored[k]; ok {
				v[k] = s
			}
		}
	}
	return v
}

type rowCase struct {
	Name   string
	Kind   string
	Events []json.RawMessage
	Record json.RawMessage
	Expect struct {
		OK         bool
		ErrorClass string
		Rows       []json.RawMessage
		Events     []json.RawMessage
	}
}

func TestRowsArePackedAsDSHPacksThem(t *testing.T) {
	conformance.Cases(t, "rows", func(c *rowCase) string { return c.Name }, func(t *testing.T, c *rowCase) {
		if c.Kind != "pack" {
			return
		}
		var recs []outcrop.Record
		for _, b := range c.Events {
			e, err := outcrop.DecodeEvent(b)
			if err != nil {
				t.Fatal(err)
			}
			recs = append(recs, outcrop.Record{Event: e})
		}
		out, err := wire.NewEncoder(wire.Plain).Batch(nil, slices.Values(recs))
		if err != nil {
			t.Fatal(err)
		}
		var want []byte
		for _, row := range c.Expect.Rows {
			want = append(append(want, row...), '\n')
		}
		if diff := cmp.Diff(string(want), string(out)); diff != "" {
			t.Errorf("(-dsh +ours):\n%s", diff)
		}
	})
}

func TestRowsAreDecodedAsDSHDecodesThem(t *testing.T) {
	conformance.Cases(t, "rows", func(c *rowCase) string { return c.Name }, func(t *testing.T, c *rowCase) {
		if c.Kind != "decode" || !outcrop.IsRow(c.Record) {
			return
		}
		run, err := outcrop.DecodeRun(c.Record)
		if !c.Expect.OK {
			want := outcrop.Code(strings.ToUpper(strings.ReplaceAll(c.Expect.ErrorClass, "-", "_")))
			if outcrop.CodeOf(err) != want || !errors.Is(err, outcrop.ErrRefused) {
				t.Errorf("got %v, want %s", err, want)
			}
			return
		}
		if strings.HasPrefix(c.Name, "decode/seq-overflow") {
			return // dsh's bound check rounds; we keep exact integers, and no log is that long
		}
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for e := range run.Events() {
			got = append(got, string(e.AppendJSON(nil)))
		}
		if len(got) != len(c.Expect.Events) {
			t.Fatalf("%d events, want %d", len(got), len(c.Expect.Events))
		}
		for i, w := range c.Expect.Events {
			if diff := cmp.Diff(jsonValue(t, w), jsonValue(t, []byte(got[i]))); diff != "" {
				t.Errorf("event %d (-dsh +ours):\n%s", i, diff)
			}
		}
	})
}
