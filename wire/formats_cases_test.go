package wire_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/wire"
	"github.com/outcrop-dev/outcrop/wire/formats"
)

// laterLog is a plain file of a later format.
func laterLog(format int, lines ...string) []byte {
	h := fmt.Sprintf(`{"type":"session","version":%d,"id":"s1","createdAt":1,"isSeeded":false,"delegationDepth":0}`, format)
	return []byte(h + "\n" + strings.Join(lines, "\n") + "\n")
}

const (
	turn1  = `{"type":"turn/start","seq":0,"time":1,"data":{"turn":1}}`
	step1  = `{"type":"step/start","seq":1,"time":2,"data":{"turn":1,"step":1}}`
	head2  = `{"type":"system/message","seq":2,"time":3,"data":{"turn":1,"step":1,"message":{"id":"s","role":"system","source":{"kind":"plugin","plugin":"x"},"content":[{"type":"text","text":"You."}]}},"surfaceOp":"append"}`
	user3  = `{"type":"user/message","seq":3,"time":4,"data":{"content":[],"source":{"kind":"user"},"role":"user","id":"u"},"surfaceOp":"append"}`
	model  = `"source":{"kind":"model","provider":"p","model":"m"}`
	asks   = `{"type":"request/header","seq":%d,"time":5,"data":{"header":{"config":{"provider":"p","model":"m"}},"reason":"initial"}}`
	prompt = `{"type":"system/message","seq":%d,"time":%d,"data":{"turn":1,"step":1,"message":{"id":"s%d","role":"system","source":{"kind":"plugin","plugin":"x"},"content":%s}},"surfaceOp":%s}`
)

