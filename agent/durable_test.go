package agent_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/agent"
	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/message"
	"github.com/outcrop-dev/outcrop/tool"
)

// Every effect sees a log in which all that led to it is durable.
func TestNothingHappensBeforeItsRecordIsDurable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		live := newLive(t, ownHeader(), outcrop.Options{})
		behind := func(what string, marker outcrop.Type) {
			log := live.s.Log()
			last := -1
			for ev := range outcrop.Events(log, 0) {
				if ev.Type == marker {
					last = int(ev.Seq)
				}
			}
			if live.Durable() <= last || last < 0 {
				t.Errorf("%s: %s is event %d, durable are %d", what, marker, last, live.Durable())
			}
		}
		model := scripted(t, `{"tools":[{"name":"edit","args":{}},{"name":"look","args":{}}]}`, `{"text":"ok"}`)
		calls := 0
		p := streamFunc(func(ctx context.Context, req llm.Request, yield func(message.Chunk, error) bool) {
			behind("call", outcrop.TypeUserMessage)
			behind("call", outcrop.TypeOutcropRequest)
			if calls++; calls == 2 {
				behind("second call", outcrop.TypeToolResult)
				behind("second call", outcrop.TypeStepEnd)
			}
			model.Stream(ctx, req)(yield)
		})
		run := func(_ context.Context, c tool.Call) (tool.Result, error) {
			behind(c.Name, outcrop.TypeAssistantMessage)
			behind(c.Name, outcrop.TypeToolCall)
			behind(c.Name, outcrop.TypeApprovalDecided)
			if c.Name == "look" {
				behind("the next tool", outcrop.TypeToolResult)
			}
			return tool.Text("ok"), nil
		}
		a := start(t, live, p, withTools(t, &fakeTool{name: "edit", class: tool.Edit, run: run}, &fakeTool{name: "look", class: tool.Read, run: run}),
			func(o *agent.Options) { o.Approver = always(agent.Answer{Verdict: agent.AllowOnce}, nil) })
		ask(t, a, "Go.")
		behind("idle", outcrop.TypeTurnEnd)
		if calls != 2 {
			t.Errorf("%d calls", calls)
		}
	})
}

func TestAFlushThatFailsStopsTheTurnBeforeTheEffect(t *testing.T) {
	full := errors.New("no space left on device")
	for _, c := range []struct {
		name          string
		marker        outcrop.Type // the first flush behind this event fails
		models, tools int
	}{
		{"before the model", outcrop.TypeOutcropRequest, 0, 0},
		{"before the tool", outcrop.TypeToolCall, 1, 0},
		{"before the model sees the results", outcrop.TypeToolResult, 1, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				live := newLive(t, ownHeader(), outcrop.Options{})
				live.fail = func(int) error {
					if len(eventsOf(live.s.Log(), c.marker)) > 0 {
						return full
					}
					return nil
				}
				models := 0
				var tools atomic.Int32
				model := scripted(t, `{"tools":[{"name":"look","args":{}},{"name":"look","args":{}}]}`, `{"text":"ok"}`)
				p := streamFunc(func(ctx context.Context, req llm.Request, yield func(message.Chunk, error) bool) {
					models++
					model.Stream(ctx, req)(yield)
				})
				a := start(t, live, p, withTools(t, &fakeTool{name: "look", class: tool.Read, parallel: true, run: func(context.Context, tool.Call) (tool.Result, error) {
					tools.Add(1)
					return tool.Text("ok"), nil
				}}))
				// The second of two parallel calls would be flushed too.
				if c.tools == 1 {
					live.fail = func(n int) error {
						if len(eventsOf(live.s.Log(), outcrop.TypeStepEnd)) > 0 {
							return full
						}
						return nil
					}
					c.tools = 2
				}
				out := ask(t, a, "Go.")
				if !errors.Is(out.Err, full) || out.Reason.Kind != outcrop.TurnError || !strings.Contains(out.Reason.Error.Message, "no space") {
					t.Errorf("outcome %+v", out)
				}
				if n := strings.Count(out.Err.Error(), "no space"); n != 1 {
					t.Errorf("the fault is told %d times: %v", n, out.Err)
				}
				if models != c.models || int(tools.Load()) != c.tools {
					t.Errorf("%d models and %d tools ran", models, tools.Load())
				}
				check(t, live.s.Log())
			})
		})
	}
}

func TestCancelAndCloseDoNotWaitForADiskThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		live := newLive(t, ownHeader(), outcrop.Options{})
		live.hang = true
		o := agent.Options{Live: live, Provider: scripted(t, `{"text":"ok"}`), Config: llm.Config{Model: "m1"}}
		a, err := agent.New(o)
		if err != nil {
			t.Fatal(err)
		}
		send(t, a, "Go.")
		synctest.Wait()
		ctx, cancel := context.WithCancel(context.Background())
		closed := make(chan error, 1)
		go func() { closed <- a.Close(ctx) }()
		synctest.Wait()
		cancel()
		if err := <-closed; !errors.Is(err, context.Canceled) {
			t.Errorf("close: %v", err)
		}
		synctest.Wait()
		check(t, live.s.Log())
		if _, err := a.Send(background, said("More.")); !errors.Is(err, agent.ErrClosed) {
			t.Errorf("send after close: %v", err)
		}
	})
}

func TestInputThatAVetoRefusesIsBlockedAndDoesNotComeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		live := newLive(t, ownHeader(), outcrop.Options{Vetoes: []func(outcrop.Event) error{func(ev outcrop.Event) error {
			if ev.Type == outcrop.TypeUserMessage && strings.Contains(string(ev.Data), "forbidden") {
				return errors.New("not here")
			}
			return nil
		}}})
		a := start(t, live, scripted(t, `{"text":"ok"}`))
		out := ask(t, a, "Something forbidden.")
		if out.Reason.Kind != outcrop.Blocked || !errors.Is(out.Err, outcrop.ErrVetoed) {
			t.Errorf("outcome %+v", out)
		}
		if out := ask(t, a, "Something else."); out.Reason.Kind != outcrop.Completed || out.Turn != 2 {
			t.Errorf("outcome %+v", out)
		}
		golden(t, "blocked", live.s.Log())
	})
}

func TestASessionThatFailedTakesNothingMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		live := newLive(t, ownHeader(), outcrop.Options{})
		a := start(t, live, scripted(t, `{"text":"ok","cut":"hang","after":1}`))
		send(t, a, "Go.")
		synctest.Wait()
		live.s.Fail(errors.New("disk gone"))
		if _, err := a.Cancel(background, agent.Cause{Kind: agent.ByUser}); err != nil {
			t.Errorf("cancel with an empty inbox: %v", err)
		}
		out := wait(t, a)
		if !errors.Is(out.Err, outcrop.ErrFailed) {
			t.Errorf("outcome %+v", out)
		}
		if _, err := a.Send(background, said("More.")); !errors.Is(err, outcrop.ErrFailed) {
			t.Errorf("send: %v", err)
		}
		if _, err := a.Wake(background); !errors.Is(err, outcrop.ErrFailed) {
			t.Errorf("wake: %v", err)
		}
	})
}
