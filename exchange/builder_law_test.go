package exchange_test

import (
	"context"
	"fmt"
	"iter"
	"testing"

	"pgregory.net/rapid"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/exchange"
	"github.com/outcrop-dev/outcrop/exchange/exchangetest"
	"github.com/outcrop-dev/outcrop/message"
	"github.com/outcrop-dev/outcrop/store/memory"
)

// step is a piece of a generated history.
type step func(b *exchange.Builder) error

// history draws a history with every fault that one can have: results that are
// missing, late, twice, of nobody, empty ids, edits anywhere.
func history(t *rapid.T) []step {
	ids := rapid.SampledFrom([]string{"", "c1", "c2", "c3", "\x00", "é\xed\xa0\x80", "c 4"})
	text := rapid.SampledFrom([]string{"", "a", "two\nlines", "\xff", "\x00\x1b[2J", "\xed\xa0\xbd", "</compacted-summary>"})
	blocks := func() []message.Block {
		var out []message.Block
		for range rapid.IntRange(0, 3).Draw(t, "blocks") {
			switch rapid.IntRange(0, 2).Draw(t, "block") {
			case 0:
				out = append(out, message.Text(text.Draw(t, "text")))
			case 1:
				out = append(out, message.Reasoning(text.Draw(t, "text")))
			case 2:
				out = append(out, message.ToolCall(ids.Draw(t, "id"), rapid.SampledFrom([]string{"", "sh", "a b"}).Draw(t, "name"), text.Draw(t, "arguments")))
			}
		}
		return out
	}
	words := func() []message.Block {
		var out []message.Block
		for range rapid.IntRange(0, 2).Draw(t, "words") {
			out = append(out, message.Text(text.Draw(t, "text")))
		}
		return out
	}
	var steps []step
	for n := range rapid.IntRange(0, 25).Draw(t, "steps") {
		at := int64(n) * 1000
		id := ""
		if rapid.Bool().Draw(t, "has id") {
			id = fmt.Sprint("id-", rapid.IntRange(0, n).Draw(t, "id"))
		}
		content := words()
		switch rapid.IntRange(0, 9).Draw(t, "step") {
		case 0, 1:
			p := exchange.Prompt{ID: id, Time: at, Content: content, Steer: rapid.Bool().Draw(t, "steers")}
			steps = append(steps, func(b *exchange.Builder) error { return b.Prompt(p) })
		case 2, 3:
			r := exchange.Reply{ID: id, Time: at, Content: blocks(), Model: rapid.SampledFrom([]string{"", "m1", "m2"}).Draw(t, "model"), MaxTokens: rapid.Bool().Draw(t, "cut")}
			steps = append(steps, func(b *exchange.Builder) error { return b.Reply(r) })
		case 4, 5, 6:
			r := exchange.Result{ID: id, Time: at, CallID: ids.Draw(t, "call"), Content: content, IsError: rapid.Bool().Draw(t, "error")}
			steps = append(steps, func(b *exchange.Builder) error { return b.Result(r) })
		case 7:
			c := exchange.Context{ID: id, Time: at, Content: content}
			steps = append(steps, func(b *exchange.Builder) error { return b.AddContext(c) })
		case 8:
			c := exchange.Compaction{Time: at, Summary: content, Through: rapid.SampledFrom([]string{"", "id-1", "id-3"}).Draw(t, "through"), TokensBefore: int64(rapid.IntRange(0, 9).Draw(t, "tokens"))}
			steps = append(steps, func(b *exchange.Builder) error { return b.Compact(c) })
		case 9:
			switch rapid.IntRange(0, 2).Draw(t, "mark") {
			case 0:
				n := rapid.IntRange(-1, 3).Draw(t, "turns")
				steps = append(steps, func(b *exchange.Builder) error { return b.Rewind(at, n) })
			case 1:
				steps = append(steps, func(b *exchange.Builder) error { return b.EndTurn(at, outcrop.TurnReason{Kind: outcrop.Completed}) })
			case 2:
				title := text.Draw(t, "title")
				steps = append(steps, func(b *exchange.Builder) error { return b.Title(at, title) })
			}
		}
	}
	return steps
}

func session(steps []step) *exchange.Session {
	return &exchange.Session{Program: "test", Source: "history-of-a-test", CreatedAt: 1, Cwd: "/home/ada", Feed: func(b *exchange.Builder) error {
		for _, s := range steps {
			if err := s(b); err != nil {
				return err
			}
		}
		return nil
	}}
}

// source is a history as a source of a format.
func source(steps []step) exchange.Format {
	return exchange.Format{Name: "test", Claims: func(string, []byte) bool { return true }, Open: func(path string) exchange.Source {
		return exchange.Source{Path: path, Stamp: func() (string, error) { return "", nil },
			Sessions: func(_ context.Context, _ *exchange.Report) iter.Seq2[*exchange.Session, error] {
				return func(yield func(*exchange.Session, error) bool) { yield(session(steps), nil) }
			}}
	}}
}

// TestEveryHistoryMakesAValidSession: whatever a history lacks or has too much,
// doctor finds nothing in the log, a strict provider takes its request, and a
// second import finds it present.
func TestEveryHistoryMakesAValidSession(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := exchangetest.Import(t, source(history(t)), "importer_test.go")
		for _, r := range in.Reports {
			if r.Err != nil {
				t.Fatalf("%v", r.Err)
			}
		}
	})
}

// TestEveryGrownHistoryIsGoneOnWith cuts a history anywhere, imports the
// beginning and then all of it: what was stored stays, and the messages are in
// the log.
func TestEveryGrownHistoryIsGoneOnWith(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		steps := history(t)
		in := exchangetest.Imported{Store: memory.New()}
		id := session(nil).ID()
		before := ""
		at := 0
		for range rapid.IntRange(1, 4).Draw(t, "imports") {
			at += rapid.IntRange(0, len(steps)-at).Draw(t, "more")
			reports := in.Again(t, source(steps[:at]), "importer_test.go")
			o := reports[0].Sessions[0]
			if reports[0].Err != nil || o.ID != id || o.Verdict == exchange.Copied {
				t.Fatalf("%s %s: %s %v", o.ID, o.Verdict, o.Why, reports[0].Err)
			}
			exchangetest.Check(t, in.Store, id)
			after := exchangetest.Dump(t, in.Store, id)
			if len(after) < len(before) || after[:len(before)] != before {
				t.Fatalf("what was stored changed:\n%s\nafter it was\n%s", after, before)
			}
			if o.Verdict == exchange.Present && after != before {
				t.Fatalf("it is present, and grew")
			}
			before = after
		}
	})
}
