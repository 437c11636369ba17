// Package llm is the boundary to models: what a request is, what a provider
// must do, and the checks that every request passes before it is sent.
//
// A request is made from a log in three steps. The messages that a surface
// derives to are given to Build, which makes them fit for the strictest
// provider, whatever happened to the session: calls without results, results
// without calls, repeated ids, broken arguments, empty or invalid text. Check
// then refuses what a provider would refuse. A Provider encodes the request in
// its own way and streams the reply as chunks.
//
// Build is pure: equal input gives equal output, and when a session only grew,
// the messages of the earlier request are the beginning of the later one, so
// that a provider's prompt cache holds.
//
// The package also has the numbers around a request: the token estimate that
// is used where a provider did not count, the JSON of a request header as
// request/header logs it, and cost in micro-dollars.
package llm

import (
	"context"
	"encoding/json"
	"iter"

	"github.com/outcrop-dev/outcrop/message"
)

// Purpose says what a call is for.
type Purpose string

const (
	Turn       Purpose = "turn"
	Compaction Purpose = "compaction"
	Title      Purpose = "title"
)

// Config is the part of a request header that chooses and tunes the model, as
// request/header logs it. Zero values are absent.
type Config struct {
	Provider        string
	Model           string
	ReasoningEffort string
	Temperature     *float64
	MaxTokens       int64
	Stop            []string

	// Defaults says which of the values above nobody asked for.
	Defaults Defaults
}

// Defaults marks config values that came from the provider's settings and not
// from a proposal (adapterDefaults in a request header). A mark counts only
// when the value is there.
type Defaults struct {
	ReasoningEffort bool
	MaxTokens       bool
}

// Tool is a tool as it is offered to a model.
type Tool struct {
	Name        string
	Description string
	Parameters  json.RawMessage // JSON Schema, an object at its root
}

// Request is one model call. Messages are the derived messages after Build has
// made them fit for sending.
type Request struct {
	Config   Config
	System   string
	Tools    []Tool
	Messages []message.Message

	// MaxOutput is what the window leaves for this reply, in tokens (see
	// OutputLimit); 0: unknown. It lowers Config.MaxTokens, or what a provider
	// sends in its place; it is no limit by itself, since a model may give less
	// than its window holds.
	MaxOutput int64
	// Images says that the model takes images. Where it does not, a note
	// stands in their place, and so it does for those that providers refuse.
	Images bool
	// Objects has the bytes of attachments; nil: none are here.
	Objects Objects
	// Cache keeps the encoded messages of the session's requests; nil: each
	// message is encoded anew.
	Cache *Cache

	Session string
	Purpose Purpose
	Turn    int
	Step    int
	Attempt int // from 1
}

// Objects reads attachments by their id, sha256: and the digest. It is asked
// from many goroutines. An error means that the object is not here.
type Objects interface {
	Get(ctx context.Context, id string) ([]byte, error)
}

// Cache is where an encoder keeps what it made of the messages of one session,
// so that each message is encoded once. It belongs to requests that are made
// one after another; it holds nothing that cannot be made again. The zero value
// is ready.
type Cache struct {
	encoder string
	kept    any
}

// Kept returns what the encoder of this name kept, or what fresh makes when it
// kept nothing.
func (c *Cache) Kept(encoder string, fresh func() any) any {
	if c == nil {
		return fresh()
	}
	if c.encoder != encoder || c.kept == nil {
		c.encoder, c.kept = encoder, fresh()
	}
	return c.kept
}

// ModelInfo is what an endpoint says about one of its models.
type ModelInfo struct {
	ID     string
	Window int64 // tokens; 0 when it does not say
}

// Failure codes of providers, beside those that the loop acts on (package
// message). None of them gets better by trying again.
const (
	CodeMalformed     = "MALFORMED_RESPONSE" // not the API, or not as it should be
	CodeCertificate   = "CERTIFICATE"        // not trusted
	CodeContentFilter = "CONTENT_FILTER"     // the provider refused to go on
)

// Provider sends requests to models.
type Provider interface {
	// Name is the provider's name as request/header records it.
	Name() string
	// Stream makes one call. It yields chunks in order, block-end for every
	// block that was completed, usage when it is known, and a finish chunk
	// last. A failure ends the sequence with a *message.Failure as error; a
	// cancelled context with the code ABORTED. The provider does not retry.
	Stream(ctx context.Context, req Request) iter.Seq2[message.Chunk, error]
}
