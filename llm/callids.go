package llm

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
)

// MaxCallID is the longest id of a call, in bytes, that a checked request
// holds. Some providers take less; their encoders map ids once more.
const MaxCallID = 64

// CallIDs gives the calls of one request ids that a provider accepts: letters,
// digits, _ and -, at most max bytes, each once. An id that is fine and free
// stays as it is. The result depends only on the ids taken so far, so that a
// request that grew keeps the ids of its beginning.
type CallIDs struct {
	max  int
	used map[string]bool
	next map[string]int // id -> number that its next copy tries first
}

// NewCallIDs starts a request; max is at least 40.
func NewCallIDs(max int) *CallIDs {
	return &CallIDs{max: max, used: make(map[string]bool), next: make(map[string]int)}
}

// Take returns the id to send for the next call, which the log calls id.
func (c *CallIDs) Take(id string) string {
	base := id
	if len(base) > c.max || !isName(base) {
		base = hashedID(id)
	}
	sent := base
	for n := max(c.next[base], 2); c.used[sent]; n++ {
		sent = base + "_" + strconv.Itoa(n)
		if len(sent) > c.max {
			sent = hashedID(base) + "_" + strconv.Itoa(n)
		}
		c.next[base] = n + 1
	}
	c.used[sent] = true
	return sent
}

func hashedID(id string) string {
	sum := sha256.Sum256([]byte(id))
	return "call_" + hex.EncodeToString(sum[:12])
}

// isName reports whether s matches ^[A-Za-z0-9_-]{1,64}$, the rule for ids of
// calls and for names of tools.
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
