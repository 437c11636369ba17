package viewer_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/outcrop-dev/outcrop/store/memory"
	"github.com/outcrop-dev/outcrop/store/storetest"
	"github.com/outcrop-dev/outcrop/viewer"
)

func TestWhoMayAsk(t *testing.T) {
	w := newWorld(t, options{})
	l := w.live("s1")
	if err := storetest.Turn(l.Session(), 1); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	port := w.url[strings.LastIndex(w.url, ":"):]
	bearer := "Authorization: Bearer " + token
	change := []string{"X-Outcrop: 1", "Content-Type: application/json", "Sec-Fetch-Site: same-origin"}
	for _, c := range []struct {
		name, method, path, host string
		headers                  []string
		status                   int
		code                     string
	}{
		{"a page needs no token", "GET", "/", "", nil, 200, ""},
		{"a page by a link from elsewhere", "GET", "/", "", []string{"Sec-Fetch-Site: cross-site"}, 200, ""},
		{"a page for another host", "GET", "/", "evil.example" + port, nil, 403, "FORBIDDEN_HOST"},
		{"a page is not posted to", "POST", "/", "", nil, 405, "METHOD"},
		{"no token", "GET", "/api/v1", "", nil, 401, "TOKEN"},
		{"a wrong token", "GET", "/api/v1", "", []string{"Authorization: Bearer x"}, 401, "TOKEN"},
		{"a wrong cookie", "GET", "/api/v1", "", []string{"Cookie: outcrop-" + port[1:] + "=x"}, 401, "TOKEN"},
		{"the token as cookie", "GET", "/api/v1", "", []string{"Cookie: outcrop-" + port[1:] + "=" + token}, 401, "TOKEN"},
		{"the token", "GET", "/api/v1", "", []string{bearer}, 200, ""},
		{"localhost", "GET", "/api/v1", "localhost" + port, []string{bearer}, 200, ""},
		{"the other loopback", "GET", "/api/v1", "[::1]" + port, []string{bearer}, 200, ""},
		{"another port", "GET", "/api/v1", "127.0.0.1:1", []string{bearer}, 403, "FORBIDDEN_HOST"},
		{"no port", "GET", "/api/v1", "127.0.0.1", []string{bearer}, 403, "FORBIDDEN_HOST"},
		{"a name that was made to mean this machine", "GET", "/api/v1", "127.0.0.1.evil.example" + port, []string{bearer}, 403, "FORBIDDEN_HOST"},
		{"a host that begins with a name of ours", "GET", "/api/v1", "localhost.evil.example" + port, []string{bearer}, 403, "FORBIDDEN_HOST"},
		{"our own origin", "GET", "/api/v1", "", []string{bearer, "Origin: " + w.url}, 200, ""},
		{"another origin", "GET", "/api/v1", "", []string{bearer, "Origin: http://evil.example"}, 403, "FORBIDDEN_ORIGIN"},
		{"no origin at all", "GET", "/api/v1", "", []string{bearer, "Origin: null"}, 403, "FORBIDDEN_ORIGIN"},
		{"our origin with something behind it", "GET", "/api/v1", "", []string{bearer, "Origin: " + w.url + "/x"}, 403, "FORBIDDEN_ORIGIN"},
		{"our origin by another scheme", "GET", "/api/v1", "", []string{bearer, "Origin: https" + strings.TrimPrefix(w.url, "http")}, 403, "FORBIDDEN_ORIGIN"},
		{"a page of another site", "GET", "/api/v1", "", []string{bearer, "Sec-Fetch-Site: cross-site"}, 403, "FORBIDDEN_ORIGIN"},
		{"a page of another port", "GET", "/api/v1", "", []string{bearer, "Sec-Fetch-Site: same-site"}, 403, "FORBIDDEN_ORIGIN"},
		{"an address typed in", "GET", "/api/v1", "", []string{bearer, "Sec-Fetch-Site: none"}, 200, ""},
		{"a change without its header", "POST", "/api/v1/sessions/s1/title", "", []string{bearer, "Content-Type: application/json", "Sec-Fetch-Site: same-origin"}, 403, "FORBIDDEN_CHANGE"},
		{"a change by a form", "POST", "/api/v1/sessions/s1/title", "", []string{bearer, "Content-Type: text/plain", "X-Outcrop: 1"}, 400, "BAD_REQUEST"},
		{"a change by a program", "POST", "/api/v1/sessions/s1/title", "", []string{bearer, "Content-Type: application/json", "X-Outcrop: 1"}, 200, ""},
		{"a change without a token", "POST", "/api/v1/sessions/s1/title", "", change, 401, "TOKEN"},
		{"another method", "DELETE", "/api/v1/sessions/s1", "", append([]string{bearer}, change...), 404, "NOT_FOUND"},
		{"another method without the header", "PUT", "/api/v1/sessions/s1", "", []string{bearer}, 403, "FORBIDDEN_CHANGE"},
		{"a path that is none", "GET", "/api/v2", "", []string{bearer}, 404, "NOT_FOUND"},
		{"a path that is none, without a token", "GET", "/api/v2", "", nil, 401, "TOKEN"},
		{"a token by a page of another site", "POST", "/api/v1/token", "", []string{"Sec-Fetch-Site: cross-site", "X-Outcrop: 1"}, 403, "FORBIDDEN_ORIGIN"},
		{"a token without the header", "POST", "/api/v1/token", "", []string{"Sec-Fetch-Site: same-origin"}, 403, "FORBIDDEN_CHANGE"},
		{"a token that is not ours", "POST", "/api/v1/token", "", change, 401, "TOKEN"},
	} {
		t.Run(c.name, func(t *testing.T) {
			body := io.Reader(nil)
			if c.method == "POST" {
				body = strings.NewReader(`{"title":"a"}`)
				if c.path == "/api/v1/token" {
					body = strings.NewReader(`{"key":"a"}`)
				}
			}
			r, err := http.NewRequest(c.method, w.url+c.path, body)
			if err != nil {
				t.Fatal(err)
			}
			r.Host = c.host
			for _, h := range c.headers {
				name, value, _ := strings.Cut(h, ": ")
				r.Header.Set(name, value)
			}
			status, h, b := w.whole(r)
			if status != c.status {
				t.Fatalf("status %d, not %d: %s", status, c.status, b)
			}
			if c.code != "" && w.codeOf(c.path, status, c.status, b) != c.code {
				t.Errorf("not %s: %s", c.code, b)
			}
			if csp := h.Get("Content-Security-Policy"); !strings.HasPrefix(csp, "default-src 'none'; script-src 'self'") || strings.Contains(csp, "unsafe") {
				t.Errorf("policy %q", csp)
			}
			for name, want := range map[string]string{"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
				"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin", "Access-Control-Allow-Origin": ""} {
				if got := h.Get(name); got != want {
					t.Errorf("%s: %q", name, got)
				}
			}
		})
	}
}

