package cli

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/llm/script"
	"github.com/outcrop-dev/outcrop/message"
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
		return usagef("--max-cost: the price of %s is unknown: set its price in the configuration, or leave the limit out", escapeLine(name))
	}
	r.a.note("the price of %s is unknown: limits.cost_usd cannot be kept", escapeLine(name))
	return nil
}

func (r *run) findModel(ctx context.Context) error {
	if r.script != "" {
		sc, err := r.a.readScript(r.script)
		if err != nil {
			return err
		}
		r.with = chosen{
			provider: &script.Model{Script: sc}, window: sc.Header.Window,
			config: llm.Config{Provider: script.Provider, Model: sc.Header.Model, MaxTokens: sc.Header.MaxOutput},
		}
		return nil
	}
	m, err := r.a.chooseModel(r.cfg, r.model, r.stored)
	if err != nil {
		return err
	}
	p, err := r.a.openModel(ctx, r.cfg, m)
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
func (a *app) readScript(name string) (*script.Script, error) {
	f, err := os.Open(a.path(name))
	if err != nil {
		return nil, &exitError{2, fmt.Errorf("--script: %w", err)}
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxScript+1))
	if err != nil {
		return nil, &exitError{2, fmt.Errorf("--script: %w", err)}
	}
	if len(text) > maxScript {
		return nil, usagef("--script %s is longer than 256 MiB", escapeLine(name))
	}
	sc, err := script.Parse(name, text)
	return sc, misuse(err)
}

// resumed is the provider, told which of a script's replies the log has used.
func (c chosen) resumed(log outcrop.Log) llm.Provider {
	if m, ok := c.provider.(*script.Model); ok {
		m.Resume(attemptsOf(log, script.Provider, c.config.Model))
	}
	return c.provider
}

// attemptsOf finds the finished attempts at calls of one model in a log. An
// attempt is finished when its reply ended, well or not, or was cancelled; one
// that a crash cut off is not.
func attemptsOf(log outcrop.Log, provider, model string) []script.Attempt {
	var done []script.Attempt
	var now *script.Attempt // the attempt whose end is not seen yet
	ours := false           // the request header in force names this model
	finish := func(code string) {
		if now != nil {
			now.Code = code
			done = append(done, *now)
			now = nil
		}
	}
	for rec := range log.Records(0) {
		if rec.Run != nil {
			continue
		}
		ev := rec.Event
		switch ev.Type {
		case outcrop.TypeRequestHeader:
			cfg := jsonwire.Get(jsonwire.Get(ev.Data, "header"), "config")
			ours = jsonwire.TextIs(jsonwire.Get(cfg, "provider"), provider) && jsonwire.TextIs(jsonwire.Get(cfg, "model"), model)
		case outcrop.TypeOutcropRequest:
			now = nil
			if ours {
				purpose, _ := jsonwire.Text(jsonwire.Get(ev.Data, "purpose"))
				now = &script.Attempt{
					Turn: intMember(ev.Data, "turn"), Step: intMember(ev.Data, "step"),
					Attempt: intMember(ev.Data, "attempt"), Purpose: llm.Purpose(purpose),
				}
			}
		case outcrop.TypeAssistantChunk:
			if now == nil {
				continue
			}
			c, err := message.ParseChunk(jsonwire.Get(ev.Data, "chunk"))
			if err == nil && c.Type == message.FinishChunk && c.Reason != nil {
				code := ""
				if c.Reason.Failure != nil {
					code = c.Reason.Failure.Code
				}
				finish(code)
			}
		case outcrop.TypeAssistantMessage:
			finish("")
		case outcrop.TypeTurnEnd:
			if jsonwire.TextIs(jsonwire.Get(jsonwire.Get(ev.Data, "reason"), "kind"), string(outcrop.TurnInterrupted)) {
				now = nil
			} else {
				finish(message.CodeAborted)
			}
		}
	}
	return done
}

func intMember(data []byte, name string) int {
	n, _ := jsonwire.Int(jsonwire.Get(data, name))
	return int(n)
}
