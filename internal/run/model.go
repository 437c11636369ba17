package run

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/exit"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/internal/requests"
	"github.com/outcrop-dev/outcrop/internal/term"
	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/llm/script"
)

// chosen is the model of a run.
type chosen struct {
	provider llm.Provider
	config   llm.Config
	window   int64 // tokens, 0 unknown
	price    *llm.Price
}

func (r *run) chooseModel(ctx context.Context) error {
	if err := r.findModel(ctx); err != nil {
		return err
	}
	if r.cost() == 0 || r.with.price != nil {
		return nil
	}
	name := r.with.config.Provider + ":" + r.with.config.Model
	if r.costSet {
		return exit.Usagef("--max-cost: the price of %s is unknown: set its price in the configuration, or leave the limit out", term.Line(name))
	}
	r.a.Note("the price of %s is unknown: limits.cost_usd cannot be kept", term.Line(name))
	return nil
}

func (r *run) findModel(ctx context.Context) error {
	if r.script != "" {
		sc, err := r.readScript(r.script)
		if err != nil {
			return err
		}
		r.with = chosen{
			provider: &script.Model{Script: sc}, window: sc.Header.Window,
			config: llm.Config{Provider: script.Provider, Model: sc.Header.Model, MaxTokens: sc.Header.MaxOutput},
		}
		return nil
	}
	m, err := r.a.ChooseModel(r.cfg, r.model, r.stored)
	if err != nil {
		return err
	}
	p, err := r.a.OpenModel(ctx, r.cfg, m)
	if err != nil {
		return err
	}
	r.with = chosen{provider: p, window: m.Window, price: m.Price,
		config: llm.Config{Provider: m.Provider.Name, Model: m.Name, MaxTokens: m.MaxOutput}}
	return nil
}

// maxScript is the longest script file, in bytes.
const maxScript = 256 << 20

// readScript reads a script file. Whatever is wrong with it is wrong use.
func (r *run) readScript(name string) (*script.Script, error) {
	f, err := os.Open(r.a.Path(name))
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

// resumed is the provider, told which of a script's replies the log has used.
func (c chosen) resumed(log outcrop.Log) llm.Provider {
	if m, ok := c.provider.(*script.Model); ok {
		m.Resume(requests.Finished(log, script.Provider, c.config.Model))
	}
	return c.provider
}

func intMember(data []byte, name string) int {
	n, _ := jsonwire.Int(jsonwire.Get(data, name))
	return int(n)
}
