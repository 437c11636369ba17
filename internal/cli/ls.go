package cli

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/outcrop-dev/outcrop/internal/answer"
	"github.com/outcrop-dev/outcrop/internal/collection"
	"github.com/outcrop-dev/outcrop/internal/exit"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/internal/term"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/jsonl"
)

// listFlags are the flags of ls.
type listFlags struct {
	full     bool
	state    string
	tags     []string
	starred  bool
	in       string
	limit    int
	archived bool
}

func (a *app) newListCommand() *cobra.Command {
	var f listFlags
	c := &cobra.Command{
		Use:     "ls",
		Aliases: []string{"list"},
		Short:   "The sessions of the store, newest first",
		Long: `Lists the sessions of the store, newest first. A session that cannot be read is
listed with the reason. Title and turns are known of a log that was read once as
a whole: a catalogue in the state folder remembers them until the log changes.
Without --full ls gets to know the newest logs, 4 MiB of them, and reads of each
other one the head and the tail.

The title is the one that was given, else the first thing that a person typed.`,
		Args: exactly(),
		RunE: func(c *cobra.Command, _ []string) error { return a.list(c.Context(), f) },
	}
	fl := c.Flags()
	fl.BoolVar(&f.full, "full", false, "read all logs that are not known: titles, turns, damage in the middle")
	fl.StringVar(&f.state, "state", "", "only sessions in this `STATE`: ok, open-turn, damaged, newer or locked")
	fl.StringArrayVar(&f.tags, "tag", nil, "only sessions with this `TAG`; several: with all of them")
	fl.BoolVar(&f.starred, "starred", false, "only sessions with a star")
	fl.StringVar(&f.in, "in", "", "only sessions of the workspace `DIR`, or below it")
	fl.IntVar(&f.limit, "limit", 0, "at most `N` sessions (default: all)")
	noDefault(c, "limit")
	fl.BoolVar(&f.archived, "archived", false, "those in the archive too")
	return c
}

// listRow is a session of the store or of the archive.
type listRow struct {
	*collection.Entry
	archived bool
}

// readUnasked is how many stored bytes of the newest logs ls gets to know,
// without --full.
const readUnasked = 4 << 20

// untouched is memory that a listing reserves and never touches: what is left
// behind is collected when it is as much, and most listings end sooner.
const untouched = 64 << 20

func (a *app) list(ctx context.Context, f listFlags) error {
	states := []string{"", string(store.StateOK), string(store.StateOpenTurn), string(store.StateDamaged), string(store.StateNewer), string(store.StateLocked)}
	switch {
	case !slices.Contains(states, f.state):
		return exit.Usagef("--state %s: use ok, open-turn, damaged, newer or locked", term.Quote(f.state))
	case f.limit < 0:
		return exit.Usagef("--limit %d: give a number from 1 on", f.limit)
	}
	reserved := make([]byte, untouched)
	defer runtime.KeepAlive(reserved)
	st, err := a.OpenStore()
	if err != nil {
		return err
	}
	defer st.Close()
	c := a.collection(st)
	entries, err := c.List(ctx)
	if err != nil {
		return err
	}
	rows, err := a.listRows(ctx, c, entries, f)
	if err != nil {
		return err
	}
	a.keep(c)
	if a.Flags.JSON {
		for i := range rows {
			if err := a.Line(rows[i].json()); err != nil {
				return err
			}
		}
		return a.lacking(st, entries)
	}
	if len(rows) == 0 {
		if len(entries) == 0 {
			a.Note("there is no session in %s", term.Line(st.Address()))
		} else {
			a.Note("none of the %s in %s is asked for", term.Plural(len(entries), "session"), term.Line(st.Address()))
		}
		return a.lacking(st, entries)
	}
	a.listText(rows)
	return a.lacking(st, entries)
}

