package desk

import (
	"io"

	"github.com/outcrop-dev/outcrop/internal/term"
	"github.com/outcrop-dev/outcrop/internal/view"
)

// Line writes one JSON answer and its newline.
func (a *Desk) Line(b []byte) error {
	w := a.JSON()
	if _, err := w.Write(b); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	return a.Out.WriteByte('\n')
}

// JSON is stdout for JSON text: to a terminal it goes with what would act on one
// escaped, anywhere else byte for byte. Close it at the end of the text.
func (a *Desk) JSON() io.WriteCloser {
	if a.Env.Terminal(a.Env.Stdout) {
		return &term.JSONWriter{W: a.Out}
	}
	return bytesAsTheyAre{a.Out}
}

type bytesAsTheyAre struct{ io.Writer }

func (bytesAsTheyAre) Close() error { return nil }

// Text writes to stdout.
func (a *Desk) Text(s string) { io.WriteString(a.Out, s) }

// Style says whether stdout gets colour.
func (a *Desk) Style() term.Style {
	return term.Style(a.Env.Getenv("NO_COLOR") == "" && a.Env.Getenv("TERM") != "dumb" && a.Env.Terminal(a.Env.Stdout))
}

// Printer prints events to stdout.
func (a *Desk) Printer() view.Printer { return view.Printer{W: a.Out, Style: a.Style()} }
