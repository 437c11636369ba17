package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/agent"
	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/llm/script"
	"github.com/outcrop-dev/outcrop/message"
	"github.com/outcrop-dev/outcrop/tool"
	"github.com/outcrop-dev/outcrop/workspace"
)

// drawnRun is a whole run, drawn before it is played.
type drawnRun struct {
	Replies    []drawnReply
	Compatible bool
	VetoAt     int // which question to the veto is answered with no
	FailAt     int // which flush fails
	Answers    []int
	Steps      int
	Policy     agent.Policy
	Actions    []int
	Hooks      []int // what hooks do, one after the other
	Kinds      int   // which kinds of hooks there are, a bit each
	Window     int64
}

func drawRun(t *rapid.T) drawnRun {
	return drawnRun{
		Replies:    rapid.SliceOfN(rapid.Custom(drawReply), 0, 8).Draw(t, "replies"),
		Compatible: rapid.Bool().Draw(t, "compatible"),
		VetoAt:     rapid.IntRange(0, 150).Draw(t, "veto at"),
		FailAt:     rapid.IntRange(0, 40).Draw(t, "flush fails at"),
		Answers:    rapid.SliceOfN(rapid.IntRange(0, 5), 1, 5).Draw(t, "answers"),
		Steps:      rapid.IntRange(0, 5).Draw(t, "steps"),
		Policy:     rapid.SampledFrom([]agent.Policy{"", agent.AskExec, agent.AllowAll, agent.AllowRead}).Draw(t, "policy"),
		Actions:    rapid.SliceOfN(rapid.IntRange(0, 10), 1, 10).Draw(t, "actions"),
		Hooks:      rapid.SliceOfN(rapid.SampledFrom([]int{0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9}), 1, 12).Draw(t, "hooks"),
		Kinds:      rapid.SampledFrom([]int{0, 0, 1, 2, 3, 4, 8, 16, 32, 64, 127}).Draw(t, "kinds of hooks"),
		Window:     rapid.SampledFrom([]int64{0, 0, 1 << 20, 1100}).Draw(t, "window"),
	}
}

// Whatever provider, tools, hooks, person, vetoes and disk do, the log is one that
// every check accepts, each call has one result, and the turn is closed.
func TestAnyRunLeavesAGoodLog(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		d := rapid.Custom(drawRun).Draw(rt, "run")
		var err error
		synctest.Test(t, func(*testing.T) { err = d.play() })
		if err != nil {
			rt.Fatal(err)
		}
	})
}

