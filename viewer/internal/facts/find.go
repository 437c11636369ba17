package facts

import (
	"context"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/brief"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/message"
	"github.com/outcrop-dev/outcrop/search"
	"github.com/outcrop-dev/outcrop/secret"
	"github.com/outcrop-dev/outcrop/viewer/internal/folded"
)

// MostHits is the longest list of hits.
const MostHits = 1000

// Found is what was found in one session.
type Found struct {
	Schema
	Q      Text         `json:"q"`
	Masked int          `json:"masked"`
	Next   *outcrop.Seq `json:"next"`
	Hits   []Hit        `json:"hits"`
}

// Hit is a place where the text stands.
type Hit struct {
	Seq     outcrop.Seq  `json:"seq"`
	Index   int          `json:"index"`
	Kind    string       `json:"kind"`
	Part    string       `json:"part"`
	Covered *outcrop.Seq `json:"covered"`
	Rewound bool         `json:"rewound"`
	Text    Text         `json:"text"`
	Spans   [][2]int     `json:"spans"`
}

// Find looks for a text in all messages of a log from the event from on. It
// finds a part of a message once. Where a hit stands in the conversation is
// filled in by Locate.
func Find(ctx context.Context, log outcrop.Log, q string, from outcrop.Seq, limit int, v *Veil) (*Found, error) {
	f := &Found{Schema: V1, Q: Text(q), Hits: []Hit{}}
	want := fold(q)
	n := 0
	for r := range log.Records(from) {
		if n++; n%1024 == 0 && ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if r.Run != nil || !isMessage(r.Type) || !mayHold(r.Data, want) {
			continue
		}
		// A message that came by an edit is a copy, but for a checkpoint's.
		if _, _, edit := r.Op.Range(); edit && r.Type == outcrop.TypeToolResult {
			continue
		}
		blocks, err := message.ParseBlocks(jsonwire.Get(brief.MessageOf(r.Event), "content"))
		if err != nil {
			continue
		}
		parts(blocks, func(part, text string) {
			at, end := index(text, want)
			if at < 0 {
				return
			}
			h := Hit{Seq: r.Seq, Part: part}
			h.snippet(text, at, end, v)
			f.Hits = append(f.Hits, h)
		})
		if len(f.Hits) >= limit {
			if int(r.Seq)+1 < log.Len() {
				f.Next = pointer(r.Seq + 1)
			}
			break
		}
	}
	f.Masked = v.Masked
	return f, nil
}

func isMessage(t outcrop.Type) bool {
	switch t {
	case outcrop.TypeUserMessage, outcrop.TypeAssistantMessage, outcrop.TypeToolResult, outcrop.TypeContextMessage:
		return true
	}
	return false
}

// mayHold passes over messages that cannot hold a plain text: then nothing is
// decoded. Text with letters beyond ASCII, or that JSON escapes, may be written
// in other ways.
func mayHold(data []byte, want []rune) bool {
	for _, r := range want {
		if r >= utf8.RuneSelf || !(r == ' ' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z') {
			return true
		}
	}
	plain := true
	first := byte(want[0])
	for i, c := range data {
		switch {
		case c == '\\' && i+1 < len(data) && data[i+1] == 'u', c >= utf8.RuneSelf:
			plain = false
		case c == first || c-'A' < 26 && c|0x20 == first:
			if sameAt(data[i:], want) {
				return true
			}
		}
	}
	return !plain
}

func sameAt(data []byte, want []rune) bool {
	if len(data) < len(want) {
		return false
	}
	for i, r := range want {
		c := data[i]
		if c-'A' < 26 {
			c |= 0x20
		}
		if rune(c) != r {
			return false
		}
	}
	return true
}

func parts(blocks []message.Block, each func(part, text string)) {
	for i := range blocks {
		switch b := &blocks[i]; b.Type {
		case message.TextBlock:
			each("text", b.Text)
		case message.ReasoningBlock:
			each("reasoning", b.Text)
		case message.ToolCallBlock:
			each("call", b.Name+" "+b.Arguments)
		case message.ToolResultBlock:
			each("result", message.PlainText(b.Content))
		}
	}
}

