package viewer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/agent"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/viewer/internal/facts"
)

const (
	// maxBody is the longest body of a change, in bytes.
	maxBody = 9 << 20
	// bodyWithin is how long a body may take, writeWithin how long a write
	// may stand still.
	bodyWithin  = 30 * time.Second
	writeWithin = 30 * time.Second
)

// answerer answers one request.
type answerer struct {
	w  http.ResponseWriter
	r  *http.Request
	v  *Viewer
	rc *http.ResponseController
}

// problem is an error as the API tells it.
type problem struct {
	status    int
	code      string
	msg, hint string
}

func (p *problem) Error() string { return p.msg }

var stopping = &problem{status: http.StatusServiceUnavailable, code: "STOPPING", msg: "the server is stopping"}

func badRequest(format string, args ...any) *problem {
	return &problem{status: http.StatusBadRequest, code: "BAD_REQUEST", msg: fmt.Sprintf(format, args...)}
}

func notFound(code, format string, args ...any) *problem {
	return &problem{status: http.StatusNotFound, code: code, msg: fmt.Sprintf(format, args...)}
}

// handler is a handler of the API.
type handler func(a *answerer) error

// ServeHTTP implements http.Handler.
func (h handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a := r.Context().Value(answererKey{}).(*answerer)
	a.r = r
	if err := h(a); err != nil {
		a.fail(err)
	}
}

// fail answers with an error.
func (a *answerer) fail(err error) {
	var p *problem
	if errors.As(err, &p) {
		a.problem(p)
		return
	}
	if errors.Is(err, context.Canceled) && a.r.Context().Err() != nil {
		return // nobody reads it
	}
	a.describe(problemOf(err), err)
}

// problemOf finds what the API says about an error.
func problemOf(err error) *problem {
	p := &problem{status: http.StatusInternalServerError, code: "INTERNAL", msg: err.Error()}
	code := string(outcrop.CodeOf(err))
	var e *outcrop.Error
	if errors.As(err, &e) {
		p.hint = e.Hint
	}
	switch {
	case errors.Is(err, outcrop.ErrNotFound):
		p.status, p.code = http.StatusNotFound, "SESSION_NOT_FOUND"
	case errors.Is(err, facts.ErrNoRequest):
		p.status, p.code = http.StatusNotFound, "REQUEST_NOT_FOUND"
	case errors.Is(err, store.ErrLocked):
		p.status, p.code = http.StatusConflict, "LOCKED"
	case errors.Is(err, agent.ErrBusy), errors.Is(err, outcrop.ErrAppendInFlight):
		p.status, p.code = http.StatusConflict, "BUSY"
	case errors.Is(err, agent.ErrClosed):
		p.status, p.code = http.StatusConflict, "NOT_HERE"
	case errors.Is(err, agent.ErrInboxFull), errors.Is(err, agent.ErrInput):
		p.status, p.code = http.StatusConflict, "REFUSED"
	case errors.Is(err, outcrop.ErrDamaged), errors.Is(err, outcrop.ErrUnsupported):
		p.status, p.code = http.StatusUnprocessableEntity, "DAMAGED"
	case errors.Is(err, outcrop.ErrRefused), errors.Is(err, outcrop.ErrVetoed), errors.Is(err, outcrop.ErrReadOnly), errors.Is(err, outcrop.ErrFailed):
		p.status, p.code = http.StatusConflict, "REFUSED"
		if code != "" {
			p.code = code
		}
	case errors.Is(err, context.Canceled):
		return stopping
	}
	return p
}

func (a *answerer) problem(p *problem) { a.describe(p, nil) }

func (a *answerer) describe(p *problem, err error) {
	if p.status == http.StatusInternalServerError {
		a.v.log.Warn("a request was not answered", "path", a.r.URL.Path, "err", p.msg)
	}
	var seq *outcrop.Seq
	session := ""
	var e *outcrop.Error
	if errors.As(err, &e) {
		session = e.Session
		if e.Seq >= 0 {
			seq = &e.Seq
		}
	}
	var veil facts.Veil
	type described struct {
		Code    string       `json:"code"`
		Message facts.Text   `json:"message"`
		Hint    facts.Text   `json:"hint"`
		Session facts.Text   `json:"session"`
		Seq     *outcrop.Seq `json:"seq"`
	}
	a.json(p.status, struct {
		facts.Schema
		Error described `json:"error"`
	}{facts.V1, described{p.code, veil.Text(p.msg), veil.Text(p.hint), veil.Text(session), seq}})
}

