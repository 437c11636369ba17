package viewer

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/agent"
	"github.com/outcrop-dev/outcrop/internal/attach"
	"github.com/outcrop-dev/outcrop/message"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/viewer/internal/facts"
)

// changes are the paths that change something, below one session.
func (v *Viewer) changes() map[string]handler {
	return map[string]handler{
		"continue": v.changing(v.goOn), "release": v.changing(v.letGo),
		"send": v.changing(v.sendPrompt), "steer": v.changing(v.steer), "wake": v.changing(v.wakeUp), "cancel": v.changing(v.cancel),
		"approve": v.changing(v.approve), "policy": v.changing(v.policy), "model": v.changing(v.model),
		"compact": v.changing(v.compact), "prune": v.changing(v.prune), "pin": v.changing(v.pin), "rewind": v.changing(v.rewind),
		"retry": v.changing(v.retry), "fork": v.changing(v.fork), "title": v.changing(v.title), "tag": v.changing(v.tag), "star": v.changing(v.star),
		"archive": v.shelve("archive"), "delete": v.shelve("trash"),
	}
}

// changing is a handler of a change to a session that is there.
func (v *Viewer) changing(h func(a *answerer, id string) error) handler {
	return func(a *answerer) error {
		s, done, err := v.use(a)
		if err != nil {
			return err
		}
		defer done()
		// A change goes on when the page that asked for it goes away.
		a.r = a.r.WithContext(context.WithoutCancel(a.r.Context()))
		if err := h(a, s.ID()); err != nil {
			return err
		}
		v.streams.Nudge(s.ID())
		return nil
	}
}

var notHere = &problem{status: http.StatusConflict, code: "NOT_HERE", msg: "the session is not continued here", hint: "continue it first"}

// here is the agent of a session, as long as this process writes it.
func (v *Viewer) here(id string) (*running, error) {
	if r := v.runningOf(id); r != nil {
		return r, nil
	}
	return nil, notHere
}

// edit runs f on a session while nothing else can append: on that of an idle
// agent here, else on one that is opened for the moment. What f appended is
// durable when edit returns nil.
func (v *Viewer) edit(ctx context.Context, id string, f func(s *outcrop.Session) error) error {
	if r := v.runningOf(id); r != nil {
		return r.Agent().Maintain(ctx, f)
	}
	live, err := store.Open(ctx, v.o.Store, id, store.Options{Session: outcrop.Options{Now: v.o.Now, NewID: v.o.NewID, Logger: v.log}})
	if err != nil {
		return err
	}
	err = f(live.Session())
	v.list.Forget()
	return errors.Join(err, live.Close(ctx))
}

// look runs f on a session that is only read.
func (v *Viewer) look(ctx context.Context, id string, f func(s *outcrop.Session) error) error {
	if r := v.runningOf(id); r != nil {
		return r.Agent().Maintain(ctx, f)
	}
	s, _, err := store.Inspect(ctx, v.o.Store, id, outcrop.Options{})
	if err != nil {
		return err
	}
	return f(s)
}

func (v *Viewer) goOn(a *answerer, id string) error {
	var in struct {
		Model string `json:"model"`
	}
	if err := a.in(&in); err != nil {
		return err
	}
	r := v.runningOf(id)
	if r == nil {
		var err error
		if r, err = v.start(a.r.Context(), id, in.Model); err != nil {
			return mendable(err)
		}
	}
	return a.ok(struct {
		facts.Schema
		Session facts.Text    `json:"session"`
		Status  *facts.Status `json:"status"`
		Model   facts.Text    `json:"model"`
		Cut     *facts.Text   `json:"cut"`
	}{facts.V1, facts.Text(r.id), r.Status(), facts.Text(r.Model()), a.veil().LineOrNil(r.Cut())})
}

func (v *Viewer) letGo(a *answerer, id string) error {
	if err := a.in(&struct{}{}); err != nil {
		return err
	}
	r, err := v.here(id)
	if err != nil {
		return err
	}
	if !r.owned {
		return &problem{status: http.StatusConflict, code: "REFUSED", msg: "the session belongs to the chat in the terminal", hint: "leave it there"}
	}
	if err := v.release(a.r.Context(), r); err != nil {
		return err
	}
	return a.ok(facts.V1)
}

// prompt is what a person sends.
type prompt struct {
	Text        string   `json:"text"`
	Attachments []string `json:"attachments"`
}

// mostAttachments is how many pictures a prompt may have.
const mostAttachments = 20

