package cli

import (
	"bytes"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/answer"
	"github.com/outcrop-dev/outcrop/internal/brief"
	"github.com/outcrop-dev/outcrop/internal/config"
	"github.com/outcrop-dev/outcrop/internal/exit"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/internal/requests"
	"github.com/outcrop-dev/outcrop/internal/term"
	"github.com/outcrop-dev/outcrop/llm"
)

type requestFlags struct {
	turn, step, attempt int
	diff, body          bool
}

func (a *app) newRequestCommand() *cobra.Command {
	var f requestFlags
	c := &cobra.Command{
		Use:   "request TARGET",
		Short: "A request as the model got it, or would get it next",
		Long: `Rebuilds a request from the log: with --turn and --step a past one, else the
next one. Without --attempt it is the attempt that succeeded, else the last.`,
		Args: exactly("TARGET"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := f.check(c); err != nil {
				return err
			}
			l, err := a.load(c.Context(), args[0], viewFlags{at: everything})
			if err != nil {
				return err
			}
			return a.request(l, f)
		},
	}
	fl := c.Flags()
	fl.IntVar(&f.turn, "turn", 0, "a past request, by its turn `T`")
	fl.IntVar(&f.step, "step", 0, "and its step `N` (default 1)")
	fl.IntVar(&f.attempt, "attempt", 0, "and its attempt `K` (default the one that succeeded)")
	fl.BoolVar(&f.diff, "diff", false, "what changed since the request before it")
	fl.BoolVar(&f.body, "body", false, "the bytes that the provider gets")
	return c
}

func (f *requestFlags) check(c *cobra.Command) error {
	for _, one := range [...]struct {
		name string
		v    int
	}{{"turn", f.turn}, {"step", f.step}, {"attempt", f.attempt}} {
		if c.Flags().Changed(one.name) && one.v < 1 {
			return exit.Usagef("--%s %d: they are counted from 1", one.name, one.v)
		}
	}
	if f.turn == 0 && (f.step > 0 || f.attempt > 0) {
		return exit.Usagef("--step and --attempt need --turn")
	}
	if f.turn > 0 && f.step == 0 {
		f.step = 1
	}
	if f.diff && f.body {
		return exit.Usagef("--diff and --body show different things: give one of them")
	}
	return nil
}

func (a *app) request(l *seen, f requestFlags) error {
	all := requests.Find(l.log)
	index := len(all)
	at := requests.Next(l.at)
	if f.turn > 0 {
		var err error
		if index, err = requests.Pick(all, f.turn, f.step, f.attempt); err != nil {
			return exit.Misuse(err)
		}
		at = all[index]
	}
	r, err := requests.Rebuild(l.log, at)
	if err != nil {
		return err
	}
	switch {
	case f.body:
		return a.requestBody(l, r)
	case f.diff:
		var before *requests.Request
		if index > 0 {
			if before, err = requests.Rebuild(l.log, all[index-1]); err != nil {
				return err
			}
		}
		return a.requestDiff(l, before, r)
	case a.Flags.JSON:
		return a.Line(requestJSON(r))
	}
	a.requestText(l, r)
	return nil
}

// requestJSON is a request as one JSON object.
func requestJSON(r *requests.Request) []byte {
	o := nameAttempt(answer.New(), &r.Attempt)
	o.Number("prefix", int64(r.Prefix))
	o.Raw("config", orNull(jsonwire.Get(r.Header, "config")))
	o.Raw("system", orNull(jsonwire.Get(r.Header, "system")))
	tools := jsonwire.Get(r.Header, "tools")
	if tools == nil {
		tools = []byte("[]")
	}
	o.Raw("tools", tools).Raw("messages", rawMessages(r.Messages)).Text("digest", r.Digest)
	if r.Recorded == "" {
		return o.Bool("recorded", false).End()
	}
	return o.Text("recorded", r.Recorded).End()
}

// nameAttempt adds turn, step and attempt; null for the next request.
func nameAttempt(o *answer.Object, at *requests.Attempt) *answer.Object {
	none := func(n int) int64 {
		if at.Turn == 0 {
			return -1
		}
		return int64(n)
	}
	return o.NumberOrNull("turn", none(at.Turn)).NumberOrNull("step", none(at.Step)).NumberOrNull("attempt", none(at.N))
}

func orNull(v []byte) []byte {
	if v == nil {
		return []byte("null")
	}
	return v
}

