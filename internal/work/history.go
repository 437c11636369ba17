package work

import (
	"context"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/agent"
	"github.com/outcrop-dev/outcrop/history"
	"github.com/outcrop-dev/outcrop/history/rewind"
	"github.com/outcrop-dev/outcrop/history/tokens"
	"github.com/outcrop-dev/outcrop/internal/exit"
	"github.com/outcrop-dev/outcrop/internal/term"
	"github.com/outcrop-dev/outcrop/message"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/workspace"
)

// History keeps the session small enough for its model, by itself while turns
// run and by hand. It is there from Open on.
func (w *Work) History() *history.Manager { return w.history }

// Look is the session as opening it would leave it and a manager for it, to see
// what an operation would do. Nothing may be appended to it.
func (w *Work) Look(ctx context.Context) (*outcrop.Session, *history.Manager, error) {
	s, err := history.AsOpened(w.stored)
	if err != nil {
		return nil, nil, err
	}
	if err := w.openHistory(ctx, nil); err != nil {
		return nil, nil, err
	}
	return s, w.history, nil
}

// openHistory makes the manager by what the configuration and the flags say. A
// script goes on where the log has left it, for summaries too.
func (w *Work) openHistory(ctx context.Context, flush func(context.Context) error) (err error) {
	if w.live != nil {
		m := w.Model()
		m.provider = m.resumed(w.Session().Log())
		w.useModel(m)
	}
	c := w.cfg.Compaction
	policy := c.Policy
	if w.flags.Policy != "" {
		policy = w.flags.Policy
	}
	o := history.Options{
		Policy: history.Policy(policy), Off: !c.Auto, Ratio: c.Ratio, Keep: c.Keep,
		Window: w.model.Window, MaxOutput: w.model.config.MaxTokens,
		Provider: w.model.provider, Images: w.model.Images,
		Counter: tokens.For(w.model.config.Model), Flush: flush, NewID: w.a.Env.NewID,
		Notify: w.notify, Logger: w.a.Logger,
	}
	if objects := store.ObjectsOf(w.store); objects != nil {
		o.Objects = objects
	}
	if c.Model != "" && w.flags.Script == "" && !w.flags.NoModel {
		m, err := w.named(ctx, c.Model)
		if err != nil {
			return exit.Misuse(err)
		}
		o.Provider, o.Model, o.ModelWindow, o.Images = m.provider, m.config, m.Window, m.Images
	}
	if o.Model.Model == "" && o.Provider != nil && w.flags.NoTurn && w.otherModel() {
		// No request of the conversation follows that would change its header: the
		// model that was chosen is the summariser's alone.
		o.Model, o.ModelWindow = w.model.config, w.model.Window
	}
	w.history, err = history.NewManager(o)
	return exit.Misuse(err)
}

// otherModel reports whether the model that was chosen is not the one that the
// log had last.
func (w *Work) otherModel() bool {
	rc, ok := w.stored.RequestContext()
	return ok && (rc.Provider != w.model.config.Provider || rc.Model != w.model.config.Model)
}

// notify tells a person what the manager has to say.
func (w *Work) notify(n history.Notice) {
	if w.Notify != nil {
		w.Notify(n)
		return
	}
	w.a.Note("%s", term.Line(n.Text))
}

// room is the manager as hooks of the loop: it makes room before a step, and
// after a request that was too long.
type room struct{ m *history.Manager }

// PreStep implements agent.PreStepDecider.
func (r room) PreStep(ctx context.Context, st agent.Stage, claimed []message.Message) ([]message.Message, bool, error) {
	_, err := r.m.PreStep(ctx, st, history.Input{Claimed: claimed})
	return claimed, false, err
}

// RequestError implements agent.RequestErrorDecider.
func (r room) RequestError(ctx context.Context, st agent.Stage, f *message.Failure) (bool, error) {
	if f.Code != message.CodeContextWindow {
		return false, nil
	}
	retry, _, err := r.m.Overflow(ctx, st)
	return retry, err
}

// rewound tells the model what a rewind did not undo.
type rewound struct{}

// Contribute implements agent.Contributor.
func (rewound) Contribute(_ context.Context, st agent.Stage) ([]workspace.Context, error) {
	if c, ok := rewind.Notice(st.Log); ok {
		return []workspace.Context{c}, nil
	}
	return nil, nil
}
