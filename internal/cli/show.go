package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
)

// showFlags choose what show prints; at most one of the three.
type showFlags struct {
	viewFlags
	log       bool
	raw       bool
	modelView bool
}

func (a *app) newShowCommand() *cobra.Command {
	var f showFlags
	c := &cobra.Command{
		Use:   "show TARGET",
		Short: "The conversation as a person reads it, or the log",
		Long: `Shows the conversation: what was said and done, in the order in which it
happened, also what a history edit covered later. --model-view shows what the
model sees instead, --log every event, --raw the header and the lines exactly as
they are stored.`,
		Args: exactly("TARGET"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := f.check(c); err != nil {
				return err
			}
			t, err := a.resolve(c.Context(), args[0])
			if err != nil {
				return err
			}
			switch {
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
			return a.showConversation(l)
		},
	}
	f.register(c)
	c.Flags().BoolVar(&f.log, "log", false, "all events")
	c.Flags().BoolVar(&f.raw, "raw", false, "header and lines exactly as stored")
	c.Flags().BoolVar(&f.modelView, "model-view", false, "what the model sees: the surface")
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
			return usagef("%s and %s show different things: give one of them", chosen, one.name)
		}
		chosen = one.name
	}
	if f.raw {
		if f.closed || c.Flags().Changed("at") {
			return usagef("--raw shows the whole log as it is stored: it takes neither --at nor --closed")
		}
	}
	return f.viewFlags.check(c)
}

// showLog prints every event while it is read, so that it costs no memory and
// shows events that admission would refuse.
func (a *app) showLog(ctx context.Context, t *target, at int64) error {
	sd, err := t.read(ctx)
	if err != nil {
		return err
	}
	defer sd.Close()
	n := 0
	var damage error
	for r, err := range through(ctx, sd.Records(), outcrop.Seq(at)) {
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
		a.missing = &exitError{3, fmt.Errorf("not everything is shown: %w", damage)}
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
	if a.flags.json {
		a.out.Write(ev.AppendJSON(a.out.AvailableBuffer()))
		return a.out.WriteByte('\n')
	}
	op := ""
	switch start, end, isReplace := ev.Op.Range(); {
	case ev.Op.IsAppend():
		op = "+ "
	case isReplace:
		op = fmt.Sprintf("%d..%d ", start, end)
	}
	line := padLeft(itoa(ev.Seq), 6) + " " + pad(escapeLine(string(ev.Type)), 20) + " "
	_, err := a.out.WriteString(line + cut(op+logSummary(ev), max(10, width-columns(line))) + "\n")
	return err
}

// logSummary is the rest of a line about an event.
func logSummary(ev outcrop.Event) string {
	text := func(names ...string) string {
		v := []byte(ev.Data)
		for _, n := range names {
			v = jsonwire.Get(v, n)
		}
		if s, ok := jsonwire.Text(v); ok {
			return oneLine(s)
		}
		return oneLine(string(v))
	}
	switch ev.Type {
	case outcrop.TypeUserMessage, outcrop.TypeAssistantMessage, outcrop.TypeToolResult, outcrop.TypeContextMessage:
		return describe(ev)
	case outcrop.TypeTurnStart:
		return "turn " + text("turn")
	case outcrop.TypeTurnEnd:
		return "turn " + text("turn") + " " + turnEnding(ev.Data)
	case outcrop.TypeStepStart, outcrop.TypeStepEnd:
		return "turn " + text("turn") + " step " + text("step")
	case outcrop.TypeToolCall:
		return text("name") + " " + oneLine(argumentsLine(text("arguments")))
	case outcrop.TypeAssistantChunk:
		kind := text("chunk", "type")
		for _, name := range [...]string{"text", "argumentsDelta", "blockType"} {
			if v := jsonwire.Get(jsonwire.Get(ev.Data, "chunk"), name); v != nil {
				return kind + " " + oneLine(string(v))
			}
		}
		if kind == "finish" {
			return kind + " " + text("chunk", "reason", "kind")
		}
		return kind
	case outcrop.TypeRequestHeader:
		return text("reason") + " " + text("header", "config", "provider") + ":" + text("header", "config", "model")
	case outcrop.TypeSessionTitle:
		return text("title")
	}
	// More than a line's worth of data is not looked at.
	return oneLine(string(ev.Data[:min(len(ev.Data), 4*width)]))
}

// turnEnding says how a turn ended.
func turnEnding(data []byte) string {
	reason := jsonwire.Get(data, "reason")
	kind, _ := jsonwire.Text(jsonwire.Get(reason, "kind"))
	detail := ""
	switch kind {
	case "error":
		detail, _ = jsonwire.Text(jsonwire.Get(jsonwire.Get(reason, "error"), "message"))
	case "aborted":
		why := jsonwire.Get(reason, "reason")
		if detail, _ = jsonwire.Text(jsonwire.Get(why, "reason")); detail == "" {
			detail, _ = jsonwire.Text(jsonwire.Get(why, "kind"))
		}
	}
	if detail != "" {
		kind += ": " + detail
	}
	return oneLine(kind)
}

// showNodes prints the surface: what the model sees.
func (a *app) showNodes(l *seen) error {
	if l.noMarkers {
		a.note("the messages of this log carry no surface markers: the model's view is not known")
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
// the order of the log, and in a line each what edited them.
func (a *app) showConversation(l *seen) error {
	said := false
	for r := range l.log.Records(0) {
		if r.Run != nil {
			continue
		}
		ev := r.Event
		_, _, isReplace := ev.Op.Range()
		appended := ev.Op.IsAppend() || l.noMarkers && ev.Type.Surface()
		var err error
		switch {
		case appended:
			said = true
			err = a.entry(ev)
		case a.flags.json:
		case isReplace:
			a.editText(ev)
		case ev.Type == outcrop.TypeTurnStart:
			a.turnText(ev)
		case ev.Type == outcrop.TypeTurnEnd:
			a.turnEndText(ev)
		}
		if err != nil {
			return err
		}
	}
	if l.open && !a.flags.json {
		a.text(a.style().yellow(fmt.Sprintf("-- turn %d is open", l.turn)) + "\n")
	}
	if !said {
		a.note("no message in %s: --log shows all events", plural(l.log.Len(), "event"))
	}
	return nil
}

// entry prints one message of a conversation.
func (a *app) entry(ev outcrop.Event) error {
	if !a.flags.json {
		a.eventText(ev, a.style())
		return nil
	}
	return a.line(newAnswer().number("seq", int64(ev.Seq)).text("type", string(ev.Type)).number("time", ev.Time).
		raw("message", messageOf(ev)).end())
}

// showRaw writes the text of a log as it is stored, up to a torn tail.
func (a *app) showRaw(ctx context.Context, t *target) error {
	sd, err := t.read(ctx)
	if err != nil {
		return err
	}
	defer sd.Close()
	damage, err := rawText(ctx, a.out, sd)
	if err != nil {
		return err
	}
	if damage != nil {
		a.missing = &exitError{3, fmt.Errorf("not everything is shown: %w", damage)}
		return nil
	}
	a.tornNote(t, sd.Tail())
	return nil
}