func TestABrowserTradesTheTokenForACookie(t *testing.T) {
	w := newWorld(t, options{})
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	browser := &http.Client{Jar: jar}
	r := w.request("POST", "/api/v1/token", []byte(`{"key":"`+token+`"}`))
	r.Header.Del("Authorization")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	resp, err := browser.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 204 || len(resp.Cookies()) != 1 {
		t.Fatalf("status %d, cookies %v", resp.StatusCode, resp.Cookies())
	}
	c := resp.Cookies()[0]
	u, err := url.Parse(w.url)
	if err != nil {
		t.Fatal(err)
	}
	if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || c.Name != "outcrop-"+u.Port() || len(c.Value) != 64 || strings.Contains(c.Value, token) {
		t.Errorf("%v", c)
	}
	for _, path := range []string{"/api/v1", "/api/v1/sessions"} {
		resp, err := browser.Get(w.url + path)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != 200 {
			t.Errorf("%s with the cookie: %d", path, resp.StatusCode)
		}
	}
	// A page cannot change anything by the cookie alone.
	r = w.request("POST", "/api/v1/sessions/x/title", []byte(`{"title":"a"}`))
	r.Header.Del("Authorization")
	if resp, err = browser.Do(r); err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 403 {
		t.Errorf("a change by the cookie alone: %d", resp.StatusCode)
	}
}

