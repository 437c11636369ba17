package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/outcrop-dev/outcrop/internal/config"
)

func (a *app) newConfigCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "config",
		Short: "Every setting, and where it came from",
		Args:  exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			ws, err := a.workspace()
			if err != nil {
				return err
			}
			cfg, err := a.loadConfig(ws)
			if err != nil {
				return err
			}
			address, origin, err := a.storeAddress()
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
var unused = []string{"compaction.", "mcp."}

func (a *app) setting(v config.Value) error {
	used := true
	for _, section := range unused {
		used = used && !strings.HasPrefix(v.Name, section)
	}
	if a.flags.json {
		return a.line(newAnswer().text("name", v.Name).text("value", v.Text).text("origin", string(v.Origin)).boolean("used", used).end())
	}
	note := ""
	if !used {
		note = " (not used by this version)"
	}
	st := a.style()
	a.text(escapeLine(v.Name) + " = " + escapeLine(v.Text) + st.dim("  # "+escapeLine(string(v.Origin))+note) + "\n")
	return nil
}
