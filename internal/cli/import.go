package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/outcrop-dev/outcrop/exchange"
	"github.com/outcrop-dev/outcrop/internal/answer"
	"github.com/outcrop-dev/outcrop/internal/exit"
	"github.com/outcrop-dev/outcrop/internal/term"
)

// importFlags are the flags of import.
type importFlags struct {
	from   string
	cwd    []string
	dry    bool
	unread bool
}

func (a *app) newImportCommand() *cobra.Command {
	var f importFlags
	c := &cobra.Command{
		Use:   "import PATH...",
		Short: "Take over the sessions of other programs",
		Long: "Takes over what these programs keep of their sessions:\n" + importLabels() + "\n\n" + `PATH is a file, or a folder with all below it; the home directory stands for
the folders in it where these programs keep sessions. Files of nobody are
passed over. Nothing that is read is changed.

A second import finds what is there already and takes only what is new: it
goes on with a session that has grown, as long as nobody else did, and else
makes a new one beside it. A file that cannot be read is named and skipped;
then the exit code is 1. The report says what was kept, what stands in another
shape, and what could not be kept, and why.`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return a.importNothing()
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error { return a.imports(c.Context(), args, f) },
	}
	fl := c.Flags()
	fl.StringVar(&f.from, "from", "", "`PROGRAM` that wrote PATH: "+strings.Join(importNames(), ", ")+" (default: what each file looks like)")
	fl.StringArrayVar(&f.cwd, "cwd", nil, "sessions of the workspace FROM, or of one below it, get TO in its place: `FROM=TO`")
	fl.BoolVar(&f.dry, "dry-run", false, "say what would be done, and store nothing")
	fl.BoolVar(&f.unread, "all", false, "read also what did not change since the last import")
	return c
}

func importNames() (names []string) {
	for _, f := range importFormats() {
		names = append(names, f.Name)
	}
	return names
}

func importLabels() string {
	var labels []string
	for _, f := range importFormats() {
		labels = append(labels, f.Label)
	}
	text := strings.Join(labels, ", ")
	if n := len(labels); n > 1 {
		text = strings.Join(labels[:n-1], ", ") + " and " + labels[n-1]
	}
	lines := term.Wrap(text, 70)
	return strings.Join(lines, "\n")
}

// importHomes are the folders below a home directory that hold sessions.
func importHomes(home, from string) (found []string) {
	for _, f := range importFormats() {
		for _, dir := range f.Home {
			p := filepath.Join(home, filepath.FromSlash(dir))
			if fi, err := os.Stat(p); err == nil && fi.IsDir() && (from == "" || from == f.Name) {
				found = append(found, p)
			}
		}
	}
	return found
}

// importNothing is the error when no PATH was given.
func (a *app) importNothing() error {
	hint := "name a file, or a folder such as ~/.claude"
	if home := a.Home(); home != "" {
		if found := importHomes(home, ""); len(found) > 0 {
			hint = "there are sessions in " + term.Line(strings.Join(found, ", "))
		}
	}
	return exit.Usagef("outcrop import needs PATH: %s", hint)
}

// imports runs the command.
func (a *app) imports(ctx context.Context, paths []string, f importFlags) error {
	formats := importFormats()
	if f.from != "" && !slices.Contains(importNames(), f.from) {
		return exit.Usagef("--from %s%s", term.Quote(f.from), meant(f.from, importNames(), "use "+strings.Join(importNames(), ", ")))
	}
	maps, err := a.cwdMaps(f.cwd)
	if err != nil {
		return err
	}
	st, err := a.OpenStore()
	if err != nil {
		return err
	}
	defer st.Close()
	im := &exchange.Importer{Store: st, Cwd: maps.apply, DryRun: f.dry, Now: a.Env.Now}
	if !f.unread {
		home, err := a.StateHome()
		if err != nil {
			return err
		}
		if im.State, err = exchange.OpenState(filepath.Join(home, "imports.jsonl")); err != nil {
			a.Note("what earlier imports did is not known, so everything is read: %v", err)
			im.State = nil
		}
		state := im.State
		defer func() {
			if err := state.Close(); err != nil {
				a.Note("the next import will read everything: what this one did cannot be remembered: %v", err)
			}
		}()
	}
	var sum importSummary
	var sources []exchange.Source
	var total int64
	for _, p := range a.importPaths(paths, f.from) {
		for src, err := range exchange.Find(ctx, formats, p, f.from) {
			if err != nil {
				if ctx.Err() != nil {
					return ctx.Err()
				}
				if err := a.imported(nil, &sum, &exchange.Report{Path: src.Path, Err: err}); err != nil {
					return err
				}
				continue
			}
			sources = append(sources, src)
			total += src.Size
		}
	}
	defer boundImport(sources)()
	bar := a.progress("importing", total)
	defer bar.End()
	var done int64
	im.Progress = func(n int64) { done += n; bar.At(done) }
	for r, err := range im.ImportAll(ctx, sources) {
		if err != nil {
			bar.End()
			return err
		}
		if err := a.imported(bar, &sum, r); err != nil {
			return err
		}
	}
	bar.End()
	if err := a.importSummary(&sum, f.dry); err != nil {
		return err
	}
	if sum.skipped > 0 {
		return exit.With(1, nil)
	}
	return nil
}

