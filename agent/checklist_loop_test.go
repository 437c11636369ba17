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
	"github.com/outcrop-dev/outcrop/message"
	"github.com/outcrop-dev/outcrop/tool"
)

// The rows of the checklist about input, turns and requests.
func TestChecklistLoop(t *testing.T) {
	row(t, "A1 L22 what is injected into an idle agent waits, and enters word for word with the next prompt", func(t *testing.T) {
		k := talking(t, plays())
		k.inject("By the way.")
		synctest.Wait()
		k.logs("+step By the way.")
		if st := k.Status(); st.Phase != agent.Idle || st.Pending != 1 {
			t.Errorf("status %+v", st)
		}
		k.calls(0)
		k.say("Hi.")
		k.sends(1, "By the way.", "Hi.")
	})
	row(t, "A2 a source is kept as it was given", func(t *testing.T) {
		k := talking(t, plays())
		m := said("x")
		if err := m.UnmarshalJSON([]byte(`{"role":"user","content":[{"type":"text","text":"x"}],"source":{"kind":"plugin","plugin":"","more":[1]}}`)); err != nil {
			t.Fatal(err)
		}
		if _, err := k.Inject(background, m); err != nil {
			t.Fatal(err)
		}
		k.say("Hi.")
		for _, typ := range []outcrop.Type{outcrop.TypeInboxSpliced, outcrop.TypeUserMessage} {
			if d := eventsOf(k.live.s.Log(), typ)[0]; !strings.Contains(d, `{"kind":"plugin","plugin":"","more":[1]}`) {
				t.Errorf("%s: %s", typ, d)
			}
		}
	})
	row(t, "A3 an observer hears of input put in, taken back and taken up, in this order", func(t *testing.T) {
		k := talking(t, plays())
		var heard []string
		done := k.Observe(func(ev outcrop.Event) { heard = append(heard, string(ev.Type)) })
		id, err := k.Inject(background, said("Never mind."))
		if err != nil {
			t.Fatal(err)
		}
		if m, ok, err := k.Remove(background, id); !ok || err != nil || m.ID != id {
			t.Error(m, ok, err)
		}
		if _, ok, err := k.Remove(background, id); ok || err != nil {
			t.Errorf("removed twice: %v %v", ok, err)
		}
		k.say("Hi.")
		done()
		want := []string{"agent/inbox/spliced", "agent/inbox/spliced", "agent/inbox/spliced", "turn/start", "agent/inbox/spliced", "step/start", "user/message"}
		if diff := cmp.Diff(want, heard[:len(want)]); diff != "" {
			t.Errorf("(-want +got): %s", diff)
		}
		k.logs("+step Never mind.", "drop step 1 at 0", "+turn Hi.", "turn 1", "claim turn 1", "step 1", "user Hi.", "says ok", "end of step", "end of turn: completed")
	})
	row(t, "A7 waiting for an idle agent takes no time", func(t *testing.T) {
		k := talking(t, plays())
		if out := k.end(); out.Turn != 0 {
			t.Errorf("outcome %+v", out)
		}
	})
	row(t, "A8 L33 waiting for a model that hangs ends with the cancel", func(t *testing.T) {
		k := talking(t, plays(hangs()))
		k.send("Hi.")
		done := make(chan agent.Outcome)
		go func() { done <- wait(t, k.Agent) }()
		synctest.Wait()
		select {
		case out := <-done:
			t.Errorf("it did not wait: %+v", out)
		default:
		}
		k.cancel()
		ended(t, <-done, "aborted user")
	})
	row(t, "I1 two agents at the same time: each call knows its session", func(t *testing.T) {
		h := ownHeader()
		h.ID = "s2"
		a, b := talking(t, plays(hangs())), talkingOn(t, newLive(t, h, outcrop.Options{}), plays(hangs()))
		a.send("Hi.")
		b.send("Hi.")
		synctest.Wait()
		if x, y := a.model.requests()[0].Session, b.model.requests()[0].Session; x != "s1" || y != "s2" {
			t.Errorf("sessions %q and %q", x, y)
		}
	})
	row(t, "R1 L40 the replay state of a reply is kept with the message, in step with what is kept of it", func(t *testing.T) {
		cut := finish(message.MaxTokens)
		cut.ReplayState = json.RawMessage(`{"blocks":["t","c"]}`)
		call := message.ToolCall("c1", "look", "{}")
		k := talking(t, plays(streams(delta("Part one"), message.Chunk{Type: message.BlockEnd, Index: 1, Block: &call}, cut)), withTools(t, looks(nil)))
		ended(t, k.say("Hi."), "max-tokens")
		k.say("Go on.")
		k.sends(2, "Hi.", "Part one", "Go on.")
		if got := string(k.model.requests()[1].Messages[1].Source.ReplayState); got != `{"blocks":["t"]}` {
			t.Errorf("replay state %s", got)
		}
	})
	for name, u := range map[string]*message.Usage{"L37 with usage": {InputTokens: 5, OutputTokens: 16}, "L38 without usage": nil} {
		row(t, name+" a complete call in a reply that was cut off: not run, an empty message, nothing is sent of it", func(t *testing.T) {
			call := message.ToolCall("c1", "look", "{}")
			chunks := []message.Chunk{{Type: message.BlockEnd, Block: &call}}
			if u != nil {
				chunks = append(chunks, message.Chunk{Type: message.UsageChunk, Usage: u})
			}
			k := talking(t, plays(streams(append(chunks, finish(message.MaxTokens))...)), withTools(t, looks(func(context.Context, tool.Call) (tool.Result, error) {
				t.Error("it ran")
				return tool.Result{}, nil
			})))
			ended(t, k.say("Hi."), "max-tokens")
			k.logs("+turn Hi.", "turn 1", "claim turn 1", "step 1", "user Hi.", "says", "end of step", "end of turn: max-tokens")
			if d := eventsOf(k.live.s.Log(), outcrop.TypeAssistantMessage)[0]; strings.Contains(d, `"usage"`) != (u != nil) {
				t.Errorf("message %s", d)
			}
			k.say("Again.")
			k.sends(2, "Hi.", "Again.")
		})
	}
	row(t, "R14 L23 a tool steers: the splices and the message have what it gave", func(t *testing.T) {
		var k *talk
		m := message.Message{Content: said("Turn left.").Content, Source: message.Source{Kind: "plugin", Plugin: "nav", Form: "notice", Summary: "route"}}
		k = talking(t, plays(asks("look")), withTools(t, looks(func(ctx context.Context, _ tool.Call) (tool.Result, error) {
			_, err := k.Steer(ctx, m)
			return tool.Text("done"), err
		})))
		ended(t, k.say("Go."), "completed")
		k.logs("+turn Go.", "turn 1", "claim turn 1", "step 1", "user Go.", "says call c1", "call c1", "+step Turn left.", "result c1 done", "end of step",
			"claim step 1", "step 2", "user Turn left.", "says ok", "end of step", "end of turn: completed")
		for _, d := range []string{eventsOf(k.live.s.Log(), outcrop.TypeInboxSpliced)[2], eventsOf(k.live.s.Log(), outcrop.TypeUserMessage)[1]} {
			if !strings.Contains(d, `"source":{"kind":"plugin","plugin":"nav","form":"notice","summary":"route"},"role":"user","id":"m-`) {
				t.Errorf("%s", d)
			}
		}
	})
	for name, c := range map[string]struct {
		f      *message.Failure
		finish message.FinishKind
		want   string
	}{
		"R17 with all facts":                     {&message.Failure{Code: "QUOTA", Message: "all gone", Status: 402}, message.Errored, `{"kind":"error","error":{"message":"all gone","code":"QUOTA","status":402}}`},
		"R18 as aborted though nobody cancelled": {&message.Failure{Code: message.CodeAborted, Message: "away"}, message.Aborted, `{"kind":"error","error":{"message":"away","code":"ABORTED"}}`},
		"R19 with an unknown code":               {&message.Failure{Code: message.CodeUnknown, Message: "who knows"}, message.Errored, `{"kind":"error","error":{"message":"who knows","code":"UNKNOWN"}}`},
		"E19 after usage":                        {&message.Failure{Code: "QUOTA", Message: "all gone"}, message.Errored, `{"kind":"error","error":{"message":"all gone","code":"QUOTA"}}`},
	} {
		row(t, name+" a reply that ends in a failure: the turn has it, no message, one end of step", func(t *testing.T) {
			chunks := []message.Chunk{delta("Half")}
			if strings.Contains(name, "usage") {
				chunks = append(chunks, message.Chunk{Type: message.UsageChunk, Usage: &message.Usage{InputTokens: 1}})
			}
			chunks = append(chunks, message.Chunk{Type: message.FinishChunk, Reason: &message.Finish{Kind: c.finish, Failure: c.f}})
			k := talking(t, plays(streams(chunks...)))
			k.say("Hi.")
			if d := eventsOf(k.live.s.Log(), outcrop.TypeTurnEnd)[0]; !strings.Contains(d, c.want) {
				t.Errorf("%s, want %s", d, c.want)
			}
			if n := len(eventsOf(k.live.s.Log(), outcrop.TypeAssistantMessage)); n != 0 {
				t.Errorf("%d messages", n)
			}
			if n := len(eventsOf(k.live.s.Log(), outcrop.TypeStepEnd)); n != 1 {
				t.Errorf("%d ends of step", n)
			}
		})
	}
	row(t, "A9 R21 R25 R28 R29 R30 R31 L41 an observer that panics at every event changes nothing", func(t *testing.T) {
		live := newLive(t, ownHeader(), outcrop.Options{Observers: []func(outcrop.Event){func(outcrop.Event) { panic("observer") }}})
		k := talkingOn(t, live, plays(asks("look"), says("ok"), fails("AUTH")), withTools(t, looks(nil)))
		k.Observe(func(outcrop.Event) { panic("another one") })
		ended(t, k.say("Hi."), "completed")
		ended(t, k.say("Hi."), "error AUTH no: AUTH")
		ended(t, k.say("Hi."), "completed")
	})
	row(t, "R22 E3 E11 a veto on the turn: no turn, all input is kept, the waiter is told", func(t *testing.T) {
		no := true
		k := talkingOn(t, vetoing(t, func(ev outcrop.Event) error {
			if ev.Type == outcrop.TypeTurnStart && no {
				panic("just a string")
			}
			return nil
		}), plays())
		for i, s := range []string{"First.", "Second."} {
			out := k.say(s)
			if !errors.Is(out.Err, outcrop.ErrVetoed) || !strings.Contains(out.Err.Error(), "just a string") {
				t.Errorf("outcome %d: %+v", i, out)
			}
		}
		k.waiting(nil, []string{"First.", "Second."})
		k.logs("+turn First.", "+turn Second.")
		no = false
		k.Wake(background)
		if out := k.end(); out.Turn != 2 || out.Reason.Kind != outcrop.Completed {
			t.Errorf("outcome %+v", out)
		}
		k.calls(2)
	})
	row(t, "R23 a veto on the step: a turn without a step, an error, and the input is kept", func(t *testing.T) {
		k := talkingOn(t, vetoing(t, func(ev outcrop.Event) error {
			if ev.Type == outcrop.TypeStepStart && strings.Contains(string(ev.Data), `"turn":1`) {
				return errors.New("not yet")
			}
			return nil
		}), plays())
		out := k.say("Hi.")
		if out.Reason.Kind != outcrop.TurnError || !strings.Contains(out.Reason.Error.Message, "not yet") || out.Reason.Error.Code != message.CodeUnknown {
			t.Errorf("outcome %+v", out)
		}
		k.waiting(nil, []string{"Hi."})
		k.calls(0)
		k.Wake(background)
		ended(t, k.end(), "completed")
	})
	row(t, "R24 E12 E14 what closes a step or a turn is not asked about", func(t *testing.T) {
		k := talkingOn(t, vetoing(t, func(ev outcrop.Event) error {
			switch ev.Type {
			case outcrop.TypeStepEnd, outcrop.TypeTurnEnd, outcrop.TypeToolResult:
				return errors.New("never")
			}
			return nil
		}), plays(asks("look")), withTools(t, looks(nil)))
		ended(t, k.say("Hi."), "completed")
		k.calls(2)
	})
	row(t, "E10 a veto on the first chunk: nobody is asked to recover", func(t *testing.T) {
		k := talkingOn(t, vetoing(t, func(ev outcrop.Event) error {
			if ev.Type == outcrop.TypeAssistantChunk {
				return errors.New("no chunks")
			}
			return nil
		}), plays(), with(onError(func(context.Context, agent.Stage, *message.Failure) (bool, error) {
			t.Error("recovery was asked")
			return true, nil
		})))
		if out := k.say("Hi."); out.Reason.Kind != outcrop.TurnError || !errors.Is(out.Err, outcrop.ErrVetoed) {
			t.Errorf("outcome %+v", out)
		}
		k.calls(1)
	})
	row(t, "N12 A4 input that the log refuses is not pending, and the caller is told", func(t *testing.T) {
		k := talkingOn(t, vetoing(t, func(ev outcrop.Event) error {
			if ev.Type == outcrop.TypeInboxSpliced {
				return errors.New("no input")
			}
			return nil
		}), plays())
		for _, send := range []func(context.Context, message.Message) (string, error){k.Send, k.Steer, k.Inject} {
			if _, err := send(background, said("Hi.")); !errors.Is(err, outcrop.ErrVetoed) {
				t.Errorf("the caller is told %v", err)
			}
		}
		synctest.Wait()
		if st := k.Status(); st.Phase != agent.Idle || st.Pending != 0 || k.live.s.Len() != 0 {
			t.Errorf("status %+v, %d events", st, k.live.s.Len())
		}
	})
	row(t, "L6 X1 the order of a turn, and the usage of its message", func(t *testing.T) {
		k := talking(t, plays(streams(delta("Hello."), message.Chunk{Type: message.UsageChunk, Usage: &message.Usage{InputTokens: 9, OutputTokens: 2}}, finish(message.Stop))))
		k.say("Hi.")
		var types []string
		for ev := range outcrop.Events(k.live.s.Log(), 0) {
			types = append(types, string(ev.Type))
		}
		want := []string{"agent/inbox/spliced", "turn/start", "agent/inbox/spliced", "step/start", "user/message", "request/header", "request/context",
			"outcrop/request", "assistant/chunk", "assistant/chunk", "assistant/chunk", "assistant/message", "step/end", "turn/end"}
		if diff := cmp.Diff(want, types); diff != "" {
			t.Errorf("(-want +got): %s", diff)
		}
		if d := eventsOf(k.live.s.Log(), outcrop.TypeAssistantMessage)[0]; !strings.Contains(d, `"usage":{"inputTokens":9,"outputTokens":2}`) {
			t.Errorf("message %s", d)
		}
	})
	row(t, "L12 without a prompt of the system the header has none", func(t *testing.T) {
		k := talking(t, plays(), func(o *agent.Options) { o.System = "" })
		k.say("Hi.")
		if d := eventsOf(k.live.s.Log(), outcrop.TypeRequestHeader)[0]; d != `{"header":{"config":{"provider":"fake","model":"m1"}},"reason":"initial"}` {
			t.Errorf("header %s", d)
		}
	})
	row(t, "L2 X4 X6 what the config limits is sent and logged", func(t *testing.T) {
		k := talking(t, plays(), func(o *agent.Options) { o.Config.MaxTokens = 256; o.Config.Defaults.MaxTokens = true })
		k.say("Hi.")
		if r := k.model.requests()[0]; r.Config.MaxTokens != 256 || r.MaxOutput != 0 {
			t.Errorf("request %+v", r)
		}
		if d := eventsOf(k.live.s.Log(), outcrop.TypeRequestHeader)[0]; !strings.Contains(d, `"maxTokens":256},"adapterDefaults":{"maxTokens":true}`) {
			t.Errorf("header %s", d)
		}
	})
	row(t, "L39 only a finish: an empty message that cites it, and the turn is complete", func(t *testing.T) {
		k := talking(t, plays(streams(finish(message.Stop))))
		ended(t, k.say("Hi."), "completed")
		k.say("Again.")
		k.sends(2, "Hi.", "Again.")
	})
	row(t, "L3 L4 L5 input during maintenance runs behind it, unless it is dropped or taken back", func(t *testing.T) {
		k := talking(t, plays())
		// Maintenance is on the owner, so what is sent meanwhile waits outside.
		var sends sync.WaitGroup
		if err := k.Maintain(background, func(s *outcrop.Session) error {
			sends.Go(func() { k.send("Behind.") })
			_, err := s.Append(outcrop.SessionTitle{Title: "A title", Source: "user"})
			return err
		}); err != nil {
			t.Fatal(err)
		}
		sends.Wait()
		ended(t, k.end(), "completed")
		if ev := k.live.s.Log().At(0); ev.Type != outcrop.TypeSessionTitle {
			t.Errorf("the first event is %s", ev.Type)
		}
	})
	row(t, "L42 L43 L44 whoever hears of an event may send, and nothing is lost", func(t *testing.T) {
		k := talking(t, plays())
		heard := map[outcrop.Type]bool{}
		k.Observe(func(ev outcrop.Event) {
			switch ev.Type {
			case outcrop.TypeInboxSpliced, outcrop.TypeAssistantChunk, outcrop.TypeTurnEnd:
				if !heard[ev.Type] {
					heard[ev.Type] = true
					k.send("Because of " + string(ev.Type))
				}
			}
		})
		k.say("Hi.")
		synctest.Wait()
		if out := k.end(); out.Turn != 4 || out.Reason.Kind != outcrop.Completed {
			t.Errorf("outcome %+v", out)
		}
		k.waiting(nil, nil)
	})
	row(t, "L45 a model that sends while it streams: the next turn", func(t *testing.T) {
		var k *talk
		k = talking(t, plays(doing(func() { k.send("Second.") }, says("one"))))
		k.send("First.")
		if out := k.end(); out.Turn != 2 {
			t.Errorf("outcome %+v", out)
		}
		k.sends(2, "First.", "one", "Second.")
	})
	row(t, "L20 of two steers at once the first begins a turn and the second its next step", func(t *testing.T) {
		k := talking(t, plays())
		k.live.atFlush(outcrop.TypeStepStart, func() { k.steer("Two.") })
		k.steer("One.")
		ended(t, k.end(), "completed")
		k.logs("+step One.", "turn 1", "claim step 1", "step 1", "user One.", "+step Two.", "says ok", "end of step",
			"claim step 1", "step 2", "user Two.", "says ok", "end of step", "end of turn: completed")
	})
	row(t, "X3 X5 X15 the header: initial, resume, change, and each request begins as the one before", func(t *testing.T) {
		k := talking(t, plays())
		k.say("1")
		m := plays()
		m.name = "other"
		if err := k.SetModel(background, agent.Model{Provider: m, Config: llm.Config{Model: "m9", ReasoningEffort: "high"}, Window: 64000}); err != nil {
			t.Fatal(err)
		}
		k.say("2")
		stop(t, k.Agent)
		b := talkingOn(t, reopened(t, k.live.s.Header(), k.live.s.Log(), k.live.s.Len()), plays())
		b.say("3")
		var reasons []string
		for _, d := range eventsOf(b.live.s.Log(), outcrop.TypeRequestHeader) {
			reasons = append(reasons, d[strings.LastIndex(d, ":"):])
		}
		if got := fmt.Sprint(reasons); got != `[:"initial"} :"change"} :"resume"}]` {
			t.Errorf("reasons %s", got)
		}
		b.sends(1, "1", "ok", "2", "ok", "3")
		if diff := cmp.Diff([]string{"1", "ok", "2"}, m.texts(t, 1)); diff != "" {
			t.Errorf("(-want +got): %s", diff)
		}
	})
	row(t, "X11 an edit between turns: the next request begins with what stands there now, under the same header", func(t *testing.T) {
		k := talking(t, plays())
		k.say("1")
		if err := k.Maintain(background, coverAll); err != nil {
			t.Fatal(err)
		}
		k.say("2")
		k.sends(2, "everything so far", "2")
		if n := len(eventsOf(k.live.s.Log(), outcrop.TypeRequestHeader)); n != 1 {
			t.Errorf("%d headers", n)
		}
	})
	row(t, "X18 X20 X21 the window is logged when it is known first and when it changes", func(t *testing.T) {
		k := talking(t, plays(), func(o *agent.Options) { o.Window = 128000 })
		k.say("1")
		k.say("2")
		if err := k.SetModel(background, agent.Model{Provider: k.model, Config: llm.Config{Model: "m1"}}); err != nil {
			t.Fatal(err)
		}
		k.say("3")
		k.say("4")
		if got := fmt.Sprint(eventsOf(k.live.s.Log(), outcrop.TypeRequestContext)); got !=
			`[{"provider":"fake","model":"m1","contextWindow":128000} {"provider":"fake","model":"m1"}]` {
			t.Errorf("contexts %s", got)
		}
	})
	row(t, "U17 what was pending when a session was closed is still pending, and enters", func(t *testing.T) {
		k := talking(t, plays())
		k.inject("Kept.")
		stop(t, k.Agent)
		b := talkingOn(t, reopened(t, k.live.s.Header(), k.live.s.Log(), k.live.s.Len()), plays())
		synctest.Wait()
		b.calls(0)
		b.say("Hi.")
		b.sends(1, "Kept.", "Hi.")
	})
	row(t, "U18 R15 L50 a session goes on with the next turn, its log as it was", func(t *testing.T) {
		k := talking(t, plays())
		k.say("1")
		stop(t, k.Agent)
		n := k.live.s.Len()
		b := talkingOn(t, reopened(t, k.live.s.Header(), k.live.s.Log(), n), plays())
		if out := b.say("2"); out.Turn != 2 {
			t.Errorf("outcome %+v", out)
		}
		if ev := b.live.s.Log().At(outcrop.Seq(n)); ev.Type != outcrop.TypeEndSeed || b.live.s.FirstLive() != outcrop.Seq(n) {
			t.Errorf("event %d is %s, first live %d", n, ev.Type, b.live.s.FirstLive())
		}
		b.sends(1, "1", "ok", "2")
	})
}

func vetoing(t *testing.T, veto func(outcrop.Event) error) *memoryLive {
	t.Helper()
	return newLive(t, ownHeader(), outcrop.Options{Vetoes: []func(outcrop.Event) error{veto}})
}

// P1 to P3: however messages are sent, each gets its own turn, in order.
func TestEachMessageGetsItsTurnInOrder(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		waits := rapid.SliceOfN(rapid.Bool(), 1, 8).Draw(rt, "waits for the turn")
		synctest.Test(t, func(t *testing.T) {
			k := talking(t, plays())
			var want []string
			for i, w := range waits {
				text := fmt.Sprint("Message ", i)
				want = append(want, "user "+text)
				k.send(text)
				if w {
					k.end()
				}
			}
			out := k.end()
			var got []string
			turns := 0
			for _, line := range outline(k.live.s.Log()) {
				switch {
				case strings.HasPrefix(line, "user "):
					got = append(got, line)
				case strings.HasPrefix(line, "turn "):
					turns++
				}
			}
			if diff := cmp.Diff(want, got); diff != "" || out.Turn != len(waits) || turns != len(waits) {
				t.Errorf("%d turns, last %+v (-want +got): %s", turns, out, diff)
			}
		})
	})
}
