package cli

import (
	"bytes"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/config"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/llm/openai"
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
			return usagef("--%s %d: they are counted from 1", one.name, one.v)
		}
	}
	if f.turn == 0 && (f.step > 0 || f.attempt > 0) {
		return usagef("--step and --attempt need --turn")
	}
	if f.turn > 0 && f.step == 0 {
		f.step = 1
	}
	if f.diff && f.body {
		return usagef("--diff and --body show different things: give one of them")
	}
	return nil
}

// rebuilt is a request that was made again from a log.
type rebuilt struct {
	attempt        // turn 0: the next request, which was not made yet
	header  []byte // data.header as logged
	msgs    []*outcrop.Message
	digest  string
}

func (a *app) request(l *seen, f requestFlags) error {
	all := attempts(l.log)
	index := len(all)
	at := attempt{prefix: l.at, chunks: -1}
	if f.turn > 0 {
		var err error
		if index, err = pickAttempt(all, f.turn, f.step, f.attempt); err != nil {
			return err
		}
		at = all[index]
	}
	r, err := rebuild(l.log, at)
	if err != nil {
		return err
	}
	switch {
	case f.body:
		return a.requestBody(r)
	case f.diff:
		var before *rebuilt
		if index > 0 {
			if before, err = rebuild(l.log, all[index-1]); err != nil {
				return err
			}
		}
		return a.requestDiff(l, before, r)
	case a.flags.json:
		return a.line(r.json())
	}
	a.requestText(l, r)
	return nil
}

// rebuild makes a request again from the events up to its prefix.
func rebuild(log outcrop.Log, at attempt) (*rebuilt, error) {
	h, ok := outcrop.RequestHeaderAt(log, at.prefix)
	if !ok {
		return nil, refusedf("no request header is in force at event %d: no request can be made from the log", at.prefix)
	}
	fold, err := outcrop.SurfaceAt(log, at.prefix)
	if err != nil {
		return nil, err
	}
	r := &rebuilt{attempt: at, header: h.Raw, msgs: outcrop.DeriveMessages(log, fold.Nodes)}
	r.digest = outcrop.DigestOf(h.Raw, r.msgs)
	return r, nil
}

func (r *rebuilt) json() []byte {
	o := r.name(newAnswer())
	o.number("prefix", int64(r.prefix))
	o.raw("config", orNull(jsonwire.Get(r.header, "config")))
	o.raw("system", orNull(jsonwire.Get(r.header, "system")))
	tools := jsonwire.Get(r.header, "tools")
	if tools == nil {
		tools = []byte("[]")
	}
	o.raw("tools", tools).raw("messages", rawMessages(r.msgs)).text("digest", r.digest)
	if r.recorded == "" {
		return o.boolean("recorded", false).end()
	}
	return o.text("recorded", r.recorded).end()
}

// name adds turn, step and attempt; null for the next request.
func (at *attempt) name(o *answer) *answer {
	none := func(n int) int64 {
		if at.turn == 0 {
			return -1
		}
		return int64(n)
	}
	return o.numberOrNull("turn", none(at.turn)).numberOrNull("step", none(at.step)).numberOrNull("attempt", none(at.n))
}

func (at *attempt) String() string {
	if at.turn == 0 {
		return "the next request"
	}
	return fmt.Sprintf("turn %d step %d attempt %d", at.turn, at.step, at.n)
}

func orNull(v []byte) []byte {
	if v == nil {
		return []byte("null")
	}
	return v
}

func (a *app) requestText(l *seen, r *rebuilt) {
	st := a.style()
	a.text(st.bold(r.String()) + fmt.Sprintf(", built from the events through %d\n", r.prefix))
	cfg, system, tools, err := llm.ParseHeader(r.header)
	if err == nil {
		a.text(pad("model", 9) + cut(oneLine(cfg.Provider+":"+cfg.Model), width-9) + "\n")
		a.text(pad("system", 9) + plural(len([]rune(system)), "character") + "\n")
		names := ""
		for _, t := range tools {
			names += " " + t.Name
		}
		a.text(pad("tools", 9) + cut(oneLine(itoa(len(tools))+names), width-9) + "\n")
	}
	a.text(pad("digest", 9) + r.digest + "\n")
	switch {
	case r.recorded == "":
		a.text(pad("recorded", 9) + "no digest\n")
	case r.recorded == r.digest:
		a.text(pad("recorded", 9) + st.green("the same digest") + "\n")
	default:
		a.text(pad("recorded", 9) + st.red("another digest: "+escapeLine(r.recorded)) + "\n")
	}
	a.text(pad("messages", 9) + itoa(len(r.msgs)) + "\n")
	for _, m := range r.msgs {
		a.text(a.nodeLine(l.log, m.Seq, len(itoa(l.at)), st))
	}
}

