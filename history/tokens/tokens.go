// Package tokens counts tokens as a model's own tokenizer does, for the models
// whose tokenizer is public and small enough to be part of a program. It needs
// no network. For every other model there is the heuristic of package meter.
//
// A tokenizer is loaded when it counts for the first time: some tens of
// megabytes of tables and a fraction of a second. That is why this is a package
// of its own: a program that does not import it is 12 MB smaller.
package tokens

import (
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/tiktoken-go/tokenizer"

	"github.com/outcrop-dev/outcrop/history/meter"
)

// For returns the counter for a model: its tokenizer where one is known, else
// meter.Heuristic. The counter's name says which.
func For(model string) meter.Counter {
	// A router's names carry the maker: openai/gpt-4o.
	name := strings.TrimPrefix(strings.ToLower(model), "openai/")
	for _, f := range families {
		if name == f.prefix || strings.HasPrefix(name, f.prefix+"-") || strings.HasPrefix(name, f.prefix+".") {
			return f.counter
		}
	}
	return meter.Heuristic{}
}

var (
	o200k  = &counter{encoding: tokenizer.O200kBase}
	cl100k = &counter{encoding: tokenizer.Cl100kBase}
)

// families are the names that models of one tokenizer begin with; a longer name
// stands before a shorter one that it begins with.
var families = []struct {
	prefix  string
	counter *counter
}{
	{"gpt-5", o200k}, {"gpt-4.5", o200k}, {"gpt-4.1", o200k}, {"gpt-4o", o200k}, {"chatgpt-4o", o200k}, {"gpt-oss", o200k},
	{"o1", o200k}, {"o3", o200k}, {"o4", o200k},
	{"gpt-4", cl100k}, {"gpt-3.5", cl100k}, {"text-embedding-3", cl100k},
}

// counter counts with one encoding. It is safe for many goroutines.
type counter struct {
	encoding tokenizer.Encoding

	once  sync.Once
	codec tokenizer.Codec // nil: it could not be loaded
}

// Name implements meter.Counter.
func (c *counter) Name() string { return string(c.encoding) }

// Text implements meter.Counter. A text is counted in pieces, because the time
// for one word grows with the square of its length; the sum differs by less
// than one token a piece. Of a text of more pieces than sampled, so many are
// counted, evenly spread, and stand for the others: whatever the text, it takes
// some tens of milliseconds at most.
func (c *counter) Text(s string) int64 {
	c.once.Do(func() {
		if codec, err := tokenizer.Get(c.encoding); err == nil {
			c.codec = codec
		}
	})
	if c.codec == nil {
		return meter.Heuristic{}.Text(s)
	}
	every := 1 + (len(s)-1)/(sampled*pieceSize)
	var n, counted int64
	for i, rest := 0, s; rest != ""; i++ {
		piece := rest[:cutAt(rest)]
		rest = rest[len(piece):]
		if i%every != 0 {
			continue
		}
		counted += int64(len(piece))
		if count, err := c.codec.Count(piece); err == nil {
			// The tables lack the delete character, which is a token of its
			// own: the library passes over it.
			n += int64(count) + int64(strings.Count(piece, "\x7f"))
		} else {
			n += meter.Heuristic{}.Text(piece)
		}
	}
	if counted == int64(len(s)) {
		return n
	}
	return int64(float64(n) / float64(counted) * float64(len(s)))
}

const (
	pieceSize = 4096 // bytes
	sampled   = 32
)

// cutAt is where the next piece of a text ends: before a space where there is
// one, because a token seldom goes across it.
func cutAt(s string) int {
	if len(s) <= pieceSize {
		return len(s)
	}
	if i := strings.LastIndexByte(s[:pieceSize], ' '); i > pieceSize/2 {
		return i
	}
	i := pieceSize
	for i > pieceSize-utf8.UTFMax && !utf8.RuneStart(s[i]) {
		i--
	}
	return i
}
