// Package dsh has the rules by which DeepSeek Harness measures, compacts and
// prunes: prices by a fixed heuristic, a range that always begins at the head
// of the surface, calls and results that are counted and not paired by id, and
// a marker without a place to look. They are kept exactly, so that a session
// can be treated as dsh would treat it; the engine's own rules are in package
// history.
//
// The package only computes. It appends nothing.
//
// # Prices
//
//	text, reasoning   ceil(length / 4) + 4
//	tool call         ceil(name / 4) + ceil(arguments / 4) + 4
//	tool result       its blocks + 4
//	any other block   ceil(JSON / 4) + 4
//	message           its blocks + 4; nothing without content
//	system prompt     ceil(length / 4) + 4
//	tools             ceil(JSON of the list / 4) + 4
//
// Lengths are in UTF-16 code units, JSON is without white space.
package dsh

import (
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/message"
)

const each = 4 // tokens around a block or a message

// Price is the price of a message.
func Price(m message.Message) int64 { return PriceContent(m.Content) }

// PriceContent is the price of a message with this content.
func PriceContent(blocks []message.Block) int64 {
	if len(blocks) == 0 {
		return 0
	}
	return priceBlocks(blocks) + each
}

func priceBlocks(blocks []message.Block) (n int64) {
	for i := range blocks {
		b := &blocks[i]
		switch b.Type {
		case message.TextBlock, message.ReasoningBlock:
			n += quarter(b.Text) + each
		case message.ToolCallBlock:
			n += quarter(b.Name) + quarter(b.Arguments) + each
		case message.ToolResultBlock:
			n += priceBlocks(b.Content) + each
		default:
			n += quarter(string(jsonwire.Compact(b.AppendJSON(nil)))) + each
		}
	}
	return n
}

// priceHeader is the price of what a request header puts before the messages.
func priceHeader(raw []byte) (n int64) {
	if system, ok := jsonwire.Text(jsonwire.Get(raw, "system")); ok && system != "" {
		n += quarter(system) + each
	}
	tools := jsonwire.Get(raw, "tools")
	for range jsonwire.Elements(tools) {
		return n + quarter(string(jsonwire.Compact(tools))) + each
	}
	return n
}

func quarter(s string) int64 {
	units := int64(0)
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c >= 0xF0:
			units += 2
		case c&0xC0 != 0x80:
			units++
		}
	}
	return (units + 3) / 4
}