// play runs what was drawn, inside a bubble.
func (d drawnRun) play() error {
	w := &world{release: make(chan struct{}), replies: d.Replies}
	defer close(w.release)
	header := ownHeader()
	if d.Compatible {
		header = compatibleHeader()
	}
	vetoes := 0
	s, err := outcrop.New(header, outcrop.Options{Vetoes: []func(outcrop.Event) error{func(outcrop.Event) error {
		if vetoes++; vetoes == d.VetoAt {
			return errDrawn
		}
		return nil
	}}})
	if err != nil {
		return err
	}
	flushes := 0
	live := &memoryLive{s: s, fail: func(int) error {
		if flushes++; flushes == d.FailAt {
			return errDrawn
		}
		return nil
	}}
	reg, err := tool.NewRegistry(tool.Options{}, w.tools()...)
	if err != nil {
		return err
	}
	asked := 0 // questions come one at a time, but one that was cancelled may still run
	var askedMu sync.Mutex
	w.a, err = agent.New(agent.Options{
		Live: live, Provider: streamFunc(w.stream), Config: llm.Config{Model: "m1"}, Tools: reg,
		Limits: agent.Limits{Steps: d.Steps}, Policy: d.Policy, Window: d.Window,
		Hooks: (&drawnHooks{w: w, does: d.Hooks}).hooks(d.Kinds),
		Contexts: func(context.Context) []workspace.Context {
			return []workspace.Context{{Name: "runtime", Text: "Somewhere."}}
		},
		Approver: approverFunc(func(ctx context.Context, _ agent.Question) (agent.Answer, error) {
			askedMu.Lock()
			asked++
			answer := d.Answers[asked%len(d.Answers)]
			askedMu.Unlock()
			switch answer {
			case 0:
				return agent.Answer{Verdict: agent.AllowOnce}, nil
			case 1:
				return agent.Answer{Verdict: agent.AllowSame}, nil
			case 2:
				return agent.Answer{Verdict: agent.Reject, Reason: "no"}, nil
			case 3:
				panic("drawn")
			case 4:
				<-ctx.Done()
				return agent.Answer{}, ctx.Err()
			}
			return agent.Answer{}, agent.ErrUnavailable
		}),
	})
	if err != nil {
		return err
	}
	ctx := context.Background()
	for i, action := range d.Actions {
		text := fmt.Sprintf("Input %d.", i)
		switch action {
		case 0, 1:
			_, err = w.a.Send(ctx, said(text))
		case 2:
			_, err = w.a.Steer(ctx, said(text))
		case 3:
			_, err = w.a.Cancel(ctx, agent.Cause{Kind: agent.ByUser})
		case 4:
			_, err = w.a.Wake(ctx)
		case 5:
			synctest.Wait()
		case 6:
			_, err = w.a.Cancel(ctx, agent.Cause{Kind: agent.ByHook, Reason: "why not"}, agent.KeepInbox)
		case 7:
			_, err = w.a.Inject(ctx, said(text))
		case 8:
			var step, turn []message.Message
			if step, turn, err = w.a.Pending(ctx); err == nil && len(step)+len(turn) > 0 {
				_, _, err = w.a.Remove(ctx, append(step, turn...)[0].ID)
			}
		case 9:
			err = w.a.SetModel(ctx, agent.Model{Provider: streamFunc(w.stream), Config: llm.Config{Model: "m2"}, Window: d.Window})
		case 10:
			err = w.a.SetPolicy(ctx, agent.AllowAll)
		}
		if err != nil && !errors.Is(err, outcrop.ErrVetoed) {
			w.a.Close(ctx)
			return fmt.Errorf("action %d: %w", i, err)
		}
	}
	synctest.Wait()
	var keep []agent.CancelOption
	if d.Steps%2 == 0 {
		keep = append(keep, agent.KeepInbox)
	}
	_, err = w.a.Cancel(ctx, agent.Cause{Kind: agent.ByUser}, keep...)
	if errors.Is(err, outcrop.ErrVetoed) {
		err = nil
	}
	_, werr := w.a.Wait(ctx)
	step, turn, perr := w.a.Pending(ctx)
	if err := errors.Join(err, werr, perr, w.a.Close(ctx), s.Err()); err != nil {
		return err
	}
	if err := samePending(s, step, turn); err != nil {
		return fmt.Errorf("%w\n%s", err, text(s.Log()))
	}
	if err := sameAsFold(s); err != nil {
		return err
	}
	if turn, step, open := outcrop.OpenTurn(s.Log()); open {
		return fmt.Errorf("turn %d step %d is open when the agent is idle\n%s", turn, step, text(s.Log()))
	}
	if err := checked(s.Log()); err != nil {
		return fmt.Errorf("%w\n%s", err, text(s.Log()))
	}
	return nil
}

var errDrawn = errors.New("drawn")

// samePending checks that an agent that starts on the log finds what was
// pending, no more and no less.
func samePending(s *outcrop.Session, step, turn inputs) error {
	again, err := outcrop.Restore(s.Header(), records(s.Log()), outcrop.Options{})
	if err != nil {
		return err
	}
	a, err := agent.New(agent.Options{Live: &memoryLive{s: again}, Provider: plays(), Config: llm.Config{Model: "m1"}})
	if err != nil {
		return err
	}
	gotStep, gotTurn, err := a.Pending(context.Background())
	if err := errors.Join(err, a.Close(context.Background())); err != nil {
		return err
	}
	if diff := cmp.Diff(idsOf(step, turn), idsOf(gotStep, gotTurn)); diff != "" {
		return fmt.Errorf("pending in the agent and in its log (-agent +log): %s", diff)
	}
	return nil
}

func idsOf(lists ...inputs) (ids []string) {
	for i, l := range lists {
		for _, m := range l {
			ids = append(ids, fmt.Sprint(i, " ", m.ID))
		}
	}
	return ids
}

func text(log outcrop.Log) string {
	var b strings.Builder
	for ev := range outcrop.Events(log, 0) {
		b.Write(ev.AppendJSON(nil))
		b.WriteByte('\n')
	}
	return b.String()
}

