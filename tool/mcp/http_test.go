package mcp

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/outcrop-dev/outcrop/internal/jsonwire"
)

// site is an HTTP server whose handler can be exchanged.
type site struct {
	*httptest.Server
	now atomic.Pointer[http.Handler]
}

func (s *site) serve(h http.Handler) { s.now.Store(&h) }

func newSite(t *testing.T, h http.Handler) *site {
	t.Helper()
	s := &site{}
	s.serve(h)
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { (*s.now.Load()).ServeHTTP(w, r) }))
	t.Cleanup(s.Close)
	return s
}

// forgetful is a handler of the SDK with a new server and no sessions yet.
func forgetful() http.Handler {
	srv := newServerOf("tools")
	return sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return srv }, nil)
}

// byHand answers requests as the servers that speak by hand do.
func byHand(answer func(w http.ResponseWriter, r *http.Request, method string, id []byte) bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		method, _ := jsonwire.Text(jsonwire.Get(body, "method"))
		id := jsonwire.Get(body, "id")
		switch {
		case err != nil, r.Method != http.MethodPost:
			w.WriteHeader(http.StatusMethodNotAllowed)
		case answer(w, r, method, id):
		case id == nil:
			w.WriteHeader(http.StatusAccepted)
		default:
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,%s`, id, strings.TrimPrefix(goodAnswers(method), "{"))
		}
	})
}

func TestToolsOverHTTPAreOfferedAndCalled(t *testing.T) {
	s := newSite(t, forgetful())
	b := up(t, Server{Name: "web", URL: s.URL, Trust: true}, program("fake", "tools"))
	if got := b.text("mcp__web__echo", `{"text":"hello"}`); got != "hello" {
		t.Errorf("echo says %q", got)
	}
	if got := b.text("mcp__web__key", `{"text":""}`); got != "session/7/call-1" {
		t.Errorf("the key of the call came as %q", got)
	}
	if got := b.text("mcp__web__notify", `{"text":""}`); got != "told" {
		t.Errorf("notify says %q", got)
	}
	b.fails("mcp__web__fail", `{"text":""}`, "", "it is broken")
	b.fails("mcp__web__protocol-error", `{}`, "MCP_ERROR", "not today")
	if n := len(b.set.Tools()); n != 2*len(b.set.servers[0].listed) {
		t.Errorf("%d tools", n)
	}
}

func TestASessionThatTheServerForgotIsOpenedAgain(t *testing.T) {
	s := newSite(t, forgetful())
	b := up(t, Server{Name: "web", URL: s.URL})
	s.serve(forgetful()) // the server was started again
	if got := b.text("mcp__web__echo", `{"text":"again"}`); got != "again" {
		t.Error(got)
	}
	// Some say it with an error of the protocol.
	inner := forgetful()
	s.serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rec := httptest.NewRecorder()
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		inner.ServeHTTP(rec, r)
		if rec.Code == http.StatusNotFound {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32001,"message":"session not found"}}`, jsonwire.Get(body, "id"))
			return
		}
		for k, v := range rec.Header() {
			w.Header()[k] = v
		}
		w.WriteHeader(rec.Code)
		_, _ = w.Write(rec.Body.Bytes()) // the test sees what is missing
	}))
	if got := b.text("mcp__web__echo", `{"text":"and again"}`); got != "and again" {
		t.Error(got)
	}
}

func TestACallIsNeverSentTwice(t *testing.T) {
	var calls atomic.Int64
	cut := func(w http.ResponseWriter, _ *http.Request, method string, _ []byte) bool {
		if method != "tools/call" {
			return false
		}
		calls.Add(1)
		w.Header().Set("Content-Type", "text/event-stream")
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush() // the cut below is the test
		panic(http.ErrAbortHandler)
	}
	s := newSite(t, byHand(cut))
	b := up(t, Server{Name: "web", URL: s.URL})
	b.fails("mcp__web__echo", `{}`, "MCP_LOST", "it may have been done")
	if n := calls.Load(); n != 1 {
		t.Errorf("the call was sent %d times", n)
	}
	s.serve(byHand(func(http.ResponseWriter, *http.Request, string, []byte) bool { return false }))
	if got := b.text("mcp__web__echo", `{}`); got != "hello" {
		t.Error(got)
	}
}

