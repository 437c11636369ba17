package endpoint

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode"

	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/message"
)

const maxMessage = 400 // code points of a failure's text

// Fail makes a failure with the provider's name in front.
func (c *Call) Fail(code, text string) *message.Failure {
	return &message.Failure{Code: code, Message: c.Name + ": " + c.oneLine(text), RequestID: c.requestID}
}

// oneLine makes a text from elsewhere fit for one line, without the key.
func (c *Call) oneLine(s string) string {
	if len(s) > 64<<10 {
		s = s[:64<<10]
	}
	if k := c.Key; len(k) >= 4 {
		s = strings.ReplaceAll(s, k, "[key]")
	}
	s = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, llm.Clean(s))
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > maxMessage {
		s = string(r[:maxMessage]) + "..."
	}
	return s
}

// unreachable reduces an error of the transport before there was an answer.
func (c *Call) unreachable(err error) *message.Failure {
	var cert *tls.CertificateVerificationError
	if !c.Cancelled() && errors.As(err, &cert) {
		return c.Fail(llm.CodeCertificate, "certificate not trusted: "+cert.Err.Error())
	}
	return c.transport(err, "cannot reach "+c.base.Host+": ", ": check base_url, network or proxy")
}

// Broken reduces an error in the middle of an answer.
func (c *Call) Broken(err error) *message.Failure {
	return c.transport(err, "the connection broke: ", "")
}

func (c *Call) transport(err error, before, after string) *message.Failure {
	switch {
	case c.Cancelled():
		return c.Fail(message.CodeAborted, "the call was cancelled")
	case c.ctx.Err() != nil:
		return c.Fail(message.CodeTimeout, fmt.Sprintf("no data for %s", c.IdleTimeout))
	}
	return c.Fail(message.CodeTransport, before+cause(err)+after)
}

// cause says what went wrong below, without addresses and layers.
func cause(err error) string {
	var dns *net.DNSError
	var errno syscall.Errno
	var timeout net.Error
	var u *url.Error
	switch {
	case errors.As(err, &dns):
		return dns.Err
	case errors.As(err, &errno):
		return errno.Error()
	case errors.As(err, &timeout) && timeout.Timeout():
		return "timed out"
	case errors.As(err, &u):
		return u.Err.Error()
	}
	return err.Error()
}

// refused reduces an answer that is no success, or not from the API at all.
func (c *Call) refused(resp *http.Response, body []byte) *message.Failure {
	f := c.refusal(resp, body)
	f.Status = resp.StatusCode
	f.RequestID = requestID(resp.Header)
	if f.Code == message.CodeRateLimit || f.Code == message.CodeServer {
		f.RetryAfterMs = retryAfter(resp.Header, c.Now)
	}
	return f
}

func (c *Call) refusal(resp *http.Response, body []byte) *message.Failure {
	status, media := resp.StatusCode, mediaType(resp.Header)
	switch {
	case status/100 == 3:
		where := "elsewhere"
		if to, err := resp.Location(); err == nil {
			path := to.Path
			for _, own := range [...]string{"/chat/completions", "/v1/messages"} {
				path = strings.TrimSuffix(path, own)
			}
			where = to.Scheme + "://" + to.Host + path
		}
		return c.Fail(llm.CodeMalformed, fmt.Sprintf("answered with a redirect (%d), which is not followed: set base_url to %s", status, where))
	case media != "application/json" && media != "" && (status/100 == 2 || status == http.StatusNotFound || status == http.StatusMethodNotAllowed):
		return c.Fail(llm.CodeMalformed, "answered "+media+" instead of JSON: "+c.Hint)
	}
	e, ok := ParseError(body)
	if text := strings.TrimSpace(string(body)); !ok && media != "text/html" && text != "{}" {
		e.Message = text
	}
	e.Status = status
	return c.Reported(e)
}

// Error is an error as a server describes it. Status is 0 when it came in the
// middle of a stream and has none.
type Error struct {
	Message string
	Code    string // codes and types, each after a space
	Status  int
	used    int64 // tokens of the prompt, where a member says so
	window  int64
}

