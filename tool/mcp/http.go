package mcp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
)

const (
	maxAnswer      = 32 << 20 // bytes of one HTTP answer
	maxAnswerLines = 100_000  // lines of one event stream
)

// errRefused is an HTTP answer that is not one of the protocol.
type errRefused struct{ text string }

func (e *errRefused) Error() string { return e.text }

// web carries the HTTP requests of one connection: it adds the headers, bounds
// the answers, follows no redirect and can end everything at once.
type web struct {
	next    http.RoundTripper
	host    string
	headers map[string]string
	keyFrom string
	budget  *allowance
	hard    context.Context // when it ends, so does every request
	end     context.CancelFunc
}

func newWeb(cfg Server, next http.RoundTripper, budget *allowance) (*web, error) {
	u, err := url.Parse(cfg.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("url must be an address such as https://HOST/mcp")
	}
	w := &web{next: next, host: u.Host, headers: cfg.Headers, keyFrom: cfg.KeyFrom, budget: budget}
	if w.keyFrom == "" {
		w.keyFrom = "its headers"
	}
	w.hard, w.end = context.WithCancel(context.Background())
	return w, nil
}

func (w *web) client() *http.Client {
	return &http.Client{
		Transport:     w,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// sent notes how far a call got on its way to the server. It travels in the
// call's context.
type sent struct{ tried, accepted atomic.Bool }

type sentKey struct{}

// RoundTrip implements http.RoundTripper.
func (w *web) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(req.Context())
	stop := context.AfterFunc(w.hard, cancel)
	release := func() {
		stop()
		cancel()
	}
	out := req.Clone(ctx)
	if out.URL.Host == w.host {
		for name, value := range w.headers {
			out.Header.Set(name, value)
		}
	}
	at, _ := req.Context().Value(sentKey{}).(*sent)
	if at == nil || req.Method != http.MethodPost {
		at = &sent{}
	}
	at.tried.Store(true)
	resp, err := w.next.RoundTrip(out)
	if err != nil {
		release()
		return nil, err
	}
	if err := w.judge(req, resp); err != nil {
		_ = resp.Body.Close() // nobody reads it
		release()
		return nil, err
	}
	at.accepted.Store(resp.StatusCode/100 == 2)
	resp.Body = &body{ReadCloser: resp.Body, left: maxAnswer, lines: maxAnswerLines, events: media(resp) == "text/event-stream", budget: w.budget, release: release}
	if resp.Body = mended(resp); req.Method == http.MethodPost {
		resp.ContentLength = -1 // what was mended has another length
		resp.Header.Del("Content-Length")
	}
	return resp, nil
}

// judge refuses answers that say more than the SDK would, and makes one that
// means a lost session look like it.
func (w *web) judge(req *http.Request, resp *http.Response) error {
	status := resp.StatusCode
	switch {
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		if len(w.headers) == 0 {
			return &errRefused{fmt.Sprintf("a key is needed (%d): set key_env or key_command", status)}
		}
		return &errRefused{fmt.Sprintf("the key was refused (%d): check %s", status, w.keyFrom)}
	case status/100 == 3:
		where := "elsewhere"
		if to, err := resp.Location(); err == nil {
			where = to.Scheme + "://" + to.Host + to.Path
		}
		return &errRefused{fmt.Sprintf("answered with a redirect (%d), which is not followed: set url to %s", status, where)}
	case media(resp) == "text/html" && req.Method == http.MethodPost:
		return &errRefused{"answered text/html instead of JSON: is url the address of an MCP endpoint?"}
	case status == http.StatusNotFound && req.Header.Get("Mcp-Session-Id") != "":
		// With an error in its body the SDK would take it for the answer of
		// the call, and never open a new session.
		_ = resp.Body.Close() // nobody reads it
		resp.Body = http.NoBody
	}
	return nil
}

func media(resp *http.Response) string {
	m, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if err != nil {
		return ""
	}
	return strings.ToLower(m)
}

// body is an answer within bounds.
type body struct {
	io.ReadCloser
	left    int64
	lines   int
	events  bool // lines count
	budget  *allowance
	release func()
	once    sync.Once
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.left -= int64(n); b.left < 0 || b.budget.bytes.Add(-int64(n)) < 0 {
		return 0, errTooMuch
	}
	if b.lines -= bytes.Count(p[:n], []byte("\n")); b.events && b.lines < 0 {
		return 0, errTooMuch
	}
	return n, err
}

func (b *body) Close() error {
	b.once.Do(b.release)
	return b.ReadCloser.Close()
}
