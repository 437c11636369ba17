package search

import (
	"strings"
	"unicode"
)

// spaced puts spaces around each character of a script that is written without
// them, so that the tokenizer of the index takes it for a word.
func spaced(s string) string {
	if strings.IndexFunc(s, solid) < 0 {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) + len(s)/2)
	for _, r := range s {
		if solid(r) {
			b.WriteByte(' ')
			b.WriteRune(r)
			b.WriteByte(' ')
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// solid reports a character of a script without spaces between words.
func solid(r rune) bool {
	return r >= 0x0E00 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
}

// term is a word or a phrase of a query.
type term struct {
	text   string
	prefix bool // the last word of it may go on
}

// terms splits a query.
func terms(q string) (out []term) {
	add := func(s string, prefix bool) {
		if strings.IndexFunc(s, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsSymbol(r) }) >= 0 {
			out = append(out, term{s, prefix})
		}
	}
	for i, part := range strings.Split(q, `"`) {
		if i%2 == 1 {
			add(part, false)
			continue
		}
		for _, w := range strings.Fields(part) {
			word, prefix := strings.CutSuffix(w, "*")
			add(word, prefix)
		}
	}
	return out
}

// match is the expression that the index is asked: each term is a quoted
// phrase, so that nothing in it is an operator.
func match(all []term) string {
	var b strings.Builder
	for i, t := range all {
		if i > 0 {
			b.WriteString(" AND ")
		}
		b.WriteString(`"` + strings.TrimSpace(spaced(strings.ReplaceAll(t.text, "\x00", " "))) + `"`)
		if t.prefix {
			b.WriteByte('*')
		}
	}
	return b.String()
}
