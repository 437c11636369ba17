package history

import (
	"context"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/llm"
)

// Scan is a Searcher that goes over the log. It finds messages of all kinds but
// these: copies that an edit made of a result, whose original is found, and
// what the history tools were asked and gave, which would find itself.
type Scan struct {
	Log  func() outcrop.Log
	From outcrop.Seq // the first event that is looked at
}

// Search implements Searcher.
func (s Scan) Search(ctx context.Context, q Query) (hits []Hit, more bool, err error) {
	want := terms(q.Text)
	log := s.Log()
	var found []Hit
	// Forward, because runs of chunks are passed over as one; the newest are kept.
	n := 0
	for rec := range log.Records(s.From) {
		if n++; n%1024 == 0 && ctx.Err() != nil {
			return nil, false, ctx.Err()
		}
		if rec.Run != nil || !q.Role.takes(rec.Type) {
			continue
		}
		snippet, ok := s.match(log, rec.Event, want)
		if !ok {
			continue
		}
		if len(found) == q.Limit && q.Limit > 0 {
			found, more = append(found[:0], found[1:]...), true
		}
		found = append(found, Hit{Seq: rec.Seq, Snippet: snippet})
	}
	for i := len(found) - 1; i >= 0; i-- {
		hits = append(hits, found[i])
	}
	return hits, more, nil
}

func (r Role) takes(t outcrop.Type) bool {
	switch t {
	case outcrop.TypeUserMessage, outcrop.TypeContextMessage:
		return r == "" || r == User
	case outcrop.TypeAssistantMessage:
		return r == "" || r == Assistant
	case outcrop.TypeToolResult:
		return r == "" || r == Result
	}
	return false
}

// match looks for all terms in one event.
func (s Scan) match(log outcrop.Log, ev outcrop.Event, want []string) (snippet string, ok bool) {
	if ev.Type == outcrop.TypeToolResult {
		if _, _, copied := ev.Op.Range(); copied || ours(callName(log, ev)) {
			return "", false
		}
	}
	m, ok := messageOf(ev)
	if !ok {
		return "", false
	}
	blocks := m.Content[:0:0]
	for _, b := range m.Content {
		if !ours(b.Name) {
			blocks = append(blocks, b)
		}
	}
	text := llm.Clean(textOf(blocks))
	lower := strings.ToLower(text)
	at := -1
	for _, t := range want {
		i := strings.Index(lower, t)
		if i < 0 {
			return "", false
		}
		if at < 0 {
			at = i
		}
	}
	return around(text, lower, at), true
}

func ours(name string) bool { return name == ReadName || name == SearchName }

// around is one line of the text around a byte of its lower-case form. The two
// have the same number of characters, though not of bytes.
func around(text, lower string, at int) string {
	const before, length = 40, 160
	from := int64(max(0, utf8.RuneCountInString(lower[:at])-before))
	line := strings.Join(strings.FieldsFunc(characters(text, from, from+length), func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r)
	}), " ")
	if from > 0 {
		line = "..." + line
	}
	if int64(utf8.RuneCountInString(text)) > from+length {
		line += "..."
	}
	return line
}

// terms splits a query into lower-case words and quoted phrases.
func terms(q string) (out []string) {
	add := func(s string) {
		if s = strings.ToLower(strings.TrimSpace(s)); s != "" {
			out = append(out, s)
		}
	}
	for i, part := range strings.Split(q, `"`) {
		if i%2 == 1 {
			add(part)
			continue
		}
		for _, w := range strings.Fields(part) {
			add(w)
		}
	}
	return out
}