// importPaths are the paths to look in: for a home directory those of the
// programs.
func (a *app) importPaths(paths []string, from string) (out []string) {
	home := a.Home()
	for _, p := range paths {
		p = a.Path(p)
		if home != "" && filepath.Clean(p) == filepath.Clean(a.Path(home)) {
			out = append(out, importHomes(home, from)...)
			continue
		}
		out = append(out, p)
	}
	return out
}

// cwdMap is one FROM=TO.
type cwdMap struct{ from, to string }

type cwdMaps []cwdMap

func (a *app) cwdMaps(list []string) (maps cwdMaps, err error) {
	for _, m := range list {
		from, to, ok := strings.Cut(m, "=")
		if !ok || from == "" || to == "" {
			return nil, exit.Usagef("--cwd %s: write FROM=TO, two folders", term.Quote(m))
		}
		if len(from) > 1 {
			from = strings.TrimRight(from, `/\`)
		}
		maps = append(maps, cwdMap{from, filepath.Clean(a.Path(to))})
	}
	// The longest one that fits counts.
	slices.SortStableFunc(maps, func(x, y cwdMap) int { return cmp.Compare(len(y.from), len(x.from)) })
	return maps, nil
}

func (m cwdMaps) apply(dir string) string {
	for _, x := range m {
		rest, ok := strings.CutPrefix(dir, x.from)
		if ok && (rest == "" || rest[0] == '/' || rest[0] == '\\' || x.from == "/") {
			return strings.TrimRight(x.to, "/") + rest
		}
	}
	return dir
}

// importSummary counts what an import did.
type importSummary struct {
	sources, skipped int
	verdicts         map[exchange.Verdict]int
	events           int64
	entries          exchange.Report // all reports together
}

func (s *importSummary) add(r *exchange.Report) {
	s.sources++
	if s.verdicts == nil {
		s.verdicts = map[exchange.Verdict]int{}
	}
	for _, o := range r.Sessions {
		s.verdicts[o.Verdict]++
		s.events += o.Events
	}
	s.entries.Add(r)
}

// imported tells what became of one source.
func (a *app) imported(bar *term.Progress, sum *importSummary, r *exchange.Report) error {
	sum.add(r)
	if r.Err != nil {
		sum.skipped++
		bar.End()
	}
	if a.Flags.JSON {
		return a.Line(answer.New().Raw("report", r.AppendJSON(nil)).End())
	}
	if r.Err != nil {
		a.Problem(fmt.Errorf("skipped: %w", r.Err))
	}
	for _, o := range r.Sessions {
		if o.Err != nil && !errors.Is(r.Err, o.Err) {
			a.Problem(fmt.Errorf("skipped: %w", o.Err))
		}
		if o.Verdict == exchange.Present || o.Verdict == exchange.Failed {
			continue
		}
		a.Text(importLine(&o))
		if o.Why != "" {
			a.Text("  beside another one: " + term.OneLine(o.Why) + "\n")
		}
	}
	return nil
}

// importLine is a session that was stored, in one line.
func importLine(o *exchange.Outcome) string {
	what := fmt.Sprintf("%s, %s", term.Plural(o.Turns, "turn"), term.Plural(o.Messages, "message"))
	if o.Verdict == exchange.Continued {
		what = term.Plural(o.Events, "new event")
	}
	title := ""
	if o.Title != "" {
		title = "  " + term.Cut(term.OneLine(o.Title), 40)
	}
	return fmt.Sprintf("%-9s %s  %s%s\n", o.Verdict, term.Line(o.ID), what, title)
}

// importSummary ends the answer.
func (a *app) importSummary(s *importSummary, dry bool) error {
	n := func(v exchange.Verdict) int64 { return int64(s.verdicts[v]) }
	if a.Flags.JSON {
		return a.Line(answer.New().Raw("summary", answer.Inner().Bool("dryRun", dry).Number("sources", int64(s.sources)).
			Number("imported", n(exchange.Imported)).Number("continued", n(exchange.Continued)).Number("copied", n(exchange.Copied)).
			Number("present", n(exchange.Present)).Number("skipped", int64(s.skipped)).Number("events", s.events).End()).End())
	}
	if s.sources == 0 && s.skipped == 0 {
		a.Text("nothing here that can be imported\n")
		return nil
	}
	would := ""
	if dry {
		would = " (dry run: nothing was stored)"
	}
	a.Text(fmt.Sprintf("%s: %d imported, %d continued, %d beside others, %d there already, %d skipped%s\n",
		term.Plural(s.sources, "source"), n(exchange.Imported), n(exchange.Continued), n(exchange.Copied), n(exchange.Present), s.skipped, would))
	fate := exchange.Fate("")
	for _, e := range s.entries.Sorted() {
		if e.Fate != fate {
			fate = e.Fate
			a.Text(string(fate) + "\n")
		}
		line := fmt.Sprintf("%8s  %s", term.Count(e.Count), term.OneLine(e.Kind))
		if e.Why != "" {
			line += ": " + term.OneLine(e.Why)
		}
		for i, l := range term.Wrap(line, term.Width-2) {
			if i > 0 {
				l = strings.Repeat(" ", 10) + strings.TrimLeft(l, " ")
			}
			a.Text(l + "\n")
		}
	}
	return nil
}
