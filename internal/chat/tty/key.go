package tty

// Name says which key it is.
type Name int

const (
	Text  Name = iota // characters to insert: Key.Text
	Paste             // the same, pasted; it never submits
	Ctrl              // a letter with Ctrl: Key.Text is the small letter
	Alt               // a character with Alt: Key.Text
	Enter
	NewLine // Enter with Alt, Ctrl or Shift, and Ctrl-J
	Tab
	BackTab
	Escape
	Backspace
	WordBackspace // with Alt or Ctrl
	Delete
	Up
	Down
	Left
	Right
	WordLeft // with Alt or Ctrl
	WordRight
	Home
	End
	PageUp
	PageDown
)

// Key is one key, or one paste.
type Key struct {
	Name Name
	Text string
}
