package requests

import (
	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/llm/script"
	"github.com/outcrop-dev/outcrop/message"
)

// Finished finds the finished attempts at calls of one model in a log. An
// attempt is finished when its reply ended, well or not, or was cancelled; one
// that a crash cut off is not.
func Finished(log outcrop.Log, provider, model string) []script.Attempt {
	var done []script.Attempt
	var now *script.Attempt // the attempt whose end is not seen yet
	ours := false           // the request header in force names this model
	finish := func(code string) {
		if now != nil {
			now.Code = code
			done = append(done, *now)
			now = nil
		}
	}
	for rec := range log.Records(0) {
		if rec.Run != nil {
			continue
		}
		ev := rec.Event
		switch ev.Type {
		case outcrop.TypeRequestHeader:
			cfg := jsonwire.Get(jsonwire.Get(ev.Data, "header"), "config")
			ours = jsonwire.TextIs(jsonwire.Get(cfg, "provider"), provider) && jsonwire.TextIs(jsonwire.Get(cfg, "model"), model)
		case outcrop.TypeOutcropRequest:
			now = nil
			if ours {
				purpose, _ := jsonwire.Text(jsonwire.Get(ev.Data, "purpose"))
				now = &script.Attempt{
					Turn: number(ev.Data, "turn"), Step: number(ev.Data, "step"),
					Attempt: number(ev.Data, "attempt"), Purpose: llm.Purpose(purpose),
				}
			}
		case outcrop.TypeAssistantChunk:
			if now == nil {
				continue
			}
			c, err := message.ParseChunk(jsonwire.Get(ev.Data, "chunk"))
			if err == nil && c.Type == message.FinishChunk && c.Reason != nil {
				code := ""
				if c.Reason.Failure != nil {
					code = c.Reason.Failure.Code
				}
				finish(code)
			}
		case outcrop.TypeAssistantMessage:
			finish("")
		case outcrop.TypeTurnEnd:
			if jsonwire.TextIs(jsonwire.Get(jsonwire.Get(ev.Data, "reason"), "kind"), string(outcrop.TurnInterrupted)) {
				now = nil
			} else {
				finish(message.CodeAborted)
			}
		}
	}
	return done
}

// number is a whole number in the data of an event, 0 when there is none.
func number(data []byte, name string) int {
	n, _ := jsonwire.Int(jsonwire.Get(data, name))
	return int(n)
}
