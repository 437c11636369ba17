package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/doctor"
	"github.com/outcrop-dev/outcrop/doctor/repair"
	"github.com/outcrop-dev/outcrop/internal/answer"
	"github.com/outcrop-dev/outcrop/internal/exit"
	"github.com/outcrop-dev/outcrop/internal/term"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/jsonl"
)

// doctorFlags are what a repair is told.
type doctorFlags struct {
	repair  bool
	inPlace bool
	out     string
	id      string
}

func (a *app) newDoctorCommand() *cobra.Command {
	var f doctorFlags
	c := &cobra.Command{
		Use:   "doctor TARGET",
		Short: "What is wrong with a log and what can be done; --repair does it",
		Long: `Says what is wrong with a log, what a repair would do, and which commands help.
Nothing is changed. Exit 0 when the log can be continued as it is, else 1.

With --repair a repaired copy of the log is written, into the state folder or to
--out FILE, and the log stays as it is; with --in-place the copy takes its place
and a backup is kept in the state folder. What is left out is kept there too. No
event is invented and none gets another seq: where one is missing the log ends.
A repaired log has passed verify. A log that is in order is left alone.

A log that has lost its header needs --id, and --cwd when it had a directory.`,
		Args: exactly("TARGET"),
		RunE: func(c *cobra.Command, args []string) error {
			switch {
			case !f.repair && (f.inPlace || f.out != ""):
				return exit.Usagef("--in-place and --out are for --repair")
			case f.inPlace && f.out != "":
				return exit.Usagef("--in-place and --out cannot both be")
			case c.Flags().Changed("out") && f.out == "", c.Flags().Changed("id") && f.id == "":
				return exit.Usagef("--out and --id need a value")
			}
			return a.doctor(c.Context(), args[0], f)
		},
	}
	c.Flags().BoolVar(&f.repair, "repair", false, "write a repaired copy and say what was done")
	c.Flags().BoolVar(&f.inPlace, "in-place", false, "put it in the place of the log, with a backup")
	c.Flags().StringVar(&f.out, "out", "", "write it to `FILE`")
	c.Flags().StringVar(&f.id, "id", "", "`ID` of the session, for a log that has lost its header")
	return c
}

func (a *app) doctor(ctx context.Context, name string, f doctorFlags) error {
	p, err := a.patient(ctx, name)
	if err != nil {
		return err
	}
	defer p.close()
	o := repair.Options{ID: f.id, Cwd: a.Path(a.Flags.Cwd), Place: p.options.Place}
	if f.repair {
		return a.repair(ctx, name, p, f, o)
	}
	return a.diagnose(ctx, name, p, o)
}

// diagnose says what is wrong and what can be done.
func (a *app) diagnose(ctx context.Context, name string, p *patient, o repair.Options) error {
	bar := a.progress("looking", p.target.Size)
	target := p.target
	if target.R != nil {
		target.R = bar.Reader(target.R)
	}
	var groups doctor.Groups
	findings, sum := doctor.Verify(ctx, target, p.options)
	for finding := range findings {
		groups.Add(finding)
	}
	bar.End()
	if sum.Err != nil && outcrop.CodeOf(sum.Err) == "" {
		return sum.Err
	}
	plan, refused := repair.NewPlan(ctx, p.target, o)
	if refused != nil && !errors.Is(refused, repair.ErrNotRepairable) {
		return refused
	}
	d := diagnosis{name: name, groups: groups.List(), sum: sum, plan: plan, refused: refused}
	d.commands(a, o)
	if err := a.say(&d); err != nil {
		return err
	}
	switch {
	case sum.Err != nil:
		return exit.With(3, nil)
	case !sum.OK:
		return exit.With(1, nil)
	}
	return nil
}

// diagnosis is what doctor says.
type diagnosis struct {
	name    string
	groups  []doctor.Group
	sum     *doctor.Summary
	plan    *repair.Plan // nil: refused says why
	refused error
	helps   []help
}

// help is a command and what it does.
type help struct{ command, does string }

// todo reports that a repair has something to do.
func (d *diagnosis) todo() bool { return d.plan != nil && len(d.plan.Changes) > 0 }