// What the lines of a later format say in format 0.
func TestLaterFormatsInTheWordsOfFormat0(t *testing.T) {
	for _, c := range []struct {
		name   string
		format int
		lines  []string
		want   []string // of the events behind turn and step
	}{
		{"a stream with runs of any length", 2, []string{turn1, step1,
			`{"type":"assistant/message","seq":2,"time":9,"data":{"turn":1,"step":1,"message":{"role":"assistant","content":[],` + model + `,"id":"a"},"stream":[` +
				`{"type":"text-chunks","time0":3,"index":0,"dt":[],"texts":["one"]},{"type":"reasoning-chunks","time0":4,"index":1,"dt":[1,-1],"texts":["a","\ud83d","b"]},` +
				`{"type":"chunk","time":8,"chunk":{"type":"usage","usage":{"inputTokens":1,"outputTokens":2}}}]},"surfaceOp":"append"}`},
			[]string{
				`{"type":"assistant/chunk","seq":2,"time":3,"data":{"turn":1,"step":1,"chunk":{"type":"text-delta","index":0,"text":"one"}}}`,
				`{"type":"assistant/chunk","seq":3,"time":4,"data":{"turn":1,"step":1,"chunk":{"type":"reasoning-delta","index":1,"text":"a"}}}`,
				`{"type":"assistant/chunk","seq":4,"time":5,"data":{"turn":1,"step":1,"chunk":{"type":"reasoning-delta","index":1,"text":"\ud83d"}}}`,
				`{"type":"assistant/chunk","seq":5,"time":4,"data":{"turn":1,"step":1,"chunk":{"type":"reasoning-delta","index":1,"text":"b"}}}`,
				`{"type":"assistant/chunk","seq":6,"time":8,"data":{"turn":1,"step":1,"chunk":{"type":"usage","usage":{"inputTokens":1,"outputTokens":2}}}}`,
				`{"type":"assistant/message","seq":7,"time":9,"data":{"turn":1,"step":1,"message":{"role":"assistant","content":[],` + model + `,"id":"a"},"usage":{"inputTokens":1,"outputTokens":2}},"sourceEventSeqs":[2,3,4,5,6],"surfaceOp":"append"}`,
			}},
		{"an empty stream is known to be empty", 2, []string{turn1, step1,
			`{"type":"assistant/message","seq":2,"time":9,"data":{"turn":1,"step":1,"message":{"role":"assistant","content":[],` + model + `,"id":"a"},"stream":[]},"surfaceOp":"append"}`},
			[]string{`{"type":"assistant/message","seq":2,"time":9,"data":{"turn":1,"step":1,"message":{"role":"assistant","content":[],` + model + `,"id":"a"}},"sourceEventSeqs":[],"surfaceOp":"append"}`}},
		{"entries that nobody knows yet stay what they are", 2, []string{turn1, step1,
			`{"type":"assistant/attempt","seq":2,"time":9,"data":{"turn":1,"step":1,"stream":[{"type":"image-chunks","n":1},{"type":"text-chunks","time0":"x"},5]}}`},
			[]string{
				`{"type":"assistant/chunk","seq":2,"time":9,"data":{"turn":1,"step":1,"chunk":{"type":"image-chunks","n":1}}}`,
				`{"type":"assistant/chunk","seq":3,"time":9,"data":{"turn":1,"step":1,"chunk":{"type":"text-chunks","time0":"x"}}}`,
				`{"type":"assistant/chunk","seq":4,"time":9,"data":{"turn":1,"step":1,"chunk":5}}`,
			}},
		{"an attempt without chunks becomes nothing", 2, []string{turn1, step1, `{"type":"assistant/attempt","seq":2,"time":9,"data":{"turn":1,"step":1,"stream":[]}}`,
			`{"type":"step/end","seq":3,"time":9,"data":{"turn":1,"step":1}}`},
			[]string{`{"type":"step/end","seq":2,"time":9,"data":{"turn":1,"step":1}}`}},
		{"ranges", 2, []string{turn1, step1, strings.Replace(user3, `"seq":3`, `"seq":2`, 1), strings.Replace(user3, `"surfaceOp":"append"`, `"sourceEventSeqs":[[0,2]],"surfaceOp":{"op":"replace","start":2,"end":2}`, 1)},
			[]string{strings.Replace(user3, `"seq":3`, `"seq":2`, 1),
				strings.Replace(user3, `"surfaceOp":"append"`, `"sourceEventSeqs":[0,1,2],"surfaceOp":{"op":"replace","start":2,"end":2}`, 1)}},
		{"the head goes into the request header, before the tools", 3, []string{turn1, step1, head2, user3,
			`{"type":"request/header","seq":4,"time":5,"data":{"header":{"config":{"provider":"p","model":"m"},"tools":[{"name":"t"}]},"reason":"initial"}}`},
			[]string{strings.Replace(user3, `"seq":3`, `"seq":2`, 1),
				`{"type":"request/header","seq":3,"time":5,"data":{"header":{"config":{"provider":"p","model":"m"},"system":"You.","tools":[{"name":"t"}]},"reason":"initial"}}`}},
		{"a prompt that changes without a request header", 3, []string{turn1, step1, head2, user3, fmt.Sprintf(asks, 4),
			fmt.Sprintf(prompt, 5, 6, 5, `[{"type":"text","text":"A"},{"type":"text","text":"B"},{"type":"image"}]`, `{"op":"replace","startSeq":2,"endSeq":2}`),
			fmt.Sprintf(prompt, 6, 7, 6, `[{"type":"text","text":"C"}]`, `{"op":"replace","startSeq":5,"endSeq":5}`),
			`{"type":"assistant/attempt","seq":7,"time":9,"data":{"turn":1,"step":1,"stream":[{"type":"chunk","time":8,"chunk":{"type":"finish"}}]}}`,
			fmt.Sprintf(prompt, 8, 9, 8, `[]`, `{"op":"replace","startSeq":6,"endSeq":6}`)},
			[]string{strings.Replace(user3, `"seq":3`, `"seq":2`, 1),
				`{"type":"request/header","seq":3,"time":5,"data":{"header":{"config":{"provider":"p","model":"m"},"system":"You."},"reason":"initial"}}`,
				`{"type":"request/header","seq":4,"time":7,"data":{"header":{"config":{"provider":"p","model":"m"},"system":"C"},"reason":"change"}}`,
				`{"type":"assistant/chunk","seq":5,"time":8,"data":{"turn":1,"step":1,"chunk":{"type":"finish"}}}`}},
		{"a system message inside the conversation is what the program says", 3, []string{turn1, step1, head2,
			fmt.Sprintf(prompt, 3, 6, 3, `[{"type":"text","text":"Now this."}]`, `"append"`)},
			[]string{`{"type":"user/message","seq":2,"time":6,"data":{"id":"s3","role":"user","source":{"kind":"plugin","plugin":"x"},"content":[{"type":"text","text":"Now this."}]},"surfaceOp":"append"}`}},
		{"a system message long after others is the prompt all the same", 3, []string{turn1, step1, strings.Replace(user3, `"seq":3`, `"seq":2`, 1),
			fmt.Sprintf(prompt, 3, 6, 3, `[{"type":"text","text":"Late."}]`, `"append"`), fmt.Sprintf(asks, 4)},
			[]string{strings.Replace(user3, `"seq":3`, `"seq":2`, 1),
				`{"type":"request/header","seq":3,"time":5,"data":{"header":{"config":{"provider":"p","model":"m"},"system":"Late."},"reason":"initial"}}`}},
		{"names of dispatched calls, of the plugin and of the preset", 3, []string{turn1, step1,
			`{"type":"tool/ptc-dispatch","seq":2,"time":3,"data":{"x":1}}`,
			strings.Replace(user3, `{"kind":"user"}`, `{"kind":"plugin","plugin":"tools-ptc"}`, 1),
			`{"type":"agent-preset/selected","seq":4,"time":3,"data":{"agentPreset":"ptc"}}`},
			[]string{`{"type":"tool/code-dispatch","seq":2,"time":3,"data":{"x":1}}`,
				strings.Replace(user3, `{"kind":"user"}`, `{"kind":"plugin","plugin":"tools-code-mode"}`, 1),
				`{"type":"agent-preset/selected","seq":4,"time":3,"data":{"agentPreset":"code"}}`}},
		{"a result of role tool, with members of others", 4, []string{turn1, step1,
			`{"type":"tool/result","seq":2,"time":3,"data":{"turn":1,"step":1,"message":{"id":"t","role":"tool","toolCallId":"c","content":[{"type":"plugin:chart","n":1}],"isError":true,"plugin:result:note":"r","plugin:message:mark":2,"source":{"kind":"tool","callId":"c"}}},"surfaceOp":"append"}`},
			[]string{`{"type":"tool/result","seq":2,"time":3,"data":{"turn":1,"step":1,"message":{"id":"t","role":"user","content":[{"type":"tool-result","toolCallId":"c","content":[{"type":"chart","n":1}],"isError":true,"note":"r"}],"mark":2,"source":{"kind":"tool","callId":"c"}}},"surfaceOp":"append"}`}},
		{"kinds of sources", 4, []string{turn1, step1, strings.Replace(strings.Replace(user3, `"seq":3`, `"seq":2`, 1), `{"kind":"user"}`, `{"kind":"compact-checkpoint","compactionId":"k"}`, 1),
			strings.Replace(user3, `{"kind":"user"}`, `{"kind":"plugin:acme","x":1}`, 1)},
			[]string{strings.Replace(strings.Replace(user3, `"seq":3`, `"seq":2`, 1), `{"kind":"user"}`, `{"kind":"plugin","plugin":"compact","compactionId":"k"}`, 1),
				strings.Replace(user3, `{"kind":"user"}`, `{"kind":"plugin","plugin":"acme","x":1}`, 1)}},
		{"a developer message", 4, []string{turn1, step1,
			`{"type":"developer/message","seq":2,"time":3,"data":{"turn":1,"step":1,"headerSeq":1,"message":{"id":"d","role":"developer","content":[{"type":"tool-addition","toolName":"x"},{"type":"text","text":"Mind."}],"source":{"kind":"tool-search"}}},"surfaceOp":"append"}`,
			`{"type":"developer/message","seq":3,"time":3,"data":{"turn":1,"step":1,"message":{"id":"e","role":"developer","content":[{"type":"tool-removal","toolName":"x"}],"source":{"kind":"tool-search"}}},"surfaceOp":"append"}`},
			[]string{`{"type":"user/message","seq":2,"time":3,"data":{"id":"d","role":"user","content":[{"type":"text","text":"Mind."}],"source":{"kind":"tool-search"},"toolChanges":[{"type":"tool-addition","toolName":"x"}]},"surfaceOp":"append"}`,
				`{"type":"context/message","seq":3,"time":3,"data":{"id":"e","role":"user","content":[],"source":{"kind":"tool-search"},"toolChanges":[{"type":"tool-removal","toolName":"x"}]},"surfaceOp":"append"}`}},
		{"types of plugins get their names back, unless those mean something", 4, []string{turn1, step1,
			`{"type":"plugin:acme/a","seq":2,"time":3,"data":{},"ignorable":true}`, `{"type":"plugin:turn/end","seq":3,"time":3,"data":{},"ignorable":true}`,
			`{"type":"plugin:text-chunks","seq":4,"time":3,"data":{},"ignorable":true}`, `{"type":"image/offload","seq":5,"time":3,"data":{"targets":[{"seq":1,"x":2}]}}`},
			[]string{`{"type":"acme/a","seq":2,"time":3,"data":{},"ignorable":true}`, `{"type":"plugin:turn/end","seq":3,"time":3,"data":{},"ignorable":true}`,
				`{"type":"plugin:text-chunks","seq":4,"time":3,"data":{},"ignorable":true}`, `{"type":"image/offload","seq":5,"time":3,"data":{"targets":[{"seq":1,"x":2}]},"ignorable":true}`}},
		{"references move with what they name", 3, []string{turn1, step1, head2, user3,
			`{"type":"session/title","seq":4,"time":3,"data":{"title":"T","messageSeqs":[3],"source":{"kind":"user"}}}`,
			`{"type":"compaction/prune","seq":5,"time":3,"data":{"shadowedRange":{"start":3,"end":3},"shadowedSeqs":[3],"shadowedTokenCount":1}}`,
			`{"type":"command/done","seq":6,"time":3,"data":{"commandId":"c","kind":"success","sourceEventSeq":2}}`,
			`{"type":"session/title","seq":7,"time":3,"data":{"title":"T","messageSeqs":[99,"x",-1],"source":{"kind":"user"}}}`},
			[]string{strings.Replace(user3, `"seq":3`, `"seq":2`, 1),
				`{"type":"session/title","seq":3,"time":3,"data":{"title":"T","messageSeqs":[2],"source":{"kind":"user"}}}`,
				`{"type":"compaction/prune","seq":4,"time":3,"data":{"shadowedRange":{"start":2,"end":2},"shadowedSeqs":[2],"shadowedTokenCount":1}}`,
				`{"type":"command/done","seq":5,"time":3,"data":{"commandId":"c","kind":"success","sourceEventSeq":2}}`,
				`{"type":"session/title","seq":6,"time":3,"data":{"title":"T","messageSeqs":[99,"x",-1],"source":{"kind":"user"}}}`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := readAll(laterLog(c.format, c.lines...), wire.Plain)
			if !got.OK {
				t.Fatalf("got %v", got)
			}
			lines := strings.Split(strings.TrimSuffix(string(eventsText(got)), "\n"), "\n")
			if want := append([]string{turn1, step1}, c.want...); strings.Join(lines, "\n") != strings.Join(want, "\n") {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(lines, "\n"), strings.Join(want, "\n"))
			}
		})
	}
}

