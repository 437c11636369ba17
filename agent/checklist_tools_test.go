package agent_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/agent"
	"github.com/outcrop-dev/outcrop/message"
	"github.com/outcrop-dev/outcrop/tool"
)

// workshop has a tool that may run beside others (look) and one that may not
// (alone). A call runs until it is let go, by its id.
type workshop struct {
	mu      sync.Mutex
	started []string
	gates   map[string]chan struct{}
	running int
	most    int
	change  func(call tool.Call) (tool.Result, error)
}

func newWorkshop() *workshop { return &workshop{gates: map[string]chan struct{}{}} }

func (w *workshop) gate(id string) chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.gates[id] == nil {
		w.gates[id] = make(chan struct{})
	}
	return w.gates[id]
}

func (w *workshop) run(ctx context.Context, call tool.Call) (tool.Result, error) {
	gate := w.gate(call.ID)
	w.mu.Lock()
	w.started = append(w.started, call.ID)
	w.running++
	w.most = max(w.most, w.running)
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		w.running--
		w.mu.Unlock()
	}()
	select {
	case <-gate:
	case <-ctx.Done():
		return tool.Result{}, ctx.Err()
	}
	if w.change != nil {
		return w.change(call)
	}
	return tool.Text("from " + call.ID), nil
}

func (w *workshop) tools(t *testing.T) func(*agent.Options) {
	return withTools(t, &fakeTool{name: "look", class: tool.Read, parallel: true, run: w.run}, &fakeTool{name: "alone", class: tool.Read, run: w.run})
}

// running compares the calls that have started so far.
func (w *workshop) began(t *testing.T, want string) {
	t.Helper()
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	// They were started in the model's order, which the log shows; which of two
	// goroutines comes first is nobody's business.
	inOrder := slices.SortedFunc(slices.Values(w.started), func(a, b string) int {
		return cmp.Or(len(a)-len(b), strings.Compare(a, b))
	})
	if got := strings.Join(inOrder, " "); got != want {
		t.Errorf("started %q, want %q", got, want)
	}
}

// lets lets calls end, one after the other.
func (w *workshop) lets(ids ...string) {
	for _, id := range ids {
		close(w.gate(id))
		synctest.Wait()
	}
}

func limit(n int) func(*agent.Options) {
	return func(o *agent.Options) { o.Limits.Parallel = n }
}

// toolLines are the lines of an outline between a reply and the end of its step.
func (k *talk) toolLines(want ...string) {
	k.t.Helper()
	var got []string
	for _, line := range outline(k.live.s.Log()) {
		if strings.HasPrefix(line, "call ") || strings.HasPrefix(line, "result ") || strings.HasPrefix(line, "+step") {
			got = append(got, line)
		}
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		k.t.Errorf("tools (-want +got):\n%s", diff)
	}
}