func TestARemoteCallIsCancelledAtTheServer(t *testing.T) {
	started, ended := make(chan struct{}), make(chan struct{})
	srv := sdk.NewServer(&sdk.Implementation{Name: "fake", Version: "1"}, nil)
	sdk.AddTool(srv, &sdk.Tool{Name: "hang"}, func(ctx context.Context, _ *sdk.CallToolRequest, _ textArgs) (*sdk.CallToolResult, any, error) {
		close(started)
		<-ctx.Done()
		close(ended)
		return nil, nil, ctx.Err()
	})
	s := newSite(t, sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return srv }, nil))
	b := up(t, Server{Name: "web", URL: s.URL})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-started
		cancel()
	}()
	b.failed(b.call(ctx, "mcp__web__hang", `{"text":""}`), "ABORTED")
	<-ended
}

func TestAnAnswerOverHTTPIsMended(t *testing.T) {
	hologram := `"result":{"content":[{"type":"hologram"},{"type":"text","text":"b"}]}}`
	deep := `"result":{"structuredContent":` + nested(1000) + `}}`
	for _, c := range []struct{ name, media, format string }{
		{"whole", "application/json", `{"jsonrpc":"2.0","id":%s,%s`},
		{"in a stream", "text/event-stream", "event: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}\n\nid: 1\r\ndata:{\"jsonrpc\":\"2.0\",\"id\":%s,%s\r\n\r\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			answer := hologram
			b := up(t, Server{Name: "web", URL: newSite(t, byHand(func(w http.ResponseWriter, _ *http.Request, method string, id []byte) bool {
				if method != "tools/call" {
					return false
				}
				w.Header().Set("Content-Type", c.media)
				fmt.Fprintf(w, c.format, id, answer)
				return true
			})).URL})
			if got := b.text("mcp__web__echo", `{}`); got != "[content of an unknown kind, hologram, not shown]\nb" {
				t.Errorf("%q", got)
			}
			answer = deep
			b.fails("mcp__web__echo", `{}`, "MCP_ERROR", "did the call and gave an answer that cannot be read: it is nested deeper than 1000 levels")
		})
	}
}

func TestAnHTTPServerThatHangsDoesNotTakeTheTurnWithIt(t *testing.T) {
	release := make(chan struct{})
	hang := func(_ http.ResponseWriter, r *http.Request, method string, _ []byte) bool {
		if method == "tools/call" || method == "ping" {
			select {
			case <-r.Context().Done():
			case <-release:
			}
		}
		return false
	}
	s := newSite(t, byHand(hang))
	defer close(release)
	b := up(t, Server{Name: "web", URL: s.URL, Timeout: 500 * time.Millisecond})
	b.fails("mcp__web__echo", `{}`, "MCP_TIMEOUT", "did not answer within 500ms")
	b.fails("mcp__web__echo", `{}`, "MCP_TIMEOUT")
	s.serve(byHand(func(http.ResponseWriter, *http.Request, string, []byte) bool { return false }))
	if got := b.text("mcp__web__echo", `{}`); got != "hello" {
		t.Error(got)
	}
}

func TestAnHTTPServerThatFloodsIsCutOff(t *testing.T) {
	for _, c := range []struct{ name, media, first, rest string }{
		{"one JSON value without an end", "application/json", `{"jsonrpc":"2.0","x":"`, strings.Repeat("y", 1<<16)},
		{"one event without an end", "text/event-stream", "data: ", strings.Repeat("y", 1<<16)},
		{"events without an end", "text/event-stream", "", strings.Repeat("data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\"}\n\n", 1000)},
		{"comments without an end", "text/event-stream", "", strings.Repeat(":\n", 1<<15)},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSite(t, byHand(func(w http.ResponseWriter, _ *http.Request, method string, _ []byte) bool {
				if method != "tools/call" {
					return false
				}
				w.Header().Set("Content-Type", c.media)
				_, err := io.WriteString(w, c.first)
				for err == nil {
					_, err = io.WriteString(w, c.rest)
				}
				return true
			}))
			b := up(t, Server{Name: "web", URL: s.URL})
			b.fails("mcp__web__echo", `{}`, "MCP_LOST")
		})
	}
}