// What is wrong is named with line, offset, the seq of the file and its format;
// what stands behind is read all the same.
func TestWhatIsWrongInALaterFormatIsNamed(t *testing.T) {
	replace := func(op string) string { return strings.Replace(user3, `"surfaceOp":"append"`, `"surfaceOp":`+op, 1) }
	first := strings.Replace(user3, `"seq":3`, `"seq":2`, 1)
	for _, c := range []struct {
		name   string
		format int
		line3  string
		code   outcrop.Code
		says   string
	}{
		{"ends by their old names", 3, replace(`{"op":"replace","start":2,"end":2}`), "FORMAT_MARKER", "startSeq and endSeq"},
		{"both, which disagree", 3, replace(`{"op":"replace","startSeq":2,"endSeq":2,"start":1,"end":2}`), "FORMAT_MARKER", "other numbers"},
		{"another form", 4, replace(`{"op":"replace","startSeq":2}`), "FORMAT_MARKER", `"append"`},
		{"a reversed range", 2, strings.Replace(user3, `"surfaceOp"`, `"sourceEventSeqs":[[2,1]],"surfaceOp"`, 1), "FORMAT_RANGE", "earlier"},
		{"a range that no log has", 2, strings.Replace(user3, `"surfaceOp"`, `"sourceEventSeqs":[[0,9007199254740991]],"surfaceOp"`, 1), "FORMAT_RANGE", "earlier"},
		{"a source that is not earlier", 3, strings.Replace(user3, `"surfaceOp"`, `"sourceEventSeqs":[3],"surfaceOp"`, 1), "FORMAT_REFERENCE", "event 3"},
		{"an end that is not there", 3, replace(`{"op":"replace","startSeq":7,"endSeq":7}`), "FORMAT_REFERENCE", "event 7"},
		{"too deep", 3, `{"type":"x","seq":3,"time":1,"data":` + strings.Repeat("[", 20000) + strings.Repeat("]", 20000) + `}`, "RECORD_TOO_BIG", "nested"},
	} {
		t.Run(c.name, func(t *testing.T) {
			file := laterLog(c.format, turn1, step1, first, c.line3, `{"type":"step/end","seq":4,"time":9,"data":{"turn":1,"step":1}}`)
			r, err := wire.NewReader(bytes.NewReader(file), int64(len(file)), wire.Plain)
			if err != nil {
				t.Fatal(err)
			}
			var e *outcrop.Error
			last := outcrop.Event{}
			for rec, err := range r.Records() {
				if err != nil {
					if !errors.As(err, &e) || e.Code != c.code || !strings.Contains(e.Msg, c.says) || e.Line != 5 || e.Seq != 3 || e.Offset != int64(bytes.Index(file, []byte(c.line3))) {
						t.Fatalf("error %+v", err)
					}
					if !strings.HasPrefix(e.Msg, fmt.Sprintf("dsh format %d: ", c.format)) {
						t.Errorf("the format is not named: %v", err)
					}
					continue
				}
				last = rec.Event
			}
			if e == nil || last.Type != outcrop.TypeStepEnd || last.Seq != 4 {
				t.Errorf("error %v, the last event is %d %s", e, last.Seq, last.Type)
			}
		})
	}
}

