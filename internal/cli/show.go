package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/history/rewind"
	"github.com/outcrop-dev/outcrop/internal/answer"
	"github.com/outcrop-dev/outcrop/internal/brief"
	"github.com/outcrop-dev/outcrop/internal/desk"
	"github.com/outcrop-dev/outcrop/internal/exit"
	"github.com/outcrop-dev/outcrop/internal/records"
	"github.com/outcrop-dev/outcrop/internal/term"
)

// showFlags choose what show prints; at most one of the three.
type showFlags struct {
	viewFlags
	log       bool
	raw       bool
	modelView bool
	follow    bool
	all       bool
}

func (a *app) newShowCommand() *cobra.Command {
	var f showFlags
	c := &cobra.Command{
		Use:   "show TARGET",
		Short: "The conversation as a person reads it, or the log",
		Long: `Shows the conversation: what was said and done, in the order in which it
happened, also what a history edit covered later. What a rewind took away is one
line, and --all shows it. --model-view shows what the model sees instead, --log
every event, --raw the header and the lines exactly as they are stored.

--follow shows what is there and then what comes, also when another program
writes the log, until it is interrupted.`,
		Args: exactly("TARGET"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := f.check(c); err != nil {
				return err
			}
			t, err := a.Resolve(c.Context(), args[0])
			if err != nil {
				return err
			}
			switch {
			case f.follow && f.log:
				return a.follow(c.Context(), t, a.logLine)
			case f.follow:
				return a.follow(c.Context(), t, a.converse)
			case f.raw:
				return a.showRaw(c.Context(), t)
			case f.log && !f.closed:
				return a.showLog(c.Context(), t, f.at)
			}
			l, err := a.loadTarget(c.Context(), t, f.viewFlags)
			if err != nil {
				return err
			}
			switch {
			case f.log:
				return a.showLoadedLog(l)
			case f.modelView:
				return a.showNodes(l)
			}
			return a.showConversation(l, f.all)
		},
	}
	f.register(c)
	c.Flags().BoolVar(&f.log, "log", false, "all events")
	c.Flags().BoolVar(&f.raw, "raw", false, "header and lines exactly as stored (a terminal gets control characters as JSON escapes)")
	c.Flags().BoolVar(&f.modelView, "model-view", false, "what the model sees: the surface")
	c.Flags().BoolVar(&f.all, "all", false, "also what was taken back by a rewind")
	c.Flags().BoolVar(&f.follow, "follow", false, "go on with what comes, until interrupted")
	return c
}

func (f *showFlags) check(c *cobra.Command) error {
	chosen := ""
	for _, one := range [...]struct {
		set  bool
		name string
	}{{f.log, "--log"}, {f.raw, "--raw"}, {f.modelView, "--model-view"}} {
		if !one.set {
			continue
		}
		if chosen != "" {
			return exit.Usagef("%s and %s show different things: give one of them", chosen, one.name)
		}
		chosen = one.name
	}
	if f.raw {
		if f.closed || c.Flags().Changed("at") {
			return exit.Usagef("--raw shows the whole log as it is stored: it takes neither --at nor --closed")
		}
	}
	if f.all && (f.log || f.raw || f.modelView || f.follow) {
		return exit.Usagef("--all is for the conversation: the other views and --follow leave nothing out")
	}
	if f.follow && (f.raw || f.modelView || f.closed || c.Flags().Changed("at")) {
		return exit.Usagef("--follow shows the conversation, or with --log all events, to the end and further: it goes with nothing else")
	}
	return f.viewFlags.check(c)
}

// showLog prints every event while it is read, so that it costs no memory and
// shows events that admission would refuse.
func (a *app) showLog(ctx context.Context, t *desk.Target, at int64) error {
	sd, err := t.Read(ctx)
	if err != nil {
		return err
	}
	defer sd.Close()
	a.formatNote(sd.Header())
	n := 0
	var damage error
	for r, err := range records.Through(ctx, sd.Records(), outcrop.Seq(at)) {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			// Reading goes on behind a record that is too big, and behind half
			// an old shape, which comes as it is stored.
			if damage == nil {
				damage = err
			}
			if r.Type == "" && r.Run == nil {
				continue
			}
		}
		for ev := range r.Events() {
			if at >= 0 && ev.Seq > outcrop.Seq(at) {
				break
			}
			if err := a.logLine(ev); err != nil {
				return err
			}
			n = int(ev.Seq) + 1
		}
	}
	if damage != nil && at < 0 {
		a.missing = exit.With(3, fmt.Errorf("not everything is shown: %w", damage))
		return nil
	}
	return a.judge(t, sd.Tail(), damage, n, at)
}

func (a *app) showLoadedLog(l *seen) error {
	for ev := range outcrop.Events(l.log, 0) {
		if err := a.logLine(ev); err != nil {
			return err
		}
	}
	return nil
}

