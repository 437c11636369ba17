package agent

import (
	"fmt"

	"github.com/outcrop-dev/outcrop/message"
)

// noName stands for the name of a call that came without one.
const noName = "unnamed"

// uniqueCalls gives each call of a reply an id of its own: providers repeat
// ids, and leave them out, but a result finds its call by id. An id is changed
// only when it is empty or was there before; the chunks keep what came. It
// returns all blocks, and the calls among them.
func uniqueCalls(turn, step int, blocks []message.Block) (all, calls []message.Block) {
	taken := map[string]bool{}
	for _, b := range blocks {
		if b.Type == message.ToolCallBlock {
			taken[b.ID] = true
		}
	}
	seen := map[string]bool{}
	n := 0
	for i := range blocks {
		b := &blocks[i]
		if b.Type != message.ToolCallBlock {
			continue
		}
		n++
		id, name := b.ID, b.Name
		if name == "" {
			name = noName
		}
		if id == "" || seen[id] {
			id = fmt.Sprintf("call_%d_%d_%d", turn, step, n)
			for k := 2; taken[id]; k++ {
				id = fmt.Sprintf("call_%d_%d_%d_%d", turn, step, n, k)
			}
			taken[id] = true
		}
		seen[id] = true
		if id != b.ID || name != b.Name {
			*b = message.ToolCall(id, name, b.Arguments)
		}
		calls = append(calls, *b)
	}
	return blocks, calls
}
