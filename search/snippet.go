package search

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// The length of a snippet, in characters, and how much of it stands before the
// first hit.
const (
	snippetLength = 160
	snippetBefore = 40
)

// snippet is one line of a text around the first place that fits.
func snippet(text string, all []term) []Span {
	folded, at := fold(text)
	first := -1
	for _, t := range all {
		want, _ := fold(t.text)
		if i := find(folded, want, 0, t.prefix); i >= 0 && (first < 0 || i < first) {
			first = i
		}
	}
	from := max(0, first-snippetBefore)
	to := min(len(folded), from+snippetLength)
	marked := make([]bool, to-from)
	for _, t := range all {
		want, _ := fold(t.text)
		for i := from; len(want) > 0; {
			i = find(folded, want, i, t.prefix)
			if i < 0 || i >= to {
				break
			}
			for k := i; k < min(i+len(want), to); k++ {
				marked[k-from] = true
			}
			i += len(want)
		}
	}
	var spans []Span
	put := func(s string, hit bool) {
		if n := len(spans); n > 0 && spans[n-1].Hit == hit {
			spans[n-1].Text += s
		} else if s != "" {
			spans = append(spans, Span{s, hit})
		}
	}
	if from > 0 {
		put("…", false)
	}
	for i := from; i < to; {
		j := i
		for j < to && marked[j-from] == marked[i-from] {
			j++
		}
		put(oneLine(text[at[i]:at[j]]), marked[i-from])
		i = j
	}
	if to < len(folded) {
		put("…", false)
	}
	return spans
}

// oneLine makes white space and controls single spaces.
func oneLine(s string) string {
	var b strings.Builder
	space := false
	for _, r := range s {
		if unicode.IsSpace(r) || unicode.IsControl(r) {
			space = true
			continue
		}
		if space {
			b.WriteByte(' ')
			space = false
		}
		b.WriteRune(r)
	}
	if space {
		b.WriteByte(' ')
	}
	return b.String()
}

// fold makes a text comparable: lower case, without accents, one rune for each
// character. at says where each of them begins in the text, with the end of the
// text last.
func fold(s string) (folded []rune, at []int) {
	folded = make([]rune, 0, len(s))
	at = make([]int, 0, len(s)+1)
	for i, r := range s {
		if r >= utf8.RuneSelf {
			if unicode.Is(unicode.Mn, r) {
				// An accent of its own belongs to the character before it.
				continue
			}
			if d := norm.NFD.PropertiesString(s[i:]).Decomposition(); len(d) > 0 && !solid(r) {
				if base, _ := utf8.DecodeRune(d); base != utf8.RuneError {
					r = base
				}
			}
		}
		folded, at = append(folded, unicode.ToLower(r)), append(at, i)
	}
	return folded, append(at, len(s))
}

// find is the first place of a word or phrase, at the borders of words. White
// space and signs between words are all the same.
func find(text, want []rune, from int, prefix bool) int {
	want = trim(want)
	for i := from; i+1 <= len(text) && len(want) > 0; i++ {
		if i > 0 && letter(text[i-1]) && letter(text[i]) && !solid(text[i]) && !solid(text[i-1]) {
			continue
		}
		if n := same(text[i:], want); n > 0 {
			end := i + n
			if prefix || end == len(text) || !letter(text[end]) || solid(text[end]) || !letter(text[end-1]) || solid(text[end-1]) {
				return i
			}
		}
	}
	return -1
}

// same reports how much of text is the phrase, 0 when it does not begin so.
func same(text, want []rune) int {
	i, j := 0, 0
	for j < len(want) {
		if i == len(text) {
			return 0
		}
		switch {
		case text[i] == want[j]:
			i, j = i+1, j+1
		case !letter(text[i]) && !letter(want[j]):
			for i < len(text) && !letter(text[i]) {
				i++
			}
			for j < len(want) && !letter(want[j]) {
				j++
			}
		case !letter(text[i]) && i > 0 && solid(want[j]):
			i++
		default:
			return 0
		}
	}
	return i
}

func trim(r []rune) []rune {
	for len(r) > 0 && !letter(r[0]) {
		r = r[1:]
	}
	for len(r) > 0 && !letter(r[len(r)-1]) {
		r = r[:len(r)-1]
	}
	return r
}

func letter(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }
