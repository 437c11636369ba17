package openai

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/outcrop-dev/outcrop/message"
)

// answers is a transport that a function stands for.
type answers func(*http.Request) *http.Response

func (f answers) RoundTrip(r *http.Request) (*http.Response, error) { return f(r), nil }

type fails struct{ err error }

func (f fails) RoundTrip(*http.Request) (*http.Response, error) { return nil, f.err }

func response(status int, media string, body io.ReadCloser) *http.Response {
	return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {media}}, Body: body}
}

const key = "sk-very-secret-1234"

func TestRefusals(t *testing.T) {
	const asJSON = "application/json"
	tests := []struct {
		name   string
		status int
		media  string
		header string // Name: value
		body   string
		want   message.Failure
	}{
		{"a key that is wrong", 401, asJSON, "", `{"error":{"message":"Incorrect API key provided: ` + key + `"}}`,
			message.Failure{Code: "AUTH", Message: "deepseek: the key was refused (401): check DEEPSEEK_API_KEY"}},
		{"a key that may not", 403, asJSON, "", `{}`, message.Failure{Code: "AUTH", Message: "deepseek: the key was refused (403): check DEEPSEEK_API_KEY"}},
		{"a key that may not do this", 403, asJSON, "", `{"error":{"message":"The API key has no permission"}}`, message.Failure{Code: "AUTH", Message: "deepseek: the key was refused (403): check DEEPSEEK_API_KEY"}},
		{"a country that is not served", 403, asJSON, "", `{"error":{"message":"Country, region, or territory not supported","code":"unsupported_country_region_territory"}}`,
			message.Failure{Code: "AUTH", Message: "deepseek: access was refused (403): Country, region, or territory not supported"}},
		{"no balance", 402, asJSON, "", `{"error":{"message":"Insufficient Balance","type":"unknown_error"}}`, message.Failure{Code: "QUOTA", Message: "deepseek: no balance or quota left (402): Insufficient Balance"}},
		{"no quota", 429, asJSON, "", `{"error":{"message":"You exceeded your current quota","code":"insufficient_quota"}}`, message.Failure{Code: "QUOTA", Message: "deepseek: no balance or quota left (429): You exceeded your current quota"}},
		{"an unknown model", 404, asJSON, "", `{"error":{"message":"The model does not exist"}}`, message.Failure{Code: "MODEL_NOT_FOUND", Message: `deepseek: no model "deepseek-chat" (404): outcrop models deepseek lists them`}},
		{"an unknown model as a bad request", 400, asJSON, "", `{"error":{"message":"Model Not Exist"}}`, message.Failure{Code: "MODEL_NOT_FOUND", Message: `deepseek: no model "deepseek-chat" (400): outcrop models deepseek lists them`}},
		{"an address that does not exist", 404, asJSON, "", `{"detail":"Not Found"}`, message.Failure{Code: "MALFORMED_RESPONSE", Message: "deepseek: no such address (404): does base_url end in /v1?"}},
		{"a web page that was not found", 404, "text/html; charset=utf-8", "", `<html>`, message.Failure{Code: "MALFORMED_RESPONSE", Message: "deepseek: answered text/html instead of JSON: does base_url end in /v1?"}},
		{"a web page", 200, "text/html", "", `<html>`, message.Failure{Code: "MALFORMED_RESPONSE", Message: "deepseek: answered text/html instead of JSON: does base_url end in /v1?"}},
		{"a gateway's web page", 502, "text/html", "", `<html>bad gateway`, message.Failure{Code: "SERVER", Message: "deepseek: server error (502)"}},
		{"a server that waited too long", 408, asJSON, "", ``, message.Failure{Code: "TIMEOUT", Message: "deepseek: the server waited too long (408)"}},
		{"a body that is too big", 413, "text/plain", "", `Payload Too Large`, message.Failure{Code: "CONTEXT_WINDOW_EXCEEDED", Message: "deepseek: context too long (413): Payload Too Large"}},
		{"a prompt that is too long, with figures", 400, asJSON, "", `{"error":{"message":"This model's maximum context length is 128000 tokens. However, you requested 128412 tokens (127900 in the messages, 512 in the completion).","code":"context_length_exceeded"}}`,
			message.Failure{Code: "CONTEXT_WINDOW_EXCEEDED", Message: "deepseek: context too long (128,412 of 128,000)"}},
		{"a prompt that is too long, without", 400, asJSON, "", `{"error":{"message":"Please reduce the length of the messages."}}`,
			message.Failure{Code: "CONTEXT_WINDOW_EXCEEDED", Message: "deepseek: context too long (400): Please reduce the length of the messages."}},
		{"too many requests, wait in seconds", 429, asJSON, "Retry-After: 7", `{"error":{"message":"slow\ndown"}}`, message.Failure{Code: "RATE_LIMIT", Message: "deepseek: too many requests (429): slow down", RetryAfterMs: 7000}},
		{"too many requests, wait until a date", 429, asJSON, "Retry-After: Mon, 30 Nov 2026 12:00:30 GMT", `{}`, message.Failure{Code: "RATE_LIMIT", Message: "deepseek: too many requests (429)", RetryAfterMs: 30000}},
		{"too many requests, a date in the past", 429, asJSON, "Retry-After: Mon, 30 Nov 2026 11:00:00 GMT", ``, message.Failure{Code: "RATE_LIMIT", Message: "deepseek: too many requests (429)"}},
		{"too many requests, wait in milliseconds", 429, asJSON, "Retry-After-Ms: 250.5", ``, message.Failure{Code: "RATE_LIMIT", Message: "deepseek: too many requests (429)", RetryAfterMs: 250}},
		{"too many requests, nonsense", 429, asJSON, "Retry-After: soon", ``, message.Failure{Code: "RATE_LIMIT", Message: "deepseek: too many requests (429)"}},
		{"a server error with a wait", 503, asJSON, "Retry-After: 1", `{"error":"overloaded"}`, message.Failure{Code: "SERVER", Message: "deepseek: server error (503): overloaded", RetryAfterMs: 1000}},
		{"a server error", 500, "", "", ``, message.Failure{Code: "SERVER", Message: "deepseek: server error (500)"}},
		{"a bad request", 400, asJSON, "", `[{"error":{"message":"tool_calls must be followed by tool messages"}}]`, message.Failure{Code: "INVALID_REQUEST", Message: "deepseek: the request was refused (400): tool_calls must be followed by tool messages"}},
		{"a bad request in words", 422, "text/plain", "", "bad \x1b[2J body", message.Failure{Code: "INVALID_REQUEST", Message: "deepseek: the request was refused (422): bad [2J body"}},
		{"a message that echoes the key", 400, asJSON, "", `{"message":"odd key ` + key + `"}`, message.Failure{Code: "INVALID_REQUEST", Message: "deepseek: the request was refused (400): odd key [key]"}},
		{"a request id", 500, asJSON, "X-Request-Id: req-9", `{}`, message.Failure{Code: "SERVER", Message: "deepseek: server error (500)", RequestID: "req-9"}},
		{"a long message", 400, asJSON, "", `{"error":{"message":"` + strings.Repeat("é", 500) + `"}}`, message.Failure{Code: "INVALID_REQUEST", Message: "deepseek: the request was refused (400): " + strings.Repeat("é", 400-len("the request was refused (400): ")) + "..."}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var log bytes.Buffer
			o := Options{Key: key, KeyFrom: "DEEPSEEK_API_KEY", Now: func() time.Time { return time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC) },
				Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))}
			p := serve(t, o, func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Authorization") != "Bearer "+key {
					t.Errorf("authorization %q", r.Header.Get("Authorization"))
				}
				if name, value, ok := strings.Cut(tt.header, ": "); ok {
					w.Header().Set(name, value)
				}
				w.Header()["Content-Type"] = []string{tt.media}
				w.WriteHeader(tt.status)
				io.WriteString(w, tt.body)
			})
			_, chunks, f := run(t.Context(), p, ask(user(message.Text("hi"))))
			if f == nil || len(chunks) > 0 {
				t.Fatalf("failure %v, %d chunks", f, len(chunks))
			}
			tt.want.Status = tt.status
			if d := cmp.Diff(tt.want, *f); d != "" {
				t.Errorf("failure (-want +got):\n%s", d)
			}
			if strings.Contains(f.Message, "secret") || strings.Contains(log.String(), "secret") || strings.Contains(f.Message, "\n") {
				t.Errorf("message %q, log %q", f.Message, log.String())
			}
		})
	}
}

func TestTheHintNamesWhatThereIs(t *testing.T) {
	refuse := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }
	got, _, _ := run(t.Context(), serve(t, Options{}, refuse), ask(user(message.Text("hi"))))
	if want := "AUTH: deepseek: a key is needed (401): set key_env or key_command"; got.Failure != want {
		t.Errorf("%s, want %s", got.Failure, want)
	}
	got, _, _ = run(t.Context(), serve(t, Options{Key: key}, refuse), ask(user(message.Text("hi"))))
	if want := "AUTH: deepseek: the key was refused (401): check the key"; got.Failure != want {
		t.Errorf("%s, want %s", got.Failure, want)
	}
}

func TestARedirectIsNotFollowed(t *testing.T) {
	var other atomic.Int32
	thief := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { other.Add(1) }))
	defer thief.Close()
	p := serve(t, Options{Key: key}, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, thief.URL+"/v2/chat/completions?key=x", http.StatusTemporaryRedirect)
	})
	got, _, _ := run(t.Context(), p, ask(user(message.Text("hi"))))
	if want := "MALFORMED_RESPONSE: deepseek: answered with a redirect (307), which is not followed: set base_url to " + thief.URL + "/v2"; got.Failure != want {
		t.Errorf("%s, want %s", got.Failure, want)
	}
	if _, err := p.Models(t.Context()); err == nil || other.Load() != 0 {
		t.Errorf("listing models: %v; %d requests went elsewhere", err, other.Load())
	}
}

