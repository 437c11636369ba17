package dsh

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// A line that is read piece by piece is judged as one that is kept, wherever
// the pieces end.
func TestALongLineIsJudgedAsAShortOne(t *testing.T) {
	deep := func(n int, in string) string { return strings.Repeat("[", n) + in + strings.Repeat("]", n) }
	for _, line := range []string{
		`{"type":"turn/end","seq":7,"data":{"a":[1,2,{"type":"x","seq":9}]}}`, `{"seq":7,"type":"turn\/end","seq":8}`, `{"type":"turn/end","seq":1e1}`,
		`{"seq":1.5}`, `{"seq":-1}`, `{"seq":"7"}`, `{"seq":[7]}`, `{"seq":7,"seq":null}`, `{"type":"turn/end","type":["turn/end"],"seq":0}`, `{"s\u0065q":12}`,
		`{}`, `[]`, ` { } `, "\t[\r]", `null`, ` null `, `true`, `false`, `"seq"`, `0`, `-0`, `1.25e-7`, `12`, `-`, `01`, `1.`, `.5`, `1e`, `1e+`, `1E+5`, `1x`, `nul`, `nulll`, `truefalse`,
		``, ` `, `{`, `}`, `[`, `]`, `[1,]`, `[,1]`, `[1 2]`, `{"a"}`, `{"a":}`, `{"a":1,}`, `{,}`, `{1:2}`, `{"a":1]`, `[1}`, `{"a":1}}`, `{"a":1} x`, `[[[]]]`, `[{}]`, `{"a":{}}`,
		`"a\u00e9\"\\"`, `"\x"`, `"\u12g4"`, "\"a\x01\"", "\"\xff\xfe\"", `"abc`, `"abc\`, `{"type":"\ud800"}`, `{"seq":12345678901234567890}`,
		deep(9999, ""), deep(10000, ""), deep(10000, "1"), deep(10001, ""), deep(10001, "1"), deep(10002, ""), deep(10001, "{}"), strings.Repeat("[", 10001), strings.Repeat(`{"a":`, 10001) + "1" + strings.Repeat("}", 10001),
		`{"seq":` + deep(20000, "") + `}`, `{"type":"` + strings.Repeat("x", 100) + `","seq":4}`, `{"seq":` + strings.Repeat("0", 70) + `}`,
	} {
		agree(t, []byte(line), 1)
		agree(t, []byte(line), 3)
		agree(t, []byte(line), 1<<20)
	}
}

func agree(t interface{ Fatalf(string, ...any) }, line []byte, size int) {
	want := readLine(line)
	var l longLine
	for at := 0; at < len(line); at += size {
		l.write(line[at:min(at+size, len(line))])
	}
	got := l.end()
	if want.kind != isEvent {
		want.seq, got.seq = 0, 0
	}
	if want.kind == notJSON || want.kind == tooDeep || want.kind == isNull || want.kind == isOther && want.count == 0 {
		want.count, got.count = 0, 0
	}
	if got != want {
		t.Fatalf("%.200q in pieces of %d: %+v, want %+v", line, size, got, want)
	}
}

func TestALongLineIsJudgedAsAShortOneWhateverItHas(t *testing.T) {
	piece := rapid.SampledFrom([]string{"{", "}", "[", "]", ",", ":", `"type"`, `"seq"`, `"turn/end"`, "7", "-", "1.5", "e3", "null", "true", " ", `"a\n"`, `"\u0041"`, "\\", `"`, "x"})
	rapid.Check(t, func(rt *rapid.T) {
		line := strings.Join(rapid.SliceOfN(piece, 0, 20).Draw(rt, "pieces"), "")
		if rapid.Bool().Draw(rt, "object") {
			line = fmt.Sprintf(`{"type":"x",%s}`, line)
		}
		agree(rt, []byte(line), rapid.IntRange(1, 5).Draw(rt, "size"))
	})
}
