//go:build !amd64

package jsonwire

// specials has bit k set where byte k of b is special.
func specials(b *[64]byte) uint64 { return specialsByWord(b) }
