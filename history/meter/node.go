package meter

import (
	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/history/cut"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/message"
)

// Kind says what a node is to history operations.
type Kind uint8

const (
	Other      Kind = iota
	Prompt          // what a person wrote
	Reply           // from the model
	Result          // of a tool
	Context         // what the program says about the environment
	Checkpoint      // a summary that stands for a range
)

// Node is what is known about one node of the surface. It does not change.
type Node struct {
	Seq     outcrop.Seq
	Tokens  int64 // its price; 0 when it derives to nothing
	Kind    Kind
	Media   int64    // the part of Tokens that is images and the like
	Points  int      // code points of a result's text
	Failed  bool     // a result that is an error
	Level   int      // of a checkpoint, from 1
	Name    string   // of a context
	Calls   []string // ids of a reply's calls
	Answers string   // id that a result answers
}

// price counts content without what surrounds the message.
func price(c Counter, blocks []message.Block) (all, media int64) {
	for i := range blocks {
		b := &blocks[i]
		switch b.Type {
		case message.TextBlock, message.ReasoningBlock:
			all += c.Text(b.Text) + perBlock
		case message.ToolCallBlock:
			all += c.Text(b.Name) + c.Text(b.Arguments) + perBlock
		case message.ToolResultBlock:
			in, m := price(c, b.Content)
			all, media = all+in+perBlock, media+m
		default:
			n := c.Text(string(b.AppendJSON(nil))) + perBlock
			all, media = all+n, media+n
		}
	}
	return all, media
}

// read makes the node of an event.
func (m *Meter) read(log outcrop.Log, seq outcrop.Seq) *Node {
	ev := log.At(seq)
	n := &Node{Seq: seq}
	raw := []byte(ev.Data)
	if ev.Type == outcrop.TypeAssistantMessage || ev.Type == outcrop.TypeToolResult {
		raw = jsonwire.Get(raw, "message")
	}
	blocks, err := message.ParseBlocks(jsonwire.Get(raw, "content"))
	if err != nil || len(blocks) == 0 {
		return n
	}
	n.Tokens, n.Media = price(m.counter, blocks)
	n.Tokens += perMessage
	switch ev.Type {
	case outcrop.TypeAssistantMessage:
		n.Kind = Reply
		for i := range blocks {
			if blocks[i].Type == message.ToolCallBlock {
				n.Calls = append(n.Calls, blocks[i].ID)
			}
		}
	case outcrop.TypeToolResult:
		n.Kind = Result
		if b := &blocks[0]; b.Type == message.ToolResultBlock {
			n.Answers, n.Failed, n.Points = b.ToolCallID, b.IsError, cut.Points(b.Content)
		}
	default:
		source := jsonwire.Get(raw, "source")
		switch kind, _ := jsonwire.Text(jsonwire.Get(source, "kind")); {
		case kind == message.FromUser.Kind:
			n.Kind = Prompt
		case IsCheckpoint(source):
			n.Kind, n.Level = Checkpoint, level(log, &ev)
		default:
			if n.Name = contextName(source); n.Name != "" {
				n.Kind = Context
			}
		}
	}
	return n
}

// IsCheckpoint reports whether a message with this source is a checkpoint, ours
// or dsh's.
func IsCheckpoint(source []byte) bool {
	return jsonwire.TextIs(jsonwire.Get(source, "kind"), "plugin") && jsonwire.TextIs(jsonwire.Get(source, "plugin"), "compact")
}

// level is the height of a checkpoint, which its summary says; 1 when it does
// not.
func level(log outcrop.Log, ev *outcrop.Event) int {
	looked := 0
	for src := range ev.Sources.All() {
		if looked++; looked > 2 || src < 0 || src >= ev.Seq {
			break
		}
		if from := log.At(src); from.Type == outcrop.TypeCompactionSummary {
			if n, ok := jsonwire.Int(jsonwire.Get(from.Data, "level")); ok && n > 0 && n < 1<<20 {
				return int(n)
			}
		}
	}
	return 1
}

// contextName is the name of a context from its message's source, in the form
// of own sessions and in the one of sessions that dsh reads; "" for other
// messages. A plugin of dsh names its contexts by itself and the form.
func contextName(source []byte) string {
	kind := jsonwire.Get(source, "kind")
	form, _ := jsonwire.Text(jsonwire.Get(source, "form"))
	switch {
	case jsonwire.TextIs(kind, "outcrop"):
		return form
	case jsonwire.TextIs(kind, "agent-instructions"):
		return "agent-instructions"
	case jsonwire.TextIs(kind, "plugin") && form == "snapshot":
		plugin, _ := jsonwire.Text(jsonwire.Get(source, "plugin"))
		name, _ := jsonwire.Text(jsonwire.Get(source, "summary"))
		if plugin == "outcrop" {
			return name
		}
		return plugin + ":" + name
	}
	return ""
}
