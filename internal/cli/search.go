package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/outcrop-dev/outcrop/internal/answer"
	"github.com/outcrop-dev/outcrop/internal/exit"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/internal/term"
	"github.com/outcrop-dev/outcrop/search"
	"github.com/outcrop-dev/outcrop/store"
)

// searchFlags are the flags of search.
type searchFlags struct {
	session string
	role    string
	tool    string
	in      string
	since   string
	until   string
	newest  bool
	limit   int
	offset  int
}

func (a *app) newSearchCommand() *cobra.Command {
	var f searchFlags
	c := &cobra.Command{
		Use:   "search QUERY...",
		Short: "Find text in all sessions, also where it is no longer shown",
		Long: `Finds the messages that have all words and "quoted phrases" of QUERY, in any
case and with or without accents; word* is the beginning of a word. What
compaction and pruning took out of the model's sight is found too.

The first search reads all sessions into an index, later ones read what is new.
The index is a file in the state folder and can be deleted.`,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return exit.Usagef("search needs QUERY: usage: %s", c.UseLine())
			}
			return a.search(c.Context(), strings.Join(args, " "), f)
		},
	}
	fl := c.Flags()
	fl.StringVar(&f.session, "session", "", "only in this `SESSION`: id, start of one, or last")
	fl.StringVar(&f.role, "role", "", "only what `WHO` said: user, assistant, tool, context or checkpoint")
	fl.StringVar(&f.tool, "tool", "", "only calls of the tool `NAME` and their results")
	fl.StringVar(&f.in, "in", "", "only sessions of the workspace `DIR`, or below it")
	fl.StringVar(&f.since, "since", "", "not before `WHEN`: a date like 2026-03-01, or a time ago like 7d or 12h")
	fl.StringVar(&f.until, "until", "", "before `WHEN`")
	fl.BoolVar(&f.newest, "newest", false, "the newest first, not the best")
	fl.IntVar(&f.limit, "limit", 20, "at most `N` hits")
	fl.IntVar(&f.offset, "offset", 0, "leave the first `N` out")
	return c
}

var searchRoles = []string{"", string(search.User), string(search.Assistant), string(search.Tool), string(search.Context), string(search.Checkpoint)}

func (a *app) search(ctx context.Context, query string, f searchFlags) error {
	q := search.Query{Text: query, Tool: f.tool, Newest: f.newest, Limit: f.limit, Offset: f.offset}
	switch {
	case !slices.Contains(searchRoles, f.role):
		return exit.Usagef("--role %s: use user, assistant, tool, context or checkpoint", term.Quote(f.role))
	case f.limit < 1:
		return exit.Usagef("--limit %d: give a number from 1 on", f.limit)
	case f.offset < 0:
		return exit.Usagef("--offset %d: give a number from 0 on", f.offset)
	}
	if f.role != "" {
		q.Roles = []search.Role{search.Role(f.role)}
	}
	var err error
	if q.Since, err = a.when("since", f.since); err != nil {
		return err
	}
	if q.Until, err = a.when("until", f.until); err != nil {
		return err
	}
	if f.in != "" {
		q.Cwd = a.Path(f.in)
	}
	st, err := a.OpenStore()
	if err != nil {
		return err
	}
	defer st.Close()
	q.Store = st.Address()
	if f.session != "" {
		t, err := a.Resolve(ctx, f.session)
		if err != nil {
			return err
		}
		if t.Path != "" {
			return exit.Usagef("--session %s is a file: search looks into the sessions of a store", term.Quote(f.session))
		}
		q.Session = t.ID
	}
	ix, err := a.openIndex(ctx)
	if err != nil {
		return err
	}
	defer ix.Close()
	var bar *term.Progress
	r, err := ix.Update(ctx, st, func(done, all int64) {
		if bar == nil {
			bar = a.progress("reading", all)
		}
		if bar != nil {
			bar.At(done)
		}
	})
	if bar != nil {
		bar.End()
	}
	if err != nil {
		return err
	}
	hits, more, err := ix.Search(ctx, q)
	if errors.Is(err, search.ErrQuery) {
		return exit.Misuse(err)
	}
	if err != nil {
		return err
	}
	for _, h := range hits {
		if err := a.hit(h); err != nil {
			return err
		}
	}
	told := map[string]bool{}
	for _, h := range hits {
		if err := store.Overtaken(ctx, st, h.Session); err != nil && !told[h.Session] {
			a.NoteOlder(err)
		}
		told[h.Session] = true
	}
	for _, t := range r.Troubles {
		name := t.Session
		if name == "" {
			name = t.Path
		}
		a.Note("%s cannot be searched to its end: %s", term.Line(name), term.Line(t.Err.Error()))
	}
	if more {
		a.Note("there are more: --offset %d shows the next", f.offset+len(hits))
	}
	if len(hits) == 0 {
		return exit.Refusedf("nothing found in %s", term.Plural(r.Sessions, "session"))
	}
	return nil
}

