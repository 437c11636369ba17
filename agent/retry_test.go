package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/agent"
	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/message"
	"github.com/outcrop-dev/outcrop/tool"
)

// failing makes n scripted replies that fail.
func failing(n int, code string) []string {
	var out []string
	for range n {
		out = append(out, fmt.Sprintf(`{"error":{"code":%q,"message":"no"}}`, code))
	}
	return out
}

func delays(log outcrop.Log) (out []int) {
	for _, d := range eventsOf(log, outcrop.TypeLLMRetry) {
		var r struct{ DelayMs int }
		if err := json.Unmarshal([]byte(d), &r); err != nil {
			panic(err)
		}
		out = append(out, r.DelayMs)
	}
	return out
}

func TestRetriesBackOffAndGiveUp(t *testing.T) {
	for _, c := range []struct {
		name    string
		replies []string
		rand    float64
		want    []int
		kind    outcrop.ReasonKind
		took    time.Duration
	}{
		{"doubling without jitter", append(failing(3, "SERVER"), `{"text":"ok"}`), 0.5, []int{500, 1000, 2000}, outcrop.Completed, 3500 * time.Millisecond},
		{"jitter takes a tenth off at most", append(failing(2, "TIMEOUT"), `{"text":"ok"}`), 0, []int{450, 900}, outcrop.Completed, 1350 * time.Millisecond},
		{"five retries, then the failure stands", failing(9, "TRANSPORT"), 0.5, []int{500, 1000, 2000, 4000, 8000}, outcrop.TurnError, 15500 * time.Millisecond},
		{"an empty response is worth another try", append(failing(1, "EMPTY_RESPONSE"), `{"text":"ok"}`), 0.5, []int{500}, outcrop.Completed, 500 * time.Millisecond},
		{"other codes are not", failing(2, "INVALID_REQUEST"), 0.5, nil, outcrop.TurnError, 0},
		{"what the provider asks for is kept to", []string{`{"error":{"code":"RATE_LIMIT","message":"no","retryAfterMs":9999}}`, `{"text":"ok"}`}, 0.9, []int{9999}, outcrop.Completed, 9999 * time.Millisecond},
		{"unless it is too long", []string{`{"error":{"code":"RATE_LIMIT","message":"no","retryAfterMs":10001}}`, `{"text":"ok"}`}, 0.5, nil, outcrop.TurnError, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				live := newLive(t, ownHeader(), outcrop.Options{})
				a := start(t, live, scripted(t, c.replies...), func(o *agent.Options) { o.Rand = func() float64 { return c.rand } })
				begun := time.Now()
				out := ask(t, a, "Hi.")
				if got := time.Since(begun); got != c.took {
					t.Errorf("took %v, want %v", got, c.took)
				}
				if out.Reason.Kind != c.kind {
					t.Errorf("outcome %+v", out)
				}
				if diff := cmp.Diff(c.want, delays(live.s.Log())); diff != "" {
					t.Errorf("delays (-want +got): %s", diff)
				}
				if got := len(eventsOf(live.s.Log(), outcrop.TypeLLMRetryStarted)); got != len(c.want) {
					t.Errorf("%d retries were started, %d announced", got, len(c.want))
				}
				check(t, live.s.Log())
			})
		})
	}
}

func TestTheWaitNeverGoesBeyondItsLongest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		live := newLive(t, ownHeader(), outcrop.Options{})
		a := start(t, live, scripted(t, append(failing(8, "SERVER"), `{"text":"ok"}`)...), func(o *agent.Options) {
			o.Retry.Max = 8
			o.Rand = func() float64 { return 0.999 }
		})
		ask(t, a, "Hi.")
		got := delays(live.s.Log())
		if len(got) != 8 || got[0] != 550 || got[7] != 10000 || got[5] != 10000 {
			t.Errorf("delays %v", got)
		}
	})
}

func TestCancelDuringTheWaitStartsNoAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		live := newLive(t, ownHeader(), outcrop.Options{})
		a := start(t, live, scripted(t, `{"text":"Half an ans","error":{"code":"SERVER","message":"no"},"after":1}`, `{"text":"ok"}`))
		send(t, a, "Hi.")
		synctest.Wait()
		if st := a.Status(); st.Phase != agent.Retrying {
			t.Errorf("status %+v", st)
		}
		if _, err := a.Cancel(background, agent.Cause{Kind: agent.ByUser}); err != nil {
			t.Fatal(err)
		}
		out := wait(t, a)
		if out.Reason.Kind != outcrop.TurnAborted {
			t.Errorf("outcome %+v", out)
		}
		log := live.s.Log()
		if len(eventsOf(log, outcrop.TypeLLMRetry)) != 1 || len(eventsOf(log, outcrop.TypeLLMRetryStarted)) != 0 || len(eventsOf(log, outcrop.TypeAssistantMessage)) != 0 {
			t.Errorf("log:\n%s", text(log))
		}
		check(t, log)
	})
}

func TestAStreamThatFallsSilentTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		live := newLive(t, ownHeader(), outcrop.Options{})
		release := make(chan struct{})
		defer close(release)
		n := 0
		deaf := streamFunc(func(_ context.Context, _ llm.Request, yield func(message.Chunk, error) bool) {
			if n++; n == 1 {
				yield(message.Chunk{Type: message.TextDelta, Text: "He"}, nil)
				<-release // does not listen to its context either
				return
			}
			yield(message.Chunk{Type: message.TextDelta, Text: "Hello."}, nil)
		})
		a := start(t, live, deaf)
		begun := time.Now()
		if out := ask(t, a, "Hi."); out.Reason.Kind != outcrop.Completed {
			t.Errorf("outcome %+v", out)
		}
		if got := time.Since(begun); got != 300*time.Second+500*time.Millisecond {
			t.Errorf("took %v", got)
		}
		if !strings.Contains(text(live.s.Log()), `"code":"TIMEOUT"`) {
			t.Error("the log does not say that it timed out")
		}
		check(t, live.s.Log())
	})
}

func TestAToolThatIgnoresItsCancelIsLeftBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		live := newLive(t, ownHeader(), outcrop.Options{})
		release := make(chan struct{})
		deaf := &fakeTool{name: "deaf", class: tool.Read, run: func(context.Context, tool.Call) (tool.Result, error) {
			<-release
			return tool.Text("too late"), nil
		}}
		a := start(t, live, scripted(t, `{"tools":[{"name":"deaf","args":{}}]}`, `{"text":"Next."}`), withTools(t, deaf))
		send(t, a, "Go.")
		synctest.Wait()
		begun := time.Now()
		if _, err := a.Cancel(background, agent.Cause{Kind: agent.ByUser}); err != nil {
			t.Fatal(err)
		}
		if st := a.Status(); !st.Canceled {
			t.Errorf("status %+v", st)
		}
		wait(t, a)
		if got := time.Since(begun); got != 5*time.Second {
			t.Errorf("waited %v", got)
		}
		n := live.s.Len()
		close(release)
		synctest.Wait()
		if live.s.Len() != n {
			t.Error("the late result changed the log")
		}
		if got := eventsOf(live.s.Log(), outcrop.TypeToolResult); len(got) != 1 || !strings.Contains(got[0], `"code":"ABORTED"`) {
			t.Errorf("results %v", got)
		}
		if out := ask(t, a, "And now?"); out.Reason.Kind != outcrop.Completed {
			t.Errorf("next turn: %+v", out)
		}
		check(t, live.s.Log())
	})
}
