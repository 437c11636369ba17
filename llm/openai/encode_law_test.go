package openai

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/llm/internal/drawn"
	"github.com/outcrop-dev/outcrop/llm/llmtest"
	"github.com/outcrop-dev/outcrop/message"
)

// strict are the rules of the strictest server for these quirks.
func strict(q Quirks) llmtest.Rules {
	r := llmtest.Rules{Profile: llmtest.OpenAI, OutputMember: q.MaxTokens}
	if r.OutputMember == "" {
		r.OutputMember = "max_tokens"
	}
	switch {
	case q.Reasoning == ReasoningContent:
		r.Profile = llmtest.DeepSeek
	case q.AlternateRoles:
		r.Profile = llmtest.Alternate
	}
	return r
}

func drawQuirks(t *rapid.T) Quirks {
	q := rapid.SampledFrom([]Quirks{
		{}, {Reasoning: ReasoningContent}, {AlternateRoles: true}, {AlternateRoles: true, SystemRole: "user"}, {AlternateRoles: true, Reasoning: ReasoningContent},
	}).Draw(t, "quirks")
	return q
}

func drawRequest(t *rapid.T, l *drawn.Log, images bool) llm.Request {
	return llm.Request{
		Config:   llm.Config{Provider: "p", Model: "m", MaxTokens: 1000},
		System:   rapid.SampledFrom([]string{"be brief", "", " "}).Draw(t, "system"),
		Messages: llm.Build(l.Nodes), Images: images, Objects: l.Objects,
	}
}

func TestTheStrictServerTakesEveryBody(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		quirks := drawQuirks(t)
		images := rapid.Bool().Draw(t, "images")
		p, err := New(Options{Name: "p", BaseURL: "http://h/v1", Quirks: quirks})
		if err != nil {
			t.Fatal(err)
		}
		l := drawn.NewLog(message.FromModel("p", "m"), nil)
		l.Odd(t)
		rules := strict(quirks)
		rules.TextOnly = !images
		body := p.Body(drawRequest(t, l, images))
		if bad := jsonwire.Strict(body); bad != nil {
			t.Fatalf("%v\n%s", bad, body)
		}
		if bad := rules.Check(body); bad != nil {
			t.Fatalf("%v\n%s", bad, body)
		}
	})
}

// What a cache keeps never shows in a body, and an earlier body stays what it
// was while a later one is made.
func TestABodyFromACacheIsTheBodyFromNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var providers []*Provider
		for range 2 {
			p, err := New(Options{Name: "p", BaseURL: "http://h/v1", Quirks: drawQuirks(t)})
			if err != nil {
				t.Fatal(err)
			}
			providers = append(providers, p)
		}
		l := drawn.NewLog(message.FromModel("p", "m"), nil)
		var builder llm.Builder
		var cache llm.Cache
		type earlier struct {
			pieces [][]byte
			joined []byte
		}
		var before []earlier
		images := rapid.Bool().Draw(t, "images")
		for range rapid.IntRange(1, 8).Draw(t, "requests") {
			switch rapid.IntRange(0, 9).Draw(t, "change") {
			case 0:
				l.Edit(t)
			case 1:
				images = !images
			case 2, 3:
				l.Odd(t)
			case 4:
				providers[0], providers[1] = providers[1], providers[0]
			default:
				l.Step(t)
			}
			req := drawRequest(t, l, images)
			want := providers[0].Body(req)
			req.Messages, req.Cache = builder.Build(l.Nodes), &cache
			pieces, failure := providers[0].encode(t.Context(), &req)
			if failure != nil {
				t.Fatal(failure)
			}
			got := bytes.Join(pieces, nil)
			if !bytes.Equal(got, want) || !bytes.Equal(providers[0].Body(req), want) {
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

// A session that a loop writes never changes what it sent, so that the server's
// cache holds.
func TestTheBodyOfALongerSessionBeginsWithTheShorterOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		quirks := drawQuirks(t)
		p, err := New(Options{Name: "p", BaseURL: "http://h/v1", Quirks: quirks})
		if err != nil {
			t.Fatal(err)
		}
		images := rapid.Bool().Draw(t, "images")
		referee := llmtest.NewReferee(strict(quirks))
		l := drawn.NewLog(message.FromModel("p", "m"), nil)
		req := drawRequest(t, l, images)
		var builder llm.Builder
		req.Cache = &llm.Cache{}
		last := ""
		for range rapid.IntRange(1, 6).Draw(t, "requests") {
			l.Step(t)
			req.Messages = builder.Build(l.Nodes)
			body := p.Body(req)
			if bad := referee.Judge("s", body); bad != nil {
				t.Fatalf("%v\n%s", bad, body)
			}
			cut := strings.TrimSuffix(string(body), "]}")
			if !quirks.AlternateRoles && !strings.HasPrefix(cut, last) {
				t.Fatalf("the body\n%s\ndoes not begin with\n%s", cut, last)
			}
			last = cut
		}
	})
}

// Body is what is sent, with a cache and without.
func TestBodyIsWhatIsSent(t *testing.T) {
	o := drawn.Objects{}
	req := ask(user(message.Text("see"), o.Add(drawn.PNG(3, 2))), model(message.ToolCall("c", "read", "{}")), result("c", "A"))
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