// commands finds the commands that help.
func (d *diagnosis) commands(a *app, o repair.Options) {
	target := shown(d.name)
	known := ""
	if o.ID != "" {
		known = " --id " + shown(o.ID)
	}
	if o.ID != "" && o.Cwd != "" {
		known += " --cwd " + shown(o.Cwd)
	}
	add := func(does, format string, args ...any) {
		d.helps = append(d.helps, help{a.Env.Program + " " + fmt.Sprintf(format, args...), does})
	}
	if d.todo() {
		add("a repaired copy; the log stays as it is", "doctor %s --repair%s", target, known)
		add("in the place of the log, with a backup", "doctor %s --repair --in-place%s", target, known)
	}
	if !d.sum.OK && d.sum.Err == nil && d.sum.Events > 0 {
		add("what can be read", "show %s --log", target)
		add("a new session from what is good", "fork %s --at %d", target, d.sum.Events-1)
	}
	if d.sum.OK && d.sum.OpenTurn {
		add("go on from what was left open: /continue there", "chat --session %s", target)
	}
}

// shown is an argument as it stands in a command that a person may copy.
func shown(arg string) string {
	if term.Line(arg) == arg && !strings.ContainsAny(arg, " \t'\"$&;|<>()*?`\\") {
		return arg
	}
	return term.Quote(arg)
}

func (a *app) say(d *diagnosis) error {
	if a.Flags.JSON {
		return a.sayJSON(d)
	}
	st := a.Style()
	for _, g := range d.groups {
		a.Text(st.Bold(g.Title) + ": " + term.Plural(g.Count, "finding") + "\n")
		for _, l := range term.Wrap(g.Advice, term.Width-2) {
			a.Text("  " + l + "\n")
		}
		for _, f := range g.Findings {
			a.findingText(f)
		}
		if n := g.Count - len(g.Findings); n > 0 {
			a.Text(fmt.Sprintf("  and %d more: %s verify lists all\n", n, term.Line(a.Env.Program)))
		}
	}
	switch {
	case d.todo():
		a.Text(st.Bold("What a repair would do") + "\n")
		a.steps(d.plan)
	case d.refused != nil && !d.sum.OK:
		a.Text(st.Bold("A repair is not possible") + "\n")
		for _, l := range term.Wrap(term.OneLine(explained(d.refused)), term.Width-2) {
			a.Text("  " + l + "\n")
		}
	}
	if len(d.helps) > 0 {
		a.Text(st.Bold("Commands") + "\n")
	}
	for _, h := range d.helps {
		a.Text("  " + h.command + "\n      " + h.does + "\n")
	}
	verdict := st.Green("nothing has to be done")
	switch {
	case d.sum.Err != nil:
		verdict = st.Red("no session that can be read as it is")
	case !d.sum.OK:
		verdict = st.Red("cannot be continued as it is")
	case d.todo():
		verdict = st.Green("can be continued as it is") + "; a repair would tidy it up"
	}
	a.Text(st.Bold(term.Line(d.name)) + ": " + verdict + "\n")
	return nil
}

// steps prints what a repair does.
func (a *app) steps(r *repair.Plan) {
	for i, text := range r.Advice() {
		c := r.Changes[i]
		where := ""
		if c.Line > 0 {
			where = fmt.Sprintf(" line %d", c.Line)
		}
		if c.Offset >= 0 {
			where += fmt.Sprintf(" byte %d", c.Offset)
		}
		a.Text("  " + string(c.Code) + where + "\n")
		for _, l := range term.Wrap(term.OneLine(text), term.Width-4) {
			a.Text("    " + l + "\n")
		}
	}
}

