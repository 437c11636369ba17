package doctor_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/doctor"
	"github.com/outcrop-dev/outcrop/wire"
)

func TestVerifyFinds(t *testing.T) {
	lines := func(l ...[]string) []string { return slices.Concat(l...) }
	head := []string{dshHeader}
	for _, c := range []struct {
		name string
		file []byte
		want []string // severity, code, seq, line
		sum  doctor.Summary
	}{
		{
			name: "nothing in a healthy log",
			file: plain(lines(head, turn(1, 0), turn(2, 6))...),
			sum:  doctor.Summary{OK: true, Events: 12, LastSeq: 11, Surface: 4, Turns: 2, DSH: "ok"},
		},
		{
			name: "every event that admission refuses, not only the first",
			file: plain(lines(head, turn(1, 0), []string{
				user(6, `"surfaceOp":{"op":"replace","start":2,"end":3},"sourceEventSeqs":[2]`),
				user(7, `"surfaceOp":"append"`),
				user(8, `"surfaceOp":"insert"`),
				`{"type":"step/start","seq":9,"time":0.5,"data":{}}`,
				user(10, `"surfaceOp":{"op":"replace","start":7,"end":7},"sourceEventSeqs":[7]`),
			})...),
			want: []string{
				"error SOURCES_INCOMPLETE 6 8", "error SURFACE_BAD_OP 8 10",
				"warning STEP_START_TURN 9 11", "error ENVELOPE 9 11",
			},
			sum: doctor.Summary{Events: 11, LastSeq: 10, Surface: 3, Generation: 1, Turns: 1, DSH: "refused", DSHClass: "sources-miss-shadowed"},
		},
		{
			name: "a type that no reader may skip",
			file: plain(dshHeader, `{"type":"future/thing","seq":0,"time":1,"data":{}}`, `{"type":"future/note","seq":1,"time":1,"data":{},"ignorable":true}`),
			want: []string{"error TYPE_UNKNOWN 0 2"},
			sum:  doctor.Summary{Events: 2, LastSeq: 1, DSH: "refused", DSHClass: "unsupported-event-type"},
		},
		{
			name: "context messages, which dsh does not know",
			file: plain(ownHeader, `{"type":"context/message","seq":0,"time":1,"data":{"content":[],"source":{"kind":"plugin"},"role":"user","id":"c"},"surfaceOp":"append"}`),
			sum:  doctor.Summary{OK: true, Events: 1, LastSeq: 0, Surface: 1, DSH: "refused", DSHClass: "unsupported-event-type"},
		},
		{
			name: "own types, which dsh may skip",
			file: plain(ownHeader, `{"type":"outcrop/tag","seq":0,"time":1,"data":{},"ignorable":true}`),
			sum:  doctor.Summary{OK: true, Events: 1, LastSeq: 0, DSH: "ok"},
		},
		{
			name: "an open turn",
			file: plain(lines(head, turn(1, 0), turn(2, 6)[:2])...),
			want: []string{"warning TURN_OPEN 7 0"},
			sum:  doctor.Summary{OK: true, Events: 8, LastSeq: 7, Surface: 2, Turns: 2, OpenTurn: true, DSH: "ok"},
		},
		{
			name: "an open turn that no turn/end can close, because it has no number",
			file: plain(lines(head, turn(1, 0), []string{`{"type":"turn/start","seq":6,"time":1,"data":{}}`})...),
			want: []string{"warning TURN_START_NUMBER 6 8", "error TURN_NOT_CLOSABLE 6 8"},
			sum:  doctor.Summary{Events: 7, LastSeq: 6, Surface: 2, Turns: 2, OpenTurn: true, DSH: "ok"},
		},
		{
			name: "an open step whose number no closer can carry",
			file: plain(lines(head, []string{
				`{"type":"turn/start","seq":0,"time":1,"data":{"turn":1}}`,
				`{"type":"step/start","seq":1,"time":1,"data":{"turn":1,"step":1e999}}`,
			})...),
			want: []string{"warning NUMBER_LOSSY 1 3", "warning STEP_START_NUMBER 1 3", "error TURN_NOT_CLOSABLE 0 2"},
			sum:  doctor.Summary{Events: 2, LastSeq: 1, Turns: 1, OpenTurn: true, DSH: "ok"},
		},
		{
			name: "a torn tail",
			file: append(plain(lines(head, turn(1, 0))...), `{"type":"turn/st`...),
			want: []string{"warning TORN_TAIL 6 8"},
			sum:  doctor.Summary{OK: true, Events: 6, LastSeq: 5, Surface: 2, Turns: 1, DSH: "cut"},
		},
		{
			name: "damage before a finished turn",
			file: plain(lines(head, turn(1, 0), []string{"{"}, turn(2, 6))...),
			want: []string{"error LINE_NOT_JSON 6 8"},
			sum:  doctor.Summary{Events: 6, LastSeq: 5, Surface: 2, Turns: 1, DSH: "refused", DSHClass: "file-event-json"},
		},
		{
			name: "a call without a result in a turn that is closed",
			file: plain(dshHeader, `{"type":"turn/start","seq":0,"time":1,"data":{"turn":1}}`, `{"type":"step/start","seq":1,"time":1,"data":{"turn":1,"step":1}}`,
				assistant(2, 1, `[{"type":"tool-call","id":"c1","name":"n","arguments":"{}"}]`),
				`{"type":"step/end","seq":3,"time":1,"data":{"turn":1,"step":1}}`, `{"type":"turn/end","seq":4,"time":1,"data":{"turn":1,"reason":{"kind":"completed"}}}`),
			want: []string{"warning DANGLING_CALL 2 4"},
			sum:  doctor.Summary{OK: true, Events: 5, LastSeq: 4, Surface: 1, Turns: 1, DSH: "ok"},
		},
		{
			name: "odd content",
			file: plain(dshHeader, `{"type":"feedback/record","seq":0,"time":1,"data":{"text":"a","text":"b"}}`, "",
				"{\"type\":\"feedback/record\",\"seq\":1,\"time\":1,\"data\":{\"text\":\"\xff\"}}\r",
				`{"type":"feedback/record","seq":2,"time":1,"data":{"n":-0,"m":1e999}}`),
			want: []string{"warning DUPLICATE_NAME 0 2", "warning BLANK_LINE 1 3", "warning CRLF 1 4", "warning INVALID_UTF8 1 4", "warning NUMBER_LOSSY 2 5"},
			sum:  doctor.Summary{OK: true, Events: 3, LastSeq: 2, DSH: "cut"},
		},
		{
			name: "half an old shape, and goes on",
			file: plain(lines(head, []string{
				`{"type":"turn/start","seq":0,"time":1,"data":{"turn":1,"trigger":{}}}`,
				`{"type":"turn/end","seq":1,"time":1,"data":{"turn":1,"reason":{"kind":"completed"}}}`,
				user(2, `"surfaceOp":"nowhere"`),
			})...),
			want: []string{"error LEGACY_TURN_START 0 2", "warning TURN_END_MISMATCH 1 3", "error SURFACE_BAD_OP 2 4"},
			sum:  doctor.Summary{Events: 3, LastSeq: 2, DSH: "refused", DSHClass: "legacy-malformed-turn-start"},
		},
		{
			name: "a record that nests too deeply, and goes on",
			file: plain(lines(head, []string{
				`{"type":"feedback/record","seq":0,"time":1,"data":` + strings.Repeat("[", 10100) + strings.Repeat("]", 10100) + `}`,
				user(1, `"surfaceOp":"append"`),
			})...),
			want: []string{"error RECORD_TOO_BIG 0 2"},
			sum:  doctor.Summary{Events: 2, LastSeq: 1, Surface: 1, DSH: "ok"},
		},
		{
			name: "a log without surface markers",
			file: plain(dshHeader, strings.Replace(user(0, ""), ",}", "}", 1), strings.Replace(user(1, ""), ",}", "}", 1)),
			want: []string{"error SURFACE_MARKER_REQUIRED 0 0"},
			sum:  doctor.Summary{Events: 2, LastSeq: 1, DSH: "refused", DSHClass: "op-missing"},
		},
		{
			name: "a turn bound inside a compaction that is finished",
			file: plain(dshHeader,
				`{"type":"compaction/start","seq":0,"time":1,"data":{"compactionId":"c","turn":null}}`,
				`{"type":"turn/start","seq":1,"time":1,"data":{"turn":1}}`,
				`{"type":"turn/end","seq":2,"time":1,"data":{"turn":1,"reason":{"kind":"completed"}}}`,
				`{"type":"compaction/end","seq":3,"time":1,"data":{"compactionId":"c","turn":null,"error":"x"}}`),
			want: []string{"warning COMPACTION_TURN_BOUNDARY 1 3", "warning COMPACTION_TURN_BOUNDARY 2 4"},
			sum:  doctor.Summary{OK: true, Events: 4, LastSeq: 3, Turns: 1, DSH: "ok"},
		},
		{
			name: "a compaction in which the log ends",
			file: plain(dshHeader, `{"type":"compaction/start","seq":0,"time":1,"data":{"compactionId":"c","turn":null}}`),
			want: []string{"warning COMPACTION_OPEN 0 2"},
			sum:  doctor.Summary{OK: true, Events: 1, LastSeq: 0, DSH: "ok"},
		},
		{
			name: "calls that no provider takes",
			file: plain(dshHeader, `{"type":"turn/start","seq":0,"time":1,"data":{"turn":1}}`, `{"type":"step/start","seq":1,"time":1,"data":{"turn":1,"step":1}}`,
				assistant(2, 1, `[{"type":"tool-call","id":"c1","name":"n","arguments":"{\"a\":"},{"type":"tool-call","id":"c1","name":"n","arguments":""},{"type":"tool-call","id":"c2","name":"","arguments":"[]"}]`)),
			want: []string{"warning BAD_ARGUMENTS 2 4", "warning BAD_CALL 2 4", "warning BAD_CALL 2 4", "warning BAD_ARGUMENTS 2 4", "warning TURN_OPEN 2 0"},
			sum:  doctor.Summary{OK: true, Events: 3, LastSeq: 2, Surface: 1, Turns: 1, OpenTurn: true, DSH: "ok"},
		},
		{
			name: "a result whose call was covered alone",
			file: plain(ownHeader, `{"type":"turn/start","seq":0,"time":1,"data":{"turn":1}}`, `{"type":"step/start","seq":1,"time":1,"data":{"turn":1,"step":1}}`,
				assistant(2, 1, `[{"type":"tool-call","id":"c1","name":"n","arguments":"{}"}]`),
				`{"type":"tool/call","seq":3,"time":1,"data":{"turn":1,"step":1,"callId":"c1","name":"n","arguments":"{}"}}`,
				result(4, "long", `"sourceEventSeqs":[3],"surfaceOp":"append"`),
				`{"type":"step/end","seq":5,"time":1,"data":{"turn":1,"step":1}}`, ended(6, 1, "completed"),
				user(7, `"surfaceOp":{"op":"replace","start":2,"end":2},"sourceEventSeqs":[2]`)),
			want: []string{"warning ORPHAN_RESULT 4 0"},
			sum:  doctor.Summary{OK: true, Events: 8, LastSeq: 7, Surface: 2, Generation: 1, Turns: 1, DSH: "ok"},
		},
		{
			name: "more inherited events than there are",
			file: plain(strings.Replace(dshHeader, `"createdAt"`, `"parentSession":"p","seedLength":3,"createdAt"`, 1), note(0)),
			want: []string{"warning SEED_LENGTH -1 1"},
			sum:  doctor.Summary{OK: true, Events: 1, LastSeq: 0, DSH: "ok"},
		},
		{
			name: "an empty id",
			file: plain(strings.Replace(dshHeader, `"s1"`, `""`, 1), note(0)),
			want: []string{"warning HEADER_ID -1 1"},
			sum:  doctor.Summary{OK: true, Events: 1, LastSeq: 0, DSH: "ok"},
		},
		{
			name: "no fault in a compaction that a crash left open",
			file: plain(dshHeader,
				`{"type":"compaction/start","seq":0,"time":1,"data":{"compactionId":"c","turn":null}}`,
				`{"type":"turn/start","seq":1,"time":1,"data":{"turn":1}}`,
				`{"type":"turn/end","seq":2,"time":1,"data":{"turn":1,"reason":{"kind":"completed"}}}`,
				`{"type":"session/end-seed","seq":3,"time":1,"data":{}}`),
			sum: doctor.Summary{OK: true, Events: 4, LastSeq: 3, Turns: 1, DSH: "ok"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			found, sum := verify(t, memory(c.file, wire.Plain), doctor.Options{})
			if diff := cmp.Diff(c.want, codes(found)); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
			c.sum.Target, c.sum.Format, c.sum.Encoding = "F", "dsh-v0", wire.Plain
			c.sum.Errors, c.sum.Warnings, c.sum.TruncatedAt = sum.Errors, sum.Warnings, sum.TruncatedAt
			if c.sum.Events == 0 {
				c.sum.LastSeq = -1
			}
			if diff := cmp.Diff(c.sum, sum); diff != "" {
				t.Errorf("summary (-want +got):\n%s", diff)
			}
			for _, f := range found {
				if f.Line > 1 && f.Offset >= 0 && f.Severity == doctor.SeverityError {
					// The offset is where that line starts.
					if f.Offset != int64(lineStart(c.file, f.Line)) {
						t.Errorf("%s: line %d starts at %d", f.AppendJSON(nil), f.Line, lineStart(c.file, f.Line))
					}
				}
			}
		})
	}
}

