package agent_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/agent"
	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/message"
	"github.com/outcrop-dev/outcrop/tool"
	"github.com/outcrop-dev/outcrop/workspace"
)

var background = context.Background()

func TestPlainAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		live := newLive(t, ownHeader(), outcrop.Options{})
		a := start(t, live, scripted(t, `{"reasoning":"Easy.","text":"Lima."}`, `{"text":"Bogotá."}`))
		out := ask(t, a, "Capital of Peru?")
		if out.Reason.Kind != outcrop.Completed || out.Err != nil || out.Turn != 1 {
			t.Errorf("outcome %+v", out)
		}
		ask(t, a, "And of Colombia?")
		golden(t, "plain", live.s.Log())
		if live.Durable() != live.s.Len() {
			t.Errorf("durable up to %d of %d events when idle", live.Durable(), live.s.Len())
		}
	})
}

func TestSteeringEntersAtTheStepAfterTheToolsThatRan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		live := newLive(t, ownHeader(), outcrop.Options{})
		release := make(chan struct{})
		weather := &fakeTool{name: "weather", class: tool.Read, parallel: true,
			run: func(_ context.Context, call tool.Call) (tool.Result, error) {
				<-release
				return tool.Text("weather for " + string(call.Arguments)), nil
			}}
		a := start(t, live, scripted(t,
			`{"text":"Looking it up.","tools":[{"name":"weather","args":{"x":"Oslo"}},{"name":"weather","args":{"x":"Rome"}}]}`,
			`{"text":"Oslo 37F, Rome 71F.","expect":{"contains":"Use Fahrenheit","messages":5}}`), withTools(t, weather))
		send(t, a, "Compare the weather in Oslo and Rome.")
		synctest.Wait()
		if st := a.Status(); st.Phase != agent.Running || st.Tool != "weather" || st.Step != 1 {
			t.Errorf("status while the tools run: %+v", st)
		}
		if _, err := a.Steer(background, said("Use Fahrenheit please.")); err != nil {
			t.Fatal(err)
		}
		step, turn, err := a.Pending(background)
		if err != nil || len(step) != 1 || len(turn) != 0 {
			t.Errorf("pending: %v %v %v", step, turn, err)
		}
		close(release)
		if out := wait(t, a); out.Reason.Kind != outcrop.Completed {
			t.Errorf("outcome %+v", out)
		}
		golden(t, "steer", live.s.Log())
	})
}

func TestMaxTokensEndsTheTurnAndDropsCutCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		live := newLive(t, ownHeader(), outcrop.Options{})
		a := start(t, live, scripted(t,
			`{"tools":[{"name":"save","raw":"{\"ci"}],"finish":"max-tokens"}`,
			`{"blocks":[],"finish":"stop"}`,
			`{"chunks":[]}`), withTools(t, &fakeTool{name: "save", class: tool.Read}))
		if out := ask(t, a, "Write it all down and save it."); out.Reason.Kind != outcrop.MaxTokens {
			t.Errorf("turn 1: %+v", out)
		}
		if out := ask(t, a, "Anything?"); out.Reason.Kind != outcrop.Completed {
			t.Errorf("turn 2: %+v", out)
		}
		if out := ask(t, a, "Still there?"); out.Reason.Kind != outcrop.Completed {
			t.Errorf("turn 3: %+v", out)
		}
		golden(t, "maxtokens", live.s.Log())
	})
}

// How a turn ends and whether it goes on are two things: a reply that was cut
// off makes the turn end as max-tokens, and still the model sees the results of
// tools that it asked for later.
func TestMaxTokensSticksAndSilencesNoResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		live := newLive(t, ownHeader(), outcrop.Options{})
		var a *agent.Agent
		n := 0
		model := scripted(t,
			`{"text":"Part one","finish":"max-tokens"}`,
			`{"tools":[{"name":"look","args":{}}]}`,
			`{"text":"It says done.","expect":{"contains":"done"}}`)
		a = start(t, live, streamFunc(func(ctx context.Context, req llm.Request, yield func(message.Chunk, error) bool) {
			n++
			if n == 1 {
				if _, err := a.Steer(ctx, said("Go on.")); err != nil {
					t.Error(err)
				}
			}
			model.Stream(ctx, req)(yield)
		}), withTools(t, &fakeTool{name: "look", class: tool.Read}))
		if out := ask(t, a, "Go."); out.Reason.Kind != outcrop.MaxTokens || n != 3 {
			t.Errorf("%d calls, outcome %+v", n, out)
		}
		check(t, live.s.Log())
	})
}

func TestCancelKeepsWhatWasVisibleAndDropsWhatIsPending(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		live := newLive(t, ownHeader(), outcrop.Options{})
		a := start(t, live, scripted(t, `{"text":"Once upon a time","cut":"hang","after":1}`, `{"text":"Hello."}`))
		send(t, a, "Tell a long story.")
		synctest.Wait()
		send(t, a, "And a second one.")
		dropped, err := a.Cancel(background, agent.Cause{Kind: agent.ByUser})
		if err != nil || len(dropped) != 1 || message.PlainText(dropped[0].Content) != "And a second one." {
			t.Errorf("dropped %v, %v", dropped, err)
		}
		out := wait(t, a)
		if out.Reason.Kind != outcrop.TurnAborted || out.Reason.Abort.Kind != "user" {
			t.Errorf("outcome %+v", out)
		}
		ask(t, a, "Just say hello.")
		golden(t, "cancel_stream", live.s.Log())
	})
}

