package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/outcrop-dev/outcrop/internal/answer"
	"github.com/outcrop-dev/outcrop/internal/term"
	"github.com/outcrop-dev/outcrop/store"
)

func (a *app) newListCommand() *cobra.Command {
	var full bool
	c := &cobra.Command{
		Use:     "ls",
		Aliases: []string{"list"},
		Short:   "The sessions of the store, newest first",
		Long: `Lists the sessions of the store, newest first. A session that cannot be read is
listed with the reason. Without --full only the head and the tail of each log
are read, so titles and turns are not known.`,
		Args: exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			st, err := a.OpenStore()
			if err != nil {
				return err
			}
			infos, err := st.List(c.Context(), store.ListOptions{Full: full})
			if err != nil {
				return err
			}
			if a.Flags.JSON {
				for _, in := range infos {
					if err := a.Line(infoJSON(in)); err != nil {
						return err
					}
				}
				return nil
			}
			if len(infos) == 0 {
				a.Note("there is no session in %s", term.Line(st.Address()))
				return nil
			}
			a.listText(infos, full)
			return nil
		},
	}
	c.Flags().BoolVar(&full, "full", false, "read whole logs: titles, turns, damage in the middle")
	return c
}

func infoJSON(in store.Info) []byte {
	o := answer.New().Text("id", in.ID).TextOrNull("title", in.Title).TextOrNull("cwd", in.Cwd).
		Number("createdAt", in.CreatedAt).Number("updatedAt", in.UpdatedAt).
		NumberOrNull("events", in.Events).NumberOrNull("turns", int64(in.Turns)).Number("bytes", in.Bytes).
		Text("state", string(in.State)).TextOrNull("reason", in.Reason)
	return o.End()
}

func (a *app) listText(infos []store.Info, full bool) {
	st := a.Style()
	row := func(id, age, events, turns, size, state string) string {
		s := term.Pad(id, 24) + " " + term.PadLeft(age, 4) + " " + term.PadLeft(events, 9) + " "
		if full {
			s += term.PadLeft(turns, 5) + " "
		}
		return s + term.PadLeft(size, 7) + "  " + state
	}
	a.Text(st.Bold(row("ID", "AGE", "EVENTS", "TURNS", "SIZE", "STATE")) + "\n")
	now := a.Now()
	known := func(n int64) string {
		if n < 0 {
			return "?"
		}
		return term.Count(n)
	}
	for _, in := range infos {
		id := in.ID
		if id == "" {
			id = "?"
		}
		state := string(in.State)
		switch in.State {
		case store.StateOK:
			state = st.Green(state)
		case store.StateDamaged, store.StateNewer:
			state = st.Red(state)
		default:
			state = st.Yellow(state)
		}
		since := "?"
		if in.UpdatedAt != 0 {
			since = term.Age(now, in.UpdatedAt)
		}
		a.Text(row(term.Cut(term.Line(id), 24), since, known(in.Events), known(int64(in.Turns)), term.Size(in.Bytes), state) + "\n")
		about := in.Title
		if in.Cwd != "" {
			if about != "" {
				about += " in "
			}
			about += a.short(in.Cwd)
		}
		if about != "" {
			a.Text("  " + st.Dim(term.Cut(term.OneLine(about), term.Width-2)) + "\n")
		}
		if in.Reason != "" {
			text := in.Reason
			if in.ID == "" && in.Path != "" {
				text = fmt.Sprintf("%s: %s", in.Path, text)
			}
			for _, l := range term.Wrap(term.OneLine(text), term.Width-2) {
				a.Text("  " + l + "\n")
			}
		}
	}
}

// short writes a path below the home directory with ~.
func (a *app) short(path string) string {
	home := a.Home()
	if home != "" && len(path) > len(home) && path[:len(home)] == home && path[len(home)] == '/' {
		return "~" + path[len(home):]
	}
	return path
}
