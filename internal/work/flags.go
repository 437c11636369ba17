package work

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/spf13/pflag"

	"github.com/outcrop-dev/outcrop/agent"
	"github.com/outcrop-dev/outcrop/internal/exit"
	"github.com/outcrop-dev/outcrop/internal/term"
	"github.com/outcrop-dev/outcrop/llm"
)

// MaxInput is the longest prompt or system prompt, in bytes: what is longer is
// a file that was meant for something else.
const MaxInput = 8 << 20

// Flags are the flags of every command that runs an agent.
type Flags struct {
	Session  string
	Model    string
	Script   string
	Approve  string
	Yes      bool
	DSH      bool
	System   string
	MaxSteps int
	Policy   string // of compaction, "" for the configured one

	// TakeOver takes the session also from a holder that lives.
	TakeOver bool

	// Answers: other processes may send and cancel while the session is open, in
	// a store where they can be reached.
	Answers bool

	// Watched: whoever runs the agent looks after the lease, and answers for the
	// session.
	Watched bool

	// NoTurn: no turn will run, so that it does not matter whether the
	// workspace is here.
	NoTurn bool

	// NoModel: none is chosen; of the one that the session had only the window
	// counts. Nothing can be asked then.
	NoModel bool
	MaxCost float64

	// Unlimited says that the command has no limit of steps of its own: only
	// --max-steps sets one.
	Unlimited bool

	set *pflag.FlagSet
}

// Register adds the flags to a command's.
func (f *Flags) Register(fl *pflag.FlagSet) {
	steps := "end the turn after `N` steps (default 200; 0: no limit)"
	if f.Unlimited {
		steps = "end a turn after `N` steps (default no limit)"
	}
	fl.StringVar(&f.Session, "session", "", "go on in this `SESSION`: id, start of one, last, or path of a log file")
	fl.BoolVar(&f.DSH, "dsh", false, "make a session that DeepSeek Harness can read too")
	fl.BoolVar(&f.TakeOver, "take-over", false, "with --session: take it also from a program that holds it (where the store can do that)")
	f.registerModel(fl, steps)
}

// RegisterMany adds those flags that are for many sessions at a time.
func (f *Flags) RegisterMany(fl *pflag.FlagSet) {
	f.registerModel(fl, "end a turn after `N` steps (default 200; 0: no limit)")
}

func (f *Flags) registerModel(fl *pflag.FlagSet, steps string) {
	fl.StringVar(&f.Model, "model", "", "the model, as `PROVIDER:MODEL` (OUTCROP_MODEL)")
	fl.StringVar(&f.Script, "script", "", "play the replies in this `FILE` instead of asking a model")
	fl.StringVar(&f.Approve, "approve", "", "`WHAT` needs no question: ask (nothing), edits, all; none refuses all but reading")
	fl.BoolVar(&f.Yes, "yes", false, "the same as --approve all")
	fl.StringVar(&f.System, "system", "", "take the system prompt from this `FILE` (default that of the session, else the built-in one)")
	fl.IntVar(&f.MaxSteps, "max-steps", 0, steps)
	fl.Float64Var(&f.MaxCost, "max-cost", 0, "call no model once this process has spent this many `USD` (0: no limit; what earlier ones spent does not count)")
	f.set = fl
}

func (f *Flags) given(name string) bool { return f.set != nil && f.set.Changed(name) }

// Check refuses flags that cannot be meant.
func (f *Flags) Check() error {
	switch {
	case f.Script != "" && f.Model != "":
		return exit.Usagef("--script and --model are two models: give one of them")
	case f.Yes && f.Approve != "" && f.Approve != string(agent.AllowAll):
		return exit.Usagef("--yes is --approve all, but --approve says %s: give one of them", term.Quote(f.Approve))
	case f.DSH && f.Session != "":
		return exit.Usagef("--dsh is for a new session: the one of --session stays what it is")
	case f.TakeOver && f.Session == "" && !f.Watched:
		return exit.Usagef("--take-over is for a session that is there: name it with --session")
	case f.MaxSteps < 0:
		return exit.Usagef("--max-steps %d: give a number from 1 on, or 0 for no limit", f.MaxSteps)
	case !(f.MaxCost >= 0 && f.MaxCost < 1e9):
		return exit.Usagef("--max-cost %g: give US dollars, or 0 for no limit", f.MaxCost)
	}
	return nil
}

// policy puts --approve and --yes over what the configuration says.
func (f *Flags) policy(configured string) (agent.Policy, error) {
	approve := configured
	if f.Approve != "" {
		approve = f.Approve
	}
	if f.Yes {
		approve = string(agent.AllowAll)
	}
	return policyOf(approve, "--approve ")
}

func policyOf(name, what string) (agent.Policy, error) {
	switch p := agent.Policy(name); p {
	case "":
		return agent.AskAll, nil
	case agent.AskAll, agent.AskExec, agent.AllowAll, agent.AllowRead:
		return p, nil
	}
	return "", exit.Usagef("%s%s: use ask, edits, all or none", what, term.Quote(name))
}

func (w *Work) steps() int {
	switch {
	case w.flags.given("max-steps"):
		return w.flags.MaxSteps
	case w.flags.Unlimited:
		return 0
	}
	return w.cfg.Limits.Steps
}

// cost is the limit in micro-dollars, 0 for none.
func (w *Work) cost() int64 {
	usd := w.cfg.Limits.CostUSD
	if w.flags.given("max-cost") {
		usd = w.flags.MaxCost
	}
	return int64(usd * 1e6)
}

// readSystem is the system prompt: the file of --system, else that of the
// session, else ours.
func (w *Work) readSystem() (string, error) {
	own := strings.TrimSpace(agent.DefaultSystem)
	if w.flags.System == "" {
		logged := w.loggedSystem()
		if logged == "" || logged == own || w.flags.given("system") {
			return own, nil
		}
		if !w.flags.NoTurn {
			w.a.Note("the session goes on with its own system prompt: --system FILE gives another, --system '' the built-in one")
		}
		return logged, nil
	}
	name := "--system " + term.Line(w.flags.System)
	f, err := os.Open(w.a.Path(w.flags.System))
	if err != nil {
		return "", exit.With(2, fmt.Errorf("--system: %w", err))
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, MaxInput+1))
	switch {
	case err != nil:
		return "", exit.With(2, fmt.Errorf("--system: %w", err))
	case len(b) > MaxInput:
		return "", exit.Usagef("%s is longer than 8 MiB: that is no system prompt", name)
	case !utf8.Valid(b):
		return "", exit.Usagef("%s is not UTF-8 text", name)
	}
	return strings.TrimSpace(llm.Clean(string(b))), nil
}