func (a *app) requestText(l *seen, r *requests.Request) {
	st := a.Style()
	a.Text(st.Bold(r.String()) + fmt.Sprintf(", built from the events through %d\n", r.Prefix))
	cfg, system, tools, err := llm.ParseHeader(r.Header)
	if err == nil {
		a.Text(term.Pad("model", 9) + term.Cut(term.OneLine(cfg.Provider+":"+cfg.Model), term.Width-9) + "\n")
		a.Text(term.Pad("system", 9) + term.Plural(len([]rune(system)), "character") + "\n")
		names := ""
		for _, t := range tools {
			names += " " + t.Name
		}
		a.Text(term.Pad("tools", 9) + term.Cut(term.OneLine(itoa(len(tools))+names), term.Width-9) + "\n")
	}
	a.Text(term.Pad("digest", 9) + r.Digest + "\n")
	switch {
	case r.Recorded == "":
		a.Text(term.Pad("recorded", 9) + "no digest\n")
	case r.Recorded == r.Digest:
		a.Text(term.Pad("recorded", 9) + st.Green("the same digest") + "\n")
	default:
		a.Text(term.Pad("recorded", 9) + st.Red("another digest: "+term.Line(r.Recorded)) + "\n")
	}
	a.Text(term.Pad("messages", 9) + itoa(len(r.Messages)) + "\n")
	for _, m := range r.Messages {
		a.Printer().Node(l.log, m.Seq, len(itoa(l.at)))
	}
}

// requestDiff says what changed from one request to the next: the parts of the
// header, and the messages behind the longest common beginning, which is what a
// provider can take from its cache.
func (a *app) requestDiff(l *seen, before, r *requests.Request) error {
	var changed []string
	kept := 0
	var removed []*outcrop.Message
	if before != nil {
		for _, name := range [...]string{"config", "adapterDefaults", "system", "tools"} {
			if !bytes.Equal(jsonwire.Get(before.Header, name), jsonwire.Get(r.Header, name)) {
				changed = append(changed, name)
			}
		}
		for kept < len(before.Messages) && kept < len(r.Messages) && bytes.Equal(before.Messages[kept].Raw, r.Messages[kept].Raw) {
			kept++
		}
		removed = before.Messages[kept:]
	}
	added := r.Messages[kept:]
	if a.Flags.JSON {
		o := nameAttempt(answer.New(), &r.Attempt).Number("prefix", int64(r.Prefix))
		if before == nil {
			o.Raw("against", []byte("null"))
		} else {
			o.Raw("against", nameAttempt(answer.Inner(), &before.Attempt).Number("prefix", int64(before.Prefix)).End())
		}
		o.Raw("changed", answer.List(len(changed), func(dst []byte, i int) []byte { return jsonwire.AppendString(dst, changed[i]) }))
		return a.Line(o.Number("kept", int64(kept)).Raw("removed", rawMessages(removed)).Raw("added", rawMessages(added)).End())
	}
	st := a.Style()
	if before == nil {
		a.Text(st.Bold(r.String()) + ": the first request of the session\n")
	} else {
		a.Text(st.Bold(r.String()) + " against " + before.String() + "\n")
	}
	for _, name := range changed {
		a.Text(st.Yellow("~ "+name) + "\n")
	}
	a.Text(st.Dim("= "+term.Plural(kept, "message")) + "\n")
	for _, m := range removed {
		a.Text(st.Red(term.Cut("- "+itoa(m.Seq)+" "+brief.Node(l.log.At(m.Seq)), term.Width)) + "\n")
	}
	for _, m := range added {
		a.Text(st.Green(term.Cut("+ "+itoa(m.Seq)+" "+brief.Node(l.log.At(m.Seq)), term.Width)) + "\n")
	}
	return nil
}

// requestBody prints the bytes that the provider gets.
func (a *app) requestBody(l *seen, r *requests.Request) error {
	req, err := r.Typed()
	if err != nil {
		return err
	}
	if l.objects != nil {
		req.Objects = l.objects
	}
	enc, err := a.encoder(req.Config.Provider)
	if err != nil {
		return err
	}
	if err := llm.Check(req); err != nil {
		a.Note("a provider would refuse this request: %s", term.Line(err.Error()))
	}
	if r.Encoder != "" && r.Encoder != enc.Encoder() {
		a.Note("the request was encoded by %s; this is what %s makes of it", term.Line(r.Encoder), enc.Encoder())
	}
	out := a.JSON()
	if _, err := out.Write(enc.Body(req)); err != nil {
		return err
	}
	if err := out.Close(); err != nil {
		return err
	}
	if a.Env.Terminal(a.Env.Stdout) {
		a.Text("\n") // not a byte of the body, so only where a person reads it
	}
	return nil
}

// encoder is the encoder of a provider. One that is not configured is taken for
// a plain OpenAI-compatible endpoint.
func (a *app) encoder(name string) (config.Client, error) {
	ws, err := a.Workspace()
	if err != nil {
		return nil, err
	}
	c, err := a.LoadConfig(ws)
	if err != nil {
		return nil, err
	}
	p := c.Providers[name]
	if p == nil {
		a.Note("no provider %s is configured: encoded as for a plain OpenAI-compatible endpoint", term.Quote(name))
		p = &config.Provider{Name: name, Kind: config.KindOpenAI, BaseURL: "http://localhost"}
	}
	enc, err := p.Offline()
	if err != nil {
		return nil, exit.Misuse(err)
	}
	return enc, nil
}
