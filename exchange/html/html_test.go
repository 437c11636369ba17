package html_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	nethtml "golang.org/x/net/html"
	"pgregory.net/rapid"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/exchange/html"
	"github.com/outcrop-dev/outcrop/exchange/transcript"
	"github.com/outcrop-dev/outcrop/internal/genlog"
	"github.com/outcrop-dev/outcrop/message"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/jsonl"
	"github.com/outcrop-dev/outcrop/store/memory"
)

// session is one turn in which everything says text.
func session(t testing.TB, texts ...string) transcript.Source {
	t.Helper()
	ctx := context.Background()
	text := func(i int) string { return texts[i%len(texts)] }
	ids := 0
	s, err := outcrop.New(outcrop.NewHeader("s1", 1_800_000_000_000, "/home/dev/notes"),
		outcrop.Options{Now: func() int64 { return 1_800_000_000_000 }, NewID: func() string { ids++; return fmt.Sprint("m", ids) }})
	if err != nil {
		t.Fatal(err)
	}
	st := memory.New()
	picture, err := st.Objects().Put(ctx, []byte("\x89PNG\r\n\x1a\nnot much of one"))
	if err != nil {
		t.Fatal(err)
	}
	must := func(ev outcrop.Event, err error) outcrop.Event {
		if err != nil {
			t.Fatal(err)
		}
		return ev
	}
	must(s.Append(outcrop.SessionTitle{Title: text(0)}))
	must(s.Append(outcrop.TurnStart{Turn: 1}))
	must(s.Append(outcrop.StepStart{Turn: 1, Step: 1}))
	must(s.AppendSurface(outcrop.UserMessage{Message: message.Message{Role: message.User, Source: message.FromUser, Content: []message.Block{
		message.Text(text(1)), {Type: message.ImageBlock, Attachment: []byte(`{"attachmentId":"` + picture + `","name":"a\"><b>.png"}`)}}}}, outcrop.Tail, outcrop.NoSources))
	must(s.AppendSurface(outcrop.AssistantMessage{Turn: 1, Step: 1, Message: message.Message{Role: message.Assistant, Source: message.FromModel("p", "m"),
		Content: []message.Block{message.Reasoning(text(2)), message.Text(text(3)), message.ToolCall("c1", "t"+text(4), text(4))}}}, outcrop.Tail, outcrop.SourcesOf()))
	call := must(s.Append(outcrop.ToolCall{Turn: 1, Step: 1, CallID: "c1", Name: "t", Arguments: text(4)}))
	must(s.AppendSurface(outcrop.NewToolResult(1, 1, "c1", true, message.Text(text(5))), outcrop.Tail, outcrop.SourcesOf(call.Seq)))
	put(t, st, s.Header(), func(yield func(outcrop.Record, error) bool) {
		for r := range s.Log().Records(0) {
			if !yield(r, nil) {
				return
			}
		}
	})
	return transcript.Stored(st, "s1")
}

func put(t testing.TB, st store.Store, h outcrop.Header, recs func(func(outcrop.Record, error) bool)) {
	t.Helper()
	if err := st.Put(context.Background(), h, recs); err != nil {
		t.Fatal(err)
	}
}

