package mcp

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

const (
	namePrefix = "mcp__"
	maxName    = 64 // characters that every provider takes
	hashDigits = 8
)

// origin is where a tool comes from. It is one tool's own in a set.
type origin struct{ server, tool string }

// mapNames gives each origin a name of its own that every provider takes. Names
// depend on which origins there are, not on their order.
func mapNames(all []origin) map[origin]string {
	count := map[string]int{}
	out := make(map[origin]string, len(all))
	for _, o := range all {
		if _, twice := out[o]; twice {
			continue
		}
		name := namePrefix + plain(o.server) + "__" + plain(o.tool)
		if len(name) > maxName {
			name = o.hashed(name)
		}
		out[o] = name
		count[name]++
	}
	for o, name := range out {
		if count[name] > 1 {
			out[o] = o.hashed(name)
		}
	}
	return out
}

// plain writes every character that a name cannot have as _.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '_':
			return r
		}
		return '_'
	}, s)
}

// hashed is a name with the digest of its origin at its end.
func (o origin) hashed(name string) string {
	sum := sha256.Sum256([]byte(o.server + "\x00" + o.tool))
	if keep := maxName - 1 - hashDigits; len(name) > keep {
		name = name[:keep]
	}
	return name + "_" + hex.EncodeToString(sum[:])[:hashDigits]
}
