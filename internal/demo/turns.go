package demo

import (
	"strings"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/brief"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/internal/term"
	"github.com/outcrop-dev/outcrop/message"
)

// Turn is one turn of the demo.
type Turn struct {
	Prompt string
	Done   []Done // in the order in which it happened
}

// Done is one thing that a turn did: a call, or, where Answer is not empty, the
// last text.
type Done struct {
	Tool, What, Measure string
	Answer              string
}

// turns tells what happened in each turn, from the log.
func turns(log outcrop.Log) []Turn {
	var all []Turn
	now := func() *[]Done { return &all[len(all)-1].Done }
	calls := map[string]int{} // by call id: index in the turn
	for ev := range outcrop.Events(log, 0) {
		switch ev.Type {
		case outcrop.TypeTurnStart:
			t := Turn{}
			if len(all) < len(prompts) {
				t.Prompt = prompts[len(all)]
			}
			all = append(all, t)
			clear(calls)
		case outcrop.TypeToolCall:
			id, _ := jsonwire.Text(jsonwire.Get(ev.Data, "callId"))
			name, _ := jsonwire.Text(jsonwire.Get(ev.Data, "name"))
			args, _ := jsonwire.Text(jsonwire.Get(ev.Data, "arguments"))
			t := Done{Tool: name, What: brief.Call(args)}
			if content, ok := jsonwire.Text(jsonwire.Get([]byte(args), "content")); ok {
				t.Measure = term.Count(int64(len(content))) + " bytes"
			}
			calls[id] = len(*now())
			*now() = append(*now(), t)
		case outcrop.TypeToolResult:
			if !ev.Op.IsAppend() {
				continue
			}
			id, _ := jsonwire.Text(jsonwire.Get(jsonwire.Get(jsonwire.Get(ev.Data, "message"), "source"), "callId"))
			t := &(*now())[calls[id]]
			out := resultText(ev)
			switch {
			case t.Tool == "shell":
				n, _, _ := strings.Cut(strings.TrimSpace(out), " ")
				t.Measure = n + " lines"
			case t.Measure == "":
				t.Measure = term.Count(int64(len(out))) + " bytes"
			}
		case outcrop.TypeAssistantMessage:
			m, err := message.Parse(jsonwire.Get(ev.Data, "message"))
			if err != nil {
				continue
			}
			text := ""
			for _, b := range m.Content {
				switch b.Type {
				case message.TextBlock:
					text += b.Text
				case message.ToolCallBlock:
					text = ""
				}
			}
			if text != "" {
				*now() = append(*now(), Done{Answer: text})
			}
		}
	}
	return all
}