// message makes the message of a prompt.
func (v *Viewer) message(ctx context.Context, in prompt) (message.Message, error) {
	var m message.Message
	if strings.TrimSpace(in.Text) != "" {
		m.Content = append(m.Content, message.Text(in.Text))
	}
	if len(in.Attachments) > mostAttachments {
		return m, badRequest("attachments: at most %d", mostAttachments)
	}
	objects := store.ObjectsOf(v.o.Store)
	for _, id := range in.Attachments {
		if objects == nil {
			return m, notFound("ATTACHMENT_NOT_FOUND", "this store keeps no attachments")
		}
		b, err := objects.Get(ctx, id)
		if err != nil {
			return m, notFound("ATTACHMENT_NOT_FOUND", "no attachment has this id here")
		}
		blocks, err := attach.Bytes(ctx, objects, b, "picture")
		if err != nil {
			return m, err
		}
		m.Content = append(m.Content, blocks...)
	}
	if len(m.Content) == 0 {
		return m, badRequest("text: there is nothing to send")
	}
	return m, nil
}

type sentID struct {
	facts.Schema
	ID string `json:"id"`
}

func (v *Viewer) sendPrompt(a *answerer, id string) error {
	return v.input(a, id, (*agent.Agent).Send)
}

func (v *Viewer) steer(a *answerer, id string) error {
	return v.input(a, id, (*agent.Agent).Steer)
}

func (v *Viewer) input(a *answerer, id string, send func(*agent.Agent, context.Context, message.Message) (string, error)) error {
	var in prompt
	if err := a.in(&in); err != nil {
		return err
	}
	r, err := v.here(id)
	if err != nil {
		return err
	}
	m, err := v.message(a.r.Context(), in)
	if err != nil {
		return err
	}
	mid, err := send(r.Agent(), a.r.Context(), m)
	if err != nil {
		return err
	}
	return a.ok(sentID{facts.V1, mid})
}

func (v *Viewer) wakeUp(a *answerer, id string) error {
	if err := a.in(&struct{}{}); err != nil {
		return err
	}
	r, err := v.here(id)
	if err != nil {
		return err
	}
	pending, err := r.Agent().Wake(a.r.Context())
	if err != nil {
		return err
	}
	return a.ok(struct {
		facts.Schema
		Pending bool `json:"pending"`
	}{facts.V1, pending})
}

func (v *Viewer) cancel(a *answerer, id string) error {
	var in struct {
		KeepInbox bool `json:"keepInbox"`
	}
	if err := a.in(&in); err != nil {
		return err
	}
	r, err := v.here(id)
	if err != nil {
		return err
	}
	var opts []agent.CancelOption
	if in.KeepInbox {
		opts = append(opts, agent.KeepInbox)
	}
	dropped, err := r.Agent().Cancel(a.r.Context(), agent.Cause{Kind: agent.ByUser}, opts...)
	if err != nil {
		return err
	}
	return a.ok(struct {
		facts.Schema
		Dropped []facts.Text `json:"dropped"`
	}{facts.V1, facts.TextsOf(dropped)})
}

func (v *Viewer) approve(a *answerer, id string) error {
	var in struct {
		ID      string `json:"id"`
		Verdict string `json:"verdict"`
		Reason  string `json:"reason"`
	}
	if err := a.in(&in); err != nil {
		return err
	}
	answer := agent.Answer{Reason: in.Reason}
	switch in.Verdict {
	case "once":
		answer.Verdict = agent.AllowOnce
	case "same":
		answer.Verdict = agent.AllowSame
	case "reject":
	default:
		return badRequest("verdict: give once, same or reject")
	}
	r, err := v.here(id)
	if err != nil {
		return err
	}
	if !r.asked.take(in.ID, answer) {
		return &problem{status: http.StatusConflict, code: "ANSWERED", msg: "the question waits no more: somebody answered it, or the turn was cancelled"}
	}
	return a.ok(facts.V1)
}

func (v *Viewer) policy(a *answerer, id string) error {
	var in struct {
		Approve string `json:"approve"`
	}
	if err := a.in(&in); err != nil {
		return err
	}
	r, err := v.here(id)
	if err != nil {
		return err
	}
	if !slices.Contains([]string{string(agent.AskAll), string(agent.AskExec), string(agent.AllowAll), string(agent.AllowRead)}, in.Approve) {
		return badRequest("approve: give ask, edits, all or none")
	}
	if err := r.SetPolicy(a.r.Context(), in.Approve); err != nil {
		return err
	}
	return a.ok(struct {
		facts.Schema
		Status *facts.Status `json:"status"`
	}{facts.V1, r.Status()})
}

func (v *Viewer) model(a *answerer, id string) error {
	var in struct {
		Model string `json:"model"`
	}
	if err := a.in(&in); err != nil {
		return err
	}
	r, err := v.here(id)
	if err != nil {
		return err
	}
	if err := r.SetModel(a.r.Context(), in.Model); err != nil {
		return badRequest("model: %v", err)
	}
	return a.ok(struct {
		facts.Schema
		Model facts.Text `json:"model"`
	}{facts.V1, facts.Text(r.Model())})
}