func lineStart(file []byte, line int) int {
	at := 0
	for range line - 1 {
		at += bytes.IndexByte(file[at:], '\n') + 1
	}
	return at
}

// The rewrite of a result between turns is what our own pruning does.
func TestVerifyAllowsRewritesBetweenTurnsInOwnSessions(t *testing.T) {
	body := []string{
		`{"type":"turn/start","seq":0,"time":1,"data":{"turn":1}}`,
		`{"type":"step/start","seq":1,"time":1,"data":{"turn":1,"step":1}}`,
		assistant(2, 1, `[{"type":"tool-call","id":"c1","name":"n","arguments":"{}"}]`),
		`{"type":"tool/call","seq":3,"time":1,"data":{"turn":1,"step":1,"callId":"c1","name":"n","arguments":"{}"}}`,
		result(4, "long", `"sourceEventSeqs":[3],"surfaceOp":"append"`),
		`{"type":"step/end","seq":5,"time":1,"data":{"turn":1,"step":1}}`,
		`{"type":"turn/end","seq":6,"time":1,"data":{"turn":1,"reason":{"kind":"completed"}}}`,
		result(7, "cut", `"sourceEventSeqs":[4],"surfaceOp":{"op":"replace","start":4,"end":4}`),
	}
	found, _ := verify(t, memory(plain(append([]string{ownHeader}, body...)...), wire.Plain), doctor.Options{})
	if len(found) != 0 {
		t.Errorf("own session: %v", codes(found))
	}
	found, _ = verify(t, memory(plain(append([]string{dshHeader}, body...)...), wire.Plain), doctor.Options{})
	if diff := cmp.Diff([]string{"warning TOOL_REWRITE_OUTSIDE_TURN 7 9"}, codes(found)); diff != "" {
		t.Errorf("dsh's session (-want +got):\n%s", diff)
	}
}

