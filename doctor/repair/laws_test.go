package repair_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/outcrop-dev/outcrop/doctor/repair"
	"github.com/outcrop-dev/outcrop/wire"
)

// mended repairs and checks the laws that hold whatever the file is: a refusal,
// or a log that can be continued and needs no repair. It returns the text of the
// log, "" after a refusal.
func mended(t testing.TB, file []byte, enc wire.Encoding, o repair.Options) string {
	t.Helper()
	r, err := repair.NewPlan(t.Context(), memory(file, enc), o)
	if err != nil {
		if !errors.Is(err, repair.ErrNotRepairable) {
			t.Fatalf("neither repaired nor refused: %v\n%.3000q", err, file)
		}
		return ""
	}
	var out bytes.Buffer
	removed := map[string]string{}
	if err := r.Write(t.Context(), &out, func(name string) (io.WriteCloser, error) { return part{removed, name}, nil }); err != nil {
		t.Fatalf("write: %v\n%.3000q", err, file)
	}
	sound(t, out.Bytes(), enc)
	if len(r.Changes) == 0 && enc == wire.Plain && !bytes.Equal(out.Bytes(), file) {
		t.Errorf("nothing is to be done, and yet the log changed:\n%.2000q\n%.2000q", file, out.Bytes())
	}
	if enc == wire.Zstd {
		return unpacked(t, out.Bytes())
	}
	return out.String()
}

// logText is a log of turns, results, compactions and rows.
func logText(turns int) []string {
	lines := []string{ownHeader}
	seq := 0
	add := func(format string, args ...any) {
		lines = append(lines, fmt.Sprintf(format, args...))
		seq++
	}
	for n := 1; n <= turns; n++ {
		lines = append(lines, turn(n, seq)[:4]...)
		seq += 4
		if n%2 == 0 {
			add(`{"type":"tool/call","seq":%d,"time":1,"data":{"turn":%d,"step":1,"callId":"c","name":"n","arguments":"{\"type\":\"x\"}"}}`, seq, n)
		}
		if n%3 == 0 {
			add(`{"type":"text-chunks","seq0":%d,"time0":1,"data":{"turn":%d,"step":1,"index":0,"dt":[1,1],"texts":["a","b","{\"type\":"]}}`, seq, n)
			seq += 2
		}
		add(`{"type":"step/end","seq":%d,"time":1,"data":{"turn":%d,"step":1}}`, seq, n)
		add("%s", ended(seq, n, "completed"))
	}
	return lines
}

// Every cut: what was whole before it stays, and nothing else comes.
func TestRepairOfACutLogKeepsEveryWholeRecord(t *testing.T) {
	lines := logText(3)
	file := plain(lines...)
	for cut := len(lines[0]); cut <= len(file); cut++ {
		got := mended(t, file[:cut], wire.Plain, repair.Options{})
		whole := bytes.Count(file[:cut], []byte("\n"))
		if cut < len(file) && file[cut] == '\n' {
			whole++ // only its newline is missing
		}
		if want := string(plain(lines[:whole]...)); got != want {
			t.Fatalf("cut at %d:\n%q\nwant\n%q", cut, got, want)
		}
	}
	z, starts := frames(t, lines[0]+"\n", strings.Join(lines[1:9], "\n")+"\n", strings.Join(lines[9:], "\n")+"\n")
	for cut := starts[1]; cut <= len(z); cut++ {
		got := mended(t, z[:cut], wire.Zstd, repair.Options{})
		want := string(plain(lines[0]))
		if cut >= starts[2] {
			want = string(plain(lines[:9]...))
		}
		if !strings.HasPrefix(got, want) || !strings.HasPrefix(string(file), got) {
			t.Fatalf("zstd, cut at %d: %q", cut, got)
		}
	}
}

