package llm

import (
	"fmt"
	"strings"
	"testing"

	"github.com/outcrop-dev/outcrop/message"
)

// The floor is one look at every byte of text, which Check and an encoder need
// too: Build must not cost much more than Check.
func BenchmarkBuildAndCheck(b *testing.B) {
	var all []message.Message
	for i := range 5000 {
		id := fmt.Sprintf("call_%d", i)
		all = append(all, asks("go on"), says(message.Text("Reading it."), calls(id)), gives(id, strings.Repeat("a line of text\n", 40)))
	}
	out := Build(all)
	b.Run("build", func(b *testing.B) {
		for b.Loop() {
			Build(all)
		}
	})
	b.Run("grown by a step", func(b *testing.B) {
		var builder Builder
		var checker Checker
		grown := append([]message.Message(nil), all...)
		checker.Check(Request{Messages: builder.Build(grown)})
		for b.Loop() {
			grown = append(grown, asks("go on"))
			if err := checker.Check(Request{Messages: builder.Build(grown)}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("check", func(b *testing.B) {
		for b.Loop() {
			if err := Check(Request{Messages: out}); err != nil {
				b.Fatal(err)
			}
		}
	})
}