// requestLog is an own session with a recorded digest before and after a
// replace, and behind each of them more events.
func requestLog(t *testing.T, spoil func(n int, digest string) string) []byte {
	t.Helper()
	s, err := outcrop.New(outcrop.NewHeader("s1", 1, ""), outcrop.Options{})
	if err != nil {
		t.Fatal(err)
	}
	raw := func(line string) {
		t.Helper()
		e, err := outcrop.DecodeEvent([]byte(line))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.AppendRaw(e); err != nil {
			t.Fatal(err)
		}
	}
	n := 0
	record := func() {
		n++
		raw(fmt.Sprintf(`{"type":"outcrop/request","seq":0,"time":1,"data":{"turn":1,"step":1,"attempt":1,"purpose":"turn","prefix":%d,"digest":%q,"encoder":"e"},"ignorable":true}`,
			s.Len()-1, spoil(n, s.RequestDigest())))
	}
	raw(`{"type":"turn/start","seq":0,"time":1,"data":{"turn":1}}`)
	raw(`{"type":"request/header","seq":0,"time":1,"data":{"header":{"config":{"provider":"p","model":"m"}},"reason":"initial"}}`)
	record()
	raw(user(3, `"surfaceOp":"append"`))
	raw(user(4, `"surfaceOp":"append"`))
	record()
	raw(user(6, `"surfaceOp":{"op":"replace","start":3,"end":3},"sourceEventSeqs":[3]`))
	record()
	raw(`{"type":"request/header","seq":0,"time":1,"data":{"header":{"config":{"provider":"p","model":"other"}},"reason":"change"}}`)
	raw(user(9, `"surfaceOp":"append"`))
	record()
	raw(`{"type":"turn/end","seq":0,"time":1,"data":{"turn":1,"reason":{"kind":"completed"}}}`)
	file := append(s.Header().Line(), '\n')
	for e := range outcrop.Events(s.Log(), 0) {
		file = append(e.AppendJSON(file), '\n')
	}
	return file
}

