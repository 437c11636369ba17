package work

import (
	"context"
	"path/filepath"

	"github.com/outcrop-dev/outcrop/agent"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/workspace"
)

// Engage makes the agent of the open session. Nothing runs until it gets
// something to do.
func (w *Work) Engage(ctx context.Context, approver agent.Approver) (*agent.Agent, error) {
	t, err := w.openTools(ctx)
	if err != nil {
		return nil, err
	}
	w.tools = t
	ag, err := agent.New(agent.Options{
		Live:     w.live,
		Provider: w.model.provider,
		Config:   w.model.config,
		Window:   w.model.Window,
		Price:    w.model.Price,
		Images:   w.model.Images,
		Objects:  store.ObjectsOf(w.store),
		System:   w.system,
		Tools:    w.tools.registry,
		Contexts: func(ctx context.Context) []workspace.Context {
			return []workspace.Context{workspace.Sample(ctx, w.dir, w.a.Env.Now()).Context()}
		},
		Hooks: agent.Hooks{
			Contributors: []agent.Contributor{w.instructions(), rewound{}},
			PreStep:      []agent.PreStepDecider{room{w.history}},
			RequestError: []agent.RequestErrorDecider{room{w.history}},
		},
		Policy:   w.policy,
		Approver: approver,
		Limits:   agent.Limits{Steps: w.steps(), CostMicroUSD: w.cost()},
		Guard:    w.live.Held,
		Epoch:    w.live.Epoch(),
		NewID:    w.a.Env.NewID,
		Logger:   w.a.Logger,
	})
	if err != nil {
		return nil, err
	}
	w.agent = ag
	w.tellMissing(ctx)
	if !w.flags.Watched {
		w.unwatch = w.watch(ctx)
	}
	return ag, nil
}

// instructions tells the model what people left for agents in the workspace.
func (w *Work) instructions() agent.Contributor {
	return instructions{workspace.NewInstructions(workspace.InstructionOptions{
		Dir: w.dir, Home: w.a.Home(), Config: w.configFolder(), Now: w.a.Env.Now, Logger: w.a.Logger})}
}

// configFolder is where the person's own instructions are, "" without a home.
func (w *Work) configFolder() string {
	if d := w.a.Env.Getenv("XDG_CONFIG_HOME"); filepath.IsAbs(d) {
		return filepath.Join(d, "outcrop")
	}
	return ""
}

type instructions struct{ *workspace.Instructions }

// Contribute implements agent.Contributor.
func (i instructions) Contribute(ctx context.Context, st agent.Stage) ([]workspace.Context, error) {
	return i.Contexts(ctx, st.Log)
}

// Policy is the approval policy.
func (w *Work) Policy() agent.Policy {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.policy
}

// SetPolicy changes the approval policy, from the next call on.
func (w *Work) SetPolicy(ctx context.Context, name string) error {
	p, err := policyOf(name, "")
	if err == nil && w.agent != nil {
		err = w.agent.SetPolicy(ctx, p)
	}
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.policy = p
	return nil
}
