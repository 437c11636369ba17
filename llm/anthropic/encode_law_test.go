package anthropic

import (
	"bytes"
	"io"
	"net/http"
	"testing"

	"pgregory.net/rapid"

	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/llm/internal/drawn"
	"github.com/outcrop-dev/outcrop/llm/llmtest"
	"github.com/outcrop-dev/outcrop/message"
)

// signed is the replay state of a reply whose thinking the strict server takes
// back.
func signed(content []message.Block) []byte {
	dst := []byte(`{"anthropic":1,"blocks":[`)
	for i, b := range content {
		if i > 0 {
			dst = append(dst, ',')
		}
		if b.Type != message.ReasoningBlock {
			dst = append(dst, "null"...)
			continue
		}
		dst = append(jsonwire.AppendStringMember(append(dst, '{'), "signature", llmtest.Sign(b.Text)), '}')
	}
	return append(dst, "]}"...)
}

func drawRequest(t *rapid.T, l *drawn.Log, images bool) llm.Request {
	req := llm.Request{
		Config: llm.Config{Provider: "p", Model: "m", ReasoningEffort: rapid.SampledFrom([]string{"", "off", "low", "max"}).Draw(t, "effort"),
			MaxTokens: rapid.SampledFrom([]int64{0, 1, 5000}).Draw(t, "limit")},
		System:   rapid.SampledFrom([]string{"be brief", "", " "}).Draw(t, "system"),
		Messages: llm.Build(l.Nodes), Images: images, Objects: l.Objects,
		MaxOutput: rapid.SampledFrom([]int64{0, 1024, 100_000}).Draw(t, "left"),
	}
	if rapid.Bool().Draw(t, "warm") {
		warm := 0.5
		req.Config.Temperature = &warm
	}
	if rapid.Bool().Draw(t, "tools") {
		req.Tools = []llm.Tool{{Name: "read"}, {Name: "write", Description: "Writes.", Parameters: []byte(`{"type":"object"}`)}}
	}
	return req
}

// drawLog is a session whose replies came from this model, or from another one.
func drawLog(t *rapid.T) *drawn.Log {
	state := signed
	if rapid.Bool().Draw(t, "unsigned") {
		state = nil
	}
	return drawn.NewLog(message.FromModel("p", rapid.SampledFrom([]string{"m", "m", "other"}).Draw(t, "model")), state)
}

func TestTheStrictServerTakesEveryBody(t *testing.T) {
	p := newProvider(t, Options{Name: "p"})
	rapid.Check(t, func(t *rapid.T) {
		images := rapid.Bool().Draw(t, "images")
		l := drawLog(t)
		for range rapid.IntRange(1, 2).Draw(t, "parts") {
			l.Odd(t)
			l.Step(t)
		}
		body := p.Body(drawRequest(t, l, images))
		if bad := jsonwire.Strict(body); bad != nil {
			t.Fatalf("%v\n%s", bad, body)
		}
		if bad := (llmtest.Rules{Profile: llmtest.Anthropic, TextOnly: !images}).Check(body); bad != nil {
			t.Fatalf("%v\n%s", bad, body)
		}
	})
}

// What a cache keeps never shows in a body, and an earlier body stays what it
// was while a later one is made.
func TestABodyFromACacheIsTheBodyFromNothing(t *testing.T) {
	providers := []*Provider{newProvider(t, Options{Name: "p"}), newProvider(t, Options{Name: "q"})}
	rapid.Check(t, func(t *rapid.T) {
		l := drawLog(t)
		l.Step(t)
		var builder llm.Builder
		var cache llm.Cache
		type earlier struct {
			pieces [][]byte
			joined []byte
		}
		var before []earlier
		images, p := rapid.Bool().Draw(t, "images"), 0
		for range rapid.IntRange(1, 8).Draw(t, "requests") {
			switch rapid.IntRange(0, 9).Draw(t, "change") {
			case 0:
				l.Edit(t)
			case 1:
				images = !images
			case 2, 3:
				l.Odd(t)
			case 4:
				p = 1 - p
			default:
				l.Step(t)
			}
			req := drawRequest(t, l, images)
			want := providers[p].Body(req)
			req.Messages, req.Cache = builder.Build(l.Nodes), &cache
			pieces, failure := providers[p].encode(t.Context(), &req)
			if failure != nil {
				t.Fatal(failure)
			}
			got := bytes.Join(pieces, nil)
			if !bytes.Equal(got, want) || !bytes.Equal(providers[p].Body(req), want) {
				t.Fatalf("from the cache\n%s\nwant\n%s", got, want)
			}
			before = append(before, earlier{pieces, got})
			for _, e := range before {
				if now := bytes.Join(e.pieces, nil); !bytes.Equal(now, e.joined) {
					t.Fatalf("an earlier body became\n%s\nand was\n%s", now, e.joined)
				}
			}
		}
	})
}

// A session that a loop writes never changes what it sent but for its cache
// marks, and each request has a mark where the one before had its last: so the
// server's cache holds.
func TestTheBodyOfALongerSessionBeginsWithTheShorterOne(t *testing.T) {
	p := newProvider(t, Options{Name: "p"})
	rapid.Check(t, func(t *rapid.T) {
		referee := llmtest.NewReferee(llmtest.Rules{Profile: llmtest.Anthropic})
		l := drawLog(t)
		l.Step(t)
		req := drawRequest(t, l, rapid.Bool().Draw(t, "images"))
		req.Tools = []llm.Tool{{Name: "read"}}
		var builder llm.Builder
		req.Cache = &llm.Cache{}
		var last, end int
		for range rapid.IntRange(1, 6).Draw(t, "requests") {
			req.Messages = builder.Build(l.Nodes)
			body := p.Body(req)
			if bad := referee.Judge("s", body); bad != nil {
				t.Fatalf("%v\n%s", bad, body)
			}
			var messages, marked []int
			i := 0
			for m := range jsonwire.Elements(jsonwire.Get(body, "messages")) {
				n := 0
				for b := range jsonwire.Elements(jsonwire.Get(m, "content")) {
					n++
					if jsonwire.Get(b, "cache_control") != nil {
						marked = append(marked, i, n)
					}
				}
				messages = append(messages, n)
				i++
			}
			newest := len(messages) - 1
			if n := len(marked); n < 2 || marked[n-2] != newest || marked[n-1] != messages[newest] {
				t.Fatalf("marks at %v of messages with %v blocks\n%s", marked, messages, body)
			}
			if newest > last && end == messages[last] && (len(marked) != 4 || marked[0] != last || marked[1] != end) {
				t.Fatalf("marks at %v, the request before ended at %d,%d\n%s", marked, last, end, body)
			}
			last, end = newest, messages[newest]
			l.Step(t)
		}
	})
}

// Body is what is sent, with a cache and without.
func TestBodyIsWhatIsSent(t *testing.T) {
	o := drawn.Objects{}
	req := ask(user(message.Text("see"), o.Add(drawn.PNG(3, 2))), thinks(message.ToolCall("c", "read", "{}")), result("c", message.Text("A")))
	req.Images, req.Objects, req.Cache = true, o, &llm.Cache{}
	var sent []byte
	p := newProvider(t, Options{Transport: transport(func(r *http.Request) (*http.Response, error) {
		sent, _ = io.ReadAll(r.Body)
		return nil, io.ErrUnexpectedEOF
	})})
	for range 2 {
		run(t.Context(), p, req)
		if want := p.Body(req); len(sent) == 0 || !bytes.Equal(sent, want) {
			t.Errorf("sent\n%s\nwant\n%s", sent, want)
		}
		req.Cache = nil
	}
}

type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