// fold makes a text that is compared without regard to case.
func fold(s string) []rune {
	out := []rune(s)
	for i, r := range out {
		out[i] = simple(r)
	}
	return out
}

func simple(r rune) rune {
	if r < utf8.RuneSelf {
		if 'A' <= r && r <= 'Z' {
			r += 'a' - 'A'
		}
		return r
	}
	return unicode.ToLower(r)
}

// index finds want in a text: its bytes from at to end.
func index(text string, want []rune) (at, end int) {
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRuneInString(text[i:])
		if simple(r) == want[0] {
			k, j := 1, i+n
			for k < len(want) && j < len(text) {
				r, n := utf8.DecodeRuneInString(text[j:])
				if simple(r) != want[k] {
					break
				}
				k, j = k+1, j+n
			}
			if k == len(want) {
				return i, j
			}
		}
		i += n
	}
	return -1, -1
}

// around is how much text a hit shows on each side, in bytes.
const around = 80

// snippet shows the place in one line. Of a place inside a secret there are no
// spans.
func (h *Hit) snippet(text string, at, end int, v *Veil) {
	lo, hi := max(at-around, 0), min(end+around, len(text))
	for lo > 0 && !utf8.RuneStart(text[lo]) {
		lo--
	}
	for hi < len(text) && !utf8.RuneStart(text[hi]) {
		hi++
	}
	var secrets []secret.Span
	if !v.Show {
		from := max(lo-maskMargin, 0)
		secrets = secret.Find(text[from:min(hi+maskMargin, len(text))])
		for i := range secrets {
			secrets[i].Start += from
			secrets[i].End += from
		}
	}
	hidden := 0
	line := func(from, to int) string {
		var b strings.Builder
		for _, s := range secrets {
			if s.End <= from || s.Start >= to {
				continue
			}
			b.WriteString(text[from:max(s.Start, from)])
			b.WriteString("[masked]")
			from = min(s.End, to)
			hidden++
		}
		b.WriteString(text[from:to])
		return strings.Map(func(r rune) rune {
			if r == '\n' || r == '\r' || r == '\t' {
				return ' '
			}
			return r
		}, strings.ToValidUTF8(b.String(), "\uFFFD"))
	}
	before, after := line(lo, at), line(end, hi)
	v.Masked += hidden
	hidden = 0
	hit := line(at, end)
	v.Masked += hidden
	if lo > 0 {
		before = "… " + before
	}
	if hi < len(text) {
		after += " …"
	}
	h.Text, h.Spans = Text(before+hit+after), [][2]int{}
	if hidden == 0 {
		start := units(before)
		h.Spans = append(h.Spans, [2]int{start, start + units(hit)})
	}
}

// units counts as JavaScript does.
func units(s string) int {
	n := 0
	for _, r := range s {
		n += max(utf16.RuneLen(r), 1)
	}
	return n
}

// Locate fills in where hits stand in the conversation.
func (f *Found) Locate(x *folded.Index) {
	for i := range f.Hits {
		h := &f.Hits[i]
		p, ok := PlaceOf(x, h.Seq, false)
		if !ok {
			continue
		}
		h.Index, h.Kind, h.Covered, h.Rewound = p.at, p.item.Kind.String(), knownOrNull(p.covered), p.rewound
	}
}

// Snippet joins the parts of a snippet. When something of it is masked the
// places are not known any more.
func Snippet(parts []search.Span, v *Veil) (Text, [][2]int) {
	text, spans, at := "", [][2]int{}, 0
	for _, p := range parts {
		n := units(p.Text)
		if p.Hit {
			spans = append(spans, [2]int{at, at + n})
		}
		text, at = text+p.Text, at+n
	}
	shown := v.Text(text)
	if string(shown) != text {
		spans = [][2]int{}
	}
	return shown, spans
}
