// Package ignore reads the rules of .gitignore files and says which names they
// exclude.
//
// A file has one pattern a line:
//
//	# a comment                blank lines say nothing either
//	*.log                      no slash before the end: the name in every
//	                           directory below the file
//	/build   docs/*.html       a slash at the start or inside: the path from the
//	                           file's directory
//	tmp/                       a slash at the end: directories only
//	**/a   a/**   a/**/b       any number of directories
//	!keep.log                  takes back what an earlier pattern excluded
//	\#a  \!a  a\*              a backslash takes the meaning from a character;
//	                           unescaped spaces at the end do not count
//
// Of the patterns that match, the last one counts, those of a deeper directory
// before those of an upper one. What is in an excluded directory is not looked
// at, so nothing in it can be taken back. Patterns with character classes by
// name ([[:alpha:]]) or with a slash in them, and malformed ones, exclude
// nothing. A question mark and a class stand for one character, not one byte.
package ignore

import (
	"strings"
	"unicode/utf8"

	"github.com/bmatcuk/doublestar/v4"
)

const (
	// MaxFile is how much of one file is read, in bytes.
	MaxFile = 1 << 20
	// maxPattern is the longest pattern that is used, in bytes.
	maxPattern = 4096
)

// Rules are those of one file. The zero value excludes nothing.
type Rules struct {
	rules []rule
}

type rule struct {
	pattern string // for doublestar, or what literal and suffix compare with
	kind    kind
	negate  bool
	dirOnly bool
	path    bool // matched against the path, not the last name
}

type kind int

const (
	pattern kind = iota
	literal
	suffix // "*" and a literal
)

// Parse reads the text of one file, at most MaxFile bytes of it. It never
// fails: what is no pattern excludes nothing.
func Parse(text []byte) Rules {
	var r Rules
	if len(text) > MaxFile {
		text = text[:MaxFile]
		text = text[:strings.LastIndexByte(string(text), '\n')+1]
	}
	for line := range strings.Lines(strings.TrimPrefix(string(text), "\ufeff")) {
		if one, ok := parseLine(line); ok {
			r.rules = append(r.rules, one)
		}
	}
	return r
}

