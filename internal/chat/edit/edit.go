// Package edit is the text that a person types: several lines, a cursor, and the
// lines that were sent before.
//
// # Keys
//
//	Left Right Home End       move; Ctrl-B Ctrl-F Ctrl-A Ctrl-E too
//	Alt-Left Alt-Right        move by words; Alt-B Alt-F too
//	Up Down                   move by lines; at the first and last line, history
//	Ctrl-P Ctrl-N             history
//	Backspace Delete Ctrl-D   delete a character
//	Ctrl-W Alt-Backspace      delete the word before the cursor; Alt-D the next
//	Ctrl-U Ctrl-K             delete to the beginning, to the end of the line
//	Ctrl-Y                    put back what was deleted last
//	Alt-Enter Ctrl-Enter      a new line; Ctrl-J too, and \ at the end of a line
//	                          before Enter
//
// # Text
//
// A character is what a terminal shows in one place: a letter with the marks
// that join it is moved over and deleted as one. What could change the screen is
// shown as an escape and stays in the text. The text is at most MaxText long;
// what is more is refused.
package edit

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/outcrop-dev/outcrop/internal/chat/tty"
	"github.com/outcrop-dev/outcrop/internal/term"
)

// MaxText is the longest text, in bytes.
const MaxText = 1 << 20

// Editor is the text and its cursor. The zero value is empty and ready.
type Editor struct {
	text []rune
	at   int // cursor, an index of text
	size int // of text, in bytes
	cut  []rune
	goal int // the column that Up and Down keep to, below 0 for none

	History History

	width  int    // that it was drawn at
	shape  layout // of text at that width
	shaped bool
}

// Text is what was typed.
func (e *Editor) Text() string { return string(e.text) }

// Empty reports that nothing was typed.
func (e *Editor) Empty() bool { return len(e.text) == 0 }

// Set puts another text in place, with the cursor behind it.
func (e *Editor) Set(s string) {
	e.text, e.size = nil, 0
	e.at = 0
	e.Insert(s)
}

// Take empties the editor and returns the text, which goes to the history.
func (e *Editor) Take() string {
	s := e.Text()
	e.History.Add(s)
	e.Set("")
	return s
}

// Before is the text of the line before the cursor.
func (e *Editor) Before() string {
	start := e.lineStart(e.at)
	return string(e.text[start:e.at])
}

// Insert puts text at the cursor. It reports false when there is no room, and
// then nothing changed.
func (e *Editor) Insert(s string) bool {
	s = strings.ToValidUTF8(s, "\ufffd")
	if e.size+len(s) > MaxText {
		return false
	}
	e.changed()
	r := []rune(s)
	e.text = slices.Insert(e.text, e.at, r...)
	e.at += len(r)
	e.size += len(s)
	return true
}

// Replace takes the n bytes before the cursor away and puts s there.
func (e *Editor) Replace(n int, s string) {
	from := e.at
	for ; n > 0 && from > 0; from-- {
		n -= utf8.RuneLen(e.text[from-1])
	}
	e.delete(from, e.at)
	e.Insert(s)
}

// changed forgets what was known of the text and the cursor.
func (e *Editor) changed() { e.shaped, e.goal = false, -1 }

// delete takes the characters from i up to j away.
func (e *Editor) delete(i, j int) {
	if i >= j {
		return
	}
	e.size -= len(string(e.text[i:j]))
	e.text = slices.Delete(e.text, i, j)
	e.at = i
	e.changed()
}

func (e *Editor) kill(i, j int) {
	if i < j {
		e.cut = slices.Clone(e.text[i:j])
		e.delete(i, j)
	}
}

// Key takes a key and reports whether it meant something here. Enter and Tab
// are not for the editor, except Enter behind a backslash.
func (e *Editor) Key(k tty.Key) bool {
	switch k.Name {
	case tty.Text, tty.Paste:
		return e.Insert(k.Text)
	case tty.NewLine:
		return e.Insert("\n")
	case tty.Enter:
		if e.at > 0 && e.text[e.at-1] == '\\' && e.at == e.lineEnd(e.at) {
			e.delete(e.at-1, e.at)
			return e.Insert("\n")
		}
		return false
	case tty.Backspace:
		e.delete(e.prev(e.at), e.at)
	case tty.WordBackspace:
		e.kill(e.wordLeft(), e.at)
	case tty.Delete:
		e.delete(e.at, e.next(e.at))
	case tty.Up, tty.Down:
		return e.vertical(k.Name == tty.Up)
	case tty.Ctrl:
		return e.ctrl(k.Text)
	case tty.Alt:
		return e.alt(k.Text)
	default:
		return e.move(k.Name)
	}
	return true
}

