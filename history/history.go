// Package history edits what the model sees, without losing anything: each
// operation appends events, one of which takes the place of a range of the
// surface. What it covers stays in the log.
//
// # Events
//
// A compaction is a bracket. Its start stands before the first call of the
// summariser, its last three events are one group: all or none. An operation
// that fails after its start writes the end with the reason; a crash between
// leaves a start that the next session/end-seed makes stale.
//
//	compaction/start
//	outcrop/summarizer-call   one before each call
//	outcrop/summarizer-usage  what a call took that the summary does not count
//	compaction/summary        \
//	user/message               | replace: the checkpoint
//	compaction/end             |
//	outcrop/edit              /  what the edit saved and what it cost
//
// A pruning is one group of any number of results.
//
//	compaction/prune          \  for each result
//	tool/result               /  replace: the same result with less content
//	outcrop/edit                 for each result, behind all of them
//
// Nothing stands between the event that announces a replacement and the
// replacement.
//
// # Ranges
//
// A range never splits an exchange: a call and its result are both inside or
// both outside. They are paired by call id, a result with the nearest earlier
// call of that id that is still open, never by counting. Package meter knows
// the exchanges; package dsh counts, as dsh does.
//
// # Policies
//
// Layers freezes finished checkpoints: a pass condenses the raw text behind the
// newest one, up to a tail, so that everything before stays in the provider's
// cache; checkpoints are merged when there are four of a level or when they
// take a quarter of the room. The policy dsh always condenses from the head.
// See Layers and DSH for the rules.
//
// # Who runs it
//
// The session has one appender, so every append of this package runs in a
// function that an Editor was given. Models are called outside of it: the
// surface is looked at in one Edit, the model answers, and the next Edit
// commits, if the range still stands and the caller was not cancelled.
//
// # Files
//
//	commit.go     brackets            layers.go     plan of the policy layers
//	prune.go      shorter results     dsh.go        plan of the policy dsh
//	manager.go    entry points        pass.go       a plan carried out
//	source.go     what is summarised  summarize.go  requests to models
//	verdict.go    bad answers         digest.go     without a model
//	breaker.go    when not to try     account.go    edits held against the cache
//	took.go       what calls took     dry.go        a plan that is only told
//	rebuild.go    a call made again   opened.go     a session as opening leaves it
package history

import (
	"context"
	"fmt"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/history/pin"
)

// Codes of the errors of this package; all wrap outcrop.ErrRefused.
const (
	CodeNotOnSurface outcrop.Code = "NODE_NOT_ON_SURFACE"
	CodeReversed     outcrop.Code = "RANGE_REVERSED"
	CodeSplitsPair   outcrop.Code = "RANGE_SPLITS_PAIR"
	CodeNoSummary    outcrop.Code = "SUMMARY_EMPTY"
	CodeBusy         outcrop.Code = "BUSY"
	CodeNotSmaller   outcrop.Code = "NOT_SMALLER"
	CodeNotResult    outcrop.Code = "NODE_NOT_TOOL_RESULT"
	CodeProtected    outcrop.Code = "NODE_PROTECTED"
	CodeChanged      outcrop.Code = "SURFACE_CHANGED"
	CodeNoTurn       outcrop.Code = "NO_OPEN_TURN"
	CodeSummarizer   outcrop.Code = "SUMMARIZER_FAILED"
)

func refuse(op, session string, code outcrop.Code, seq outcrop.Seq, msg, hint string) error {
	return &outcrop.Error{Op: op, Session: session, Code: code, Seq: seq, Offset: -1, Err: outcrop.ErrRefused, Msg: msg, Hint: hint}
}

func notOnSurface(op, session string, log outcrop.Log, seq outcrop.Seq) error {
	msg := "it is not on the surface"
	if by, ok := pin.CoveredBy(log, seq); ok {
		msg = fmt.Sprintf("it is covered by %d", by)
	}
	return refuse(op, session, CodeNotOnSurface, seq, msg, "outcrop surface lists the nodes")
}

// Editor runs functions on a session's one appender.
type Editor interface {
	// Edit runs f and waits for it. f gets the session as it is then and may
	// append. The error is f's, or says why f did not run.
	Edit(ctx context.Context, f func(s *outcrop.Session) error) error
}

// Direct is the Editor of a session to which nothing else appends.
func Direct(s *outcrop.Session) Editor { return direct{s} }

type direct struct{ s *outcrop.Session }

func (d direct) Edit(ctx context.Context, f func(s *outcrop.Session) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return f(d.s)
}

// Edit is what an operation has committed.
type Edit struct {
	ID          string        // of the compaction; "" for a prune
	First, Last outcrop.Seq   // first and last event of the group that committed it
	Replacement outcrop.Seq   // the event that is on the surface now
	Shadowed    []outcrop.Seq // what it stands for, in model order
	// In estimated tokens: the range, what replaced it, and how much of the
	// last request is no longer a prefix of the next one.
	TokensBefore, TokensAfter, CacheInvalidated int64
	Level                                       int  // of the checkpoint, 0: not said
	ModelFree                                   bool // the summary came from no model
}
