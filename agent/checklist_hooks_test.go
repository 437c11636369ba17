package agent_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/agent"
	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/message"
	"github.com/outcrop-dev/outcrop/tool"
	"github.com/outcrop-dev/outcrop/workspace"
)

type inputs = []message.Message

// once is a pre-step hook that does something the first time, and lets
// everything through otherwise.
func once(f func(ctx context.Context, in inputs) (inputs, bool, error)) preStep {
	done := false
	return func(ctx context.Context, _ agent.Stage, in inputs) (inputs, bool, error) {
		if done {
			return in, false, nil
		}
		done = true
		return f(ctx, in)
	}
}

func reject(context.Context, inputs) (inputs, bool, error) { return nil, true, nil }

// The rows of the checklist about what enters a step.
func TestChecklistPreStep(t *testing.T) {
	row(t, "N1 L30 L31 a hook that returns what it got changes nothing, and is asked before the step begins", func(t *testing.T) {
		k := talking(t, plays(), with(preStep(func(_ context.Context, st agent.Stage, in inputs) (inputs, bool, error) {
			if n := len(eventsOf(st.Log, outcrop.TypeStepStart)); n != st.Step-1 || st.Header.ID != "s1" {
				t.Errorf("asked about step %d when %d had begun", st.Step, n)
			}
			return in, false, nil
		})))
		ended(t, k.say("Hi."), "completed")
		k.logs("+turn Hi.", "turn 1", "claim turn 1", "step 1", "user Hi.", "says ok", "end of step", "end of turn: completed")
	})
	row(t, "N2 it is asked about each step, with nothing when nothing was sent", func(t *testing.T) {
		var got []string
		k := talking(t, plays(asks("look")), withTools(t, looks(nil)), with(preStep(func(_ context.Context, st agent.Stage, in inputs) (inputs, bool, error) {
			got = append(got, fmt.Sprint(st.Turn, st.Step, len(in)))
			return in, false, nil
		})))
		ended(t, k.say("Hi."), "completed")
		if s := strings.Join(got, ", "); s != "1 1 1, 1 2 0" {
			t.Errorf("asked about %s", s)
		}
	})
	row(t, "N3 what a hook does to its copy, and a caller to what it sent, changes nothing", func(t *testing.T) {
		mine := said("Hi.")
		k := talking(t, plays(), with(preStep(func(_ context.Context, _ agent.Stage, in inputs) (inputs, bool, error) {
			in[0].Content[0] = message.Text("Changed.")
			return in, false, nil
		}), preStep(func(_ context.Context, _ agent.Stage, in inputs) (inputs, bool, error) {
			in[0].Content[0] = message.Text("Changed behind the back.")
			in[0].ID = "x"
			return nil, true, nil
		})))
		if _, err := k.Send(background, mine); err != nil {
			t.Fatal(err)
		}
		k.end()
		k.logs("+turn Hi.", "turn 1", "claim turn 1", "end of turn: blocked")
	})
	row(t, "N4 what it rewrites is recorded and sent", func(t *testing.T) {
		k := talking(t, plays(), with(preStep(func(_ context.Context, _ agent.Stage, in inputs) (inputs, bool, error) {
			in[0].Content = said("Rewritten.").Content
			return in, false, nil
		})))
		k.say("Original.")
		k.sends(1, "Rewritten.")
		k.logs("+turn Original.", "turn 1", "claim turn 1", "step 1", "user Rewritten.", "says ok", "end of step", "end of turn: completed")
	})
	row(t, "N5 N21 what it adds is a message of its own, and no person's", func(t *testing.T) {
		k := talking(t, plays(), with(preStep(func(_ context.Context, _ agent.Stage, in inputs) (inputs, bool, error) {
			return append(in, said("By the way.")), false, nil
		})))
		k.say("Hi.")
		k.sends(1, "Hi.", "By the way.")
		if d := eventsOf(k.live.s.Log(), outcrop.TypeUserMessage); !strings.Contains(d[1], `"kind":"plugin"`) || !strings.Contains(d[0], `"source":{"kind":"user"}`) {
			t.Errorf("sources: %q", d)
		}
	})
	row(t, "N6 an injected message that a later hook leaves out makes no further step", func(t *testing.T) {
		k := talking(t, plays(), with(
			preStep(func(_ context.Context, st agent.Stage, in inputs) (inputs, bool, error) {
				if st.Step > 1 {
					in = nil
				}
				return in, false, nil
			}),
			stopping(func(context.Context, agent.Stage) (inputs, error) { return inputs{said("More.")}, nil })))
		ended(t, k.say("Hi."), "completed")
		k.calls(1)
		k.logs("+turn Hi.", "turn 1", "claim turn 1", "step 1", "user Hi.", "says ok", "end of step",
			"+step More.", "drop step 1 at 0", "end of turn: completed")
	})
	row(t, "R4 nothing enters the first step: a turn without a step, an empty inbox", func(t *testing.T) {
		k := talking(t, plays(), with(preStep(func(context.Context, agent.Stage, inputs) (inputs, bool, error) { return nil, false, nil })))
		ended(t, k.say("Hi."), "completed")
		k.waiting(nil, nil)
		k.logs("+turn Hi.", "turn 1", "drop turn 1 at 0", "end of turn: completed")
	})
	row(t, "N7 N22 N23 a rejected prompt is taken, does not enter, and is not asked about again", func(t *testing.T) {
		k := talking(t, plays(), with(once(reject)))
		ended(t, k.say("Forbidden."), "blocked")
		k.logs("+turn Forbidden.", "turn 1", "claim turn 1", "end of turn: blocked")
		ended(t, k.say("Allowed."), "completed")
		k.sends(1, "Allowed.")
	})
	row(t, "N8 what comes while a hook is asked enters at the next step, in order", func(t *testing.T) {
		k, gate := gated(t, plays(), func(in inputs) (inputs, bool) { return in, false })
		k.send("Prompt.")
		synctest.Wait()
		k.inject("Context.")
		k.steer("Steer.")
		close(gate)
		ended(t, k.end(), "completed")
		k.sends(1, "Prompt.")
		k.sends(2, "Prompt.", "ok", "Context.", "Steer.")
		k.logs("+turn Prompt.", "turn 1", "+step Context.", "+step Steer.", "claim turn 1", "step 1", "user Prompt.", "says ok", "end of step",
			"claim step 2", "step 2", "user Context.", "user Steer.", "says ok", "end of step", "end of turn: completed")
	})
	row(t, "N9 N10 N11 a reject takes what was asked about and nothing else", func(t *testing.T) {
		k, gate := gated(t, plays(), func(inputs) (inputs, bool) { return nil, true })
		k.send("Blocked.")
		k.send("Queued.")
		synctest.Wait()
		k.inject("Context.")
		close(gate)
		ended(t, k.end(), "blocked")
		k.waiting([]string{"Context."}, []string{"Queued."})
		if ok, err := k.Wake(background); !ok || err != nil {
			t.Error(ok, err)
		}
		ended(t, k.end(), "completed")
		k.sends(1, "Context.", "Queued.")
	})
	row(t, "N13 behind a blocked turn the next prompt waits until somebody wakes the agent", func(t *testing.T) {
		k, gate := gated(t, plays(), func(inputs) (inputs, bool) { return nil, true })
		k.send("Blocked.")
		k.send("Queued.")
		close(gate)
		ended(t, k.end(), "blocked")
		k.waiting(nil, []string{"Queued."})
		k.calls(0)
	})
	row(t, "N14 L32 a hook that fails ends the turn as an error, and loses no input", func(t *testing.T) {
		gate := make(chan struct{})
		k := talking(t, plays(), with(once(func(context.Context, inputs) (inputs, bool, error) {
			<-gate
			return nil, false, errors.New("no such luck")
		})))
		k.send("First.")
		k.send("Second.")
		close(gate)
		ended(t, k.end(), "error UNKNOWN no such luck")
		k.waiting(nil, []string{"First.", "Second."})
		k.logs("+turn First.", "turn 1", "+turn Second.", "end of turn: error UNKNOWN no such luck")
		k.Wake(background)
		if out := k.end(); out.Turn != 3 || out.Reason.Kind != outcrop.Completed {
			t.Errorf("outcome %+v", out)
		}
	})
	row(t, "L21 what a hook steered in before it failed is kept", func(t *testing.T) {
		var k *talk
		k = talking(t, plays(), with(once(func(context.Context, inputs) (inputs, bool, error) {
			k.steer("Kept.")
			return nil, false, errors.New("no")
		})))
		ended(t, k.say("Hi."), "error UNKNOWN no")
		k.waiting([]string{"Kept."}, []string{"Hi."})
		k.Wake(background)
		k.end()
		k.sends(1, "Kept.", "Hi.")
	})
	row(t, "E18 a later step that is rejected blocks the turn", func(t *testing.T) {
		k := talking(t, plays(asks("look")), withTools(t, looks(nil)), with(preStep(func(_ context.Context, st agent.Stage, in inputs) (inputs, bool, error) {
			return in, st.Step == 2, nil
		})))
		ended(t, k.say("Hi."), "blocked")
		k.calls(1)
	})
	row(t, "R27 a hook that has the agent closed and fails: the turn is aborted, no step", func(t *testing.T) {
		var k *talk
		closed := make(chan error, 1)
		k = talking(t, plays(), with(preStep(func(ctx context.Context, _ agent.Stage, _ inputs) (inputs, bool, error) {
			go func() { closed <- k.Close(background) }()
			<-ctx.Done()
			return nil, false, errors.New("no")
		})))
		k.send("Hi.")
		if err := <-closed; err != nil {
			t.Error(err)
		}
		k.logs("+turn Hi.", "turn 1", "end of turn: aborted disposed")
	})
	row(t, "K1 L13 L14 a context is told when it is new, changed or off the surface, and else not", func(t *testing.T) {
		text := "It is monday."
		k := talking(t, plays(), with(contribute(func(context.Context, agent.Stage) ([]workspace.Context, error) {
			return []workspace.Context{{Name: "day", Text: "thrown away"}, {Name: "day", Text: text}}, nil
		})))
		k.say("1")
		k.say("2")
		text = "It is tuesday."
		k.say("3")
		k.say("4")
		if err := k.Maintain(background, coverAll); err != nil {
			t.Fatal(err)
		}
		k.say("5")
		k.say("6")
		var got []string
		for _, line := range outline(k.live.s.Log()) {
			if strings.HasPrefix(line, "user") || strings.HasPrefix(line, "context") {
				got = append(got, line)
			}
		}
		want := "user 1|context day: It is monday.|user 2|user 3|context day: It is tuesday.\n\nThis replaces the earlier message of the same kind.|" +
			"user 4|user everything so far|user 5|context day: It is tuesday.|user 6"
		if s := strings.Join(got, "|"); s != want {
			t.Errorf("entered:\n%s\nwant:\n%s", s, want)
		}
		if n := len(eventsOf(k.live.s.Log(), outcrop.TypeRequestHeader)); n != 1 {
			t.Errorf("%d headers", n)
		}
	})
	row(t, "L16 an edit of something else tells no context", func(t *testing.T) {
		k := talking(t, plays())
		k.say("1")
		if err := k.Maintain(background, coverAll); err != nil {
			t.Fatal(err)
		}
		k.say("2")
		k.sends(2, "everything so far", "2")
	})
	row(t, "R6 a context of a hook enters after a turn that a tool cancelled", func(t *testing.T) {
		var k *talk
		k = talking(t, plays(asks("look", "look")), withTools(t, &fakeTool{name: "look", class: tool.Read, run: func(context.Context, tool.Call) (tool.Result, error) {
			k.cancel()
			return tool.Text("done"), nil
		}}), with(contribute(func(_ context.Context, st agent.Stage) ([]workspace.Context, error) {
			if st.Turn == 1 {
				return nil, nil
			}
			return []workspace.Context{{Name: "note", Text: "Something happened."}}, nil
		})))
		ended(t, k.say("Hi."), "aborted user")
		ended(t, k.say("Go on."), "completed")
		k.sends(2, "Hi.", "call c1 | call c2", "result c1 Error: tool call aborted", "result c2 Error: tool call aborted before dispatch",
			"Go on.", "Something happened.")
	})
	row(t, "X2 an edit by a pre-step hook stands in the turn, before its step, and is durable before the call", func(t *testing.T) {
		k := talking(t, plays(), with(preStep(func(ctx context.Context, st agent.Stage, in inputs) (inputs, bool, error) {
			if st.Turn < 2 {
				return in, false, nil
			}
			err := st.Edit(ctx, coverAll)
			if p := st.Edit(ctx, func(*outcrop.Session) error { panic("oh") }); p == nil || !strings.Contains(p.Error(), "oh") {
				t.Errorf("a panic in an edit: %v", p)
			}
			return in, false, err
		})))
		k.say("1")
		k.say("2")
		k.sends(2, "everything so far", "2")
		k.logs("+turn 1", "turn 1", "claim turn 1", "step 1", "user 1", "says ok", "end of step", "end of turn: completed",
			"+turn 2", "turn 2", "user everything so far", "claim turn 1", "step 1", "user 2", "says ok", "end of step", "end of turn: completed")
	})
	t.Run("a hook cannot edit where it is not asked about history", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			tried := 0
			try := func(ctx context.Context, st agent.Stage) {
				tried++
				if err := st.Edit(ctx, coverAll); !errors.Is(err, agent.ErrBusy) {
					t.Errorf("an edit was let through: %v", err)
				}
			}
			k := talking(t, plays(asks("look")), withTools(t, looks(nil)), with(
				contribute(func(ctx context.Context, st agent.Stage) ([]workspace.Context, error) { try(ctx, st); return nil, nil }),
				request(func(ctx context.Context, st agent.Stage, c llm.Config) (llm.Config, error) {
					try(ctx, st)
					return c, nil
				}),
				before(func(ctx context.Context, st agent.Stage, _ tool.Tool, _ tool.Call) (string, error) {
					try(ctx, st)
					return "", nil
				}),
				after(func(ctx context.Context, st agent.Stage, _ tool.Call, out tool.Outcome) (tool.Outcome, inputs, error) {
					try(ctx, st)
					return out, nil, nil
				}),
				stopping(func(ctx context.Context, st agent.Stage) (inputs, error) { try(ctx, st); return nil, nil })))
			ended(t, k.say("Hi."), "completed")
			if tried != 7 {
				t.Errorf("%d hooks were asked", tried)
			}
			try(background, agent.Stage{})
		})
	})
	t.Run("what a hook lets enter must be a message that can enter", func(t *testing.T) {
		for name, m := range map[string]message.Message{"empty": {}, "of another role": {Role: message.Assistant, Content: said("x").Content},
			"no JSON": {Content: []message.Block{{Type: "x", Raw: []byte("{")}}}} {
			synctest.Test(t, func(t *testing.T) {
				k := talking(t, plays(), with(once(func(_ context.Context, in inputs) (inputs, bool, error) { return append(in, m), false, nil })))
				if out := k.say("Hi."); out.Reason.Kind != outcrop.TurnError {
					t.Errorf("%s: %+v", name, out)
				}
				k.waiting(nil, []string{"Hi."})
				k.calls(0)
			})
		}
	})
}