// In a later format a replace may spell its ends both ways, with the same
// numbers; and format 0 may have ranges.
func TestEqualSpellingsAreTaken(t *testing.T) {
	file := laterLog(3, turn1, step1, strings.Replace(user3, `"seq":3`, `"seq":2`, 1),
		strings.Replace(user3, `"surfaceOp":"append"`, `"sourceEventSeqs":[2],"surfaceOp":{"op":"replace","startSeq":2,"endSeq":2,"start":2,"end":2}`, 1))
	if s, _ := inspect(t, file, wire.Plain); s.Surface().View().Generation() != 1 {
		t.Error("the replace is not taken")
	}
	second := strings.Replace(user3, `"surfaceOp":"append"`, `"sourceEventSeqs":[0,[1,2]],"surfaceOp":{"op":"replace","start":2,"end":2}`, 1)
	file = plainLog(turn1, step1, strings.Replace(user3, `"seq":3`, `"seq":2`, 1), second)
	s, r := inspect(t, file, wire.Plain)
	if e := s.Log().At(3); string(e.Sources.JSON()) != "[0,1,2]" || s.Surface().View().Generation() != 1 {
		t.Errorf("sources %s", e.Sources.JSON())
	}
	for rec := range r.Records() {
		if rec.Seq == 3 && string(rec.Line()) != second {
			t.Error("the line that is stored is lost")
		}
	}
	// Wrong ones stay, and are refused.
	bad := plainLog(turn1, step1, strings.Replace(user3, `"seq":3`, `"seq":2`, 1), strings.Replace(second, "[1,2]", "[2,1]", 1))
	br, err := wire.NewReader(bytes.NewReader(bad), int64(len(bad)), wire.Plain)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := outcrop.Inspect(br.Header(), br.Records(), outcrop.Options{}); outcrop.CodeOf(err) != "SOURCES_BAD_ELEMENT" {
		t.Errorf("error %v", err)
	}
}

