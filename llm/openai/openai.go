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
//   - user text is a string, its blocks joined by newlines; an image is a line
//     that says which one was left out, since images are not sent;
//   - an assistant message has its text as content, or null when it only calls
//     tools, and its calls in tool_calls with the arguments as logged;
//   - each result is a message of the role tool.
//
// Reasoning is sent back only under the quirk ReasoningContent, and only where
// DeepSeek wants it: with tool calls, which must have some.
//
// # Replies
//
// Server-sent events, read leniently: CRLF, comments, no blank line between
// events, a usage chunk of its own, no [DONE], finish twice, calls told apart
// by index, by id or not at all, calls without an id, a plain JSON answer to a
// streaming request. Text that was split inside a surrogate pair is joined
// again. A stream that ends without a finish reason and without [DONE] is cut
// off: TRANSPORT. A line over 16 MiB is refused.
//
// # Failures
//
//	401, 403                     AUTH
//	402, no quota or balance     QUOTA
//	404, no such model           MODEL_NOT_FOUND
//	408, no data for IdleTimeout TIMEOUT
//	413, prompt too long         CONTEXT_WINDOW_EXCEEDED
//	429                          RATE_LIMIT
//	5xx                          SERVER
//	other 4xx                    INVALID_REQUEST
//	no connection, broken off    TRANSPORT
//	certificate not trusted      CERTIFICATE
//	not the API, not JSON        MALFORMED_RESPONSE
//	stop without any content     EMPTY_RESPONSE
//	content filter               CONTENT_FILTER
//	cancelled                    ABORTED
//
// Retry-After, in seconds or as a date, is in RetryAfterMs. Each message is one
// line, begins with the provider's name and says what to do. The key is sent to
// the host of BaseURL only, redirects are not followed, and it is cut out of
// every message.
package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/llm"
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

const (
	defaultIdle = 300 * time.Second
	maxBody     = 16 << 20 // of an answer that is no stream
)

// Provider is a chat completions endpoint. It is safe for use by several
// goroutines.
type Provider struct {
	opts   Options
	base   *url.URL
	client *http.Client
	log    *slog.Logger
}

var _ llm.Provider = (*Provider)(nil)

