package exchange_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/exchange"
	"github.com/outcrop-dev/outcrop/exchange/codex"
	"github.com/outcrop-dev/outcrop/exchange/exchangetest"
	"github.com/outcrop-dev/outcrop/message"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/memory"
)

const thread = "0199aaaa-bbbb-7ccc-8ddd-eeeeeeeeeeee"

// rollout is a file of Codex with so many lines.
func rollout(lines int) string {
	all := []string{
		`"type":"session_meta","payload":{"id":"` + thread + `","timestamp":"2026-03-01T10:00:00.000Z","cwd":"/home/ada/calc","cli_version":"0.80.0"}`,
		`"type":"turn_context","payload":{"model":"gpt-a"}`,
		`"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"one"}]}`,
		`"type":"response_item","payload":{"type":"function_call","name":"shell","arguments":"{}","call_id":"c1"}`,
		`"type":"response_item","payload":{"type":"function_call_output","call_id":"c1","output":"out"}`,
		`"type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"1"}]}`,
		`"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"two"}]}`,
		`"type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"2"}]}`,
		`"type":"event_msg","payload":{"type":"task_complete"}`,
		`"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"three"}]}`,
		`"type":"compacted","payload":{"message":"SHORT"}`,
		`"type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"3"}]}`,
	}
	var b strings.Builder
	for n, l := range all[:lines] {
		fmt.Fprintf(&b, "{\"timestamp\":\"2026-03-01T10:00:%02d.000Z\",%s}\n", n, l)
	}
	return b.String()
}

const rolloutLines = 12

