package repair_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/doctor"
	"github.com/outcrop-dev/outcrop/doctor/repair"
	"github.com/outcrop-dev/outcrop/wire"
)

// repaired runs a repair in memory: the new log, what was left out by file, and
// the changes in short.
func repaired(t testing.TB, file []byte, enc wire.Encoding, o repair.Options) (log []byte, removed map[string]string, changes []string, err error) {
	t.Helper()
	r, err := repair.NewPlan(t.Context(), memory(file, enc), o)
	if err != nil {
		return nil, nil, nil, err
	}
	for _, c := range r.Changes {
		s := fmt.Sprintf("%s %d", c.Code, c.Seq)
		if c.Reason != "" {
			s += " " + string(c.Reason)
		}
		if c.Events > 0 {
			s += fmt.Sprintf(" events %d", c.Events)
		}
		if c.Times > 1 {
			s += fmt.Sprintf(" times %d", c.Times)
		}
		changes = append(changes, s)
		if c.Message == "" {
			t.Errorf("a change says nothing: %s", c.AppendJSON(nil))
		}
	}
	removed = map[string]string{}
	var out bytes.Buffer
	if err := r.Write(t.Context(), &out, func(name string) (io.WriteCloser, error) { return part{removed, name}, nil }); err != nil {
		t.Fatalf("write: %v", err)
	}
	return out.Bytes(), removed, changes, nil
}

type part struct {
	into map[string]string
	name string
}

func (p part) Write(b []byte) (int, error) { p.into[p.name] += string(b); return len(b), nil }
func (p part) Close() error                { return nil }

// sound makes sure that a repaired log can be continued and needs no repair.
func sound(t testing.TB, log []byte, enc wire.Encoding) {
	t.Helper()
	found, sum := verify(t, memory(log, enc), doctor.Options{})
	if !sum.OK || sum.TruncatedAt != nil {
		t.Errorf("the repaired log does not pass verify: %s\n%v\n%.2000q", sum.AppendJSON(nil), codes(found), log)
	}
	again, err := repair.NewPlan(t.Context(), memory(log, enc), repair.Options{})
	if err != nil || len(again.Changes) > 0 {
		t.Errorf("a second repair: %v, %+v", err, again)
	}
	rd, err := wire.NewReader(bytes.NewReader(log), int64(len(log)), enc)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := outcrop.Restore(rd.Header(), rd.Records(), outcrop.Options{}); err != nil {
		t.Errorf("the repaired log cannot be continued: %v", err)
	}
}

// frames is a zstd log of these frames.
func frames(t testing.TB, texts ...string) (file []byte, starts []int) {
	t.Helper()
	z, err := zstd.NewWriter(nil, zstd.WithEncoderCRC(true))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range texts {
		starts = append(starts, len(file))
		file = z.EncodeAll([]byte(s), file)
	}
	return file, starts
}

