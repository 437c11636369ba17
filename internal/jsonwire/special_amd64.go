package jsonwire

// specials has bit k set where byte k of b is special. It needs SSE2 alone, which
// every amd64 processor has.
//
//go:noescape
func specials(b *[64]byte) uint64
