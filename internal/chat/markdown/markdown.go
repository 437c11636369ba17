// Package markdown shows the markdown of a model's answer on a terminal while it
// comes.
//
// Text goes in as it arrives, in pieces of any size. Lines come out as soon as
// nothing that follows can change them: a line of code when its newline is
// there, a paragraph when it ends, a table when its last row is known. What is
// not finished is drawn by Tail. Both work on what is new, not on the whole
// answer, and a block that does not end is let go in parts, so memory and time
// do not grow with the answer.
//
// # What is shown
//
//	# heading          bold
//	paragraph          wrapped at words; its line breaks stay
//	- item, 1. item    hanging indent, at most six levels
//	> quote            behind a bar
//	``` code ```       indented, not wrapped: the terminal wraps it, so that it
//	                   can be copied
//	| table |          columns aligned; cells are wrapped when it is too wide
//	---                a line
//	**bold** *italic* `code` ~~struck~~ [text](address)
//
// Without colours markup inside a line stays as it was written. HTML is text;
// of its entities only the five of XML and nbsp are known, so no control
// character can come out of one.
//
// # Untrusted
//
// Control characters, format characters and bytes that are no UTF-8 are shown
// as escapes (see term.Text): what a model writes cannot move the cursor.
package markdown

import (
	"strings"
	"unicode/utf8"

	"github.com/outcrop-dev/outcrop/internal/term"
)

const (
	// maxBlock is how long a block may grow, in bytes, before its finished
	// lines are let go.
	maxBlock = 8 << 10
	// maxLine is how long a line may grow before it is taken as complete.
	maxLine = 4 << 10
	// maxRows is how many rows of a table are aligned with each other.
	maxRows = 200
)

// Stream shows one answer. New makes it.
type Stream struct {
	style term.Style
	width int

	rest  string // a line that is not complete yet, safe
	torn  string // bytes of a character that is not complete yet
	block block
	lines []string // finished
	begun bool     // there was a line that is not empty
	owed  int      // empty lines that stand before the next one that is not
}

// New begins an answer on a terminal that is width columns wide.
func New(style term.Style, width int) *Stream {
	s := &Stream{style: style}
	s.Resize(width)
	return s
}

// Resize takes another width for what is not finished.
func (s *Stream) Resize(width int) { s.width = max(width, 10) }

// Write takes the next piece.
func (s *Stream) Write(text string) {
	text = s.torn + text
	whole := len(text) - tornTail(text)
	s.torn = text[whole:]
	s.rest += safe(text[:whole])
	for {
		i := strings.IndexByte(s.rest, '\n')
		if i < 0 {
			break
		}
		s.line(s.rest[:i])
		s.rest = s.rest[i+1:]
	}
	for len(s.rest) > maxLine {
		n := strings.LastIndexByte(s.rest[:maxLine], ' ') + 1
		if n == 0 {
			for n = maxLine; !utf8.RuneStart(s.rest[n]); n-- {
			}
		}
		s.part(s.rest[:n])
		s.rest = s.rest[n:]
	}
}

// safe is text without what could change the screen, and without tabs.
func safe(s string) string {
	return strings.ReplaceAll(term.Text(strings.ReplaceAll(s, "\r\n", "\n")), "\t", "    ")
}

// tornTail is how many bytes at the end are the beginning of a character.
func tornTail(s string) int {
	for n := 1; n <= min(3, len(s)); n++ {
		c := s[len(s)-n]
		if utf8.RuneStart(c) {
			if c >= utf8.RuneSelf && !utf8.FullRuneInString(s[len(s)-n:]) {
				return n
			}
			return 0
		}
	}
	if strings.HasSuffix(s, "\r") {
		return 1
	}
	return 0
}

// Close takes everything as finished. The stream can be used for another answer
// then.
func (s *Stream) Close() {
	s.rest += safe(s.torn)
	s.torn = ""
	if s.rest != "" {
		s.line(s.rest)
		s.rest = ""
	}
	s.endBlock()
	s.block = block{}
	s.begun, s.owed = false, 0
}

// Lines returns the lines that were finished since the last call.
func (s *Stream) Lines() []string {
	out := s.lines
	s.lines = nil
	return out
}

// Tail is what is not finished yet, as it looks now: its last lines, at most
// most of them.
func (s *Stream) Tail(most int) []string {
	if s.rest == "" && s.block.empty() {
		return nil
	}
	// The line that is not complete may still become anything; it is drawn as
	// what it is so far, by a stream that is thrown away.
	probe := Stream{style: s.style, width: s.width, block: s.block.clone(), begun: s.begun, owed: s.owed}
	if s.rest != "" {
		probe.line(s.rest)
	}
	if !probe.block.fenced() {
		probe.endBlock()
	}
	lines := probe.lines
	if n := len(lines) - most; n > 0 {
		lines = lines[n:]
	}
	return lines
}

// emit finishes a line. Empty lines come with the next one that is not empty:
// of several in a row one is shown, at the end none.
func (s *Stream) emit(line string) {
	if line == "" {
		if s.begun {
			s.owed = max(s.owed, 1)
		}
		return
	}
	for ; s.owed > 0; s.owed-- {
		s.lines = append(s.lines, "")
	}
	s.begun = true
	s.lines = append(s.lines, line)
}