// gated is a talk whose first pre-step hook waits for its gate.
func gated(t *testing.T, m *model, then func(inputs) (inputs, bool)) (k *talk, gate chan struct{}) {
	gate = make(chan struct{})
	return talking(t, m, with(once(func(_ context.Context, in inputs) (inputs, bool, error) {
		<-gate
		in, rejected := then(in)
		return in, rejected, nil
	}))), gate
}

// coverAll replaces the whole surface by one message.
func coverAll(s *outcrop.Session) error {
	nodes := s.Surface().Nodes()
	_, err := s.AppendSurface(outcrop.UserMessage{Message: message.Message{ID: fmt.Sprintf("cover-%d", s.Len()), Role: message.User, Source: message.FromUser,
		Content: []message.Block{message.Text("everything so far")}}},
		outcrop.Replace(nodes[0], nodes[len(nodes)-1]), outcrop.SourcesOf(nodes...))
	return err
}

// The rows of the checklist about the other hooks of a step.
func TestChecklistHooks(t *testing.T) {
	row(t, "I2 one context spans all hooks and calls of a turn, and the next turn has another", func(t *testing.T) {
		var seen []context.Context
		saw := func(ctx context.Context) { seen = append(seen, ctx) }
		k := talking(t, plays(asks("look"), says("ok"), hangs()), withTools(t, looks(func(ctx context.Context, _ tool.Call) (tool.Result, error) {
			saw(ctx)
			return tool.Text("done"), nil
		})), with(
			preStep(func(ctx context.Context, _ agent.Stage, in inputs) (inputs, bool, error) {
				saw(ctx)
				return in, false, nil
			}),
			request(func(ctx context.Context, _ agent.Stage, c llm.Config) (llm.Config, error) { saw(ctx); return c, nil }),
			stopping(func(ctx context.Context, _ agent.Stage) (inputs, error) { saw(ctx); return nil, nil })))
		k.say("First.")
		first := len(seen)
		if first != 6 {
			t.Errorf("%d contexts were seen", first)
		}
		k.send("Second.")
		synctest.Wait()
		for _, ctx := range seen[first:] {
			if ctx.Err() != nil {
				t.Error("the second turn began with a context that had ended")
			}
		}
		k.cancel()
		k.end()
		for _, ctx := range seen[first:] {
			if ctx.Err() == nil || context.Cause(ctx) != (agent.Cause{Kind: agent.ByUser}) {
				t.Errorf("a hook of the cancelled turn has a context that ended with %v", context.Cause(ctx))
			}
		}
	})
	row(t, "L29 X12 X19 what a request hook chooses is sent and logged, and the agent's own config is as it was", func(t *testing.T) {
		temperature := 0.5
		k := talking(t, plays(), func(o *agent.Options) { o.Config.Stop, o.Window = []string{"END"}, 9000 },
			with(request(func(_ context.Context, st agent.Stage, c llm.Config) (llm.Config, error) {
				c.Stop[0] = "CHANGED"
				if st.Turn == 2 {
					c.Model, c.Temperature = "m2", &temperature
				}
				return c, nil
			})))
		for _, s := range []string{"1", "2", "3"} {
			k.say(s)
		}
		var got []string
		for _, r := range k.model.requests() {
			got = append(got, fmt.Sprint(r.Config.Model, r.Config.Stop, r.Config.Temperature != nil))
		}
		if s := strings.Join(got, " "); s != "m1[CHANGED] false m2[CHANGED] true m1[CHANGED] false" {
			t.Errorf("sent %s", s)
		}
		headers := eventsOf(k.live.s.Log(), outcrop.TypeRequestHeader)
		if len(headers) != 3 || !strings.HasSuffix(headers[1], `"reason":"change"}`) || !strings.Contains(headers[1], `"model":"m2","temperature":0.5`) {
			t.Errorf("headers %q", headers)
		}
		if got := fmt.Sprint(eventsOf(k.live.s.Log(), outcrop.TypeRequestContext)); got != `[{"provider":"fake","model":"m1","contextWindow":9000} `+
			`{"provider":"fake","model":"m2"} {"provider":"fake","model":"m1","contextWindow":9000}]` {
			t.Errorf("contexts %s", got)
		}
		if a, b := eventsOf(k.live.s.Log(), outcrop.TypeAssistantMessage)[0], eventsOf(k.live.s.Log(), outcrop.TypeAssistantMessage)[1]; !strings.Contains(a, `"model":"m1"`) || !strings.Contains(b, `"model":"m2"`) {
			t.Errorf("replies are not said to be by who made them: %s %s", a, b)
		}
	})
	for name, c := range map[string]struct {
		hook request
		want string
	}{
		"E4 L46 a request hook that panics": {func(context.Context, agent.Stage, llm.Config) (llm.Config, error) { panic(map[string]int{"a": 1}) }, "error UNKNOWN hook request panicked: map[a:1]"},
		"E5 Q1 a request hook that fails with code": {func(context.Context, agent.Stage, llm.Config) (llm.Config, error) {
			return llm.Config{}, &message.Failure{Code: "QUOTA", Message: "all gone"}
		}, "error QUOTA all gone"},
		"E16 an error whose text is a panic": {func(_ context.Context, _ agent.Stage, c llm.Config) (llm.Config, error) { return c, evilError{} }, "error UNKNOWN hook request panicked: the text is a trap"},
		"R12 a request hook that chooses no model": {func(context.Context, agent.Stage, llm.Config) (llm.Config, error) {
			return llm.Config{Provider: "fake"}, nil
		}, "error UNKNOWN a request hook chose no model"},
		"X10 a request hook that chooses a provider that is not there": {func(_ context.Context, _ agent.Stage, c llm.Config) (llm.Config, error) {
			c.Provider = "other"
			return c, nil
		},
			`error UNKNOWN a request hook chose the provider "other", the agent has "fake": SetModel changes it`},
	} {
		row(t, name+" ends the turn, and nobody is asked to recover", func(t *testing.T) {
			k := talking(t, plays(), with(c.hook, onError(func(context.Context, agent.Stage, *message.Failure) (bool, error) {
				t.Error("recovery was asked")
				return true, nil
			})))
			ended(t, k.say("Hi."), c.want)
			k.calls(0)
			if n := len(eventsOf(k.live.s.Log(), outcrop.TypeRequestHeader)); n != 0 {
				t.Errorf("%d headers", n)
			}
		})
	}
	row(t, "X13 what is injected while a request is decided enters at the next step", func(t *testing.T) {
		var k *talk
		k = talking(t, plays(), with(request(func(_ context.Context, st agent.Stage, c llm.Config) (llm.Config, error) {
			if st.Step == 1 {
				k.inject("Late.")
			}
			return c, nil
		})))
		k.say("Hi.")
		k.sends(1, "Hi.")
		k.sends(2, "Hi.", "ok", "Late.")
	})
	row(t, "Q2 recovery sees each failed attempt of the step", func(t *testing.T) {
		var got []string
		k := talking(t, plays(fails("AUTH"), fails("QUOTA")), with(
			onError(func(_ context.Context, st agent.Stage, f *message.Failure) (bool, error) {
				got = append(got, fmt.Sprint(st.Turn, st.Step, st.Attempt, f.Code))
				f.Code = "CHANGED"
				return false, nil
			}),
			onError(func(context.Context, agent.Stage, *message.Failure) (bool, error) { return true, nil })))
		ended(t, k.say("Hi."), "completed")
		if s := strings.Join(got, ", "); s != "1 1 1AUTH, 1 1 2QUOTA" {
			t.Errorf("recovery saw %s", s)
		}
		k.calls(3)
		k.logs("+turn Hi.", "turn 1", "claim turn 1", "step 1", "user Hi.", "says ok", "end of step", "end of turn: completed")
	})
	row(t, "E15 recovery that does not want it again: the failure stands", func(t *testing.T) {
		asked := 0
		k := talking(t, plays(fails("AUTH")), with(onError(func(context.Context, agent.Stage, *message.Failure) (bool, error) {
			asked++
			return false, nil
		})))
		ended(t, k.say("Hi."), "error AUTH no: AUTH")
		if k.calls(1); asked != 1 {
			t.Errorf("asked %d times", asked)
		}
	})
	row(t, "Q4 recovery that fails: its own error ends the turn", func(t *testing.T) {
		k := talking(t, plays(fails("AUTH")), with(onError(func(context.Context, agent.Stage, *message.Failure) (bool, error) {
			return true, errors.New("recovery is broken")
		})))
		ended(t, k.say("Hi."), "error UNKNOWN recovery is broken")
		k.calls(1)
	})
	t.Run("recovery cannot have the same request sent for ever", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			k := talking(t, plays(fails("AUTH"), fails("AUTH"), fails("AUTH"), fails("AUTH"), fails("AUTH")),
				with(onError(func(context.Context, agent.Stage, *message.Failure) (bool, error) { return true, nil })))
			ended(t, k.say("Hi."), "error AUTH no: AUTH")
			k.calls(3)
		})
	})
	t.Run("nor another one for ever", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var answers []answer
			for range 50 {
				answers = append(answers, fails(message.CodeContextWindow))
			}
			k := talking(t, plays(answers...), with(onError(func(ctx context.Context, st agent.Stage, _ *message.Failure) (bool, error) {
				return true, st.Edit(ctx, coverAll)
			})))
			ended(t, k.say("Hi."), "error CONTEXT_WINDOW_EXCEEDED no: CONTEXT_WINDOW_EXCEEDED")
			k.calls(11)
		})
	})
	row(t, "L15 a context that recovery took off the surface is told again inside the step", func(t *testing.T) {
		k := talking(t, plays(fails(message.CodeContextWindow)), func(o *agent.Options) {
			o.Contexts = func(context.Context) []workspace.Context {
				return []workspace.Context{{Name: "runtime", Text: "It is monday."}}
			}
		}, with(onError(func(ctx context.Context, st agent.Stage, _ *message.Failure) (bool, error) {
			return true, st.Edit(ctx, coverAll)
		})))
		ended(t, k.say("Hi."), "completed")
		k.sends(1, "Hi.", "It is monday.")
		k.sends(2, "everything so far", "It is monday.")
		k.logs("+turn Hi.", "turn 1", "claim turn 1", "step 1", "user Hi.", "context runtime: It is monday.", "user everything so far",
			"context runtime: It is monday.", "says ok", "end of step", "end of turn: completed")
	})
	row(t, "R7 L26 what a stopping hook returns enters a further step of the turn", func(t *testing.T) {
		k := talking(t, plays(says("one"), says("two"), says("three")), with(stopping(func(_ context.Context, st agent.Stage) (inputs, error) {
			if st.Step == 3 {
				return nil, nil
			}
			return inputs{said(fmt.Sprint("And ", st.Step, "?"))}, nil
		})))
		ended(t, k.say("Hi."), "completed")
		k.calls(3)
		k.sends(3, "Hi.", "one", "And 1?", "two", "And 2?")
		k.logs("+turn Hi.", "turn 1", "claim turn 1", "step 1", "user Hi.", "says one", "end of step",
			"+step And 1?", "claim step 1", "step 2", "user And 1?", "says two", "end of step",
			"+step And 2?", "claim step 1", "step 3", "user And 2?", "says three", "end of step", "end of turn: completed")
	})
	row(t, "R8 a stopping hook that fails ends the turn as an error, and the next turn works", func(t *testing.T) {
		fail := errors.New("cannot stop")
		k := talking(t, plays(), with(stopping(func(context.Context, agent.Stage) (inputs, error) { return nil, fail })))
		ended(t, k.say("Hi."), "error UNKNOWN cannot stop")
		fail = nil
		ended(t, k.say("Hi again."), "completed")
	})
	row(t, "L35 L36 a further step after a cut-off reply: the turn is cut off all the same, the next one is not", func(t *testing.T) {
		asked := false
		k := talking(t, plays(streams(delta("Part one"), finish(message.MaxTokens)), says("Part two.")), with(stopping(func(context.Context, agent.Stage) (inputs, error) {
			if asked {
				return nil, nil
			}
			asked = true
			return inputs{said("Go on.")}, nil
		})))
		ended(t, k.say("Hi."), "max-tokens")
		k.sends(2, "Hi.", "Part one", "Go on.")
		ended(t, k.say("Again."), "completed")
	})
}

type evilError struct{}

func (evilError) Error() string { panic("the text is a trap") }