// listRows are the rows that are asked for, as far known as is asked for.
func (a *app) listRows(ctx context.Context, c *collection.Collection, entries []collection.Entry, f listFlags) ([]listRow, error) {
	in := a.Path(f.in)
	entries = slices.DeleteFunc(entries, func(e collection.Entry) bool { return f.in != "" && !inside(e.Cwd, in) })
	if f.full || f.starred || len(f.tags) > 0 {
		if err := a.learnAll(ctx, c, entries); err != nil {
			return nil, err
		}
		collection.Sort(entries)
	}
	rows := make([]listRow, 0, len(entries))
	for i := range entries {
		rows = append(rows, listRow{Entry: &entries[i]})
	}
	if f.archived {
		more, err := a.archivedRows(c, in, f)
		if err != nil {
			return nil, err
		}
		rows = append(rows, more...)
		slices.SortStableFunc(rows, func(x, y listRow) int { return int(min(1, max(-1, y.UpdatedAt-x.UpdatedAt))) })
	}
	rows = slices.DeleteFunc(rows, func(r listRow) bool {
		return f.state != "" && string(r.State) != f.state || f.starred && !r.Starred() ||
			slices.ContainsFunc(f.tags, func(t string) bool { return !slices.Contains(r.Tags, t) })
	})
	if f.limit > 0 && len(rows) > f.limit {
		rows = rows[:f.limit]
	}
	left := int64(readUnasked)
	for i := range rows {
		r := &rows[i]
		if r.archived || r.Bytes > left {
			continue
		}
		// What is known counts too, so that the next listing has nothing to read.
		left -= r.Bytes
		if err := c.Learn(ctx, r.Entry); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

func (a *app) archivedRows(c *collection.Collection, in string, f listFlags) ([]listRow, error) {
	items, err := c.Archive().List()
	if err != nil {
		return nil, err
	}
	var rows []listRow
	for _, i := range items {
		if i.Store != c.Store().Address() || i.Unfinished() || f.in != "" && !inside(i.Cwd, in) {
			continue
		}
		e := &collection.Entry{Info: store.Info{ID: i.ID, Title: i.Title, Cwd: i.Cwd, CreatedAt: i.CreatedAt, UpdatedAt: i.UpdatedAt,
			Events: i.Events, Turns: i.Turns, Bytes: i.Bytes, State: store.StateOK}}
		if i.Parent != "" {
			e.Header.ParentSession = &i.Parent
		}
		if i.Starred {
			e.Tags = []string{collection.Star}
		}
		rows = append(rows, listRow{e, true})
	}
	return rows, nil
}

// inside reports whether a directory is another one or below it.
func inside(dir, top string) bool {
	return dir != "" && (dir == top || strings.HasPrefix(dir, strings.TrimSuffix(top, string(filepath.Separator))+string(filepath.Separator)))
}

func (r *listRow) json() []byte {
	o := answer.New().Text("id", r.ID).TextOrNull("title", r.Title).TextOrNull("cwd", r.Cwd).
		Number("createdAt", r.CreatedAt).Number("updatedAt", r.UpdatedAt).
		NumberOrNull("events", r.Events).NumberOrNull("turns", int64(r.Turns)).Number("bytes", r.Bytes).
		Text("state", string(r.State)).TextOrNull("reason", r.Reason).TextOrNull("parent", r.Parent())
	if r.Whole || r.archived {
		tags := plainTags(r.Tags)
		o.Bool("starred", r.Starred()).Raw("tags", answer.List(len(tags), func(dst []byte, i int) []byte { return jsonwire.AppendString(dst, tags[i]) }))
	} else {
		o.Raw("starred", []byte("null")).Raw("tags", []byte("null"))
	}
	o.Bool("archived", r.archived)
	if f := r.format(); f > 0 {
		o.Number("format", f)
	}
	return o.End()
}

// format is the session format of what is stored: 0, or that of a later dsh.
func (r *listRow) format() int64 {
	if n, ok := jsonl.FormatOf(r.Path); ok && n > 0 && !r.archived {
		return int64(n)
	}
	return r.Header.Format
}

// plainTags are the tags that people gave.
func plainTags(tags []string) []string {
	return slices.DeleteFunc(slices.Clone(tags), func(t string) bool { return t == collection.Star })
}

func (a *app) listText(rows []listRow) {
	p := rowPrinter{a.Style(), a.Home(), a.Now()}
	a.Text(p.style.Bold(string(appendColumns(nil, "ID", "AGE", "EVENTS", "TURNS", "SIZE"))+"STATE") + "\n")
	texts := make([][]byte, runtime.GOMAXPROCS(0))
	const portion = 500
	for part := range slices.Chunk(rows, portion*len(texts)) {
		var printing sync.WaitGroup
		for i := range texts {
			texts[i] = texts[i][:0]
			mine := part[min(i*portion, len(part)):min((i+1)*portion, len(part))]
			if len(mine) == 0 {
				continue
			}
			printing.Go(func() {
				for r := range mine {
					texts[i] = p.appendRow(texts[i], &mine[r])
				}
			})
		}
		printing.Wait()
		for _, text := range texts {
			a.Out.Write(text)
		}
	}
}

// rowPrinter writes rows for people.
type rowPrinter struct {
	style term.Style
	home  string
	now   int64 // Unix milliseconds
}

func (p *rowPrinter) appendRow(dst []byte, r *listRow) []byte {
	known := func(n int64) string {
		if n < 0 {
			return "?"
		}
		return term.Count(n)
	}
	id := r.ID
	if id == "" {
		id = "?"
	}
	state := string(r.State)
	switch {
	case r.archived:
		state = p.style.Dim("archived")
	case r.State == store.StateOK:
		state = p.style.Green(state)
	case r.State == store.StateDamaged, r.State == store.StateNewer:
		state = p.style.Red(state)
	default:
		state = p.style.Yellow(state)
	}
	since := "?"
	if r.UpdatedAt != 0 {
		since = term.Age(p.now, r.UpdatedAt)
	}
	dst = appendColumns(dst, term.Cut(term.Line(id), 24), since, known(r.Events), known(int64(r.Turns)), term.Size(r.Bytes))
	dst = append(append(dst, state...), '\n')
	return p.appendAbout(dst, r)
}

// appendColumns appends the columns of a row before its state.
func appendColumns(dst []byte, id, age, events, turns, size string) []byte {
	dst = append(dst, id...)
	dst = appendSpaces(dst, 24-term.Columns(id))
	for _, c := range [...]struct {
		text string
		wide int
	}{{age, 4}, {events, 9}, {turns, 5}, {size, 7}} {
		dst = appendSpaces(dst, 1+max(0, c.wide-term.Columns(c.text)))
		dst = append(dst, c.text...)
	}
	return appendSpaces(dst, 2)
}

func appendSpaces(dst []byte, n int) []byte {
	for range n {
		dst = append(dst, ' ')
	}
	return dst
}

// appendAbout appends what a listing says below the row of a session.
func (p *rowPrinter) appendAbout(dst []byte, r *listRow) []byte {
	about := r.Title
	switch {
	case r.Cwd == "":
	case about == "":
		about = below(p.home, r.Cwd)
	default:
		about += " in " + below(p.home, r.Cwd)
	}
	mark := ""
	if r.Starred() {
		mark = "* "
	}
	for _, t := range plainTags(r.Tags) {
		about += " #" + t
	}
	if about = mark + strings.TrimSpace(about); about != "" {
		dst = append(dst, "  "...)
		dst = append(dst, p.style.Dim(term.Cut(term.OneLine(about), term.Width-2))...)
		dst = append(dst, '\n')
	}
	if r.Reason == "" {
		return dst
	}
	text := r.Reason
	if r.ID == "" && r.Path != "" {
		text = fmt.Sprintf("%s: %s", r.Path, text)
	}
	for _, l := range term.Wrap(term.OneLine(text), term.Width-2) {
		dst = append(append(append(dst, "  "...), l...), '\n')
	}
	return dst
}

// short writes a path below the home directory with ~.
func (a *app) short(path string) string { return below(a.Home(), path) }

// below is path with ~ for the home directory that it lies in.
func below(home, path string) string {
	if home != "" && len(path) > len(home) && path[:len(home)] == home && path[len(home)] == '/' {
		return "~" + path[len(home):]
	}
	return path
}
