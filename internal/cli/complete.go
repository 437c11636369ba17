package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/outcrop-dev/outcrop/internal/exit"
	"github.com/outcrop-dev/outcrop/internal/term"
	"github.com/outcrop-dev/outcrop/store"
)

// completeTarget offers the sessions of the store for the first argument; the
// shell adds files where none fits.
func (a *app) completeTarget(c *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 && c.Name() != "verify" {
		return nil, cobra.ShellCompDirectiveDefault
	}
	st, err := a.OpenStore()
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
			fits = append(fits, term.Line(in.ID)+"\t"+term.Line(in.Cwd))
		}
	}
	return fits, cobra.ShellCompDirectiveDefault
}

// nameShells makes the command that prints completions answer a shell that it
// does not know.
func nameShells(root *cobra.Command) {
	root.InitDefaultCompletionCmd("completion")
	for _, c := range root.Commands() {
		if c.Name() != "completion" {
			continue
		}
		c.Short = "Print the completions for a shell"
		c.Long = "Prints the completions for a shell; the help of each says where they go."
		c.Args = cobra.ArbitraryArgs
		c.RunE = func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return c.Help()
			}
			var shells []string
			for _, s := range c.Commands() {
				shells = append(shells, s.Name())
			}
			return exit.Usagef("there are no completions for %s: use %s", term.Quote(args[0]), strings.Join(shells, ", "))
		}
	}
}
