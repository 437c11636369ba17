package viewer

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/agent"
	"github.com/outcrop-dev/outcrop/history"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/tool"
	"github.com/outcrop-dev/outcrop/viewer/internal/facts"
	"github.com/outcrop-dev/outcrop/viewer/internal/opened"
	"github.com/outcrop-dev/outcrop/viewer/internal/stream"
)

// Runner starts agents in this process.
type Runner interface {
	// Run takes the lock of a stored session and makes an idle agent on it. A
	// session that is never written goes on in a new one: then that is what runs.
	// model is PROVIDER:MODEL, "" for the one that session and configuration
	// say. Who is asked about calls is ask. The agent lives until Close, not as
	// long as ctx.
	Run(ctx context.Context, session, model string, ask agent.Approver) (Running, error)
}

// Running is a session that this process writes. Its methods may be called from
// any goroutine.
type Running interface {
	Session() *outcrop.Session
	// Durable is the first seq that is not synced.
	Durable() outcrop.Seq
	Agent() *agent.Agent
	// History does compactions and prunings by hand.
	History() *history.Manager
	// Model is PROVIDER:MODEL.
	Model() string
	SetModel(ctx context.Context, name string) error
	Policy() agent.Policy
	SetPolicy(ctx context.Context, name string) error
	// Dir is the workspace.
	Dir() string
	// Cut is one line about the last turn when a crash cut it, else "".
	Cut() string
	// Close ends the agent and lets the session go.
	Close(ctx context.Context) error
}

// running is a Running that the pages see.
type running struct {
	Running
	id    string
	asked *asked
	end   func() // ends what opened.Begin began
	owned bool   // Close is ours to call
}

// runningOf is the agent of a session, nil when there is none here.
func (v *Viewer) runningOf(id string) *running {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.running[id]
}

// Host shows a session that this process writes anyway, such as that of a chat,
// until end is called. ask are the questions that Ask made for it, nil for none:
// then the pages show no questions.
func (v *Viewer) Host(r Running, ask *Ask) (end func(), err error) {
	q := newAsked()
	if ask != nil {
		q = ask.asked
	}
	run := &running{Running: r, id: r.Session().ID(), asked: q}
	if err := v.enter(run); err != nil {
		return nil, err
	}
	return sync.OnceFunc(func() { v.leave(run) }), nil
}

// enter makes a session known as running here.
func (v *Viewer) enter(r *running) error {
	v.mu.Lock()
	taken := v.running[r.id] != nil || v.closed
	if !taken {
		v.running[r.id] = r
	}
	v.mu.Unlock()
	if taken {
		return &problem{status: 409, code: "BUSY", msg: "the session is running here already"}
	}
	end, err := v.open.Begin(r.id, r)
	if err != nil {
		v.mu.Lock()
		delete(v.running, r.id)
		v.mu.Unlock()
		return err
	}
	r.end = end
	r.asked.watch(func() bool { return v.streams.Watched(r.id) }, func() { v.streams.Nudge(r.id) })
	v.streams.Nudge(r.id)
	return nil
}

func (v *Viewer) leave(r *running) {
	v.list.Forget() // who looks from here on finds the lock free
	v.mu.Lock()
	if v.running[r.id] == r {
		delete(v.running, r.id)
	}
	v.mu.Unlock()
	r.end()
	v.list.Forget()
	v.streams.Nudge(r.id)
}

// start continues a session here.
func (v *Viewer) start(ctx context.Context, id, model string) (*running, error) {
	if v.o.Runner == nil {
		return nil, &problem{status: 403, code: "READ_ONLY", msg: "this server continues no sessions"}
	}
	q := newAsked()
	got, err := v.o.Runner.Run(ctx, id, model, q)
	if err != nil {
		return nil, err
	}
	r := &running{Running: got, id: got.Session().ID(), asked: q, owned: true}
	if err := v.enter(r); err != nil {
		return nil, errors.Join(err, got.Close(context.WithoutCancel(ctx)))
	}
	v.list.Forget()
	return r, nil
}

// release ends an agent and lets its session go.
func (v *Viewer) release(ctx context.Context, r *running) error {
	if !r.owned {
		return nil
	}
	// The pages see the end of the turn before the session is not here any more.
	err := r.Close(ctx)
	v.leave(r)
	return err
}

// Status is what its agent does.
func (r *running) Status() *facts.Status { return facts.StatusOf(r.Agent().Status(), r.Policy()) }

// Questions are the approvals that wait.
func (r *running) Questions() []facts.Question { return r.asked.list(r.Dir()) }

// Answered implements stream.Running.
func (r *running) Answered() []stream.Answered { return r.asked.answered() }

// tellWriter fills in who writes a session, and what its agent does.
func (v *Viewer) tellWriter(ctx context.Context, s *opened.Session, out *facts.Session, veil *facts.Veil) {
	out.Writer = v.writerOf(ctx, s.ID(), veil)
	r := v.runningOf(s.ID())
	if r == nil {
		if in, ok := v.list.Info(ctx, s.ID()); ok && in.State == store.StateNewer && out.State != "damaged" {
			out.State, out.Reason = string(store.StateNewer), textOf(veil, in.Reason)
		}
		if out.Writer.Where == "elsewhere" && out.State != "damaged" {
			out.State, out.Reason = string(store.StateLocked), out.Writer.Holder
		}
		return
	}
	out.Status, out.Questions, out.Durable = r.Status(), r.Questions(), r.Durable()-1
}

