// Package outcrop keeps everything that an agent did as one append-only event
// log, and folds from it what the model sees.
//
// A Session is a log with its surface. The surface is an ordered list of event
// seqs; it is changed by markers that events carry and by nothing else: append
// puts the event at the tail, replace puts it in the place of an inclusive
// range of nodes, whose events stay in the log. Messages derives the surface
// into messages; RequestHeader folds everything else of a request. So every
// request that was ever made can be rebuilt from the log, byte for byte, and
// a history edit (compaction, pruning, rewind) is one more event.
//
//	bytes -> wire -> log -> surface -> request -> provider -> log
//
// The log format is session format version 0 of DeepSeek Harness; see
// docs/format.md. This package does no I/O, reads no clock and draws no random
// number: both are passed in with Options.
//
// Rules that always hold:
//
//   - A candidate is checked in full, then vetoes run, then it is committed,
//     then observers hear of it. What was refused leaves no trace.
//   - One surface manager a session, used by admission and by every read.
//   - An event keeps the bytes it came with.
//   - What a live append accepts, a load accepts too.
package outcrop