func TestVerifyRecomputesRequestDigests(t *testing.T) {
	same := func(_ int, d string) string { return d }
	if found, _ := verify(t, memory(requestLog(t, same), wire.Plain), doctor.Options{}); len(found) != 0 {
		t.Errorf("right digests: %v", codes(found))
	}
	for bad := 1; bad <= 4; bad++ {
		file := requestLog(t, func(n int, d string) string {
			if n == bad {
				return "v1:" + strings.Repeat("0", 64)
			}
			return d
		})
		found, sum := verify(t, memory(file, wire.Plain), doctor.Options{})
		if len(found) != 1 || found[0].Code != "DIGEST_MISMATCH" || found[0].Severity != doctor.SeverityWarning || !sum.OK {
			t.Errorf("wrong digest %d: %v, ok %v", bad, codes(found), sum.OK)
		}
	}
	// A message that was changed later changes every request behind it.
	file := bytes.Replace(requestLog(t, same), []byte(`"text":"t"}],"source":{"kind":"user"},"role":"user","id":"u4"`), []byte(`"text":"T"}],"source":{"kind":"user"},"role":"user","id":"u4"`), 1)
	found, _ := verify(t, memory(file, wire.Plain), doctor.Options{})
	if len(found) != 3 {
		t.Errorf("after a change: %v", codes(found))
	}
}