func parseLine(line string) (rule, bool) {
	line = strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")
	line = trimSpaces(line)
	var r rule
	if strings.HasPrefix(line, "#") {
		return r, false
	}
	if rest, ok := strings.CutPrefix(line, "!"); ok {
		r.negate, line = true, rest
	}
	if rest, ok := strings.CutSuffix(line, "/"); ok {
		r.dirOnly, line = true, rest
	}
	r.path = strings.Contains(line, "/")
	line = strings.TrimPrefix(line, "/")
	if line == "" || len(line) > maxPattern {
		return r, false
	}
	line = stars(line)
	// doublestar takes "a/**" for a itself as well; here it is what is in a.
	if rest, ok := strings.CutSuffix(line, "/**"); ok && rest != "" {
		line = rest + "/**/*"
	}
	if !strings.ContainsAny(line, `*?[\`) {
		r.kind, r.pattern = literal, line
		return r, true
	}
	if rest, ok := strings.CutPrefix(line, "*"); ok && !r.path && !strings.ContainsAny(rest, `*?[\`) {
		r.kind, r.pattern = suffix, rest
		return r, true
	}
	var ok bool
	r.pattern, ok = translate(line)
	return r, ok && doublestar.ValidatePattern(r.pattern)
}

// trimSpaces drops the spaces at the end that no backslash keeps.
func trimSpaces(line string) string {
	trimmed := strings.TrimRight(line, " ")
	if trimmed == line {
		return line
	}
	backslashes := len(trimmed) - len(strings.TrimRight(trimmed, `\`))
	if backslashes%2 == 1 {
		trimmed += " "
	}
	return trimmed
}

// stars makes each run of stars what it means: "**" when it is all that stands
// between slashes, else "*".
func stars(p string) string {
	if !strings.Contains(p, "**") {
		return p
	}
	var b strings.Builder
	for i := 0; i < len(p); i++ {
		b.WriteByte(p[i])
		if p[i] == '\\' && i+1 < len(p) {
			i++
			b.WriteByte(p[i])
			continue
		}
		if p[i] != '*' {
			continue
		}
		end := i + 1
		for end < len(p) && p[end] == '*' {
			end++
		}
		if end > i+1 && (i == 0 || p[i-1] == '/') && (end == len(p) || p[end] == '/') {
			b.WriteByte('*')
		}
		i = end - 1
	}
	return b.String()
}

// translate writes a pattern as doublestar reads it: braces mean themselves,
// and a bracket right after the opening one is a member of the class.
func translate(p string) (string, bool) {
	var b strings.Builder
	for i := 0; i < len(p); i++ {
		switch c := p[i]; c {
		case '{', '}':
			b.WriteByte('\\')
			b.WriteByte(c)
		case '\\':
			if i+1 == len(p) {
				return "", false
			}
			_, n := utf8.DecodeRuneInString(p[i+1:])
			b.WriteString(p[i : i+1+n])
			i += n
		case '[':
			n, ok := class(&b, p[i:])
			if !ok {
				return "", false
			}
			i += n - 1
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), true
}

// class writes the bracket expression that p begins with and returns its
// length.
func class(b *strings.Builder, p string) (int, bool) {
	i := 1
	b.WriteByte('[')
	if i < len(p) && (p[i] == '!' || p[i] == '^') {
		b.WriteString("!/") // no class holds the slash
		i++
	}
	for first := true; i < len(p); first = false {
		switch {
		case p[i] == ']' && !first:
			b.WriteByte(']')
			return i + 1, true
		case strings.HasPrefix(p[i:], "[:"), p[i] == '/':
			return 0, false
		case p[i] == '\\':
			if i+1 == len(p) {
				return 0, false
			}
			_, n := utf8.DecodeRuneInString(p[i+1:])
			b.WriteString(p[i : i+1+n])
			i += 1 + n
		case p[i] == ']', p[i] == '[':
			b.WriteByte('\\')
			b.WriteByte(p[i])
			i++
		default:
			b.WriteByte(p[i])
			i++
		}
	}
	return 0, false
}

// match says what the rules make of a path below their file's directory.
func (r Rules) match(name string, dir bool) (excluded, decided bool) {
	if len(r.rules) == 0 {
		return false, false
	}
	base := name[strings.LastIndexByte(name, '/')+1:]
	for i := len(r.rules) - 1; i >= 0; i-- {
		one := &r.rules[i]
		if one.dirOnly && !dir {
			continue
		}
		subject := base
		if one.path {
			subject = name
		}
		var hit bool
		switch one.kind {
		case literal:
			hit = subject == one.pattern
		case suffix:
			hit = strings.HasSuffix(subject, one.pattern)
		default:
			hit = doublestar.MatchUnvalidated(one.pattern, subject)
		}
		if hit {
			return !one.negate, true
		}
	}
	return false, false
}

// Stack is the rules that hold in one directory: its own and those of the
// directories above. A nil Stack excludes nothing.
type Stack struct {
	up    *Stack
	dir   string // from the top, "" for the top itself
	rules Rules
}

// Push is the stack for the directory dir, slash-separated and seen from the
// top, whose own file has these rules.
func (s *Stack) Push(dir string, rules Rules) *Stack {
	if len(rules.rules) == 0 {
		return s
	}
	if dir == "." {
		dir = ""
	}
	return &Stack{up: s, dir: dir, rules: rules}
}

// Excluded reports whether a name in the stack's directory is excluded. name is
// the path from the top.
func (s *Stack) Excluded(name string, dir bool) bool {
	for ; s != nil; s = s.up {
		rel := name
		if s.dir != "" {
			var ok bool
			if rel, ok = strings.CutPrefix(name, s.dir+"/"); !ok {
				continue
			}
		}
		if excluded, decided := s.rules.match(rel, dir); decided {
			return excluded
		}
	}
	return false
}
