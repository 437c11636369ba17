package history

import (
	"fmt"
	"strings"

	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/message"
)

// verdict says why an answer of a summariser does not count.
type verdict struct {
	msg   string
	again bool // a stricter request may help
}

func (v *verdict) Error() string { return "the summariser's answer does not count: " + v.msg }

// read judges an answer and takes the text out of it. Reasoning is no part of
// a summary.
func (s *summarizer) read(asm *message.Assembler, extra []message.Message) ([]message.Block, error) {
	var text []message.Block
	for _, b := range asm.Blocks() {
		switch b.Type {
		case message.TextBlock:
			if t := strings.TrimSpace(llm.Clean(b.Text)); t != "" {
				text = append(text, message.Text(t))
			}
		case message.ReasoningBlock:
		case message.ToolCallBlock:
			return nil, &verdict{"it calls a tool", true}
		default:
			return nil, &verdict{fmt.Sprintf("it has a block of the type %q", string(b.Type)), false}
		}
	}
	switch f := asm.Finish(); {
	case f.Kind == message.ToolCalls:
		return nil, &verdict{"it calls a tool", true}
	case f.Kind == message.MaxTokens:
		return nil, &verdict{"it was cut at its limit", false}
	case f.Failure != nil:
		return nil, f.Failure
	case f.Kind == message.Aborted || f.Kind == message.Errored:
		return nil, &verdict{"it was broken off", false}
	case len(text) == 0:
		return nil, &verdict{"it is empty", true}
	}
	all := message.PlainText(text)
	if what := echoes(all, extra); what != "" {
		return nil, &verdict{"it repeats " + what, true}
	}
	if n := s.m.meter.Scale(s.m.meter.Count(message.Message{Content: text})); n > 2*s.most {
		return nil, &verdict{fmt.Sprintf("it has about %d tokens, %d were allowed", n, s.most), false}
	}
	return text, nil
}

// echoes finds in an answer what the program itself has written: the frame of
// a checkpoint, or a sentence of the instruction. In a checkpoint they would be
// read as orders.
func echoes(answer string, extra []message.Message) string {
	answer = squeeze(answer)
	if strings.Contains(answer, strings.TrimSuffix(checkpointOpen, ">")) || strings.Contains(answer, checkpointTail) ||
		strings.Contains(answer, squeeze(checkpointHead[:60])) {
		return "the frame of a checkpoint"
	}
	told := []string{askHow, askAgain, askJoin, askStart, askMerge}
	for _, text := range told {
		for _, sentence := range strings.FieldsFunc(text, func(r rune) bool { return r == '.' || r == '%' || r == ';' }) {
			if sentence = squeeze(sentence); len(sentence) >= 40 && strings.Contains(answer, sentence) {
				return "the instruction"
			}
		}
	}
	return ""
}

func squeeze(s string) string { return strings.Join(strings.Fields(s), " ") }
