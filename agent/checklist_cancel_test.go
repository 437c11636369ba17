package agent_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/agent"
	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/message"
	"github.com/outcrop-dev/outcrop/tool"
	"github.com/outcrop-dev/outcrop/workspace"
)

// The rows of the checklist about cancelling: between turns, before a turn has
// begun, in each of its waits, and while it ends.
func TestChecklistCancel(t *testing.T) {
	row(t, "C1 cancelling an idle agent changes nothing", func(t *testing.T) {
		k := talking(t, plays())
		k.cancel()
		ended(t, k.say("Hi."), "completed")
		k.calls(1)
	})
	row(t, "C2 input that a cancelled turn had not taken yet stays pending when the inbox is kept", func(t *testing.T) {
		k := talking(t, plays(), with(preStep(func(ctx context.Context, st agent.Stage, in []message.Message) ([]message.Message, bool, error) {
			if st.Turn == 1 {
				<-ctx.Done()
			}
			return in, false, nil
		})))
		k.send("First.")
		synctest.Wait()
		k.cancel(agent.KeepInbox)
		ended(t, k.end(), "aborted user")
		k.waiting(nil, []string{"First."})
		ended(t, k.say("Second."), "completed")
		k.logs("+turn First.", "turn 1", "end of turn: aborted user", "+turn Second.",
			"turn 2", "claim turn 1", "step 1", "user First.", "says ok", "end of step", "end of turn: completed",
			"turn 3", "claim turn 1", "step 1", "user Second.", "says ok", "end of step", "end of turn: completed")
	})
	row(t, "C4 C16 L33 a message sent while a cancelled turn ends runs by itself", func(t *testing.T) {
		k := talking(t, plays(hangs()))
		k.send("First.")
		synctest.Wait()
		k.cancel(agent.KeepInbox)
		k.send("Second.") // it comes before or behind the end of the first turn
		ended(t, k.end(), "completed")
		k.logsBut("+turn Second.", "+turn First.", "turn 1", "claim turn 1", "step 1", "user First.", "end of step", "end of turn: aborted user",
			"turn 2", "claim turn 1", "step 1", "user Second.", "says ok", "end of step", "end of turn: completed")
	})
	row(t, "C5 a second cancel drops the latched message", func(t *testing.T) {
		k, release := deafTurn(t)
		k.cancel(agent.KeepInbox)
		k.send("Latched.")
		k.cancel()
		close(release)
		ended(t, k.end(), "aborted user")
		k.waiting(nil, nil)
		k.calls(1)
		ended(t, k.say("Later."), "completed")
		k.calls(2)
	})
	row(t, "C6 a steer that is taken back before the cancelled turn has ended wakes nobody", func(t *testing.T) {
		k, release := deafTurn(t)
		k.cancel(agent.KeepInbox)
		id := k.steer("Turn left.")
		m, ok, err := k.Remove(background, id)
		if !ok || err != nil || message.PlainText(m.Content) != "Turn left." {
			t.Errorf("removed %v %v %v", m, ok, err)
		}
		close(release)
		ended(t, k.end(), "aborted user")
		if n := len(eventsOf(k.live.s.Log(), outcrop.TypeTurnStart)); n != 1 {
			t.Errorf("%d turns", n)
		}
	})
	row(t, "C7 a message that comes late in a slow cancel is latched too", func(t *testing.T) {
		k := talking(t, plays(asks("look")), withTools(t, looks(slowToStop)))
		k.send("First.")
		synctest.Wait()
		k.cancel(agent.KeepInbox)
		time.Sleep(10 * time.Millisecond)
		k.send("Second.")
		if out := k.end(); out.Turn != 2 {
			t.Errorf("outcome %+v", out)
		}
	})
	row(t, "C8 R5 nothing is latched while the agent is closed", func(t *testing.T) {
		k := talking(t, plays(asks("look")), withTools(t, looks(slowToStop)))
		k.send("First.")
		synctest.Wait()
		closed := make(chan error)
		go func() { closed <- k.Close(background) }()
		time.Sleep(10 * time.Millisecond)
		if _, err := k.Send(background, said("Second.")); !errors.Is(err, agent.ErrClosed) {
			t.Errorf("send: %v", err)
		}
		if err := <-closed; err != nil {
			t.Error(err)
		}
		k.calls(1)
	})
	row(t, "C9 C11 two sends and a cancel before anything began: one turn without a step, nothing entered", func(t *testing.T) {
		k := talking(t, plays(), func(o *agent.Options) {
			o.Contexts = func(ctx context.Context) []workspace.Context { <-ctx.Done(); return nil }
		})
		k.send("One.")
		k.send("Two.")
		waiter := make(chan agent.Outcome)
		go func() { out, _ := k.Wait(background); waiter <- out }()
		synctest.Wait()
		k.cancel()
		ended(t, <-waiter, "aborted user")
		k.logs("+turn One.", "+turn Two.", "drop turn 2 at 0", "turn 1", "end of turn: aborted user")
		k.calls(0)
	})
	row(t, "C12 whoever hears that the agent is idle may send and cancel: the waiter is told", func(t *testing.T) {
		k := talking(t, plays(says("one"), hangs()))
		k.say("First.")
		k.send("Second.")
		synctest.Wait()
		k.cancel()
		ended(t, k.end(), "aborted user")
		k.calls(2)
		ended(t, k.say("Third."), "completed")
	})
	row(t, "C13 C28 of a send, a cancel and a send the last one survives and runs by itself", func(t *testing.T) {
		k := talking(t, plays(hangs()))
		k.send("A.")
		k.cancel()
		k.send("B.")
		if out := k.end(); out.Reason.Kind != outcrop.Completed {
			t.Errorf("outcome %+v", out)
		}
		got := strings.Join(outline(k.live.s.Log()), "\n")
		if !strings.Contains(got, "user B.") || strings.Count(got, "says ok") != 1 {
			t.Errorf("log:\n%s", got)
		}
		ended(t, k.say("C."), "completed")
	})
	row(t, "C15 T16 a cancel after the reply and before its calls: none runs, each is answered", func(t *testing.T) {
		ran := false
		k := talking(t, plays(asks("look", "look")), withTools(t, looks(func(context.Context, tool.Call) (tool.Result, error) {
			ran = true
			return tool.Text("done"), nil
		})))
		k.live.atFlush(outcrop.TypeAssistantMessage, func() { k.cancel() })
		ended(t, k.say("Look."), "aborted user")
		k.logs("+turn Look.", "turn 1", "claim turn 1", "step 1", "user Look.", "says call c1 | call c2",
			"call c1", "result c1 ABORTED_BEFORE_DISPATCH", "call c2", "result c2 ABORTED_BEFORE_DISPATCH", "end of step", "end of turn: aborted user")
		if ran {
			t.Error("a tool ran")
		}
		k.say("Go on.")
		k.sends(2, "Look.", "call c1 | call c2", "result c1 Error: tool call aborted before dispatch",
			"result c2 Error: tool call aborted before dispatch", "Go on.")
	})
	row(t, "C18 reasoning alone is kept too, with its usage", func(t *testing.T) {
		k := talking(t, plays(hangs(message.Chunk{Type: message.ReasoningDelta, Text: "Hm."},
			message.Chunk{Type: message.UsageChunk, Usage: &message.Usage{InputTokens: 7, OutputTokens: 3}})))
		k.send("Think.")
		synctest.Wait()
		k.cancel()
		k.end()
		k.logs("+turn Think.", "turn 1", "claim turn 1", "step 1", "user Think.", "says Hm. (interrupted)", "end of step", "end of turn: aborted user")
		if d := eventsOf(k.live.s.Log(), outcrop.TypeAssistantMessage)[0]; !strings.Contains(d, `"usage":{"inputTokens":7,"outputTokens":3}`) {
			t.Errorf("usage is missing: %s", d)
		}
	})
	half := message.Chunk{Type: message.ToolCallDelta, Index: 1, ID: "c1", Name: "look", Text: `{"x":"`}
	row(t, "C17 C19 text is kept and sent again, the half call beside it is not", func(t *testing.T) {
		k := talking(t, plays(hangs(delta("Let me look."), half)), withTools(t, looks(nil)))
		k.send("Look.")
		synctest.Wait()
		k.cancel()
		k.end()
		k.logs("+turn Look.", "turn 1", "claim turn 1", "step 1", "user Look.", "says Let me look. (interrupted)", "end of step", "end of turn: aborted user")
		k.say("And?")
		k.sends(2, "Look.", "Let me look.", "And?")
	})
	row(t, "C22 a half call alone leaves no message", func(t *testing.T) {
		k := talking(t, plays(hangs(half)), withTools(t, looks(nil)))
		k.send("Look.")
		synctest.Wait()
		k.cancel()
		k.end()
		k.logs("+turn Look.", "turn 1", "claim turn 1", "step 1", "user Look.", "end of step", "end of turn: aborted user")
	})
	row(t, "C20 E8 E9 Q3 a cancel wins over a hook that wants the request again", func(t *testing.T) {
		var k *talk
		k = talking(t, plays(streams(delta("Half"), finish(message.Errored))), with(onError(func(ctx context.Context, _ agent.Stage, _ *message.Failure) (bool, error) {
			k.cancel()
			<-ctx.Done()
			return true, nil
		})))
		ended(t, k.say("Hi."), "aborted user")
		k.calls(1)
		k.logs("+turn Hi.", "turn 1", "claim turn 1", "step 1", "user Hi.", "end of step", "end of turn: aborted user")
	})
	row(t, "C21 a reply after a failed attempt cites its own chunks alone", func(t *testing.T) {
		again := true
		k := talking(t, plays(streams(delta("Half"), finish(message.Errored)), says("Whole.")), with(onError(func(context.Context, agent.Stage, *message.Failure) (bool, error) {
			again, _ = false, again
			return true, nil
		})))
		ended(t, k.say("Hi."), "completed")
		k.logs("+turn Hi.", "turn 1", "claim turn 1", "step 1", "user Hi.", "says Whole.", "end of step", "end of turn: completed")
	})
	for _, how := range []string{"C23 cancelled", "C24 closed"} {
		row(t, how+" when its step has begun: no call, and the step is closed", func(t *testing.T) {
			k := talking(t, plays())
			k.live.atFlush(outcrop.TypeStepStart, func() {
				if strings.Contains(how, "closed") {
					go k.Close(background)
					time.Sleep(time.Second / 2)
					return
				}
				k.cancel()
			})
			k.send("Hi.")
			synctest.Wait()
			time.Sleep(time.Second)
			kind := map[bool]string{true: "disposed", false: "user"}[strings.Contains(how, "closed")]
			k.logs("+turn Hi.", "turn 1", "claim turn 1", "step 1", "user Hi.", "end of step", "end of turn: aborted "+kind)
			k.calls(0)
		})
	}
	row(t, "C25 cancelled while it asks what else is to be done: one step", func(t *testing.T) {
		var k *talk
		k = talking(t, plays(), with(stopping(func(context.Context, agent.Stage) ([]message.Message, error) {
			k.cancel()
			return []message.Message{said("One more thing.")}, nil
		})))
		ended(t, k.say("Hi."), "aborted user")
		k.calls(1)
		k.waiting(nil, nil)
	})
	row(t, "C29 a steer that came before the cancel goes with it", func(t *testing.T) {
		k := talking(t, plays(hangs()))
		k.send("First.")
		synctest.Wait()
		k.steer("Turn left.")
		k.cancel()
		k.end()
		k.waiting(nil, nil)
		k.logs("+turn First.", "turn 1", "claim turn 1", "step 1", "user First.", "+step Turn left.", "drop step 1 at 0", "end of step", "end of turn: aborted user")
	})
	row(t, "C30 whoever hears of the cancel may send", func(t *testing.T) {
		var k *talk
		k = talking(t, plays(func(ctx context.Context, _ llm.Request, _ func(message.Chunk, error) bool) {
			<-ctx.Done()
			k.send("Then this.")
		}))
		k.send("First.")
		synctest.Wait()
		k.cancel()
		synctest.Wait()
		if out := k.end(); out.Turn != 2 || out.Reason.Kind != outcrop.Completed {
			t.Errorf("outcome %+v", out)
		}
	})
	row(t, "C31 the first cause counts", func(t *testing.T) {
		var cause error
		k := talking(t, plays(func(ctx context.Context, _ llm.Request, _ func(message.Chunk, error) bool) {
			<-ctx.Done()
			cause = context.Cause(ctx)
		}))
		k.send("First.")
		synctest.Wait()
		for _, c := range []agent.CauseKind{agent.ByParent, agent.ByUser} {
			if _, err := k.Cancel(background, agent.Cause{Kind: c}); err != nil {
				t.Error(err)
			}
		}
		ended(t, k.end(), "aborted parent")
		synctest.Wait()
		if cause != (agent.Cause{Kind: agent.ByParent}) {
			t.Errorf("the provider's context ended because of %v", cause)
		}
	})
	row(t, "C32 R26 cancelled by a person and then closed: the person's cause stands", func(t *testing.T) {
		k, release := deafTurn(t)
		k.cancel()
		closed := make(chan error)
		go func() { closed <- k.Close(background) }()
		synctest.Wait()
		close(release)
		if err := <-closed; err != nil {
			t.Error(err)
		}
		if got := outline(k.live.s.Log()); got[len(got)-1] != "end of turn: aborted user" {
			t.Errorf("log ends with %q", got[len(got)-1])
		}
	})
	for _, how := range []string{"C33 R34 R36 cancelled", "R33 R35 R37 E6 closed"} {
		for _, at := range waits {
			row(t, how+" while it waits for "+at.name, func(t *testing.T) {
				closing := strings.HasSuffix(how, "closed")
				k := talking(t, plays(at.answer), withTools(t, looks(at.tool), &fakeTool{name: "edit", class: tool.Edit}), at.change, with(at.hook(t)...))
				k.live.during = func(ctx context.Context) {
					if at.flush && len(eventsOf(k.live.s.Log(), outcrop.TypeStepEnd)) == 0 {
						<-ctx.Done()
					}
				}
				k.send("Go.")
				synctest.Wait()
				begun := time.Now()
				if closing {
					if err := k.Close(background); err != nil {
						t.Error(err)
					}
				} else {
					k.cancel()
					ended(t, k.end(), "aborted user")
				}
				if took := time.Since(begun); took > 0 {
					t.Errorf("it took %v", took)
				}
				got := outline(k.live.s.Log())
				want := map[bool]string{true: "end of turn: aborted disposed", false: "end of turn: aborted user"}[closing]
				if got[len(got)-1] != want {
					t.Errorf("log:\n%s", strings.Join(got, "\n"))
				}
				if !at.called && len(k.model.requests()) > 0 {
					t.Error("a model was called")
				}
			})
		}
	}
	row(t, "C33 a hook that does not listen is left behind after the time of grace", func(t *testing.T) {
		release := make(chan struct{})
		k := talking(t, plays(), with(preStep(func(_ context.Context, st agent.Stage, in []message.Message) ([]message.Message, bool, error) {
			<-release
			// Too late for everything.
			if err := st.Edit(background, func(*outcrop.Session) error { return nil }); !errors.Is(err, agent.ErrBusy) {
				t.Errorf("an edit by a hook that was left behind: %v", err)
			}
			return nil, true, nil
		})))
		k.send("Go.")
		synctest.Wait()
		begun := time.Now()
		k.cancel()
		ended(t, k.end(), "aborted user")
		if took := time.Since(begun); took != 5*time.Second {
			t.Errorf("it took %v", took)
		}
		close(release)
		synctest.Wait()
		k.logs("+turn Go.", "turn 1", "drop turn 1 at 0", "end of turn: aborted user")
	})
}

