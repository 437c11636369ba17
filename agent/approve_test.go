package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/agent"
	"github.com/outcrop-dev/outcrop/message"
	"github.com/outcrop-dev/outcrop/tool"
)

func always(ans agent.Answer, err error) approverFunc {
	return func(context.Context, agent.Question) (agent.Answer, error) { return ans, err }
}

type decided struct {
	Asked   []string // toolName reason
	Decided []string
	Results []string // text of each result
	Codes   []string
	Ran     int
}

func decisions(t *testing.T, log outcrop.Log) (d decided) {
	t.Helper()
	for ev := range outcrop.Events(log, 0) {
		var v struct {
			ToolName, Reason, Outcome string
			Error                     *struct{ Name, Code string }
			Message                   message.Message
		}
		switch ev.Type {
		case outcrop.TypeApprovalAsked, outcrop.TypeApprovalDecided, outcrop.TypeToolResult:
			if err := json.Unmarshal(ev.Data, &v); err != nil {
				t.Fatal(err)
			}
		}
		switch ev.Type {
		case outcrop.TypeApprovalAsked:
			d.Asked = append(d.Asked, strings.TrimSpace(v.ToolName+" "+v.Reason))
		case outcrop.TypeApprovalDecided:
			d.Decided = append(d.Decided, v.Outcome)
		case outcrop.TypeToolResult:
			d.Results = append(d.Results, message.PlainText(v.Message.Content))
			code := ""
			if v.Error != nil {
				code = v.Error.Name + " " + v.Error.Code
			}
			d.Codes = append(d.Codes, code)
		}
	}
	return d
}

const (
	notApproved = "ApprovalError NOT_APPROVED"
	nobody      = "Error: not approved: nobody to ask (run with --approve edits or --yes)"
)

