package openai

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

// Failure codes of this provider's own. None of them gets better by trying
// again.
const (
	CodeMalformed   = "MALFORMED_RESPONSE"
	CodeCertificate = "CERTIFICATE"
)

const maxMessage = 400 // code points of a failure's text

// fail makes a failure with the provider's name in front.
func (c *call) fail(code, text string) *message.Failure {
	return &message.Failure{Code: code, Message: c.opts.Name + ": " + c.oneLine(text)}
}

// oneLine makes a text from elsewhere fit for one line, without the key.
func (c *call) oneLine(s string) string {
	if k := c.opts.Key; len(k) >= 4 {
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
func (c *call) unreachable(err error) *message.Failure {
	var cert *tls.CertificateVerificationError
	if c.caller.Err() == nil && errors.As(err, &cert) {
		return c.fail(CodeCertificate, "certificate not trusted: "+cert.Err.Error())
	}
	return c.transport(err, "cannot reach "+c.base.Host+": ", ": check base_url, network or proxy")
}

// broken reduces an error in the middle of an answer.
func (c *call) broken(err error) *message.Failure {
	return c.transport(err, "the connection broke: ", "")
}

func (c *call) transport(err error, before, after string) *message.Failure {
	switch {
	case c.caller.Err() != nil:
		return c.fail(message.CodeAborted, "the call was cancelled")
	case c.ctx.Err() != nil:
		return c.fail(message.CodeTimeout, fmt.Sprintf("no data for %s", c.opts.IdleTimeout))
	}
	return c.fail(message.CodeTransport, before+cause(err)+after)
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
func (c *call) refused(resp *http.Response, body []byte) *message.Failure {
	f := c.refusal(resp, body)
	f.Status = resp.StatusCode
	f.RequestID = requestID(resp.Header)
	if f.Code == message.CodeRateLimit || f.Code == message.CodeServer {
		f.RetryAfterMs = retryAfter(resp.Header, c.opts.Now)
	}
	return f
}

func (c *call) refusal(resp *http.Response, body []byte) *message.Failure {
	status, media := resp.StatusCode, mediaType(resp.Header)
	switch {
	case status/100 == 3:
		where := "elsewhere"
		if to, err := resp.Location(); err == nil {
			where = strings.TrimSuffix(to.Scheme+"://"+to.Host+to.Path, "/chat/completions")
		}
		return c.fail(CodeMalformed, fmt.Sprintf("answered with a redirect (%d), which is not followed: set base_url to %s", status, where))
	case media != "application/json" && media != "" && (status/100 == 2 || status == http.StatusNotFound || status == http.StatusMethodNotAllowed):
		return c.fail(CodeMalformed, "answered "+media+" instead of JSON: does base_url end in /v1?")
	}
	e, ok := parseError(body)
	if text := strings.TrimSpace(string(body)); !ok && media != "text/html" && text != "{}" {
		e.message = text
	}
	e.status = status
	return c.reported(e)
}

// apiError is an error object of the API.
type apiError struct {
	message string
	code    string
	status  int
}

// parseError reads the shapes in which servers put errors. ok is false when v
// holds none.
func parseError(v []byte) (e apiError, ok bool) {
	if jsonwire.Valid(v) != nil {
		return e, false
	}
	if jsonwire.Kind(v) == '[' {
		for first := range jsonwire.Elements(v) {
			return parseError(first)
		}
	}
	obj := jsonwire.Get(v, "error")
	switch jsonwire.Kind(obj) {
	case '{':
	case '"':
		e.message, _ = jsonwire.Text(obj)
		return e, true
	default:
		obj = v
		if member(v, "object") != "error" && (jsonwire.Get(v, "choices") != nil || jsonwire.Get(v, "message") == nil && jsonwire.Get(v, "detail") == nil) {
			return e, false
		}
	}
	if e.message = member(obj, "message"); e.message == "" {
		if e.message = member(obj, "detail"); e.message == "" {
			e.message = string(obj)
		}
	}
	for _, name := range [...]string{"code", "status", "type"} {
		m := jsonwire.Get(obj, name)
		if n, isInt := jsonwire.Int(m); isInt && n >= 400 && n < 600 {
			e.status = int(n)
		} else if s, isText := jsonwire.Text(m); isText {
			if n, err := strconv.Atoi(s); err == nil && n >= 400 && n < 600 {
				e.status = n
			}
			e.code += " " + s
		}
	}
	return e, true
}

// reported reduces an error that the server described. Its status is 0 when it
// came in the middle of a stream.
func (c *call) reported(e apiError) *message.Failure {
	text := strings.ToLower(e.message + " " + e.code)
	has := func(words ...string) bool {
		for _, w := range words {
			if strings.Contains(text, w) {
				return true
			}
		}
		return false
	}
	tag := ""
	if e.status != 0 {
		tag = fmt.Sprintf(" (%d)", e.status)
	}
	said := ""
	if strings.TrimSpace(e.message) != "" {
		said = ": " + e.message
	}
	as := func(code, text string) *message.Failure {
		f := c.fail(code, text)
		f.Status = e.status
		return f
	}
	switch {
	case e.status == 401, e.status == 403, e.status == 0 && has("invalid_api_key", "authentication_error"):
		if c.opts.Key == "" {
			return as(message.CodeAuth, "a key is needed"+tag+": set key_env or key_command")
		}
		return as(message.CodeAuth, "the key was refused"+tag+": check "+keySource(c.opts.KeyFrom))
	case e.status == 402, has("insufficient_quota", "insufficient balance", "insufficient_balance", "exceeded your current quota", "billing_hard_limit"):
		return as(message.CodeQuota, "no balance or quota left"+tag+said)
	case e.status == 429, e.status == 0 && has("rate_limit", "rate limit"):
		return as(message.CodeRateLimit, "too many requests"+tag+said)
	case e.status == 413:
		return as(message.CodeContextWindow, "context too long"+tag+said)
	case has("context_length", "context length", "context window", "maximum context", "prompt is too long", "input is too long", "reduce the length"):
		if used, of, ok := figures(e.message); ok {
			return as(message.CodeContextWindow, fmt.Sprintf("context too long (%s of %s)", llm.Thousands(used), llm.Thousands(of)))
		}
		return as(message.CodeContextWindow, "context too long"+tag+said)
	case e.status == 404 && (c.model == "" || strings.EqualFold(strings.TrimSpace(e.message), "not found")):
		return as(CodeMalformed, "no such address (404): does base_url end in /v1?")
	case e.status == 404, has("model_not_found", "model not exist", "model not found", "no such model"):
		return as(message.CodeModelNotFound, fmt.Sprintf("no model %q%s: outcrop models %s lists them", c.model, tag, c.opts.Name))
	case e.status == 408:
		return as(message.CodeTimeout, "the server waited too long"+tag+said)
	case e.status >= 500:
		return as(message.CodeServer, "server error"+tag+said)
	case e.status >= 400, has("invalid_request"):
		return as(message.CodeInvalidRequest, "the request was refused"+tag+said)
	}
	return as(message.CodeServer, "an error came in the middle of the reply"+said)
}

// figures finds in a message about a prompt that is too long how many tokens it
// had and how many are allowed. The limit comes first in every known wording;
// the first greater number after it is the prompt.
func figures(s string) (used, of int64, ok bool) {
	for _, word := range strings.FieldsFunc(s, func(r rune) bool { return (r < '0' || r > '9') && r != ',' }) {
		n, err := strconv.ParseInt(strings.ReplaceAll(word, ",", ""), 10, 64)
		switch {
		case err != nil || n < 256:
		case of == 0:
			of = n
		case n > of:
			return n, of, true
		}
	}
	return 0, 0, false
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