// deafTurn is a turn whose tool ends when release is closed, whatever its
// context says.
func deafTurn(t *testing.T) (k *talk, release chan struct{}) {
	release = make(chan struct{})
	k = talking(t, plays(asks("look")), withTools(t, looks(func(context.Context, tool.Call) (tool.Result, error) {
		<-release
		return tool.Text("done"), nil
	})))
	k.send("First.")
	synctest.Wait()
	return k, release
}

func slowToStop(ctx context.Context, _ tool.Call) (tool.Result, error) {
	<-ctx.Done()
	time.Sleep(50 * time.Millisecond)
	return tool.Result{}, ctx.Err()
}

// awaiting is one place where a turn waits for something else.
type awaiting struct {
	name   string
	answer answer
	tool   func(ctx context.Context, call tool.Call) (tool.Result, error)
	hook   func(t *testing.T) []any
	change func(*agent.Options)
	called bool // the model was called by then
	flush  bool // it is the disk that it waits for
}

var waits = func() []awaiting {
	none := func(*testing.T) []any { return nil }
	as := func(h any) func(*testing.T) []any { return func(*testing.T) []any { return []any{h} } }
	keep := func(*agent.Options) {}
	quick := func(context.Context, tool.Call) (tool.Result, error) { return tool.Text("done"), nil }
	return []awaiting{
		{"contexts", says("ok"), quick, none, func(o *agent.Options) {
			o.Contexts = func(ctx context.Context) []workspace.Context { <-ctx.Done(); return nil }
		}, false, false},
		{"a contributor", says("ok"), quick, as(contribute(func(ctx context.Context, _ agent.Stage) ([]workspace.Context, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})), keep, false, false},
		{"a pre-step hook", says("ok"), quick, as(preStep(func(ctx context.Context, _ agent.Stage, in []message.Message) ([]message.Message, bool, error) {
			<-ctx.Done()
			return in, false, nil
		})), keep, false, false},
		{"a request hook", says("ok"), quick, as(request(func(ctx context.Context, _ agent.Stage, c llm.Config) (llm.Config, error) {
			<-ctx.Done()
			return c, nil
		})), keep, false, false},
		{"the disk", says("ok"), quick, none, keep, false, true},
		{"the model", hangs(), quick, none, keep, true, false},
		{"a retry", fails(message.CodeServer), quick, none, keep, true, false},
		{"a request-error hook", fails("AUTH"), quick, as(onError(func(ctx context.Context, _ agent.Stage, _ *message.Failure) (bool, error) {
			<-ctx.Done()
			return true, nil
		})), keep, true, false},
		{"a before-tool hook", asks("look"), quick, as(before(func(ctx context.Context, _ agent.Stage, _ tool.Tool, _ tool.Call) (string, error) {
			<-ctx.Done()
			return "", nil
		})), keep, true, false},
		{"a person", asks("edit"), quick, none, func(o *agent.Options) {
			o.Approver = approverFunc(func(ctx context.Context, _ agent.Question) (agent.Answer, error) {
				<-ctx.Done()
				return agent.Answer{}, ctx.Err()
			})
		}, true, false},
		{"a tool", asks("look"), untilCancel, none, keep, true, false},
		{"an after-tool hook", asks("look"), quick, as(after(func(ctx context.Context, _ agent.Stage, _ tool.Call, out tool.Outcome) (tool.Outcome, []message.Message, error) {
			<-ctx.Done()
			return out, nil, nil
		})), keep, true, false},
		{"a stopping hook", says("ok"), quick, as(stopping(func(ctx context.Context, _ agent.Stage) ([]message.Message, error) {
			<-ctx.Done()
			return nil, nil
		})), keep, true, false},
	}
}()

// A real error that comes while the turn is cancelled does not change how the
// turn ends, and is not lost.
func TestAnErrorBehindACancelIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		k := talking(t, plays(), logsTo(&log), with(preStep(func(ctx context.Context, _ agent.Stage, _ []message.Message) ([]message.Message, bool, error) {
			<-ctx.Done()
			return nil, false, fmt.Errorf("the disk is on fire")
		})))
		k.send("Go.")
		synctest.Wait()
		k.cancel()
		ended(t, k.end(), "aborted user")
		if !strings.Contains(log.String(), "the disk is on fire") {
			t.Errorf("the log has %q", log.String())
		}
	})
}