func write(t testing.TB, src transcript.Source, o html.Options) string {
	t.Helper()
	var out bytes.Buffer
	if _, err := html.Write(context.Background(), &out, src, o); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// allowed are the elements of a page with their attributes.
var allowed = map[string][]string{
	"html": {"lang"}, "head": {}, "meta": {"charset", "http-equiv", "content", "name"}, "title": {}, "style": {}, "body": {}, "script": {},
	"header": {"class"}, "footer": {}, "main": {}, "nav": {"class", "aria-label"}, "dl": {"class"}, "dt": {}, "dd": {}, "time": {"datetime"},
	"div": {"class", "role", "hidden"}, "input": {"id", "type", "placeholder", "aria-label"}, "button": {"id", "title"}, "output": {"id", "aria-live"},
	"details": {"class", "id", "open"}, "summary": {}, "article": {"class", "id"}, "span": {"class"}, "p": {"class"}, "img": {"alt", "loading", "src"},
	"dialog": {"id"}, "kbd": {}, "b": {}, "a": {"href", "rel", "target"}, "code": {"class"}, "ol": {"start"},
	"h1": {}, "h2": {}, "h3": {}, "h4": {}, "h5": {}, "h6": {}, "blockquote": {}, "ul": {}, "li": {}, "table": {}, "thead": {}, "tbody": {}, "tr": {}, "th": {}, "td": {},
	"em": {}, "strong": {}, "del": {}, "pre": {}, "hr": {}, "br": {},
}

// check parses a page and reports what it should not have.
func check(page string) (count map[string]int, fault string) {
	doc, err := nethtml.Parse(strings.NewReader(page))
	if err != nil {
		return nil, err.Error()
	}
	count = map[string]int{}
	for n := range doc.Descendants() {
		if n.Type == nethtml.CommentNode {
			return count, "a comment"
		}
		if n.Type != nethtml.ElementNode {
			continue
		}
		count[n.Data]++
		attrs, ok := allowed[n.Data]
		if !ok {
			return count, "the element " + n.Data
		}
		for _, a := range n.Attr {
			if !slices.Contains(attrs, a.Key) {
				return count, n.Data + " has " + a.Key
			}
			switch a.Key {
			case "href":
				if !strings.HasPrefix(a.Val, "#") && !strings.HasPrefix(a.Val, "http:") && !strings.HasPrefix(a.Val, "https:") && !strings.HasPrefix(a.Val, "mailto:") {
					return count, "a link to " + a.Val
				}
			case "src":
				if !strings.HasPrefix(a.Val, "data:image/png;base64,") {
					return count, "an image from " + a.Val
				}
			case "id":
				count["#"+a.Val]++
			}
		}
	}
	for name, n := range count {
		if strings.HasPrefix(name, "#") && n > 1 {
			return count, "twice the id " + name
		}
	}
	return count, ""
}

// TestNoMessageBecomesMarkup writes messages of pieces that mean something to
// HTML or Markdown: the page has its own elements and those of Markdown.
func TestNoMessageBecomesMarkup(t *testing.T) {
	pieces := []string{"<script>alert(1)</script>", "</details>", "</article>", "</main>", "<!-- ", "-->", "<!doctype html>", "```", "~~~", "`", "\n", "\n\n", "\n    ", "- ", "1. ", "> ",
		"# a", "===", "---", "\\", "<", ">", "&lt;script&gt;", "&#60;script>", "|", "\n| a | b |\n|---|---|\n| c | d |\n", "[a](javascript:x)", "[a](data:text/html,x)", "![i](http://x/y)",
		"![](x \"y\")", "<https://a.b>", "https://a.b/<x>", "text", "<svg onload=x>", "<style>*{}</style>", "</script>", "</style>", "<img src=x onerror=y>", "\x1b[2J", "\u202e", "\x00", "\"><b>", "'onclick='", "id=q",
		"<a id=q name=said>", "<base href=//x>", "<meta http-equiv=refresh content=0>", "```html\n", "```\"><b>\n", "[^1]", "*", "**", "~~", "<plaintext>", "<textarea>", "<![CDATA["}
	rapid.Check(t, func(rt *rapid.T) {
		var texts []string
		for i := range 6 {
			texts = append(texts, strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 1, 8).Draw(rt, fmt.Sprint("text", i)), ""))
		}
		page := write(t, session(t, texts...), html.Options{})
		count, fault := check(page)
		if fault != "" {
			rt.Fatalf("%s in\n%s", fault, page[strings.Index(page, "<main>"):strings.Index(page, "<footer>")])
		}
		if count["script"] != 1 || count["style"] != 1 || count["article"] != 2 || count["main"] != 1 || count["details"] < 2 || count["details"] > 3 {
			rt.Fatalf("%v in\n%s", count, page[strings.Index(page, "<main>"):strings.Index(page, "<footer>")])
		}
	})
}