// A request may be recorded after what it was built from has changed.
func TestVerifyRecomputesDigestsThatWereRecordedLate(t *testing.T) {
	file := requestLog(t, func(_ int, d string) string { return d })
	var digests []string // of the requests in the log, and where they were built
	for _, l := range strings.Split(string(file), "\n") {
		if strings.Contains(l, `"outcrop/request"`) {
			digests = append(digests, l)
		}
	}
	if len(digests) != 4 {
		t.Fatalf("%d requests", len(digests))
	}
	at := 12 // the length of the log
	for i, spoil := range []bool{false, true, false} {
		l := digests[i]
		l = regexp.MustCompile(`"seq":\d+`).ReplaceAllString(l, fmt.Sprintf(`"seq":%d`, at+i))
		if spoil {
			l = strings.Replace(l, `"digest":"v1:`, `"digest":"v1:0`, 1)
		}
		file = append(file, l+"\n"...)
	}
	found, sum := verify(t, memory(file, wire.Plain), doctor.Options{})
	if len(found) != 1 || found[0].Code != "DIGEST_MISMATCH" || found[0].Seq != 13 || sum.Events != 15 {
		t.Errorf("%v %s", codes(found), sum.AppendJSON(nil))
	}
}

// What is not looked at any more is said once, and nothing else changes.
func TestVerifyGivesUpOnWhatIsTooMuch(t *testing.T) {
	big := func(seq int) string {
		return strings.Replace(user(seq, `"surfaceOp":"append"`), `"text":"t"`, `"text":"`+strings.Repeat("x", 11<<20)+`"`, 1)
	}
	request := func(seq int) string {
		return fmt.Sprintf(`{"type":"outcrop/request","seq":%d,"time":1,"data":{"prefix":%d,"digest":"v1:00"},"ignorable":true}`, seq, seq-1)
	}
	found, sum := verify(t, memory(plain(ownHeader, big(0), request(1), big(2), big(3), request(4), request(5)), wire.Plain), doctor.Options{})
	if diff := cmp.Diff([]string{"warning MORE_FINDINGS 4 6", "warning DIGEST_MISMATCH 1 3"}, codes(found)); diff != "" || sum.Surface != 3 {
		t.Errorf("%s (-want +got):\n%s", sum.AppendJSON(nil), diff)
	}
	// Results are compared all the same: they are read again.
	call := assistant(0, 1, `[{"type":"tool-call","id":"c1","name":"n","arguments":"{}"}]`)
	file := plain(ownHeader, call, result(1, "long", `"surfaceOp":"append"`), big(2), big(3), big(4),
		result(5, "cut", `"sourceEventSeqs":[1],"surfaceOp":{"op":"replace","start":1,"end":1}`),
		strings.Replace(result(6, "cut", `"sourceEventSeqs":[5],"surfaceOp":{"op":"replace","start":5,"end":5}`), `"isError":false`, `"isError":true`, 1))
	found, _ = verify(t, memory(file, wire.Plain), doctor.Options{})
	found = slices.DeleteFunc(found, func(f doctor.Finding) bool { return f.Severity == doctor.SeverityWarning })
	if diff := cmp.Diff([]string{"error REWRITE_NOT_CONTENT_ONLY 6 8"}, codes(found)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	var calls strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&calls, `,{"type":"tool-call","id":"c%d","name":"n","arguments":"{}"}`, i)
	}
	found, _ = verify(t, memory(plain(ownHeader, `{"type":"turn/start","seq":0,"time":1,"data":{"turn":1}}`, `{"type":"step/start","seq":1,"time":1,"data":{"turn":1,"step":1}}`,
		assistant(2, 1, "["+calls.String()[1:]+"]"), `{"type":"step/end","seq":3,"time":1,"data":{"turn":1,"step":1}}`, ended(4, 1, "completed")), wire.Plain), doctor.Options{})
	if len(found) != 4097 || found[0].Code != "MORE_FINDINGS" || found[4096].Code != "DANGLING_CALL" {
		t.Errorf("%d findings", len(found))
	}
}

