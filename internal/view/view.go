// Package view prints the events of a log for a person.
//
// A conversation is messages: a line that says who speaks, below it what is
// said, indented. Of reasoning and tool results only the beginning is shown,
// with how much is left. A surface is one line for each node, and below it,
// deeper by a step for each stratum, what it covers.
//
// All of it takes at most 80 columns, colour apart, and control characters of
// the data are escapes.
package view

import (
	"io"

	"github.com/outcrop-dev/outcrop/internal/term"
)

// Printer writes to W. It does not report errors of writing: W keeps them, as a
// bufio.Writer does.
type Printer struct {
	W     io.Writer
	Style term.Style
}

func (p Printer) text(s string) { _, _ = io.WriteString(p.W, s) }
