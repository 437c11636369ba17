package replay

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"strconv"

	"github.com/outcrop-dev/outcrop/internal/requests"
	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/message"
)

// compare holds a request against the one that the log gives for an attempt.
func (m *Model) compare(a *Attempt, got llm.Request) error {
	rebuilt, err := requests.Rebuild(m.log, requests.Attempt{Turn: a.Turn, Step: a.Step, N: a.N, Prefix: a.Prefix})
	if err != nil {
		return fail(CodeDiffers, "turn %d step %d attempt %d: its request cannot be made from the recorded log: %v", a.Turn, a.Step, a.N, err)
	}
	want, err := rebuilt.Typed()
	if err != nil {
		return fail(CodeDiffers, "turn %d step %d attempt %d: its request cannot be made from the recorded log: %v", a.Turn, a.Step, a.N, err)
	}
	w, g := parts(want), parts(got)
	for i := range max(len(w), len(g)) {
		if i < len(w) && i < len(g) && bytes.Equal(w[i], g[i]) {
			continue
		}
		where := "header"
		if i > 0 {
			where = "messages[" + strconv.Itoa(i-1) + "]"
		}
		return fail(CodeDiffers, "turn %d step %d attempt %d: the request has digest %s, the recorded one %s; they differ from %s on",
			a.Turn, a.Step, a.N, digest(g), digest(w), where)
	}
	return nil
}

// parts is a request as the byte texts that count: the header, then each
// message with its calls named by the order in which they appear.
func parts(req llm.Request) [][]byte {
	out := [][]byte{llm.HeaderJSON(req.Config, req.System, req.Tools)}
	names := map[string]string{}
	for _, msg := range req.Messages {
		msg.Content = renamed(msg.Content, names)
		if id, ok := names[msg.Source.CallID]; ok && msg.Source.CallID != "" {
			msg.ID, msg.Source = "", message.FromTool(id)
		}
		out = append(out, msg.AppendJSON(nil))
	}
	return out
}

func renamed(blocks []message.Block, names map[string]string) []message.Block {
	out := make([]message.Block, len(blocks))
	for i, b := range blocks {
		switch b.Type {
		case message.ToolCallBlock:
			name := "call " + strconv.Itoa(len(names))
			names[b.ID] = name
			b = message.ToolCall(name, b.Name, b.Arguments)
		case message.ToolResultBlock:
			if name, ok := names[b.ToolCallID]; ok {
				b = message.ToolResult(name, b.IsError, b.Content...)
			}
		}
		out[i] = b
	}
	return out
}

func digest(parts [][]byte) string {
	h := sha256.New()
	for _, p := range parts {
		h.Write(p)
		h.Write([]byte{'\n'})
	}
	return hex.EncodeToString(h.Sum(nil)[:6])
}
