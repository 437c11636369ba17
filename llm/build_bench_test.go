package llm

import (
	"fmt"
	"strings"
	"testing"

	"github.com/outcrop-dev/outcrop/message"
)

// session is a log of steps, three messages each.
func session(steps int) []Node {
	all := make([]Node, 0, 3*steps)
	for i := range steps {
		id := fmt.Sprintf("call_%d", i)
		for _, m := range []message.Message{asks("go on"), says(message.Text("Reading it."), calls(id)), gives(id, strings.Repeat("a line of text\n", 40))} {
			all = append(all, Node{Seq: int64(len(all)), Message: m})
		}
	}
	return all
}

// The floor is one look at every byte of text, which Check and an encoder need
// too: Build must not cost much more than Check. A session that grew by a step
// costs the same, however long it is.
func BenchmarkBuildAndCheck(b *testing.B) {
	all := session(5333)
	out := Build(all)
	b.Run("build", func(b *testing.B) {
		for b.Loop() {
			Build(all)
		}
	})
	b.Run("check", func(b *testing.B) {
		for b.Loop() {
			if err := Check(Request{Messages: out}); err != nil {
				b.Fatal(err)
			}
		}
	})
	for _, steps := range []int{53, 533, 5333} {
		b.Run(fmt.Sprintf("grown by a step at %d messages", 3*steps), func(b *testing.B) {
			var builder Builder
			var checker Checker
			grown := session(steps)
			checker.Check(Request{Messages: builder.Build(grown)})
			for b.Loop() {
				grown = append(grown, Node{Seq: int64(len(grown)), Message: asks("go on")})
				if err := checker.Check(Request{Messages: builder.Build(grown)}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