func TestVerifyLooksForAttachments(t *testing.T) {
	image := func(seq int, id string) string {
		return fmt.Sprintf(`{"type":"user/message","seq":%d,"time":1,"data":{"content":[{"type":"image","attachment":{"attachmentId":%q,"mediaType":"image/png","width":1,"height":1,"bytes":1}}],"source":{"kind":"user"},"role":"user","id":"u"},"surfaceOp":"append"}`, seq, id)
	}
	file := plain(dshHeader, image(0, "sha256:aa"), image(1, "sha256:bb"), image(2, "sha256:bb"))
	var asked []string
	found, sum := verify(t, memory(file, wire.Plain), doctor.Options{Attachment: func(_ context.Context, id string) (bool, error) {
		asked = append(asked, id)
		return id == "sha256:aa", nil
	}})
	if diff := cmp.Diff([]string{"warning ATTACHMENT_MISSING 1 3"}, codes(found)); diff != "" || !sum.OK {
		t.Errorf("ok %v (-want +got):\n%s", sum.OK, diff)
	}
	if diff := cmp.Diff([]string{"sha256:aa", "sha256:bb"}, asked); diff != "" {
		t.Errorf("asked for (-want +got):\n%s", diff)
	}
	if found, _ := verify(t, memory(file, wire.Plain), doctor.Options{}); len(found) != 0 {
		t.Errorf("attachments are looked for though nobody says where: %v", codes(found))
	}
}

