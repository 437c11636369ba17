// Package body writes the next request of a session as OpenAI's chat completions
// or Anthropic's messages take it: the bytes of a POST that goes on where the
// session ended.
//
// The body is made as the agent makes it: the surface, cleaned so that every
// provider takes it, behind the system prompt and the tools of the request
// header in force. A conversation that ended with a reply gets a short message of
// the user at its end, as the APIs ask for one. Images are in it as data.
// Credentials are no part of a body.
package body

import (
	"context"
	"io"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/exchange/modelview"
	"github.com/outcrop-dev/outcrop/exchange/transcript"
	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/llm/anthropic"
	"github.com/outcrop-dev/outcrop/llm/openai"
)

// API is whose requests are written.
type API string

// The APIs.
const (
	OpenAI    API = "openai"
	Anthropic API = "anthropic"
)

// Encoder writes bodies: what both clients of package llm do.
type Encoder interface {
	Body(req llm.Request) []byte
}

// Options of a body; the zero value is masked.
type Options struct {
	modelview.Options
	// Model stands in the place of the one in the log; "": the log's.
	Model string
	// Encoder gives an encoder for a provider of the log, with the quirks of its
	// endpoint. Nil, or one that gives nil: the API's own.
	Encoder func(provider string) Encoder
}

// Report says what was written.
type Report struct {
	*modelview.View
	Messages int
	Refusal  error // why a provider would refuse the body; nil: nothing is known
}

// Write writes the body. The error is one of reading or of w; a log without a
// request header has no model, which Options.Model then must give.
func Write(ctx context.Context, w io.Writer, src transcript.Source, api API, o Options) (Report, error) {
	v, err := modelview.Read(ctx, src, o.Options)
	if err != nil {
		return Report{}, err
	}
	cfg, system, tools := v.Config()
	if o.Model != "" {
		cfg.Model = o.Model
	}
	if cfg.Model == "" {
		return Report{View: v}, &outcrop.Error{Op: "export", Session: v.Header.ID, Seq: -1, Offset: -1, Err: outcrop.ErrRefused,
			Msg: "the log names no model: no request was ever made from it", Hint: "outcrop messages TARGET --format " + string(api) + " has the messages alone"}
	}
	if cfg.Provider == "" {
		cfg.Provider = string(api)
	}
	req := llm.Request{Config: cfg, System: system, Tools: tools, Messages: v.Messages(), Purpose: llm.Turn, Images: true, Objects: src.Objects()}
	var enc Encoder
	if o.Encoder != nil {
		enc = o.Encoder(cfg.Provider)
	}
	if enc == nil {
		if enc, err = api.encoder(cfg.Provider); err != nil {
			return Report{View: v}, err
		}
	}
	rep := Report{View: v, Messages: len(req.Messages), Refusal: llm.Check(req)}
	_, err = w.Write(enc.Body(req))
	return rep, err
}

// encoder is the API's own. It has the name of the provider in the log: what a
// provider signed goes back to none else.
func (api API) encoder(provider string) (Encoder, error) {
	const nowhere = "http://localhost"
	switch api {
	case OpenAI:
		return openai.New(openai.Options{Name: provider, BaseURL: nowhere})
	case Anthropic:
		return anthropic.New(anthropic.Options{Name: provider, BaseURL: nowhere})
	}
	return nil, &outcrop.Error{Op: "export", Seq: -1, Offset: -1, Err: outcrop.ErrUnsupported, Msg: "there is no API called " + string(api)}
}
