package tool

import (
	"fmt"
	"strings"
)

// maxNamed is up to how many tools an unknown name is answered with all names.
const maxNamed = 20

// maxShown is how much of an unknown name is repeated, in bytes.
const maxShown = 200

// unknown is the error for a name that no tool has.
func (r *Registry) unknown(name string) *Error {
	msg := fmt.Sprintf("unknown tool %q", cutHead(name, maxShown))
	var names []string
	for t := range r.All() {
		names = append(names, t.Name())
	}
	switch near := nearest(name, names); {
	case near != "":
		msg += fmt.Sprintf("; did you mean %q?", near)
	case len(names) == 0:
		msg += "; there are no tools"
	case len(names) <= maxNamed:
		msg += "; the tools are " + strings.Join(names, ", ")
	}
	return &Error{Name: "ToolNotFoundError", Code: "UNKNOWN_TOOL", Msg: msg}
}

// nearest is the name that got was probably meant to be: the same but for case
// and marks, one that is a word of the other, or one with few letters changed.
// Empty when none is near.
func nearest(got string, names []string) string {
	got = plain(got)
	if got == "" || len(got) > 64 {
		return ""
	}
	best, least := "", len(got)/3+1
	for _, n := range names {
		p := plain(n)
		d := changes(got, p)
		if d > 0 && len(p) >= 3 && (strings.HasPrefix(got, p) || strings.HasSuffix(got, p)) {
			d = 1
		}
		if d < least {
			best, least = n, d
		}
	}
	return best
}

// plain drops what models write in different ways.
func plain(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		case r == '_' || r == '-' || r == ' ' || r == '.':
			return -1
		}
		return r
	}, name)
}

// changes counts the bytes to insert, remove or replace to make b of a.
func changes(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		corner := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := corner
			if a[i] != b[j] {
				cost++
			}
			corner = row[j+1]
			row[j+1] = min(cost, row[j]+1, corner+1)
		}
	}
	return row[len(b)]
}
