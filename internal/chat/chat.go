// Package chat is the command chat: a conversation in the terminal.
//
// # Screen
//
// What is finished belongs to the terminal's scrollback: it is printed once, and
// can be scrolled, searched and copied as everything else there. Below it a few
// lines are live:
//
//	Here is what I found                   the answer while it is written
//	✓ read a.txt 0.1 s [1]                 calls, one line each; /show 1 opens it
//	⠹ shell go test ./... 12 s [2]
//	queued: and the docs too               what waits for the next step
//	> _                                    the input
//	deepseek-chat  ⠹ running 12 s  12.3k/128k 9%  1 pending
//
// The screen is drawn at most thirty times a second. Models, tools and files
// cannot steer it: control characters are shown as escapes.
//
// # Keys
//
// Enter sends. While a turn runs it steers: the text enters at the next step.
// Alt-Enter, Ctrl-Enter, Ctrl-J, or \ and Enter begin a new line; a paste never
// sends. Ctrl-C stops the turn, and what was pending goes back to the input;
// while the turn ends, and when nothing runs, Ctrl-C leaves, and so does Ctrl-D
// on an empty input. Text that was not sent is in the history then. Ctrl-O opens
// what was folded last, Tab completes commands and @paths, Ctrl-L clears the
// screen, Ctrl-Z suspends. Escape leaves the reason of a no, and does nothing
// else: it neither stops nor sends anything. Package edit has the other keys.
//
// # Questions
//
// A call that needs approval is printed in full, and the input is replaced by
// y, a, n and e; Enter means no, and confirms an a. A question takes keys only
// when none was pressed for half a second, so that typing cannot answer it.
// While the input holds a draft, the keys stay with the draft after that too:
// Tab or Enter gives them to the question, and does nothing else.
//
// # Sessions
//
// A new session is stored with its first message. One that is taken up shows
// its last turn. Where a crash cut it, that is said and /continue is offered;
// nothing goes on by itself. After errors that a person must mend first (key,
// quota, a context that is too long) nothing is offered.
//
// # Page
//
// With --serve the session is also on a page of package viewer, in this process.
// The page sees the same agent: what either side sends is shown by both, and a
// turn that the page began is stopped by Ctrl-C as any other. A question is asked
// in both; the first answer counts.
//
// # Actions
//
// What a person types behind a slash is an Action in a table; Command takes
// more of them from other packages.
//
// # Why not a library
//
// The live lines are drawn by package tty. Bubble Tea prints lines above its
// view by messages whose order is not kept, draws the view at another moment
// than it prints, and loses lines when more of them than the screen has rows
// are printed; an answer that moves from the live lines to the scrollback
// while it streams needs both in one write, and a resize needs to know what
// stands where.
package chat

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/outcrop-dev/outcrop/history"
	"github.com/outcrop-dev/outcrop/internal/chat/tty"
	"github.com/outcrop-dev/outcrop/internal/desk"
	"github.com/outcrop-dev/outcrop/internal/exit"
	"github.com/outcrop-dev/outcrop/internal/term"
	"github.com/outcrop-dev/outcrop/internal/work"
)

// Command makes the command. how serves the pages of --serve; more are actions
// beside those that every chat has.
func Command(a *desk.Desk, how Serving, more ...Action) *cobra.Command {
	f := work.Flags{Unlimited: true, Answers: true}
	var s served
	c := &cobra.Command{
		Use:   "chat",
		Short: "Talk with the agent, turn after turn, in the terminal",
		Long: `Chat is a conversation in the terminal: in a new session, which is stored with
its first message, or with --session in one that goes on.

Enter sends; while a turn runs it steers the turn. Alt-Enter, Ctrl-J, or \ and
Enter begin a new line. Ctrl-C stops the turn; a second one, or one when nothing
runs, leaves. Escape only goes back from the reason of a no. @path attaches a
file, Tab completes it. /help lists the commands.

The file tools work inside the workspace. The shell is not confined: a command
can do whatever you can. So tools that write or run something ask first, unless
--approve or --yes says something else.

With --serve the session is on a page in a browser too. Both show the same, both
can send, steer, stop and answer; of two answers to a question the first counts.
The address holds a token, and is good as long as the chat runs.`,
		Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			switch {
			case len(args) > 0:
				return exit.Usagef("chat takes no prompt: type it there, or use run %s", term.Quote(args[0]))
			case a.Flags.JSON:
				return exit.Usagef("chat answers no JSON: use run --json")
			}
			if err := s.check(c.Flags()); err != nil {
				return err
			}
			in, out, err := device(a)
			if err != nil {
				return err
			}
			begin := func(ctx context.Context, w *work.Work) (*pages, error) { return s.serve(ctx, w, how) }
			return do(c.Context(), a, f, begin, in, out, more)
		},
	}
	f.Register(c.Flags())
	s.register(c.Flags())
	return c
}

// device is the terminal of the command.
func device(a *desk.Desk) (in, out *os.File, err error) {
	in, isIn := a.Env.Stdin.(*os.File)
	out, isOut := a.Env.Stdout.(*os.File)
	if !isIn || !isOut || !a.Env.Terminal(in) || !a.Env.Terminal(out) || a.Env.Getenv("TERM") == "dumb" {
		return nil, nil, exit.Usagef("chat needs a terminal: use run")
	}
	return in, out, nil
}

// do holds the conversation. Whatever can be refused is refused before a session
// is touched.
func do(ctx context.Context, a *desk.Desk, f work.Flags, serve func(context.Context, *work.Work) (*pages, error), in, out *os.File, more []Action) error {
	w, err := work.Prepare(ctx, a, f)
	if err != nil {
		return err
	}
	p, err := serve(ctx, w)
	if err != nil {
		return err
	}
	if err := w.Open(ctx); err != nil {
		return errors.Join(err, p.close())
	}
	err = talk(ctx, w, p, in, out, more)
	// What is committed is saved even when ctx is over.
	closeErr := errors.Join(p.close(), w.Close(context.WithoutCancel(ctx)))
	for _, e := range []error{err, closeErr} {
		if e != nil && !errors.Is(e, context.Canceled) {
			a.Problem(e)
		}
	}
	if w.Stored() && !a.Flags.Quiet {
		fmt.Fprintln(a.ErrOut, w.GoOn())
	}
	switch {
	case err != nil:
		return exit.With(exit.Code(err), nil)
	case closeErr != nil:
		return exit.With(1, nil)
	}
	return nil
}

// talk is the time in which the terminal is the chat's.
func talk(ctx context.Context, w *work.Work, p *pages, in, out *os.File, more []Action) error {
	a := w.Desk()
	t, err := tty.Open(in, out)
	if err != nil {
		return exit.Usagef("chat needs a terminal: use run (%v)", err)
	}
	defer func() { _ = t.Close() }() // a panic must not leave a raw terminal behind
	cols, rows := t.Size()
	style := term.Style(a.Env.Getenv("NO_COLOR") == "")
	c := newChat(w, p, t, style, cols, rows, slices.Concat(ownActions(), pastActions(), more))
	w.Notify = func(n history.Notice) { c.Print(term.Line(n.Text)) }
	if a.Env.Terminal(a.Env.Stderr) {
		back := a.Divert(c.notes)
		defer back()
	}
	err = c.run(ctx)
	return errors.Join(err, t.Close())
}

// explain is an error in one line.
func explain(err error) string { return exit.Explain(err) }
