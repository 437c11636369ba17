package markdown_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	gmhtml "github.com/yuin/goldmark/renderer/html"
	"golang.org/x/net/html"
	"pgregory.net/rapid"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/exchange/markdown"
	"github.com/outcrop-dev/outcrop/exchange/transcript"
	"github.com/outcrop-dev/outcrop/internal/genlog"
	"github.com/outcrop-dev/outcrop/message"
	"github.com/outcrop-dev/outcrop/store/jsonl"
	"github.com/outcrop-dev/outcrop/store/memory"
)

var update = flag.Bool("update", false, "write golden files anew")

// session puts messages into a session of a store in memory, each prompt in a
// turn of its own.
func session(t testing.TB, fill func(s *outcrop.Session)) transcript.Source {
	t.Helper()
	h := outcrop.NewHeader("s1", 1_800_000_000_000, "/home/dev/notes")
	now := int64(1_800_000_000_000)
	ids := 0
	s, err := outcrop.New(h, outcrop.Options{Now: func() int64 { now += 1000; return now }, NewID: func() string { ids++; return fmt.Sprintf("m%d", ids) }})
	if err != nil {
		t.Fatal(err)
	}
	fill(s)
	st := memory.New()
	if err := st.Put(context.Background(), h, func(yield func(outcrop.Record, error) bool) {
		for r := range s.Log().Records(0) {
			if !yield(r, nil) {
				return
			}
		}
	}); err != nil {
		t.Fatal(err)
	}
	return transcript.Stored(st, "s1")
}

func prompt(t testing.TB, s *outcrop.Session, text string) {
	t.Helper()
	if _, err := s.AppendSurface(outcrop.UserMessage{Message: message.Message{Role: message.User, Content: []message.Block{message.Text(text)}, Source: message.FromUser}}, outcrop.Tail, outcrop.NoSources); err != nil {
		t.Fatal(err)
	}
}

func reply(t testing.TB, s *outcrop.Session, blocks ...message.Block) {
	t.Helper()
	if _, err := s.AppendSurface(outcrop.AssistantMessage{Turn: 1, Step: 1, Message: message.Message{Role: message.Assistant, Content: blocks, Source: message.FromModel("p", "m")}}, outcrop.Tail, outcrop.SourcesOf()); err != nil {
		t.Fatal(err)
	}
}

