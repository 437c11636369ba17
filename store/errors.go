package store

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/outcrop-dev/outcrop"
)

func (e *LockedError) Error() string {
	var b strings.Builder
	b.WriteString("session is in use by ")
	h := e.Holder
	switch {
	case h.Program != "":
		b.WriteString(h.Program)
	default:
		b.WriteString("another program")
	}
	if h.PID != 0 {
		b.WriteString(", process ")
		b.WriteString(strconv.Itoa(h.PID))
	}
	if h.Host != "" {
		b.WriteString(" on ")
		b.WriteString(h.Host)
	}
	if h.Since != 0 {
		b.WriteString(", since ")
		b.WriteString(time.UnixMilli(h.Since).UTC().Format(time.RFC3339))
	}
	return b.String()
}

// Is makes errors.Is(err, ErrLocked) true.
func (e *LockedError) Is(target error) bool { return target == ErrLocked }

// Problem makes an error of the store about one session. What err already says
// about place and rule is kept.
func Problem(op, id string, err error, msg, hint string) *outcrop.Error {
	p := &outcrop.Error{Op: op, Session: id, Seq: -1, Offset: -1, Err: err, Msg: msg, Hint: hint}
	var in *outcrop.Error
	if errors.As(err, &in) {
		p.Code, p.Seq, p.Path, p.Line, p.Offset = in.Code, in.Seq, in.Path, in.Line, in.Offset
		if p.Msg == "" {
			p.Msg = reason(in)
		}
		if p.Hint == "" {
			p.Hint = in.Hint
		}
	}
	return p
}

// Located adds to the refusal of a stored event where its record stands, when
// log, a Stored or a Lease whose Records were being read, knows that.
func Located(err error, log any) error {
	var e *outcrop.Error
	placed, ok := log.(Placed)
	if !ok || !errors.As(err, &e) || e.Path != "" {
		return err
	}
	path, line, offset := placed.Stopped()
	if line == 0 {
		return err
	}
	c := *e
	c.Path, c.Line, c.Offset = path, line, offset
	if c.Hint == "" {
		c.Hint = "the events before it can be read; outcrop verify lists everything that is wrong"
	}
	return &c
}

func (l *Live) problem(op string, err error, msg, hint string) *outcrop.Error {
	return Problem(op, l.lease.Header().ID, err, msg, hint)
}

// reason is the text of err without the places that an *outcrop.Error puts
// before it.
func reason(err error) string {
	var e *outcrop.Error
	if errors.As(err, &e) {
		if e.Msg != "" {
			return e.Msg
		}
		if e.Err != nil {
			return reason(e.Err)
		}
	}
	return err.Error()
}

func plural(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

func notFound(op, id, msg, hint string) error {
	if msg == "" {
		msg = fmt.Sprintf("no session %q", id)
	}
	return &outcrop.Error{Op: op, Session: id, Code: outcrop.CodeSessionNotFound, Seq: -1, Offset: -1, Err: outcrop.ErrNotFound, Msg: msg, Hint: hint}
}
