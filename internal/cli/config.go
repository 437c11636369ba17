package cli

import (
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
			if err := a.storeSetting(address, storeOrigin(origin)); err != nil {
				return err
			}
			for _, v := range cfg.Values() {
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

// storeSetting tells which store counts. No file names it, so for people it is a
// comment: what is printed can be put into a file.
func (a *app) storeSetting(address string, from config.Origin) error {
	if a.Flags.JSON {
		return a.settingLine(config.Value{Name: "store", Text: config.Quoted(address), Plain: address, Origin: from})
	}
	a.Text(a.Style().Dim("# store "+term.Line(address)+"  # "+term.Line(string(from))) + "\n")
	return nil
}

func (a *app) setting(v config.Value) error {
	if a.Flags.JSON {
		return a.settingLine(v)
	}
	a.Text(term.Line(v.Name) + " = " + term.Line(v.Text) + a.Style().Dim("  # "+term.Line(string(v.Origin))) + "\n")
	return nil
}

// settingLine is a setting for programs. Every setting is used; earlier versions
// had some that they only checked.
func (a *app) settingLine(v config.Value) error {
	return a.Line(answer.New().Text("name", v.Name).Text("value", v.Text).Text("text", v.Plain).
		Text("origin", string(v.Origin)).Bool("used", true).End())
}
