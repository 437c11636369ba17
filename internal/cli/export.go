package cli

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/exchange/transcript"
	"github.com/outcrop-dev/outcrop/internal/answer"
	"github.com/outcrop-dev/outcrop/internal/desk"
	"github.com/outcrop-dev/outcrop/internal/exit"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/internal/records"
	"github.com/outcrop-dev/outcrop/internal/term"
	"github.com/outcrop-dev/outcrop/store"
)

// exportFlags are the flags of export.
type exportFlags struct {
	format string
	out    string
	since  string
	turns  string
	at     int64
	raw    bool
	all    bool
	tree   bool
	force  bool
}

// exported is what an exporter did.
type exported struct {
	masked int
	notes  []string // what a person should know
	beside []string // files that were written beside the one that was asked for
	tail   store.Tail
	damage error // why the log could not be read to its end
}

// exportTo says where an export goes.
type exportTo struct {
	w    io.Writer
	path string // "" for stdout
}

// exportFormat is one thing that a session can be written as.
type exportFormat struct {
	name, ending, what string
	part               bool // --since and --turns choose a part of it
	binary             bool // no text for a terminal
	tree               bool // it can take along the sessions that come from this one
	all                bool // --all means something
	write              func(a *app, ctx context.Context, t *desk.Target, to exportTo, o exportOptions) (exported, error)
}

// exportOptions are the flags, understood.
type exportOptions struct {
	transcript.Options
	at   int64
	tree bool
}

// exportFormats are all of them, in the order of the help.
func exportFormats() []exportFormat {
	return []exportFormat{
		{name: "md", ending: ".md", what: "Markdown for people: an issue, a page", part: true, all: true, write: (*app).exportMarkdown},
		{name: "html", ending: ".html", what: "one HTML file for a browser: folded, searchable, with images", part: true, all: true, write: (*app).exportHTML},
		{name: "jsonl", ending: ".jsonl", what: "the log: header and lines of session format 0", write: (*app).exportLines},
		{name: "openai", what: "the next request, as OpenAI's chat completions take it", write: (*app).exportOpenAI},
		{name: "anthropic", what: "the next request, as Anthropic's messages take it", write: (*app).exportAnthropic},
		{name: "script", what: "what the model said, to play it again (run --script)", write: (*app).exportScript},
		{name: "claude-code", what: "what the model sees, as a session of Claude Code", write: (*app).exportClaudeCode},
		{name: "codex", what: "what the model sees, as a session of Codex", write: (*app).exportCodex},
		{name: "dsh3", what: "the log in session format 3, for later versions of dsh", write: (*app).exportFormat3},
		{name: "zip", ending: ".zip", what: "a package that outcrop import takes back", binary: true, tree: true, write: (*app).exportZip},
	}
}

func (a *app) newExportCommand() *cobra.Command {
	var f exportFlags
	c := &cobra.Command{
		Use:   "export TARGET",
		Short: "A session as a document, a log, a request or a file for others",
		Long: `Writes a session in another form, to stdout or to --out FILE, whose ending
then chooses the form when --format does not:

` + formatHelp() + `
What looks like a key or a password is masked, and stderr says how often; --raw
leaves everything as it is. Nothing here changes the session. A file that exists
is not overwritten without --force.

A zip in which something was masked holds a copy under the id ID-masked; one in
which nothing looks like a secret, or with --raw, comes back to the byte.`,
		Args: exactly("TARGET"),
		RunE: func(c *cobra.Command, args []string) error {
			return a.export(c, args[0], f)
		},
	}
	fl := c.Flags()
	fl.StringVar(&f.format, "format", "", "`FORM` of the export (default by the ending of FILE, else md)")
	fl.StringVar(&f.out, "out", "", "write to `FILE`")
	fl.StringVar(&f.since, "since", "", "only what came since `WHEN`: a seq, a time (2026-01-31, 2026-01-31T10:00:00Z), or an age (2h, 3d)")
	fl.StringVar(&f.turns, "turns", "", "only the turns `A..B`")
	fl.Int64Var(&f.at, "at", everything, "the session as it was after the event `SEQ`")
	fl.BoolVar(&f.raw, "raw", false, "mask nothing")
	fl.BoolVar(&f.all, "all", false, "also what was taken back by a rewind")
	fl.BoolVar(&f.tree, "tree", false, "zip: also the sessions that come from this one")
	fl.BoolVar(&f.force, "force", false, "overwrite FILE")
	c.RegisterFlagCompletionFunc("format", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		var names []string
		for _, f := range exportFormats() {
			names = append(names, f.name)
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	})
	return c
}

