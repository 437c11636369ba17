// Package run is the command run: one task to its end, in a new session or in
// one that goes on.
//
// Whatever can be refused (flags, prompt, session, configuration, model) is
// refused before a session is touched. Then the session is opened, repaired
// where a crash has left it open, and the agent does its turn. What is committed
// is saved even when the run is interrupted, and the last line on stderr is the
// command that goes on with the session.
//
// On a terminal the answer streams to stdout; into a pipe stdout gets the text
// of the last answer alone; with --json each committed event is one line, then
// the result. Calls, retries and questions go to stderr.
package run

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/agent"
	"github.com/outcrop-dev/outcrop/internal/desk"
	"github.com/outcrop-dev/outcrop/internal/exit"
	"github.com/outcrop-dev/outcrop/internal/work"
	"github.com/outcrop-dev/outcrop/message"
)

// run is one run of the command.
type run struct {
	a      *desk.Desk
	flags  work.Flags
	attach []string
	chunks bool

	prompt string
	again  *again // a prompt is sent once more, nil for run
	w      *work.Work
}

// Command makes the command.
func Command(a *desk.Desk) *cobra.Command {
	r := run{a: a}
	c := &cobra.Command{
		Use:   "run [PROMPT]",
		Short: "Do one task to its end, in a new session or in one that goes on",
		Long: `Run gives PROMPT to the agent and ends when the turn ends. Without PROMPT it is
read from stdin; with --session and no prompt at all, input goes on that waits
in the session. A last word - puts what stdin holds behind the PROMPT:

  git diff | outcrop run "Review this change." -

Without it stdin is not read beside a PROMPT.

On a terminal the answer streams. Into a pipe stdout gets the text of the last
answer alone. With --json each committed event is one line, then the result.

The file tools work inside the workspace. The shell is not confined: a command
can do whatever you can. So tools that write or run something ask first, when
stdin and stderr are a terminal, and are refused otherwise unless --approve or
--yes says something else.`,
		Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error { return r.do(c.Context(), args) },
	}
	fl := c.Flags()
	r.flags.Register(fl)
	fl.StringArrayVar(&r.attach, "attach", nil, "give this `FILE` along: an image or text; may be repeated")
	fl.BoolVar(&r.chunks, "chunks", false, "with --json: print the pieces of replies too")
	return c
}

// do runs the task. Whatever can be refused is refused before a session is
// touched.
func (r *run) do(ctx context.Context, args []string) (err error) {
	if r.chunks && !r.a.Flags.JSON {
		return exit.Usagef("--chunks goes with --json")
	}
	if r.again == nil {
		if err := r.readPrompt(args); err != nil {
			return err
		}
	}
	if r.w, err = work.Prepare(ctx, r.a, r.flags); err != nil {
		return err
	}
	here, err := r.a.WorkingDir()
	if err != nil {
		return err
	}
	attached, err := r.w.Attach(ctx, here, r.attach)
	if err != nil {
		return err
	}
	if text := r.w.Unseen(attached); text != "" {
		r.a.Note("%s", text)
	}
	if r.again != nil && r.again.dry {
		return r.wouldRetry(ctx)
	}
	if err := r.w.Open(ctx); err != nil {
		return errors.Join(err, r.w.Close(context.WithoutCancel(ctx)))
	}
	err = r.task(ctx, attached)
	// What is committed is saved even when ctx is over.
	closeErr := r.w.Close(context.WithoutCancel(ctx))
	r.a.Out.Flush()
	for _, e := range []error{err, closeErr} {
		var said *exit.Error
		if e != nil && (!errors.As(e, &said) || said.Err != nil) {
			r.a.Problem(e)
		}
	}
	switch {
	case err != nil:
		err = exit.With(exit.Code(err), nil)
	case closeErr != nil:
		err = exit.With(1, nil)
	}
	// The last line, whatever came before.
	if r.w.Stored() && !r.a.Flags.Quiet {
		fmt.Fprintln(r.a.ErrOut, r.w.GoOn())
	}
	return err
}

// task runs the agent on the open session.
func (r *run) task(ctx context.Context, attached []message.Block) error {
	s := r.w.Session()
	if r.again != nil {
		if err := r.takeBack(s); err != nil {
			return err
		}
	} else if cut, ok := work.LastCut(s.Log()); ok {
		r.a.Note("%s", cut)
	}
	out := r.newOutput()
	ag, err := r.w.Engage(ctx, r.approver(out))
	if err != nil {
		return err
	}
	// Nothing is appended between these two, the agent is idle.
	for ev := range outcrop.Events(s.Log(), s.Stored()) {
		out.event(ev)
	}
	stopObserving := ag.Observe(out.event)
	if err := r.start(ctx, ag, attached); err != nil {
		return err
	}
	return r.wait(ctx, ag, out, stopObserving)
}

// start gives the agent what there is to do.
func (r *run) start(ctx context.Context, ag *agent.Agent, attached []message.Block) error {
	if r.again != nil {
		_, err := ag.Send(ctx, r.again.message)
		return err
	}
	content := attached
	if r.prompt != "" {
		content = append([]message.Block{message.Text(r.prompt)}, attached...)
	}
	if len(content) > 0 {
		_, err := ag.Send(ctx, message.Message{Content: content})
		return err
	}
	pending, err := ag.Wake(ctx)
	if err == nil && !pending {
		err = nothingToDo()
	}
	return err
}

func nothingToDo() error { return exit.Usagef("nothing to do: give a prompt") }

// wait sees the turn to its end. When ctx is over the turn is cancelled, and
// ends in good order.
func (r *run) wait(ctx context.Context, ag *agent.Agent, out *output, stopObserving func()) error {
	always := context.WithoutCancel(ctx)
	cancelled := context.AfterFunc(ctx, func() {
		if _, err := ag.Cancel(always, agent.Cause{Kind: agent.ByUser}); err != nil && !errors.Is(err, agent.ErrClosed) {
			r.a.Logger.Warn("the turn cannot be cancelled", "err", err)
		}
	})
	end, err := ag.Wait(always)
	cancelled()
	stopObserving()
	if err != nil {
		return err
	}
	out.end(end)
	return r.verdict(ctx, end, out.retries)
}

// verdict says why the turn ended, when it did not simply end, and gives the
// exit code.
func (r *run) verdict(ctx context.Context, end agent.Outcome, retries int) error {
	why := ""
	switch end.Reason.Kind {
	case outcrop.Completed:
	case outcrop.MaxTokens:
		why = "the answer is cut off: the model reached its output limit"
	case outcrop.TurnAborted:
		if ctx.Err() != nil && end.Reason.Abort.Kind == string(agent.ByUser) {
			return ctx.Err()
		}
		why = "the turn was ended: " + end.Reason.Abort.Kind
		if end.Reason.Abort.Reason != "" {
			why = end.Reason.Abort.Reason
		}
	case outcrop.TurnError:
		why = "the turn failed"
		if f := end.Reason.Error; f != nil {
			why = work.Failed(f, retries)
		}
	default:
		why = "the turn ended as " + string(end.Reason.Kind)
	}
	if end.Err != nil {
		if why != "" && !strings.Contains(end.Err.Error(), why) {
			return exit.With(1, fmt.Errorf("%s: %w", why, end.Err))
		}
		return exit.With(1, end.Err)
	}
	if why != "" {
		return exit.Refusedf("%s", why)
	}
	return nil
}
