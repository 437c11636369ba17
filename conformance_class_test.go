package outcrop_test

import (
	"bytes"
	"errors"
	"iter"
	"sort"
	"strconv"
	"strings"
	"testing"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/conformance"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
)

// classes maps our codes to the labels of the vectors.
var classes = map[outcrop.Code]string{
	"NOT_LOSSLESS":                    "event-not-lossless-json",
	"LEGACY_HEADER_DELTA":             "legacy-header-delta",
	"LEGACY_HEADER_FALLBACK":          "legacy-header-fallback",
	"LEGACY_MODE_SET":                 "legacy-mode-set",
	"ENVELOPE":                        "event-envelope",
	"TYPE_UNKNOWN":                    "unsupported-event-type",
	"REQUEST_HEADER_NO_MODEL":         "reqheader-no-provider-model",
	"REQUEST_HEADER_REASONING_EFFORT": "reqheader-reasoning-effort",
	"REQUEST_HEADER_ADAPTER_DEFAULTS": "reqheader-adapter-defaults",
	"MESSAGE_NO_ID":                   "message-no-id",
	"MESSAGE_ROLE":                    "message-role",
	"MESSAGE_SOURCE":                  "message-source",
	"MESSAGE_CONTENT":                 "message-content",
	"MESSAGE_NOT_MODEL_SOURCE":        "message-not-model-source",
	"MESSAGE_NOT_TOOL_SOURCE":         "message-not-tool-source",
	"MESSAGE_NOT_ONE_TOOL_RESULT":     "message-not-one-tool-result",
	"MESSAGE_CALL_ID_MISMATCH":        "message-call-id-mismatch",
	"SEQ_GAP":                         "seed-seq",
	"SURFACE_NOT_ELIGIBLE_OP":         "op-on-ineligible",
	"SURFACE_NOT_ELIGIBLE_SOURCES":    "sources-on-ineligible",
	"SURFACE_MARKER_REQUIRED":         "op-missing",
	"SURFACE_BAD_OP":                  "op-invalid",
	"SURFACE_BAD_REPLACE":             "op-invalid-replace",
	"SURFACE_START_MISSING":           "replace-start-absent",
	"SURFACE_END_MISSING":             "replace-end-absent",
	"SURFACE_REVERSED":                "replace-reversed",
	"SOURCES_NOT_ARRAY":               "sources-not-array",
	"SOURCES_EMPTY":                   "sources-empty",
	"SOURCES_BAD_ELEMENT":             "sources-not-seqs",
	"SOURCES_DUPLICATE":               "sources-duplicate",
	"SOURCES_NOT_EARLIER":             "sources-not-earlier",
	"SOURCES_INCOMPLETE":              "sources-miss-shadowed",
	"REWRITE_NOT_SINGLE":              "tool-rewrite-not-one",
	"REWRITE_NOT_RESULT":              "tool-rewrite-target",
	"REWRITE_NOT_CONTENT_ONLY":        "tool-rewrite-changes",
	"HEADER_NOT_JSON":                 "file-header-json",
	"HEADER_SHAPE":                    "file-header-shape",
	"HEADER_VERSION":                  "unsupported-version",
	"HEADER_RETIRED":                  "headerline-retired-fields",
	"HEADER_CREATED_AT":               "header-created-at",
	"HEADER_CWD_TYPE":                 "header-cwd-type",
	"HEADER_CWD_RELATIVE":             "header-cwd-relative",
	"HEADER_PARENT":                   "header-parent",
	"HEADER_SEED_LENGTH":              "header-seed-length",
	"HEADER_ORIGIN":                   "header-origin",
	"HEADER_DELEGATION_DEPTH":         "header-delegation-depth",
	"ROW_ENVELOPE":                    "row-envelope",
	"ROW_SEQ0":                        "row-seq0",
	"ROW_TIME0":                       "row-time0",
	"ROW_DATA_OBJECT":                 "row-data-object",
	"ROW_DATA_KEYS":                   "row-data-keys",
	"ROW_COORDINATES":                 "row-coordinates",
	"ROW_ID":                          "row-id",
	"ROW_PAYLOAD":                     "row-payload",
	"ROW_DT":                          "row-dt",
	"ROW_DT_LENGTH":                   "row-dt-length",
	"ROW_TIME_RANGE":                  "row-time-range",
	"INVALID_BOUNDARY":                "INVALID_BOUNDARY",
	"OPEN_TURN":                       "OPEN_TURN",
}

