package agent

import _ "embed"

// DefaultSystem is the system prompt for an agent with the usual tools. It is
// the same for every session: no date, id or path is in it, so that a provider
// can cache it; what changes comes as context.
//
//go:embed prompt.md
var DefaultSystem string