func TestWhatIsWrongWithAnAddressIsSaid(t *testing.T) {
	answer := func(status int, media, body string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", media)
			w.Header().Set("Location", "http://127.0.0.1:1/other?key=secret")
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body) // the test sees what is missing
		})
	}
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	secure := httptest.NewUnstartedServer(forgetful())
	secure.Config.ErrorLog = log.New(io.Discard, "", 0) // it hears of every client that leaves
	secure.StartTLS()
	defer secure.Close()
	key := map[string]string{"Authorization": "Bearer sk-very-secret"}
	for _, c := range []struct {
		name   string
		server Server
		h      http.Handler
		want   string
	}{
		{"a refused key", Server{Headers: key, KeyFrom: "WEB_KEY"}, answer(401, "text/plain", ""), "the key was refused (401): check WEB_KEY"},
		{"a refused header", Server{Headers: key}, answer(403, "text/plain", ""), "the key was refused (403): check its headers"},
		{"a key is needed", Server{}, answer(401, "application/json", `{"error":"x"}`), "a key is needed (401): set key_env or key_command"},
		{"a redirect", Server{Headers: key}, answer(307, "text/plain", ""), "answered with a redirect (307), which is not followed: set url to http://127.0.0.1:1/other"},
		{"a web page", Server{}, answer(200, "text/html; charset=utf-8", "<html>"), "answered text/html instead of JSON: is url the address of an MCP endpoint?"},
		{"nobody there", Server{URL: gone.URL}, nil, "cannot reach " + strings.TrimPrefix(gone.URL, "http://") + ": connection refused"},
		{"a certificate of its own", Server{URL: secure.URL}, nil, "certificate not trusted: x509: certificate signed by unknown authority"},
		{"a server error", Server{}, answer(503, "text/plain", "later"), "Service Unavailable"},
		{"another protocol", Server{}, answer(200, "application/json", `{"hello":"world"}`), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.server.Name = "web"
			if c.h != nil {
				c.server.URL = newSite(t, c.h).URL
			}
			o := Options{times: short}
			o.times.connect = time.Second
			b := connect(t, o, c.server)
			if len(b.errs) != 1 {
				t.Fatalf("%v", b.errs)
			}
			if got := b.errs[0].Error(); !strings.HasPrefix(got, "mcp server web: ") || !strings.Contains(got, c.want) || strings.Contains(got, "secret") || strings.Contains(got, "\n") {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

func TestAServerThatWentAwayIsNotThere(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(byHand(func(http.ResponseWriter, *http.Request, string, []byte) bool { return false }))
	_ = s.Listener.Close() // replaced
	s.Listener = l
	s.Start()
	b := up(t, Server{Name: "web", URL: s.URL})
	s.Close()
	b.set.servers[0].idle() // none that was open is tried
	b.fails("mcp__web__echo", `{}`, "MCP_UNAVAILABLE", "is not there: cannot reach 127.0.0.1:", "connection refused")
}

func TestHeadersGoToTheServersHostOnly(t *testing.T) {
	var got atomic.Value
	s := newSite(t, byHand(func(_ http.ResponseWriter, r *http.Request, _ string, _ []byte) bool {
		got.Store(r.Header.Get("X-Api-Key"))
		return false
	}))
	up(t, Server{Name: "web", URL: s.URL, Headers: map[string]string{"X-Api-Key": "k"}})
	if got.Load() != "k" {
		t.Errorf("the header came as %v", got.Load())
	}
	var elsewhere string
	w, err := newWeb(Server{URL: s.URL, Headers: map[string]string{"X-Api-Key": "k"}}, roundTrip(func(r *http.Request) (*http.Response, error) {
		elsewhere = r.Header.Get("X-Api-Key")
		return &http.Response{StatusCode: 200, Body: http.NoBody}, nil
	}), &allowance{})
	if err != nil {
		t.Fatal(err)
	}
	resp, err := w.client().Get("http://other.example/")
	if err != nil {
		t.Fatal(err)
	}
	if err := resp.Body.Close(); err != nil || elsewhere != "" {
		t.Errorf("%v; another host got %q", err, elsewhere)
	}
	w.end()
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestKeysAreNeverLogged(t *testing.T) {
	s := newSite(t, forgetful())
	b := up(t, Server{Name: "web", URL: s.URL, Headers: map[string]string{"Authorization": "Bearer sk-very-secret"}},
		Server{Name: "fake", Command: []string{os.Args[0]}, Env: append(os.Environ(), asServer+"=tools", "SECRET=sk-very-secret")})
	b.text("mcp__web__echo", `{"text":"the text of a message"}`)
	b.fails("mcp__fake__exit", `{"text":"the text of a message"}`, "MCP_LOST")
	for _, never := range []string{"sk-very-secret", "the text of a message"} {
		if strings.Contains(b.log.String(), never) {
			t.Errorf("the log holds %q", never)
		}
	}
}
