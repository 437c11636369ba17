package anthropic

import (
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/llm/internal/endpoint"
	"github.com/outcrop-dev/outcrop/message"
)

const (
	// saneOutput is max_tokens for a model of which nothing is known: every
	// model gives that much.
	saneOutput = 8192
	// minBudget is the least that the API takes.
	minBudget = 1024
)

// budgets are what efforts mean, in tokens.
var budgets = map[string]int64{
	"": 0, "none": 0, "off": 0,
	"minimal": 1024, "low": 4096, "medium": 8192, "high": 16384, "xhigh": 32768, "max": 32768,
}

func knownEffort(effort string) bool {
	_, ok := budgets[effort]
	return ok
}

// limits are max_tokens, and what of them is for thinking; 0: no thinking.
func (p *Provider) limits(req *llm.Request) (limit, budget int64) {
	budget = budgets[req.Config.ReasoningEffort]
	if limit = req.Config.MaxTokens; limit <= 0 {
		limit = p.maxOutput[req.Config.Model]
	}
	bound := limit > 0
	if !bound {
		limit = saneOutput + budget
	}
	if req.MaxOutput > 0 && req.MaxOutput < limit {
		limit, bound = req.MaxOutput, true
	}
	if bound {
		budget = min(budget, limit/2)
	}
	if budget < minBudget {
		budget = 0
	}
	return limit, budget
}

// appendThinking appends the thinking that a message begins with, or nothing
// when some of it cannot be sent back as it came.
func appendThinking(dst []byte, m *message.Message, of settings) []byte {
	s := &m.Source
	if s.Provider != of.provider || s.Model != of.model || string(jsonwire.Get(s.ReplayState, "anthropic")) != "1" {
		return nil
	}
	var states [][]byte
	for v := range jsonwire.Elements(jsonwire.Get(s.ReplayState, "blocks")) {
		states = append(states, v)
	}
	if len(states) != len(m.Content) {
		return nil
	}
	for i := range m.Content {
		b := &m.Content[i]
		if b.Type != message.ReasoningBlock {
			break
		}
		if i > 0 {
			dst = append(dst, ',')
		}
		if data := endpoint.Member(states[i], "redacted"); data != "" && b.Text == "" {
			dst = append(dst, `{"type":"redacted_thinking"`...)
			dst = append(jsonwire.AppendStringMember(dst, "data", data), '}')
			continue
		}
		signature := endpoint.Member(states[i], "signature")
		if signature == "" || blank(b.Text) {
			return nil
		}
		dst = append(dst, `{"type":"thinking"`...)
		dst = jsonwire.AppendStringMember(dst, "thinking", b.Text)
		dst = append(jsonwire.AppendStringMember(dst, "signature", signature), '}')
	}
	return dst
}

// replayState is what must be kept of a reply so that its thinking can be sent
// back; nil when it has none.
func replayState(blocks []*block) []byte {
	found := false
	dst := []byte(`{"anthropic":1,"blocks":[`)
	for i, b := range blocks {
		if i > 0 {
			dst = append(dst, ',')
		}
		switch {
		case b.redacted != "":
			dst = append(jsonwire.AppendStringMember(append(dst, '{'), "redacted", b.redacted), '}')
		case b.signature.Len() > 0:
			dst = append(jsonwire.AppendStringMember(append(dst, '{'), "signature", b.signature.String()), '}')
		default:
			dst = append(dst, "null"...)
			continue
		}
		found = true
	}
	if !found {
		return nil
	}
	return append(dst, "]}"...)
}
