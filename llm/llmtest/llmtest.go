// Package llmtest is a strict model provider for tests: an http.Handler that
// speaks the dialects of OpenAI and Anthropic, refuses every request that the
// strictest real server would refuse, streams the replies that a test gives it,
// and fails in every way in which servers fail.
//
//	srv := httptest.NewServer(llmtest.New(llmtest.Options{Rules: llmtest.Rules{Profile: llmtest.OpenAI}}))
//	defer srv.Close()
//	// BaseURL of the client: srv.URL for all profiles
//
// It judges the bytes of the body by itself, with nothing of the code that makes
// requests, so that it can serve as a referee for any client. Rules.Check and
// Referee.Judge are the same without HTTP.
//
// # What is refused
//
// With status 400 unless said. The text names the rule and, where there is one,
// the index of the message.
//
//	 1  no messages; the first one, after the system prompt, is not the user's;
//	    the last one is the assistant's
//	 2  two neighbours of one role (anthropic, alternate)
//	 3  a call without its result in the messages directly after it; a result
//	    without its call directly before it; anything between them; under
//	    anthropic, results that do not stand first in their message
//	 4  an id that two calls of the request share; one that is empty, does not match
//	    ^[A-Za-z0-9_-]{1,64}$ (anthropic) or has over 40 characters (openai)
//	 5  arguments that are no JSON object; a member twice in an object in them
//	 6  a name of a tool, offered or called, that does not match
//	    ^[A-Za-z0-9_-]{1,64}$; two tools of one name; an empty list of tools; a
//	    schema without the type object at its root. A past call may name a tool
//	    that is not offered any more
//	 7  text that is empty or blank; white space at the end of the text that ends
//	    a message of the assistant; no content without calls; an empty list
//	 8  invalid UTF-8, lone surrogates, NUL, also inside arguments; what is no JSON
//	    object; a body over 10 MiB (413)
//	 9  members, roles and types of blocks that the dialect does not have; under
//	    deepseek, calls without reasoning_content; under the other profiles of that
//	    dialect, any reasoning_content
//	10  anthropic: thinking that is empty, has no signature or another one than
//	    Sign gives it, or does not stand first in its message; a message that ends
//	    in it; while thinking is on, a last message of the assistant that calls
//	    tools and does not begin with it, and any temperature; no max_tokens; more
//	    than 4 cache marks
//	11  max_tokens where max_completion_tokens is due, and the reverse; prompt and
//	    output over the window (context_length_exceeded)
//	12  an image for a model of text; a media type unlike the bytes; bytes that are
//	    no PNG, JPEG, GIF or WebP; over 5 MiB or 8,000 pixels a side; with more
//	    than 20 images in a request, one over 2,000 pixels; under the dialect of
//	    OpenAI, an image in a tool message
//	13  a request that does not begin as the one before it in its session did,
//	    unless the test announced that. The last message of the one before may
//	    have become longer. Cache marks do not count
//
// # What it serves
//
// See Reply and Fault. The reply to a request is what Options.Replies gives; a
// reply may be one of the faults. Every answer to an accepted request is a
// stream. GET /models lists the one model that Options.Model names.
package llmtest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
)

// SessionHeader is the header that names the session of a request when
// Options.Session is nil.
const SessionHeader = "X-Session"

// Options of a server. The zero value plays OpenAI and answers everything with
// one word.
type Options struct {
	Rules
	// Model is what GET /models lists; "": mock-1.
	Model string
	// Key is the API key that must come with each request, else it is answered
	// with 401; "": none is looked at.
	Key string
	// Replies gives the reply to an accepted request, the n-th from 0; nil: the
	// text "ok". It may be called by several goroutines at a time.
	Replies func(n int, body []byte) Reply
	// Session names the session of a request for rule 13; nil: SessionHeader.
	// An empty name leaves the rule out.
	Session func(r *http.Request, body []byte) string
	// Silence is what the fault Silence does in the middle of the stream. It
	// returns when the stream goes on. nil: it lasts until the client is gone.
	Silence func(ctx context.Context)
}

// Server is the provider. It is an http.Handler, and safe for use by several
// goroutines.
type Server struct {
	o       Options
	referee *Referee

	mu        sync.Mutex
	accepted  int
	exchanges []Exchange
}

