package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/outcrop-dev/outcrop/internal/answer"
	"github.com/outcrop-dev/outcrop/internal/config"
	"github.com/outcrop-dev/outcrop/internal/term"
)

func (a *app) newConfigCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "config",
		Short: "Every setting, and where it came from",
		Args:  exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			ws, err := a.Workspace()
			if err != nil {
				return err
			}
			cfg, err := a.LoadConfig(ws)
			if err != nil {
				return err
			}
			address, origin, err := a.StoreAddress()
			if err != nil {
				return err
			}
			values := append([]config.Value{{Name: "store", Text: `"` + address + `"`, Origin: storeOrigin(origin)}}, cfg.Values()...)
			for _, v := range values {
				if err := a.setting(v); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

func storeOrigin(from string) config.Origin {
	if from == "default" {
		return config.BuiltIn
	}
	return config.Origin(from)
}

// unused are sections that a file may have for a later version.
var unused = []string{"compaction."}

func (a *app) setting(v config.Value) error {
	used := true
	for _, section := range unused {
		used = used && !strings.HasPrefix(v.Name, section)
	}
	if a.Flags.JSON {
		return a.Line(answer.New().Text("name", v.Name).Text("value", v.Text).Text("origin", string(v.Origin)).Bool("used", used).End())
	}
	note := ""
	if !used {
		note = " (not used by this version)"
	}
	st := a.Style()
	a.Text(term.Line(v.Name) + " = " + term.Line(v.Text) + st.Dim("  # "+term.Line(string(v.Origin))+note) + "\n")
	return nil
}
