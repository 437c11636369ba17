package doctor_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
	"pgregory.net/rapid"

	"github.com/outcrop-dev/outcrop/doctor"
	"github.com/outcrop-dev/outcrop/internal/genlog"
	"github.com/outcrop-dev/outcrop/wire"
)

// The verdict of dsh is the same whether its own reading of the lines was saved
// or not.
func TestASoundFileIsJudgedAsOneThatIsReadByDSHsRules(t *testing.T) {
	files := map[wire.Encoding][]byte{}
	for _, enc := range []wire.Encoding{wire.Plain, wire.Zstd} {
		var b bytes.Buffer
		if _, err := genlog.Write(&b, enc, true, 1<<10); err != nil {
			t.Fatal(err)
		}
		files[enc] = b.Bytes()
	}
	z, err := zstd.NewWriter(nil, zstd.WithEncoderCRC(true))
	if err != nil {
		t.Fatal(err)
	}
	odd := rapid.SampledFrom([]string{
		"", " ", "\r", "\t{}", "null", "[]", "{", "\x00\x00", "\ufeff{}", strings.Repeat("[", 10_001) + strings.Repeat("]", 10_001),
		`{"type":"turn/end","seq":0,"time":1,"data":{}}`, `{"seq":1e0,"type":"x"}`, `{"type":"text-chunks"}`, `{"seq":0,"seq":"0"}`,
	})
	rapid.Check(t, func(t *rapid.T) {
		enc := rapid.SampledFrom([]wire.Encoding{wire.Plain, wire.Zstd}).Draw(t, "encoding")
		file := slices.Clone(files[enc])
		lines := bytes.SplitAfter(file, []byte("\n"))
		what := rapid.SampledFrom([]string{"nothing", "cut", "flip", "twice", "odd line", "odd end", "drop"}).Draw(t, "what")
		if enc == wire.Zstd && (what == "odd line" || what == "twice" || what == "drop" || what == "odd end") {
			line := odd.Draw(t, "line")
			if what == "odd line" {
				line += "\n"
			}
			file = z.EncodeAll([]byte(line), file)
			what = "nothing"
		}
		at := 1
		if enc == wire.Plain {
			at = rapid.IntRange(1, len(lines)-2).Draw(t, "at")
		}
		switch what {
		case "cut":
			file = file[:rapid.IntRange(0, len(file)).Draw(t, "byte")]
		case "flip":
			file[rapid.IntRange(0, len(file)-1).Draw(t, "byte")] ^= byte(1 << rapid.IntRange(0, 7).Draw(t, "bit"))
		case "twice":
			file = bytes.Join(slices.Insert(lines, at, lines[at]), nil)
		case "drop":
			file = bytes.Join(slices.Delete(lines, at, at+1), nil)
		case "odd line":
			file = bytes.Join(slices.Insert(lines, at, []byte(odd.Draw(t, "line")+"\n")), nil)
		case "odd end":
			file = append(file, odd.Draw(t, "line")...)
		}
		target := memory(file, enc)
		findings, sum := all(t, target, doctor.Options{})
		wantFindings, want := all(t, target, doctor.Options{}.Doubtful())
		if d := cmp.Diff(wantFindings, findings); d != "" {
			t.Fatalf("findings (-read by dsh's rules +not):\n%s", d)
		}
		if got, want := string(sum.AppendJSON(nil)), string(want.AppendJSON(nil)); got != want {
			t.Fatalf("%s, read by dsh's rules %s", got, want)
		}
	})
}

func all(t *rapid.T, target doctor.Target, o doctor.Options) (out []doctor.Finding, s doctor.Summary) {
	findings, sum := doctor.Verify(t.Context(), target, o)
	for f := range findings {
		out = append(out, f)
	}
	return out, *sum
}
