package viewer

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"github.com/outcrop-dev/outcrop/internal/jsonwire"
)

// access decides who may ask.
type access struct {
	token  string // "": nobody needs one
	cookie string // name
	secret string // value
	host   string
	port   string
}

const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; " +
	"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

func newAccess(o *Options) (*access, error) {
	host, port, err := net.SplitHostPort(o.Addr)
	if err != nil {
		return nil, fmt.Errorf("viewer: address %q: %w", o.Addr, err)
	}
	if o.Token == "" && !isLoopback(host) {
		return nil, errors.New("viewer: without a token only addresses of this machine itself may be served")
	}
	b := make([]byte, 32)
	o.Random(b)
	return &access{token: o.Token, cookie: "outcrop-" + port, secret: hex.EncodeToString(b), host: host, port: port}, nil
}

// isLoopback reports a host that only this machine can reach.
func isLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

// headers are those of every answer.
func (a *access) headers(h http.Header) {
	h.Set("Content-Security-Policy", contentPolicy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

const tokenPath = "/api/v1/token"

// check refuses a request that is not meant for this server, comes from
// elsewhere, has no token, or changes something without the headers for it.
func (a *access) check(r *http.Request) *problem {
	if !a.ours(r.Host) {
		return forbidden("FORBIDDEN_HOST", "the request is for another host: open the address that this server printed")
	}
	if o := r.Header.Get("Origin"); o != "" {
		u, err := url.Parse(o)
		if err != nil || u.Scheme != "http" || !a.ours(u.Host) || o != "http://"+u.Host {
			return forbidden("FORBIDDEN_ORIGIN", "the request comes from a page of another server")
		}
	}
	if !strings.HasPrefix(r.URL.Path, "/api/") {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			return &problem{status: http.StatusMethodNotAllowed, code: "METHOD", msg: "pages are only read"}
		}
		return nil
	}
	bearer := false
	if given, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok && a.token != "" {
		if !same(given, a.token) {
			return badToken
		}
		bearer = true
	}
	site := r.Header.Get("Sec-Fetch-Site")
	if site != "" && site != "same-origin" && site != "none" {
		return forbidden("FORBIDDEN_ORIGIN", "the request comes from a page of another server")
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		if r.Header.Get("X-Outcrop") != "1" || site != "same-origin" && !bearer {
			return forbidden("FORBIDDEN_CHANGE", "a change needs the header X-Outcrop: 1 and Sec-Fetch-Site: same-origin")
		}
	}
	if a.token == "" || bearer || r.URL.Path == tokenPath && r.Method == http.MethodPost {
		return nil
	}
	for _, c := range r.CookiesNamed(a.cookie) {
		if same(c.Value, a.secret) {
			return nil
		}
	}
	return badToken
}

var badToken = &problem{status: http.StatusUnauthorized, code: "TOKEN",
	msg: "this browser has no token of this server", hint: "open the address that it printed when it started, with all that stands behind #"}

func forbidden(code, msg string) *problem {
	return &problem{status: http.StatusForbidden, code: code, msg: msg}
}

// ours reports whether a host, with its port, names this server. A server that
// listens on every address of a machine goes by any number, but by no name:
// names can be made to mean anything.
func (a *access) ours(hostport string) bool {
	host, port, err := net.SplitHostPort(hostport)
	if err != nil {
		host, port = strings.Trim(hostport, "[]"), "80"
	}
	if port != a.port {
		return false
	}
	if strings.EqualFold(host, a.host) {
		return true
	}
	ip, err := netip.ParseAddr(a.host)
	switch all := a.host == "" || err == nil && ip.IsUnspecified(); {
	case all:
		_, err := netip.ParseAddr(host)
		return err == nil || strings.EqualFold(host, "localhost")
	case isLoopback(a.host):
		return isLoopback(host)
	}
	return false
}

// same compares without telling how much is right.
func same(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

// trade gives the cookie for the token.
func (v *Viewer) trade(a *answerer) error {
	body, err := a.body(4 << 10)
	if err != nil {
		return err
	}
	var in struct {
		Key string `json:"key"`
	}
	if err := jsonwire.UnmarshalStrict(body, &in); err != nil {
		return badRequest("the body is not {\"key\":\"...\"}")
	}
	if v.access.token != "" {
		if !same(in.Key, v.access.token) {
			return badToken
		}
		http.SetCookie(a.w, &http.Cookie{Name: v.access.cookie, Value: v.access.secret, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
	}
	a.w.WriteHeader(http.StatusNoContent)
	return nil
}