// unpacked is the text of a zstd log.
func unpacked(t testing.TB, file []byte) string {
	t.Helper()
	z, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	text, err := z.DecodeAll(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestRepairOf(t *testing.T) {
	t1 := turn(1, 0) // events 0 to 5
	t2 := turn(2, 6) // events 6 to 11
	join := func(l ...[]string) []string { return slices.Concat(l...) }
	head := []string{dshHeader}
	whole := plain(join(head, t1, t2)...)
	compaction := []string{
		`{"type":"compaction/start","seq":6,"time":9,"data":{"compactionId":"c1","turn":null}}`,
	}
	for _, c := range []struct {
		name    string
		file    []byte
		want    []byte // nil: the file as it is
		changes []string
		removed map[string]string
	}{
		{name: "a healthy log, which stays as it is", file: whole},
		{name: "a log with an open turn, which opening closes", file: plain(join(head, t1, t2[:4])...)},
		{name: "a header and nothing else", file: plain(dshHeader)},
		{name: "blank lines, which stay", file: plain(join(head, t1[:2], []string{"", " "}, t1[2:])...)},
		{
			name:    "a torn tail",
			file:    append(plain(join(head, t1)...), `{"type":"turn/st`...),
			want:    plain(join(head, t1)...),
			changes: []string{"TORN_TAIL 6 LINE_NOT_JSON"},
			removed: map[string]string{"removed.jsonl": "{\"type\":\"turn/st\n"},
		},
		{
			name:    "a last record that lacks only its newline",
			file:    whole[:len(whole)-1],
			want:    whole,
			changes: []string{"NEWLINE_MISSING 11"},
		},
		{
			name:    "two records on a line",
			file:    plain(join(head, t1[:5], []string{t1[5] + t2[0]}, t2[1:])...),
			want:    whole,
			changes: []string{"GLUED 5"},
		},
		{
			name:    "three records on a line",
			file:    plain(join(head, t1[:4], []string{t1[4] + " " + t1[5] + t2[0]}, t2[1:])...),
			want:    whole,
			changes: []string{"GLUED 4 times 2"},
		},
		{
			name:    "a header with the first event on its line",
			file:    plain(join([]string{dshHeader + t1[0]}, t1[1:])...),
			want:    plain(join(head, t1)...),
			changes: []string{"GLUED -1"},
		},
		{
			name:    "a torn record and a whole one behind it on its line",
			file:    plain(join(head, t1, []string{`{"type":"turn/start","seq":6,"ti` + t2[0]}, t2[1:])...),
			want:    whole,
			changes: []string{"GLUED_TORN 6"},
			removed: map[string]string{"removed.jsonl": `{"type":"turn/start","seq":6,"ti` + "\n"},
		},
		{
			name:    "a torn record, and behind it the one that follows it: an event is missing",
			file:    plain(join(head, t1, []string{`{"type":"turn/start","seq":6,"ti` + t2[1]}, t2[2:])...),
			want:    plain(join(head, t1)...),
			changes: []string{"CUT 6 LINE_NOT_JSON events 4"},
			removed: map[string]string{"removed.jsonl": `{"type":"turn/start","seq":6,"ti` + t2[1] + "\n", "behind.jsonl": strings.Join(t2[2:], "\n") + "\n"},
		},
		{
			name:    "zero bytes before a record",
			file:    plain(join(head, t1, []string{"\x00\x00\x00" + t2[0]}, t2[1:])...),
			want:    whole,
			changes: []string{"NUL_RUN 6"},
		},
		{
			name:    "zero bytes at the end",
			file:    append(bytes.Clone(whole), make([]byte, 4096)...),
			want:    whole,
			changes: []string{"NUL_RUN 12"},
		},
		{
			name:    "zero bytes in the place of events",
			file:    plain(join(head, t1, []string{strings.Repeat("\x00", 90) + t2[2]}, t2[3:])...),
			want:    plain(join(head, t1)...),
			changes: []string{"CUT 6 NUL_RUN events 4"},
			removed: map[string]string{"behind.jsonl": strings.Join(t2[2:], "\n") + "\n"},
		},
		{
			name:    "a line of something else between records that follow each other",
			file:    plain(join(head, t1, []string{"hello", "world"}, t2)...),
			want:    whole,
			changes: []string{"JUNK 6 LINE_NOT_JSON"},
			removed: map[string]string{"removed.jsonl": "hello\nworld\n"},
		},
		{
			name:    "a record that stands there twice",
			file:    plain(join(head, t1, t1[4:], t2)...),
			want:    whole,
			changes: []string{"SEQ_REPEAT 4 events 2 times 2"},
			removed: map[string]string{"removed.jsonl": t1[4] + "\n" + t1[5] + "\n"},
		},
		{
			name:    "a seq twice with other content",
			file:    plain(join(head, t1, []string{note(5), note(6)})...),
			want:    plain(join(head, t1)...),
			changes: []string{"CUT 6 SEQ_REPEAT events 2"},
			removed: map[string]string{"behind.jsonl": note(5) + "\n" + note(6) + "\n"},
		},
		{
			name:    "a missing event",
			file:    plain(join(head, t1, t2[1:])...),
			want:    plain(join(head, t1)...),
			changes: []string{"CUT 6 SEQ_GAP events 5"},
			removed: map[string]string{"behind.jsonl": strings.Join(t2[1:], "\n") + "\n"},
		},
		{
			name: "a turn that a repair closed while its program wrote on",
			file: plain(join(head, t1, t2[:4], []string{ // 6 to 9
				t2[4], ended(11, 2, "interrupted"), fmt.Sprintf(endSeed4, 12),
			}, []string{note(11), t2[4+1][:len(t2[5])-0]})...),
			want:    plain(join(head, t1, t2[:5], []string{note(11)})...),
			changes: []string{"CLOSERS_OVERTAKEN 11 events 2", "CUT 12 SEQ_REPEAT events 1"},
			removed: map[string]string{"removed.jsonl": ended(11, 2, "interrupted") + "\n" + fmt.Sprintf(endSeed4, 12) + "\n", "behind.jsonl": t2[5] + "\n"},
		},
		{
			name:    "the same the other way round",
			file:    plain(join(head, t1, t2[:4], []string{note(10), fmt.Sprintf(endSeed4, 10), note(11)})...),
			want:    plain(join(head, t1, t2[:4], []string{note(10), note(11)})...),
			changes: []string{"CLOSERS_OVERTAKEN 10 events 1"},
			removed: map[string]string{"removed.jsonl": fmt.Sprintf(endSeed4, 10) + "\n"},
		},
		{
			name:    "an event that breaks a rule",
			file:    plain(join(head, t1, []string{user(6, `"surfaceOp":{"op":"replace","start":2,"end":3},"sourceEventSeqs":[2]`), note(7)})...),
			want:    plain(join(head, t1)...),
			changes: []string{"CUT 6 SOURCES_INCOMPLETE events 2"},
			removed: map[string]string{"behind.jsonl": user(6, `"surfaceOp":{"op":"replace","start":2,"end":3},"sourceEventSeqs":[2]`) + "\n" + note(7) + "\n"},
		},
		{
			name:    "half an old shape",
			file:    plain(join(head, t1, []string{`{"type":"turn/start","seq":6,"time":1,"data":{"turn":1,"trigger":{}}}`, note(7)})...),
			want:    plain(join(head, t1)...),
			changes: []string{"CUT 6 LEGACY_TURN_START events 1"},
			removed: map[string]string{"behind.jsonl": `{"type":"turn/start","seq":6,"time":1,"data":{"turn":1,"trigger":{}}}` + "\n" + note(7) + "\n"},
		},
		{
			name:    "a turn that nothing can close",
			file:    plain(join(head, t1, []string{`{"type":"turn/start","seq":6,"time":1,"data":{}}`, note(7)})...),
			want:    plain(join(head, t1)...),
			changes: []string{"CUT 6 TURN_NOT_CLOSABLE events 2"},
			removed: map[string]string{"behind.jsonl": `{"type":"turn/start","seq":6,"time":1,"data":{}}` + "\n" + note(7) + "\n"},
		},
		{
			name:    "a record that nests too deeply",
			file:    plain(join(head, t1, []string{`{"type":"feedback/record","seq":6,"time":1,"data":` + strings.Repeat("[", 20000) + strings.Repeat("]", 20000) + `}`, note(7)})...),
			want:    plain(join(head, t1)...),
			changes: []string{"CUT 6 RECORD_TOO_BIG events 1"},
			removed: map[string]string{"behind.jsonl": `{"type":"feedback/record","seq":6,"time":1,"data":` + strings.Repeat("[", 20000) + strings.Repeat("]", 20000) + "}\n" + note(7) + "\n"},
		},
		{
			name:    "a compaction that a crash left open",
			file:    plain(join(head, t1, compaction)...),
			want:    plain(join(head, t1, compaction, []string{`{"type":"compaction/end","seq":7,"time":9,"data":{"compactionId":"c1","turn":null,"error":"the program stopped before it was finished; closed by a repair"}}`})...),
			changes: []string{"COMPACTION_CLOSED 7 events 1"},
		},
		{name: "a compaction that session/end-seed made stale", file: plain(join(head, t1, compaction, []string{fmt.Sprintf(endSeed4, 7)})...)},
		{
			name: "a compaction across a turn, which no end fits",
			file: plain(join(head, t1, compaction, []string{`{"type":"turn/start","seq":7,"time":1,"data":{"turn":2}}`})...),
		},
		{
			name: "a call without a result in a closed turn, which requests answer",
			file: plain(join(head, []string{
				`{"type":"turn/start","seq":0,"time":1,"data":{"turn":1}}`, `{"type":"step/start","seq":1,"time":1,"data":{"turn":1,"step":1}}`,
				assistant(2, 1, `[{"type":"tool-call","id":"c1","name":"n","arguments":"{}"}]`),
				`{"type":"step/end","seq":3,"time":1,"data":{"turn":1,"step":1}}`, ended(4, 1, "completed")})...),
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.want == nil {
				c.want = c.file
			}
			log, removed, changes, err := repaired(t, c.file, wire.Plain, repair.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.changes, changes); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(string(c.want), string(log)); diff != "" {
				t.Errorf("log (-want +got):\n%s", diff)
			}
			if c.removed == nil {
				c.removed = map[string]string{}
			}
			if diff := cmp.Diff(c.removed, removed); diff != "" {
				t.Errorf("left out (-want +got):\n%s", diff)
			}
			sound(t, log, wire.Plain)
			// The same text in frames of its own gives the same text.
			z, _ := frames(t, string(c.file[:bytes.IndexByte(c.file, '\n')+1]), string(c.file[bytes.IndexByte(c.file, '\n')+1:]))
			zlog, _, zchanges, err := repaired(t, z, wire.Zstd, repair.Options{})
			if err != nil || bytes.Contains(c.file[:bytes.IndexByte(c.file, '\n')], []byte("turn/start")) {
				return // the header's frame holds more
			}
			if diff := cmp.Diff(c.changes, zchanges); diff != "" {
				t.Errorf("zstd: changes (-want +got):\n%s", diff)
			}
			if got := unpacked(t, zlog); got != string(c.want) {
				t.Errorf("zstd: log %q\nwant %q", got, c.want)
			}
			sound(t, zlog, wire.Zstd)
		})
	}
}

func TestRepairMakesAHeaderFromWhatIsKnown(t *testing.T) {
	t1 := turn(1, 0)
	context := `{"type":"context/message","seq":6,"time":1,"data":{"content":[],"source":{"kind":"plugin"},"role":"user","id":"c"},"surfaceOp":"append"}`
	for _, c := range []struct {
		name   string
		file   []byte
		o      repair.Options
		header string
		fails  outcrop.Code
	}{
		{name: "no header, id given", file: plain(t1...), o: repair.Options{ID: "x", Cwd: "/w"}, header: `{"type":"session","version":0,"id":"x","createdAt":1,"cwd":"/w","delegationDepth":0}`},
		{name: "no header, id not given", file: plain(t1...), fails: "HEADER_ID"},
		{name: "no header, own types", file: plain(append(slices.Clone(t1), context)...), o: repair.Options{ID: "x"}, header: `{"type":"session","version":0,"id":"x","createdAt":1,"delegationDepth":0,"outcrop":1}`},
		{
			name: "a torn header that still says most", file: plain(append([]string{`{"type":"session","version":0,"id":"kept","createdAt":77,"cwd":"/home/w","parentSession":"p","seedLength":3,"orig`}, t1...)...),
			header: `{"type":"session","version":0,"id":"kept","createdAt":77,"cwd":"/home/w","parentSession":"p","seedLength":3,"delegationDepth":0}`,
		},
		{name: "a header with a bad member", file: plain(append([]string{`{"type":"session","version":0,"id":"k","createdAt":-5,"delegationDepth":"x"}`}, t1...)...), header: `{"type":"session","version":0,"id":"k","createdAt":1,"delegationDepth":0}`},
		{name: "a byte order mark before it", file: plain(append([]string{"\xef\xbb\xbf" + dshHeader}, t1...)...), header: dshHeader},
		{name: "zero bytes before it", file: plain(append([]string{"\x00\x00" + dshHeader}, t1...)...), header: dshHeader},
		{name: "an empty id", file: plain(append([]string{strings.Replace(dshHeader, `"s1"`, `""`, 1)}, t1...)...), o: repair.Options{ID: "new"}, header: strings.Replace(dshHeader, `"s1"`, `"new"`, 1)},
		{name: "another id than the one that it has", file: plain(append([]string{dshHeader}, t1...)...), o: repair.Options{ID: "new"}, fails: "HEADER_ID"},
		{name: "a relative directory", file: plain(t1...), o: repair.Options{ID: "x", Cwd: "w"}, fails: "HEADER_CWD_RELATIVE"},
		{name: "a later format", file: plain(`{"type":"session","version":3,"id":"x"}`), fails: "LATER_FORMAT"},
		{name: "a format that is not known", file: plain(`{"type":"session","version":5,"id":"x"}`), fails: "HEADER_VERSION"},
		{name: "text", file: []byte("hello\nworld\n"), fails: "FILE_NO_HEADER"},
		{name: "nothing", fails: "FILE_EMPTY"},
		{name: "the first events are lost with the header", file: plain(t1[2:]...), o: repair.Options{ID: "x"}, fails: "FILE_NO_HEADER"},
		{name: "a place that says the directory is another one", file: plain(t1...), o: repair.Options{Cwd: "/w", Place: &doctor.Place{Project: "--v--", Session: "x", ID: "x"}}, fails: "HEADER_CWD"},
		{name: "a place that fits", file: plain(t1...), o: repair.Options{Cwd: "/v", Place: &doctor.Place{Project: "--v--", Session: "x", ID: "x"}}, header: `{"type":"session","version":0,"id":"x","createdAt":1,"cwd":"/v","delegationDepth":0}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			log, _, _, err := repaired(t, c.file, wire.Plain, c.o)
			if c.fails != "" {
				if !errors.Is(err, repair.ErrNotRepairable) || outcrop.CodeOf(err) != c.fails {
					t.Errorf("%v, want %s", err, c.fails)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			head, rest, _ := strings.Cut(string(log), "\n")
			if head != c.header {
				t.Errorf("header %s\nwant   %s", head, c.header)
			}
			if !strings.HasPrefix(rest, strings.Join(t1, "\n")+"\n") {
				t.Errorf("events %q", rest)
			}
			sound(t, log, wire.Plain)
		})
	}
}

// What stands behind a bad frame is not joined to what stands before it, unless
// the seqs prove that nothing is missing.
func TestRepairOfFrames(t *testing.T) {
	t1, t2, t3 := turn(1, 0), turn(2, 6), turn(3, 12)
	lines := func(l []string) string { return strings.Join(l, "\n") + "\n" }
	file, starts := frames(t, dshHeader+"\n", lines(t1), lines(t2), lines(t3))
	head, f1, f2, f3 := file[:starts[1]], file[starts[1]:starts[2]], file[starts[2]:starts[3]], file[starts[3]:]
	all := dshHeader + "\n" + lines(t1) + lines(t2) + lines(t3)
	flip := func(b []byte) []byte {
		b = bytes.Clone(b)
		b[len(b)-2] ^= 1 // the checksum
		return b
	}
	skippable := append([]byte{0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0}, "abc"...)
	glued, _ := frames(t, dshHeader+"\n"+lines(t1))
	for _, c := range []struct {
		name    string
		file    []byte
		text    string
		changes []string
		removed map[string]string
	}{
		{"healthy", file, all, nil, nil},
		{
			"a frame in the middle that fails its checksum", slices.Concat(head, f1, flip(f2), f3), dshHeader + "\n" + lines(t1),
			[]string{"CUT 6 FRAME_DECODE events 6"},
			map[string]string{fmt.Sprintf("frame-%d.zst", starts[2]): string(flip(f2)), "behind.jsonl": lines(t3)},
		},
		{
			"a last frame that fails its checksum", slices.Concat(head, f1, f2, flip(f3)), dshHeader + "\n" + lines(t1) + lines(t2),
			[]string{"TORN_TAIL 12 FRAME_DECODE"},
			map[string]string{fmt.Sprintf("frame-%d.zst", starts[3]): string(flip(f3))},
		},
		{
			"bytes between frames", slices.Concat(head, f1, []byte("junk"), f2, f3), all,
			[]string{"JUNK 6 FRAME_MAGIC"}, map[string]string{fmt.Sprintf("frame-%d.zst", starts[2]): "junk"},
		},
		{
			"a frame to be skipped", slices.Concat(head, f1, skippable, f2, f3), all,
			[]string{"JUNK 6 FRAME_MAGIC"}, map[string]string{fmt.Sprintf("frame-%d.zst", starts[2]): string(skippable)},
		},
		{
			"zero bytes at the end", slices.Concat(file, make([]byte, 100)), all,
			[]string{"TORN_TAIL 18 FRAME_MAGIC"}, map[string]string{fmt.Sprintf("frame-%d.zst", len(file)): string(make([]byte, 100))},
		},
		{
			"a frame twice", slices.Concat(head, f1, f2, f2, f3), all,
			[]string{"SEQ_REPEAT 6 events 6 times 6"}, map[string]string{"removed.jsonl": lines(t2)},
		},
		{
			"a frame that is missing", slices.Concat(head, f1, f3), dshHeader + "\n" + lines(t1),
			[]string{"CUT 6 SEQ_GAP events 6"}, map[string]string{"behind.jsonl": lines(t3)},
		},
		{
			"a checksum that was cut off", file[:len(file)-2], all,
			[]string{"TORN_TAIL 18 FRAME_TORN"}, map[string]string{fmt.Sprintf("frame-%d.zst", starts[3]): string(f3[:len(f3)-2])},
		},
		{
			"a header in one frame with events", slices.Concat(glued, f2, f3), all,
			[]string{"FRAME_HEADER -1"}, nil,
		},
		{
			"a torn frame in the middle", slices.Concat(head, f1[:len(f1)-7], f2, f3), dshHeader + "\n",
			[]string{"CUT 0 FRAME_DECODE events 12"}, nil,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			log, removed, changes, err := repaired(t, c.file, wire.Zstd, repair.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.changes, changes); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.text, unpacked(t, log)); diff != "" {
				t.Errorf("text (-want +got):\n%s", diff)
			}
			if c.removed != nil {
				if diff := cmp.Diff(c.removed, removed); diff != "" {
					t.Errorf("left out (-want +got):\n%s", diff)
				}
			}
			sound(t, log, wire.Zstd)
		})
	}
	// The header's frame is lost, the rest is there.
	log, _, changes, err := repaired(t, slices.Concat(flip(head), f1, f2), wire.Zstd, repair.Options{ID: "s1"})
	if err != nil || unpacked(t, log) != dshHeader+"\n"+lines(t1)+lines(t2) {
		t.Errorf("lost header: %v %v\n%q", err, changes, log)
	}
}

func TestRepairIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		file []byte
		code outcrop.Code
	}{
		"events of a newer program":     {plain(dshHeader, `{"type":"future/thing","seq":0,"time":1,"data":{}}`), "TYPE_UNKNOWN"},
		"a log without surface markers": {plain(dshHeader, strings.Replace(user(0, ""), ",}", "}", 1)), "SURFACE_MARKER_REQUIRED"},
	} {
		if _, err := repair.NewPlan(t.Context(), memory(c.file, wire.Plain), repair.Options{}); !errors.Is(err, repair.ErrNotRepairable) || outcrop.CodeOf(err) != c.code {
			t.Errorf("%s: %v", name, err)
		}
	}
}
