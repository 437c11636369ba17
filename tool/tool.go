// Package tool is the contract between the agent and what a model may call:
// tools, the registry that offers them, and the rules that hold for every
// result.
//
// A tool gets arguments that are a JSON object and fit its schema; it returns
// a [Result], or an error. Whatever it does, the caller of [Registry.Run] gets
// exactly one [Outcome] back:
//
//	what happened                      error.name          error.code
//	no tool of that name               ToolNotFoundError   UNKNOWN_TOOL
//	arguments are cut off, are no      ToolArgsError       INVALID_ARGS
//	object or break the schema
//	the tool panicked                  ToolPanicError      TOOL_PANIC
//	its own time limit passed          ToolTimeoutError    TOOL_TIMEOUT
//	its context was cancelled          AbortError          ABORTED
//	the tool returned an *Error        its own             its own
//	the tool returned another error    (none)              (none)
//
// The text of an error outcome begins with "Error: ". No result has more text
// than the registry's limit: the middle of a longer one is cut out, the whole
// text is saved to a file and the result names it. Blocks that are no text,
// images for example, do not count and stay; they have a limit of their own.
package tool

import (
	"context"
	"encoding/json"
	"time"

	"github.com/outcrop-dev/outcrop/message"
)

// Class says what a tool can do to the world, and so whether a person is
// asked first.
type Class string

const (
	Read Class = "read" // looks only; never asks
	Edit Class = "edit" // changes files of the workspace
	Exec Class = "exec" // runs programs, not confined
	MCP  Class = "mcp"  // a tool of a server that another program runs
)

// Tool is one function that a model may call. All methods are called from
// many goroutines; all but Run answer at once and always the same.
type Tool interface {
	// Name is what the model calls; it fits ^[A-Za-z0-9_-]{1,64}$.
	Name() string
	// Description tells the model what the tool does and when to use it.
	Description() string
	// Schema is the JSON Schema of the arguments, an object at its root.
	Schema() json.RawMessage
	Class() Class
	// Parallel reports whether calls may run at the same time as others that
	// may. All other calls run alone.
	Parallel() bool
	// Run does the work. It must return soon after ctx is done. An error is
	// told to the model; *Error carries a code as well.
	Run(ctx context.Context, call Call) (Result, error)
}

// Previewer is a tool that can show what a call would do before it runs.
type Previewer interface {
	Preview(ctx context.Context, call Call) (Preview, error)
}

// Timeouter is a tool that sets its calls a time limit. Run's context ends with
// it; a tool that does not come back within StopGrace after that is given up,
// and what it returns later is dropped. 0 or less: no limit.
type Timeouter interface {
	Timeout() time.Duration
}

// StopGrace is how long a tool with a time limit may take to stop.
const StopGrace = 5 * time.Second

// Preview is what a person is shown before they approve a call.
type Preview struct {
	Title string // one line: a command, a path
	Dir   string // the directory it acts in
	Body  string // the complete command or the diff
}

// Call is one call of a tool.
type Call struct {
	ID        string
	Name      string
	Arguments json.RawMessage // a JSON object that fits the schema
	// Key is the same for this call whatever happens, and no other call has
	// it: session id, seq of the tool/call event and call id. A tool that
	// reaches another system gives it along as an idempotency key.
	Key string
	// Epoch is the number of the lease under which the call is made, 0 where
	// sessions have none. One who takes the session over has a higher one, so
	// that a system which remembers the highest can refuse a late call of the
	// earlier holder.
	Epoch uint64
}

// Result is what a tool gives back to the model.
type Result struct {
	Content []message.Block
	IsError bool            // the content tells of a failure
	Meta    json.RawMessage // not for the model: JSON that the log keeps with the result, or nil
	// EndTurn ends the turn when all calls of the step have their results,
	// unless a message waits for the next step.
	EndTurn bool
}

// Text makes a result of one text block.
func Text(s string) Result { return Result{Content: []message.Block{message.Text(s)}} }

// Error is a failure with a code. Its text goes to the model behind "Error: ".
type Error struct {
	Name string // class: "ToolArgsError"
	Code string // "INVALID_ARGS"
	Msg  string
}

func (e *Error) Error() string { return e.Msg }

// InvalidArgs is the error of a tool that finds its arguments wrong in a way
// that the schema does not say.
func InvalidArgs(msg string) *Error {
	return &Error{Name: "ToolArgsError", Code: "INVALID_ARGS", Msg: "invalid arguments: " + msg}
}

// The two ways in which cancelling ends a call: while it ran, and before it
// was dispatched.
var (
	Aborted       = &Error{Name: "AbortError", Code: "ABORTED", Msg: "tool call aborted"}
	NotDispatched = &Error{Name: "AbortError", Code: "ABORTED_BEFORE_DISPATCH", Msg: "tool call aborted before dispatch"}
)

// Outcome is what one call came to: the only result that it will have.
type Outcome struct {
	Content []message.Block // never empty
	IsError bool
	Err     *Error // the coded failure, nil for success and for errors without a code
	Meta    json.RawMessage
	EndTurn bool
}

// Failed makes the outcome of a coded failure.
func Failed(e *Error) Outcome {
	return Outcome{Content: []message.Block{message.Text("Error: " + e.Msg)}, IsError: true, Err: e}
}
