package agent_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"sync"
	"testing/synctest"
	"time"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/agent"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/llm/replay"
	"github.com/outcrop-dev/outcrop/message"
	"github.com/outcrop-dev/outcrop/tool"
	"github.com/outcrop-dev/outcrop/workspace"
)

// player runs a recording again, with the real loop. It gives in from outside
// what came from outside, at the same points: a turn is held back until all that
// was there before it is there again, and what came during a step comes when
// the model is called.
type player struct {
	*recording
	model *replay.Model
	ctx   context.Context
	s     *outcrop.Session
	a     *agent.Agent
	cfg   llm.Config

	ids, loopIDs []string // what is left of them
	crashes      int      // ids of a life that is over are not taken any more
	release      chan struct{}

	mu      sync.Mutex
	plan    *turnPlan // that runs
	held    bool      // the turn waits for release
	attempt int       // of the step's last call
	fault   error     // of something that runs inside the loop
}

// play runs the whole recording and returns the log that it gives. It must be
// called in a bubble. With strict each request must be the recorded one.
func (r *recording) play(strict bool) (outcrop.Log, error) {
	p := &player{recording: r, model: replay.New(r.log, replay.Options{Strict: strict}), ctx: context.Background(), ids: r.ids, loopIDs: r.loopIDs}
	log := outcrop.Prefix(r.log, int(r.lives[0].start))
	for i := range r.lives {
		var err error
		if log, err = p.life(&r.lives[i], log); err != nil {
			return log, fmt.Errorf("life %d: %w", i+1, err)
		}
	}
	return log, nil
}

// recordedIDs hands out recorded ids as long as this life lasts.
func (p *player) recordedIDs(list *[]string) func() string {
	life := p.crashes
	return func() string {
		if len(*list) == 0 || p.crashes != life {
			return "not recorded"
		}
		id := (*list)[0]
		*list = (*list)[1:]
		return id
	}
}

// life runs one life on what the lives before it left.
func (p *player) life(l *life, log outcrop.Log) (outcrop.Log, error) {
	o := outcrop.Options{NewID: p.recordedIDs(&p.ids)}
	var err error
	if log.Len() == 0 {
		p.s, err = outcrop.New(p.header, o)
	} else {
		p.s, err = outcrop.Restore(p.header, records(log), o)
	}
	if err == nil {
		err = p.open(l)
	}
	if err != nil {
		return log, err
	}
	defer func() { _ = p.a.Close(p.ctx) }()
	for i := range l.turns {
		tp := &l.turns[i]
		err := p.run(tp)
		if err == nil {
			err = p.failed(nil)
		}
		if err != nil {
			return p.s.Log(), fmt.Errorf("turn %d: %w", tp.n, err)
		}
		if tp.cut() {
			return p.crash(tp)
		}
	}
	if err := p.give(l.after); err != nil {
		return p.s.Log(), err
	}
	return p.s.Log(), p.failed(nil)
}

// failed keeps the first fault, and returns it.
func (p *player) failed(err error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fault == nil {
		p.fault = err
	}
	return p.fault
}

// open starts the agent of a life, with the model, the prompt and the tools of
// the header in force.
func (p *player) open(l *life) error {
	cfg, system, tools := llm.Config{Provider: "none", Model: "none"}, "", []llm.Tool(nil)
	if len(l.turns) > 0 && l.turns[0].header >= 0 {
		var err error
		if cfg, system, tools, err = p.headerOf(&l.turns[0]); err != nil {
			return err
		}
	}
	var all []tool.Tool
	for _, t := range tools {
		r := &recordedTool{fakeTool: fakeTool{name: t.Name, class: tool.Read, parallel: p.parallel[t.Name], run: p.call}, of: t, lenient: p.foreign}
		if p.asked[t.Name] {
			r.class = tool.Exec
		}
		all = append(all, r)
	}
	reg, err := tool.NewRegistry(tool.Options{Inline: 100 << 20}, all...)
	if err != nil {
		return err
	}
	for _, t := range all {
		t.(*recordedTool).lenient = false
	}
	policy, steps := agent.AllowAll, 0
	if len(p.asked) > 0 {
		policy = agent.AskAll
	}
	for _, tp := range l.turns {
		if s, ok := strings.CutPrefix(tp.cause.Reason, "step limit "); ok {
			steps, _ = strconv.Atoi(strings.TrimSuffix(s, " reached"))
		}
	}
	p.cfg, p.release, p.held = cfg, make(chan struct{}), false
	p.a, err = agent.New(agent.Options{
		Live: &memoryLive{s: p.s}, Provider: p, Config: cfg, System: system, Tools: reg, Images: true,
		Hooks:  agent.Hooks{Contributors: []agent.Contributor{p}, AfterTool: []agent.AfterTool{p}, PreStep: []agent.PreStepDecider{p}},
		Policy: policy, Approver: approverFunc(p.approve), Limits: agent.Limits{Steps: steps}, Retry: agent.RetryPolicy{Max: p.retries},
		Contexts: p.hold, NewID: p.recordedIDs(&p.loopIDs),
	})
	return err
}

