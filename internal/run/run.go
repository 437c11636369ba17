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
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/agent"
	"github.com/outcrop-dev/outcrop/internal/config"
	"github.com/outcrop-dev/outcrop/internal/desk"
	"github.com/outcrop-dev/outcrop/internal/exit"
	"github.com/outcrop-dev/outcrop/internal/term"
	"github.com/outcrop-dev/outcrop/message"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/workspace"
)

// runFlags are the flags of run.
type runFlags struct {
	session  string
	model    string
	script   string
	approve  string
	yes      bool
	dsh      bool
	system   string
	chunks   bool
	maxSteps int
	maxCost  float64
}

// Command makes the command.
func Command(a *desk.Desk) *cobra.Command {
	var f runFlags
	c := &cobra.Command{
		Use:   "run [PROMPT]",
		Short: "Do one task to its end, in a new session or in one that goes on",
		Long: `Run gives PROMPT to the agent and ends when the turn ends. Without PROMPT it is
read from stdin; with --session and no prompt at all, input goes on that waits
in the session.

On a terminal the answer streams. Into a pipe stdout gets the text of the last
answer alone. With --json each committed event is one line, then the result.

The tools read, list and write work inside the workspace. The shell is not
confined: a command can do whatever you can. So write and shell ask first, when
stdin and stderr are a terminal, and are refused otherwise unless --approve or
--yes says something else.`,
		Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			r := run{a: a, runFlags: f, stepsSet: c.Flags().Changed("max-steps"), costSet: c.Flags().Changed("max-cost")}
			return r.do(c.Context(), args)
		},
	}
	fl := c.Flags()
	fl.StringVar(&f.session, "session", "", "go on in this `SESSION`: id, start of one, last, or path of a log file")
	fl.StringVar(&f.model, "model", "", "the model, as `PROVIDER:MODEL` (OUTCROP_MODEL)")
	fl.StringVar(&f.script, "script", "", "play the replies in this `FILE` instead of asking a model")
	fl.StringVar(&f.approve, "approve", "", "`WHAT` needs no question: ask (nothing), edits, all; none refuses all but reading")
	fl.BoolVar(&f.yes, "yes", false, "the same as --approve all")
	fl.BoolVar(&f.dsh, "dsh", false, "make a session that DeepSeek Harness can read too")
	fl.StringVar(&f.system, "system", "", "take the system prompt from this `FILE`")
	fl.BoolVar(&f.chunks, "chunks", false, "with --json: print the pieces of replies too")
	fl.IntVar(&f.maxSteps, "max-steps", 0, "end the turn after `N` steps (default 200; 0: no limit)")
	fl.Float64Var(&f.maxCost, "max-cost", 0, "call no model once this many `USD` are spent (0: no limit)")
	return c
}

// run is one run of the command.
type run struct {
	runFlags
	a                 *desk.Desk
	stepsSet, costSet bool

	prompt string
	target *desk.Target     // nil for a new session
	stored *outcrop.Session // the session as it is stored, nil for a new one
	dir    string           // workspace
	cfg    *config.Config
	policy agent.Policy
	system string
	with   chosen

	live *store.Live
}

