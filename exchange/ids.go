package exchange

import (
	"crypto/sha256"
	"encoding/hex"
)

// IDFor is the id of the session that a program calls source: that name itself
// where it can stand as an id and is long enough to be nobody else's, else one
// made from both names. The same names always give the same id.
func IDFor(program, source string) string {
	if len(source) >= 16 && len(source) <= 80 {
		plain := true
		for i := 0; i < len(source) && plain; i++ {
			c := source[i]
			letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
			plain = letter || i > 0 && (c == '-' || c == '_' || c == '.')
		}
		if plain {
			return source
		}
	}
	return DerivedID(program, source)
}

// DerivedID makes an id in the form of a UUID (version 8) from names.
func DerivedID(names ...string) string {
	h := sha256.New()
	for _, n := range names {
		h.Write([]byte(n))
		h.Write([]byte{0})
	}
	b := h.Sum(nil)[:16]
	b[6], b[8] = b[6]&0x0f|0x80, b[8]&0x3f|0x80
	t := hex.EncodeToString(b)
	return t[:8] + "-" + t[8:12] + "-" + t[12:16] + "-" + t[16:20] + "-" + t[20:]
}
