package claudecode_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/exchange"
	"github.com/outcrop-dev/outcrop/exchange/claudecode"
	"github.com/outcrop-dev/outcrop/exchange/exchangetest"
)

// seed is the type of the last inherited event of a session.
func seed(t *testing.T, s *outcrop.Session) outcrop.Type {
	t.Helper()
	h := s.Header()
	if h.SeedLength == nil || h.ParentSession == nil {
		t.Fatalf("no seed: %s", h.Line())
	}
	return s.Log().At(outcrop.Seq(*h.SeedLength - 1)).Type
}

func TestABranchBeginsWithTheEventsThatItShares(t *testing.T) {
	dir := t.TempDir()
	file(t, dir, session+".jsonl",
		user(1, 0, `"one"`),
		assistant(2, 1, "m1", use("t1")),
		assistant(3, 2, "m1", use("t2")),
		user(4, 2, gives("t1")),
		user(5, 3, gives("t2")),
		assistant(6, 5, "m2", text("1")),
		user(7, 6, `"two"`), // the way that was left
		assistant(8, 7, "m3", text("2")),
		user(9, 8, `"three"`), // and one that was left on it
		assistant(10, 9, "m4", text("3")),
		user(11, 8, `"drei"`),
		assistant(12, 11, "m5", text("III")),
		user(13, 6, `"deux"`),
		assistant(14, 13, "m6", text("II")),
	)
	in := exchangetest.Import(t, claudecode.Format(), dir)
	all := in.Sessions()
	if len(all) != 3 {
		t.Fatalf("%d sessions", len(all))
	}
	main := exchangetest.Session(t, in.Store, session)
	for k, o := range all[1:] {
		s := exchangetest.Session(t, in.Store, o.ID)
		parent := main
		if k == 1 {
			parent = exchangetest.Session(t, in.Store, all[1].ID)
		}
		if got := *s.Header().ParentSession; got != parent.ID() || o.Parent != got {
			t.Errorf("%s: parent %s, want %s", o.Source, got, parent.ID())
		}
		if got := seed(t, s); got != outcrop.TypeAssistantMessage {
			t.Errorf("%s: the seed ends with %s", o.Source, got)
		}
		for seq := outcrop.Seq(0); seq < outcrop.Seq(*s.Header().SeedLength); seq++ {
			if a, b := string(s.Log().At(seq).Line()), string(parent.Log().At(seq).Line()); a != b {
				t.Fatalf("%s: event %d is not the parent's:\n%s\n%s", o.Source, seq, a, b)
			}
		}
	}
	texts := exchangetest.Texts(t, in.Store, all[1].ID) + exchangetest.Texts(t, in.Store, all[2].ID)
	for _, want := range []string{`"III"`, `"3"`, `"two"`} {
		if !strings.Contains(texts, want) {
			t.Errorf("%s is missing:\n%s", want, texts)
		}
	}
	if strings.Contains(texts, `"deux"`) {
		t.Errorf("a branch goes on in the conversation:\n%s", texts)
	}
}

// TestManyBranchesCostNoMoreThanTheirText imports files of 3,000 branches: each on
// the one before, and all on one message.
func TestManyBranchesCostNoMoreThanTheirText(t *testing.T) {
	const n = 3000
	for name, parent := range map[string]func(k int) int{
		"a chain": func(k int) int { return max(k-k%2-1, 0) },
		"a fan":   func(k int) int { return min(k-1, 1) },
	} {
		var b strings.Builder
		for k := 1; k <= n; k++ {
			l := user(k, parent(k), `"p"`)
			l = strings.ReplaceAll(l, fmt.Sprintf(`"@%d"`, k), `"2026-03-01T10:00:00Z"`)
			if p := parent(k); p > 0 {
				l = strings.ReplaceAll(l, fmt.Sprintf(`"parentUuid":"#%d"`, p), `"parentUuid":"`+id(p)+`"`)
			}
			b.WriteString(strings.ReplaceAll(l, fmt.Sprintf(`"uuid":"#%d"`, k), `"uuid":"`+id(k)+`"`) + "\n")
		}
		ctx := context.Background()
		sessions, events := 0, 0
		for s, err := range claudecode.Read(ctx, strings.NewReader(b.String()), "x.jsonl", nil) {
			if err != nil {
				t.Fatal(err)
			}
			h, err := s.Header(ctx, exchange.Options{})
			if err != nil {
				t.Fatal(err)
			}
			sessions++
			for _, err := range s.Records(ctx, h, exchange.Options{}) {
				if err != nil {
					t.Fatal(err)
				}
				events++
			}
		}
		if sessions < n/3 || events > 80*n {
			t.Errorf("%s: %d sessions with %d events", name, sessions, events)
		}
	}
}