// New checks the options. It opens no connection.
func New(o Options) (*Provider, error) {
	if o.Name == "" {
		return nil, errors.New("openai: a provider needs a name")
	}
	base, err := url.Parse(strings.TrimRight(o.BaseURL, "/"))
	switch {
	case err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https":
		return nil, fmt.Errorf("%s: base_url must be a URL such as https://HOST/v1", o.Name)
	case base.User != nil:
		return nil, fmt.Errorf("%s: base_url holds a password: put it in key_env or key_command", o.Name)
	case base.RawQuery != "" || base.Fragment != "":
		return nil, fmt.Errorf("%s: base_url must end before ? and #", o.Name)
	}
	o.Key = strings.TrimSpace(o.Key)
	if strings.IndexFunc(o.Key, func(r rune) bool { return r <= ' ' || r > '~' }) >= 0 {
		return nil, fmt.Errorf("%s: the key holds characters that no key has: check %s", o.Name, keySource(o.KeyFrom))
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
	if o.IdleTimeout <= 0 {
		o.IdleTimeout = defaultIdle
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	p := &Provider{opts: o, base: base, log: o.Logger}
	if p.log == nil {
		p.log = slog.New(slog.DiscardHandler)
	}
	p.client = &http.Client{
		Transport:     o.Transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return p, nil
}

func keySource(from string) string {
	if from == "" {
		return "the key"
	}
	return from
}

// Name implements llm.Provider.
func (p *Provider) Name() string { return p.opts.Name }

// Encoder names the way in which Stream encodes bodies.
func (p *Provider) Encoder() string { return Encoder }

// Stream implements llm.Provider. A request that llm.Check refuses is not sent.
func (p *Provider) Stream(ctx context.Context, req llm.Request) iter.Seq2[message.Chunk, error] {
	return func(yield func(message.Chunk, error) bool) {
		if err := llm.Check(req); err != nil {
			yield(message.Chunk{}, err)
			return
		}
		c := p.newCall(ctx, req.Config.Model)
		defer c.end()
		resp, failure := c.do(http.MethodPost, "/chat/completions", p.Body(req))
		if failure != nil {
			yield(message.Chunk{}, failure)
			return
		}
		defer resp.Body.Close()
		p.log.DebugContext(ctx, "model call", "provider", p.opts.Name, "model", req.Config.Model, "status", resp.StatusCode, "turn", req.Turn, "step", req.Step, "attempt", req.Attempt)
		r := newReply(c, req, yield)
		r.requestID = requestID(resp.Header)
		if mediaType(resp.Header) == "application/json" {
			r.whole(resp.Body)
		} else {
			r.stream(resp.Body)
		}
	}
}

// ModelInfo is what an endpoint says about one of its models.
type ModelInfo struct {
	ID     string
	Window int64 // tokens; 0 when it does not say
}

// Models lists the models of the endpoint, sorted by id. The error is a
// *message.Failure.
func (p *Provider) Models(ctx context.Context) ([]ModelInfo, error) {
	c := p.newCall(ctx, "")
	defer c.end()
	resp, failure := c.do(http.MethodGet, "/models", nil)
	if failure != nil {
		return nil, failure
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(c.watch(resp.Body), maxBody+1))
	if err != nil {
		return nil, c.broken(err)
	}
	data := []byte(nil)
	if len(body) <= maxBody && jsonwire.Valid(body) == nil {
		data = jsonwire.Get(body, "data")
	}
	if jsonwire.Kind(data) != '[' {
		return nil, c.fail(CodeMalformed, "answered with something that is no list of models: does base_url end in /v1?")
	}
	var models []ModelInfo
	for v := range jsonwire.Elements(data) {
		m := ModelInfo{}
		m.ID, _ = jsonwire.Text(jsonwire.Get(v, "id"))
		for _, name := range [...]string{"context_length", "context_window", "max_model_len"} {
			if n, ok := jsonwire.Int(jsonwire.Get(v, name)); ok && n > 0 {
				m.Window = n
				break
			}
		}
		if m.ID != "" {
			models = append(models, m)
		}
	}
	slices.SortFunc(models, func(a, b ModelInfo) int { return strings.Compare(a.ID, b.ID) })
	return models, nil
}

// call is one HTTP exchange with its idle limit.
type call struct {
	*Provider
	caller context.Context // of whoever made the call
	ctx    context.Context // ends with it or when the server is silent
	cancel context.CancelCauseFunc
	timer  *time.Timer
	model  string
	status int
}

var errIdle = errors.New("idle")

func (p *Provider) newCall(ctx context.Context, model string) *call {
	c := &call{Provider: p, caller: ctx, model: model}
	c.ctx, c.cancel = context.WithCancelCause(ctx)
	c.timer = time.AfterFunc(p.opts.IdleTimeout, func() { c.cancel(errIdle) })
	return c
}

func (c *call) end() {
	c.timer.Stop()
	c.cancel(nil)
}

// watch moves the idle limit on with every byte that is read.
func (c *call) watch(r io.Reader) io.Reader { return watched{c, r} }

type watched struct {
	c *call
	r io.Reader
}

func (w watched) Read(b []byte) (int, error) {
	n, err := w.r.Read(b)
	if n > 0 {
		w.c.timer.Reset(w.c.opts.IdleTimeout)
	}
	return n, err
}

// do sends a request and returns an answer that is a success, its body open.
func (c *call) do(method, path string, body []byte) (*http.Response, *message.Failure) {
	req, err := http.NewRequestWithContext(c.ctx, method, c.base.String()+path, bytes.NewReader(body))
	if err != nil {
		return nil, c.fail(message.CodeInvalidRequest, "base_url is not usable: "+err.Error())
	}
	req.Header.Set("User-Agent", "outcrop")
	req.Header.Set("Accept", "application/json")
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "text/event-stream")
	}
	if c.opts.Key != "" {
		req.Header.Set("Authorization", "Bearer "+c.opts.Key)
	}
	resp, err := c.client.Do(req)
	if err != nil {
		return nil, c.unreachable(err)
	}
	c.timer.Reset(c.opts.IdleTimeout)
	c.status = resp.StatusCode
	switch media := mediaType(resp.Header); {
	case resp.StatusCode/100 != 2:
	case media == "application/json", media == "text/event-stream", media == "":
		return resp, nil
	case media == "text/plain" && body != nil: // some servers mislabel their stream
		return resp, nil
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(c.watch(resp.Body), 64<<10))
	if c.caller.Err() != nil {
		return nil, c.broken(c.caller.Err())
	}
	return nil, c.refused(resp, text)
}

func requestID(h http.Header) string {
	for _, name := range [...]string{"X-Request-Id", "Request-Id", "X-Ds-Trace-Id"} {
		if id := h.Get(name); id != "" && len(id) <= 200 {
			return llm.Clean(id)
		}
	}
	return ""
}

// mediaType is the Content-Type without parameters; the suffix +json counts as
// JSON.
func mediaType(h http.Header) string {
	m, _, _ := strings.Cut(h.Get("Content-Type"), ";")
	m = strings.ToLower(strings.TrimSpace(m))
	if strings.HasSuffix(m, "+json") {
		return "application/json"
	}
	return m
}

// member returns a member's text, "" when it is no string.
func member(obj json.RawMessage, name string) string {
	s, _ := jsonwire.Text(jsonwire.Get(obj, name))
	return s
}
