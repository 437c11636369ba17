package jsonwire

import "encoding/binary"

// specialsByWord is specials in eight words, for every processor.
func specialsByWord(b *[64]byte) (m uint64) {
	for k := 0; k < 64; k += 8 {
		w := binary.LittleEndian.Uint64(b[k:])
		q, s, c := w^ones*'"', w^ones*'\\', w&(ones*0xe0)
		// The high bit of each byte of these is clear where the byte is zero, and
		// nothing carries from one byte into the next.
		q, s, c = q&low7+low7|q, s&low7+low7|s, c&low7+low7|c
		m |= (^(q & s & c) & high1 >> 7 * 0x0102040810204080 >> 56) << k
	}
	return m
}