func formatHelp() string {
	var b strings.Builder
	for _, f := range exportFormats() {
		b.WriteString("  " + term.Pad(f.name, 12) + f.what + "\n")
	}
	return b.String()
}

func (a *app) export(c *cobra.Command, name string, f exportFlags) error {
	ctx := c.Context()
	format, err := f.choose()
	if err != nil {
		return err
	}
	o, err := f.options(c, format, a.Env.Now())
	if err != nil {
		return err
	}
	if a.Flags.JSON && f.out == "" {
		return exit.Usagef("--json says what was written: give --out FILE for the export itself")
	}
	if f.out == "" && format.binary && a.Env.Terminal(a.Env.Stdout) {
		return exit.Usagef("%s is no text for a terminal: give --out FILE, or send it into another program", format.name)
	}
	t, err := a.Resolve(ctx, name)
	if err != nil {
		return err
	}
	t.NoteOvertaken(ctx)
	if o.Before > 0 {
		if err := a.reached(ctx, t, o.at); err != nil {
			return err
		}
	}
	to := exportTo{w: a.Out}
	var file *newFile
	if f.out != "" {
		if to.path = a.Path(f.out); filepath.Base(to.path) == "" {
			return exit.Usagef("--out %s names no file", term.Quote(f.out))
		}
		if file, err = createFile(to.path, f.force); err != nil {
			return err
		}
		defer file.drop()
		to.w = file
	}
	done, err := format.write(a, ctx, t, to, o)
	if err != nil {
		return err
	}
	if file != nil {
		if err := file.publish(); err != nil {
			return err
		}
	}
	return a.exportDone(t, format, f, file, done)
}

// exportDone says what was written.
func (a *app) exportDone(t *desk.Target, format *exportFormat, f exportFlags, file *newFile, done exported) error {
	for _, n := range done.notes {
		a.Note("%s", n)
	}
	switch {
	case f.raw:
		a.Note("nothing was masked (--raw): the export may hold keys and passwords")
	case done.masked > 0:
		a.Note("%s that looked like a secret masked (--raw leaves them)", term.Plural(done.masked, "place"))
	}
	if done.damage != nil {
		a.missing = exit.With(3, fmt.Errorf("not everything is in the export: %w", done.damage))
	} else {
		a.tornNote(t, done.tail)
	}
	if file == nil {
		return nil
	}
	if a.Flags.JSON {
		id := t.ID
		if id == "" {
			id = f.session(a, t)
		}
		return a.Line(answer.New().Text("session", id).Text("format", format.name).Text("out", file.path).Number("bytes", file.size).
			Bool("raw", f.raw).Number("masked", int64(done.masked)).
			Raw("beside", answer.List(len(done.beside), func(dst []byte, i int) []byte { return jsonwire.AppendString(dst, done.beside[i]) })).
			Bool("complete", done.damage == nil).End())
	}
	a.Text(fmt.Sprintf("%s, %s bytes\n", term.Line(file.path), term.Count(file.size)))
	if n := len(done.beside); n > 0 {
		a.Text(fmt.Sprintf("%s beside it in %s\n", term.Plural(n, "file"), term.Line(filepath.Dir(done.beside[0]))))
	}
	return nil
}

// session is the id of a log file.
func (f *exportFlags) session(a *app, t *desk.Target) string {
	sd, err := t.Store.Read(context.Background(), t.ID)
	if err != nil {
		return ""
	}
	defer sd.Close()
	return sd.Header().ID
}

