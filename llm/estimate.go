package llm

import (
	"strconv"
	"unicode/utf8"

	"github.com/outcrop-dev/outcrop/message"
)

// The estimate is a fixed rule, so that every part of the program gives a
// message the same price: a quarter of a token a code point, rounded up, and 4
// a block and 4 a message for what surrounds them. It is used where a provider
// did not count, never instead of its figures.
const (
	pointsPerToken = 4
	tokensPerBlock = 4
	tokensPerMsg   = 4
)

// EstimateTokens is the estimate for one message, in tokens. It depends on the
// content alone, so it can be kept as long as the message. A message without
// content is not sent and costs nothing.
func EstimateTokens(m message.Message) int64 {
	if len(m.Content) == 0 {
		return 0
	}
	return tokensPerMsg + EstimateBlocks(m.Content)
}

// EstimateBlocks is the estimate for content that is not a message yet.
func EstimateBlocks(blocks []message.Block) int64 {
	var n int64
	for i := range blocks {
		b := &blocks[i]
		switch b.Type {
		case message.TextBlock, message.ReasoningBlock:
			n += EstimateText(b.Text)
		case message.ToolCallBlock:
			n += quarter(b.Name) + quarter(b.Arguments) + tokensPerBlock
		case message.ToolResultBlock:
			n += EstimateBlocks(b.Content) + tokensPerBlock
		default:
			n += EstimateText(string(b.AppendJSON(nil)))
		}
	}
	return n
}

// EstimateText is the estimate for one block of text.
func EstimateText(s string) int64 { return quarter(s) + tokensPerBlock }

// EstimateHeader is the estimate for what stands before the messages of each
// request; a part that is not there costs nothing.
func EstimateHeader(system string, tools []Tool) int64 {
	var n int64
	if system != "" {
		n += EstimateText(system)
	}
	if len(tools) > 0 {
		n += EstimateText(string(appendTools(nil, tools)))
	}
	return n
}

// EstimateRequest is the estimate for everything that a request sends.
func EstimateRequest(req Request) int64 {
	n := EstimateHeader(req.System, req.Tools)
	for i := range req.Messages {
		n += EstimateTokens(req.Messages[i])
	}
	return n
}

// OutputLimit is what a window leaves for a reply, in tokens, when the request
// before it is estimated at used tokens: the rest without a margin for errors
// of the estimate, a fiftieth of the window and at least 1,024. It is never less
// than that margin: whether a request that seems to fill its window truly does
// is for the server to say. 0, no limit, when the window is 0, unknown.
func OutputLimit(window, used int64) int64 {
	if window <= 0 {
		return 0
	}
	margin := max(1024, window/50)
	return max(margin, window-used-margin)
}

func quarter(s string) int64 {
	return (int64(utf8.RuneCountInString(s)) + pointsPerToken - 1) / pointsPerToken
}

// Thousands writes a number of tokens for people: 128,412.
func Thousands(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