// TestThePolicyAllowsWhatThePageHas compares the digests in the policy with the
// style and the script of the page.
func TestThePolicyAllowsWhatThePageHas(t *testing.T) {
	page := write(t, session(t, "hello"), html.Options{})
	for _, name := range []string{"style", "script"} {
		_, rest, _ := strings.Cut(page, "<"+name+">")
		body, _, _ := strings.Cut(rest, "</"+name+">")
		sum := sha256.Sum256([]byte(body))
		if want := name + "-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"; !strings.Contains(page, want) {
			t.Errorf("the policy lacks %s", want)
		}
	}
	if !strings.Contains(page, "default-src 'none'") || strings.Contains(strings.ToLower(page), "unsafe-") {
		t.Error("the policy lets too much through")
	}
}

func TestAPageHasWhatTheSessionHas(t *testing.T) {
	st, err := jsonl.File(filepath.Join("..", "..", "internal", "cli", "testdata", "sample.jsonl"), jsonl.Options{})
	if err != nil {
		t.Fatal(err)
	}
	page := write(t, transcript.Stored(st, ""), html.Options{Cut: 200})
	if _, fault := check(page); fault != "" {
		t.Error(fault)
	}
	for _, want := range []string{
		"<title>Read notes.txt and tell me what matters.</title>",
		`<dt>model</dt><dd>deepseek:deepseek-chat</dd>`,
		`<details class="turn" id="t1" open><summary><h2>Turn 1</h2>`,
		`<code>read</code> <span class="what">notes.txt</span> <span class="size">621 bytes</span>`,
		`bytes left out]</span>`,
		`Because the others \e[31mrepeat it.`,
		`<summary>History was edited, compacted: nodes 19 to 33, now 60</summary>`,
		`<li><a href="#t2"><b>2</b><span>Why line 7?</span></a></li>`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
}

func TestHTMLInAMessageIsShown(t *testing.T) {
	page := write(t, session(t, "<script>alert(1)</script>", "use <b>this</b>\n\n<div>\nlike that\n</div>"), html.Options{})
	for _, want := range []string{"&lt;script&gt;alert(1)&lt;/script&gt;", "use &lt;b&gt;this&lt;/b&gt;", "&lt;div&gt;\nlike that\n&lt;/div&gt;"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
}

// TestALongSessionIsFolded: of many turns only the first and the last are open.
func TestALongSessionIsFolded(t *testing.T) {
	st := memory.New()
	put(t, st, genlog.Header(2), func(yield func(outcrop.Record, error) bool) {
		for r := range genlog.Records(2, 10_000) {
			if !yield(r, nil) {
				return
			}
		}
	})
	page := write(t, transcript.Stored(st, genlog.Header(2).ID), html.Options{})
	turns, open := strings.Count(page, `<details class="turn"`), strings.Count(page, ` open><summary><h2>Turn`)
	if turns < 80 || open != 11 || strings.Count(page, "<li><a href=\"#t") != turns {
		t.Errorf("%d turns, %d open", turns, open)
	}
}

// FuzzMessage gives a message any text.
func FuzzMessage(f *testing.F) {
	for _, s := range []string{"hello", "# a\n\n- b\n  > c", "<script>", "[a](javascript:b)", "![a](b)", strings.Repeat("> ", 60), strings.Repeat("[", 2000), "```\n<", "| a |\n|---|\n| <b> |", "a\x00\xff\u202e"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if _, fault := check(write(t, session(t, s), html.Options{Options: transcript.Options{Raw: true}})); fault != "" {
			t.Fatal(fault)
		}
	})
}

// ExampleWrite writes the page of a log file.
func ExampleWrite() {
	st, _ := jsonl.File(filepath.Join("..", "..", "internal", "cli", "testdata", "sample.jsonl"), jsonl.Options{})
	dir, _ := os.MkdirTemp("", "page")
	defer os.RemoveAll(dir)
	f, _ := os.Create(filepath.Join(dir, "session.html"))
	defer f.Close()
	t, err := html.Write(context.Background(), f, transcript.Stored(st, ""), html.Options{})
	fmt.Println(t.Turns, t.Messages, t.Masked(), err)
	// Output: 3 9 0 <nil>
}
