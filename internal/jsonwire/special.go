package jsonwire

// special bytes are those that do not stand for themselves inside a JSON string:
// '"', '\\' and the control characters below 0x20. Text that programs write has
// one of them every twenty bytes, so what decides how fast a string is passed over
// is not the search for the next one but how often a branch is guessed wrong.
// specials therefore finds those of 64 bytes at once, and who asks goes over the
// bits.

// escapes of the text of a string: how many bytes an escape takes by the byte
// behind its backslash, 0 for one that JSON does not have.
var escapeSize = [256]uint8{'"': 2, '\\': 2, '/': 2, 'b': 2, 'f': 2, 'n': 2, 'r': 2, 't': 2, 'u': 6}

// blockOf is the 64 bytes at offset i.
func blockOf(b []byte, i int) *[64]byte { return (*[64]byte)(b[i:]) }
