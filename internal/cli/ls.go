package cli

import (
	"fmt"

	"github.com/spf13/cobra"

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
			st, err := a.openStore()
			if err != nil {
				return err
			}
			infos, err := st.List(c.Context(), store.ListOptions{Full: full})
			if err != nil {
				return err
			}
			if a.flags.json {
				for _, in := range infos {
					if err := a.line(infoJSON(in)); err != nil {
						return err
					}
				}
				return nil
			}
			if len(infos) == 0 {
				a.note("there is no session in %s", escapeLine(st.Address()))
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
	o := newAnswer().text("id", in.ID).textOrNull("title", in.Title).textOrNull("cwd", in.Cwd).
		number("createdAt", in.CreatedAt).number("updatedAt", in.UpdatedAt).
		numberOrNull("events", in.Events).numberOrNull("turns", int64(in.Turns)).number("bytes", in.Bytes).
		text("state", string(in.State)).textOrNull("reason", in.Reason)
	return o.end()
}

func (a *app) listText(infos []store.Info, full bool) {
	st := a.style()
	row := func(id, age, events, turns, size, state string) string {
		s := pad(id, 24) + " " + padLeft(age, 4) + " " + padLeft(events, 9) + " "
		if full {
			s += padLeft(turns, 5) + " "
		}
		return s + padLeft(size, 7) + "  " + state
	}
	a.text(st.bold(row("ID", "AGE", "EVENTS", "TURNS", "SIZE", "STATE")) + "\n")
	now := a.now()
	known := func(n int64) string {
		if n < 0 {
			return "?"
		}
		return count(n)
	}
	for _, in := range infos {
		id := in.ID
		if id == "" {
			id = "?"
		}
		state := string(in.State)
		switch in.State {
		case store.StateOK:
			state = st.green(state)
		case store.StateDamaged, store.StateNewer:
			state = st.red(state)
		default:
			state = st.yellow(state)
		}
		since := "?"
		if in.UpdatedAt != 0 {
			since = age(now, in.UpdatedAt)
		}
		a.text(row(cut(escapeLine(id), 24), since, known(in.Events), known(int64(in.Turns)), size(in.Bytes), state) + "\n")
		about := in.Title
		if in.Cwd != "" {
			if about != "" {
				about += " in "
			}
			about += a.short(in.Cwd)
		}
		if about != "" {
			a.text("  " + st.dim(cut(oneLine(about), width-2)) + "\n")
		}
		if in.Reason != "" {
			text := in.Reason
			if in.ID == "" && in.Path != "" {
				text = fmt.Sprintf("%s: %s", in.Path, text)
			}
			for _, l := range wrap(oneLine(text), width-2) {
				a.text("  " + l + "\n")
			}
		}
	}
}

// short writes a path below the home directory with ~.
func (a *app) short(path string) string {
	home := a.home()
	if home != "" && len(path) > len(home) && path[:len(home)] == home && path[len(home)] == '/' {
		return "~" + path[len(home):]
	}
	return path
}
