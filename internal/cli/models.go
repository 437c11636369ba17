package cli

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/outcrop-dev/outcrop/internal/answer"
	"github.com/outcrop-dev/outcrop/internal/config"
	"github.com/outcrop-dev/outcrop/internal/exit"
	"github.com/outcrop-dev/outcrop/internal/term"
	"github.com/outcrop-dev/outcrop/llm"
)

func (a *app) newModelsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "models [PROVIDER]",
		Short: "Which providers and models can be used",
		Long: `Without PROVIDER: the providers that are configured, whether a key is there,
and the models with settings in the configuration. Nobody is called.
With PROVIDER: asks that provider which models it has.`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 1 {
				return exit.Usagef("%s takes one PROVIDER", c.CommandPath())
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			ws, err := a.Workspace()
			if err != nil {
				return err
			}
			cfg, err := a.LoadConfig(ws)
			if err != nil {
				return err
			}
			if len(args) == 1 {
				return a.listModels(c.Context(), cfg, args[0])
			}
			return a.listProviders(cfg)
		},
	}
}

func (a *app) listProviders(cfg *config.Config) error {
	if !a.Flags.JSON {
		a.Text(a.Style().Bold(term.Pad("PROVIDER", 14)+term.Pad("KIND", 11)+term.Pad("KEY", 28)+"BASE URL") + "\n")
	}
	for _, name := range slices.Sorted(maps.Keys(cfg.Providers)) {
		p := cfg.Providers[name]
		key, state := keyState(cfg, p)
		if a.Flags.JSON {
			models := slices.Sorted(maps.Keys(p.Models))
			o := answer.New().Text("provider", p.Name).Text("kind", p.Kind).Text("baseUrl", p.BaseURL).
				Text("key", state).TextOrNull("keyEnv", p.KeyEnv).Bool("supported", true).
				Raw("models", answer.List(len(models), func(dst []byte, i int) []byte {
					return append(dst, modelJSON(answer.Inner(), models[i], p.Models[models[i]]).End()...)
				}))
			if err := a.Line(o.End()); err != nil {
				return err
			}
			continue
		}
		a.Text(term.Cut(term.Pad(term.Line(p.Name), 14)+term.Pad(p.Kind, 11)+term.Pad(term.Cut(term.Line(key), 27), 28)+term.Line(p.BaseURL), term.Width) + "\n")
		for _, m := range slices.Sorted(maps.Keys(p.Models)) {
			a.Text(term.Cut("  "+term.Line(p.Name+":"+m)+modelText(p.Models[m]), term.Width) + "\n")
		}
	}
	return nil
}

// keyState says whether a provider's key is there, for people and for programs.
func keyState(cfg *config.Config, p *config.Provider) (text, state string) {
	switch {
	case !p.NeedsKey():
		return "none needed", "none-needed"
	case len(p.KeyCommand) > 0:
		return "from " + p.KeyCommand[0], "command"
	case cfg.HasKey(p):
		return p.KeyEnv, "set"
	}
	return p.KeyEnv + " not set", "missing"
}

func modelJSON(o *answer.Object, name string, s *config.Settings) *answer.Object {
	o.Text("model", name)
	if s == nil {
		s = &config.Settings{}
	}
	unknown := func(n int64) int64 {
		if n == 0 {
			return -1
		}
		return n
	}
	o.NumberOrNull("window", unknown(s.Window)).NumberOrNull("maxOutput", unknown(s.MaxOutput)).Bool("images", s.Images)
	if s.Price == nil {
		return o.Raw("price", []byte("null"))
	}
	return o.Raw("price", priceJSON(s.Price))
}

func priceJSON(p *llm.Price) []byte {
	return answer.Inner().Number("input", p.Input).Number("cacheRead", p.CacheRead).
		Number("cacheWrite", p.CacheWrite).Number("output", p.Output).End()
}

func modelText(s *config.Settings) string {
	var parts []string
	if s.Window > 0 {
		parts = append(parts, "window "+term.Count(s.Window))
	}
	if s.Images {
		parts = append(parts, "images")
	}
	if s.Price != nil {
		parts = append(parts, "$"+perMillion(s.Price.Input)+" in, $"+perMillion(s.Price.Output)+" out a million")
	}
	if len(parts) == 0 {
		return ""
	}
	return "  " + strings.Join(parts, ", ")
}

// perMillion writes the micro-dollars that a million tokens cost.
func perMillion(micro int64) string {
	return strconv.FormatFloat(float64(micro)/1e6, 'f', -1, 64)
}

func (a *app) listModels(ctx context.Context, cfg *config.Config, name string) error {
	p := cfg.Providers[name]
	if p == nil {
		return exit.Usagef("there is no provider %s%s", term.Quote(name), meant(name, slices.Sorted(maps.Keys(cfg.Providers)), "outcrop models lists them"))
	}
	client, err := cfg.Client(ctx, p, a.Dial())
	if err != nil {
		return exit.Misuse(err)
	}
	found, err := client.Models(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return exit.With(1, errors.New(err.Error()))
	}
	known := map[string]bool{}
	for _, m := range found {
		known[m.ID] = true
		if err := a.modelLine(p, m); err != nil {
			return err
		}
	}
	for _, id := range slices.Sorted(maps.Keys(p.Models)) {
		if !known[id] {
			a.Note("%s:%s is in the configuration, and the provider does not list it", name, term.Line(id))
		}
	}
	return nil
}

func (a *app) modelLine(p *config.Provider, m llm.ModelInfo) error {
	s := config.Settings{Window: m.Window}
	if own := p.Models[m.ID]; own != nil {
		s = *own
		if s.Window == 0 {
			s.Window = m.Window
		}
	}
	if a.Flags.JSON {
		return a.Line(modelJSON(answer.New().Text("provider", p.Name), m.ID, &s).End())
	}
	a.Text(term.Cut(term.Line(p.Name+":"+m.ID)+modelText(&s), term.Width) + "\n")
	return nil
}
