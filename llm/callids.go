package llm

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
)

// MaxCallID is the longest id of a call, in bytes, that a checked request
// holds: what the strictest provider takes.
const MaxCallID = 40

// callIDs are the ids of calls that a request has used.
type callIDs map[string]bool

// take returns the id to send for the next call, which the log calls id: the
// same when it is acceptable and free, else one made from where the call stands
// in the log. So an id depends on the log alone, and a request that grew keeps
// the ids of its beginning.
func (used callIDs) take(id string, seq int64, index int) string {
	if !isCallID(id) || used[id] {
		id = placeID(seq, index, 0)
		for n := 1; used[id]; n++ { // a model that writes such an id itself
			id = placeID(seq, index, n)
		}
	}
	used[id] = true
	return id
}

func placeID(seq int64, index, again int) string {
	text := strconv.FormatInt(seq, 10) + ":" + strconv.Itoa(index)
	if again > 0 {
		text += ":" + strconv.Itoa(again)
	}
	sum := sha256.Sum256([]byte(text))
	return "c_" + hex.EncodeToString(sum[:10])
}

// isCallID reports whether s matches ^[A-Za-z0-9_-]{1,40}$.
func isCallID(s string) bool { return len(s) <= MaxCallID && isName(s) }

// isName reports whether s matches ^[A-Za-z0-9_-]{1,64}$, the rule for names of
// tools.
func isName(s string) bool {
	if s == "" || len(s) > 64 {
		return false
	}
	for i := range len(s) {
		if !isNameByte(s[i]) {
			return false
		}
	}
	return true
}

func isNameByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-'
}

// toolName makes the name in a past call acceptable; the call may be one that
// was refused because no tool has that name.
func toolName(name string) string {
	if isName(name) {
		return name
	}
	if name == "" {
		return "unnamed"
	}
	b := []byte(name)
	for i := range b {
		if !isNameByte(b[i]) {
			b[i] = '_'
		}
	}
	if len(b) > 64 {
		sum := sha256.Sum256([]byte(name))
		b = append(b[:55], '_')
		b = hex.AppendEncode(b, sum[:4])
	}
	return string(b)
}
