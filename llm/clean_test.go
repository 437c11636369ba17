package llm

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestClean(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"good text stays", "aé\U0001f600", "aé\U0001f600"},
		{"NUL", "a\x00b", "a\ufffdb"},
		{"an invalid byte", "a\xffb", "a\ufffdb"},
		{"a cut character", "a\xe6\x97", "a\ufffd\ufffd"},
		{"a lone high half", "a\xed\xa0\xbdb", "a\ufffdb"},
		{"a lone low half", "\xed\xb8\x80", "\ufffd"},
		{"halves in the wrong order", "\xed\xb8\x80\xed\xa0\xbd", "\ufffd\ufffd"},
		{"two halves are one character", "a\xed\xa0\xbd\xed\xb8\x80b", "a\U0001f600b"},
		{"a real replacement character stays", "\ufffd\x00", "\ufffd\ufffd"},
	}
	for _, tt := range tests {
		if got := Clean(tt.in); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		s := Clean(string(rapid.SliceOf(rapid.SampledFrom([]byte("a\x00\xed\xa0\xb8\x80\xff\xc3"))).Draw(t, "bytes")))
		if !utf8.ValidString(s) || strings.Contains(s, "\x00") || Clean(s) != s {
			t.Fatalf("%q is not clean", s)
		}
	})
}

func TestJoinerJoinsAcrossPieces(t *testing.T) {
	const high, low = "\xed\xa0\xbd", "\xed\xb8\x80"
	tests := []struct {
		name   string
		pieces []string
		want   string
	}{
		{"a pair in two pieces", []string{"a" + high, low + "b"}, "a\U0001f600b"},
		{"a pair in one piece", []string{high + low + high + low}, "\U0001f600\U0001f600"},
		{"a half that stays alone", []string{high, "a", low}, high + "a" + low},
		{"a half at the end", []string{"a" + high}, "a" + high},
		{"two first halves", []string{high, high, low}, high + "\U0001f600"},
		{"letters that begin like a half", []string{"\ud7ff", "\ud55c"}, "\ud7ff\ud55c"},
	}
	for _, tt := range tests {
		var j Joiner
		got := ""
		for _, p := range tt.pieces {
			got += j.Add(p)
		}
		if got += j.Rest(); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestCallIDsAreUsableAndUnique(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ids := make(callIDs)
		seen := map[string]bool{}
		for i := range rapid.IntRange(0, 30).Draw(t, "calls") {
			id := rapid.SampledFrom([]string{"", "c", "c_2", "c_3", strings.Repeat("x", 38), strings.Repeat("x", 39), strings.Repeat("x", 40), strings.Repeat("x", 64), "é", "a b"}).Draw(t, "id")
			sent := ids.take(id, int64(i/3), i%3)
			if !isCallID(sent) || seen[sent] {
				t.Fatalf("id %q became %q", id, sent)
			}
			if isCallID(id) && !seen[id] && sent != id {
				t.Fatalf("free id %q became %q", id, sent)
			}
			seen[sent] = true
		}
	})
}

func TestToolName(t *testing.T) {
	for in, want := range map[string]string{
		"read":                  "read",
		"":                      "unnamed",
		"a b.c":                 "a_b_c",
		strings.Repeat("n", 65): strings.Repeat("n", 55) + "_1e3fb6d5",
	} {
		if got := toolName(in); got != want || !isName(got) {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
}

func TestThousands(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 128412: "128,412", -1234567: "-1,234,567"} {
		if got := Thousands(n); got != want {
			t.Errorf("%d is %s, want %s", n, got, want)
		}
	}
}
