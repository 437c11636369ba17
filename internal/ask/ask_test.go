package ask_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/outcrop-dev/outcrop/agent"
	"github.com/outcrop-dev/outcrop/internal/ask"
	"github.com/outcrop-dev/outcrop/tool"
)

func terminal(in io.Reader, out io.Writer) *ask.Terminal {
	return ask.New(ask.Options{In: in, Out: out, Shown: func(context.Context, string) {}, Fresh: func() {}})
}

func TestOnlyAYesAllows(t *testing.T) {
	for _, c := range []struct {
		name, typed string
		want        agent.Answer
	}{
		{"y allows once", "y\n", agent.Answer{Verdict: agent.AllowOnce}},
		{"so does YES without a newline", "YES", agent.Answer{Verdict: agent.AllowOnce}},
		{"a allows the same call", "a\n", agent.Answer{Verdict: agent.AllowSame}},
		{"enter alone means no", "\n", agent.Answer{Verdict: agent.Reject}},
		{"the end of the input means no", "", agent.Answer{Verdict: agent.Reject}},
		{"e gives a reason", "e\n not now \n", agent.Answer{Verdict: agent.Reject, Reason: "not now"}},
		{"anything else is asked again", "what\nyeah\ny\n", agent.Answer{Verdict: agent.AllowOnce}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := terminal(strings.NewReader(c.typed), io.Discard).Approve(t.Context(), agent.Question{Tool: "shell"})
			if err != nil || got != c.want {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}

func TestAQuestionShowsEverythingAndSteersNothing(t *testing.T) {
	var out strings.Builder
	body := strings.Repeat("+ a line\n", 30) + "last \x1b[2J\u202e"
	q := agent.Question{Tool: "write", Preview: tool.Preview{Title: "a.txt", Dir: "/w", Body: body}}
	if _, err := terminal(strings.NewReader("n\n"), &out).Approve(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	got := out.String()
	if n := strings.Count(got, "| + a line\n"); n != 30 {
		t.Errorf("%d lines of 30", n)
	}
	if !strings.Contains(got, `| last \e[2J\u{202e}`) || strings.ContainsAny(got, "\x1b\u202e") {
		t.Errorf("%q", got)
	}
	if strings.Count(got, "allow write? a.txt\n") != 2 {
		t.Errorf("the question is not repeated below a long diff:\n%s", got)
	}
}

func TestAnInterruptEndsAQuestion(t *testing.T) {
	r, w := io.Pipe()
	defer w.Close()
	ctx, cancel := context.WithCancel(t.Context())
	a := ask.New(ask.Options{In: r, Out: io.Discard, Shown: func(context.Context, string) {}, Fresh: func() {}})
	done := make(chan error)
	go func() {
		_, err := a.Approve(ctx, agent.Question{Tool: "shell"})
		done <- err
	}()
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
