package jsonwire_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/outcrop-dev/outcrop/internal/jsonwire"
)

// Skipping a valid string ends where reading it does, wherever the escapes are.
func TestAStringIsSkippedToItsEnd(t *testing.T) {
	part := rapid.OneOf(rapid.SampledFrom([]string{`\"`, `\\`, `\n`, `\u0041`, "a", "é", strings.Repeat("x", 30), strings.Repeat("y", 90)}),
		rapid.StringMatching(`[ -!#-\[\]-~]{0,200}`))
	rapid.Check(t, func(t *rapid.T) {
		b := []byte(`"` + strings.Join(rapid.SliceOf(part).Draw(t, "parts"), "") + `"` + rapid.SampledFrom([]string{"", `,"next"`, `"`, `\`}).Draw(t, "behind"))
		want, err := jsonwire.String(b, 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := jsonwire.Skip(b, 0); got != want {
			t.Fatalf("%q: skipped to %d, it ends at %d", b, got, want)
		}
		if got := jsonwire.Skip(b[:want-1], 0); got < want-1 {
			t.Fatalf("%q without its end: skipped to %d", b[:want-1], got)
		}
	})
}

// BenchmarkSkipString skips 1 MiB with an escape at every 100th byte: its time a
// byte must be that of the short one.
func BenchmarkSkipString(b *testing.B) {
	for _, n := range []int{10 << 10, 1 << 20} {
		text := []byte(`"` + strings.Repeat(strings.Repeat("x", 98)+`\n`, n/100) + `"`)
		b.Run(map[bool]string{true: "1MiB", false: "10KiB"}[n > 100<<10], func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				jsonwire.Skip(text, 0)
			}
		})
	}
}