// json answers with a value.
func (a *answerer) json(status int, v any) {
	b, err := jsonwire.Marshal(v)
	if err != nil {
		a.v.log.Error("an answer cannot be written as JSON", "path", a.r.URL.Path, "err", err)
		status, b = http.StatusInternalServerError, []byte(`{"schema":1,"error":{"code":"INTERNAL","message":"the answer cannot be written as JSON","hint":"","session":"","seq":null}}`)
	}
	a.raw(status, b)
}

// ok answers with a value, and status 200.
func (a *answerer) ok(v any) error {
	a.json(http.StatusOK, v)
	return nil
}

// raw answers with JSON text.
func (a *answerer) raw(status int, b []byte) {
	a.w.Header().Set("Content-Type", "application/json")
	a.w.Header().Set("Content-Length", strconv.Itoa(len(b)))
	a.w.WriteHeader(status)
	if a.r.Method != http.MethodHead {
		_ = a.write(b)
	}
}

// write sends bytes, as long as the other side takes some of them within the
// limit.
func (a *answerer) write(b []byte) error {
	const piece = 64 << 10
	for len(b) > 0 {
		n := min(len(b), piece)
		// A writer without deadlines (in tests) has none to keep.
		_ = a.rc.SetWriteDeadline(time.Now().Add(writeWithin))
		if _, err := a.w.Write(b[:n]); err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

// body reads a body of at most most bytes.
func (a *answerer) body(most int64) ([]byte, error) {
	b, err := io.ReadAll(http.MaxBytesReader(a.w, a.r.Body, most))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, &problem{status: http.StatusRequestEntityTooLarge, code: "TOO_LARGE", msg: fmt.Sprintf("the body is longer than %d bytes", most)}
	case err != nil:
		return nil, badRequest("the body did not come: %v", err)
	}
	// It is there: a deadline for more would end the request.
	_ = a.rc.SetReadDeadline(time.Time{})
	return b, nil
}

// in reads the JSON body of a change into v.
func (a *answerer) in(v any) error {
	if t, _, err := mime.ParseMediaType(a.r.Header.Get("Content-Type")); err != nil || t != "application/json" {
		return badRequest("the body must be JSON, with Content-Type: application/json")
	}
	b, err := a.body(maxBody)
	if err != nil {
		return err
	}
	if err := jsonwire.UnmarshalStrict(b, v); err != nil {
		return badRequest("the body is not what this path takes: %v", err)
	}
	return nil
}

// veil masks unless the request asks for secrets.
func (a *answerer) veil() *facts.Veil {
	return &facts.Veil{Show: a.r.URL.Query().Get("secrets") == "show"}
}

// params reads the parameters of a query; the first that is wrong counts.
type params struct {
	q   url.Values
	err error
}

func (a *answerer) params() *params { return &params{q: a.r.URL.Query()} }

func (p *params) wrong(name, want string) {
	if p.err == nil {
		p.err = badRequest("%s=%.80s: give %s", name, p.q.Get(name), want)
	}
}

func (p *params) has(name string) bool { return p.q.Get(name) != "" }

// number is a whole number, or otherwise when it is not given.
func (p *params) number(name string, otherwise int) int {
	if !p.has(name) {
		return otherwise
	}
	n, err := strconv.Atoi(p.q.Get(name))
	if err != nil || n > 1<<40 || n < -1<<40 {
		p.wrong(name, "a whole number")
		return otherwise
	}
	return n
}

// limit is a number from 1 to most.
func (p *params) limit(otherwise, most int) int {
	n := p.number("limit", otherwise)
	if n < 1 {
		p.wrong("limit", "a number from 1 on")
	}
	return min(n, most)
}

func (p *params) float(name string) float64 {
	if !p.has(name) {
		return 0
	}
	f, err := strconv.ParseFloat(p.q.Get(name), 64)
	if err != nil || f != f || f > 1e15 || f < -1e15 {
		p.wrong(name, "a number")
		return 0
	}
	return f
}

func (p *params) flag(name string) bool {
	switch p.q.Get(name) {
	case "", "0", "false":
		return false
	case "1", "true":
		return true
	}
	p.wrong(name, "0 or 1")
	return false
}
