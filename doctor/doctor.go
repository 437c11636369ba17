// Package doctor is the offline verifier of logs: it says everything that is
// wrong with one, and changes nothing.
//
// # Findings
//
// A finding is an error or a warning. The log is ok when it has no error: it
// can be continued as it is, after cutting a torn tail and closing an open
// turn, which are warnings. Errors are what admission refuses (its codes are
// those of package outcrop, see docs/format.md), damage that is no torn tail,
// records that are too big to be read, half an old shape, TYPE_UNKNOWN, and a
// place in a root that keeps the store from opening it. After an error the event
// counts as neutral and verifying goes on. The other codes are warnings:
//
//	TORN_TAIL            the last bytes do not count and are cut by the next append
//	TURN_OPEN            the log ends inside a turn
//	COMPACTION_OPEN      the log ends inside a compaction bracket
//	DANGLING_CALL        a tool call without a result in a turn that is closed
//	ORPHAN_RESULT        a result on the surface whose call does not stand before it
//	BAD_CALL             a tool call without id or name, or with an id that another one has
//	BAD_ARGUMENTS        arguments of a tool call that are no JSON object
//	DIGEST_MISMATCH      a recorded request digest is not that of the log
//	REDACTED             the same, because something of the request was redacted
//	ATTACHMENT_MISSING   an attachment that a message names cannot be found
//	SEED_LENGTH          the header says that more events were inherited than there are
//	HEADER_ID            the session's id is empty, so that only a file can hold it
//	BLANK_LINE CRLF DUPLICATE_NAME INVALID_UTF8 NUMBER_LOSSY
//	                     odd content that is read over
//	the optional invariants, under the label in upper case: CHUNK_NOT_IN_STEP …
//	MORE_FINDINGS        something was not looked for any more, so that memory and
//	                     time stay bounded
//
// # The verdict of dsh
//
// Summary.DSH says what dsh 0.1 would do with the same bytes: ok, cut (it
// drops a torn tail) or refused, and DSHClass why. Its rules differ from ours
// where lines or frames are odd, so that a file with such a one is read a second
// time by them, as soon as it is found: package internal/dsh.
//
// # Repair
//
// Verify writes nothing anywhere. What can be done about its findings, Groups
// says in words, and package repair does.
//
// # Cost
//
// A log is read once and not kept, whatever its size; one that is odd is read
// twice. That takes about two times as long as loading it. Memory is that of the
// longest line as package wire holds it, at most 32 MiB of what stands on the
// surface, and nine bytes a node.
package doctor

import (
	"context"
	"io"
	"iter"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/doctor/internal/dsh"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/wire"
)

// Verdict is what dsh 0.1 does with a file.
type Verdict string

const (
	DSHOK      Verdict = dsh.OK      // reads all of it
	DSHCut     Verdict = dsh.Cut     // drops a torn tail and reads the rest
	DSHRefused Verdict = dsh.Refused // does not open it
)

// Target is the log to verify.
type Target struct {
	Name     string // what Summary.Target says: a path or a session id
	R        io.ReaderAt
	Size     int64
	Encoding wire.Encoding
	// Open opens a log that is in no file; the members above but Name are zero
	// then, places are not known and dsh has no verdict.
	Open func(ctx context.Context) (store.Stored, error)
}

// Options are what a verification may look at besides the file. The zero value
// looks at the file alone.
type Options struct {
	// Attachment reports whether an attachment is there, by its id
	// ("sha256:" and 64 hex digits). nil: attachments are not looked for.
	Attachment func(ctx context.Context, id string) (bool, error)
	// Place is where the file lies in a root of sessions. dsh judges the root
	// too. nil: the file is judged alone.
	Place *Place

	doubt bool // each file is read by dsh's rules, as a test wants it
}

// Severity says whether a finding keeps a log from being continued.
type Severity string

const (
	SeverityError   Severity = "error"
	SeverityWarning Severity = "warning"
)

// Finding is one thing that is wrong with a log. Places that are not known are
// -1, Line 0.
type Finding struct {
	Code       outcrop.Code
	Severity   Severity
	Seq        outcrop.Seq
	Line       int   // 1 is the header line
	Offset     int64 // bytes in the file; zstd: where the frame starts
	TextOffset int64 // zstd: bytes in the text; -1 for a plain file, where it would be Offset
	Message    string
	Hint       string
}

