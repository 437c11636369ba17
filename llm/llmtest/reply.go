package llmtest

import (
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// Reply is what a model answers. The zero value is a reply without content.
type Reply struct {
	Reasoning string // under Anthropic it is signed with Sign
	Text      string
	Calls     []Call
	Finish    string // in the words of the dialect; "": by whether there are calls
	Usage     *Usage // nil: the server's own count, nothing from a cache

	Fault      Fault
	RetryAfter time.Duration // of RateLimitedAfter, in whole seconds; 0: 2 s
}

// Call is a call of a tool.
type Call struct {
	ID        string // "": call_N_I, by the request and the place
	Name      string
	Arguments string // as the model writes them; may be broken
}

// Usage is what a reply says about tokens.
type Usage struct {
	Input     int64 // of the prompt, without what was read from or written to a cache
	CacheRead int64
	Output    int64
	Reasoning int64 // of Output
}

func (r *Reply) tokens() int64 {
	n := len(r.Reasoning) + len(r.Text)
	for _, c := range r.Calls {
		n += len(c.Name) + len(c.Arguments)
	}
	return int64(n+3) / 4
}

// Fault is a way in which a server fails, or is odd.
type Fault string

const (
	// Answers instead of a stream. The body is the dialect's error.
	Unauthorized     Fault = "401"
	Forbidden        Fault = "403"
	NoModel          Fault = "404"
	RequestTimeout   Fault = "408"
	TooLarge         Fault = "413"
	RateLimited      Fault = "429"
	RateLimitedAfter Fault = "429 with Retry-After"
	ServerError      Fault = "500"
	Unavailable      Fault = "503"
	// HTML is a page with status 200, as a wrong address gives it.
	HTML Fault = "html"

	// Truncated ends the stream in the middle of an event.
	Truncated Fault = "truncated stream"
	// Silence stops in the middle of the stream, see Options.Silence.
	Silence Fault = "silence"

	// Odd streams; each is a complete reply.
	CRLF        Fault = "CRLF"
	Comments    Fault = "comments"         // comments and pings between the events
	UsageOnly   Fault = "usage-only chunk" // in the middle; the last one counts
	NoDone      Fault = "no [DONE]"        // under Anthropic no message_stop
	FinishTwice Fault = "finish twice"
	IndexOnly   Fault = "deltas by index only" // the pieces of all calls mixed
	BytePieces  Fault = "arguments in 1-byte pieces"
	NoCallID    Fault = "call without id"
)

// Faults lists all of them.
func Faults() []Fault {
	return []Fault{
		Unauthorized, Forbidden, NoModel, RequestTimeout, TooLarge, RateLimited, RateLimitedAfter, ServerError, Unavailable, HTML,
		Truncated, Silence,
		CRLF, Comments, UsageOnly, NoDone, FinishTwice, IndexOnly, BytePieces, NoCallID,
	}
}

// Complete reports whether a reply with this fault still is a complete one.
func (f Fault) Complete() bool {
	return f.status() == 0 && f != HTML && f != Truncated && f != Silence
}

// status is the HTTP status of a fault that is an answer, 0 of another one.
func (f Fault) status() int {
	if len(f) < 3 {
		return 0
	}
	n, err := strconv.Atoi(string(f[:3]))
	if err != nil {
		return 0
	}
	return n
}

// refuseByFault answers with a fault that is no stream.
func (s *Server) refuseByFault(w http.ResponseWriter, r Reply) bool {
	switch r.Fault {
	case HTML:
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write([]byte("<!DOCTYPE html>\n<html><head><title>Welcome</title></head><body><h1>It works!</h1></body></html>\n"))
		return true
	case RateLimitedAfter:
		seconds := int64(r.RetryAfter / time.Second)
		if seconds == 0 {
			seconds = 2
		}
		w.Header().Set("Retry-After", strconv.FormatInt(seconds, 10))
	}
	status := r.Fault.status()
	if status == 0 {
		return false
	}
	code := map[int]string{
		401: "authentication_error", 403: "permission_error", 404: "not_found_error", 408: "timeout_error",
		413: codeTooLarge, 429: "rate_limit_error", 500: "api_error", 503: "overloaded_error",
	}[status]
	s.sendError(w, status, code, fmt.Sprintf("asked for by the test: %s", http.StatusText(status)))
	return true
}