// However much of a log a crash leaves, it is repaired, its input is not lost
// and not taken twice, no tool runs by itself, and the session goes on.
func TestASessionGoesOnFromEveryPrefix(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, header := range []outcrop.Header{ownHeader(), compatibleHeader()} {
			log := richLog(t, header)
			for n := 0; n <= log.Len(); n++ {
				live := reopened(t, header, log, n)
				ran := 0
				count := &fakeTool{name: "look", class: tool.Read, parallel: true, run: func(context.Context, tool.Call) (tool.Result, error) {
					ran++
					return tool.Text("ok"), nil
				}}
				a := start(t, live, scripted(t, `{"script":1,"end":"last"}`, `{"text":"Going on."}`), withTools(t, count))
				synctest.Wait()
				if ran > 0 {
					t.Errorf("after %d events: a tool ran by itself", n)
				}
				for {
					pending, err := a.Wake(background)
					if err != nil {
						t.Fatal(err)
					}
					if !pending {
						break
					}
					wait(t, a)
				}
				if out := ask(t, a, "Go on."); out.Reason.Kind != outcrop.Completed || out.Err != nil {
					t.Errorf("after %d events: %+v", n, out)
				}
				stop(t, a)
				check(t, live.s.Log())
				if err := enteredOnce(live.s.Log()); err != nil {
					t.Errorf("after %d events: %v", n, err)
				}
				if t.Failed() {
					t.Fatalf("log after %d of %d events:\n%s", n, log.Len(), text(live.s.Log()))
				}
			}
		}
	})
}

// richLog is a log with a bit of everything in it.
func richLog(t *testing.T, header outcrop.Header) outcrop.Log {
	live := newLive(t, header, outcrop.Options{})
	var a *agent.Agent
	look := &fakeTool{name: "look", class: tool.Read, parallel: true}
	steer := &fakeTool{name: "steer", class: tool.Read, run: func(ctx context.Context, _ tool.Call) (tool.Result, error) {
		_, err := a.Steer(ctx, said("By the way."))
		return tool.Text("ok"), err
	}}
	edit := &fakeTool{name: "edit", class: tool.Edit}
	yes := true
	a = start(t, live, scripted(t,
		`{"text":"Looking.","tools":[{"name":"look","args":{}},{"name":"look","args":{"x":"1"}},{"name":"steer","args":{}}]}`,
		`{"text":"I would ed","error":{"code":"SERVER","message":"busy","status":503},"after":1}`,
		`{"tools":[{"name":"edit","args":{}},{"name":"edit","args":{"x":"2"}},{"name":"nope","args":{}}]}`,
		`{"text":"Done."}`,
		`{"text":"More.","finish":"max-tokens"}`), withTools(t, look, steer, edit),
		func(o *agent.Options) {
			o.Contexts = func(context.Context) []workspace.Context {
				return []workspace.Context{{Name: "runtime", Text: "Here."}}
			}
			o.Approver = approverFunc(func(context.Context, agent.Question) (agent.Answer, error) {
				if yes = !yes; yes {
					return agent.Answer{Verdict: agent.Reject}, nil
				}
				return agent.Answer{Verdict: agent.AllowOnce}, nil
			})
		})
	send(t, a, "One.")
	send(t, a, "Two.")
	if out := wait(t, a); out.Reason.Kind != outcrop.MaxTokens {
		t.Fatalf("%+v", out)
	}
	stop(t, a)
	check(t, live.s.Log())
	return live.s.Log()
}

// enteredOnce checks that each input that nobody took back is in the
// conversation exactly once.
func enteredOnce(log outcrop.Log) error {
	want := map[string]int{}
	for ev := range outcrop.Events(log, 0) {
		var d struct {
			ID       string
			Inserted []struct{ ID string }
		}
		if err := json.Unmarshal(ev.Data, &d); err != nil {
			return err
		}
		switch ev.Type {
		case outcrop.TypeInboxSpliced:
			for _, m := range d.Inserted {
				want[m.ID] += 0
			}
		case outcrop.TypeUserMessage:
			if _, ok := want[d.ID]; ok {
				want[d.ID]++
			}
		}
	}
	for id, n := range want {
		if n != 1 {
			return fmt.Errorf("input %s entered %d times", id, n)
		}
	}
	return nil
}

// The request that was announced is the one that the log gives.
func TestEveryAnnouncedRequestCanBeRebuiltFromTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := richLog(t, ownHeader())
		n := 0
		for ev := range outcrop.Events(log, 0) {
			if ev.Type != outcrop.TypeOutcropRequest {
				continue
			}
			n++
			var d struct {
				Prefix outcrop.Seq
				Digest string
			}
			if err := json.Unmarshal(ev.Data, &d); err != nil {
				t.Fatal(err)
			}
			got, err := outcrop.RequestDigestAt(log, d.Prefix)
			if err != nil || got != d.Digest {
				t.Errorf("event %d: digest %s, rebuilt %s, %v", ev.Seq, d.Digest, got, err)
			}
		}
		if n != 5 {
			t.Errorf("%d requests", n)
		}
	})
}

var _ llm.Provider = (*script.Model)(nil)
