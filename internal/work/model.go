package work

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/agent"
	"github.com/outcrop-dev/outcrop/internal/exit"
	"github.com/outcrop-dev/outcrop/internal/requests"
	"github.com/outcrop-dev/outcrop/internal/term"
	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/llm/script"
)

// Model is the model that a session works with.
type Model struct {
	provider llm.Provider
	config   llm.Config

	Window int64      // tokens, 0 unknown
	Images bool       // it takes images
	Price  *llm.Price // nil unknown
}

// Name is the model as PROVIDER:MODEL.
func (m Model) Name() string { return m.config.Provider + ":" + m.config.Model }

// Model is the model that the session works with.
func (w *Work) Model() Model {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.model
}

func (w *Work) useModel(m Model) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.model = m
}

func (w *Work) chooseModel(ctx context.Context) error {
	if w.flags.NoModel {
		if w.stored != nil {
			if rc, ok := w.stored.RequestContext(); ok {
				w.useModel(Model{Window: rc.ContextWindow, config: llm.Config{Provider: rc.Provider, Model: rc.Model}})
			}
		}
		return nil
	}
	m, err := w.findModel(ctx)
	if err != nil {
		return err
	}
	w.useModel(m)
	w.tellWindow(m)
	if w.cost() == 0 || m.Price != nil {
		return nil
	}
	if w.flags.given("max-cost") {
		return exit.Usagef("--max-cost: the price of %s is unknown: set its price in the configuration, or leave the limit out", term.Line(m.Name()))
	}
	w.a.Note("the price of %s is unknown: limits.cost_usd cannot be kept", term.Line(m.Name()))
	return nil
}

func (w *Work) findModel(ctx context.Context) (Model, error) {
	if w.flags.Script == "" {
		return w.named(ctx, w.flags.Model)
	}
	sc, err := w.readScript(w.flags.Script)
	if err != nil {
		return Model{}, err
	}
	return Model{
		provider: &script.Model{Script: sc}, Window: sc.Header.Window, Images: true,
		config: llm.Config{Provider: script.Provider, Model: sc.Header.Model, MaxTokens: sc.Header.MaxOutput},
	}, nil
}

// named opens the model of a name, "" for the one that session and
// configuration say.
func (w *Work) named(ctx context.Context, name string) (Model, error) {
	m, err := w.a.ChooseModel(w.cfg, name, w.stored)
	if err != nil {
		return Model{}, err
	}
	p, err := w.a.OpenModel(ctx, w.cfg, m)
	if err != nil {
		return Model{}, err
	}
	return Model{provider: p, Window: m.Window, Images: m.Images, Price: m.Price,
		config: llm.Config{Provider: m.Provider.Name, Model: m.Name, MaxTokens: m.MaxOutput}}, nil
}

// Price is what a model of the configuration costs, nil when that is unknown.
func (w *Work) Price(provider, model string) *llm.Price {
	if p := w.cfg.Providers[provider]; p != nil && p.Models[model] != nil {
		return p.Models[model].Price
	}
	return nil
}

// SetModel changes the model, from the next request on. One with which a limit
// of cost could not be kept is refused.
func (w *Work) SetModel(ctx context.Context, name string) error {
	m, err := w.named(ctx, name)
	if err != nil {
		return exit.With(exit.Code(err), errors.New(strings.TrimPrefix(err.Error(), "--model: ")))
	}
	if w.cost() > 0 && m.Price == nil {
		return exit.Usagef("the price of %s is unknown, and a limit of cost is set: set its price in the configuration", term.Line(m.Name()))
	}
	if w.agent != nil {
		err := w.agent.SetModel(ctx, agent.Model{Provider: m.provider, Config: m.config, Window: m.Window, Price: m.Price, Images: m.Images})
		if err != nil {
			return err
		}
	}
	if w.history != nil {
		w.history.SetModel(m.provider, m.Window, m.config.MaxTokens, m.Images)
	}
	w.useModel(m)
	w.tellWindow(m)
	return nil
}

// maxScript is the longest script file, in bytes.
const maxScript = 256 << 20

// readScript reads a script file. Whatever is wrong with it is wrong use.
func (w *Work) readScript(name string) (*script.Script, error) {
	f, err := os.Open(w.a.Path(name))
	if err != nil {
		return nil, exit.With(2, fmt.Errorf("--script: %w", err))
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxScript+1))
	if err != nil {
		return nil, exit.With(2, fmt.Errorf("--script: %w", err))
	}
	if len(text) > maxScript {
		return nil, exit.Usagef("--script %s is longer than 256 MiB", term.Line(name))
	}
	sc, err := script.Parse(name, text)
	return sc, exit.Misuse(err)
}

// resumed is the provider; a script begins anew, with the replies used that the
// log has used.
func (m Model) resumed(log outcrop.Log) llm.Provider {
	if sm, ok := m.provider.(*script.Model); ok {
		fresh := &script.Model{Script: sm.Script}
		fresh.Resume(requests.Finished(log, script.Provider, m.config.Model))
		return fresh
	}
	return m.provider
}
