package cli

import (
	"github.com/outcrop-dev/outcrop/exchange"
	"github.com/outcrop-dev/outcrop/exchange/arrays"
	"github.com/outcrop-dev/outcrop/exchange/claudecode"
	"github.com/outcrop-dev/outcrop/exchange/codex"
	"github.com/outcrop-dev/outcrop/exchange/dsh"
	"github.com/outcrop-dev/outcrop/exchange/opencode"
	"github.com/outcrop-dev/outcrop/exchange/portable"
)

// importFormats are the formats that import knows, in the order in which they
// are asked whether a file is theirs.
func importFormats() []exchange.Format {
	return []exchange.Format{
		claudecode.Format(),
		codex.Format(),
		opencode.Format(),
		dsh.Format(),
		portable.Format(),
		arrays.Anthropic.Format(),
		arrays.OpenAI.Format(),
	}
}
