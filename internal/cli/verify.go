package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/doctor"
	"github.com/outcrop-dev/outcrop/internal/answer"
	"github.com/outcrop-dev/outcrop/internal/exit"
	"github.com/outcrop-dev/outcrop/internal/term"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/jsonl"
	"github.com/outcrop-dev/outcrop/wire"
)

func (a *app) newVerifyCommand() *cobra.Command {
	var strict bool
	c := &cobra.Command{
		Use:   "verify TARGET...",
		Short: "Every check of a log, all findings, nothing changed",
		Long: `Prints every finding and then a summary. A log is ok when it can be continued
as it is, after cutting a torn tail and closing an open turn. Exit 0 when all
are ok, 1 when one is not, 3 when a file holds no session or one of a format
that cannot be read. What can be done about findings, doctor says.`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return exactly("TARGET")(c, args)
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			worst := 0
			for _, name := range args {
				n, err := a.verify(c.Context(), name, strict)
				if err != nil {
					if c.Context().Err() != nil || len(args) == 1 {
						return err
					}
					// The other targets are still worth a look.
					fmt.Fprintf(a.ErrOut, "outcrop: %s\n", exit.Explain(err))
					n = exit.Code(err)
				}
				worst = max(worst, n)
			}
			if worst != 0 {
				return exit.With(worst, nil)
			}
			return nil
		},
	}
	c.Flags().BoolVar(&strict, "strict", false, "warnings fail too")
	return c
}

// verify checks one target and returns its exit code.
func (a *app) verify(ctx context.Context, name string, strict bool) (int, error) {
	p, err := a.patient(ctx, name)
	if err != nil {
		return 0, err
	}
	defer p.close()
	bar := a.progress("verifying", p.target.Size)
	target := p.target
	if target.R != nil {
		target.R = bar.Reader(target.R)
	}
	findings, sum := doctor.Verify(ctx, target, p.options)
	defer bar.End()
	for finding := range findings {
		bar.End()
		if err := a.finding(name, finding); err != nil {
			return 0, err
		}
	}
	bar.End()
	if ctx.Err() != nil {
		return 0, ctx.Err()
	}
	if sum.Err != nil && outcrop.CodeOf(sum.Err) == "" {
		// Not the log is bad, reading it is.
		return 0, sum.Err
	}
	if err := a.summary(sum, strict); err != nil {
		return 0, err
	}
	switch {
	case sum.Err != nil:
		return 3, nil
	case !sum.OK, strict && sum.Warnings > 0:
		return 1, nil
	}
	return 0, nil
}

// patient is a target of verify and doctor.
type patient struct {
	path    string // of the log file; "" for a session that lies in none
	session string // id, "" for a file that is named by its path
	target  doctor.Target
	options doctor.Options
	file    io.Closer // nil for a session that lies in none
}

// patient opens what a person named.
func (a *app) patient(ctx context.Context, name string) (*patient, error) {
	t, err := a.Resolve(ctx, name)
	if err != nil {
		return nil, err
	}
	p := &patient{session: t.ID, target: doctor.Target{Name: name}, options: doctor.Options{Attachment: attachments(t.Store)}}
	switch st := t.Store.(type) {
	case *jsonl.FileStore:
		p.path = st.Address()
	case *jsonl.Store:
		if p.path, err = a.fileIn(ctx, st, t.ID); err != nil {
			return nil, err
		}
		dir := filepath.Dir(p.path)
		p.options.Place = &doctor.Place{Root: os.DirFS(st.Root()), Project: filepath.Base(filepath.Dir(dir)), Session: filepath.Base(dir), ID: t.ID}
	default:
		p.target.Open = func(ctx context.Context) (store.Stored, error) { return st.Read(ctx, t.ID) }
		return p, nil
	}
	f, fi, err := jsonl.OpenBytes(p.path)
	if err != nil {
		return nil, exit.Unreadable(err)
	}
	enc, ok := wire.EncodingOf(p.path)
	if !ok {
		_, err := jsonl.File(p.path, jsonl.Options{})
		return nil, errors.Join(exit.With(3, err), f.Close())
	}
	p.file = f
	p.target.R, p.target.Size, p.target.Encoding = f, fi.Size(), enc
	return p, nil
}