// logLine prints one event of the log.
func (a *app) logLine(ev outcrop.Event) error {
	if a.Flags.JSON {
		return a.Line(ev.AppendJSON(a.Out.AvailableBuffer()))
	}
	op := ""
	switch start, end, isReplace := ev.Op.Range(); {
	case ev.Op.IsAppend():
		op = "+ "
	case isReplace:
		op = fmt.Sprintf("%d..%d ", start, end)
	}
	line := term.PadLeft(itoa(ev.Seq), 6) + " " + term.Pad(term.Line(string(ev.Type)), 20) + " "
	_, err := a.Out.WriteString(line + term.Cut(op+brief.Event(ev), max(10, term.Width-term.Columns(line))) + "\n")
	return err
}

// showNodes prints the surface: what the model sees.
func (a *app) showNodes(l *seen) error {
	if l.noMarkers {
		a.Note("the messages of this log carry no surface markers: the model's view is not known")
		return nil
	}
	for _, n := range l.fold.Nodes {
		if err := a.entry(l.log.At(n)); err != nil {
			return err
		}
	}
	return nil
}

// showConversation prints the events that once were appended to the surface, in
// the order of the log, and in a line each what edited them. What was rewound is
// one line for each run of it, unless all is asked for.
func (a *app) showConversation(l *seen, all bool) error {
	said := false
	var gone map[outcrop.Seq]outcrop.Seq
	if !all {
		gone = rewind.Gone(l.log, l.fold.Replacements)
	}
	folded, turn := 0, outcrop.Event{}
	fold := func() {
		if folded > 0 && !a.Flags.JSON {
			a.Text(a.Style().Dim("-- "+term.Plural(folded, "message")+", rewound (--all shows them)") + "\n")
		}
		folded = 0
	}
	for r := range l.log.Records(0) {
		if r.Run != nil {
			continue
		}
		if _, away := gone[r.Seq]; away {
			if speaks(r.Event) {
				folded++
			}
			said, turn = true, outcrop.Event{}
			continue
		}
		switch {
		case len(gone) > 0 && r.Type == outcrop.TypeTurnStart:
			turn = r.Event // printed when something of the turn is
			continue
		case r.Type == outcrop.TypeTurnEnd && folded > 0:
			continue
		case speaks(r.Event) || !r.Op.IsZero():
			fold()
			if turn.Type != "" {
				if err := a.converse(turn); err != nil {
					return err
				}
				turn = outcrop.Event{}
			}
		}
		said = said || speaks(r.Event)
		if err := a.converse(r.Event); err != nil {
			return err
		}
	}
	fold()
	if l.open && !a.Flags.JSON {
		a.Text(a.Style().Yellow(fmt.Sprintf("-- turn %d is open", l.turn)) + "\n")
	}
	if !said {
		a.Note("no message in %s: --log shows all events", term.Plural(l.log.Len(), "event"))
	}
	return nil
}

// speaks reports an event that put a message into the conversation: it was
// appended to the surface, or stands in a log without surface markers.
func speaks(ev outcrop.Event) bool {
	_, _, isReplace := ev.Op.Range()
	return ev.Op.IsAppend() || ev.Type.Surface() && !isReplace
}

// converse prints what an event is to a conversation, nothing for most.
func (a *app) converse(ev outcrop.Event) error {
	_, _, isReplace := ev.Op.Range()
	switch {
	case speaks(ev):
		return a.entry(ev)
	case a.Flags.JSON:
	case isReplace:
		a.Printer().Edit(ev)
	case ev.Type == outcrop.TypeTurnStart:
		a.Printer().Turn(ev)
	case ev.Type == outcrop.TypeTurnEnd:
		a.Printer().TurnEnd(ev)
	}
	return nil
}

// entry prints one message of a conversation.
func (a *app) entry(ev outcrop.Event) error {
	if !a.Flags.JSON {
		a.Printer().Message(ev)
		return nil
	}
	return a.Line(answer.New().Number("seq", int64(ev.Seq)).Text("type", string(ev.Type)).Number("time", ev.Time).
		Raw("message", brief.MessageOf(ev)).End())
}

// showRaw writes the text of a log as it is stored, up to a torn tail.
func (a *app) showRaw(ctx context.Context, t *desk.Target) error {
	sd, err := t.Read(ctx)
	if err != nil {
		return err
	}
	defer sd.Close()
	out := a.JSON()
	damage, err := records.WriteText(ctx, out, sd)
	if err == nil {
		err = out.Close()
	}
	if err != nil {
		return err
	}
	if damage != nil {
		a.missing = exit.With(3, fmt.Errorf("not everything is shown: %w", damage))
		return nil
	}
	a.tornNote(t, sd.Tail())
	return nil
}