func (p *player) headerOf(tp *turnPlan) (llm.Config, string, []llm.Tool, error) {
	return llm.ParseHeader(jsonwire.Get(p.log.At(tp.header).Data, "header"))
}

// recordedTool is a tool as the request header describes it.
type recordedTool struct {
	fakeTool
	of llm.Tool
	// lenient says that any object is taken for arguments: what another program
	// answered to wrong ones is in the recording.
	lenient bool
}

func (t *recordedTool) Description() string { return t.of.Description }
func (t *recordedTool) Schema() json.RawMessage {
	if t.lenient {
		return json.RawMessage(`{"type":"object"}`)
	}
	return t.of.Parameters
}

// hold keeps a turn from taking its input.
func (p *player) hold(ctx context.Context) []workspace.Context {
	p.mu.Lock()
	p.held = true
	p.mu.Unlock()
	select {
	case <-p.release:
	case <-ctx.Done():
	}
	p.mu.Lock()
	p.held = false
	p.mu.Unlock()
	return nil
}

func (p *player) isHeld() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.held
}

// run runs one turn up to its end, or up to where a crash cut it.
func (p *player) run(tp *turnPlan) error {
	p.mu.Lock()
	p.plan, p.attempt = tp, 0
	p.mu.Unlock()
	synctest.Wait()
	if tp.header >= 0 {
		cfg, _, _, err := p.headerOf(tp)
		if err != nil {
			return err
		}
		if !bytes.Equal(llm.HeaderJSON(cfg, "", nil), llm.HeaderJSON(p.cfg, "", nil)) {
			p.cfg = cfg
			if err := p.a.SetModel(p.ctx, agent.Model{Provider: p, Config: cfg, Images: true}); err != nil {
				return err
			}
		}
	}
	if err := p.give(tp.before); err != nil {
		return err
	}
	synctest.Wait()
	if !p.isHeld() {
		pending, err := p.a.Wake(p.ctx)
		if err == nil && !pending {
			// The recording does not say what began the turn.
			_, err = p.a.Send(p.ctx, message.Message{ID: "beginning", Content: []message.Block{message.Text("(not recorded)")}})
		}
		if err != nil {
			return err
		}
		synctest.Wait()
	}
	if !p.isHeld() {
		return fmt.Errorf("it does not begin: %+v", p.a.Status())
	}
	p.release <- struct{}{}
	for cancelled := false; ; {
		synctest.Wait()
		st := p.a.Status()
		switch {
		case p.isHeld(), st.Phase == agent.Idle:
			return nil
		case st.Phase == agent.Retrying && p.goesOn(st):
			time.Sleep(time.Minute)
		case tp.end == string(outcrop.TurnAborted) && !cancelled:
			cancelled = true
			if err := p.cancel(tp); err != nil {
				return err
			}
		case tp.cut():
			return nil
		default:
			return fmt.Errorf("the loop waits for something that was not recorded: %+v", st)
		}
	}
}

// goesOn reports whether the step has another attempt.
func (p *player) goesOn(st agent.Status) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.recordedCall(st.Turn, st.Step, p.attempt+1)
}

func (p *player) recordedCall(turn, step, attempt int) bool {
	for a := range p.model.Attempts() {
		if a.Turn == turn && a.Step == step && a.N == attempt {
			return true
		}
	}
	return false
}

func (p *player) cancel(tp *turnPlan) error {
	keep := []agent.CancelOption{agent.KeepInbox}
	if tp.drop {
		keep = nil
	}
	_, err := p.a.Cancel(p.ctx, tp.cause, keep...)
	return err
}