func TestAServerThatCannotBeReached(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	host := l.Addr().String()
	l.Close()
	p := newProvider(t, Options{BaseURL: "http://" + host + "/v1", Key: key})
	got, _, _ := run(t.Context(), p, ask(user(message.Text("hi"))))
	if want := "TRANSPORT: deepseek: cannot reach " + host + ": connection refused: check base_url, network or proxy"; got.Failure != want {
		t.Errorf("%s, want %s", got.Failure, want)
	}
	for name, tt := range map[string]struct {
		err  error
		want string
	}{
		"an unknown host": {&net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", Name: "api.deepseek.com", Server: "10.0.0.1"}}, "no such host"},
		"a reset":         {&net.OpError{Op: "read", Err: syscall.ECONNRESET}, "connection reset by peer"},
		"a timeout":       {&net.OpError{Op: "dial", Err: context.DeadlineExceeded}, "timed out"},
		"another error":   {errors.New("odd"), "odd"},
	} {
		p := newProvider(t, Options{Transport: fails{tt.err}})
		got, _, _ := run(t.Context(), p, ask(user(message.Text("hi"))))
		if want := "TRANSPORT: deepseek: cannot reach api.deepseek.com: " + tt.want + ": check base_url, network or proxy"; got.Failure != want {
			t.Errorf("%s: %s, want %s", name, got.Failure, want)
		}
	}
}

func TestACertificateThatIsNotTrusted(t *testing.T) {
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	s.StartTLS()
	defer s.Close()
	got, _, _ := run(t.Context(), newProvider(t, Options{BaseURL: s.URL + "/v1"}), ask(user(message.Text("hi"))))
	if want := "CERTIFICATE: deepseek: certificate not trusted: x509: "; !strings.HasPrefix(got.Failure, want) {
		t.Errorf("%s, want %s...", got.Failure, want)
	}
}

func TestAConnectionThatBreaks(t *testing.T) {
	p := serve(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, sse(`{"content":"Hel"}`))
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	})
	got, _, _ := run(t.Context(), p, ask(user(message.Text("hi"))))
	if !strings.HasPrefix(got.Failure, "TRANSPORT: deepseek: the connection broke: ") || len(got.Blocks) != 1 {
		t.Errorf("outcome %+v", got)
	}
}

// slowBody gives its parts with a wait before each, then waits for the end of
// the request.
type slowBody struct {
	ctx   context.Context
	wait  time.Duration
	parts []string
}

func (b *slowBody) Read(p []byte) (int, error) {
	if len(b.parts) == 0 {
		<-b.ctx.Done()
		return 0, b.ctx.Err()
	}
	select {
	case <-time.After(b.wait):
	case <-b.ctx.Done():
		return 0, b.ctx.Err()
	}
	n := copy(p, b.parts[0])
	b.parts = b.parts[1:]
	return n, nil
}

func (b *slowBody) Close() error { return nil }

