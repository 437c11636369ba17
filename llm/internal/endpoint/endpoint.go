// Package endpoint is what providers on HTTP have in common: one exchange with
// its idle limit, reading server-sent events, reducing errors, and handing on
// the pieces of a reply within bounds.
//
// The key is sent to the host of BaseURL only, redirects are not followed, and
// it is cut out of every message. Each message is one line, begins with the
// provider's name and says what to do.
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
//	content filter, refusal      CONTENT_FILTER
//	cancelled                    ABORTED
//
// Retry-After, in seconds or as a date, is in RetryAfterMs.
package endpoint

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/message"
)

const (
	defaultIdle = 300 * time.Second
	// MaxAnswer is the longest answer that is no stream, in bytes.
	MaxAnswer = 16 << 20
)

// Options describe an endpoint. Name and BaseURL are required.
type Options struct {
	Name    string
	BaseURL string
	Suffix  string // of BaseURL that is left out where it stands
	Hint    string // what to look at when something else answers
	Key     string
	KeyFrom string
	// Authorize puts the key, and what else each request needs, into a header.
	Authorize   func(h http.Header)
	IdleTimeout time.Duration     // 0 is 300 seconds
	Transport   http.RoundTripper // nil is Go's own
	Now         func() time.Time  // nil is time.Now
	Logger      *slog.Logger      // nil is silent
}

// Endpoint is where a provider sends its requests. It is safe for use by
// several goroutines.
type Endpoint struct {
	Options
	base   *url.URL
	client *http.Client
}

