package wire

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/outcrop-dev/outcrop/internal/jsonwire"
)

// firstTwice finds the first name that an object has twice by looking at each
// object by itself.
func firstTwice(v []byte) (string, bool) {
	seen := map[string]bool{}
	for k, m := range jsonwire.Members(v) {
		name := jsonwire.Key(k)
		if seen[name] {
			return name, true
		}
		seen[name] = true
		if name, twice := firstTwice(m); twice {
			return name, true
		}
	}
	for e := range jsonwire.Elements(v) {
		if name, twice := firstTwice(e); twice {
			return name, true
		}
	}
	return "", false
}

func sameOddities(t interface{ Fatalf(string, ...any) }, line []byte, got *oddities) {
	name, twice := firstTwice(line)
	number := jsonwire.Lossless(line)
	want := oddities{notUTF8: !utf8.Valid(line), twice: twice, name: name, number: number}
	if got == nil {
		got = &oddities{}
	}
	say := func(o *oddities) string { return fmt.Sprint(o.notUTF8, o.twice, o.name, " ", o.number) }
	if say(got) != say(&want) {
		t.Fatalf("%q: %s, want %s", line, say(got), say(&want))
	}
}

// One pass finds what looking for each kind of oddity by itself finds.
func TestOnePassFindsEachOddity(t *testing.T) {
	name := rapid.SampledFrom([]string{`"a"`, `"b"`, `"\u0061"`, `"a\\"`, `"a name of some length"`, `"sixteen bytes, 16"`, `"fifteen bytes.."`, `"é"`, "\"\xff\"", `""`, `"\""`})
	scalar := rapid.OneOf(name, rapid.SampledFrom([]string{"0", "-0", "-0.0", "-1", "12345678901234567890", "1e999", "1.5", "-0e5", "0e0", "1E+2", "123456789012345", "1234567890123456", "true", "false", "null"}))
	space := rapid.SampledFrom([]string{"", "", "", " ", "\t", "\r"})
	var value func(depth int) *rapid.Generator[string]
	value = func(depth int) *rapid.Generator[string] {
		if depth == 0 {
			return scalar
		}
		return rapid.Custom(func(t *rapid.T) string {
			s := func() string { return space.Draw(t, "space") }
			n := rapid.IntRange(0, 20).Draw(t, "n")
			var parts []string
			switch rapid.SampledFrom([]string{"scalar", "array", "object"}).Draw(t, "kind") {
			case "array":
				for range n {
					parts = append(parts, s()+value(depth-1).Draw(t, "element")+s())
				}
				return "[" + strings.Join(parts, ",") + "]"
			case "object":
				for i := range n {
					k := fmt.Sprintf(`"k%d"`, i)
					if rapid.IntRange(0, 9).Draw(t, "usual") == 0 {
						k = name.Draw(t, "name")
					}
					parts = append(parts, s()+k+s()+":"+s()+value(depth-1).Draw(t, "member")+s())
				}
				return "{" + strings.Join(parts, ",") + "}"
			}
			return scalar.Draw(t, "scalar")
		})
	}
	var l lookout
	rapid.Check(t, func(t *rapid.T) {
		line := []byte(value(3).Draw(t, "line"))
		if err := jsonwire.Valid(line); err != nil {
			t.Fatal(err)
		}
		sameOddities(t, line, l.into(line, false))
	})
}

// FuzzOddities looks into whole lines, rows among them, as Records does.
func FuzzOddities(f *testing.F) {
	for _, s := range []string{
		`{"type":"text-chunks","seq0":1,"time0":-0,"data":{"turn":2,"step":1,"index":0,"dt":[2,-0],"texts":["Go"," is","é"]}}`,
		`{"type":"text-chunks","seq0":1,"time0":5,"data":{"turn":2,"step":1,"index":0,"dt":[-2],"texts":["a","\u00e9"]}}`,
		`{"type":"turn/start","seq":0,"time":1,"data":{"turn":1,"turn":-0}}`,
		"{\"type\":\"x\",\"seq\":0,\"time\":1e999,\"data\":\"\xff\"}",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		var d decoded
		if d.decode(line, false); d.what != isRecord {
			return
		}
		var l lookout
		sameOddities(t, line, d.look(&l, line))
	})
}

func TestValidUTF8IsThatOfTheStandardLibrary(t *testing.T) {
	part := rapid.SampledFrom([]string{"a", "twelve bytes", "é", "日本", "\xff", "\xe6\x97", "\xed\xa0\x80", "\xf0\x9f\x92\xa9", "\u2028", "\xc0\x80"})
	rapid.Check(t, func(t *rapid.T) {
		b := []byte(strings.Join(rapid.SliceOf(part).Draw(t, "parts"), ""))
		if got := validUTF8(b); got != utf8.Valid(b) {
			t.Fatalf("%q: %v", b, got)
		}
	})
}