// AppendJSON appends the finding as the command line prints it. Members that
// are not known are left out.
func (f Finding) AppendJSON(dst []byte) []byte {
	dst = append(dst, '{')
	dst = jsonwire.AppendStringMember(dst, "code", string(f.Code))
	dst = jsonwire.AppendStringMember(dst, "severity", string(f.Severity))
	if f.Seq >= 0 {
		dst = jsonwire.AppendIntMember(dst, "seq", int64(f.Seq))
	}
	if f.Line > 0 {
		dst = jsonwire.AppendIntMember(dst, "line", int64(f.Line))
	}
	if f.Offset >= 0 {
		dst = jsonwire.AppendIntMember(dst, "offset", f.Offset)
	}
	if f.TextOffset >= 0 {
		dst = jsonwire.AppendIntMember(dst, "textOffset", f.TextOffset)
	}
	dst = jsonwire.AppendStringMember(dst, "message", f.Message)
	dst = jsonwire.AppendStringMember(dst, "hint", f.Hint)
	return append(dst, '}')
}

// MarshalJSON implements json.Marshaler.
func (f Finding) MarshalJSON() ([]byte, error) { return f.AppendJSON(nil), nil }

// Summary is the answer as a whole.
type Summary struct {
	Target     string
	OK         bool
	Format     string // "dsh-v0"; "dsh-vN" for a later one, whose events are counted as format 0 has them; "" when the file holds no session
	Encoding   wire.Encoding
	Events     int         // as stored, those saved from a torn frame included; without those behind damage
	LastSeq    outcrop.Seq // -1 without events
	Surface    int         // nodes
	Generation int
	Turns      int // turns that were begun
	OpenTurn   bool
	// TruncatedAt is the byte where the next append cuts a torn tail, nil
	// without one.
	TruncatedAt *int64
	DSH         Verdict // "" for a log that is in no file
	DSHClass    string  // class of dsh's refusal, else ""
	Errors      int
	Warnings    int

	// Err is set when the file holds no session, or one of a format that is
	// not read (then errors.Is(Err, outcrop.ErrUnsupported)), or when reading
	// failed or was cancelled.
	Err error
}

// AppendJSON appends the summary as the command line prints it.
func (s Summary) AppendJSON(dst []byte) []byte {
	text := func(name, v string) {
		if v == "" {
			dst = jsonwire.AppendRawMember(dst, name, []byte("null"))
			return
		}
		dst = jsonwire.AppendStringMember(dst, name, v)
	}
	yes := func(name string, v bool) {
		word := "false"
		if v {
			word = "true"
		}
		dst = jsonwire.AppendRawMember(dst, name, []byte(word))
	}
	dst = append(dst, '{')
	dst = jsonwire.AppendStringMember(dst, "target", s.Target)
	yes("ok", s.OK)
	text("format", s.Format)
	text("encoding", string(s.Encoding))
	dst = jsonwire.AppendIntMember(dst, "events", int64(s.Events))
	dst = jsonwire.AppendIntMember(dst, "lastSeq", int64(s.LastSeq))
	dst = jsonwire.AppendIntMember(dst, "surface", int64(s.Surface))
	dst = jsonwire.AppendIntMember(dst, "generation", int64(s.Generation))
	dst = jsonwire.AppendIntMember(dst, "turns", int64(s.Turns))
	yes("openTurn", s.OpenTurn)
	if s.TruncatedAt == nil {
		dst = jsonwire.AppendRawMember(dst, "truncatedAt", []byte("null"))
	} else {
		dst = jsonwire.AppendIntMember(dst, "truncatedAt", *s.TruncatedAt)
	}
	text("dsh", string(s.DSH))
	text("dshClass", s.DSHClass)
	dst = jsonwire.AppendIntMember(dst, "errors", int64(s.Errors))
	dst = jsonwire.AppendIntMember(dst, "warnings", int64(s.Warnings))
	return append(dst, '}')
}

// MarshalJSON implements json.Marshaler.
func (s Summary) MarshalJSON() ([]byte, error) { return s.AppendJSON(nil), nil }

// Verify checks a log file. The findings come while the file is read, in its
// order for the most part; the summary holds once they have been ranged over,
// once and to their end. Nothing is written anywhere.
func Verify(ctx context.Context, t Target, o Options) (iter.Seq[Finding], *Summary) {
	s := &Summary{Target: t.Name, Encoding: t.Encoding, LastSeq: -1}
	return func(yield func(Finding) bool) {
		v := verifier{ctx: ctx, target: t, opts: o, sum: s, yield: yield}
		v.run()
	}, s
}