func put(t testing.TB, dir, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "rollout-2026-03-01T10-00-00-"+thread+".jsonl"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// one is the outcome of an import of one session.
func one(t testing.TB, reports []*exchange.Report) exchange.Outcome {
	t.Helper()
	if len(reports) != 1 || len(reports[0].Sessions) != 1 || reports[0].Err != nil {
		t.Fatalf("%d reports: %+v", len(reports), reports[0])
	}
	return reports[0].Sessions[0]
}

// TestASourceThatGrewIsGoneOnWith imports a file at each of its lengths, and
// then at each greater one: the session goes on when what was there is a
// beginning of what is, and nothing of the history is missing at the end.
func TestASourceThatGrewIsGoneOnWith(t *testing.T) {
	goneOn := 0
	for first := 3; first < rolloutLines; first++ {
		for second := first + 1; second <= rolloutLines; second++ {
			dir := t.TempDir()
			put(t, dir, rollout(first))
			in := exchangetest.Import(t, codex.Format(), dir)
			before := exchangetest.Dump(t, in.Store, thread)
			put(t, dir, rollout(second))
			o := one(t, in.Again(t, codex.Format(), dir))
			exchangetest.Check(t, in.Store, o.ID)
			switch o.Verdict {
			case exchange.Continued:
				goneOn++
				after := exchangetest.Dump(t, in.Store, thread)
				if o.ID != thread || !strings.HasPrefix(after, before) {
					t.Errorf("%d then %d lines: what was stored changed", first, second)
				}
			case exchange.Copied:
				if exchangetest.Dump(t, in.Store, thread) != before {
					t.Errorf("%d then %d lines: what was stored changed", first, second)
				}
			case exchange.Present:
			default:
				t.Errorf("%d then %d lines: %s %s", first, second, o.Verdict, o.Why)
			}
			texts := exchangetest.Texts(t, in.Store, o.ID)
			for line, want := range map[int]string{6: `"1"`, 8: `"2"`, 12: `"3"`} {
				if second >= line && second < 11 && !strings.Contains(texts, want) || second >= 12 && line == 12 && !strings.Contains(texts, want) {
					t.Errorf("%d then %d lines: %s is missing:\n%s", first, second, want, texts)
				}
			}
			if o := one(t, in.Again(t, codex.Format(), dir)); o.Verdict != exchange.Present {
				t.Errorf("%d then %d lines, again: %s %s", first, second, o.Verdict, o.Why)
			}
		}
	}
	if goneOn < 30 {
		t.Errorf("only %d times the session was gone on with", goneOn)
	}
}

// TestASourceThatIsBeingWrittenIsNeverCopied imports a file at each of its
// lengths while the program is at work on it: what may not be complete is left,
// so that the session is gone on with each time, and at last it is what one
// import of the finished file makes, but for the marks.
func TestASourceThatIsBeingWrittenIsNeverCopied(t *testing.T) {
	dir := t.TempDir()
	in := exchangetest.Imported{Store: memory.New(), Now: time.Now}
	for lines := 3; lines <= rolloutLines+1; lines++ {
		if lines > rolloutLines {
			in.Now = nil // it was finished long ago
		}
		put(t, dir, rollout(min(lines, rolloutLines)))
		for range 2 {
			o := one(t, in.Again(t, codex.Format(), dir))
			if o.Verdict == exchange.Copied || o.ID != thread {
				t.Fatalf("%d lines: %s %s", lines, o.Verdict, o.Why)
			}
			exchangetest.Check(t, in.Store, thread)
		}
	}
	whole := exchangetest.Import(t, codex.Format(), dir)
	if got, want := exchangetest.Texts(t, in.Store, thread), exchangetest.Texts(t, whole.Store, thread); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if dump := exchangetest.Dump(t, in.Store, thread); strings.Contains(dump, "No result") || strings.Contains(dump, "came too late") {
		t.Errorf("a result was missed:\n%s", dump)
	}
}

// TestASessionThatWentOnIsNotTouched goes on in the session itself before the
// source grows.
func TestASessionThatWentOnIsNotTouched(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, rollout(6))
	in := exchangetest.Import(t, codex.Format(), dir)
	live, err := store.Open(context.Background(), in.Store, thread, store.Options{Session: outcrop.Options{NewID: func() string { return "x" }}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := live.Session().Append(outcrop.SessionTitle{Title: "mine", MessageSeqs: []outcrop.Seq{}, Source: "user"}); err != nil {
		t.Fatal(err)
	}
	if err := live.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	before := exchangetest.Dump(t, in.Store, thread)
	for _, lines := range []int{6, 9, 12} {
		put(t, dir, rollout(lines))
		o := one(t, in.Again(t, codex.Format(), dir))
		switch {
		case lines == 6 && (o.Verdict != exchange.Copied || o.ID == thread || !strings.Contains(o.Why, "went on after event")):
			t.Errorf("%d lines: %+v", lines, o)
		case lines > 6 && o.Verdict != exchange.Continued:
			t.Errorf("%d lines: %+v", lines, o)
		}
		exchangetest.Check(t, in.Store, o.ID)
		if exchangetest.Dump(t, in.Store, thread) != before {
			t.Fatalf("%d lines: the session was touched", lines)
		}
	}
}

func TestADryRunStoresNothing(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, rollout(rolloutLines))
	in := exchangetest.Imported{}
	full := exchangetest.Import(t, codex.Format(), dir)
	im := &exchange.Importer{Store: full.Store, DryRun: true, Cwd: strings.ToUpper}
	for src, err := range exchange.Find(context.Background(), []exchange.Format{codex.Format()}, dir, "") {
		if err != nil {
			t.Fatal(err)
		}
		r, err := im.Import(context.Background(), src)
		if err != nil {
			t.Fatal(err)
		}
		in.Reports = append(in.Reports, r)
	}
	if o := one(t, in.Reports); o.Verdict != exchange.Present {
		t.Errorf("%+v", o)
	}
	list, err := full.Store.List(context.Background(), store.ListOptions{})
	if err != nil || len(list) != 1 {
		t.Errorf("%d sessions, %v", len(list), err)
	}
}

func TestIdsAreThoseOfTheProgramWhereTheyCanBe(t *testing.T) {
	for _, c := range []struct{ source, want string }{
		{thread, thread},
		{"ses_6f2a9c8d7e1b4a5f", "ses_6f2a9c8d7e1b4a5f"},
		{"short", exchange.DerivedID("p", "short")},
		{thread + "/agent-1", exchange.DerivedID("p", thread+"/agent-1")},
		{"..............................", exchange.DerivedID("p", "..............................")},
		{"", exchange.DerivedID("p", "")},
	} {
		if got := exchange.IDFor("p", c.source); got != c.want {
			t.Errorf("%q: %q, want %q", c.source, got, c.want)
		}
	}
	if a, b := exchange.DerivedID("ab", "c"), exchange.DerivedID("a", "bc"); a == b || len(a) != 36 {
		t.Errorf("%q %q", a, b)
	}
}

func TestAFormatMayGiveItsHistoryInAnyOrder(t *testing.T) {
	s := &exchange.Session{Program: "p", Source: "s", CreatedAt: 5, Feed: func(b *exchange.Builder) error {
		for _, step := range []func() error{
			func() error { return b.Result(exchange.Result{CallID: "none"}) },
			func() error { return b.Compact(exchange.Compaction{Summary: []message.Block{message.Text("S")}}) },
			func() error { return b.Rewind(0, 3) },
			func() error { return b.EndTurn(0, outcrop.TurnReason{Kind: outcrop.Completed}) },
			func() error { return b.Reply(exchange.Reply{Content: []message.Block{message.ToolCall("", "", "")}}) },
			func() error { return b.Prompt(exchange.Prompt{}) },
			func() error { return b.Prompt(exchange.Prompt{}) },
		} {
			if err := step(); err != nil {
				return err
			}
		}
		return nil
	}}
	ctx := context.Background()
	h, err := s.Header(ctx, exchange.Options{})
	if err != nil {
		t.Fatal(err)
	}
	restored, err := outcrop.Restore(h, s.Records(ctx, h, exchange.Options{}), outcrop.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(restored.Messages()); n != 5 {
		t.Errorf("%d messages", n)
	}
}