func (e *Editor) move(n tty.Name) bool {
	var to int
	switch n {
	case tty.Left:
		to = e.prev(e.at)
	case tty.Right:
		to = e.next(e.at)
	case tty.WordLeft:
		to = e.wordLeft()
	case tty.WordRight:
		to = e.wordRight()
	case tty.Home:
		to = e.lineStart(e.at)
	case tty.End:
		to = e.lineEnd(e.at)
	default:
		return false
	}
	e.at = to
	e.changed()
	return true
}

func (e *Editor) ctrl(letter string) bool {
	switch letter {
	case "a":
		return e.move(tty.Home)
	case "e":
		return e.move(tty.End)
	case "b":
		return e.move(tty.Left)
	case "f":
		return e.move(tty.Right)
	case "d":
		if e.Empty() {
			return false
		}
		e.delete(e.at, e.next(e.at))
	case "h":
		e.delete(e.prev(e.at), e.at)
	case "w":
		e.kill(e.wordLeft(), e.at)
	case "u":
		e.kill(e.lineStart(e.at), e.at)
	case "k":
		end := e.lineEnd(e.at)
		if end == e.at && end < len(e.text) {
			end++
		}
		e.kill(e.at, end)
	case "y":
		return e.Insert(string(e.cut))
	case "p":
		return e.recall(e.History.Older)
	case "n":
		return e.recall(func(string) (string, bool) { return e.History.Newer() })
	default:
		return false
	}
	return true
}

func (e *Editor) alt(letter string) bool {
	switch letter {
	case "b":
		return e.move(tty.WordLeft)
	case "f":
		return e.move(tty.WordRight)
	case "d":
		e.kill(e.at, e.wordRight())
		return true
	}
	return false
}

// recall replaces the text by one of the history.
func (e *Editor) recall(from func(now string) (string, bool)) bool {
	s, ok := from(e.Text())
	if ok {
		e.text, e.size, e.at = nil, 0, 0
		e.Insert(s)
	}
	return true
}

// prev and next are the borders of characters: marks go with what is before
// them.
func (e *Editor) prev(i int) int {
	for i > 0 {
		i--
		if !e.joins(i) {
			break
		}
	}
	return i
}

func (e *Editor) next(i int) int {
	for i < len(e.text) {
		i++
		if i == len(e.text) || !e.joins(i) {
			break
		}
	}
	return i
}

const joiner = 0x200d // holds emoji together

// joins reports that the character at i is shown in the place of the one before.
func (e *Editor) joins(i int) bool {
	r := e.text[i]
	return i > 0 && e.text[i-1] != '\n' && (term.RuneColumns(r) == 0 || e.text[i-1] == joiner)
}

func (e *Editor) lineStart(i int) int {
	for i > 0 && e.text[i-1] != '\n' {
		i--
	}
	return i
}

func (e *Editor) lineEnd(i int) int {
	for i < len(e.text) && e.text[i] != '\n' {
		i++
	}
	return i
}

func (e *Editor) wordLeft() int {
	i := e.at
	for i > 0 && !inWord(e.text[i-1]) {
		i--
	}
	for i > 0 && inWord(e.text[i-1]) {
		i--
	}
	return i
}

func (e *Editor) wordRight() int {
	i := e.at
	for i < len(e.text) && !inWord(e.text[i]) {
		i++
	}
	for i < len(e.text) && inWord(e.text[i]) {
		i++
	}
	return i
}

func inWord(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' || term.RuneColumns(r) == 0
}

// shown is a character as it is drawn: itself, or an escape.
func shown(r rune) string {
	if r == '\t' {
		return "    "
	}
	return term.Line(string(r))
}
