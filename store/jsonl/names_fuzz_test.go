package jsonl

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzNames: any text is a name that a file system takes, and an id comes back
// out of its folder's name.
func FuzzNames(f *testing.F) {
	for _, s := range []string{"", "s1", "..", "~", "~D83D~DE00", "~12", "日本", "😀", "\xed\xa0\xbd", "\xff", "a\x00b", `C:\work`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		seg, key := EncodeSegment(s), ProjectKey(s)
		for _, name := range []string{seg, key} {
			if name == "." || name == ".." || strings.ContainsAny(name, "/\\\x00:") {
				t.Fatalf("%q gives the name %q", s, name)
			}
		}
		if len(key) > 255 || (key == "") != (s == "") || (seg == "") != (s == "") {
			t.Fatalf("%q gives the names %q and %q", s, seg, key)
		}
		if utf8.ValidString(s) {
			if got := decodeSegment(seg); got != s {
				t.Fatalf("%q comes back as %q", s, got)
			}
		}
		decodeSegment(s)
	})
}