// requestDiff says what changed from one request to the next: the parts of the
// header, and the messages behind the longest common beginning, which is what a
// provider can take from its cache.
func (a *app) requestDiff(l *seen, before, r *rebuilt) error {
	var changed []string
	kept := 0
	var removed []*outcrop.Message
	if before != nil {
		for _, name := range [...]string{"config", "adapterDefaults", "system", "tools"} {
			if !bytes.Equal(jsonwire.Get(before.header, name), jsonwire.Get(r.header, name)) {
				changed = append(changed, name)
			}
		}
		for kept < len(before.msgs) && kept < len(r.msgs) && bytes.Equal(before.msgs[kept].Raw, r.msgs[kept].Raw) {
			kept++
		}
		removed = before.msgs[kept:]
	}
	added := r.msgs[kept:]
	if a.flags.json {
		o := r.name(newAnswer()).number("prefix", int64(r.prefix))
		if before == nil {
			o.raw("against", []byte("null"))
		} else {
			o.raw("against", before.name(object()).number("prefix", int64(before.prefix)).end())
		}
		o.raw("changed", list(len(changed), func(dst []byte, i int) []byte { return jsonwire.AppendString(dst, changed[i]) }))
		return a.line(o.number("kept", int64(kept)).raw("removed", rawMessages(removed)).raw("added", rawMessages(added)).end())
	}
	st := a.style()
	if before == nil {
		a.text(st.bold(r.String()) + ": the first request of the session\n")
	} else {
		a.text(st.bold(r.String()) + " against " + before.String() + "\n")
	}
	for _, name := range changed {
		a.text(st.yellow("~ "+name) + "\n")
	}
	a.text(st.dim("= "+plural(kept, "message")) + "\n")
	for _, m := range removed {
		a.text(st.red(cut("- "+itoa(m.Seq)+" "+describe(l.log.At(m.Seq)), width)) + "\n")
	}
	for _, m := range added {
		a.text(st.green(cut("+ "+itoa(m.Seq)+" "+describe(l.log.At(m.Seq)), width)) + "\n")
	}
	return nil
}

// requestBody prints the bytes that the provider gets.
func (a *app) requestBody(r *rebuilt) error {
	cfg, system, tools, err := llm.ParseHeader(r.header)
	if err != nil {
		return refusedf("the request cannot be encoded: %v", err)
	}
	enc, err := a.encoder(cfg.Provider)
	if err != nil {
		return err
	}
	parsed, err := parseMessages(r.msgs)
	if err != nil {
		return err
	}
	req := llm.Request{Config: cfg, System: system, Tools: tools, Messages: llm.Build(parsed), Purpose: llm.Turn, Turn: r.turn, Step: r.step, Attempt: r.n}
	if err := llm.Check(req); err != nil {
		a.note("a provider would refuse this request: %s", escapeLine(err.Error()))
	}
	if r.encoder != "" && r.encoder != openai.Encoder {
		a.note("the request was encoded by %s; this is what %s makes of it", escapeLine(r.encoder), openai.Encoder)
	}
	if _, err := a.out.Write(enc.Body(req)); err != nil {
		return err
	}
	if a.env.Terminal(a.env.Stdout) {
		a.text("\n") // not a byte of the body, so only where a person reads it
	}
	return nil
}

// encoder is the encoder of a provider. One that is not configured is taken for
// a plain OpenAI-compatible endpoint.
func (a *app) encoder(name string) (*openai.Provider, error) {
	ws, err := a.workspace()
	if err != nil {
		return nil, err
	}
	c, err := a.loadConfig(ws)
	if err != nil {
		return nil, err
	}
	p := c.Providers[name]
	if p == nil {
		a.note("no provider %s is configured: encoded as for a plain OpenAI-compatible endpoint", quote(name))
		p = &config.Provider{Name: name, Kind: config.KindOpenAI, BaseURL: "http://localhost"}
	}
	enc, err := p.Encoder()
	if err != nil {
		return nil, misuse(err)
	}
	return enc, nil
}
