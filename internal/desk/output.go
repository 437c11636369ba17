package desk

import (
	"io"

	"github.com/outcrop-dev/outcrop/internal/term"
	"github.com/outcrop-dev/outcrop/internal/view"
)

// Line writes one JSON answer and its newline.
func (a *Desk) Line(b []byte) error {
	if _, err := a.Out.Write(b); err != nil {
		return err
	}
	return a.Out.WriteByte('\n')
}

// Text writes to stdout.
func (a *Desk) Text(s string) { io.WriteString(a.Out, s) }

// Style says whether stdout gets colour.
func (a *Desk) Style() term.Style {
	return term.Style(a.Env.Getenv("NO_COLOR") == "" && a.Env.Getenv("TERM") != "dumb" && a.Env.Terminal(a.Env.Stdout))
}

// Printer prints events to stdout.
func (a *Desk) Printer() view.Printer { return view.Printer{W: a.Out, Style: a.Style()} }