// writerOf says who writes a session.
func (v *Viewer) writerOf(ctx context.Context, id string, veil *facts.Veil) facts.Writer {
	if v.runningOf(id) != nil {
		return facts.Writer{Where: "here"}
	}
	if in, ok := v.list.Info(ctx, id); ok && in.State == store.StateLocked {
		return facts.Writer{Where: "elsewhere", Holder: textOf(veil, in.Reason)}
	}
	return facts.Writer{Where: "none"}
}

// Ask asks the people who look at a session about calls of its agent. A question
// waits until somebody comes to answer it, or it is taken back: it is meant to
// stand beside another who is asked, see FirstOf.
type Ask struct{ *asked }

// NewAsk makes the questions of a session that Host will show.
func NewAsk() *Ask {
	q := newAsked()
	q.patient = true
	return &Ask{q}
}

// ErrAnswered is the cause for which a question is taken back that the other of
// FirstOf has answered.
var ErrAnswered = errors.New("viewer: somebody else answered first")

// FirstOf asks two at once; the first answer counts, and the other question is
// taken back. One who cannot be asked leaves it to the other.
func FirstOf(a, b agent.Approver) agent.Approver { return firstOf{a, b} }

type firstOf [2]agent.Approver

// Approve implements agent.Approver.
func (f firstOf) Approve(ctx context.Context, q agent.Question) (agent.Answer, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(ErrAnswered)
	type got struct {
		a   agent.Answer
		err error
	}
	answers := make(chan got, len(f))
	for _, one := range f {
		go func() {
			a, err := one.Approve(ctx, q)
			answers <- got{a, err}
		}()
	}
	var last got
	for range f {
		if last = <-answers; last.err == nil {
			break
		}
	}
	return last.a, last.err
}

// asked are the questions of one session. It is an agent.Approver.
type asked struct {
	mu      sync.Mutex
	open    []*question
	changed func() // called when a question came or went
	here    func() bool
	patient bool              // a question waits, whoever looks
	gone    []stream.Answered // since they were told last
}

type question struct {
	agent.Question
	answer chan agent.Answer
}

func newAsked() *asked { return &asked{changed: func() {}, here: func() bool { return false }} }

// watch says how to find out whether somebody looks at the session, and whom to
// tell when a question comes or goes.
func (q *asked) watch(here func() bool, changed func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.here, q.changed = here, changed
}

// pageWithin is how long a question waits for somebody to look: long enough for
// a page that is loaded again.
const pageWithin = 5 * time.Second

// Approve implements agent.Approver.
func (q *asked) Approve(ctx context.Context, ask agent.Question) (agent.Answer, error) {
	it := &question{ask, make(chan agent.Answer, 1)}
	q.mu.Lock()
	q.open = append(q.open, it)
	changed := q.changed
	q.mu.Unlock()
	changed()
	tick := time.NewTicker(pageWithin)
	defer tick.Stop()
	for {
		select {
		case a := <-it.answer:
			return a, nil
		case <-ctx.Done():
			q.drop(it, "withdrawn")
			return agent.Answer{}, ctx.Err()
		case <-tick.C:
			q.mu.Lock()
			here := q.here
			q.mu.Unlock()
			if !q.patient && !here() && q.drop(it, "unavailable") {
				return agent.Answer{}, agent.ErrUnavailable
			}
		}
	}
}

// drop takes a question back; false when it was answered meanwhile.
func (q *asked) drop(it *question, outcome string) bool {
	q.mu.Lock()
	i := slices.Index(q.open, it)
	if i >= 0 {
		q.open = slices.Delete(q.open, i, i+1)
		q.tellGone(it.ID, outcome)
	}
	changed := q.changed
	q.mu.Unlock()
	changed()
	return i >= 0
}

// mostGone is how many answers are kept for telling.
const mostGone = 64

func (q *asked) tellGone(id, outcome string) {
	if len(q.gone) == mostGone {
		q.gone = q.gone[1:]
	}
	q.gone = append(q.gone, stream.Answered{ID: id, Outcome: outcome})
}

// take answers a question; false when it waits no more.
func (q *asked) take(id string, a agent.Answer) bool {
	q.mu.Lock()
	i := slices.IndexFunc(q.open, func(it *question) bool { return it.ID == id })
	if i < 0 {
		q.mu.Unlock()
		return false
	}
	it := q.open[i]
	q.open = slices.Delete(q.open, i, i+1)
	outcome := "allowed-once"
	if a.Verdict == agent.Reject {
		outcome = "rejected"
	}
	q.tellGone(id, outcome)
	changed := q.changed
	q.mu.Unlock()
	it.answer <- a
	changed()
	return true
}

// list shows the questions that wait.
func (q *asked) list(dir string) []facts.Question {
	q.mu.Lock()
	defer q.mu.Unlock()
	out := make([]facts.Question, 0, len(q.open))
	for _, it := range q.open {
		out = append(out, shown(it, dir))
	}
	return out
}

// answered are the questions that do not wait any more, since the last call.
func (q *asked) answered() (gone []stream.Answered) {
	q.mu.Lock()
	defer q.mu.Unlock()
	gone, q.gone = q.gone, nil
	return gone
}

// shown is a question as a page shows it. Nothing of it is masked: who approves a
// call must see all of it.
func shown(it *question, dir string) facts.Question {
	if it.Preview.Dir != "" {
		dir = it.Preview.Dir
	}
	return facts.Question{ID: it.ID, CallID: facts.Text(it.CallID), Tool: facts.Text(it.Tool), Class: string(it.Class), Arguments: facts.Text(it.Arguments),
		Title: facts.Text(it.Preview.Title), Preview: facts.Text(it.Preview.Body), Diff: it.Class == tool.Edit, Dir: facts.Text(dir)}
}
