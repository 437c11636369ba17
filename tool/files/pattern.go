package files

import (
	"fmt"
	"path"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/outcrop-dev/outcrop/tool"
)

// pathPattern is a pattern for paths below a directory. One without a slash is for the
// last name, in any directory; a slash in front means the directory itself.
type pathPattern struct {
	pattern  string
	baseOnly bool
}

const (
	maxPattern = 1000
	// maxAlternatives bounds what braces can make of one pattern.
	maxAlternatives = 256
)

func parsePattern(given, dir string) (pathPattern, error) {
	p := given
	if rest, ok := strings.CutPrefix(p, dir+"/"); ok {
		p = "/" + rest // an absolute path into the directory
	}
	anchored := strings.HasPrefix(p, "/") || strings.HasPrefix(p, "./")
	p = strings.TrimPrefix(strings.TrimPrefix(p, "."), "/")
	if !anchored {
		p = given
	}
	switch {
	case strings.TrimSpace(p) == "":
		return pathPattern{}, tool.InvalidArgs("the pattern is empty; **/* matches every file")
	case len(p) > maxPattern:
		return pathPattern{}, tool.InvalidArgs(fmt.Sprintf("the pattern has more than %d bytes", maxPattern))
	case !doublestar.ValidatePattern(p):
		return pathPattern{}, tool.InvalidArgs(fmt.Sprintf("%q is no pattern: look for brackets and braces that are not closed", given))
	case alternatives(p) > maxAlternatives:
		return pathPattern{}, tool.InvalidArgs("the braces of the pattern have too many combinations")
	}
	for part := range strings.SplitSeq(p, "/") {
		if part == ".." {
			return pathPattern{}, tool.InvalidArgs("a pattern cannot lead up (..); set path instead")
		}
	}
	return pathPattern{pattern: p, baseOnly: !anchored && !strings.Contains(p, "/")}, nil
}

// alternatives is the most patterns that the braces of p can stand for.
func alternatives(p string) int {
	n := 1
	var open []int // the alternatives of each brace that is open
	for i := 0; i < len(p) && n <= maxAlternatives; i++ {
		switch p[i] {
		case '\\':
			i++
		case '{':
			open = append(open, 1)
		case ',':
			if len(open) > 0 {
				open[len(open)-1]++
			}
		case '}':
			if len(open) > 0 {
				n *= open[len(open)-1]
				open = open[:len(open)-1]
			}
		}
	}
	return n
}

// match takes a path from the directory that the pattern is for.
func (g pathPattern) match(name string) bool {
	if g.baseOnly {
		name = path.Base(name)
	}
	return doublestar.MatchUnvalidated(g.pattern, name)
}
