package files

import (
	"fmt"
	"strings"

	"github.com/outcrop-dev/outcrop/tool"
)

// Replacement is one change of a text: old, which must be found exactly once,
// becomes new.
type Replacement struct {
	Old string `json:"old" jsonschema:"the exact text to replace, with its white space; enough of it to be found once"`
	New string `json:"new" jsonschema:"the text to put in its place"`
	All bool   `json:"all,omitempty" jsonschema:"replace every place where old is found"`
}

// Replace makes all replacements, each in the text that the ones before it
// left, or none: the error tells the model what to do. In a text whose line
// ends are all CRLF those of old and new are read as CRLF. places is how many
// were replaced.
func Replace(text string, edits []Replacement) (out string, places int, err error) {
	before := text
	ends, crlf := lineEnds(text)
	for i, e := range edits {
		which := "old"
		if len(edits) > 1 {
			which = fmt.Sprintf("edit %d of %d: old", i+1, len(edits))
		}
		if e.Old == "" {
			return "", 0, tool.InvalidArgs(which + " is empty; nothing was changed")
		}
		if ends > 0 && ends == crlf {
			e.Old, e.New = toCRLF(e.Old), toCRLF(e.New)
		}
		if e.Old == e.New {
			return "", 0, tool.InvalidArgs(which + " and new are the same; nothing was changed")
		}
		n, err := e.count(text, which)
		if err != nil {
			return "", 0, err
		}
		if size := len(text) + n*(len(e.New)-len(e.Old)); size > MaxFile {
			return "", 0, tool.InvalidArgs(fmt.Sprintf("the file would have %d bytes, the limit is %d; nothing was changed", size, MaxFile))
		}
		text = strings.Replace(text, e.Old, e.New, n)
		places += n
	}
	if text == before {
		return "", 0, tool.InvalidArgs("the edits together change nothing")
	}
	return text, places, nil
}

// count is how many places are to be replaced.
func (e Replacement) count(text, which string) (int, error) {
	at := strings.Index(text, e.Old)
	if at < 0 {
		return 0, refused("NOT_FOUND_IN_FILE", "%s is not found in the file; nothing was changed%s", which, nearestTo(text, e.Old))
	}
	if e.All {
		return strings.Count(text, e.Old), nil
	}
	if strings.Contains(text[at+1:], e.Old) {
		return 0, refused("FOUND_TWICE", "%s is found %s; add the lines around it so that it is found once, or set all; nothing was changed",
			which, e.places(text))
	}
	return 1, nil
}

// places says where old stands, overlapping ones too.
func (e Replacement) places(text string) string {
	const named = 5
	var lines []string
	n, line, from := 0, 1, 0
	for {
		at := strings.Index(text[from:], e.Old)
		if at < 0 {
			break
		}
		line += strings.Count(text[from:from+at], "\n")
		if n++; n <= named {
			lines = append(lines, fmt.Sprint(line))
		}
		if text[from+at] == '\n' {
			line++
		}
		from += at + 1
	}
	more := ""
	if n > named {
		more = " and more"
	}
	return fmt.Sprintf("%d times, at lines %s%s", n, strings.Join(lines, ", "), more)
}

func toCRLF(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\n", "\r\n")
}
