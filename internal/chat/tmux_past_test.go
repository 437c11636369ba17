package chat_test

import (
	"strings"
	"testing"
)

// What was said is condensed, taken back and said again, all in one
// conversation.
func TestTmuxThePastIsEdited(t *testing.T) {
	long := strings.Repeat("The ridge is folded twice. ", 120)
	p := newPane(t, 90, 40, `{"script":1,"model":"m","piece":4000,"window":8000,"maxOutput":500}`,
		`{"text":"`+long+`First."}`, `{"text":"`+long+`Second."}`, `{"text":"Third answer."}`, `{"text":"Another third."}`, `{"text":"Third in other words."}`,
		`{"when":{"purpose":"compaction"},"text":"They spoke of a ridge."}`)
	p.start("")
	p.line("first")
	p.idle("First.")
	p.line("second")
	p.idle("Second.")
	p.line("third")
	p.idle("Third answer.")

	p.line("/prune")
	p.sees("nothing to do")
	p.line("/compact")
	p.sees("compact nodes", "the next request has")
	p.line("/surface")
	p.sees("checkpoint An earlier part")
	p.line("/retry")
	p.sees("taken back: 2 messages", "Another third.")
	p.line("/edit What is third?")
	p.sees("Third in other words.")
	p.line("/rewind 0")
	p.sees("taken back: 5 messages")
	p.line("/rewind nowhere")
	p.sees(`"nowhere" is no seq`)
	p.keys("C-u")
	p.line("/pin")
	p.sees("nothing is pinned")
	p.keys("C-d")
	p.sees("left with 0")
}
