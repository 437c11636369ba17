package viewer

import (
	"context"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/agent"
	"github.com/outcrop-dev/outcrop/history"
	"github.com/outcrop-dev/outcrop/history/pin"
	"github.com/outcrop-dev/outcrop/history/rewind"
	"github.com/outcrop-dev/outcrop/message"
	"github.com/outcrop-dev/outcrop/viewer/internal/facts"
)

func (v *Viewer) compact(a *answerer, id string) error {
	var in struct {
		Start     *outcrop.Seq `json:"start"`
		End       *outcrop.Seq `json:"end"`
		ModelFree bool         `json:"modelFree"`
		DryRun    bool         `json:"dryRun"`
	}
	if err := a.in(&in); err != nil {
		return err
	}
	req := history.Request{Start: -1, End: -1, ModelFree: in.ModelFree, DryRun: in.DryRun}
	switch {
	case (in.Start == nil) != (in.End == nil):
		return badRequest("start and end: give both, or none")
	case in.Start != nil:
		req.Start, req.End = *in.Start, *in.End
	}
	r, err := v.here(id)
	if err != nil {
		return err
	}
	var rep history.Report
	err = r.Agent().Operate(a.r.Context(), func(ctx context.Context, o agent.Operation) error {
		var err error
		rep, err = r.History().Compact(ctx, o, req)
		return err
	})
	if err != nil {
		return err
	}
	return a.ok(facts.EditsOf(rep, in.DryRun, a.veil()))
}

func (v *Viewer) prune(a *answerer, id string) error {
	var in struct {
		Nodes  []outcrop.Seq `json:"nodes"`
		DryRun bool          `json:"dryRun"`
	}
	if err := a.in(&in); err != nil {
		return err
	}
	ctx := a.r.Context()
	var rep history.Report
	var err error
	if r := v.runningOf(id); r != nil {
		err = r.Agent().Operate(ctx, func(ctx context.Context, o agent.Operation) error {
			var err error
			rep, err = r.History().Prune(ctx, o, in.Nodes, in.DryRun)
			return err
		})
	} else {
		prune := func(s *outcrop.Session) error {
			rc, _ := s.RequestContext()
			m, err := history.NewManager(history.Options{Window: rc.ContextWindow, Logger: v.log})
			if err == nil {
				rep, err = m.Prune(ctx, history.Direct(s), in.Nodes, in.DryRun)
			}
			return err
		}
		if in.DryRun {
			err = v.look(ctx, id, prune)
		} else {
			err = v.edit(ctx, id, prune)
		}
	}
	if err != nil {
		return err
	}
	return a.ok(facts.EditsOf(rep, in.DryRun, a.veil()))
}

func (v *Viewer) pin(a *answerer, id string) error {
	var in struct {
		Node   outcrop.Seq `json:"node"`
		Pinned bool        `json:"pinned"`
	}
	if err := a.in(&in); err != nil {
		return err
	}
	changed := true
	err := v.edit(a.r.Context(), id, func(s *outcrop.Session) (err error) {
		if in.Pinned {
			changed, err = pin.Set(s, in.Node)
			return err
		}
		return pin.Unset(s, in.Node)
	})
	if err != nil {
		return err
	}
	return a.ok(struct {
		facts.Schema
		Changed bool `json:"changed"`
	}{facts.V1, changed})
}

// takeBack does a rewind that f plans. What waits in the inbox is dropped.
func (v *Viewer) takeBack(ctx context.Context, id string, f func(s *outcrop.Session) (rewind.Plan, error)) (p rewind.Plan, at outcrop.Seq, dropped []message.Message, err error) {
	at = -1
	if r := v.runningOf(id); r != nil {
		if r.Agent().Status().Phase != agent.Idle {
			return p, at, nil, agent.ErrBusy
		}
		if dropped, err = r.Agent().Cancel(ctx, agent.Cause{Kind: agent.ByUser}); err != nil {
			return p, at, nil, err
		}
	}
	err = v.edit(ctx, id, func(s *outcrop.Session) (err error) {
		if p, err = f(s); err != nil {
			return err
		}
		if at, err = rewind.Commit(s, p, v.o.NewID()); err != nil || v.runningOf(id) != nil {
			return err
		}
		dropped, err = agent.DropPending(s)
		return err
	})
	return p, at, dropped, err
}

func (v *Viewer) rewind(a *answerer, id string) error {
	var in struct {
		To     outcrop.Seq `json:"to"`
		DryRun bool        `json:"dryRun"`
	}
	if err := a.in(&in); err != nil {
		return err
	}
	var p rewind.Plan
	var dropped []message.Message
	var err error
	at := outcrop.Seq(-1)
	find := func(s *outcrop.Session) (rewind.Plan, error) { return rewind.Find(s, in.To) }
	if in.DryRun {
		err = v.look(a.r.Context(), id, func(s *outcrop.Session) (err error) {
			p, err = find(s)
			return err
		})
	} else {
		p, at, dropped, err = v.takeBack(a.r.Context(), id, find)
	}
	if err != nil {
		return err
	}
	return a.ok(facts.RewoundOf(p, at, dropped, in.DryRun, a.veil()))
}

func (v *Viewer) retry(a *answerer, id string) error {
	var in struct {
		At   *outcrop.Seq `json:"at"`
		Edit string       `json:"edit"`
	}
	if err := a.in(&in); err != nil {
		return err
	}
	r, err := v.here(id)
	if err != nil {
		return err
	}
	prompt := outcrop.Seq(-1)
	if in.At != nil {
		prompt = *in.At
	}
	var m message.Message
	_, at, _, err := v.takeBack(a.r.Context(), id, func(s *outcrop.Session) (p rewind.Plan, err error) {
		p, m, err = rewind.Again(s, prompt, in.Edit)
		return p, err
	})
	if err != nil {
		return err
	}
	mid, err := r.Agent().Send(a.r.Context(), m)
	if err != nil {
		return err
	}
	out := struct {
		sentID
		Replacement *outcrop.Seq `json:"replacement"`
	}{sentID: sentID{facts.V1, mid}}
	if at >= 0 {
		out.Replacement = &at
	}
	return a.ok(out)
}
