package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/tool"
)

// Model is a model with what has to be known about it.
type Model struct {
	Provider llm.Provider
	// Config chooses and tunes the model; an empty Provider is filled in.
	Config llm.Config
	// Window is its context window in tokens, 0 when unknown.
	Window int64
	// Price is what it costs, nil when unknown.
	Price *llm.Price
	// Images says that it takes images.
	Images bool
}

func (m *Model) check() error {
	if m.Provider == nil {
		return errors.New("agent: a model needs a provider")
	}
	if m.Config.Provider == "" {
		m.Config.Provider = m.Provider.Name()
	}
	if m.Config.Provider == "" || m.Config.Model == "" {
		return errors.New("agent: provider and model must have names")
	}
	return nil
}

// otherwise is the model with another config. Window, price and images are
// known of the model that the agent was given, and of no other.
func (m Model) otherwise(c llm.Config) Model {
	if c.Model != m.Config.Model {
		m.Window, m.Price, m.Images = 0, nil, false
	}
	m.Config = c
	return m
}

// SetModel changes the model, from the next request on; a call that runs is
// not touched. The request header that it gives is logged with that request.
func (a *Agent) SetModel(ctx context.Context, m Model) error {
	if err := m.check(); err != nil {
		return err
	}
	var err error
	perr := a.post(ctx, func() {
		if _, err = a.headers.of(m.Config, a.o.System, a.tools); err != nil {
			return
		}
		a.model = m
		a.show(func(st *Status) { st.Window = m.Window })
	})
	return errors.Join(perr, err)
}

// SetTools changes what is offered to the model, from the next request on; nil
// offers nothing. Calls of a reply that is there already are run with the tools
// that it was offered.
func (a *Agent) SetTools(ctx context.Context, tools *tool.Registry) error {
	var err error
	perr := a.post(ctx, func() {
		with := offer(tools)
		if _, err = a.headers.of(a.model.Config, a.o.System, with); err == nil {
			a.tools = with
		}
	})
	return errors.Join(perr, err)
}

// SetPolicy changes which calls need approval, from the next call on; a
// question that is being asked stands.
func (a *Agent) SetPolicy(ctx context.Context, p Policy) error {
	if err := p.check(); err != nil {
		return err
	}
	var err error
	perr := a.post(ctx, func() {
		// In a turn the log says it before a call is decided by it; an idle
		// agent says it with the next turn.
		if a.turn != nil && a.turn.opened && !a.turn.closed && p.logged() != a.policy {
			if _, err = a.s.Append(outcrop.ApprovalPolicy{Policy: p.logged()}); err != nil {
				return
			}
			a.policy = p.logged()
		}
		a.o.Policy = p
	})
	return errors.Join(perr, err)
}

// offering is a set of tools with the list that a header and a request hold.
type offering struct {
	*tool.Registry
	list []llm.Tool
}

func offer(r *tool.Registry) *offering { return &offering{r, r.Offered()} }

// headers makes request headers, and remembers the last one: most requests
// have the header of the one before.
type headers struct {
	config llm.Config
	tools  *offering
	raw    []byte
	tokens int64 // what system prompt and tools are estimated at
}

// of is the header object of these settings. It fails when it could not be
// written to a log.
func (h *headers) of(c llm.Config, system string, tools *offering) ([]byte, error) {
	if h.raw != nil && h.tools == tools && sameConfig(&h.config, &c) {
		return h.raw, nil
	}
	raw := llm.HeaderJSON(c, system, tools.list)
	if err := jsonwire.Strict(raw); err != nil {
		return nil, fmt.Errorf("agent: request header: %w", err)
	}
	*h = headers{config: cloneConfig(c), tools: tools, raw: raw, tokens: llm.EstimateHeader(system, tools.list)}
	return raw, nil
}

func sameConfig(a, b *llm.Config) bool {
	if (a.Temperature == nil) != (b.Temperature == nil) || a.Temperature != nil && *a.Temperature != *b.Temperature {
		return false
	}
	return a.Provider == b.Provider && a.Model == b.Model && a.ReasoningEffort == b.ReasoningEffort &&
		a.MaxTokens == b.MaxTokens && a.Defaults == b.Defaults && slices.Equal(a.Stop, b.Stop)
}

// cloneConfig is a config that shares no memory with c.
func cloneConfig(c llm.Config) llm.Config {
	if c.Temperature != nil {
		t := *c.Temperature
		c.Temperature = &t
	}
	c.Stop = slices.Clone(c.Stop)
	return c
}