func TestWhatAForkCopiedIsInherited(t *testing.T) {
	const parent = "99999999-2222-4333-8444-555555555555"
	for name, lines := range map[string][]string{
		"with marks": {
			user(1, 0, `"one"`, `"forkedFrom":{"sessionId":"`+parent+`","messageUuid":"#1"}`),
			assistant(2, 1, "m1", text("1"), `"forkedFrom":{"sessionId":"`+parent+`","messageUuid":"#2"}`),
			user(3, 2, `"two"`), assistant(4, 3, "m2", text("2")),
		},
		"under the id of the parent, as older versions do": {
			strings.Replace(user(1, 0, `"one"`), session, parent, 1),
			strings.Replace(assistant(2, 1, "m1", text("1")), session, parent, 1),
			user(3, 2, `"two"`), assistant(4, 3, "m2", text("2")),
		},
	} {
		dir := t.TempDir()
		file(t, dir, session+".jsonl", lines...)
		in := exchangetest.Import(t, claudecode.Format(), dir)
		s := exchangetest.Session(t, in.Store, session)
		if got := seed(t, s); got != outcrop.TypeAssistantMessage || *s.Header().ParentSession != parent {
			t.Errorf("%s: the seed of %s ends with %s", name, *s.Header().ParentSession, got)
		}
		if len(s.Messages()) != 4 {
			t.Errorf("%s: %d messages", name, len(s.Messages()))
		}
	}
}

func TestAnAgentsFileIsASubagentsSession(t *testing.T) {
	dir := t.TempDir()
	agent := `"agentId":"a1b2c3d4"`
	file(t, dir, session+"/subagents/agent-a1b2c3d4.jsonl",
		side(user(1, 0, `"dig"`, agent)), side(assistant(2, 1, "s1", text("found"), agent)))
	file(t, dir, session+".jsonl", user(1, 0, `"one"`), assistant(2, 1, "m1", text("1")))
	// A line of a sidechain in a session's own file makes it no agent's.
	const other = "88888888-2222-4333-8444-555555555555"
	file(t, dir, other+".jsonl", strings.ReplaceAll(user(1, 0, `"one"`), session, other), strings.ReplaceAll(assistant(2, 1, "m1", text("1")), session, other),
		strings.ReplaceAll(side(user(3, 0, `"dig"`, agent)), session, other))
	in := exchangetest.Import(t, claudecode.Format(), dir)
	if h := exchangetest.Session(t, in.Store, other).Header(); h.Origin != "" || h.ParentSession != nil {
		t.Errorf("header %s", h.Line())
	}
	id := exchange.IDFor(claudecode.Name, session+"/agent-a1b2c3d4")
	h := exchangetest.Session(t, in.Store, id).Header()
	if h.ParentSession == nil || *h.ParentSession != session || h.Origin != "subagent" || h.DelegationDepth != 1 || h.SeedLength != nil {
		t.Errorf("header %s", h.Line())
	}
	if got, want := exchangetest.Texts(t, in.Store, id), "user: \"dig\"\nmodel: \"found\"\n"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestThinkingGoesBackWithItsSignature(t *testing.T) {
	dir := t.TempDir()
	file(t, dir, session+".jsonl", user(1, 0, `"2+2?"`),
		assistant(2, 1, "m1", think("easy")), assistant(3, 2, "m1", `{"type":"redacted_thinking","data":"secret"}`), assistant(4, 3, "m1", text("4")))
	in := exchangetest.Import(t, claudecode.Format(), dir)
	dump := exchangetest.Dump(t, in.Store, session)
	for _, want := range []string{
		`"replayState":{"anthropic":1,"blocks":[{"signature":"sig-easy"},{"redacted":"secret"},null]}`,
		`"usage":{"inputTokens":10,"outputTokens":4,"cacheReadTokens":7,"cacheWriteTokens":3}`,
		`"provider":"anthropic","model":"claude-a-1"`,
	} {
		if !strings.Contains(dump, want) {
			t.Errorf("%s is missing:\n%s", want, dump)
		}
	}
}
