package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/outcrop-dev/outcrop/agent"
)

// approver is who is asked about calls: a person at a terminal, or nobody.
func (r *run) approver(out *output) agent.Approver {
	a := r.a
	if a.flags.json || !a.env.Terminal(a.env.Stdin) || !a.env.Terminal(a.env.Stderr) {
		return nil
	}
	return &terminalApprover{
		in: &lineReader{r: a.env.Stdin}, err: a.errOut, shown: out.shown,
		style: style(a.env.Getenv("NO_COLOR") == "" && a.env.Getenv("TERM") != "dumb"),
		fresh: func() {
			if f, ok := a.env.Stdin.(*os.File); ok {
				dropTyped(f)
			}
		},
	}
}

// terminalApprover asks on stderr and reads the answer from stdin.
type terminalApprover struct {
	in    *lineReader
	err   io.Writer
	style style
	// shown waits until what led to the question is on the screen.
	shown func(ctx context.Context, question string)
	// fresh drops what was typed before the question could be seen.
	fresh func()
}

// mostPreview is how many lines of a diff or command are shown at once. All of
// them are: who approves sees everything, the number only decides whether the
// question repeats the first line below it.
const mostPreview = 20

const choices = "[y] once  [a] this exact call for this session  [n] no  [e] no, and tell the model why: "

// Approve implements agent.Approver. Enter alone means no, and so does the end
// of the input.
func (t *terminalApprover) Approve(ctx context.Context, q agent.Question) (agent.Answer, error) {
	t.shown(ctx, q.ID)
	if err := ctx.Err(); err != nil {
		return agent.Answer{}, err
	}
	t.fresh()
	fmt.Fprint(t.err, t.text(q))
	for {
		fmt.Fprint(t.err, choices)
		line, err := t.in.read(ctx)
		switch {
		case errors.Is(err, io.EOF):
			fmt.Fprintln(t.err)
			return agent.Answer{Verdict: agent.Reject}, nil
		case err != nil:
			fmt.Fprintln(t.err)
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
			fmt.Fprint(t.err, "why: ")
			why, err := t.in.read(ctx)
			if err != nil && !errors.Is(err, io.EOF) {
				fmt.Fprintln(t.err)
				return agent.Answer{}, err
			}
			return agent.Answer{Verdict: agent.Reject, Reason: strings.TrimSpace(why)}, nil
		}
	}
}

// text is the call as a person is shown it: the tool, the whole command or
// diff, the folder. Control characters are escapes.
func (t *terminalApprover) text(q agent.Question) string {
	var b strings.Builder
	title := q.Preview.Title
	if title == "" {
		title = q.Arguments
	}
	question := t.style.bold("allow " + escapeLine(q.Tool) + "?")
	if title != q.Tool {
		question += " " + escapeLine(title)
	}
	body := strings.TrimRight(q.Preview.Body, "\n")
	fmt.Fprintln(&b, question)
	if q.Preview.Dir != "" {
		fmt.Fprintf(&b, "  in %s\n", escapeLine(q.Preview.Dir))
	}
	if body == "" || body == title {
		return b.String()
	}
	lines := strings.Split(body, "\n")
	for _, l := range lines {
		shown := escapeLine(strings.ReplaceAll(l, "\t", "    "))
		switch {
		case strings.HasPrefix(l, "+"):
			shown = t.style.green(shown)
		case strings.HasPrefix(l, "-"):
			shown = t.style.red(shown)
		}
		fmt.Fprintf(&b, "  | %s\n", shown)
	}
	if len(lines) > mostPreview {
		fmt.Fprintln(&b, question)
	}
	return b.String()
}

// lineReader reads lines from a stream whose reads cannot be interrupted. It
// reads only when it is asked: what is typed between two questions stays in the
// terminal, where it can be dropped. A read that was given up answers the next
// question.
type lineReader struct {
	r   io.Reader
	in  *bufio.Reader
	got chan readLine // not nil: a read is under way
}

type readLine struct {
	text string
	err  error
}

func (l *lineReader) read(ctx context.Context) (string, error) {
	if l.in == nil {
		l.in = bufio.NewReader(l.r)
	}
	if l.got == nil {
		got := make(chan readLine, 1)
		l.got = got
		go func() {
			text, err := l.in.ReadString('\n')
			if text != "" {
				err = nil // a last line without a newline
			}
			got <- readLine{text, err}
		}()
	}
	select {
	case v := <-l.got:
		l.got = nil
		return v.text, v.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}
