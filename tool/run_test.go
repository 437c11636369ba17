package tool_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/outcrop-dev/outcrop/message"
	"github.com/outcrop-dev/outcrop/tool"
)

// limitedTool is a tool with a time limit.
type limitedTool struct {
	tool.Tool
	limit time.Duration
}

func (l limitedTool) Timeout() time.Duration { return l.limit }

func runLimited(t *testing.T, ctx context.Context, limit time.Duration, run func(context.Context) (tool.Result, error)) (out tool.Outcome, took time.Duration) {
	t.Helper()
	tl := limitedTool{greeter(t, func(ctx context.Context, _ greetArgs) (tool.Result, error) { return run(ctx) }), limit}
	r := registry(t, tool.Options{}, tl)
	_, call, bad := r.Check("c1", "greet", `{"name":"Ada"}`)
	if bad != nil {
		t.Fatal(bad)
	}
	begin := time.Now()
	out = r.Run(ctx, tl, call)
	return out, time.Since(begin)
}

func TestATimeLimitEndsACallWithOneOutcome(t *testing.T) {
	never := make(chan struct{})
	for _, c := range []struct {
		name   string
		limit  time.Duration
		cancel time.Duration // 0: never
		run    func(context.Context) (tool.Result, error)
		code   string
		text   string
		took   time.Duration
	}{
		{"in time", time.Minute, 0, func(context.Context) (tool.Result, error) {
			time.Sleep(59 * time.Second)
			return tool.Text("done"), nil
		}, "", "done", 59 * time.Second},
		{"too late and stops", time.Minute, 0, func(ctx context.Context) (tool.Result, error) {
			<-ctx.Done()
			return tool.Result{}, fmt.Errorf("asking: %w", ctx.Err())
		}, "TOOL_TIMEOUT", `Error: tool "greet" did not end within 1m0s; it may have been done in part`, time.Minute},
		{"a value that comes just behind the limit counts", time.Minute, 0, func(context.Context) (tool.Result, error) {
			time.Sleep(61 * time.Second)
			return tool.Text("done"), nil
		}, "", "done", 61 * time.Second},
		{"too late and does not stop", time.Minute, 0, func(context.Context) (tool.Result, error) {
			<-never
			return tool.Text("late"), nil
		}, "TOOL_TIMEOUT", `Error: tool "greet" did not end within 1m0s; it may have been done in part`, time.Minute + tool.StopGrace},
		{"its own error at the limit", time.Minute, 0, func(ctx context.Context) (tool.Result, error) {
			<-ctx.Done()
			return tool.Result{}, errors.New("no answer")
		}, "", "Error: no answer", time.Minute},
		{"cancelled before the limit", time.Minute, time.Second, func(ctx context.Context) (tool.Result, error) {
			<-ctx.Done()
			return tool.Result{}, ctx.Err()
		}, "ABORTED", "Error: tool call aborted", time.Second},
		{"cancelled and does not stop", time.Minute, time.Second, func(context.Context) (tool.Result, error) {
			<-never
			return tool.Result{}, nil
		}, "ABORTED", "Error: tool call aborted", time.Second + tool.StopGrace},
		{"panics", time.Minute, 0, func(context.Context) (tool.Result, error) { panic("oh no") }, "TOOL_PANIC", `Error: tool "greet" panicked: oh no`, 0},
		{"no limit", 0, 0, func(ctx context.Context) (tool.Result, error) {
			_, limited := ctx.Deadline()
			return tool.Text(fmt.Sprint(limited)), nil
		}, "", "false", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				never = make(chan struct{})
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				if c.cancel > 0 {
					time.AfterFunc(c.cancel, cancel)
				}
				out, took := runLimited(t, ctx, c.limit, c.run)
				close(never) // what was given up ends, and its value goes nowhere
				code := ""
				if out.Err != nil {
					code = out.Err.Code
				}
				if text := message.PlainText(out.Content); text != c.text || code != c.code || took != c.took {
					t.Errorf("%q %s after %s, want %q %s after %s", text, code, took, c.text, c.code, c.took)
				}
			})
		})
	}
}

func TestAResultCanEndTheTurn(t *testing.T) {
	for _, c := range []struct {
		name string
		res  tool.Result
		err  error
		want bool
	}{
		{"success", tool.Result{EndTurn: true}, nil, true},
		{"a failure that the tool tells", tool.Result{EndTurn: true, IsError: true}, nil, true},
		{"not asked for", tool.Text("x"), nil, false},
		{"an error", tool.Result{EndTurn: true}, errors.New("no luck"), false},
	} {
		r := registry(t, tool.Options{Inline: 10}, greeter(t, func(context.Context, greetArgs) (tool.Result, error) { return c.res, c.err }))
		tl, call, bad := r.Check("c1", "greet", `{"name":"Ada"}`)
		if bad != nil {
			t.Fatal(bad)
		}
		if out := r.Run(context.Background(), tl, call); out.EndTurn != c.want {
			t.Errorf("%s: %v", c.name, out.EndTurn)
		}
	}
}

// Every beginning of good arguments is said to be cut off, and none is run.
func TestEveryBeginningOfArgumentsIsCutOff(t *testing.T) {
	r := registry(t, tool.Options{}, greeter(t, hello))
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom([]string{`"Ada"`, `"\u00e9"`, `"a\"b"`, `true`, `null`, `-1.5e+3`, `{"a":[1,{}]}`, `"é"`}).Draw(t, "name")
		whole := ` {"name": ` + name + ` , "times":3}`
		n := rapid.IntRange(2, len(whole)-1).Draw(t, "bytes")
		_, _, err := r.Check("c1", "greet", whole[:n])
		if err == nil || err.Code != "INVALID_ARGS" || !strings.Contains(err.Msg, "arguments were cut off, nothing was run") {
			t.Fatalf("%q: %v", whole[:n], err)
		}
	})
}
