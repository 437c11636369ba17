package cli

import (
	"math"
	"runtime/debug"

	"github.com/outcrop-dev/outcrop/exchange"
)

// importRoom is how much memory an import takes, in bytes, before the collector
// works for less: a usual one never gets there. A line of 100 MB does, and what
// is left of it on its way into the log would double what is in use.
const importRoom = 256 << 20

// boundImport tells the collector about importRoom, until back is called. An index
// that grows with its source has its place above that. A limit that a person has
// set (GOMEMLIMIT) counts instead.
func boundImport(sources []exchange.Source) (back func()) {
	if debug.SetMemoryLimit(-1) != math.MaxInt64 {
		return func() {}
	}
	room := int64(importRoom)
	for _, s := range sources {
		room = max(room, importRoom+s.Size/4)
	}
	debug.SetMemoryLimit(room)
	return func() { debug.SetMemoryLimit(math.MaxInt64) }
}
