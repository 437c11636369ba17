// Package ask asks a person at a terminal about calls.
//
// A question shows the tool, the whole command or diff, and the folder; control
// characters are escapes. Nothing of it is left out: who approves sees
// everything. Answers are lines: y once, a this exact call for the session, n or
// nothing no, e no with a reason for the model. The end of the input means no.
// What was typed before the question was on the screen is dropped.
package ask

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/outcrop-dev/outcrop/agent"
	"github.com/outcrop-dev/outcrop/internal/term"
)

// Options are what questions need. All of them must be given.
type Options struct {
	In    io.Reader
	Out   io.Writer
	Style term.Style
	// Shown waits until what led to the question is on the screen.
	Shown func(ctx context.Context, question string)
	// Fresh drops what was typed before the question could be seen.
	Fresh func()
}

// Terminal asks on one stream and reads the answer from another.
type Terminal struct {
	in *lineReader
	o  Options
}

// New makes the approver.
func New(o Options) *Terminal { return &Terminal{in: &lineReader{r: o.In}, o: o} }

// mostPreview is how many lines of a diff or command are shown at once. All of
// them are: who approves sees everything, the number only decides whether the
// question repeats the first line below it.
const mostPreview = 20

const choices = "[y] once  [a] this exact call for this session  [n] no  [e] no, and tell the model why: "

// Approve implements agent.Approver. Enter alone means no, and so does the end
// of the input.
func (t *Terminal) Approve(ctx context.Context, q agent.Question) (agent.Answer, error) {
	t.o.Shown(ctx, q.ID)
	if err := ctx.Err(); err != nil {
		return agent.Answer{}, err
	}
	t.o.Fresh()
	fmt.Fprint(t.o.Out, Text(q, t.o.Style))
	for {
		fmt.Fprint(t.o.Out, choices)
		line, err := t.in.read(ctx)
		switch {
		case errors.Is(err, io.EOF):
			fmt.Fprintln(t.o.Out)
			return agent.Answer{Verdict: agent.Reject}, nil
		case err != nil:
			fmt.Fprintln(t.o.Out)
			return agent.Answer{}, err
		}
		switch strings.ToLower(strings.TrimSpace(line)) {
		case "y", "yes":
			return agent.Answer{Verdict: agent.AllowOnce}, nil
		case "a":
			return agent.Answer{Verdict: agent.AllowSame}, nil
		case "", "n", "no":
			return agent.Answer{Verdict: agent.Reject}, nil
		case "e":
			fmt.Fprint(t.o.Out, "why: ")
			why, err := t.in.read(ctx)
			if err != nil && !errors.Is(err, io.EOF) {
				fmt.Fprintln(t.o.Out)
				return agent.Answer{}, err
			}
			return agent.Answer{Verdict: agent.Reject, Reason: strings.TrimSpace(why)}, nil
		}
	}
}

// Text is the call as a person is shown it: the tool, the whole command or
// diff, the folder. Control characters are escapes.
func Text(q agent.Question, style term.Style) string {
	var b strings.Builder
	title := q.Preview.Title
	if title == "" {
		title = q.Arguments
	}
	question := style.Bold("allow " + term.Line(q.Tool) + "?")
	if title != q.Tool {
		question += " " + term.Line(title)
	}
	body := strings.TrimRight(q.Preview.Body, "\n")
	fmt.Fprintln(&b, question)
	if q.Preview.Dir != "" {
		fmt.Fprintf(&b, "  in %s\n", term.Line(q.Preview.Dir))
	}
	if body == "" || body == title {
		return b.String()
	}
	lines := strings.Split(body, "\n")
	for _, l := range lines {
		shown := term.Line(strings.ReplaceAll(l, "\t", "    "))
		switch {
		case strings.HasPrefix(l, "+"):
			shown = style.Green(shown)
		case strings.HasPrefix(l, "-"):
			shown = style.Red(shown)
		}
		fmt.Fprintf(&b, "  | %s\n", shown)
	}
	if len(lines) > mostPreview {
		fmt.Fprintln(&b, question)
	}
	return b.String()
}
