package chat

import (
	"strings"
	"testing"
	"time"

	"github.com/outcrop-dev/outcrop/agent"
	"github.com/outcrop-dev/outcrop/internal/chat/tty"
)

// asking is a model with a draft and a question on the screen, half a second
// after the last key, and what its keys come to.
func asking(t *testing.T, draft string) (m *model, press func(...tty.Key) []any) {
	t.Helper()
	m = screenOf(80, 24, calling, `approval/asked {"id":"q","callId":"c1"}`)
	now := time.UnixMilli(1000)
	m.edit.Set(draft)
	m.update(now, askMsg{&question{Question: agent.Question{ID: "q", Tool: "shell", Arguments: "{}"}, answer: make(chan agent.Answer, 1)}})
	now = now.Add(settle)
	m.update(now, tickMsg{})
	if m.question == nil || !m.question.shown {
		t.Fatal("the question takes no keys")
	}
	return m, func(keys ...tty.Key) (effects []any) {
		for _, k := range keys {
			now = now.Add(time.Second)
			m.update(now, tickMsg{})
			effects = append(effects, m.update(now, keyMsg{k})...)
		}
		return effects
	}
}

func letters(s string) (keys []tty.Key) {
	for _, r := range s {
		keys = append(keys, tty.Key{Name: tty.Text, Text: string(r)})
	}
	return keys
}

func live(m *model) string { return strings.Join(m.view().Lines, "\n") }

var enter, tab = tty.Key{Name: tty.Enter}, tty.Key{Name: tty.Tab}

func TestTheLettersOfADraftDoNotAnswerAQuestion(t *testing.T) {
	for _, arm := range []tty.Key{tab, enter} {
		m, press := asking(t, "add ")
		if got := live(m); !strings.Contains(got, drafting) || !strings.Contains(got, "> add ") || strings.Contains(got, "[y] once") {
			t.Errorf("the screen is\n%s", got)
		}
		if effects := press(letters("yane")...); len(effects) != 0 || m.question == nil || m.edit.Text() != "add yane" {
			t.Fatalf("typing came to %+v, the draft is %q", effects, m.edit.Text())
		}
		if effects := press(arm); len(effects) != 0 || m.question == nil || m.edit.Text() != "add yane" {
			t.Fatalf("%v came to %+v, the draft is %q", arm.Name, effects, m.edit.Text())
		}
		if got := live(m); !strings.Contains(got, "[y] once") {
			t.Errorf("the screen is\n%s", got)
		}
		effects := press(letters("y")...)
		if a, ok := only(effects).(answerEffect); !ok || a.answer.Verdict != agent.AllowOnce || m.edit.Text() != "add yane" {
			t.Errorf("y came to %+v, the draft is %q", effects, m.edit.Text())
		}
	}
}

func TestADraftThatIsTakenAwayLeavesAPauseBeforeAnAnswer(t *testing.T) {
	m, press := asking(t, "y")
	press(tty.Key{Name: tty.Ctrl, Text: "u"})
	if effects := m.update(m.now, keyMsg{letters("y")[0]}); len(effects) != 0 || m.edit.Text() != "y" {
		t.Errorf("%+v, the draft is %q", effects, m.edit.Text())
	}
}

func TestOnlyEnterConfirmsAnAnswerForTheSession(t *testing.T) {
	for _, c := range []struct {
		name string
		keys []tty.Key
		want any // the verdict, nil for none
	}{
		{"a alone", letters("a"), nil},
		{"a and another letter", letters("ad"), nil},
		{"a twice", letters("aa"), nil},
		{"a and y", letters("ay"), nil},
		{"a and Enter", append(letters("a"), enter), agent.AllowSame},
		{"a, back, and Enter", append(letters("ax"), enter), agent.Reject},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, press := asking(t, "")
			var got any
			if a, ok := only(press(c.keys...)).(answerEffect); ok {
				got = a.answer.Verdict
			}
			if got != c.want || (m.question == nil) != (c.want != nil) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
	m, press := asking(t, "")
	press(letters("a")...)
	if got := live(m); !strings.Contains(got, confirming[:40]) {
		t.Errorf("the screen is\n%s", got)
	}
}

// only is the one effect that there is, nil when there is another number.
func only(effects []any) any {
	if len(effects) != 1 {
		return nil
	}
	return effects[0]
}

func TestAnUnknownActionLeavesTheInputAndCanBeBroughtBack(t *testing.T) {
	m := screenOf(60, 24)
	m.edit.Set("/hlep")
	effects := m.update(m.now, keyMsg{enter})
	if r, ok := only(effects).(rememberEffect); !ok || r.entry != "/hlep" || !m.edit.Empty() || !strings.Contains(m.hint, "did you mean /help?") {
		t.Errorf("%+v, the input holds %q, the hint is %q", effects, m.edit.Text(), m.hint)
	}
}
