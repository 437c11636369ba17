package agent_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/agent"
	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/message"
	"github.com/outcrop-dev/outcrop/tool"
)

func usage(in, out int64) message.Chunk {
	return message.Chunk{Type: message.UsageChunk, Usage: &message.Usage{InputTokens: in, OutputTokens: out}}
}

func TestStatusTellsWhatAScreenNeeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorkshop()
		price := &llm.Price{Input: 1_000_000, Output: 2_000_000}
		k := talking(t, plays(
			func(ctx context.Context, req llm.Request, yield func(message.Chunk, error) bool) {
				_ = yield(usage(40, 10), nil)
				asks("look")(ctx, req, yield)
			}, says("no usage")), w.tools(t), func(o *agent.Options) { o.Window, o.Price = 10_000, price })
		if st := k.Status(); st != (agent.Status{Phase: agent.Idle, Window: 10_000}) {
			t.Errorf("at the beginning: %+v", st)
		}
		k.live.atFlush(outcrop.TypeOutcropRequest, func() {
			st := k.Status()
			if st.Phase != agent.Preparing || st.Tokens < 10 || st.Tokens > 160 {
				t.Errorf("before the first call: %+v", st)
			}
		})
		k.send("Go.")
		synctest.Wait()
		k.inject("And this.")
		want := agent.Status{Phase: agent.Running, Turn: 1, Step: 1, Tool: "look", Tokens: 40, Window: 10_000, SpentMicroUSD: 60, Pending: 1}
		if diff := cmp.Diff(want, k.Status()); diff != "" {
			t.Errorf("while the tool runs (-want +got): %s", diff)
		}
		w.lets("c1")
		k.end()
		st := k.Status()
		// What the provider counted, and an estimate of what came since.
		if st.Tokens <= 50 || st.Tokens > 120 {
			t.Errorf("%d tokens after a request that nobody counted", st.Tokens)
		}
		st.Tokens = 0
		if diff := cmp.Diff(agent.Status{Phase: agent.Idle, Turn: 1, Window: 10_000, SpentMicroUSD: 60, Unpriced: 1}, st); diff != "" {
			t.Errorf("idle (-want +got): %s", diff)
		}
	})
}

func TestACountThatMakesNoSenseIsNotBelieved(t *testing.T) {
	for name, in := range map[string]int64{"nothing": 0, "far too few": 1, "the sum of a day": 5_000_000} {
		synctest.Test(t, func(t *testing.T) {
			k := talking(t, plays(streams(delta("ok"), usage(in, 5), finish(message.Stop))), func(o *agent.Options) { o.Window = 10_000 })
			k.say("Hi.")
			ended(t, k.say("And again."), "completed")
			if left := k.model.requests()[1].MaxOutput; left < 8_800 || left > 10_000-1024 {
				t.Errorf("%s: %d tokens are left for the reply", name, left)
			}
		})
	}
}

func TestAReplyGetsWhatTheWindowLeaves(t *testing.T) {
	for _, c := range []struct {
		window, left int64 // of the first request
	}{
		{0, 0},
		{128_000, 128_000 - 2_560},
		{10_000, 10_000 - 1_024},
	} {
		t.Run(fmt.Sprint(c.window), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := talking(t, plays(), func(o *agent.Options) { o.Window = c.window })
				k.say(strings.Repeat("word ", 80))
				k.say("More.")
				sent := k.model.requests()
				estimate := func(r llm.Request) int64 { r.Tools = nil; return llm.EstimateRequest(r) }
				for i, r := range sent {
					want := c.left - estimate(r)
					if c.window == 0 {
						want = 0
					}
					if r.MaxOutput != want {
						t.Errorf("request %d: %d tokens, want %d", i, r.MaxOutput, want)
					}
				}
			})
		})
	}
}

// Sizes are estimates, and windows are what a person configured: whether a
// request is too long is for the server to say. It gets the least room.
func TestARequestThatSeemsToFillTheWindowIsSentAllTheSame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := talking(t, plays(), func(o *agent.Options) { o.Window = 8_000 })
		ended(t, k.say(strings.Repeat("word ", 8_000)), "completed")
		k.calls(1)
		if got := k.model.requests()[0].MaxOutput; got != 1024 {
			t.Errorf("room for %d tokens, want 1024", got)
		}
	})
}

func TestAnotherModelFromTheNextRequestOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		other := plays(streams(delta("From the other."), usage(100, 0), finish(message.Stop)))
		other.name = "other"
		w := newWorkshop()
		k := talking(t, plays(func(ctx context.Context, req llm.Request, yield func(message.Chunk, error) bool) {
			_ = yield(usage(50, 0), nil)
			asks("look")(ctx, req, yield)
		}), w.tools(t), func(o *agent.Options) { o.Price = &llm.Price{Input: 1_000_000} })
		for name, m := range map[string]agent.Model{"no provider": {Config: llm.Config{Model: "x"}}, "no model": {Provider: other},
			"a name that cannot be logged": {Provider: other, Config: llm.Config{Model: "\xff"}}} {
			if err := k.SetModel(background, m); (err == nil) != (name == "a name that cannot be logged") {
				t.Errorf("%s: %v", name, err)
			}
		}
		if err := k.SetModel(background, agent.Model{Provider: k.model, Config: llm.Config{Model: "m1"}, Price: &llm.Price{Input: 1_000_000}}); err != nil {
			t.Fatal(err)
		}
		k.send("Go.")
		synctest.Wait()
		err := k.SetModel(background, agent.Model{Provider: other, Config: llm.Config{Model: "m2"}, Window: 50_000, Price: &llm.Price{Input: 7_000_000}, Images: true})
		if err != nil {
			t.Fatal(err)
		}
		w.lets("c1")
		ended(t, k.end(), "completed")
		k.calls(1)
		r := other.requests()
		if len(r) != 1 || r[0].Config.Provider != "other" || r[0].Config.Model != "m2" || !r[0].Images || r[0].MaxOutput == 0 {
			t.Fatalf("the other model was sent %+v", r)
		}
		if st := k.Status(); st.Window != 50_000 || st.SpentMicroUSD != 50+700 {
			t.Errorf("status %+v", st)
		}
		if d := eventsOf(k.live.s.Log(), outcrop.TypeRequestHeader); len(d) != 2 || !strings.HasSuffix(d[1], `"reason":"change"}`) {
			t.Errorf("headers %q", d)
		}
		if d := eventsOf(k.live.s.Log(), outcrop.TypeOutcropRequest); !strings.Contains(d[1], `"encoder":"other/1"`) {
			t.Errorf("request %s", d[1])
		}
	})
}

func TestOtherToolsFromTheNextRequestOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := newWorkshop()
		k := talking(t, plays(asks("look"), asks("look", "other")), first.tools(t))
		k.send("Go.")
		synctest.Wait()
		r, err := tool.NewRegistry(tool.Options{}, &fakeTool{name: "other", class: tool.Read})
		if err != nil {
			t.Fatal(err)
		}
		if err := k.SetTools(background, r); err != nil {
			t.Fatal(err)
		}
		first.lets("c1")
		ended(t, k.end(), "completed")
		k.toolLines("call c1", "result c1 from c1", "call c1", "result c1 UNKNOWN_TOOL", "call c2", "result c2 done")
		var names []string
		for _, req := range k.model.requests() {
			names = append(names, fmt.Sprint(len(req.Tools), req.Tools[0].Name))
		}
		if diff := cmp.Diff([]string{"2alone", "1other", "1other"}, names); diff != "" {
			t.Errorf("offered (-want +got): %s", diff)
		}
		if err := k.SetTools(background, nil); err != nil {
			t.Fatal(err)
		}
		k.say("Again.")
		if r := k.model.requests()[3]; r.Tools != nil {
			t.Errorf("offered %v", r.Tools)
		}
	})
}

func TestThePolicyCanChangeWhileATurnRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := true
		var k *talk
		k = talking(t, plays(asks("edit", "edit"), asks("edit")), withTools(t, &fakeTool{name: "edit", class: tool.Edit}), func(o *agent.Options) {
			o.Approver = approverFunc(func(ctx context.Context, _ agent.Question) (agent.Answer, error) {
				if !first {
					t.Error("asked again")
				}
				first = false
				// The question stands, whatever the policy is by now.
				return agent.Answer{Verdict: agent.AllowOnce}, k.SetPolicy(ctx, agent.AllowAll)
			})
		})
		if err := k.SetPolicy(background, "sometimes"); err == nil {
			t.Error("a policy that does not exist was taken")
		}
		ended(t, k.say("Go."), "completed")
		if err := k.SetPolicy(background, agent.AllowRead); err != nil {
			t.Fatal(err)
		}
		k.say("Again.")
		k.logs("+turn Go.", "turn 1", "claim turn 1", "step 1", "user Go.", "says call c1 | call c2",
			"call c1", "ask edit", "policy never", "decided allowed-once", "result c1 done", "call c2", "result c2 done", "end of step",
			"step 2", "says call c1", "call c1", "result c1 done", "end of step", "step 3", "says ok", "end of step", "end of turn: completed",
			"+turn Again.", "policy ask", "turn 2", "claim turn 1", "step 1", "user Again.", "says ok", "end of step", "end of turn: completed")
	})
}

func TestWhatAProgramFindsAfterACrash(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := talking(t, plays(asks("look", "look", "look"), says("The answer is forty-two.")), withTools(t, looks(nil)), limit(2))
		if r := k.Resumed(); r.Turn != 0 {
			t.Errorf("a new session was resumed: %+v", r)
		}
		k.say("Go.")
		stop(t, k.Agent)
		log := k.live.s.Log()
		at := func(typ outcrop.Type, nth int) int {
			for ev := range outcrop.Events(log, 0) {
				if ev.Type == typ {
					if nth--; nth == 0 {
						return int(ev.Seq)
					}
				}
			}
			t.Fatalf("no such %s", typ)
			return 0
		}
		resumed := func(n int) agent.Resumed {
			return talkingOn(t, reopened(t, k.live.s.Header(), log, n), plays()).Resumed()
		}
		// In the middle of the calls: two were started, the third was not.
		call := at(outcrop.TypeToolCall, 2)
		got := resumed(call + 1)
		want := agent.Resumed{Turn: 1, Unknown: []agent.UnknownCall{
			{Seq: outcrop.Seq(at(outcrop.TypeToolCall, 1)), CallID: "c1", Name: "look", Arguments: "{}"},
			{Seq: outcrop.Seq(call), CallID: "c2", Name: "look", Arguments: "{}"},
		}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("in the middle of the calls (-want +got): %s", diff)
		}
		// In the middle of the second reply.
		if diff := cmp.Diff(agent.Resumed{Turn: 1, CutText: "The answer is forty-two."}, resumed(at(outcrop.TypeAssistantMessage, 2))); diff != "" {
			t.Errorf("in the middle of a reply (-want +got): %s", diff)
		}
		// Between the claim and the message.
		got = resumed(at(outcrop.TypeUserMessage, 1))
		if got.Turn != 1 || len(got.Requeued) != 1 || message.PlainText(got.Requeued[0].Content) != "Go." {
			t.Errorf("before the input entered: %+v", got)
		}
		if diff := cmp.Diff(agent.Resumed{}, resumed(log.Len())); diff != "" {
			t.Errorf("a log that ended well (-want +got): %s", diff)
		}
	})
}

// What an encoder keeps belongs to one call at a time: a call that was left
// behind may still be busy with it.
func TestACallThatWasLeftBehindKeepsItsCacheToItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		deaf := func(context.Context, llm.Request, func(message.Chunk, error) bool) { <-release }
		k := talking(t, plays(says("one"), says("two"), deaf))
		k.say("1")
		k.say("2")
		k.send("3")
		synctest.Wait()
		k.cancel()
		k.end()
		k.say("4")
		k.say("5")
		close(release)
		sent := k.model.requests()
		same := func(i, j int) bool { return sent[i].Cache == sent[j].Cache }
		if sent[0].Cache == nil || !same(0, 1) || !same(1, 2) || same(2, 3) || !same(3, 4) {
			t.Error("calls do not share their cache as they should")
		}
	})
}

func TestSettersOfAClosedAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := talking(t, plays())
		stop(t, k.Agent)
		_, _, removed := k.Remove(background, "x")
		_, injected := k.Inject(background, said("x"))
		for name, err := range map[string]error{
			"model": k.SetModel(background, agent.Model{Provider: k.model, Config: llm.Config{Model: "x"}}), "tools": k.SetTools(background, nil),
			"policy": k.SetPolicy(background, agent.AllowAll), "remove": removed, "inject": injected,
		} {
			if !errors.Is(err, agent.ErrClosed) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}
