package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/outcrop-dev/outcrop/store"
)

// completeTarget offers the sessions of the store for the first argument; the
// shell adds files where none fits.
func (a *app) completeTarget(c *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 && c.Name() != "verify" {
		return nil, cobra.ShellCompDirectiveDefault
	}
	st, err := a.openStore()
	if err != nil {
		return nil, cobra.ShellCompDirectiveDefault
	}
	infos, err := st.List(c.Context(), store.ListOptions{})
	if err != nil {
		return nil, cobra.ShellCompDirectiveDefault
	}
	var fits []string
	if len(infos) > 0 && strings.HasPrefix(store.Last, typed) {
		fits = append(fits, store.Last+"\tthe newest session")
	}
	for _, in := range infos {
		if in.ID != "" && strings.HasPrefix(in.ID, typed) {
			fits = append(fits, escapeLine(in.ID)+"\t"+escapeLine(in.Cwd))
		}
	}
	return fits, cobra.ShellCompDirectiveDefault
}
