package secret

import "strings"

const (
	leastRandom = 24
	mostRandom  = 200 // longer ones are files in base64
	dataLine    = 60  // a line of nothing but base64, from this length on, is data
)

func base64Byte(c byte) bool {
	return word(c) || c == '+' || c == '/' || c == '='
}

// entropy finds words that look drawn at random.
func (f *finder) entropy() {
	t := f.text
	data := false // the line before was one of data
	for i := 0; i < len(t); {
		if !base64Byte(t[i]) {
			i++
			continue
		}
		end := run(t, i, base64Byte)
		line := lineStart(t, i) && lineEnd(t, end)
		switch {
		case line && (data || end-i >= dataLine):
			data = true
		default:
			data = false
			if s, ok := randomWord(t, i, end); ok {
				f.spans = append(f.spans, s)
			}
		}
		i = end
	}
}

func lineStart(t string, i int) bool { return i == 0 || t[i-1] == '\n' }
func lineEnd(t string, i int) bool {
	return i == len(t) || t[i] == '\n' || t[i] == '\r'
}

// idPrefixes begin ids that a log is full of.
var idPrefixes = []string{"toolu_", "call_", "chatcmpl-", "msg_", "resp_", "req_", "fc_", "rs_", "ctc_", "gen-", "run_", "thread_", "asst_", "sha1-", "sha256-", "sha384-", "sha512-"}

// randomWord judges one run of base64.
func randomWord(t string, start, end int) (Span, bool) {
	if n := end - start; n < leastRandom || n > mostRandom {
		return Span{}, false
	}
	w := t[start:end]
	if start > 0 {
		switch before := t[max(0, start-8):start]; {
		case strings.HasSuffix(before, "h1:"), strings.HasSuffix(strings.ToLower(before), "sha256:"), strings.HasSuffix(before, "base64,"):
			return Span{}, false
		case t[start-1] == '\\': // the letter of an escape is not the word's
			return randomWord(t, start+1, end)
		}
	}
	for _, p := range idPrefixes {
		if strings.HasPrefix(w, p) {
			return Span{}, false
		}
	}
	// NAME=VALUE: the name is no part of the word.
	if i := strings.LastIndexByte(strings.TrimRight(w, "="), '='); i >= 0 {
		return randomWord(t, start+i+1, end)
	}
	if strings.IndexByte(w, '/') >= 0 && !strings.ContainsAny(w, "+=") && len(w) != 40 {
		return Span{}, false // a path
	}
	if w[0] == '/' || !looksRandom(w) {
		return Span{}, false
	}
	return Span{start, end, HighEntropy}, true
}

// looksRandom tells characters drawn at random from a name made of words: small
// and capital letters and digits in several places, and a change between them
// at nearly every second character (0.62 of all places when each of the 62 is
// as likely; words in camel case stay below 0.45 and have few groups of digits).
func looksRandom(w string) bool {
	var lower, upper, digit, groups, changes int
	var seen [128]bool
	distinct := 0
	last := byte(0)
	for i := range len(w) {
		c, class := w[i], byte(0)
		if !seen[c&127] {
			seen[c&127] = true
			distinct++
		}
		switch {
		case isLower(c):
			lower++
			class = 1
		case isUpper(c):
			upper++
			class = 2
		case isDigit(c):
			digit++
			if class = 3; last != 3 {
				groups++
			}
		}
		if class != 0 && last != 0 && class != last {
			changes++
		}
		last = class
	}
	return lower >= 3 && upper >= 3 && digit >= 2 && groups >= 2 && distinct >= 14 && 100*changes >= 42*(len(w)-1)
}