func (a *app) sayJSON(d *diagnosis) error {
	for _, g := range d.groups {
		if err := a.Line(answer.New().Raw("group", g.AppendJSON(nil)).End()); err != nil {
			return err
		}
	}
	if d.plan != nil {
		if err := a.changes(d.plan); err != nil {
			return err
		}
	}
	o := answer.Inner().Text("target", d.name).Bool("ok", d.sum.OK)
	switch {
	case d.todo():
		o.Text("repair", "possible").Raw("reason", []byte("null")).
			Number("events", int64(d.sum.Events)).Number("eventsAfter", int64(d.plan.Events)).Number("behind", int64(d.plan.Behind))
	case d.refused != nil:
		o.Text("repair", "refused").Text("reason", explained(d.refused)).
			Number("events", int64(d.sum.Events)).NumberOrNull("eventsAfter", -1).Number("behind", 0)
	default:
		o.Text("repair", "nothing").Raw("reason", []byte("null")).
			Number("events", int64(d.sum.Events)).Number("eventsAfter", int64(d.plan.Events)).Number("behind", 0)
	}
	o.Raw("commands", answer.List(len(d.helps), func(dst []byte, i int) []byte {
		return append(dst, answer.Inner().Text("command", d.helps[i].command).Text("does", d.helps[i].does).End()...)
	}))
	return a.Line(answer.New().Raw("diagnosis", o.End()).End())
}

// changes prints what a repair does, one change a line.
func (a *app) changes(r *repair.Plan) error {
	for _, c := range r.Changes {
		if err := a.Line(answer.New().Raw("change", c.AppendJSON(nil)).End()); err != nil {
			return err
		}
	}
	return nil
}

// explained is an error without the words that say what was being done.
func explained(err error) string {
	var e *outcrop.Error
	if !errors.As(err, &e) {
		return err.Error()
	}
	text := e.Msg
	if e.Code != "" {
		text += " (" + string(e.Code) + ")"
	}
	if e.Hint != "" {
		text += ": " + e.Hint
	}
	return text
}

// repair repairs a log.
func (a *app) repair(ctx context.Context, name string, p *patient, f doctorFlags, o repair.Options) error {
	if p.path == "" {
		_, err := repair.NewPlan(ctx, p.target, o)
		return exit.With(1, err)
	}
	state, err := a.StateHome()
	if err != nil {
		return err
	}
	now := a.Env.Now()
	files := repair.Files{
		Log: p.path, Keep: filepath.Join(state, "doctor"), Stamp: stamp(p, now),
		Program: "outcrop", Now: now.UnixMilli(),
	}
	var plan *repair.Plan
	var saved repair.Saved
	if f.inPlace {
		plan, saved, err = repair.InPlace(ctx, files, o)
	} else {
		plan, saved, err = repair.Copy(ctx, files, o, a.Path(f.out))
	}
	switch {
	case errors.Is(err, repair.ErrNotRepairable):
		return exit.With(1, err)
	case errors.Is(err, store.ErrLocked):
		return exit.With(4, fmt.Errorf("%s: %w: end it there first", term.Line(name), err))
	case err != nil:
		return err
	}
	if a.Flags.JSON {
		if err := a.changes(plan); err != nil {
			return err
		}
		r := answer.Inner().Text("target", name).Bool("done", saved.Log != "").TextOrNull("log", saved.Log).
			TextOrNull("folder", saved.Folder).TextOrNull("backup", saved.Backup).Number("events", int64(plan.Events)).Number("behind", int64(plan.Behind))
		return a.Line(answer.New().Raw("repair", r.End()).End())
	}
	st := a.Style()
	if saved.Log == "" {
		a.Text(st.Bold(term.Line(name)) + ": " + st.Green("nothing to do") + "; nothing was written\n")
		return nil
	}
	a.steps(plan)
	a.Text(st.Bold(term.Line(name)) + ": " + st.Green("repaired") + ", " + term.Plural(plan.Events, "event") + "\n")
	a.Text("  log       " + term.Line(saved.Log) + "\n")
	if saved.Backup != "" {
		a.Text("  backup    " + term.Line(saved.Backup) + "\n")
	}
	a.Text("  left out  " + term.Line(saved.Folder) + "\n")
	session := name
	if saved.Backup == "" {
		session = saved.Log
	}
	a.Text("Go on with: " + term.Line(a.Env.Program+" chat --session "+session) + "\n")
	return nil
}

// stamp is the beginning of the name of a repair's folder.
func stamp(p *patient, now time.Time) string {
	name := jsonl.EncodeSegment(p.session)
	if name == "" {
		name = filepath.Base(p.path)
	}
	if len(name) > 100 {
		name = name[:100]
	}
	return name + "-" + now.UTC().Format("20060102-150405")
}
