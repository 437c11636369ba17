package cli

import (
	"context"

	"github.com/outcrop-dev/outcrop/exchange/body"
	"github.com/outcrop-dev/outcrop/exchange/modelview"
	"github.com/outcrop-dev/outcrop/internal/desk"
	"github.com/outcrop-dev/outcrop/internal/exit"
	"github.com/outcrop-dev/outcrop/internal/term"
)

func (a *app) exportOpenAI(ctx context.Context, t *desk.Target, to exportTo, o exportOptions) (exported, error) {
	return a.exportBody(ctx, t, to, o, body.OpenAI)
}

func (a *app) exportAnthropic(ctx context.Context, t *desk.Target, to exportTo, o exportOptions) (exported, error) {
	return a.exportBody(ctx, t, to, o, body.Anthropic)
}

// exportBody writes the next request. A provider that is configured and speaks
// the API encodes it with its quirks.
func (a *app) exportBody(ctx context.Context, t *desk.Target, to exportTo, o exportOptions, api body.API) (exported, error) {
	ws, err := a.Workspace()
	if err != nil {
		return exported{}, err
	}
	c, err := a.LoadConfig(ws)
	if err != nil {
		return exported{}, err
	}
	bo := body.Options{Options: modelview.Options{Raw: o.Raw, Before: o.Before}}
	bo.Encoder = func(provider string) body.Encoder {
		if p := c.Providers[provider]; p != nil && p.Kind == string(api) {
			if client, err := p.Offline(); err == nil {
				return client
			}
		}
		return nil
	}
	rep, err := body.Write(ctx, to.w, exportSource(t), api, bo)
	if err != nil {
		return exported{}, exit.Unreadable(err)
	}
	if to.path == "" && a.Env.Terminal(a.Env.Stdout) {
		a.Text("\n") // no byte of the body, so only where a person reads it
	}
	done := exported{masked: rep.Masked, tail: rep.Tail, damage: rep.Damage}
	if rep.Refusal != nil {
		done.notes = append(done.notes, "a provider would refuse this request: "+term.Line(rep.Refusal.Error()))
	}
	return done, nil
}