// classOfErr is the vectors' label for an error.
func classOfErr(err error) string {
	if err == nil {
		return ""
	}
	code := outcrop.CodeOf(err)
	if code == "SEQ_GAP" && errors.Is(err, outcrop.ErrDamaged) {
		return "file-seq-gap"
	}
	if c, ok := classes[code]; ok {
		return c
	}
	return "no class for " + string(code) + ": " + err.Error()
}

// differences lists where Outcrop answers otherwise than dsh on purpose, and
// why: the file of the vectors, what was asked when a file asks several things,
// and the name of the case. A case that is listed must differ; nothing else
// may.
var differences = map[string]string{
	"header: session/created-negative-zero":   "a Go integer has no -0, and a line with it is refused, as the line cases say",
	"header: session/cwd-windows-on-posix":    "a log written on Windows can be read anywhere",
	"header: session/extra-keys":              "unknown header members are kept when the line is written again",
	"header: session/extra-negative-zero":     "an unknown member stays the bytes that it is, so its number needs no judging",
	"header: session/id-mismatch":             "a session takes its id from its header, so the two cannot differ",
	"header: session/order-id-before-created": "a session takes its id from its header",
	"header: line/cwd-relative-passes-here":   "a header is judged in full when its line is read",
	"header: line/cwd-number-passes-here":     "a header is judged in full when its line is read",
	"header: line/parent-number-passes-here":  "a header is judged in full when its line is read",
	"header: line/seed-string-passes-here":    "a header is judged in full when its line is read",

	"surface restore: hand/envelope-data-null": "an open turn without a number has no closer that a reader takes; dsh's own reader of files refuses it too",

	"fork: meta/all-parent-fields":                "a fork keeps depth, origin and preset",
	"fork: child-id/exists":                       "whether an id is taken is for the store to say",
	"fork: child-id/equals-parent":                "whether an id is taken is for the store to say",
	"fork: child-id/exists-before-unknown-source": "whether an id is taken is for the store to say",
	"fork: source/unknown":                        "a log is given, not looked up",
	"fork: source/unknown-before-boundary":        "a log is given, not looked up",
	"fork: source/foreign-instance":               "a log is given, not looked up",
	"fork: source/foreign-unknown":                "a log is given, not looked up",

	"surface file: hand/envelope-data-null":          "refused because no closer can carry the number of a turn that has none; dsh stumbles over it earlier",
	"surface file: hand/envelope-missing-data":       "refused by the rule; dsh stumbles over it before it comes to the rule",
	"surface file: mutant/060-envelope-data-missing": "refused by the rule; dsh stumbles over it before it comes to the rule",
	"surface file: mutant/252-envelope-data-missing": "refused by the rule; dsh stumbles over it before it comes to the rule",
	"surface file: mutant/315-envelope-data-missing": "refused by the rule; dsh stumbles over it before it comes to the rule",
	"surface file: mutant/188-envelope-data-missing": "the order of admission is the same for a seed and a stored log: the envelope comes first",
	"surface file: hand/header-fallback-bad-config":  "the order of admission is the same for a seed and a stored log: the shape of the header comes first",
}

// differs reports whether a case is listed, and counts that it was asked for.
func differs(file, name string) (why string, ok bool) {
	why, ok = differences[file+": "+name]
	return why, ok
}

// vector is one case as raw JSON, so that numbers and lone surrogates stay as
// they are written.
type vector struct {
	name string
	raw  []byte
}