// choose finds the format.
func (f *exportFlags) choose() (*exportFormat, error) {
	formats := exportFormats()
	name := f.format
	if name == "" {
		ending := strings.ToLower(filepath.Ext(f.out))
		for i := range formats {
			if formats[i].ending == ending && ending != "" {
				return &formats[i], nil
			}
		}
		switch {
		case f.out == "" || ending == ".markdown":
			name = "md"
		case ending == ".htm":
			name = "html"
		default:
			return nil, exit.Usagef("the ending of %s says no form: give --format", term.Quote(f.out))
		}
	}
	var names []string
	for i := range formats {
		if formats[i].name == name {
			return &formats[i], nil
		}
		names = append(names, formats[i].name)
	}
	return nil, exit.Usagef("--format %s%s", term.Quote(name), meant(name, names, "use "+strings.Join(names, ", ")))
}

// options understands the flags for a format.
func (f *exportFlags) options(c *cobra.Command, format *exportFormat, now time.Time) (o exportOptions, err error) {
	o.Raw, o.Rewound, o.tree, o.at = f.raw, f.all, f.tree, f.at
	if c.Flags().Changed("at") {
		if f.at < 0 {
			return o, exit.Usagef("--at %d: events are counted from 0", f.at)
		}
		o.Before = outcrop.Seq(f.at) + 1
	}
	if !format.part && (f.since != "" || f.turns != "") {
		flag := "--since"
		if f.turns != "" {
			flag = "--turns"
		}
		return o, exit.Usagef("%s does not go with %s, which has no meaning without its beginning: use md or html, or --at SEQ for an earlier end", flag, format.name)
	}
	if f.all && !format.all {
		return o, exit.Usagef("--all is for documents (md, html): %s has what the log or the model has", format.name)
	}
	if f.tree && !format.tree {
		return o, exit.Usagef("--tree goes with --format zip")
	}
	if err := f.readSince(&o, now); err != nil {
		return o, err
	}
	return o, f.readTurns(&o)
}

func (f *exportFlags) readSince(o *exportOptions, now time.Time) error {
	if f.since == "" {
		return nil
	}
	if n, err := strconv.ParseInt(f.since, 10, 64); err == nil && n >= 0 {
		o.From = outcrop.Seq(n)
		return nil
	}
	if n := len(f.since) - 1; n > 0 {
		unit := map[byte]time.Duration{'m': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour, 'w': 7 * 24 * time.Hour}[f.since[n]]
		if k, err := strconv.ParseInt(f.since[:n], 10, 32); err == nil && k >= 0 && unit > 0 {
			o.Since = now.Add(-time.Duration(k) * unit).UnixMilli()
			return nil
		}
	}
	for _, layout := range [...]string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04:05", "2006-01-02 15:04", "2006-01-02"} {
		if t, err := time.ParseInLocation(layout, f.since, now.Location()); err == nil {
			o.Since = max(t.UnixMilli(), 1)
			return nil
		}
	}
	return exit.Usagef("--since %s: give a seq, a time such as 2026-01-31 or 2026-01-31T10:00:00Z, or an age such as 2h or 3d", term.Quote(f.since))
}

func (f *exportFlags) readTurns(o *exportOptions) error {
	if f.turns == "" {
		return nil
	}
	wrong := exit.Usagef("--turns %s: give A..B, A.., ..B or one number; turns are counted from 1", term.Quote(f.turns))
	first, last, found := strings.Cut(f.turns, "..")
	if !found {
		last = first
	}
	for _, one := range [...]struct {
		text string
		to   *int
	}{{first, &o.FirstTurn}, {last, &o.LastTurn}} {
		if one.text == "" && found {
			continue
		}
		n, err := strconv.Atoi(one.text)
		if err != nil || n < 1 {
			return wrong
		}
		*one.to = n
	}
	if first == "" && last == "" || o.LastTurn > 0 && o.FirstTurn > o.LastTurn {
		return wrong
	}
	return nil
}

// reached refuses an --at behind the end of the log, before anything is written.
func (a *app) reached(ctx context.Context, t *desk.Target, at int64) error {
	sd, err := t.Read(ctx)
	if err != nil {
		return err
	}
	defer sd.Close()
	n := 0
	var damage error
	for r, err := range records.Through(ctx, sd.Records(), outcrop.Seq(at)) {
		if err != nil {
			damage = store.Located(err, sd)
			break
		}
		n = int(r.Last()) + 1
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if at < int64(n) {
		return nil
	}
	return a.judge(t, store.Tail{}, damage, n, at)
}
