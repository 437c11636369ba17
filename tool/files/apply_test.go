package files_test

import (
	"fmt"
	"strings"
)

// apply is a small patch program: it applies a unified diff and checks that
// every line it keeps or removes is there.
func apply(old, diff string) (string, string) {
	if diff == "" {
		return old, ""
	}
	lines := strings.SplitAfter(old, "\n")
	var out strings.Builder
	at := 0
	var last string
	for _, l := range strings.SplitAfter(diff, "\n")[2:] {
		switch {
		case strings.HasPrefix(l, "@@"):
			var start int
			if _, err := fmt.Sscanf(l, "@@ -%d", &start); err != nil {
				return "", err.Error()
			}
			if strings.HasPrefix(strings.TrimPrefix(l, fmt.Sprintf("@@ -%d", start)), ",0") {
				start++
			}
			for at < start-1 {
				out.WriteString(lines[at])
				at++
			}
		case strings.HasPrefix(l, "\\"):
			if last == "+" || last == " " {
				s := strings.TrimSuffix(out.String(), "\n")
				out.Reset()
				out.WriteString(s)
			}
		case l == "":
		case l[0] == '+':
			out.WriteString(l[1:])
		default:
			if at >= len(lines) || strings.TrimSuffix(lines[at], "\n") != strings.TrimSuffix(l[1:], "\n") {
				return "", fmt.Sprintf("line %d is not %q", at+1, l)
			}
			if l[0] == ' ' {
				out.WriteString(l[1:])
			}
			at++
		}
		if l != "" {
			last = l[:1]
		}
	}
	for ; at < len(lines); at++ {
		out.WriteString(lines[at])
	}
	return out.String(), ""
}
