package outcrop

import (
	"errors"
	"strconv"
	"strings"
)

// Sentinel errors. Every error of this module that has one of these reasons
// answers true to errors.Is with it.
var (
	// ErrRefused: a candidate, a log or a header breaks a rule of admission;
	// the Code of the *Error says which.
	ErrRefused = errors.New("refused")
	// ErrVetoed: a veto said no, or panicked.
	ErrVetoed = errors.New("vetoed")
	// ErrAppendInFlight: the session is in the middle of another append; an
	// observer or a veto tried to append, or two goroutines did.
	ErrAppendInFlight = errors.New("another append is in flight")
	// ErrFailed: a closer could not be written earlier, so nothing may be
	// opened on top of it.
	ErrFailed = errors.New("session failed earlier")
	// ErrReadOnly: the session was opened for reading.
	ErrReadOnly = errors.New("session is read-only")
	// ErrUnsupported: a format or a required event type newer than this
	// program; the data is intact.
	ErrUnsupported = errors.New("not supported by this version")
	// ErrDamaged: stored bytes are damaged before the last closed turn.
	ErrDamaged = errors.New("damaged")
	// ErrNotFound: no such session.
	ErrNotFound = errors.New("not found")
)

// Code names the rule that was broken. The codes of admission are listed in
// docs/format.md.
type Code string

// Error says what failed, where, and what can be done. Fields that do not
// apply are zero; Seq and Offset are -1 when unknown.
type Error struct {
	Op      string // what was being done: "append", "open", "restore"
	Session string // session id
	Code    Code   // rule, when one was broken
	Seq     Seq
	Path    string
	Line    int   // 1 is the header line; 0 unknown
	Offset  int64 // bytes from the start of the file
	Err     error // reason; wraps one of the sentinels
	Msg     string
	Hint    string // what to do about it
}

func (e *Error) Error() string {
	var b strings.Builder
	if e.Op != "" {
		b.WriteString(e.Op)
		b.WriteString(": ")
	}
	if e.Path != "" {
		b.WriteString(e.Path)
		b.WriteString(": ")
	} else if e.Session != "" {
		b.WriteString("session ")
		b.WriteString(e.Session)
		b.WriteString(": ")
	}
	if e.Line > 0 {
		b.WriteString("line ")
		b.WriteString(strconv.Itoa(e.Line))
		b.WriteString(": ")
	}
	if e.Offset >= 0 && e.Path != "" {
		b.WriteString("byte ")
		b.WriteString(strconv.FormatInt(e.Offset, 10))
		b.WriteString(": ")
	}
	if e.Seq >= 0 {
		b.WriteString("event ")
		b.WriteString(strconv.FormatInt(int64(e.Seq), 10))
		b.WriteString(": ")
	}
	switch {
	case e.Msg != "":
		b.WriteString(e.Msg)
	case e.Err != nil:
		b.WriteString(e.Err.Error())
	}
	if e.Code != "" {
		b.WriteString(" (")
		b.WriteString(string(e.Code))
		b.WriteString(")")
	}
	if e.Hint != "" {
		b.WriteString(": ")
		b.WriteString(e.Hint)
	}
	return b.String()
}

func (e *Error) Unwrap() error { return e.Err }

// CodeOf returns the rule code that err carries, or "".
func CodeOf(err error) Code {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// refuse makes a refusal by one rule.
func refuse(code Code, seq Seq, msg string) *Error {
	return &Error{Code: code, Seq: seq, Offset: -1, Err: ErrRefused, Msg: msg}
}