func TestCancelWhileTheFirstOfTwoExclusiveToolsRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		live := newLive(t, ownHeader(), outcrop.Options{})
		slow := &fakeTool{name: "slow", class: tool.Read, run: func(ctx context.Context, _ tool.Call) (tool.Result, error) {
			<-ctx.Done()
			return tool.Result{}, ctx.Err()
		}}
		a := start(t, live, scripted(t,
			`{"tools":[{"name":"slow","args":{"x":"Oslo"}},{"name":"slow","args":{"x":"Rome"}}]}`), withTools(t, slow))
		send(t, a, "Check both cities.")
		synctest.Wait()
		if _, err := a.Cancel(background, agent.Cause{Kind: agent.ByParent}); err != nil {
			t.Fatal(err)
		}
		wait(t, a)
		golden(t, "cancel_tool", live.s.Log())
	})
}

func TestProviderErrorsAreRetriedInsideTheStepOrEndTheTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		live := newLive(t, ownHeader(), outcrop.Options{})
		a := start(t, live, scripted(t,
			`{"text":"Hello, I","error":{"code":"RATE_LIMIT","message":"server busy","status":429,"retryAfterMs":250},"after":1}`,
			`{"text":"Hello."}`,
			`{"error":{"code":"AUTH","message":"key rejected","status":401}}`))
		if out := ask(t, a, "Hi."); out.Reason.Kind != outcrop.Completed {
			t.Errorf("turn 1: %+v", out)
		}
		out := ask(t, a, "Again.")
		if out.Reason.Kind != outcrop.TurnError || out.Reason.Error.Code != "AUTH" {
			t.Errorf("turn 2: %+v", out)
		}
		golden(t, "errors", live.s.Log())
	})
}

func TestResumeAfterACrashInATool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		live := newLive(t, ownHeader(), outcrop.Options{})
		ran := 0
		weather := &fakeTool{name: "weather", class: tool.Read, run: func(context.Context, tool.Call) (tool.Result, error) {
			ran++
			return tool.Text("rain"), nil
		}}
		a := start(t, live, scripted(t,
			`{"tools":[{"name":"weather","args":{"x":"Oslo"}},{"name":"weather","args":{"x":"Rome"}}]}`, `{"text":"Rain."}`), withTools(t, weather))
		ask(t, a, "Check both cities.")
		crash := 0
		for ev := range outcrop.Events(live.s.Log(), 0) {
			if ev.Type == outcrop.TypeToolCall {
				crash = int(ev.Seq) + 1
				break
			}
		}
		ran = 0
		again := reopened(t, live.s.Header(), live.s.Log(), crash)
		b := start(t, again, scripted(t, `{"text":"Shall I retry?","expect":{"messages":5}}`), withTools(t, weather))
		if out := ask(t, b, "Continue."); out.Reason.Kind != outcrop.Completed {
			t.Errorf("outcome %+v", out)
		}
		if ran != 0 {
			t.Errorf("%d tools ran by themselves after the crash", ran)
		}
		golden(t, "resume", again.s.Log())
	})
}

func TestOddCallsAreAnsweredAndTheTurnGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		live := newLive(t, ownHeader(), outcrop.Options{})
		bad := &fakeTool{name: "bad", class: tool.Read, parallel: true, run: func(_ context.Context, c tool.Call) (tool.Result, error) {
			if string(c.Arguments) == `{"x":"panic"}` {
				panic("no such luck")
			}
			return tool.Result{}, errors.New("disk on fire")
		}}
		a := start(t, live, scripted(t,
			`{"tools":[{"name":"nope","args":{},"id":"a"},{"name":"bad","args":{"y":1},"id":"a"},{"name":"bad","raw":"{\"x\":\"cut","id":"b"},{"name":"bad","raw":"[]","id":"c"},{"name":"bad","args":{"x":"panic"},"id":"d"},{"name":"bad","raw":"","id":"a"}]}`,
			`{"text":"That went badly."}`), withTools(t, bad))
		if out := ask(t, a, "Try everything."); out.Reason.Kind != outcrop.Completed {
			t.Errorf("outcome %+v", out)
		}
		golden(t, "odd_calls", live.s.Log())
	})
}

func TestContextIsAppendedWhenItIsDue(t *testing.T) {
	for _, c := range []struct {
		name   string
		header outcrop.Header
	}{
		{"context_own", ownHeader()},
		{"context_compatible", compatibleHeader()},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				live := newLive(t, c.header, outcrop.Options{})
				day := "monday"
				a := start(t, live, scripted(t, `{"text":"One."}`, `{"text":"Two."}`, `{"text":"Three."}`), func(o *agent.Options) {
					o.Contexts = func(context.Context) []workspace.Context {
						return []workspace.Context{{Name: "runtime", Text: "It is " + day + "."}}
					}
				})
				ask(t, a, "First.")
				ask(t, a, "Second: nothing changed.")
				day = "tuesday"
				ask(t, a, "Third.")
				golden(t, c.name, live.s.Log())
			})
		})
	}
}

func TestStepLimitEndsTheTurnAfterAllResults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		live := newLive(t, ownHeader(), outcrop.Options{})
		a := start(t, live, scripted(t, `{"script":1,"end":"last"}`, `{"tools":[{"name":"look","args":{}}]}`),
			withTools(t, &fakeTool{name: "look", class: tool.Read}),
			func(o *agent.Options) { o.Limits.Steps = 2 })
		out := ask(t, a, "Look for ever.")
		if out.Reason.Kind != outcrop.TurnAborted || out.Reason.Abort != (outcrop.AbortReason{Kind: "hook", Reason: "step limit 2 reached"}) {
			t.Errorf("outcome %+v", out)
		}
		if got := len(eventsOf(live.s.Log(), outcrop.TypeToolResult)); got != 2 {
			t.Errorf("%d results", got)
		}
		check(t, live.s.Log())
	})
}