func TestWithoutATokenOnlyThisMachineIsServed(t *testing.T) {
	for addr, ok := range map[string]bool{"127.0.0.1:1": true, "[::1]:1": true, "localhost:1": true, "127.9.9.9:1": true,
		"0.0.0.0:1": false, ":1": false, "[::]:1": false, "192.168.1.5:1": false, "example.org:1": false, "localhost.example.org:1": false, "127.0.0.1": false} {
		_, err := viewer.New(viewer.Options{Store: memory.New(), Addr: addr, Now: func() int64 { return 1 }, NewID: func() string { return "x" }, Random: func([]byte) {}})
		if (err == nil) != ok {
			t.Errorf("%s: %v", addr, err)
		}
	}
	w := newWorld(t, options{noToken: true})
	r := w.request("GET", "/api/v1", nil)
	r.Header.Del("Authorization")
	if status, b := w.do(r); status != 200 {
		t.Errorf("%d: %s", status, b)
	}
	r = w.request("POST", "/api/v1/sessions/x/title", []byte(`{"title":"a"}`))
	r.Header.Del("Authorization")
	if status, b := w.do(r); status != 403 {
		t.Errorf("a change without its headers: %d: %s", status, b)
	}
}

func TestAServerOnAllAddressesGoesByNumbersAndNoNames(t *testing.T) {
	v, err := viewer.New(viewer.Options{Store: memory.New(), Addr: "0.0.0.0:7", Token: token, Now: func() int64 { return 1 }, NewID: func() string { return "x" }, Random: func([]byte) {}})
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close(t.Context())
	for host, want := range map[string]int{"10.1.2.3:7": 200, "localhost:7": 200, "[fe80::1]:7": 200, "box.example:7": 403, "10.1.2.3:8": 403, "": 403} {
		r, err := http.NewRequest("GET", "/", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = host
		rec := newRecorder()
		v.ServeHTTP(rec, r)
		if rec.status != want {
			t.Errorf("%q: %d, not %d", host, rec.status, want)
		}
	}
}

// recorder is a response that is only looked at.
type recorder struct {
	h      http.Header
	status int
}

func newRecorder() *recorder                    { return &recorder{h: http.Header{}} }
func (r *recorder) Header() http.Header         { return r.h }
func (r *recorder) Write(b []byte) (int, error) { return len(b), nil }
func (r *recorder) WriteHeader(status int)      { r.status = status }

func TestNoPathLeadsOutOfThePagesOrTheStore(t *testing.T) {
	w := newWorld(t, options{})
	l := w.live("s1")
	if err := storetest.Turn(l.Session(), 1); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{
		"/../access.go", "/%2e%2e/access.go", "/..%2faccess.go", "/assets/../../access.go", "/assets/%2e%2e/%2e%2e/access.go", "//etc/passwd", "/etc/passwd",
		"/index.html/", "/assets", "/assets/", "/%00", "/index.html%00", `/..\access.go`,
		"/api/v1/sessions/..", "/api/v1/sessions/%2e%2e", "/api/v1/sessions/..%2f..%2fetc%2fpasswd", "/api/v1/sessions/%2fetc%2fpasswd",
		"/api/v1/sessions/s1%2f..%2fs1", "/api/v1/sessions/s1%00", "/api/v1/sessions/%ff", "/api/v1/sessions/" + strings.Repeat("a", 2000), "/api/v1/sessions/.", "/api/v1/sessions/%2e",
		"/api/v1/attachments/..", "/api/v1/attachments/sha256:..%2f..", "/api/v1/attachments/sha256:" + strings.Repeat("A", 64), "/api/v1/attachments/%2fetc%2fpasswd",
	} {
		// The client must send the path as it stands here.
		conn, err := net.Dial("tcp", strings.TrimPrefix(w.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nConnection: close\r\n\r\n", path, strings.TrimPrefix(w.url, "http://"), token)
		b, err := io.ReadAll(conn)
		conn.Close()
		if err != nil {
			t.Fatal(err)
		}
		status := strings.Fields(string(b))[1]
		switch status {
		case "404", "400":
		case "301", "307", "308":
			// To a cleaned path, on this server.
			if i := strings.Index(string(b), "\nLocation: "); i < 0 || !strings.HasPrefix(string(b)[i+11:], "/") || strings.HasPrefix(string(b)[i+11:], "//") {
				t.Errorf("%s leads elsewhere: %s", path, b)
			}
		default:
			t.Errorf("%.80s: %s: %.300s", path, status, b)
		}
	}
}

func TestBodiesAndHeadersHaveLimits(t *testing.T) {
	w := newWorld(t, options{})
	l := w.live("s1")
	if err := storetest.Turn(l.Session(), 1); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	big := append(append([]byte(`{"title":"`), strings.Repeat("a", 10<<20)...), `"}`...)
	if code := w.postRefused("/api/v1/sessions/s1/title", big, 413); code != "TOO_LARGE" {
		t.Error(code)
	}
	for name, body := range map[string]string{"an unknown member": `{"title":"a","x":1}`, "a member twice": `{"title":"a","title":"b"}`, "no object": `[]`, "no JSON": `{`,
		"a wrong type": `{"title":1}`, "no UTF-8": "{\"title\":\"\xff\"}", "nothing": "", "deep": strings.Repeat("[", 100_000)} {
		if code := w.postRefused("/api/v1/sessions/s1/title", []byte(body), 400); code != "BAD_REQUEST" {
			t.Errorf("%s: %s", name, code)
		}
	}
	r := w.request("GET", "/api/v1", nil)
	r.Header.Set("X-Long", strings.Repeat("a", 200<<10))
	// The answer may be lost with the connection, on which the rest still comes.
	if resp, err := http.DefaultClient.Do(r); err == nil {
		if resp.Body.Close(); resp.StatusCode != 431 {
			t.Errorf("long header: %d", resp.StatusCode)
		}
	}
	for _, q := range []string{"limit=0", "limit=x", "from=x", "from=99999999999999999999"} {
		if code := w.refused("/api/v1/sessions/s1/conversation?"+q, 400); code != "BAD_REQUEST" {
			t.Errorf("%s: %s", q, code)
		}
	}
	for _, q := range []string{"px=x", "px=-1", "from=NaN", "to=1e300", "widths=x", "at=-5", "at=x"} {
		if code := w.refused("/api/v1/sessions/s1/strata?"+q, 400); code != "BAD_REQUEST" {
			t.Errorf("%s: %s", q, code)
		}
	}
}

// Slow senders hold a connection and nothing else: two hundred of them, and the
// next request is answered.
func TestTwoHundredSlowClientsStandInNobodysWay(t *testing.T) {
	w := newWorld(t, options{})
	addr := strings.TrimPrefix(w.url, "http://")
	for i := range 200 {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		switch i % 3 {
		case 0: // says nothing
		case 1: // half a header
			fmt.Fprintf(conn, "GET /api/v1 HTTP/1.1\r\nHost: %s\r\nX-A: ", addr)
		case 2: // half a body
			fmt.Fprintf(conn, "POST /api/v1/token HTTP/1.1\r\nHost: %s\r\nX-Outcrop: 1\r\nSec-Fetch-Site: same-origin\r\nContent-Length: 100\r\n\r\n{", addr)
		}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.get("/api/v1", nil)
	}()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Fatal("nobody answers")
	}
}
