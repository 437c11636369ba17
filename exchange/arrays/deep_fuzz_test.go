package arrays

import (
	"testing"

	"github.com/outcrop-dev/outcrop/internal/jsonwire"
)

// FuzzShallow: what is left of JSON is JSON, with as many messages less as were
// told.
func FuzzShallow(f *testing.F) {
	for _, text := range []string{
		`[{"role":"user","content":[{"a":[1]}]},{"role":"user","content":"x"},7,[[[]]]]`,
		`{"messages":[{"role":"user","content":[{"a":[1]}]},{}],"x":{"messages":[[[1]]]},"y":"messages","z":[[[]]]}`,
		`{"messages":{"a":[[]]}}`, `{"messages":[[[[1]]]],"messages":[{},[[[1]]]]}`, `[`, `]`, `{"messages":[[[[[`, `"messages"`, ` [ [ [ [ ] ] , 1 ] , 2 ]`,
	} {
		f.Add([]byte(text), 3)
	}
	f.Fuzz(func(t *testing.T, text []byte, most int) {
		out, gone := shallow(text, most)
		if jsonwire.Valid(text) != nil {
			return
		}
		if err := jsonwire.Valid(out); err != nil {
			t.Fatalf("%s becomes %s: %v", text, out, err)
		}
		was, ok := bodyOf(text, nil)
		is, _ := bodyOf(out, gone.messages)
		if ok && len(is.messages)+len(gone.messages) != len(was.messages) {
			t.Fatalf("%s becomes %s: %v are gone of %d", text, out, gone.messages, len(was.messages))
		}
	})
}
