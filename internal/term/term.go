// Package term makes text for people and terminals.
//
// # Text
//
// Data of a log never reaches a terminal as it is. Line, OneLine and Quote give
// one line, Text several: control characters, format characters and bytes that
// are no UTF-8 become escapes (\n, \e, \x07, \u{202e}), printable text and the
// zero width joiner stay. Word is a word that a shell reads back.
//
// # Columns
//
// Text for people takes at most Width columns. A column is what a terminal
// gives to a letter: wide characters of East Asia and most emoji take two,
// marks that join the character before take none. Columns, Cut, Pad, PadLeft
// and Wrap count in them, and expect text that was made safe.
//
// # Numbers
//
// Count, Plural, Size, Age and Time write numbers in a width that is known.
//
// # Terminals
//
// Is asks the system whether a stream is a terminal. A Style writes the colours
// that every terminal has, by their ANSI codes, or nothing. A Progress draws a
// bar of its own line and takes it away again:
//
//	reading [############                  ]  40%
package term