func TestSilence(t *testing.T) {
	slow := func(wait time.Duration, parts ...string) answers {
		return func(r *http.Request) *http.Response {
			return response(200, "text/event-stream", &slowBody{r.Context(), wait, parts})
		}
	}
	hello := []string{sse(`{"content":"Hel"}`), ": still here\n\n", sse(`{"content":"lo"}`), sse("finish stop", done)}
	tests := []struct {
		name      string
		transport http.RoundTripper
		cancel    time.Duration
		want      outcome
		after     time.Duration
	}{
		{"a pause below the limit is waited for", slow(299*time.Second, hello...), 0, outcome{Blocks: []string{"text Hello"}, Finish: message.Stop}, 4 * 299 * time.Second},
		{"silence over the limit is a timeout", slow(10*time.Second, hello[0]), 0, outcome{Blocks: []string{"text Hel"}, Failure: "TIMEOUT: deepseek: no data for 5m0s"}, 310 * time.Second},
		{"no answer at all is a timeout", waits{}, 0, outcome{Failure: "TIMEOUT: deepseek: no data for 5m0s"}, 300 * time.Second},
		{"silence after the finish ends the reply", slow(time.Second, sse(`{"content":"Hello"}`, "finish stop")), 0, outcome{Blocks: []string{"text Hello"}, Finish: message.Stop}, 301 * time.Second},
		{"a cancelled call is aborted", slow(time.Second, hello[0]), 5 * time.Second, outcome{Blocks: []string{"text Hel"}, Failure: "ABORTED: deepseek: the call was cancelled"}, 5 * time.Second},
		{"a call that is cancelled before the answer is aborted", waits{}, 5 * time.Second, outcome{Failure: "ABORTED: deepseek: the call was cancelled"}, 5 * time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx := t.Context()
				if tt.cancel > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, tt.cancel)
					defer cancel()
				}
				start := time.Now()
				got, _, _ := run(ctx, newProvider(t, Options{Transport: tt.transport}), ask(user(message.Text("hi"))))
				if d := cmp.Diff(tt.want, got); d != "" {
					t.Errorf("outcome (-want +got):\n%s", d)
				}
				if since := time.Since(start); since != tt.after {
					t.Errorf("after %v, want %v", since, tt.after)
				}
			})
		})
	}
}

// waits is a server that accepts and never answers.
type waits struct{}

func (waits) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

func TestARequestThatIsNotFitIsNotSent(t *testing.T) {
	p := newProvider(t, Options{Transport: fails{errors.New("was sent")}})
	req := ask(user(message.Text("hi")))
	req.Messages[0].Content[0].Text = ""
	got, _, _ := run(t.Context(), p, req)
	if !strings.HasPrefix(got.Failure, "INVALID_REQUEST: request refused: messages[0]") {
		t.Error(got.Failure)
	}
}

func TestModels(t *testing.T) {
	p := serve(t, Options{Key: key}, func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || r.URL.Path != "/v1/models" || r.Header.Get("Authorization") != "Bearer "+key {
			t.Errorf("%s %s", r.Method, r.URL.Path)
		}
		sends("application/json", `{"object":"list","data":[{"id":"b","context_length":128000},{"id":"a"},{"name":"x"}]}`)(w, r)
	})
	got, err := p.Models(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]ModelInfo{{ID: "a"}, {ID: "b", Window: 128000}}, got); d != "" {
		t.Error(d)
	}
	for media, tt := range map[string]struct {
		status     int
		body, want string
	}{
		"application/json":         {200, `{"models":[]}`, "deepseek: answered with something that is no list of models: does base_url end in /v1?"},
		"application/json; broken": {200, `{`, "deepseek: answered with something that is no list of models: does base_url end in /v1?"},
		"text/html":                {200, `<html>`, "deepseek: answered text/html instead of JSON: does base_url end in /v1?"},
		"text/plain":               {200, `ok`, "deepseek: answered text/plain instead of JSON: does base_url end in /v1?"},
		"application/problem+json": {404, `{"error":{"message":"gone"}}`, "deepseek: no such address (404): does base_url end in /v1?"},
	} {
		p := serve(t, Options{}, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", media)
			w.WriteHeader(tt.status)
			fmt.Fprint(w, tt.body)
		})
		if _, err := p.Models(t.Context()); err == nil || err.Error() != tt.want {
			t.Errorf("%s: %v, want %s", media, err, tt.want)
		}
	}
}
