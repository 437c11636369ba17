// Package anthropic is a provider for Anthropic's Messages API and for
// endpoints that speak it, on net/http alone.
//
// # Requests
//
// POST BASE_URL/v1/messages with stream true. In the body:
//
//   - max_tokens, which the API wants always: Config.MaxTokens, else what
//     Options.MaxOutput says of the model, else 8,192 and the budget for
//     thinking; cut to what the window leaves (Request.MaxOutput);
//   - the system prompt is one text block;
//   - neighbours of one role are one message. A result is a tool_result block
//     in the user message behind its call, before any text. The arguments of a
//     call stand in input as logged;
//   - images are base64 in their place, in results too. Where they are not
//     sent, a text says which one was left out;
//   - a request without tools whose messages hold calls offers one tool that
//     says it cannot be used, with tool_choice none, since the API wants tools
//     where there are calls.
//
// Cache marks, at most four: on the last tool, on the system prompt, on the
// last message, and on the last user message before it, which is where the
// request before this one ended. So each request finds what the one before left
// in the cache, however many blocks the step between them added.
//
// # Thinking
//
// The reasoning effort is a budget for thinking, in tokens:
//
//	none, off        no thinking (also "")
//	minimal           1,024
//	low               4,096
//	medium            8,192
//	high             16,384
//	xhigh, max       32,768
//
// but at most half of max_tokens where that is given or cut; what is below 1,024
// then is no thinking. Any other effort is refused. With thinking no temperature
// is sent.
//
// The signatures of thinking blocks, and blocks that came encrypted, are kept
// in the replay state of the finish chunk:
//
//	{"anthropic":1,"blocks":[{"signature":"..."},{"redacted":"..."},null]}
//
// with one element a block of the reply. Thinking is sent back only to the
// provider and the model that it came from, unchanged, complete, and first in
// its message; in a message that was joined with the one before it, it is left
// out. Where the last reply calls tools and its thinking cannot be sent back,
// the API would refuse to think on: then thinking is off for that request.
//
// # Replies
//
// Server-sent events as the API sends them; ping and unknown events and blocks
// are passed over. A stream that ends without a stop reason is cut off:
// TRANSPORT. Stop reasons: max_tokens and model_context_window_exceeded are
// max-tokens, refusal is the failure CONTENT_FILTER, all others a stop, or
// tool-calls when there are calls. A line over 16 MiB is refused, and so is a
// reply over 32 MiB or 1,000 blocks.
//
// # Failures
//
// Codes and messages are those of the package endpoint, which the providers on
// HTTP share: llm/internal/endpoint.
package anthropic

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"maps"
	"net/http"
	"strings"
	"time"

	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/llm/internal/endpoint"
	"github.com/outcrop-dev/outcrop/message"
)

// version of the API, which each request names.
const version = "2023-06-01"

// Options configure a provider. Name and BaseURL are required.
type Options struct {
	Name    string // as request/header records it, and at the start of messages
	BaseURL string // such as https://api.anthropic.com; a /v1 at its end is left out
	Key     string // "": none is sent
	KeyFrom string // where the key came from, for the hint when it is refused

	// MaxOutput is the most that a model gives in one reply, in tokens, by the
	// model's name.
	MaxOutput map[string]int64

	// IdleTimeout is how long the server may be silent; 0 is 300 seconds.
	IdleTimeout time.Duration
	// Transport carries the requests; nil is Go's own, with its proxy settings.
	Transport http.RoundTripper
	// Now dates a Retry-After that is a date; nil is time.Now.
	Now func() time.Time
	// Logger hears of each call at debug level, never of content; nil is silent.
	Logger *slog.Logger
}

// Provider is a Messages API endpoint. It is safe for use by several
// goroutines.
type Provider struct {
	maxOutput map[string]int64
	at        *endpoint.Endpoint
}

var _ llm.Provider = (*Provider)(nil)

// New checks the options. It opens no connection.
func New(o Options) (*Provider, error) {
	if o.Name == "" {
		return nil, errors.New("anthropic: a provider needs a name")
	}
	key := strings.TrimSpace(o.Key)
	at, err := endpoint.New(endpoint.Options{
		Name: o.Name, BaseURL: o.BaseURL, Suffix: "/v1", Hint: "does base_url end before /v1?", Key: key, KeyFrom: o.KeyFrom,
		Authorize: func(h http.Header) {
			h.Set("Anthropic-Version", version)
			if key != "" {
				h.Set("X-Api-Key", key)
			}
		},
		IdleTimeout: o.IdleTimeout, Transport: o.Transport, Now: o.Now, Logger: o.Logger,
	})
	if err != nil {
		return nil, err
	}
	return &Provider{maxOutput: maps.Clone(o.MaxOutput), at: at}, nil
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
		answer, failure := c.Post("/v1/messages", body)
		if failure != nil {
			yield(message.Chunk{}, failure)
			return
		}
		defer answer.Body.Close()
		p.at.Logger.DebugContext(ctx, "model call", "provider", p.at.Name, "model", req.Config.Model, "status", answer.Status, "turn", req.Turn, "step", req.Step, "attempt", req.Attempt)
		r := newReply(c, &req, yield)
		if answer.Stream {
			r.Stream(answer.Body, r)
		} else {
			r.whole(answer.Body)
		}
	}
}

// Models lists the models of the endpoint, sorted by id. The error is a
// *message.Failure.
func (p *Provider) Models(ctx context.Context) ([]llm.ModelInfo, error) {
	c := p.at.Call(ctx, "")
	defer c.End()
	body, failure := c.Get("/v1/models?limit=1000")
	if failure != nil {
		return nil, failure
	}
	models, failure := c.Models(body)
	if failure != nil {
		return nil, failure
	}
	return models, nil
}