func write(t testing.TB, src transcript.Source, o markdown.Options) string {
	t.Helper()
	var out bytes.Buffer
	if _, err := markdown.Write(context.Background(), &out, src, o); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestADocumentIsWhatItWas(t *testing.T) {
	st, err := jsonl.File(filepath.Join("..", "..", "internal", "cli", "testdata", "sample.jsonl"), jsonl.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		o    markdown.Options
	}{
		{"sample", markdown.Options{}},
		{"turn2", markdown.Options{Options: transcript.Options{FirstTurn: 2, LastTurn: 2}, Cut: 100}},
	} {
		got := write(t, transcript.Stored(st, ""), c.o)
		golden := filepath.Join("testdata", c.name+".md")
		if *update {
			if err := os.MkdirAll("testdata", 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got); diff != "" {
			t.Errorf("%s: -want +got\n%s", c.name, diff)
		}
	}
}

// elements renders a document as a page that takes raw HTML does, and counts
// what it has.
func elements(t testing.TB, doc string) map[string]int {
	t.Helper()
	var page bytes.Buffer
	if err := goldmark.New(goldmark.WithExtensions(extension.GFM), goldmark.WithRendererOptions(gmhtml.WithUnsafe())).Convert([]byte(doc), &page); err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	z := html.NewTokenizer(&page)
	for {
		switch z.Next() {
		case html.ErrorToken:
			return count
		case html.StartTagToken, html.SelfClosingTagToken:
			name, more := z.TagName()
			count[string(name)]++
			for more {
				var k []byte
				k, _, more = z.TagAttr()
				count["@"+string(k)]++
			}
		case html.EndTagToken:
			name, _ := z.TagName()
			count["/"+string(name)]++
		case html.CommentToken:
			count["!"]++
		}
	}
}

// TestNoMessageLeavesItsPlace writes messages made of pieces that mean
// something to Markdown or HTML. Whatever they are, the document has the folds
// and turns that it should have, and no element that a message brought.
func TestNoMessageLeavesItsPlace(t *testing.T) {
	pieces := []string{"<script>alert(1)</script>", "</details>", "<details open>", "<!-- ", "-->", "```", "~~~", "````", "`", "``", "\n", "\n\n", "\n    ", "\n  ", "- ", "1. ", "> ",
		"# a", "## Turn 99", "===", "---", "\\", "<", ">", "<b", " onclick=x", "&lt;", "&#60;script>", "|", "\n| a | b |\n|---|---|\n", "[a](javascript:x)", "![i](http://x/y)", "<https://a.b>",
		"text", "<![CDATA[", "<?php", "\x1b[2J", "\u202e", "\r", "\t", "[^1]", "[a]: <x", "*", "**", "_", "<img src=x onerror=y>", "```js\n", "</summary>", "</code>", "<pre>", "$$"}
	rapid.Check(t, func(rt *rapid.T) {
		text := func(name string) string {
			return strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 1, 12).Draw(rt, name), "")
		}
		said, thought, args, result := text("said"), text("thought"), text("args"), text("result")
		src := session(t, func(s *outcrop.Session) {
			s.Append(outcrop.TurnStart{Turn: 1})
			s.Append(outcrop.StepStart{Turn: 1, Step: 1})
			prompt(t, s, said)
			reply(t, s, message.Reasoning("x"+thought), message.Text("x"+said), message.ToolCall("c1", "t"+args, args))
			call, _ := s.Append(outcrop.ToolCall{Turn: 1, Step: 1, CallID: "c1", Name: "t", Arguments: args})
			if _, err := s.AppendSurface(outcrop.NewToolResult(1, 1, "c1", false, message.Text(result)), outcrop.Tail, outcrop.SourcesOf(call.Seq)); err != nil {
				t.Fatal(err)
			}
			prompt(t, s, "end")
		})
		doc := write(t, src, markdown.Options{})
		got := elements(t, doc)
		for name, n := range got {
			switch name {
			case "script", "@onclick", "@onerror", "b", "!", "@open":
				rt.Fatalf("%d of %s in\n%s", n, name, doc)
			}
		}
		if got["details"] != 2 || got["/details"] != 2 || got["summary"] != 2 || got["h1"] != 1 || got["h2"] != 1 || got["h3"] != 3 {
			rt.Fatalf("%v in\n%s", got, doc)
		}
		for _, c := range doc {
			if c < 0x20 && c != '\n' && c != '\t' || c == 0x202e {
				rt.Fatalf("a control character is left in\n%q", doc)
			}
		}
	})
}

func TestALongLogIsWritten(t *testing.T) {
	st := memory.New()
	if err := st.Put(t.Context(), genlog.Header(2), func(yield func(outcrop.Record, error) bool) {
		for r := range genlog.Records(2, 20_000) {
			if !yield(r, nil) {
				return
			}
		}
	}); err != nil {
		t.Fatal(err)
	}
	doc := write(t, transcript.Stored(st, genlog.Header(2).ID), markdown.Options{})
	turns := strings.Count(doc, "\n## Turn ")
	if turns < 100 || strings.Count(doc, "\n### User") != turns {
		t.Errorf("%d turns, %d prompts", turns, strings.Count(doc, "\n### User"))
	}
}

// ExampleWrite writes a session of a store.
func ExampleWrite() {
	ctx := context.Background()
	s, _ := outcrop.New(outcrop.NewHeader("s1", 1_800_000_000_000, ""), outcrop.Options{Now: func() int64 { return 1_800_000_000_000 }, NewID: func() string { return "m" }})
	s.Append(outcrop.TurnStart{Turn: 1})
	s.AppendSurface(outcrop.UserMessage{Message: message.Message{Role: message.User, Content: []message.Block{message.Text("My key is ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a")}, Source: message.FromUser}}, outcrop.Tail, outcrop.NoSources)
	st := memory.New()
	st.Put(ctx, s.Header(), func(yield func(outcrop.Record, error) bool) {
		for r := range s.Log().Records(0) {
			yield(r, nil)
		}
	})
	t, err := markdown.Write(ctx, os.Stdout, transcript.Stored(st, "s1"), markdown.Options{})
	fmt.Println(t.Masked(), err)
	// Output:
	// # My key is \[masked:token\]
	//
	// | | |
	// |---|---|
	// | session | `s1` |
	// | time | 2027-01-15 08:00:00Z |
	// | size | 1 turn, 1 message, 2 events |
	//
	// ## Turn 1
	//
	// ### User
	//
	// My key is [masked:token]
	//
	// *The last turn is open.*
	//
	// ---
	//
	// Exported by outcrop. 1 place that looked like a secret masked.
	// 1 <nil>
}
