package term

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestJSONForATerminalMeansTheSameAndMovesNothing(t *testing.T) {
	part := rapid.SampledFrom([]string{"a", "é", "日本", "\u009b31m", "\u202e", "\u200d", "\u2028", "\u007f", "\U000e0041", "\ufeff", `\n`, `\u001b`, `\"`, "\xc2", "\xff", "👩‍💻"})
	rapid.Check(t, func(t *rapid.T) {
		text := `{"` + strings.Join(rapid.SliceOf(part).Draw(t, "name"), "") + `":["` + strings.Join(rapid.SliceOf(part).Draw(t, "text"), "") + "\",\r\n\t1]}"
		var out bytes.Buffer
		w := &JSONWriter{W: &out}
		for rest := []byte(text); len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "n")
			if m, err := w.Write(rest[:n]); m != n || err != nil {
				t.Fatal(m, err)
			}
			rest = rest[n:]
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		var was, is any
		if err := json.Unmarshal([]byte(text), &was); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(out.Bytes(), &is); err != nil || !reflect.DeepEqual(was, is) {
			t.Fatalf("%q became %q, %v", text, out.Bytes(), err)
		}
		for _, r := range out.String() {
			if r != '\n' && r != '\t' && acts(r) {
				t.Fatalf("%q has %U", out.Bytes(), r)
			}
		}
	})
}

func TestACharacterThatNeverEndsIsShownAsLost(t *testing.T) {
	var out bytes.Buffer
	w := &JSONWriter{W: &out}
	w.Write([]byte("a\xe6\x97"))
	if w.Close(); out.String() != `a\ufffd` {
		t.Errorf("%q", out.String())
	}
}
