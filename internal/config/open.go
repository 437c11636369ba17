package config

import (
	"context"
	"log/slog"
	"time"

	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/llm/anthropic"
	"github.com/outcrop-dev/outcrop/llm/openai"
)

// Dial is what clients need from outside.
type Dial struct {
	Logger *slog.Logger
	Now    func() time.Time
}

// Client is a provider with what commands need besides calling it, whichever
// API it speaks.
type Client interface {
	llm.Provider
	// Encoder names the way in which Body encodes requests.
	Encoder() string
	// Body is the body that Stream would send.
	Body(llm.Request) []byte
	// Models asks the provider which models it has, sorted by id. The error is a
	// *message.Failure.
	Models(context.Context) ([]llm.ModelInfo, error)
}

// Open makes the client of a model's provider. Its key is read now: from the
// variable, or from the program that prints it.
func (c *Config) Open(ctx context.Context, p *Provider, d Dial) (llm.Provider, error) {
	cl, err := c.Client(ctx, p, d)
	if err != nil {
		return nil, err
	}
	return cl, nil
}

// Client is Open for callers that also list models or encode bodies.
func (c *Config) Client(ctx context.Context, p *Provider, d Dial) (Client, error) {
	key, from, err := c.key(ctx, p.Name, p.Key)
	if err != nil {
		return nil, err
	}
	return p.client(key, from, d)
}

// Offline is the provider's client without a key, for its encoder: it calls
// nobody.
func (p *Provider) Offline() (Client, error) { return p.client("", "", Dial{}) }

func (p *Provider) client(key, from string, d Dial) (Client, error) {
	if p.Kind == KindAnthropic {
		return anthropic.New(anthropic.Options{Name: p.Name, BaseURL: p.BaseURL, Key: key, KeyFrom: from, MaxOutput: p.maxOutput(), Logger: d.Logger, Now: d.Now})
	}
	return openai.New(openai.Options{Name: p.Name, BaseURL: p.BaseURL, Key: key, KeyFrom: from, Quirks: p.Quirks, Logger: d.Logger, Now: d.Now})
}

// maxOutput is what is known of the longest replies, by model.
func (p *Provider) maxOutput() map[string]int64 {
	known := map[string]int64{}
	for name, s := range p.Models {
		if s.MaxOutput > 0 {
			known[name] = s.MaxOutput
		}
	}
	return known
}