// Ranges that stand for more than memory has are not written out.
func TestHostileRangesAreNotWrittenOut(t *testing.T) {
	var lines []string
	for i := range 10_600 {
		line := fmt.Sprintf(`{"type":"x/y","seq":%d,"time":1,"data":{},"ignorable":true}`, i)
		if i > 10_000 {
			line = fmt.Sprintf(`{"type":"x/y","seq":%d,"time":1,"data":{},"sourceEventSeqs":[[0,%d]],"ignorable":true}`, i, i-1)
		}
		lines = append(lines, line)
	}
	file := laterLog(2, lines...)
	r, err := wire.NewReader(bytes.NewReader(file), int64(len(file)), wire.Plain)
	if err != nil {
		t.Fatal(err)
	}
	seqs, big := 0, 0
	for rec, err := range r.Records() {
		if outcrop.CodeOf(err) == "RECORD_TOO_BIG" {
			big++
		} else if err != nil {
			t.Fatal(err)
		}
		seqs += bytes.Count(rec.Sources.JSON(), []byte{','})
	}
	if seqs > formats.MaxRanged+len(lines) || big == 0 {
		t.Errorf("%d seqs, %d records were too big", seqs, big)
	}
}

// The number of inherited events stands at their end.
func TestASeedOfALaterFormat(t *testing.T) {
	head := `{"type":"session","version":3,"id":"s1","createdAt":1,"parentSession":"p","isSeeded":%v,"delegationDepth":1,"agentPreset":"ptc","more":1}`
	mark := `{"type":"session/end-seed","seq":%d,"time":1,"data":%s}`
	for _, c := range []struct {
		seeded string
		lines  []string
		want   int64 // -1: none
	}{
		{"true", []string{turn1, step1, fmt.Sprintf(mark, 2, `{"inherited":true}`), fmt.Sprintf(mark, 3, `{}`)}, 2},
		{"true", []string{turn1, strings.Replace(head2, `"seq":2`, `"seq":1`, 1), fmt.Sprintf(mark, 2, `{"inherited":true}`)}, 1},
		{"true", []string{fmt.Sprintf(mark, 0, `{"inherited":true}`), strings.Replace(turn1, `"seq":0`, `"seq":1`, 1), fmt.Sprintf(mark, 2, `{"inherited":true}`)}, 2},
		{"true", []string{turn1}, -1},
		{"false", []string{turn1, fmt.Sprintf(mark, 1, `{}`)}, -1},
	} {
		file := []byte(fmt.Sprintf(head, c.seeded) + "\n" + strings.Join(c.lines, "\n") + "\n")
		for _, enc := range encodings {
			f := file
			if enc == wire.Zstd {
				f = packed(file)
			}
			r, err := wire.NewReader(bytes.NewReader(f), int64(len(f)), enc)
			if err != nil {
				t.Fatal(err)
			}
			h := r.Header()
			got := int64(-1)
			if h.SeedLength != nil {
				got = *h.SeedLength
			}
			if got != c.want || h.Format != 3 || *h.AgentPreset != "code" || h.DelegationDepth != 1 || !bytes.Contains(h.Line(), []byte(`"more":1`)) {
				t.Errorf("%s %v: seed of %d, header %s", c.seeded, c.lines, got, h.Line())
			}
		}
	}
}

