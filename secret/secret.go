// Package secret finds keys and passwords in text, so that a copy that leaves
// the machine can be masked. It changes copies, never a log.
//
// # What is found
//
//	known shapes   keys that say what they are (sk-..., ghp_..., AKIA..., AIza...,
//	               xoxb-..., glpat-..., npm_..., sk_live_... and more), JSON Web
//	               Tokens, private keys in PEM
//	credentials    what follows Bearer and Basic, the password in a URL
//	assignments    the value given to a name that says that it is secret:
//	               API_KEY=..., "password": "...", client_secret: ..., --token ...
//	high entropy   words of 24 to 200 characters that look drawn at random from
//	               lower case, upper case and digits
//
// # What is not
//
// Digests and ids: hexadecimal of any length, UUIDs, ULIDs, what stands behind
// sha256:, sha512- and h1:, ids of tool calls and replies. Long base64, which is
// an image or another file. Placeholders ($TOKEN, <your-key>, ****) and code
// that names a value and does not hold it (os.Getenv("TOKEN")).
//
// Every rule errs on one side: a masked word that was none costs a reader a
// guess, a key that was not masked costs more. Nothing here proves that a text
// holds no secret.
//
// The time is linear in the length of the text, whatever the text is.
package secret

import (
	"cmp"
	"slices"
	"strings"
)

// Kind says what was found.
type Kind string

// The kinds, as they stand in masks.
const (
	APIKey      Kind = "api-key"
	Token       Kind = "token" // of a service that people sign in to
	CloudKey    Kind = "cloud-key"
	PrivateKey  Kind = "private-key"
	JWT         Kind = "jwt"
	Credential  Kind = "credential" // behind Bearer or Basic
	Password    Kind = "password"
	Assigned    Kind = "secret" // given to a name that says so
	HighEntropy Kind = "high-entropy"
)

// Span is a place in a text, in bytes: text[Start:End].
type Span struct {
	Start, End int
	Kind       Kind
}

// Find returns what looks secret, in order; spans do not overlap.
func Find(text string) []Span {
	f := finder{text: text}
	f.words()
	f.pem()
	f.urls()
	f.assignments()
	f.flags()
	return f.merged()
}

const (
	maskOpen  = "[masked:"
	maskClose = "]"
)

// Mask replaces what Find finds by [masked:KIND] and says how many places it
// were. Nothing is found in what it returns.
func Mask(text string) (masked string, found int) {
	for {
		spans := Find(text)
		if len(spans) == 0 {
			return text, found
		}
		var b strings.Builder
		at := 0
		for _, s := range spans {
			b.WriteString(text[at:s.Start])
			b.WriteString(maskOpen + string(s.Kind) + maskClose)
			at = s.End
		}
		b.WriteString(text[at:])
		found += len(spans)
		text = b.String()
	}
}

// finder collects spans of one text.
type finder struct {
	text  string
	spans []Span
}

func (f *finder) add(start, end int, k Kind) {
	f.spans = append(f.spans, Span{start, end, k})
}

// merged puts the findings in order. Of those that overlap the one that begins
// first gives the kind, and the longer one of two that begin together.
func (f *finder) merged() []Span {
	slices.SortStableFunc(f.spans, func(a, b Span) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(b.End, a.End))
	})
	out := f.spans[:0]
	for _, s := range f.spans {
		if n := len(out); n > 0 && s.Start < out[n-1].End {
			out[n-1].End = max(out[n-1].End, s.End)
			continue
		}
		out = append(out, s)
	}
	return out
}

func isLower(c byte) bool { return c >= 'a' && c <= 'z' }
func isUpper(c byte) bool { return c >= 'A' && c <= 'Z' }
func isDigit(c byte) bool { return c >= '0' && c <= '9' }
func isAlnum(c byte) bool { return isLower(c) || isUpper(c) || isDigit(c) }

func isHex(c byte) bool { return isDigit(c) || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F' }

// begins reports whether a word begins at i. The letter of an escape (\n in
// text that is still JSON) belongs to no word.
func begins(text string, i int) bool {
	if i == 0 {
		return true
	}
	c := text[i-1]
	if !isAlnum(c) && c != '_' && c != '-' {
		return true
	}
	return i > 1 && text[i-2] == '\\' && (c == 'n' || c == 't' || c == 'r')
}

// run is the end of the longest run of bytes from i that ok accepts.
func run(text string, i int, ok func(byte) bool) int {
	for i < len(text) && ok(text[i]) {
		i++
	}
	return i
}
