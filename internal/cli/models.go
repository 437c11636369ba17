package cli

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/outcrop-dev/outcrop/internal/config"
	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/llm/openai"
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
				return usagef("%s takes one PROVIDER", c.CommandPath())
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			ws, err := a.workspace()
			if err != nil {
				return err
			}
			cfg, err := a.loadConfig(ws)
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
	if !a.flags.json {
		a.text(a.style().bold(pad("PROVIDER", 14)+pad("KIND", 11)+pad("KEY", 28)+"BASE URL") + "\n")
	}
	for _, name := range slices.Sorted(maps.Keys(cfg.Providers)) {
		p := cfg.Providers[name]
		key, state := keyState(cfg, p)
		if a.flags.json {
			models := slices.Sorted(maps.Keys(p.Models))
			o := newAnswer().text("provider", p.Name).text("kind", p.Kind).text("baseUrl", p.BaseURL).
				text("key", state).textOrNull("keyEnv", p.KeyEnv).boolean("supported", p.Kind == config.KindOpenAI).
				raw("models", list(len(models), func(dst []byte, i int) []byte {
					return append(dst, modelJSON(object(), models[i], p.Models[models[i]]).end()...)
				}))
			if err := a.line(o.end()); err != nil {
				return err
			}
			continue
		}
		kind := p.Kind
		if kind != config.KindOpenAI {
			key = "no client in this version"
		}
		a.text(cut(pad(escapeLine(p.Name), 14)+pad(kind, 11)+pad(cut(escapeLine(key), 27), 28)+escapeLine(p.BaseURL), width) + "\n")
		for _, m := range slices.Sorted(maps.Keys(p.Models)) {
			a.text(cut("  "+escapeLine(p.Name+":"+m)+modelText(p.Models[m]), width) + "\n")
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

func modelJSON(o *answer, name string, s *config.Settings) *answer {
	o.text("model", name)
	if s == nil {
		s = &config.Settings{}
	}
	unknown := func(n int64) int64 {
		if n == 0 {
			return -1
		}
		return n
	}
	o.numberOrNull("window", unknown(s.Window)).numberOrNull("maxOutput", unknown(s.MaxOutput)).boolean("images", s.Images)
	if s.Price == nil {
		return o.raw("price", []byte("null"))
	}
	return o.raw("price", priceJSON(s.Price))
}

func priceJSON(p *llm.Price) []byte {
	return object().number("input", p.Input).number("cacheRead", p.CacheRead).
		number("cacheWrite", p.CacheWrite).number("output", p.Output).end()
}

func modelText(s *config.Settings) string {
	var parts []string
	if s.Window > 0 {
		parts = append(parts, "window "+count(s.Window))
	}
	if s.Price != nil {
		parts = append(parts, "$"+dollars(s.Price.Input)+" in, $"+dollars(s.Price.Output)+" out a million")
	}
	if len(parts) == 0 {
		return ""
	}
	return "  " + strings.Join(parts, ", ")
}

// dollars writes micro-dollars.
func dollars(micro int64) string {
	return strconv.FormatFloat(float64(micro)/1e6, 'f', -1, 64)
}

func (a *app) listModels(ctx context.Context, cfg *config.Config, name string) error {
	p := cfg.Providers[name]
	if p == nil {
		return usagef("there is no provider %s%s", quote(name), meant(name, slices.Sorted(maps.Keys(cfg.Providers)), "outcrop models lists them"))
	}
	client, err := cfg.Client(ctx, p, a.dial())
	if err != nil {
		return misuse(err)
	}
	found, err := client.Models(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return &exitError{1, errors.New(err.Error())}
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
			a.note("%s:%s is in the configuration, and the provider does not list it", name, escapeLine(id))
		}
	}
	return nil
}

func (a *app) modelLine(p *config.Provider, m openai.ModelInfo) error {
	s := config.Settings{Window: m.Window}
	if own := p.Models[m.ID]; own != nil {
		s = *own
		if s.Window == 0 {
			s.Window = m.Window
		}
	}
	if a.flags.json {
		return a.line(modelJSON(newAnswer().text("provider", p.Name), m.ID, &s).end())
	}
	a.text(cut(escapeLine(p.Name+":"+m.ID)+modelText(&s), width) + "\n")
	return nil
}
