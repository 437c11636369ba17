package files

import (
	"fmt"
	"strings"
)

const (
	// maxCompared bounds the part of a line that is compared, in bytes.
	maxCompared = 300
	// maxQuoted bounds the part of a line that an error repeats, in bytes.
	maxQuoted = 200
	// maxSame bounds the lines that are compared without white space.
	maxSame = 20
)

// nearestTo says where the text is that was probably meant by old: the same
// lines with other white space, or the line that is most alike.
func nearestTo(text, old string) string {
	want := strings.Split(strings.Trim(old, "\r\n"), "\n")
	for i := range want {
		want[i] = squeeze(want[i])
	}
	lines := strings.Split(text, "\n")
	if at := sameButSpace(lines, want); at >= 0 {
		if len(want) == 1 {
			return fmt.Sprintf("; line %d differs in white space only: %s", at+1, quote(lines[at]))
		}
		return fmt.Sprintf("; lines %d to %d differ in white space only, the first is %s", at+1, at+len(want), quote(lines[at]))
	}
	key := ""
	for _, l := range want {
		if len(l) > len(key) {
			key = l
		}
	}
	p := pairsOf(key)
	best, at := 0.3, -1
	for i, l := range lines {
		if likeness := p.alike(squeeze(l)); likeness > best {
			best, at = likeness, i
		}
	}
	if at < 0 {
		return "; no line is like it: read the file again"
	}
	return fmt.Sprintf("; the nearest line is %d: %s", at+1, quote(lines[at]))
}

// sameButSpace is where all of want stands when white space does not count, -1
// when nowhere.
func sameButSpace(lines, want []string) int {
	if strings.Join(want, "") == "" {
		return -1
	}
	some := want[:min(len(want), maxSame)]
	for i := range len(lines) - len(want) + 1 {
		same := true
		for j := range some {
			if squeeze(lines[i+j]) != want[j] {
				same = false
				break
			}
		}
		if same {
			return i
		}
	}
	return -1
}

// squeeze drops all white space of a line; only the beginning of a long one is
// kept.
func squeeze(line string) string {
	if len(line) > maxCompared {
		line = line[:maxCompared]
	}
	if !strings.ContainsAny(line, " \t\r") {
		return line
	}
	return strings.Map(func(r rune) rune {
		if r == ' ' || r == '\t' || r == '\r' {
			return -1
		}
		return r
	}, line)
}

// pairs counts the pairs of bytes that follow each other in one text.
type pairs struct {
	length int
	count  [1 << 16]uint16
}

func pairsOf(s string) *pairs {
	p := &pairs{length: len(s)}
	for i := 1; i < len(s); i++ {
		p.count[int(s[i-1])<<8|int(s[i])]++
	}
	return p
}

// alike is the share of pairs that the text and a line have in common, 0 to 1.
func (p *pairs) alike(line string) float64 {
	// Texts of very different length cannot be alike.
	if p.length < 2 || len(line) < 2 || len(line) > 4*p.length || p.length > 4*len(line) {
		return 0
	}
	var common [maxCompared]uint16
	n := 0
	for i := 1; i < len(line); i++ {
		if pair := int(line[i-1])<<8 | int(line[i]); p.count[pair] > 0 {
			p.count[pair]--
			common[n] = uint16(pair)
			n++
		}
	}
	for _, pair := range common[:n] {
		p.count[pair]++
	}
	return 2 * float64(n) / float64(p.length+len(line)-2)
}

// quote repeats a line of a file.
func quote(line string) string {
	line = strings.TrimSuffix(line, "\r")
	if len(line) > maxQuoted {
		line = string(wholeRunes([]byte(line[:maxQuoted]))) + "..."
	}
	return fmt.Sprintf("%q", line)
}
