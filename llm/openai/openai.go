// Package openai is a provider for every endpoint that speaks OpenAI's chat
// completions: it encodes requests, streams replies and reduces errors, on
// net/http alone.
//
// # Requests
//
// POST BASE_URL/chat/completions with stream true. The messages stand last in
// the body, so that the body of a request that only grew begins with the bytes
// of the one before. In the messages:
//
//   - the system prompt is the first message, in the role of the quirk
//     SystemRole;
//   - user text is a string, its blocks joined by newlines. With images it is a
//     list of parts, an image as a data URL. Where images are not sent, a line
//     says which one was left out;
//   - an assistant message has its text as content, or null when it only calls
//     tools, and its calls in tool_calls with the arguments as logged;
//   - each result is a message of the role tool, in text alone. Images in
//     results stand in a user message behind all results of the reply.
//
// Reasoning is sent back only under the quirk ReasoningContent, and only where
// DeepSeek wants it: with tool calls, which must have some.
//
// The output limit is Config.MaxTokens, cut to what the window leaves
// (Request.MaxOutput); without the first none is sent.
//
// # Replies
//
// Server-sent events, read leniently: CRLF and CR, comments, no blank line
// between events, a usage chunk of its own, no [DONE], finish twice, calls told
// apart by index, by id or not at all, calls without an id, a plain JSON answer
// to a streaming request. Text that was split inside a surrogate pair is joined
// again. A stream that ends without a finish reason and without [DONE] is cut
// off: TRANSPORT. A line over 16 MiB is refused, and so is a reply over 32 MiB
// or 1,000 calls.
//
// # Failures
//
// Codes and messages are those of the package endpoint, which the providers on
// HTTP share: llm/internal/endpoint.
package openai

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/llm/internal/endpoint"
	"github.com/outcrop-dev/outcrop/message"
)

// Options configure a provider. Name and BaseURL are required.
type Options struct {
	Name    string // as request/header records it, and at the start of messages
	BaseURL string // such as https://api.deepseek.com/v1
	Key     string // "": none is sent
	KeyFrom string // where the key came from, for the hint when it is refused
	Quirks  Quirks

	// IdleTimeout is how long the server may be silent; 0 is 300 seconds.
	IdleTimeout time.Duration
	// Transport carries the requests; nil is Go's own, with its proxy settings.
	Transport http.RoundTripper
	// Now dates a Retry-After that is a date; nil is time.Now.
	Now func() time.Time
	// Logger hears of each call at debug level, never of content; nil is silent.
	Logger *slog.Logger
}

// Quirks are the ways in which endpoints differ. The zero value suits most.
type Quirks struct {
	Reasoning      Reasoning
	MaxTokens      string // name of the member for the output limit: max_tokens (also "") or max_completion_tokens
	AlternateRoles bool   // join neighbours of one role
	SystemRole     string // role of the system prompt: system (also ""), developer or user
	NoStreamUsage  bool   // do not ask for usage in the stream
}

// Reasoning names the member in which an endpoint gives reasoning.
type Reasoning string

const (
	// ReasoningNone reads whichever member there is and sends none back; "" is
	// the same.
	ReasoningNone Reasoning = "none"
	// ReasoningContent reads reasoning_content, and sends it back with calls.
	ReasoningContent Reasoning = "reasoning_content"
	// ReasoningPlain reads reasoning, and sends none back.
	ReasoningPlain Reasoning = "reasoning"
)

// Provider is a chat completions endpoint. It is safe for use by several
// goroutines.
type Provider struct {
	quirks Quirks
	at     *endpoint.Endpoint
}

var _ llm.Provider = (*Provider)(nil)

// ModelInfo is what an endpoint says about one of its models.
type ModelInfo = llm.ModelInfo

// New checks the options. It opens no connection.
func New(o Options) (*Provider, error) {
	if o.Name == "" {
		return nil, errors.New("openai: a provider needs a name")
	}
	for _, q := range [...]struct {
		name, value string
		allowed     []string
	}{
		{"reasoning", string(o.Quirks.Reasoning), []string{"", "none", "reasoning_content", "reasoning"}},
		{"max_tokens", o.Quirks.MaxTokens, []string{"", "max_tokens", "max_completion_tokens"}},
		{"system_role", o.Quirks.SystemRole, []string{"", "system", "developer", "user"}},
	} {
		if !slices.Contains(q.allowed, q.value) {
			return nil, fmt.Errorf("%s: quirk %s is %q: it must be %s", o.Name, q.name, q.value, strings.Join(q.allowed[1:], " or "))
		}
	}
	key := strings.TrimSpace(o.Key)
	at, err := endpoint.New(endpoint.Options{
		Name: o.Name, BaseURL: o.BaseURL, Hint: "does base_url end in /v1?", Key: key, KeyFrom: o.KeyFrom,
		Authorize: func(h http.Header) {
			if key != "" {
				h.Set("Authorization", "Bearer "+key)
			}
		},
		IdleTimeout: o.IdleTimeout, Transport: o.Transport, Now: o.Now, Logger: o.Logger,
	})
	if err != nil {
		return nil, err
	}
	return &Provider{quirks: o.Quirks, at: at}, nil
}

// Name implements llm.Provider.
func (p *Provider) Name() string { return p.at.Name }

// Encoder names the way in which Stream encodes bodies.
func (p *Provider) Encoder() string { return Encoder }

// Stream implements llm.Provider. A request that llm.Check refuses is not sent.
func (p *Provider) Stream(ctx context.Context, req llm.Request) iter.Seq2[message.Chunk, error] {
	return func(yield func(message.Chunk, error) bool) {
		c := p.at.Call(ctx, req.Config.Model)
		defer c.End()
		body, failure := p.encode(ctx, &req)
		if failure != nil {
			yield(message.Chunk{}, failure)
			return
		}
		answer, failure := c.Post("/chat/completions", body)
		if failure != nil {
			yield(message.Chunk{}, failure)
			return
		}
		defer answer.Body.Close()
		p.at.Logger.DebugContext(ctx, "model call", "provider", p.at.Name, "model", req.Config.Model, "status", answer.Status, "turn", req.Turn, "step", req.Step, "attempt", req.Attempt)
		r := &reply{Reply: c.Reply(yield), quirk: p.quirks.Reasoning, turn: req.Turn, step: req.Step}
		if answer.Stream {
			r.Stream(answer.Body, r)
		} else {
			r.whole(answer.Body)
		}
	}
}

// Models lists the models of the endpoint, sorted by id. The error is a
// *message.Failure.
func (p *Provider) Models(ctx context.Context) ([]ModelInfo, error) {
	c := p.at.Call(ctx, "")
	defer c.End()
	body, failure := c.Get("/models")
	if failure != nil {
		return nil, failure
	}
	models, failure := c.Models(body)
	if failure != nil {
		return nil, failure
	}
	return models, nil
}
