package edit

import (
	"slices"
	"strings"

	"github.com/outcrop-dev/outcrop/internal/jsonwire"
)

const (
	// MaxHistory is how many entries are kept.
	MaxHistory = 1000
	// maxEntry is the longest text that is kept as an entry, in bytes.
	maxEntry = 64 << 10
)

// History is what was sent before, oldest first.
type History struct {
	entries []string
	at      int    // the entry that is shown; len(entries): none
	draft   string // what was typed before the first one was shown
}

// Add appends an entry. White space alone, what is very long, and what is the
// same as the last entry is not kept. It reports whether it was.
func (h *History) Add(s string) bool {
	defer func() { h.at = len(h.entries) }()
	if !Keeps(s) || len(h.entries) > 0 && h.entries[len(h.entries)-1] == s {
		return false
	}
	h.entries = append(h.entries, s)
	if n := len(h.entries) - MaxHistory; n > 0 {
		h.entries = slices.Delete(h.entries, 0, n)
	}
	return true
}

// Keeps reports whether a text is kept as an entry.
func Keeps(s string) bool { return strings.TrimSpace(s) != "" && len(s) <= maxEntry }

// Older is the entry before the one that is shown. now is the text that it takes
// the place of.
func (h *History) Older(now string) (string, bool) {
	if h.at == 0 {
		return "", false
	}
	if h.at == len(h.entries) {
		h.draft = now
	}
	h.at--
	return h.entries[h.at], true
}

// Newer is the entry after the one that is shown; behind the last one what was
// being typed.
func (h *History) Newer() (string, bool) {
	if h.at == len(h.entries) {
		return "", false
	}
	h.at++
	if h.at == len(h.entries) {
		return h.draft, true
	}
	return h.entries[h.at], true
}

// Entry is one entry as a line of a history file: a JSON string and a newline.
func Entry(s string) []byte { return append(jsonwire.AppendString(nil, s), '\n') }

// Load takes the lines of a history file; what is no entry is passed over. It
// reports how many lines there were, so that a long file can be cut.
func (h *History) Load(file []byte) (lines int) {
	for l := range strings.Lines(string(file)) {
		lines++
		l = strings.TrimSpace(l)
		if jsonwire.Valid([]byte(l)) != nil {
			continue
		}
		if s, ok := jsonwire.Text([]byte(l)); ok {
			h.Add(s)
		}
	}
	return lines
}

// Entries is everything, oldest first.
func (h *History) Entries() []string { return h.entries }
