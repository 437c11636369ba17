package files

import (
	"regexp/syntax"
	"strings"
)

// required is a text that is in every line that a regular expression matches,
// the longest one that is found easily; empty when there is none. With fold it
// is in lower case and stands for both cases.
//
// Looking for a text is many times faster than matching, and most lines do not
// hold it.
func required(expr string) (literal string, fold bool) {
	re, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return "", false
	}
	return requiredIn(re)
}

func requiredIn(re *syntax.Regexp) (literal string, fold bool) {
	switch re.Op {
	case syntax.OpLiteral:
		fold = re.Flags&syntax.FoldCase != 0
		return longestPlain(re.Rune, fold), fold
	case syntax.OpCapture, syntax.OpPlus:
		return requiredIn(re.Sub[0])
	case syntax.OpRepeat:
		if re.Min > 0 {
			return requiredIn(re.Sub[0])
		}
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			if l, f := requiredIn(sub); len(l) > len(literal) || len(l) == len(literal) && !f {
				literal, fold = l, f
			}
		}
		return literal, fold
	}
	return "", false
}

// longestPlain is the longest part of a literal whose bytes are known. A
// replacement character stands for any byte that is no UTF-8. Without regard to
// case only ASCII is taken, and of that not the letters k and s, which have a
// third form.
func longestPlain(runes []rune, fold bool) string {
	best := ""
	for _, part := range strings.FieldsFunc(string(runes), func(r rune) bool {
		return r == '\uFFFD' || fold && (r >= 0x80 || strings.ContainsRune("kKsS", r))
	}) {
		if len(part) > len(best) {
			best = part
		}
	}
	if fold {
		best = strings.ToLower(best)
	}
	return best
}

// lower writes src to dst, ASCII letters in lower case.
func lower(dst, src []byte) {
	dst = dst[:len(src)]
	for i, c := range src {
		if c-'A' < 26 {
			c += 'a' - 'A'
		}
		dst[i] = c
	}
}