// openIndex opens the index of all stores.
func (a *app) openIndex(ctx context.Context) (*search.Index, error) {
	home, err := a.StateHome()
	if err != nil {
		return nil, err
	}
	return search.Open(ctx, filepath.Join(home, "search.db"), search.Options{Logger: a.Logger})
}

// hit prints one message that was found.
func (a *app) hit(h search.Hit) error {
	open := fmt.Sprintf("%s show %s --at %d", a.Env.Program, term.Word(h.Session), h.Seq)
	if a.Flags.Store != "" {
		open += " --store " + term.Word(a.Flags.Store)
	}
	if a.Flags.JSON {
		o := answer.New().Text("session", h.Session).TextOrNull("title", h.Title).TextOrNull("cwd", h.Cwd).
			Number("seq", int64(h.Seq)).Number("time", h.Time).Text("role", string(h.Role))
		o.Raw("tools", answer.List(len(strings.Fields(h.Tool)), func(dst []byte, i int) []byte {
			return jsonwire.AppendString(dst, strings.Fields(h.Tool)[i])
		}))
		o.Raw("snippet", answer.List(len(h.Snippet), func(dst []byte, i int) []byte {
			return append(dst, answer.Inner().Text("text", h.Snippet[i].Text).Bool("hit", h.Snippet[i].Hit).End()...)
		}))
		return a.Line(o.Text("open", open).End())
	}
	st := a.Style()
	when := time.UnixMilli(h.Time).Format(time.DateOnly)
	head := term.Line(h.Session) + ":" + strconv.FormatInt(int64(h.Seq), 10)
	role := string(h.Role)
	if h.Tool != "" {
		role += " " + term.Line(h.Tool)
	}
	a.Text(st.Bold(head) + "  " + st.Dim(when+"  "+role+"  "+term.Cut(term.Line(h.Title), 40)) + "\n  ")
	for _, s := range h.Snippet {
		if text := term.Line(s.Text); s.Hit {
			a.Text(st.Yellow(text))
		} else {
			a.Text(text)
		}
	}
	a.Text("\n  " + st.Dim(open) + "\n")
	return nil
}

// when reads a date, or a time ago.
func (a *app) when(flag, text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	now := a.Env.Now()
	for _, form := range []string{time.DateOnly, "2006-01-02 15:04", time.RFC3339} {
		if t, err := time.ParseInLocation(form, text, now.Location()); err == nil {
			return t.UnixMilli(), nil
		}
	}
	unit := map[byte]time.Duration{'m': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour, 'w': 7 * 24 * time.Hour}[text[len(text)-1]]
	if n, err := strconv.Atoi(text[:len(text)-1]); err == nil && n >= 0 && n < 1e5 && unit > 0 {
		return now.Add(-time.Duration(n) * unit).UnixMilli(), nil
	}
	return 0, exit.Usagef("--%s %s: give a date like 2026-03-01, or a time ago like 7d, 12h or 30m", flag, term.Quote(text))
}
