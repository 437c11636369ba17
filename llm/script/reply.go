package script

import (
	"fmt"
	"strings"
	"time"

	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/message"
)

// Reply is the answer to one model call. The zero value is an empty reply that
// ends in stop.
type Reply struct {
	Reasoning string
	Text      string
	Tools     []Call
	Blocks    []message.Block // instead of the three above
	Chunks    []message.Chunk // not nil, even if empty: instead of all of them, played as they are

	Finish message.FinishKind // "": tool-calls if there are calls, else stop
	Usage  *message.Usage     // nil: the estimate

	Error *message.Failure
	Cut   Cut
	After int // deltas before Error or Cut
	Delay time.Duration

	When   When
	Expect Expect
	Line   int // in the script file, from 1
}

// Call is one tool call of a reply.
type Call struct {
	ID        string // "": call_TURN_STEP_N
	Name      string
	Arguments string // as the model would write them; may be broken
}

// Cut says how the connection to the model breaks.
type Cut string

const (
	CutEOF   Cut = "eof"   // the stream ends without a finish
	CutReset Cut = "reset" // the connection is reset
	CutHang  Cut = "hang"  // nothing more comes until the call is cancelled
)

// When says which calls a reply is for; zero members fit every call, but an
// empty purpose is turn.
type When struct {
	Purpose  llm.Purpose
	Turn     int
	Step     int
	Attempt  int
	Contains string // text in the last message
}

func (w *When) placed() bool { return w.Turn != 0 || w.Step != 0 }

func (w *When) fits(a Attempt, contains func(string) bool) bool {
	purpose := w.Purpose
	if purpose == "" {
		purpose = llm.Turn
	}
	return purpose == a.Purpose &&
		(w.Turn == 0 || w.Turn == a.Turn) &&
		(w.Step == 0 || w.Step == a.Step) &&
		(w.Attempt == 0 || w.Attempt == a.Attempt) &&
		(w.Contains == "" || contains(w.Contains))
}

// Expect is what must hold of a request; zero members expect nothing.
type Expect struct {
	Contains string
	Absent   string
	Tools    []string // offered, among others; not nil and empty: none is
	Messages int
}

// check returns the failure SCRIPT_EXPECT at the first miss.
func (e *Expect) check(req llm.Request, where string) error {
	miss := ""
	switch {
	case e.Contains != "" && !requestContains(&req, e.Contains):
		miss = fmt.Sprintf("the request does not contain %q", e.Contains)
	case e.Absent != "" && requestContains(&req, e.Absent):
		miss = fmt.Sprintf("the request contains %q", e.Absent)
	case e.Messages != 0 && e.Messages != len(req.Messages):
		miss = fmt.Sprintf("the request has %d messages, not %d", len(req.Messages), e.Messages)
	case e.Tools != nil && len(e.Tools) == 0 && len(req.Tools) > 0:
		miss = fmt.Sprintf("the request offers tools: %s", toolNames(req.Tools))
	}
	for _, name := range e.Tools {
		if miss == "" && !offers(req.Tools, name) {
			miss = fmt.Sprintf("the request does not offer the tool %q (offered: %s)", name, toolNames(req.Tools))
		}
	}
	if miss == "" {
		return nil
	}
	return &message.Failure{Code: CodeExpect, Message: CodeExpect + " " + where + ": " + miss}
}

func offers(tools []llm.Tool, name string) bool {
	for i := range tools {
		if tools[i].Name == name {
			return true
		}
	}
	return false
}

func toolNames(tools []llm.Tool) string {
	if len(tools) == 0 {
		return "none"
	}
	names := make([]string, len(tools))
	for i := range tools {
		names[i] = tools[i].Name
	}
	return strings.Join(names, " ")
}

func requestContains(req *llm.Request, text string) bool {
	if strings.Contains(req.System, text) {
		return true
	}
	for i := range req.Messages {
		if messageContains(&req.Messages[i], text) {
			return true
		}
	}
	return false
}

func messageContains(m *message.Message, text string) bool { return blocksContain(m.Content, text) }

func blocksContain(blocks []message.Block, text string) bool {
	for i := range blocks {
		b := &blocks[i]
		if strings.Contains(b.Text, text) || strings.Contains(b.Arguments, text) || blocksContain(b.Content, text) {
			return true
		}
	}
	return false
}