// do runs the task. Whatever can be refused is refused before a session is
// touched.
func (r *run) do(ctx context.Context, args []string) error {
	for _, step := range []func(context.Context) error{
		func(context.Context) error { return r.checkFlags() },
		func(context.Context) error { return r.readPrompt(args) },
		r.findSession,
		func(context.Context) error { return r.configure() },
		r.chooseModel,
		r.open,
	} {
		if err := step(ctx); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	err := r.task(ctx)
	// What is committed is saved even when ctx is over.
	closeErr := r.live.Close(context.WithoutCancel(ctx))
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
	if r.live.Durable() > 0 && !r.a.Flags.Quiet {
		fmt.Fprintln(r.a.ErrOut, r.goOn())
	}
	return err
}

func (r *run) checkFlags() error {
	switch {
	case r.script != "" && r.model != "":
		return exit.Usagef("--script and --model are two models: give one of them")
	case r.yes && r.approve != "" && r.approve != string(agent.AllowAll):
		return exit.Usagef("--yes is --approve all, but --approve says %s: give one of them", term.Quote(r.approve))
	case r.dsh && r.session != "":
		return exit.Usagef("--dsh is for a new session: the one of --session stays what it is")
	case r.maxSteps < 0:
		return exit.Usagef("--max-steps %d: give a number from 1 on, or 0 for no limit", r.maxSteps)
	case !(r.maxCost >= 0 && r.maxCost < 1e9):
		return exit.Usagef("--max-cost %g: give US dollars, or 0 for no limit", r.maxCost)
	case r.chunks && !r.a.Flags.JSON:
		return exit.Usagef("--chunks goes with --json")
	}
	return nil
}

// findSession reads the session that goes on, as it is stored, and finds the
// workspace.
func (r *run) findSession(ctx context.Context) error {
	var stated *string
	if r.session != "" {
		t, err := r.a.Resolve(ctx, r.session)
		if err != nil {
			return err
		}
		s, _, err := store.Inspect(ctx, t.Store, t.ID, outcrop.Options{})
		if err != nil {
			return exit.Unreadable(err)
		}
		r.target, r.stored = t, s
		stated = s.Header().Cwd
	}
	if d := r.a.Flags.Cwd; d != "" {
		r.dir = r.a.Path(d)
		return r.checkDir("--cwd " + term.Line(d))
	}
	here, err := r.a.WorkingDir()
	if err != nil {
		return err
	}
	r.dir = here
	if stated != nil {
		r.dir = *stated
		if fi, err := os.Stat(r.dir); err != nil || !fi.IsDir() {
			r.a.Note("the session's workspace %s is not here: working in %s", term.Line(r.dir), term.Line(here))
			r.dir = here
		}
	}
	return r.checkDir(term.Line(r.dir))
}

func (r *run) checkDir(name string) error {
	fi, err := os.Stat(r.dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return exit.Usagef("%s: there is no such folder: name the workspace with --cwd DIR", name)
	case err != nil:
		return exit.With(2, err)
	case !fi.IsDir():
		return exit.Usagef("%s is not a folder: name the workspace with --cwd DIR", name)
	}
	return nil
}

// configure puts flags over the configuration.
func (r *run) configure() (err error) {
	if r.cfg, err = r.a.LoadConfig(r.dir); err != nil {
		return err
	}
	approve := r.cfg.Approve
	if r.approve != "" {
		approve = r.approve
	}
	if r.yes {
		approve = string(agent.AllowAll)
	}
	switch p := agent.Policy(approve); p {
	case "":
		r.policy = agent.AskAll
	case agent.AskAll, agent.AskExec, agent.AllowAll, agent.AllowRead:
		r.policy = p
	default:
		return exit.Usagef("--approve %s: use ask, edits, all or none", term.Quote(approve))
	}
	r.system, err = r.readSystem()
	return err
}

// open takes the session up, or makes a new one. A new one is not stored before
// its first event is.
func (r *run) open(ctx context.Context) (err error) {
	o := store.Options{Session: outcrop.Options{Now: r.a.Now, NewID: r.a.Env.NewID, Logger: r.a.Logger}}
	if r.target != nil {
		if r.live, err = store.Open(ctx, r.target.Store, r.target.ID, o); err == nil {
			r.tellRepair()
		}
		return err
	}
	st, err := r.a.OpenStore()
	if err != nil {
		return err
	}
	h := outcrop.NewHeader(r.a.Env.NewID(), r.a.Now(), r.dir)
	if r.dsh {
		h.Outcrop = 0
	}
	r.live, err = store.Create(ctx, st, h, o)
	return err
}

// task runs the agent on the open session.
func (r *run) task(ctx context.Context) error {
	tools, closeTools, err := r.tools()
	if err != nil {
		return err
	}
	defer closeTools()
	s := r.live.Session()
	out := r.newOutput(s)
	ag, err := agent.New(agent.Options{
		Live:     r.live,
		Provider: r.with.resumed(s.Log()),
		Config:   r.with.config,
		Window:   r.with.window,
		Price:    r.with.price,
		System:   r.system,
		Tools:    tools,
		Contexts: func(ctx context.Context) []workspace.Context {
			return []workspace.Context{workspace.Sample(ctx, r.dir, r.a.Env.Now()).Context()}
		},
		Policy:   r.policy,
		Approver: r.approver(out),
		Limits:   agent.Limits{Steps: r.steps(), CostMicroUSD: r.cost()},
		NewID:    r.a.Env.NewID,
		Logger:   r.a.Logger,
	})
	if err != nil {
		return err
	}
	// Nothing is appended between these two, the agent is idle.
	for ev := range outcrop.Events(s.Log(), s.Stored()) {
		out.event(ev)
	}
	stopObserving := ag.Observe(out.event)
	err = r.start(ctx, ag)
	if err == nil {
		err = r.wait(ctx, ag, out, stopObserving)
	}
	return errors.Join(err, ag.Close(context.WithoutCancel(ctx)))
}

// start gives the agent what there is to do.
func (r *run) start(ctx context.Context, ag *agent.Agent) error {
	if r.prompt != "" {
		_, err := ag.Send(ctx, message.Message{Content: []message.Block{message.Text(r.prompt)}})
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
	return r.verdict(ctx, end)
}

// verdict says why the turn ended, when it did not simply end, and gives the
// exit code.
func (r *run) verdict(ctx context.Context, end agent.Outcome) error {
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
			why = f.Message
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

// goOn is the line that says how to go on with the session.
func (r *run) goOn() string {
	id := r.live.Session().ID()
	name := id
	if r.target != nil && r.target.Path != "" {
		name = r.target.Name
	}
	where := ""
	if r.a.Flags.Store != "" {
		where = " --store " + term.Word(r.a.Flags.Store)
	}
	return fmt.Sprintf(`session %s | %s run%s --session %s "..."`, term.Line(id), r.a.Env.Program, where, term.Word(name))
}

func (r *run) steps() int {
	if r.stepsSet {
		return r.maxSteps
	}
	return r.cfg.Limits.Steps
}

func (r *run) cost() int64 {
	usd := r.cfg.Limits.CostUSD
	if r.costSet {
		usd = r.maxCost
	}
	return int64(usd * 1e6)
}