// The rows of the checklist about running calls.
func TestChecklistTools(t *testing.T) {
	row(t, "T1 calls that may run in parallel all start before any ends", func(t *testing.T) {
		w := newWorkshop()
		k := talking(t, plays(asks("look", "look", "look")), w.tools(t))
		k.send("Go.")
		w.began(t, "c1 c2 c3")
		w.lets("c1", "c2", "c3")
		ended(t, k.end(), "completed")
	})
	row(t, "T2 a call that runs alone is a barrier in both directions", func(t *testing.T) {
		w := newWorkshop()
		k := talking(t, plays(asks("look", "alone", "look")), w.tools(t))
		k.send("Go.")
		w.began(t, "c1")
		w.lets("c1")
		w.began(t, "c1 c2")
		w.lets("c2")
		w.began(t, "c1 c2 c3")
		w.lets("c3")
		k.end()
		k.toolLines("call c1", "result c1 from c1", "call c2", "result c2 from c2", "call c3", "result c3 from c3")
	})
	row(t, "T5 T6 results are committed and sent in the model's order", func(t *testing.T) {
		w := newWorkshop()
		k := talking(t, plays(asks("look", "look")), w.tools(t))
		k.send("Go.")
		synctest.Wait()
		w.lets("c2")
		k.toolLines("call c1", "call c2")
		w.lets("c1")
		k.end()
		k.toolLines("call c1", "call c2", "result c1 from c1", "result c2 from c2")
		k.sends(2, "Go.", "call c1 | call c2", "result c1 from c1", "result c2 from c2")
	})
	row(t, "T7 T8 T9 no limit that makes sense is ten", func(t *testing.T) {
		w := newWorkshop()
		k := talking(t, plays(asks(strings.Split(strings.Repeat("look,", 11)+"look", ",")...)), w.tools(t), limit(-3))
		k.send("Go.")
		w.began(t, "c1 c2 c3 c4 c5 c6 c7 c8 c9 c10")
		for i := range 12 {
			w.lets(fmt.Sprint("c", i+1))
		}
		if k.end(); w.most != 10 {
			t.Errorf("%d ran at once", w.most)
		}
	})
	row(t, "T10 T12 the pool rolls: one ends, the next starts", func(t *testing.T) {
		w := newWorkshop()
		k := talking(t, plays(asks("look", "look", "look", "look")), w.tools(t), limit(2))
		k.send("Go.")
		w.began(t, "c1 c2")
		w.lets("c1")
		w.began(t, "c1 c2 c3")
		w.lets("c3")
		w.began(t, "c1 c2 c3 c4")
		w.lets("c2", "c4")
		k.end()
		k.toolLines("call c1", "call c2", "result c1 from c1", "call c3", "call c4", "result c2 from c2", "result c3 from c3", "result c4 from c4")
	})
	row(t, "T11 a pool of one is one after the other", func(t *testing.T) {
		w := newWorkshop()
		k := talking(t, plays(asks("look", "look")), w.tools(t), limit(1))
		k.send("Go.")
		w.began(t, "c1")
		w.lets("c1", "c2")
		k.end()
		k.toolLines("call c1", "result c1 from c1", "call c2", "result c2 from c2")
	})
	row(t, "T13 T14 N18 N19 L24 hooks see calls and outcomes in the model's order, what they add enters behind all results", func(t *testing.T) {
		w := newWorkshop()
		var seen []string
		k := talking(t, plays(asks("look", "look", "look")), w.tools(t), with(
			before(func(_ context.Context, _ agent.Stage, tl tool.Tool, call tool.Call) (string, error) {
				seen = append(seen, "before "+tl.Name()+" "+call.ID)
				return "", nil
			}),
			after(func(_ context.Context, st agent.Stage, call tool.Call, out tool.Outcome) (tool.Outcome, inputs, error) {
				seen = append(seen, fmt.Sprint("after ", call.ID, " ", message.PlainText(out.Content), " in step ", st.Step))
				return out, inputs{said("about " + call.ID), said("more about " + call.ID)}, nil
			})))
		k.send("Go.")
		synctest.Wait()
		w.lets("c3", "c2", "c1")
		k.end()
		want := []string{"before look c1", "before look c2", "before look c3", "after c1 from c1 in step 1", "after c2 from c2 in step 1", "after c3 from c3 in step 1"}
		if diff := gocmp.Diff(want, seen); diff != "" {
			t.Errorf("hooks (-want +got): %s", diff)
		}
		k.sends(2, "Go.", "call c1 | call c2 | call c3", "result c1 from c1", "result c2 from c2", "result c3 from c3",
			"about c1", "more about c1", "about c2", "more about c2", "about c3", "more about c3")
		k.toolLines("call c1", "call c2", "call c3", "result c1 from c1", "+step about c1", "+step more about c1", "result c2 from c2",
			"+step about c2", "+step more about c2", "result c3 from c3", "+step about c3", "+step more about c3")
	})
	row(t, "N20 a call that a hook denies is answered with the reason and does not run", func(t *testing.T) {
		w := newWorkshop()
		k := talking(t, plays(asks("look", "look")), w.tools(t), with(before(func(_ context.Context, _ agent.Stage, _ tool.Tool, call tool.Call) (string, error) {
			if call.ID == "c1" {
				return "not on a sunday\xff", nil
			}
			return "", nil
		})))
		k.send("Go.")
		w.began(t, "c2")
		w.lets("c2")
		ended(t, k.end(), "completed")
		k.sends(2, "Go.", "call c1 | call c2", "result c1 Error: not on a sunday\uFFFD", "result c2 from c2")
	})
	row(t, "T15 one call runs, one is denied, a hook fails at the third: three results in order, the turn ends as an error", func(t *testing.T) {
		w := newWorkshop()
		var seen []string
		k := talking(t, plays(asks("look", "look", "look", "look")), w.tools(t), with(
			before(func(_ context.Context, _ agent.Stage, _ tool.Tool, call tool.Call) (string, error) {
				switch call.ID {
				case "c2":
					return "no", nil
				case "c3":
					return "", errors.New("the guard is gone")
				}
				return "", nil
			}),
			after(func(_ context.Context, _ agent.Stage, call tool.Call, out tool.Outcome) (tool.Outcome, inputs, error) {
				seen = append(seen, call.ID)
				return out, nil, nil
			})))
		k.send("Go.")
		ended(t, k.end(), "error UNKNOWN the guard is gone")
		w.began(t, "c1")
		if s := strings.Join(seen, " "); s != "c1" {
			t.Errorf("outcomes of %q were seen", s)
		}
		k.toolLines("call c1", "call c2", "call c3", "result c1 ABORTED", "result c2 DENIED", "result c3 NOT_RUN", "call c4", "result c4 NOT_RUN")
	})
	row(t, "T17 a cancel while a hook is asked about the first call: nothing starts", func(t *testing.T) {
		w := newWorkshop()
		var k *talk
		k = talking(t, plays(asks("look", "look")), w.tools(t), with(before(func(context.Context, agent.Stage, tool.Tool, tool.Call) (string, error) {
			k.cancel()
			return "", nil
		})))
		ended(t, k.say("Go."), "aborted user")
		w.began(t, "")
		k.toolLines("call c1", "result c1 ABORTED_BEFORE_DISPATCH", "call c2", "result c2 ABORTED_BEFORE_DISPATCH")
	})
	row(t, "T18 R2 R3 a cancel in the middle of the pool: what ran is drained, the rest answered, what hooks add waits", func(t *testing.T) {
		w := newWorkshop()
		k := talking(t, plays(asks("look", "look", "look", "look")), w.tools(t), limit(2), with(after(func(_ context.Context, _ agent.Stage, call tool.Call, out tool.Outcome) (tool.Outcome, inputs, error) {
			return out, inputs{said("about " + call.ID)}, nil
		})))
		k.send("Go.")
		w.began(t, "c1 c2")
		k.inject("Dropped.")
		k.cancel()
		ended(t, k.end(), "aborted user")
		k.toolLines("call c1", "call c2", "+step Dropped.", "result c1 ABORTED", "+step about c1", "result c2 ABORTED", "+step about c2",
			"call c3", "result c3 ABORTED_BEFORE_DISPATCH", "call c4", "result c4 ABORTED_BEFORE_DISPATCH")
		k.waiting([]string{"about c1", "about c2"}, nil)
		k.say("Go on.")
		texts := k.model.texts(t, 2)
		if diff := gocmp.Diff([]string{"about c1", "about c2", "Go on."}, texts[len(texts)-3:]); diff != "" {
			t.Errorf("(-want +got): %s", diff)
		}
	})
	row(t, "T19 a cancel in a parallel group: the call behind the barrier is answered and does not run", func(t *testing.T) {
		w := newWorkshop()
		k := talking(t, plays(asks("look", "alone")), w.tools(t))
		k.send("Go.")
		w.began(t, "c1")
		k.cancel()
		ended(t, k.end(), "aborted user")
		w.began(t, "c1")
		k.toolLines("call c1", "result c1 ABORTED", "call c2", "result c2 ABORTED_BEFORE_DISPATCH")
	})
	row(t, "T20 the log fails while calls run: nothing more starts, all that ran is drained, each call is answered", func(t *testing.T) {
		w := newWorkshop()
		full := errors.New("no space left")
		k := talking(t, plays(asks("look", "look", "look")), w.tools(t))
		n := 0
		k.live.fail = func(int) error {
			if n++; n == 4 { // before the third call
				return full
			}
			return nil
		}
		k.send("Go.")
		out := k.end()
		ended(t, out, "error UNKNOWN no space left")
		if !errors.Is(out.Err, full) {
			t.Errorf("outcome %+v", out)
		}
		w.began(t, "c1 c2")
		k.toolLines("call c1", "call c2", "call c3", "result c1 ABORTED", "result c2 ABORTED", "result c3 NOT_RUN")
	})
	row(t, "T21 E1 a tool that is not offered is not run", func(t *testing.T) {
		k := talking(t, plays(asks("hidden")), withTools(t, looks(nil)))
		ended(t, k.say("Go."), "completed")
		k.toolLines("call c1", "result c1 UNKNOWN_TOOL")
	})
	row(t, "E7 E13 a coded error and what a tool keeps for the log are recorded", func(t *testing.T) {
		k := talking(t, plays(asks("look")), withTools(t, looks(func(context.Context, tool.Call) (tool.Result, error) {
			return tool.Result{Meta: json.RawMessage(`{"shown":"differently"}`)}, &tool.Error{Name: "WeatherError", Code: "NO_SUCH_CITY", Msg: "no such city"}
		})))
		k.say("Go.")
		d := eventsOf(k.live.s.Log(), outcrop.TypeToolResult)[0]
		for _, part := range []string{`"isError":true`, `"error":{"name":"WeatherError","code":"NO_SUCH_CITY"}`, `"meta":{"shown":"differently"}`, "Error: no such city"} {
			if !strings.Contains(d, part) {
				t.Errorf("%s is missing in %s", part, d)
			}
		}
	})
	row(t, "R32 a hook replaces what a tool gave: the result keeps its call, and is fit for the log", func(t *testing.T) {
		k := talking(t, plays(asks("look x1", "look x2", "look x3")), withTools(t, looks(nil)), with(after(func(_ context.Context, _ agent.Stage, call tool.Call, out tool.Outcome) (tool.Outcome, inputs, error) {
			switch call.ID {
			case "x1":
				out.Content = []message.Block{message.Text("replaced\xff")}
			case "x2":
				out = tool.Outcome{Content: []message.Block{{Type: "odd", Raw: json.RawMessage("{")}}, Meta: json.RawMessage("{")}
			case "x3":
				out.Content[0] = message.Text("changed in place")
			}
			return out, nil, nil
		})))
		ended(t, k.say("Go."), "completed")
		k.sends(2, "Go.", "call x1 | call x2 | call x3", "result x1 replaced\uFFFD", `result x2 [a block of type "odd" that cannot be written was dropped]`, "result x3 changed in place")
	})
	row(t, "L27 a tool that ends the turn: no further call, its result is recorded", func(t *testing.T) {
		k := talking(t, plays(asks("look", "look")), withTools(t, looks(func(_ context.Context, call tool.Call) (tool.Result, error) {
			r := tool.Text("done")
			r.EndTurn = call.ID == "c1"
			return r, nil
		})))
		ended(t, k.say("Go."), "completed")
		k.calls(1)
		k.toolLines("call c1", "call c2", "result c1 done", "result c2 done")
	})
	row(t, "L28 a message that came while such a tool ran gets its step", func(t *testing.T) {
		w := newWorkshop()
		w.change = func(tool.Call) (tool.Result, error) { return tool.Result{EndTurn: true}, nil }
		k := talking(t, plays(asks("look")), w.tools(t))
		k.send("Go.")
		synctest.Wait()
		k.steer("One more.")
		w.lets("c1")
		if out := k.end(); out.Turn != 1 || out.Reason.Kind != outcrop.Completed {
			t.Errorf("outcome %+v", out)
		}
		k.sends(2, "Go.", "call c1", "result c1 (no output)", "One more.")
	})
	row(t, "L27 L28 a hook may say that the turn has come to its end", func(t *testing.T) {
		k := talking(t, plays(asks("look")), withTools(t, looks(nil)), with(after(func(_ context.Context, _ agent.Stage, _ tool.Call, out tool.Outcome) (tool.Outcome, inputs, error) {
			out.EndTurn = true
			return out, nil, nil
		})))
		ended(t, k.say("Go."), "completed")
		k.calls(1)
	})
	row(t, "L23 L25 what is injected while a tool runs is not seen by it, and enters behind its result, word for word", func(t *testing.T) {
		w := newWorkshop()
		k := talking(t, plays(asks("look")), w.tools(t))
		k.send("Go.")
		synctest.Wait()
		m := message.Message{Content: []message.Block{message.Text("Note."), message.Text("Second block.")},
			Source: message.Source{Kind: "plugin", Plugin: "timer", Form: "notice", Summary: "tick"}}
		if _, err := k.Inject(background, m); err != nil {
			t.Fatal(err)
		}
		m.Content[0] = message.Text("Changed afterwards.")
		bad := said("x")
		bad.Content[0].Raw = json.RawMessage(`{`)
		if _, err := k.Inject(background, bad); !errors.Is(err, outcrop.ErrRefused) {
			t.Errorf("no JSON: %v", err)
		}
		w.lets("c1")
		k.end()
		k.sends(2, "Go.", "call c1", "result c1 from c1", "Note. | Second block.")
		d := eventsOf(k.live.s.Log(), outcrop.TypeUserMessage)[1]
		if !strings.Contains(d, `"source":{"kind":"plugin","plugin":"timer","form":"notice","summary":"tick"}`) {
			t.Errorf("source: %s", d)
		}
	})
	row(t, "O1 O2 tools are offered by name, however they were given", func(t *testing.T) {
		a, b := &fakeTool{name: "alpha", class: tool.Read}, &fakeTool{name: "beta", class: tool.Read}
		var headers []string
		for _, order := range [][]tool.Tool{{a, b}, {b, a}} {
			k := talking(t, plays(), withTools(t, order...))
			k.say("Go.")
			headers = append(headers, eventsOf(k.live.s.Log(), outcrop.TypeRequestHeader)...)
			r := k.model.requests()[0]
			if r.Tools[0].Name != "alpha" || r.Session != "s1" {
				t.Errorf("offered %v in session %q", r.Tools, r.Session)
			}
		}
		if headers[0] != headers[1] {
			t.Errorf("headers differ: %q", headers)
		}
	})
	t.Run("a call has a key that no other call has", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var keys []string
			k := talking(t, plays(asks("look same"), asks("look same")), withTools(t, looks(func(_ context.Context, call tool.Call) (tool.Result, error) {
				keys = append(keys, call.Key)
				return tool.Text("done"), nil
			})))
			k.say("Go.")
			var want []string
			for ev := range outcrop.Events(k.live.s.Log(), 0) {
				if ev.Type == outcrop.TypeToolCall {
					want = append(want, fmt.Sprintf("s1:%d:same", ev.Seq))
				}
			}
			if diff := gocmp.Diff(want, keys); diff != "" || len(keys) != 2 {
				t.Errorf("keys (-want +got): %s", diff)
			}
		})
	})
	t.Run("an outcome that its hook cannot look at is withheld", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorkshop()
			k := talking(t, plays(asks("look", "look")), w.tools(t), with(after(func(context.Context, agent.Stage, tool.Call, tool.Outcome) (tool.Outcome, inputs, error) {
				panic("blind")
			})))
			k.send("Go.")
			synctest.Wait()
			w.lets("c1")
			ended(t, k.end(), "error UNKNOWN hook after-tool panicked: blind")
			k.toolLines("call c1", "call c2", "result c1 WITHHELD", "result c2 WITHHELD")
			if strings.Contains(text(k.live.s.Log()), "from c1") {
				t.Error("what was to be reviewed is in the log")
			}
		})
	})
	t.Run("a hook that does not let go of an outcome is left behind after the time of grace", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			release := make(chan struct{})
			k := talking(t, plays(asks("look", "look")), withTools(t, looks(nil)), with(after(func(_ context.Context, _ agent.Stage, _ tool.Call, out tool.Outcome) (tool.Outcome, inputs, error) {
				<-release
				return out, inputs{said("too late")}, nil
			})))
			k.send("Go.")
			synctest.Wait()
			begun := time.Now()
			k.cancel()
			ended(t, k.end(), "aborted user")
			if took := time.Since(begun); took != 5*time.Second {
				t.Errorf("it took %v", took)
			}
			k.toolLines("call c1", "call c2", "result c1 ABORTED", "result c2 ABORTED")
			close(release)
			synctest.Wait()
			k.waiting(nil, nil)
		})
	})
	t.Run("a message of a hook that cannot be sent ends the turn, and the results stand", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			k := talking(t, plays(asks("look")), withTools(t, looks(nil)), with(after(func(_ context.Context, _ agent.Stage, _ tool.Call, out tool.Outcome) (tool.Outcome, inputs, error) {
				return out, inputs{{}}, nil
			})))
			ended(t, k.say("Go."), "error UNKNOWN a message of a hook: message cannot be sent: it is empty")
			k.toolLines("call c1", "result c1 done")
		})
	})
	t.Run("a call is asked about after the hooks let it pass", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			k := talking(t, plays(asks("edit", "edit")), withTools(t, &fakeTool{name: "edit", class: tool.Edit}), with(before(func(_ context.Context, _ agent.Stage, _ tool.Tool, call tool.Call) (string, error) {
				if call.ID == "c1" {
					return "never", nil
				}
				return "", nil
			})), func(o *agent.Options) { o.Approver = always(agent.Answer{Verdict: agent.AllowOnce}, nil) })
			k.say("Go.")
			if n := len(eventsOf(k.live.s.Log(), outcrop.TypeApprovalAsked)); n != 1 {
				t.Errorf("%d questions", n)
			}
		})
	})
}