// New checks the options. It opens no connection.
func New(o Options) (*Endpoint, error) {
	if o.Name == "" {
		return nil, errors.New("a provider needs a name")
	}
	base, err := url.Parse(strings.TrimRight(strings.TrimSuffix(strings.TrimRight(o.BaseURL, "/"), o.Suffix), "/"))
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
	if o.IdleTimeout <= 0 {
		o.IdleTimeout = defaultIdle
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Endpoint{Options: o, base: base, client: &http.Client{
		Transport:     o.Transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

func keySource(from string) string {
	if from == "" {
		return "the key"
	}
	return from
}

// Call is one HTTP exchange with its idle limit.
type Call struct {
	*Endpoint
	caller    context.Context // of whoever made the call
	ctx       context.Context // ends with it or when the server is silent
	cancel    context.CancelCauseFunc
	timer     *time.Timer
	model     string
	requestID string
}

var errIdle = errors.New("idle")

// Call begins an exchange about a model; "" for none. End must be called.
func (e *Endpoint) Call(ctx context.Context, model string) *Call {
	c := &Call{Endpoint: e, caller: ctx, model: model}
	c.ctx, c.cancel = context.WithCancelCause(ctx)
	c.timer = time.AfterFunc(e.IdleTimeout, func() { c.cancel(errIdle) })
	return c
}

// End ends the exchange and what of it is under way.
func (c *Call) End() {
	c.timer.Stop()
	c.cancel(nil)
}

// Cancelled reports whether whoever made the call gave it up.
func (c *Call) Cancelled() bool { return c.caller.Err() != nil }

// watched moves the idle limit on with every byte that is read.
type watched struct {
	c *Call
	r io.Reader
}

func (w watched) Read(b []byte) (int, error) {
	n, err := w.r.Read(b)
	if n > 0 {
		w.c.timer.Reset(w.c.IdleTimeout)
	}
	return n, err
}

// Answer is an answer that is a success. Body must be closed.
type Answer struct {
	Body   io.ReadCloser
	Stream bool // not one JSON value
	Status int
}

// Post sends a body, which is not joined, and returns an answer that is a
// stream or JSON.
func (c *Call) Post(path string, body [][]byte) (*Answer, *message.Failure) {
	size := int64(0)
	for _, b := range body {
		size += int64(len(b))
	}
	reader := func() (io.ReadCloser, error) {
		b := net.Buffers(slices.Clone(body))
		return io.NopCloser(&b), nil
	}
	first, _ := reader()
	req, err := http.NewRequestWithContext(c.ctx, http.MethodPost, c.base.String()+path, first)
	if err != nil {
		return nil, c.Fail(message.CodeInvalidRequest, "base_url is not usable: "+err.Error())
	}
	req.ContentLength, req.GetBody = size, reader
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "text/event-stream")
	return c.do(req)
}

// Get asks for JSON, at most MaxAnswer of it.
func (c *Call) Get(path string) ([]byte, *message.Failure) {
	req, err := http.NewRequestWithContext(c.ctx, http.MethodGet, c.base.String()+path, nil)
	if err != nil {
		return nil, c.Fail(message.CodeInvalidRequest, "base_url is not usable: "+err.Error())
	}
	req.Header.Set("Accept", "application/json")
	a, f := c.do(req)
	if f != nil {
		return nil, f
	}
	defer a.Body.Close()
	return c.Whole(a.Body)
}

// Whole reads a body of at most MaxAnswer bytes.
func (c *Call) Whole(body io.Reader) ([]byte, *message.Failure) {
	data, err := io.ReadAll(io.LimitReader(body, MaxAnswer+1))
	switch {
	case err != nil:
		return nil, c.Broken(err)
	case len(data) > MaxAnswer:
		return nil, c.Fail(llm.CodeMalformed, "sent an answer over 16 MiB")
	}
	return data, nil
}

func (c *Call) do(req *http.Request) (*Answer, *message.Failure) {
	req.Header.Set("User-Agent", "outcrop")
	if c.Authorize != nil {
		c.Authorize(req.Header)
	}
	resp, err := c.client.Do(req)
	if err != nil {
		return nil, c.unreachable(err)
	}
	c.timer.Reset(c.IdleTimeout)
	body := struct {
		io.Reader
		io.Closer
	}{watched{c, resp.Body}, resp.Body}
	if resp.StatusCode/100 == 2 {
		switch media := mediaType(resp.Header); {
		case media == "application/json", media == "text/event-stream", media == "",
			media == "text/plain" && req.Method == http.MethodPost: // some servers mislabel their stream
			c.requestID = requestID(resp.Header)
			return &Answer{Body: body, Stream: media != "application/json", Status: resp.StatusCode}, nil
		}
	}
	defer body.Close()
	text, _ := io.ReadAll(io.LimitReader(body, 64<<10))
	if c.Cancelled() {
		return nil, c.Broken(c.caller.Err())
	}
	return nil, c.refused(resp, text)
}

// Models reads a list of models: the members of data. What a model's window is
// stands under different names.
func (c *Call) Models(body []byte) ([]llm.ModelInfo, *message.Failure) {
	data := []byte(nil)
	if jsonwire.Valid(body) == nil {
		data = jsonwire.Get(body, "data")
	}
	if jsonwire.Kind(data) != '[' {
		return nil, c.Fail(llm.CodeMalformed, "answered with something that is no list of models: "+c.Hint)
	}
	var models []llm.ModelInfo
	for v := range jsonwire.Elements(data) {
		m := llm.ModelInfo{ID: Member(v, "id")}
		for _, name := range [...]string{"context_length", "context_window", "max_model_len", "max_input_tokens"} {
			if n, ok := jsonwire.Int(jsonwire.Get(v, name)); ok && n > 0 {
				m.Window = n
				break
			}
		}
		if m.ID != "" {
			models = append(models, m)
		}
	}
	slices.SortFunc(models, func(a, b llm.ModelInfo) int { return strings.Compare(a.ID, b.ID) })
	return models, nil
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

// Member returns a member's text, "" when it is no string.
func Member(obj []byte, name string) string {
	s, _ := jsonwire.Text(jsonwire.Get(obj, name))
	return s
}

// Count returns a member that is a count, -1 when it is none.
func Count(obj []byte, name string) int64 {
	n, ok := jsonwire.Int(jsonwire.Get(obj, name))
	if !ok || n < 0 {
		return -1
	}
	return n
}
