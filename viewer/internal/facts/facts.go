// Package facts makes the JSON of the viewer's API from folded sessions: what
// docs/http.md says, member by member. It knows nothing of HTTP.
//
// Most facts are made in two steps. The first looks at the index of a session,
// which others wait for, and takes from it what it needs; the second reads
// messages in the log, which never changes, and may take its time.
//
// Every string that comes from a log is a Text. It is always valid JSON, and it
// has gone through a Veil, which masks what looks secret.
package facts

import (
	"strings"
	"unicode/utf8"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/internal/usage"
	"github.com/outcrop-dev/outcrop/message"
	"github.com/outcrop-dev/outcrop/secret"
)

// Schema is the member that every answer begins with.
type Schema struct {
	Schema int `json:"schema"`
}

// V1 is the schema of all answers.
var V1 = Schema{1}

// Text is text of a log. What is no UTF-8 in it becomes U+FFFD.
type Text string

// MarshalJSON implements json.Marshaler.
func (t Text) MarshalJSON() ([]byte, error) {
	return jsonwire.AppendString(nil, strings.ToValidUTF8(string(t), "\uFFFD")), nil
}

// orNull is nil for "".
func orNull(t Text) *Text {
	if t == "" {
		return nil
	}
	return &t
}

func pointer[T any](v T) *T { return &v }

// knownOrNull is nil for a negative number.
func knownOrNull[N ~int64 | ~int | ~int32](n N) *N {
	if n < 0 {
		return nil
	}
	return &n
}

// Veil masks secrets in the texts of one answer and counts them.
type Veil struct {
	Show   bool // leave them as they are
	Masked int
}

// Text masks a text.
func (v *Veil) Text(s string) Text {
	if v.Show {
		return Text(s)
	}
	masked, n := secret.Mask(s)
	v.Masked += n
	return Text(masked)
}

// JSON masks the strings of JSON text. same says that nothing was changed, and
// that the text is UTF-8.
func (v *Veil) JSON(raw []byte) (t Text, same bool) {
	n := v.Masked
	if t = Text(raw); !v.Show {
		masked, found := secret.MaskJSON(raw)
		v.Masked += found
		t = Text(masked)
	}
	return t, v.Masked == n && utf8.ValidString(string(t))
}

// Part is JSON for the beginning of a text that may be longer.
func (v *Veil) Part(raw []byte, most int) (t Text, same, cut bool) {
	if len(raw) <= most {
		t, same = v.JSON(raw)
		return t, same, false
	}
	part, _ := cutAt(string(raw), most+maskMargin)
	short, _ := cutAt(string(v.Text(part)), most)
	return Text(short), false, true
}

// cutAt cuts a text at a border of characters.
func cutAt(s string, most int) (string, bool) {
	if len(s) <= most {
		return s, false
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most], true
}

// maskMargin is how much text behind a cut is looked at for secrets.
const maskMargin = 4096

// Line masks one line of a text, which is cut.
func (v *Veil) Line(s string) Text {
	const most = 240
	if len(s) > 4*most {
		s = s[:4*most]
	}
	t := v.Text(s)
	n := 0
	for i := range string(t) {
		if n++; n > most {
			return t[:i] + "…"
		}
	}
	return t
}

// LineOrNil is Line, and nil for "".
func (v *Veil) LineOrNil(s string) *Text { return orNull(v.Line(s)) }

// Usage is what a call took, in tokens.
type Usage struct {
	Input      int64  `json:"input"`
	CacheRead  *int64 `json:"cacheRead"`
	CacheWrite *int64 `json:"cacheWrite"`
	Output     int64  `json:"output"`
	Reasoning  *int64 `json:"reasoning"`
}

func usageOf(u *message.Usage) *Usage {
	if u == nil {
		return nil
	}
	return &Usage{u.InputTokens, u.CacheReadTokens, u.CacheWriteTokens, u.OutputTokens, u.ReasoningTokens}
}

// Sum is what several calls took.
type Sum struct {
	Input      int64 `json:"input"`
	CacheRead  int64 `json:"cacheRead"`
	CacheWrite int64 `json:"cacheWrite"`
	Output     int64 `json:"output"`
	Reasoning  int64 `json:"reasoning"`
}

// SumOf shows a sum of package usage.
func SumOf(s *usage.Sum) Sum {
	return Sum{s.Input, s.CacheRead, s.CacheWrite, s.Output, s.Reasoning}
}

// CostOf is the cost of a sum in micro-dollars, nil when nothing of it is known.
func CostOf(s *usage.Sum) *int64 {
	if s.Cost == 0 && s.Unpriced > 0 {
		return nil
	}
	return &s.Cost
}

// windowOf cuts a list: from may be negative, from the end.
func windowOf(from, limit, total int) (lo, hi int) {
	if from < 0 {
		from += total
	}
	lo = min(max(from, 0), total)
	return lo, min(lo+limit, total)
}

func text(data []byte, names ...string) string {
	for _, n := range names {
		data = jsonwire.Get(data, n)
	}
	s, _ := jsonwire.Text(data)
	return s
}

func isTrue(v []byte) bool { return string(v) == "true" }

// Op is a surface operation.
type Op struct {
	Replace *[2]outcrop.Seq
	Append  bool
}

// MarshalJSON implements json.Marshaler.
func (o Op) MarshalJSON() ([]byte, error) {
	switch {
	case o.Replace != nil:
		b := jsonwire.AppendInt([]byte(`{"replace":[`), int64(o.Replace[0]))
		b = jsonwire.AppendInt(append(b, ','), int64(o.Replace[1]))
		return append(b, `]}`...), nil
	case o.Append:
		return []byte(`"append"`), nil
	}
	return []byte("null"), nil
}

func opOf(ev outcrop.Event) Op {
	if a, b, ok := ev.Op.Range(); ok {
		return Op{Replace: &[2]outcrop.Seq{a, b}}
	}
	return Op{Append: ev.Op.IsAppend()}
}