func TestVerifySaysWhatIsNoSession(t *testing.T) {
	for name, c := range map[string]struct {
		file    []byte
		enc     wire.Encoding
		format  string
		session bool
		newer   bool
	}{
		"an empty file":                 {enc: wire.Plain},
		"an empty compressed file":      {enc: wire.Zstd},
		"text":                          {file: []byte("hello\nworld\n"), enc: wire.Plain},
		"a header without its newline":  {file: []byte(dshHeader), enc: wire.Plain},
		"another JSON file":             {file: []byte(`{"a":1}` + "\n"), enc: wire.Plain},
		"a plain log under .zstd":       {file: plain(dshHeader), enc: wire.Zstd},
		"a format that is not known":    {file: plain(`{"type":"session","version":5,"id":"x"}`), enc: wire.Plain, format: "dsh-v5", newer: true},
		"a session with a relative cwd": {file: plain(`{"type":"session","version":0,"id":"s","createdAt":1,"delegationDepth":0,"cwd":"x"}`), enc: wire.Plain, format: "dsh-v0", session: true},
	} {
		t.Run(name, func(t *testing.T) {
			found, sum := verify(t, memory(c.file, c.enc), doctor.Options{})
			if len(found) != 1 || found[0].Severity != doctor.SeverityError || sum.OK || sum.Format != c.format {
				t.Errorf("%s\n%v", sum.AppendJSON(nil), found)
			}
			if (sum.Err == nil) != c.session || errors.Is(sum.Err, outcrop.ErrUnsupported) != c.newer {
				t.Errorf("error %v", sum.Err)
			}
			if sum.DSH != doctor.DSHRefused {
				t.Errorf("dsh %s", sum.DSH)
			}
		})
	}
}

func TestVerifyStops(t *testing.T) {
	file := plain(append([]string{dshHeader}, turn(1, 0)...)...)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	findings, sum := doctor.Verify(ctx, memory(file, wire.Plain), doctor.Options{})
	for range findings {
	}
	if !errors.Is(sum.Err, context.Canceled) || sum.OK {
		t.Errorf("cancelled: ok %v, %v", sum.OK, sum.Err)
	}

	var lines []string
	for i := range 50 {
		lines = append(lines, user(i, `"surfaceOp":"x"`))
	}
	findings, sum = doctor.Verify(t.Context(), memory(plain(append([]string{dshHeader}, lines...)...), wire.Plain), doctor.Options{})
	n := 0
	for range findings {
		if n++; n == 3 {
			break
		}
	}
	if n != 3 || sum.OK {
		t.Errorf("%d findings, ok %v", n, sum.OK)
	}
}

// unreadable fails behind a number of bytes.
type unreadable struct {
	*bytes.Reader
	good int64
}

var errDisk = errors.New("disk")

func (u unreadable) ReadAt(p []byte, off int64) (int, error) {
	if off+int64(len(p)) > u.good {
		return 0, errDisk
	}
	return u.Reader.ReadAt(p, off)
}

func TestVerifyTellsAnErrorOfTheDiskFromDamage(t *testing.T) {
	file := plain(append([]string{dshHeader}, turn(1, 0)...)...)
	for _, enc := range []wire.Encoding{wire.Plain, wire.Zstd} {
		target := memory(file, enc)
		target.R = unreadable{bytes.NewReader(file), 100}
		_, sum := verify(t, target, doctor.Options{})
		if enc == wire.Plain && !errors.Is(sum.Err, errDisk) || sum.OK {
			t.Errorf("%s: %v, ok %v", enc, sum.Err, sum.OK)
		}
	}
}