func (p *patient) close() {
	if p.file != nil {
		p.file.Close()
	}
}

// fileIn is the file that holds a session of a root, readable or not.
func (a *app) fileIn(ctx context.Context, st *jsonl.Store, id string) (string, error) {
	sd, err := st.Read(ctx, id)
	if err == nil {
		return sd.Path(), sd.Close()
	}
	if path := pathIn(err); path != "" {
		return path, nil
	}
	return "", exit.Unreadable(err)
}

// pathIn is the log file that an error is about, "" when it is about none.
func pathIn(err error) string {
	var e *outcrop.Error
	if !errors.As(err, &e) {
		return ""
	}
	if fi, statErr := os.Stat(e.Path); statErr != nil || !fi.Mode().IsRegular() {
		return ""
	}
	return e.Path
}

// attachments looks for attachments where a store keeps them.
func attachments(st store.Store) func(context.Context, string) (bool, error) {
	objects := store.ObjectsOf(st)
	if objects == nil {
		return nil
	}
	return func(ctx context.Context, id string) (bool, error) {
		_, err := objects.Get(ctx, id)
		if errors.Is(err, outcrop.ErrNotFound) {
			return false, nil
		}
		return err == nil, err
	}
}

func (a *app) finding(name string, f doctor.Finding) error {
	if a.Flags.JSON {
		return a.Line(answer.New().Raw("finding", f.AppendJSON(nil)).End())
	}
	a.findingText(f)
	return nil
}

func (a *app) findingText(f doctor.Finding) {
	st := a.Style()
	head := st.Yellow("warning")
	if f.Severity == doctor.SeverityError {
		head = st.Red("error")
	}
	where := ""
	if f.Seq >= 0 {
		where += fmt.Sprintf(" event %d", f.Seq)
	}
	if f.Line > 0 {
		where += fmt.Sprintf(" line %d", f.Line)
	}
	if f.Offset >= 0 {
		where += fmt.Sprintf(" byte %d", f.Offset)
	}
	a.Text(head + " " + term.Line(string(f.Code)) + where + "\n")
	for _, text := range [...]string{f.Message, f.Hint} {
		if text == "" {
			continue
		}
		for _, l := range term.Wrap(term.OneLine(text), term.Width-2) {
			a.Text("  " + l + "\n")
		}
	}
}

func (a *app) summary(s *doctor.Summary, strict bool) error {
	if a.Flags.JSON {
		return a.Line(answer.New().Raw("summary", s.AppendJSON(nil)).End())
	}
	st := a.Style()
	verdict := st.Green("ok")
	switch {
	case !s.OK:
		verdict = st.Red("not ok")
	case strict && s.Warnings > 0:
		verdict = st.Red("not ok (--strict)")
	}
	a.Text(st.Bold(term.Line(s.Target)) + ": " + verdict + "\n")
	if s.Err == nil {
		open := ""
		if s.OpenTurn {
			open = ", the last one is open"
		}
		a.Text(fmt.Sprintf("  %s, %s on the surface, %s, %s%s\n", term.Plural(s.Events, "event"), term.Plural(s.Surface, "node"),
			term.Plural(s.Generation, "edit"), term.Plural(s.Turns, "turn"), open))
		if s.TruncatedAt != nil {
			a.Text(fmt.Sprintf("  the torn tail is cut at byte %d by the next writer\n", *s.TruncatedAt))
		}
	}
	dsh := ""
	if s.DSH != "" {
		dsh = ", dsh 0.1: " + string(s.DSH)
	}
	if s.DSHClass != "" {
		dsh += " (" + term.Line(s.DSHClass) + ")"
	}
	a.Text(fmt.Sprintf("  %s, %s%s\n", term.Plural(s.Errors, "error"), term.Plural(s.Warnings, "warning"), dsh))
	return nil
}