// What format 3 cannot hold is refused with its seq.
func TestWhatFormat3CannotHold(t *testing.T) {
	for name, c := range map[string]struct {
		lines []string
		seq   outcrop.Seq
		code  outcrop.Code
	}{
		"messages without markers": {[]string{turn1, step1, strings.Replace(strings.Replace(user3, `"seq":3`, `"seq":2`, 1), `,"surfaceOp":"append"`, ``, 1)}, 2, "FORMAT_UNWRITABLE"},
		"a reply that replaces": {[]string{turn1, step1, strings.Replace(user3, `"seq":3`, `"seq":2`, 1),
			`{"type":"assistant/message","seq":3,"time":9,"data":{"turn":1,"step":1,"message":{"role":"assistant","content":[],` + model + `,"id":"a"}},"sourceEventSeqs":[2],"surfaceOp":{"op":"replace","start":2,"end":2}}`}, 3, "FORMAT_UNWRITABLE"},
	} {
		s, r := inspect(t, plainLog(c.lines...), wire.Plain)
		_, err := wire.WriteFormat3(&bytes.Buffer{}, wire.Zstd, r.Header(), s.Log())
		var e *outcrop.Error
		if !errors.As(err, &e) || e.Code != c.code || e.Seq != c.seq || e.Session != r.Header().ID {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What is written in another form is told.
func TestChangesAreTold(t *testing.T) {
	ctx := strings.Replace(strings.Replace(user3, `"seq":3`, `"seq":2`, 1), "user/message", "context/message", 1)
	ctx = strings.Replace(ctx, `{"kind":"user"}`, `{"kind":"runtime"}`, 1)
	s, _ := inspect(t, plainLog(turn1, step1, ctx, strings.Replace(strings.Replace(ctx, `"seq":2`, `"seq":3`, 1), `"id":"u"`, `"id":"v"`, 1)), wire.Plain)
	h := outcrop.NewHeader("s1", 1, "/w")
	var out bytes.Buffer
	changes, err := wire.WriteFormat3(&out, wire.Zstd, h, s.Log())
	if err != nil {
		t.Fatal(err)
	}
	want := []formats.Change{{What: "member outcrop of the header is left out", Count: 1}, {What: "context/message is written as user/message", Count: 2}}
	if fmt.Sprint(changes) != fmt.Sprint(want) {
		t.Errorf("%v, want %v", changes, want)
	}
	if r, err := wire.NewReader(bytes.NewReader(out.Bytes()), int64(out.Len()), wire.Zstd); err != nil || r.Format() != 3 {
		t.Errorf("%v", err)
	}
}

// A prompt that is set where format 3 has no place for one comes in the next step.
func TestAPromptOutsideOfAStepComesInTheNext(t *testing.T) {
	s, r := inspect(t, plainLog(turn1, fmt.Sprintf(strings.Replace(asks, `"config"`, `"system":"You.","config"`, 1), 1),
		`{"type":"step/start","seq":2,"time":2,"data":{"turn":1,"step":1}}`, user3,
		`{"type":"assistant/message","seq":4,"time":9,"data":{"turn":1,"step":1,"message":{"role":"assistant","content":[],`+model+`,"id":"a"}},"sourceEventSeqs":[],"surfaceOp":"append"}`), wire.Plain)
	var out bytes.Buffer
	changes, err := wire.WriteFormat3(&out, wire.Plain, r.Header(), s.Log())
	if err != nil || len(changes) != 1 {
		t.Fatal(changes, err)
	}
	after, _ := inspect(t, out.Bytes(), wire.Plain)
	_, seq, ok := lastHeader(after)
	if !ok || !bytes.Contains(after.Log().At(seq).Data, []byte(`"system":"You."`)) || exactly(s) != exactly(after) {
		t.Errorf("%s", out.Bytes())
	}
}

// A step that has no numbers owns no prompt.
func TestAStepWithoutNumbersOwnsNoPrompt(t *testing.T) {
	s, r := inspect(t, plainLog(turn1, `{"type":"step/start","seq":1,"time":2,"data":{"turn":1}}`, fmt.Sprintf(asks, 2)), wire.Plain)
	var out bytes.Buffer
	if _, err := wire.WriteFormat3(&out, wire.Plain, r.Header(), s.Log()); err != nil {
		t.Fatal(err)
	}
	if after := readAll(out.Bytes(), wire.Plain); !after.OK || after.Events != 3 {
		t.Errorf("%v\n%s", after, out.Bytes())
	}
}

func lastHeader(s *outcrop.Session) (outcrop.Event, outcrop.Seq, bool) {
	seq := outcrop.Seq(-1)
	for e := range outcrop.Events(s.Log(), 0) {
		if e.Type == outcrop.TypeRequestHeader {
			seq = e.Seq
		}
	}
	if seq < 0 {
		return outcrop.Event{}, seq, false
	}
	return s.Log().At(seq), seq, true
}

// Torn tails and damage of a later format are those of format 0.
func TestTailsOfLaterFormats(t *testing.T) {
	file := laterLog(3, turn1, step1, head2, user3, `{"type":"step/end","seq":4,"time":9,"data":{"turn":1,"step":1}}`,
		`{"type":"turn/end","seq":5,"time":9,"data":{"turn":1,"reason":{"kind":"completed"}}}`)
	whole := readAll(file, wire.Plain)
	if !whole.OK || whole.Events != 5 || whole.tail.Torn {
		t.Fatalf("%v", whole)
	}
	torn := readAll(file[:len(file)-20], wire.Plain)
	if !torn.OK || !torn.tail.Torn || torn.Events != 4 || !bytes.HasPrefix(eventsText(whole), eventsText(torn)) {
		t.Errorf("%v", torn)
	}
	if torn.tail.Reason == nil || !strings.Contains(torn.tail.Reason.Error(), "dsh format 3: ") {
		t.Errorf("the format is not named: %v", torn.tail.Reason)
	}
	if bad := readAll(bytes.Replace(file, []byte(`{"type":"step/start"`), []byte(`{"type" "step/start"`), 1), wire.Plain); bad.OK || bad.code != "LINE_NOT_JSON" || bad.Events != 1 {
		t.Errorf("%v", bad)
	}
	if gap := readAll(bytes.Replace(file, []byte(step1+"\n"), nil, 1), wire.Plain); gap.OK || gap.code != "SEQ_GAP" {
		t.Errorf("%v", gap)
	}
	z := packed(file)
	if cut := readAll(z[:len(z)-6], wire.Zstd); !cut.tail.Torn || cut.Events == 0 || cut.Events > 5 {
		t.Errorf("%v", cut)
	}
	last, err := wire.LastEvents(bytes.NewReader(file[:len(file)-100]), int64(len(file)-100), wire.Plain)
	if err != nil || !last.Known || last.Turn != wire.TurnOpen || !last.Torn {
		t.Errorf("%+v %v", last, err)
	}
}