// ParseError reads the shapes in which servers put errors. ok is false when v
// holds none.
func ParseError(v []byte) (e Error, ok bool) {
	if jsonwire.Valid(v) != nil {
		return e, false
	}
	if jsonwire.Kind(v) == '[' {
		v = first(v)
	}
	obj := jsonwire.Get(v, "error")
	switch jsonwire.Kind(obj) {
	case '{':
	case '"':
		e.Message, _ = jsonwire.Text(obj)
		return e, true
	default:
		obj = v
		if Member(v, "object") != "error" && (jsonwire.Get(v, "choices") != nil || jsonwire.Get(v, "message") == nil && jsonwire.Get(v, "detail") == nil) {
			return e, false
		}
	}
	if e.Message = Member(obj, "message"); e.Message == "" {
		if e.Message = Member(obj, "detail"); e.Message == "" {
			e.Message = string(obj)
		}
	}
	for _, name := range [...]string{"code", "status", "type"} {
		m := jsonwire.Get(obj, name)
		if n, isInt := jsonwire.Int(m); isInt && n >= 400 && n < 600 {
			e.Status = int(n)
		} else if s, isText := jsonwire.Text(m); isText {
			if n, err := strconv.Atoi(s); err == nil && n >= 400 && n < 600 {
				e.Status = n
			}
			e.Code += " " + s
		}
	}
	e.used, e.window = max(0, Count(obj, "n_prompt_tokens")), max(0, Count(obj, "n_ctx"))
	// A router hands on what the server behind it said.
	if behind := Member(jsonwire.Get(obj, "metadata"), "raw"); behind != "" {
		if in, ok := ParseError([]byte(behind)); ok {
			behind = in.Message
			e.Code += in.Code
		}
		e.Message += ": " + behind
	}
	return e, true
}

func first(list []byte) []byte {
	for v := range jsonwire.Elements(list) {
		return v
	}
	return nil
}

// Reported reduces an error that the server described.
func (c *Call) Reported(e Error) *message.Failure {
	text := strings.ToLower(e.Message + " " + e.Code)
	has := func(words ...string) bool {
		for _, w := range words {
			if strings.Contains(text, w) {
				return true
			}
		}
		return false
	}
	tag := ""
	if e.Status != 0 {
		tag = fmt.Sprintf(" (%d)", e.Status)
	}
	said := ""
	if strings.TrimSpace(e.Message) != "" {
		said = ": " + e.Message
	}
	as := func(code, text string) *message.Failure {
		f := c.Fail(code, text)
		f.Status = e.Status
		return f
	}
	switch {
	case e.Status == 403 && said != "" && !aboutKey(e.Message):
		return as(message.CodeAuth, "access was refused"+tag+said)
	case e.Status == 401, e.Status == 403, e.Status == 0 && has("invalid_api_key", "authentication_error", "permission_error"):
		if c.Key == "" {
			return as(message.CodeAuth, "a key is needed"+tag+": set key_env or key_command")
		}
		return as(message.CodeAuth, "the key was refused"+tag+": check "+keySource(c.KeyFrom))
	case e.Status == 402, has("insufficient_quota", "insufficient balance", "insufficient_balance", "exceeded your current quota", "billing_hard_limit", "billing_error", "credit balance is too low"):
		return as(message.CodeQuota, "no balance or quota left"+tag+said)
	case overflow(text) && (e.Status != 429 || has("must be reduced")):
		if used, of, ok := e.figures(); ok {
			return as(message.CodeContextWindow, fmt.Sprintf("context too long (%s of %s)", llm.Thousands(used), llm.Thousands(of)))
		}
		return as(message.CodeContextWindow, "context too long"+tag+said)
	case e.Status == 429, e.Status == 0 && has("rate_limit", "rate limit"):
		return as(message.CodeRateLimit, "too many requests"+tag+said)
	case e.Status == 413, e.Status == 0 && has("request_too_large"):
		return as(message.CodeContextWindow, "context too long"+tag+said)
	case e.Status == 404 && (c.model == "" || strings.EqualFold(strings.TrimSpace(e.Message), "not found")):
		return as(llm.CodeMalformed, "no such address (404): "+c.Hint)
	case e.Status == 404, has("model_not_found", "model not exist", "model not found", "no such model"), e.Status == 0 && has("not_found_error"):
		return as(message.CodeModelNotFound, fmt.Sprintf("no model %q%s: outcrop models %s lists them", c.model, tag, c.Name))
	case e.Status == 408:
		return as(message.CodeTimeout, "the server waited too long"+tag+said)
	case e.Status >= 500:
		return as(message.CodeServer, "server error"+tag+said)
	case e.Status >= 400, has("invalid_request"):
		return as(message.CodeInvalidRequest, "the request was refused"+tag+said)
	}
	return as(message.CodeServer, "an error came in the middle of the reply"+said)
}

// aboutKey reports that the reason of a refusal is the key. Others are the
// country, a model that is not released to everybody, a firewall.
func aboutKey(reason string) bool {
	reason = strings.ToLower(reason)
	for _, word := range [...]string{"key", "token", "authenti", "credential", "unauthorized"} {
		if strings.Contains(reason, word) {
			return true
		}
	}
	return false
}

// retryAfter is the wait that the server asks for, in milliseconds, 0 for none.
func retryAfter(h http.Header, now func() time.Time) int64 {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil && ms > 0 && ms < 1e12 {
		return int64(ms)
	}
	v := strings.TrimSpace(h.Get("Retry-After"))
	if s, err := strconv.ParseFloat(v, 64); err == nil {
		if s > 0 && s < 1e9 {
			return int64(s * 1000)
		}
		return 0
	}
	if at, err := http.ParseTime(v); err == nil {
		return max(0, at.Sub(now()).Milliseconds())
	}
	return 0
}