func TestApproval(t *testing.T) {
	for _, c := range []struct {
		name     string
		policy   agent.Policy
		approver agent.Approver
		calls    []string // tools
		want     decided
		never    bool // approval/policy never is logged
	}{
		{"reading never asks", agent.AskAll, nil, []string{"look"}, decided{Results: []string{"done"}, Codes: []string{""}, Ran: 1}, false},
		{"allowed once", agent.AskAll, always(agent.Answer{Verdict: agent.AllowOnce}, nil), []string{"edit", "exec"},
			decided{Asked: []string{"edit", "exec"}, Decided: []string{"allowed-once", "allowed-once"}, Results: []string{"done", "done"}, Codes: []string{"", ""}, Ran: 2}, false},
		{"the same call again is remembered", agent.AskAll, always(agent.Answer{Verdict: agent.AllowSame}, nil), []string{"edit", "edit"},
			decided{Asked: []string{"edit"}, Decided: []string{"allowed-once"}, Results: []string{"done", "done"}, Codes: []string{"", ""}, Ran: 2}, false},
		{"rejected", agent.AskAll, always(agent.Answer{}, nil), []string{"edit"},
			decided{Asked: []string{"edit"}, Decided: []string{"rejected"}, Results: []string{"Error: not approved by the user"}, Codes: []string{notApproved}}, false},
		{"rejected with a reason", agent.AskAll, always(agent.Answer{Reason: "use git"}, nil), []string{"exec"},
			decided{Asked: []string{"exec"}, Decided: []string{"rejected"}, Results: []string{"Error: not approved by the user: use git"}, Codes: []string{notApproved}}, false},
		{"nobody to ask", agent.AskAll, nil, []string{"edit"},
			decided{Asked: []string{"edit"}, Decided: []string{"unavailable"}, Results: []string{nobody}, Codes: []string{notApproved}}, false},
		{"the approver says that it cannot ask", agent.AskAll, always(agent.Answer{}, agent.ErrUnavailable), []string{"edit"},
			decided{Asked: []string{"edit"}, Decided: []string{"unavailable"}, Results: []string{nobody}, Codes: []string{notApproved}}, false},
		{"the approver fails", agent.AskAll, always(agent.Answer{Verdict: agent.AllowOnce}, errors.New("terminal is gone")), []string{"edit"},
			decided{Asked: []string{"edit"}, Decided: []string{"unavailable"}, Results: []string{nobody}, Codes: []string{notApproved}}, false},
		{"edits do not ask, the rest does", agent.AskExec, nil, []string{"edit", "exec"},
			decided{Asked: []string{"exec"}, Decided: []string{"unavailable"}, Results: []string{"done", "Error: not approved: nobody to ask (run with --yes)"}, Codes: []string{"", notApproved}, Ran: 1}, false},
		{"all is allowed", agent.AllowAll, nil, []string{"edit", "exec"},
			decided{Results: []string{"done", "done"}, Codes: []string{"", ""}, Ran: 2}, true},
		{"nothing but reading", agent.AllowRead, always(agent.Answer{Verdict: agent.AllowOnce}, nil), []string{"look", "edit"},
			decided{Asked: []string{"edit the approval policy is none"}, Decided: []string{"rejected"},
				Results: []string{"done", "Error: not approved by the user: the approval policy is none"}, Codes: []string{"", notApproved}, Ran: 1}, false},
		{"a call that would fail is not asked about", agent.AskAll, always(agent.Answer{Verdict: agent.AllowOnce}, nil), []string{"stale"},
			decided{Results: []string{"Error: it changed"}, Codes: []string{"FileError CHANGED"}}, false},
		{"a call of an edit tool that counts as exec asks under edits", agent.AskExec, always(agent.Answer{}, nil), []string{"hook", "edit"},
			decided{Asked: []string{"hook"}, Decided: []string{"rejected"}, Results: []string{"Error: not approved by the user", "done"}, Codes: []string{notApproved, ""}, Ran: 1}, false},
		{"so does one whose class cannot be told", agent.AskExec, always(agent.Answer{}, nil), []string{"odd"},
			decided{Asked: []string{"odd"}, Decided: []string{"rejected"}, Results: []string{"Error: not approved by the user"}, Codes: []string{notApproved}}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				live := newLive(t, ownHeader(), outcrop.Options{})
				ran := 0
				run := func(context.Context, tool.Call) (tool.Result, error) {
					ran++
					return tool.Text("done"), nil
				}
				tools := withTools(t, &fakeTool{name: "look", class: tool.Read, run: run}, &fakeTool{name: "edit", class: tool.Edit, run: run},
					&fakeTool{name: "exec", class: tool.Exec, run: run}, &staleTool{fakeTool{name: "stale", class: tool.Edit, run: run}},
					&classedTool{fakeTool{name: "hook", class: tool.Edit, run: run}, func() tool.Class { return tool.Exec }},
					&classedTool{fakeTool{name: "odd", class: tool.Edit, run: run}, func() tool.Class { panic("odd") }})
				var calls []string
				for _, name := range c.calls {
					calls = append(calls, fmt.Sprintf(`{"name":%q,"args":{}}`, name))
				}
				a := start(t, live, scripted(t, `{"tools":[`+strings.Join(calls, ",")+`]}`, `{"text":"ok"}`), tools,
					func(o *agent.Options) { o.Policy, o.Approver = c.policy, c.approver })
				ask(t, a, "Go.")
				got := decisions(t, live.s.Log())
				got.Ran = ran
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Errorf("(-want +got): %s", diff)
				}
				if never := strings.Join(eventsOf(live.s.Log(), outcrop.TypeApprovalPolicy), ""); (never == `{"policy":"never"}`) != c.never || !c.never && never != "" {
					t.Errorf("policy %q", never)
				}
				check(t, live.s.Log())
			})
		})
	}
}

// classedTool is a tool that tells the class of each call.
type classedTool struct {
	fakeTool
	of func() tool.Class
}

func (c *classedTool) ClassOf(tool.Call) tool.Class { return c.of() }

// staleTool is a tool whose preview finds that the call would fail.
type staleTool struct{ fakeTool }

func (s *staleTool) Preview(context.Context, tool.Call) (tool.Preview, error) {
	return tool.Preview{}, &tool.Error{Name: "FileError", Code: "CHANGED", Msg: "it changed"}
}

func TestThreeRefusalsInARowEndTheTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		live := newLive(t, ownHeader(), outcrop.Options{})
		a := start(t, live, scripted(t,
			`{"tools":[{"name":"edit","args":{}},{"name":"look","args":{}},{"name":"edit","args":{}}]}`,
			`{"tools":[{"name":"edit","args":{"x":"1"}},{"name":"edit","args":{"x":"2"}},{"name":"look","args":{}}]}`,
			`{"text":"never reached"}`),
			withTools(t, &fakeTool{name: "edit", class: tool.Edit}, &fakeTool{name: "look", class: tool.Read}),
			func(o *agent.Options) { o.Approver = always(agent.Answer{}, nil) })
		out := ask(t, a, "Go.")
		if out.Reason.Kind != outcrop.TurnAborted || out.Reason.Abort != (outcrop.AbortReason{Kind: "hook", Reason: "3 calls refused"}) {
			t.Errorf("outcome %+v", out)
		}
		got := decisions(t, live.s.Log())
		want := []string{notApproved, "", notApproved, notApproved, notApproved, "AbortError ABORTED_BEFORE_DISPATCH"}
		if diff := cmp.Diff(want, got.Codes); diff != "" {
			t.Errorf("(-want +got): %s", diff)
		}
		check(t, live.s.Log())
	})
}

func TestApprovedParallelCallsRunWhileTheNextIsAskedAbout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		live := newLive(t, ownHeader(), outcrop.Options{})
		answer := make(chan agent.Answer)
		started, questions := 0, 0
		second := make(chan struct{}) // the second question is asked
		a := start(t, live, scripted(t,
			`{"tools":[{"name":"web","args":{"x":"1"}},{"name":"web","args":{"x":"2"}}]}`, `{"text":"ok"}`),
			withTools(t, &fakeTool{name: "web", class: tool.Exec, parallel: true, run: func(context.Context, tool.Call) (tool.Result, error) {
				started++
				<-second
				return tool.Text("page"), nil
			}}),
			func(o *agent.Options) {
				o.Approver = approverFunc(func(context.Context, agent.Question) (agent.Answer, error) {
					if questions++; questions == 2 {
						close(second)
					}
					return <-answer, nil
				})
			})
		send(t, a, "Go.")
		synctest.Wait()
		if questions != 1 || started != 0 {
			t.Errorf("%d questions, %d started", questions, started)
		}
		answer <- agent.Answer{Verdict: agent.AllowOnce}
		synctest.Wait()
		if questions != 2 || started != 1 {
			t.Errorf("%d questions, %d started", questions, started)
		}
		if got := len(eventsOf(live.s.Log(), outcrop.TypeToolResult)); got != 1 {
			t.Errorf("%d results while the second call waits", got)
		}
		answer <- agent.Answer{Verdict: agent.AllowOnce}
		wait(t, a)
		golden(t, "approval_parallel", live.s.Log())
	})
}

func TestCancelWhileAPersonIsAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		live := newLive(t, ownHeader(), outcrop.Options{})
		a := start(t, live, scripted(t, `{"tools":[{"name":"edit","args":{}},{"name":"edit","args":{}}]}`),
			withTools(t, &fakeTool{name: "edit", class: tool.Edit}),
			func(o *agent.Options) {
				o.Approver = approverFunc(func(ctx context.Context, _ agent.Question) (agent.Answer, error) {
					<-ctx.Done()
					return agent.Answer{}, ctx.Err()
				})
			})
		send(t, a, "Go.")
		synctest.Wait()
		if st := a.Status(); st.Phase != agent.Asking || st.Tool != "edit" {
			t.Errorf("status %+v", st)
		}
		if _, err := a.Cancel(background, agent.Cause{Kind: agent.ByUser}); err != nil {
			t.Fatal(err)
		}
		wait(t, a)
		got := decisions(t, live.s.Log())
		want := decided{Asked: []string{"edit"}, Decided: []string{"cancelled"},
			Results: []string{"Error: tool call aborted before dispatch", "Error: tool call aborted before dispatch"},
			Codes:   []string{"AbortError ABORTED_BEFORE_DISPATCH", "AbortError ABORTED_BEFORE_DISPATCH"}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got): %s", diff)
		}
		check(t, live.s.Log())
	})
}

func TestThePolicyIsLoggedWhenItChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		live := newLive(t, ownHeader(), outcrop.Options{})
		for _, p := range []agent.Policy{agent.AskAll, agent.AllowAll, agent.AllowAll, agent.AskExec, agent.AllowRead} {
			a := start(t, live, scripted(t, `{"text":"ok"}`), func(o *agent.Options) { o.Policy = p })
			ask(t, a, "Go.")
			stop(t, a)
		}
		want := []string{`{"policy":"never"}`, `{"policy":"ask"}`}
		if diff := cmp.Diff(want, eventsOf(live.s.Log(), outcrop.TypeApprovalPolicy)); diff != "" {
			t.Errorf("(-want +got): %s", diff)
		}
	})
}