// Every flipped byte: no panic, and the records before it stay.
func TestRepairOfAFlippedByteKeepsWhatStandsBeforeIt(t *testing.T) {
	lines := logText(2)
	file := plain(lines...)
	for i := len(lines[0]) + 1; i < len(file); i++ {
		for _, bit := range []byte{1, 0x80} {
			bad := bytes.Clone(file)
			bad[i] ^= bit
			got := mended(t, bad, wire.Plain, repair.Options{})
			before := file[:bytes.LastIndexByte(file[:i], '\n')+1]
			if got != "" && !strings.HasPrefix(got, string(before)) {
				t.Fatalf("byte %d: %q", i, got)
			}
		}
	}
	z, starts := frames(t, lines[0]+"\n", strings.Join(lines[1:6], "\n")+"\n", strings.Join(lines[6:], "\n")+"\n")
	text := string(file)
	for i := starts[1]; i < len(z); i++ {
		bad := bytes.Clone(z)
		bad[i] ^= 4
		// Where there is a checksum, nothing wrong is taken for right.
		if got := mended(t, bad, wire.Zstd, repair.Options{}); got != "" && !strings.HasPrefix(text, got) {
			t.Fatalf("zstd, byte %d: %q", i, got)
		}
	}
}

// Any mix of the damages that files are known to have.
func TestRepairOfAnyDamage(t *testing.T) {
	lines := logText(5)
	rapid.Check(t, func(rt *rapid.T) {
		list := slices.Clone(lines)
		for range rapid.IntRange(1, 4).Draw(rt, "damages") {
			i := rapid.IntRange(0, len(list)-1).Draw(rt, "line")
			j := rapid.IntRange(0, len(list)-1).Draw(rt, "other line")
			at := rapid.IntRange(0, len(list[i])).Draw(rt, "byte")
			switch rapid.SampledFrom([]string{"drop", "repeat", "glue", "tear", "zeros", "junk", "swap", "closers"}).Draw(rt, "damage") {
			case "drop":
				list = slices.Delete(list, i, i+1)
			case "repeat":
				list = slices.Insert(list, j, list[i:min(i+3, len(list))]...)
			case "glue":
				if i+1 < len(list) {
					list[i] += list[i+1]
					list = slices.Delete(list, i+1, i+2)
				}
			case "tear":
				list[i] = list[i][:at]
			case "zeros":
				list[i] = list[i][:at] + strings.Repeat("\x00", 20) + list[i][at:]
			case "junk":
				list = slices.Insert(list, i, list[j][at%(len(list[j])+1):])
			case "swap":
				list[i], list[j] = list[j], list[i]
			case "closers":
				list = slices.Insert(list, i, ended(i, 1, "interrupted"), fmt.Sprintf(endSeed4, i+1))
			}
			if len(list) == 0 {
				return
			}
		}
		file := plain(list...)
		file = file[:len(file)-rapid.IntRange(0, 1).Draw(rt, "cut")]
		mended(t, file, wire.Plain, repair.Options{ID: rapid.SampledFrom([]string{"", "s1"}).Draw(rt, "id")})
		cut := rapid.IntRange(0, len(list)-1).Draw(rt, "frame")
		z, _ := frames(t, string(plain(list[:cut]...)), string(plain(list[cut:]...)))
		mended(t, z, wire.Zstd, repair.Options{})
	})
}

func FuzzRepair(f *testing.F) {
	f.Add(plain(logText(3)...), false)
	f.Add(plain(logText(3)[1:]...), false)
	f.Add([]byte(ownHeader+`{"type":"`+"\x00\x00"+`turn/start"}`), false)
	z, _ := frames(f, ownHeader+"\n", note(0)+"\n", note(2)+"\n")
	f.Add(z, true)
	f.Add(append(z[:len(z)-9], z...), true)
	f.Add(plain(ownHeader, `{"type":"compaction/start","seq":0,"time":1,"data":{"compactionId":"c","turn":null}}`, fmt.Sprintf(endSeed4, 0)), false)
	f.Fuzz(func(t *testing.T, file []byte, compressed bool) {
		enc := wire.Plain
		if compressed {
			enc = wire.Zstd
		}
		mended(t, file, enc, repair.Options{ID: "s"})
	})
}