// Exchange is one request that a server got and what it answered.
type Exchange struct {
	Session string
	Body    []byte
	Status  int
	Refusal *Refusal // nil when it was accepted
	Reply   Reply    // to an accepted request
}

// New makes a server. An unknown profile is refused with a panic: it is a
// mistake in the test.
func New(o Options) *Server {
	switch o.Profile {
	case "":
		o.Profile = OpenAI
	case OpenAI, DeepSeek, Alternate, Anthropic:
	default:
		panic(fmt.Sprintf("llmtest: unknown profile %q", o.Profile))
	}
	if o.Model == "" {
		o.Model = "mock-1"
	}
	if o.Session == nil {
		o.Session = func(r *http.Request, _ []byte) string { return r.Header.Get(SessionHeader) }
	}
	return &Server{o: o, referee: NewReferee(o.Rules)}
}

// Announce says that the next request of a session may begin in another way
// than the one before, and why.
func (s *Server) Announce(session, why string) { s.referee.Announce(session, why) }

// Exchanges returns what the server was asked so far, in order. Refused
// requests are among them.
func (s *Server) Exchanges() []Exchange {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Exchange(nil), s.exchanges...)
}

// Refused returns the first refusal, or nil: what most tests look at in the
// end.
func (s *Server) Refused() *Refusal {
	for _, e := range s.Exchanges() {
		if e.Refusal != nil {
			return e.Refusal
		}
	}
	return nil
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path, chat := strings.TrimSuffix(r.URL.Path, "/"), "/chat/completions"
	if s.o.Profile == Anthropic {
		chat = "/messages"
	}
	switch {
	case !s.authorized(r):
		s.sendError(w, http.StatusUnauthorized, "authentication_error", "the API key is not valid")
	case r.Method == http.MethodGet && strings.HasSuffix(path, "/models"):
		s.sendJSON(w, http.StatusOK, map[string]any{"object": "list", "data": []any{map[string]any{"id": s.o.Model, "type": "model", "object": "model"}}})
	case r.Method == http.MethodPost && strings.HasSuffix(path, chat):
		s.chat(w, r)
	default:
		s.sendError(w, http.StatusNotFound, "not_found_error", r.Method+" "+r.URL.Path+" is not served")
	}
}

func (s *Server) authorized(r *http.Request) bool {
	if s.o.Key == "" {
		return true
	}
	if s.o.Profile == Anthropic {
		return r.Header.Get("X-Api-Key") == s.o.Key
	}
	return r.Header.Get("Authorization") == "Bearer "+s.o.Key
}

func (s *Server) chat(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, MaxBody+1))
	if err != nil {
		return // the client is gone
	}
	ex := Exchange{Session: s.o.Session(r, body), Body: body, Status: http.StatusOK}
	prompt, refusal := s.referee.judge(ex.Session, body)
	if refusal != nil {
		ex.Refusal, ex.Status = refusal, refusal.Status
		s.record(ex)
		s.sendError(w, refusal.Status, refusal.Code, refusal.Error())
		return
	}
	s.mu.Lock()
	n := s.accepted
	s.accepted++
	s.mu.Unlock()
	ex.Reply = Reply{Text: "ok"}
	if s.o.Replies != nil {
		ex.Reply = s.o.Replies(n, body)
	}
	if ex.Reply.Usage == nil {
		ex.Reply.Usage = &Usage{Input: prompt, Output: ex.Reply.tokens()}
	}
	if status := ex.Reply.Fault.status(); status != 0 {
		ex.Status = status
	}
	s.record(ex)
	if s.refuseByFault(w, ex.Reply) {
		return
	}
	s.stream(w, r, ex.Reply, n)
}

func (s *Server) record(ex Exchange) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.exchanges = append(s.exchanges, ex)
}

// sendError answers in the form of the dialect.
func (s *Server) sendError(w http.ResponseWriter, status int, code, problem string) {
	if s.o.Profile == Anthropic {
		if code == codeTooLong {
			code = codeInvalid
		}
		s.sendJSON(w, status, map[string]any{"type": "error", "error": map[string]any{"type": code, "message": problem}})
		return
	}
	s.sendJSON(w, status, map[string]any{"error": map[string]any{"message": problem, "type": codeInvalid, "param": nil, "code": code}})
}

func (s *Server) sendJSON(w http.ResponseWriter, status int, v any) {
	var b bytes.Buffer
	if err := json.NewEncoder(&b).Encode(v); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes())
}