func TestJSONOfFindingsAndSummary(t *testing.T) {
	f := doctor.Finding{Code: "SOURCES_INCOMPLETE", Severity: doctor.SeverityError, Seq: 41, Line: 44, Offset: 9120, TextOffset: -1, Message: "m", Hint: "h"}
	b, err := json.Marshal(f)
	if want := `{"code":"SOURCES_INCOMPLETE","severity":"error","seq":41,"line":44,"offset":9120,"message":"m","hint":"h"}`; err != nil || string(b) != want {
		t.Errorf("%s\nwant %s", b, want)
	}
	s := doctor.Summary{
		Target: "F", Format: "dsh-v0", Encoding: "jsonl", Events: 57, LastSeq: 56, Surface: 9, Generation: 1, Turns: 3,
		DSH: "refused", DSHClass: "sources-miss-shadowed", Errors: 1,
	}
	b, err = json.Marshal(s)
	if want := `{"target":"F","ok":false,"format":"dsh-v0","encoding":"jsonl","events":57,"lastSeq":56,"surface":9,"generation":1,"turns":3,"openTurn":false,"truncatedAt":null,"dsh":"refused","dshClass":"sources-miss-shadowed","errors":1,"warnings":0}`; err != nil || string(b) != want {
		t.Errorf("%s\nwant %s", b, want)
	}
}

func FuzzVerify(f *testing.F) {
	f.Add(plain(append([]string{dshHeader}, turn(1, 0)...)...), false)
	f.Add(plain(dshHeader, `{"type":"","seq":0,"time":0,"data":{}}`), false)
	f.Add(plain(dshHeader, user(0, `"surfaceOp":"x"`), `{"type":"text-chunks","seq0":1,"time0":1,"data":{"turn":1,"step":1,"index":0,"dt":[1,1],"texts":["a","b","c"]}}`), false)
	for _, raw := range [][]byte{requestLogSeed} {
		f.Add(raw, false)
	}
	f.Fuzz(func(t *testing.T, file []byte, compressed bool) {
		enc := wire.Plain
		if compressed {
			enc = wire.Zstd
		}
		findings, sum := doctor.Verify(t.Context(), memory(file, enc), doctor.Options{Attachment: func(context.Context, string) (bool, error) { return false, nil }})
		for fd := range findings {
			if !json.Valid(fd.AppendJSON(nil)) {
				t.Errorf("finding is no JSON: %q", fd.AppendJSON(nil))
			}
		}
		if !json.Valid(sum.AppendJSON(nil)) {
			t.Errorf("summary is no JSON: %q", sum.AppendJSON(nil))
		}
		// What is ok can be continued: restored and closed.
		if sum.OK {
			r, err := wire.NewReader(bytes.NewReader(file), int64(len(file)), enc)
			if err != nil {
				t.Fatalf("ok, but %v", err)
			}
			s, err := outcrop.Restore(r.Header(), r.Records(), outcrop.Options{})
			if err != nil {
				t.Fatalf("ok, but %v", err)
			}
			if int(s.Stored()) != sum.Events {
				t.Fatalf("ok with %d events, %d restored", sum.Events, s.Stored())
			}
		}
	})
}

var requestLogSeed = plain(ownHeader,
	`{"type":"request/header","seq":0,"time":1,"data":{"header":{"config":{"provider":"p","model":"m"}},"reason":"initial"}}`,
	`{"type":"outcrop/request","seq":1,"time":1,"data":{"prefix":0,"digest":"v1:00"},"ignorable":true}`)

// Every refused event is reported, in one pass over the log.
func TestVerifyStreamsTheFindingsOfALongLog(t *testing.T) {
	lines := []string{ownHeader}
	for i := range 5000 {
		lines = append(lines, user(i, `"surfaceOp":"nowhere"`))
	}
	found, sum := verify(t, memory(plain(lines...), wire.Plain), doctor.Options{})
	if len(found) != 5000 || sum.Errors != 5000 || sum.Events != 5000 || sum.DSHClass != "op-invalid" {
		t.Errorf("%d findings: %s", len(found), sum.AppendJSON(nil))
	}
}