// give gives in what came from outside.
func (p *player) give(list []happening) error {
	for _, h := range list {
		var err error
		switch {
		case h.edit != nil:
			err = p.a.Maintain(p.ctx, func(s *outcrop.Session) error { return p.edit(s, h.edit) })
		case h.insert == nil:
			_, _, err = p.a.Remove(p.ctx, h.remove)
		case h.target == outcrop.NextStep:
			_, err = p.a.Inject(p.ctx, *h.insert)
		default:
			_, err = p.a.Send(p.ctx, *h.insert)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// edit appends recorded edits of the history.
func (p *player) edit(s *outcrop.Session, events []outcrop.Event) error {
	for _, ev := range events {
		moved, err := p.moved(s.Log(), ev)
		if err == nil {
			_, err = s.AppendRaw(moved)
		}
		if err != nil {
			return fmt.Errorf("the edit of event %d: %w", ev.Seq, err)
		}
	}
	return nil
}

// moved is a recorded event with the seqs that a replayed log has for the same.
func (p *player) moved(log outcrop.Log, ev outcrop.Event) (outcrop.Event, error) {
	out := outcrop.Event{Type: ev.Type, Time: ev.Time, Data: ev.Data, Op: ev.Op, Sources: ev.Sources, Ignorable: ev.Ignorable}
	if start, end, ok := ev.Op.Range(); ok {
		s, err1 := p.replayed(log, start)
		e, err2 := p.replayed(log, end)
		if err := errors.Join(err1, err2); err != nil {
			return out, err
		}
		out.Op = outcrop.Replace(s, e)
	}
	if ev.Sources.Len() > 0 {
		var seqs []outcrop.Seq
		for seq := range ev.Sources.All() {
			s, err := p.replayed(log, seq)
			if err != nil {
				return out, err
			}
			seqs = append(seqs, s)
		}
		out.Sources = outcrop.SourcesOf(seqs...)
	}
	return out, nil
}

// structure names what an event is in the structure of a session; "" when it is
// no part of it. Equal names come in the same order in recording and replay.
func structure(ev outcrop.Event) string {
	switch ev.Type {
	case outcrop.TypeTurnStart, outcrop.TypeTurnEnd, outcrop.TypeStepStart, outcrop.TypeStepEnd:
		return "loop"
	case outcrop.TypeToolCall:
		return callPlace(number(ev.Data, "turn"), number(ev.Data, "step"), word(ev.Data, "callId"))
	case outcrop.TypeCompactionStart, outcrop.TypeCompactionSummary, outcrop.TypeCompactionEnd, outcrop.TypeCompactionPrune,
		outcrop.TypeOutcropEdit, outcrop.TypeOutcropRewind:
		return string(ev.Type)
	}
	if ev.Op.IsZero() || isCutNotice(ev.Data) {
		return ""
	}
	return "loop"
}

// isCutNotice recognises the message by which our loop tells the model of a
// reply that a crash cut.
func isCutNotice(data []byte) bool {
	return word(data, "source", "form") == "interrupted" || word(data, "source", "summary") == "interrupted"
}

// replayed is the place of a recorded event in a replayed log.
func (p *player) replayed(log outcrop.Log, seq outcrop.Seq) (outcrop.Seq, error) {
	name, n := structure(p.log.At(seq)), 0
	for ev := range outcrop.Events(p.log, 0) {
		if ev.Seq > seq {
			break
		}
		if structure(ev) == name {
			n++
		}
	}
	for ev := range outcrop.Events(log, 0) {
		if structure(ev) != name {
			continue
		}
		if n--; n == 0 {
			return ev.Seq, nil
		}
	}
	return 0, fmt.Errorf("the replay has nothing for event %d", seq)
}

// crash is the end of the process: what the loop wrote behind the point up to
// which the recording goes is taken away, and what repair wrote in the recording
// is put there.
func (p *player) crash(tp *turnPlan) (outcrop.Log, error) {
	p.crashes++
	log := p.s.Log()
	end := outcrop.Seq(p.log.Len())
	if tp.end != "" {
		end = tp.closers[0].Seq
	}
	n := 0
	for ev := range outcrop.Events(outcrop.Prefix(p.log, int(end)), 0) {
		if structure(ev) == "loop" {
			n++
		}
	}
	for ev := range outcrop.Events(log, 0) {
		if structure(ev) != "loop" {
			continue
		}
		if n--; n < 0 {
			log = outcrop.Prefix(log, int(ev.Seq))
			break
		}
	}
	if n > 0 {
		return log, fmt.Errorf("turn %d: the replay stopped %d events before the crash: %+v", tp.n, n, p.a.Status())
	}
	if tp.end == "" {
		return log, nil
	}
	recs := make([]outcrop.Record, 0, log.Len()+len(tp.closers))
	for r := range log.Records(0) {
		recs = append(recs, r)
	}
	for i, ev := range tp.closers {
		ev, err := p.moved(log, ev)
		if err != nil {
			return log, err
		}
		ev.Seq = outcrop.Seq(log.Len() + i)
		recs = append(recs, outcrop.Record{Event: ev})
	}
	s, err := outcrop.Inspect(p.header, func(yield func(outcrop.Record, error) bool) {
		for _, r := range recs {
			if !yield(r, nil) {
				return
			}
		}
	}, outcrop.Options{})
	if err != nil {
		return log, err
	}
	return s.Log(), nil
}

// Name and Stream make the player a provider.
func (p *player) Name() string { return replay.Name }

func (p *player) Stream(ctx context.Context, req llm.Request) iter.Seq2[message.Chunk, error] {
	return func(yield func(message.Chunk, error) bool) {
		p.mu.Lock()
		tp := p.plan
		p.attempt = req.Attempt
		p.mu.Unlock()
		if req.Attempt == 1 {
			if err := p.give(tp.during[req.Step]); err != nil {
				yield(message.Chunk{}, p.failed(err))
				return
			}
		}
		if !p.recordedCall(req.Turn, req.Step, req.Attempt) && (tp.cut() || tp.end == string(outcrop.TurnAborted)) {
			// The recorded turn did not come so far.
			<-ctx.Done()
			yield(message.Chunk{}, &message.Failure{Code: message.CodeAborted, Message: "cancelled"})
			return
		}
		for c, err := range p.model.Stream(ctx, req) {
			var f *message.Failure
			if errors.As(err, &f) && (f.Code == replay.CodeNone || f.Code == replay.CodeDiffers) {
				_ = p.failed(err)
			}
			if !yield(c, err) {
				return
			}
		}
	}
}

// Contribute gives the contexts that entered the step.
func (p *player) Contribute(_ context.Context, st agent.Stage) ([]workspace.Context, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.plan.contexts[st.Step], nil
}

// PreStep lets the messages enter that entered. Contexts of another program are
// among them.
func (p *player) PreStep(ctx context.Context, st agent.Stage, claimed []message.Message) ([]message.Message, bool, error) {
	p.mu.Lock()
	tp := p.plan
	p.mu.Unlock()
	if edits := tp.edits[st.Step]; edits != nil {
		if err := st.Edit(ctx, func(s *outcrop.Session) error { return p.edit(s, edits) }); err != nil {
			return nil, false, p.failed(err)
		}
	}
	switch {
	case tp.end == string(outcrop.Blocked) && st.Step > tp.steps:
		return nil, true, nil
	case st.Step > tp.steps && (tp.cut() || tp.end == string(outcrop.TurnAborted)):
		<-ctx.Done()
		return claimed, false, nil
	}
	return tp.enters[st.Step], false, nil
}

// call is every tool of a recording. A call without a recorded result, and one
// that was cancelled, waits for that.
func (p *player) call(ctx context.Context, call tool.Call) (tool.Result, error) {
	out, ok := p.resultOf(call)
	if !ok || out.Err != nil && out.Err.Code == tool.Aborted.Code {
		<-ctx.Done()
		return tool.Result{}, ctx.Err()
	}
	return tool.Result{Content: out.Content, IsError: out.IsError}, nil
}

// AfterTool puts the recorded outcome in the place of what the call gave.
func (p *player) AfterTool(_ context.Context, _ agent.Stage, call tool.Call, out tool.Outcome) (tool.Outcome, []message.Message, error) {
	if recorded, ok := p.resultOf(call); ok {
		return recorded, nil, nil
	}
	return out, nil, nil
}

func (p *player) resultOf(call tool.Call) (tool.Outcome, bool) {
	seq, _ := strconv.Atoi(strings.Split(call.Key, ":")[1])
	data := p.s.Log().At(outcrop.Seq(seq)).Data
	out, ok := p.results[callPlace(number(data, "turn"), number(data, "step"), call.ID)]
	return out, ok
}

// approve answers as the person did.
func (p *player) approve(ctx context.Context, q agent.Question) (agent.Answer, error) {
	switch p.decisions[q.ID] {
	case "allowed-once":
		return agent.Answer{Verdict: agent.AllowOnce}, nil
	case "rejected":
		st := p.a.Status()
		text := message.PlainText(p.results[callPlace(st.Turn, st.Step, q.CallID)].Content)
		_, reason, _ := strings.Cut(text, "not approved by the user: ")
		return agent.Answer{Verdict: agent.Reject, Reason: reason}, nil
	case "unavailable":
		return agent.Answer{}, agent.ErrUnavailable
	}
	<-ctx.Done()
	return agent.Answer{}, ctx.Err()
}
