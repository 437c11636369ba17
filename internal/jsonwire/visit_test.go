package jsonwire

import (
	"fmt"
	"strings"
	"testing"
)

// FuzzVisitSeesWhatMembersSee: a walk that goes into every value yields what
// the spans of Members and Elements hold, and ends where the value does.
func FuzzVisitSeesWhatMembersSee(f *testing.F) {
	for _, s := range []string{`{}`, `[]`, ` { "a" : 1 , "b" : [ 1, {"c":"\"x\\"}, [] ] } `, `{"a":{"a":{}}}`, `"s"`, `[1,[2,[3]],"é\n"]`, `{"\u0061":"A\u0041\ud83d\ude00"}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var visited func(at int, out *strings.Builder) int
		visited = func(at int, out *strings.Builder) int {
			switch Kind(b[min(at, len(b)):]) {
			case '{':
				return Visit(b, at, func(key []byte, at int) int {
					fmt.Fprintf(out, "%q:", key)
					return visited(at, out)
				})
			case '[':
				return VisitElements(b, at, func(at int) int {
					out.WriteString("[")
					return visited(at, out)
				})
			}
			if s, end, ok := TextAt(b, at); ok {
				fmt.Fprintf(out, "%q", s)
				return end
			}
			return 0
		}
		var spans func(v []byte, out *strings.Builder)
		spans = func(v []byte, out *strings.Builder) {
			switch Kind(v) {
			case '{':
				for k, m := range Members(v) {
					fmt.Fprintf(out, "%q:", k)
					spans(m, out)
				}
			case '[':
				for e := range Elements(v) {
					out.WriteString("[")
					spans(e, out)
				}
			default:
				if s, ok := Text(v); ok {
					fmt.Fprintf(out, "%q", s)
				}
			}
		}
		if len(b) > 1<<16 {
			return
		}
		valid := Valid(b) == nil
		var members, told strings.Builder
		if err := Object(b, func(k, v []byte, at int) { fmt.Fprintf(&told, "%q:%q", k, b[at:at+len(v)]) }); (err == nil) != (valid && Kind(b) == '{') {
			t.Errorf("%q: Object says %v, valid is %v", b, err, valid)
		} else if err == nil {
			for k, v := range Members(b) {
				fmt.Fprintf(&members, "%q:%q", k, v)
			}
			if members.String() != told.String() {
				t.Errorf("%q: Object told %s, members are %s", b, &told, &members)
			}
		}
		if !valid {
			Visit(b, 0, func([]byte, int) int { return 0 }) // must come to an end
			VisitElements(b, 0, func(int) int { return 0 })
			return
		}
		if strings.Count(string(b), "[")+strings.Count(string(b), "{") > 500 {
			return // the walks of this test go as deep as the text
		}
		var got, want strings.Builder
		start := Space(b, 0)
		end := visited(start, &got)
		spans(b, &want)
		if got.String() != want.String() {
			t.Errorf("%q: visited %s, spans are %s", b, &got, &want)
		}
		if k := Kind(b); (k == '{' || k == '[') && end != Skip(b, 0) {
			t.Errorf("%q: the walk ends at %d, the value at %d", b, end, Skip(b, 0))
		}
	})
}