// vectors yields the cases of one file as subtests.
func vectors(t *testing.T, file string, run func(t *testing.T, v vector)) {
	t.Helper()
	lines := conformance.Lines(t, file)
	if len(lines) == 0 {
		t.Fatalf("%s: no cases", file)
	}
	for _, line := range lines {
		v := vector{raw: line}
		v.name = v.text("name")
		t.Run(v.name, func(t *testing.T) { run(t, v) })
	}
}

// get follows member names down from the case.
func (v vector) get(path ...string) []byte { return dig(v.raw, path...) }

func dig(b []byte, path ...string) []byte {
	for _, p := range path {
		b = jsonwire.Get(b, p)
	}
	return b
}

func (v vector) text(path ...string) string {
	s, _ := jsonwire.Text(v.get(path...))
	return s
}

func (v vector) num(path ...string) int64 {
	n, ok := jsonwire.Int(v.get(path...))
	if !ok {
		return -1
	}
	return n
}

func (v vector) yes(path ...string) bool { return string(v.get(path...)) == "true" }

// events are the raw spans of the case's events.
func (v vector) events() [][]byte { return spans(v.get("events")) }

func spans(arr []byte) (out [][]byte) {
	for e := range jsonwire.Elements(arr) {
		out = append(out, e)
	}
	return out
}

// seqs decodes an array of seqs.
func seqs(arr []byte) []outcrop.Seq {
	out := []outcrop.Seq{}
	for e := range jsonwire.Elements(arr) {
		n, _ := jsonwire.Int(e)
		out = append(out, outcrop.Seq(n))
	}
	return out
}

// records decodes lines into records, one each; what is no object ends the
// sequence with its error.
func records(lines [][]byte) iter.Seq2[outcrop.Record, error] {
	return func(yield func(outcrop.Record, error) bool) {
		for _, l := range lines {
			e, err := outcrop.DecodeEvent(l)
			if !yield(outcrop.Record{Event: e}, err) || err != nil {
				return
			}
		}
	}
}

// sameJSON compares two texts as JSON values: member order and the spelling of
// numbers do not count, lone surrogates do.
func sameJSON(a, b []byte) bool { return canonical(a) == canonical(b) }

func canonical(v []byte) string {
	switch jsonwire.Kind(v) {
	case '{':
		last := map[string]string{}
		for k, m := range jsonwire.Members(v) {
			last[jsonwire.Key(k)] = canonical(m)
		}
		names := make([]string, 0, len(last))
		for n := range last {
			names = append(names, n)
		}
		sort.Strings(names)
		var b strings.Builder
		b.WriteByte('{')
		for _, n := range names {
			b.WriteString(strconv.Quote(n) + ":" + last[n] + ",")
		}
		return b.String() + "}"
	case '[':
		var b strings.Builder
		b.WriteByte('[')
		for m := range jsonwire.Elements(v) {
			b.WriteString(canonical(m) + ",")
		}
		return b.String() + "]"
	case '"':
		s, _ := jsonwire.Text(v)
		return string(jsonwire.AppendString(nil, s))
	case '0':
		f, err := strconv.ParseFloat(string(bytes.TrimSpace(v)), 64)
		if err != nil {
			return string(v)
		}
		return strconv.FormatFloat(f, 'g', -1, 64)
	default:
		return string(bytes.TrimSpace(v))
	}
}

// sameList compares two lists of JSON values.
func sameList(t *testing.T, what string, got [][]byte, want []byte) {
	t.Helper()
	w := spans(want)
	if len(got) != len(w) {
		t.Errorf("%s: %d values, want %d", what, len(got), len(w))
		return
	}
	for i := range w {
		if !sameJSON(got[i], w[i]) {
			t.Errorf("%s: value %d is\n%s\nwant\n%s", what, i, got[i], w[i])
		}
	}
}

// eventsJSON is the JSON text of each event of a log.
func eventsJSON(log outcrop.Log, from, to int) (out [][]byte) {
	for i := from; i < min(to, log.Len()); i++ {
		out = append(out, log.At(outcrop.Seq(i)).AppendJSON(nil))
	}
	return out
}
