// Package repair makes a log that can be continued of a damaged log file.
//
// It is strict: no event is invented, none gets another seq, and a record is
// taken only when its seq is the next one and admission takes it. So what comes
// out is a log whatever went in: what stood in the file, up to the first event
// that is missing. What is left out is kept, and so is the file as it was.
//
// The file is read line by line by a salvor, which goes on behind damage; a
// mender decides which lines make up the log. NewPlan lets them run and writes
// nothing; Plan.Write lets them run again, and Copy and InPlace do that with
// files, durably, and check what came out with package doctor.
package repair

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/doctor"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/wire"
)

// Options are what a repair is told. The zero value knows nothing.
type Options struct {
	// ID and Cwd are for a header that is lost: what the session's were. A
	// header that can be read keeps its own, but an empty id is replaced.
	ID, Cwd string
	// Place is where the file lies in a root; a header that is made anew must
	// belong there. nil: the file lies alone.
	Place *doctor.Place
}

// Change is one thing that a repair does. Places that are not known are -1,
// Line 0.
//
// What can be done to a log is little, because nothing may be invented and no
// event may get another seq:
//
//	TORN_TAIL          bytes behind the last whole record are left out
//	NEWLINE_MISSING    the last record is whole but for its newline, which is added
//	GLUED              two records stand on one line and get one each
//	GLUED_TORN         a record begins behind the torn start of another one
//	NUL_RUN            zero bytes are left out
//	JUNK               bytes that are no record are left out; the seqs go on behind them
//	SEQ_REPEAT         a record stands there twice, with the same bytes: one is left out
//	CLOSERS_OVERTAKEN  events that closed a turn for a program that still wrote
//	                   give way to what that one wrote under the same seqs
//	CUT                the log ends before an event that cannot be had or taken;
//	                   all that stands behind it is kept in a file of its own
//	HEADER_REBUILT     the header is made anew
//	FRAME_HEADER       the header gets a frame of its own
//	COMPACTION_CLOSED  a compaction that did not come to its end is closed by an
//	                   appended event
//
// A call without a result in a turn that is closed is not touched: no event can
// be put behind its message any more, and requests supply the result.
type Change struct {
	Code       outcrop.Code
	Reason     outcrop.Code // CUT, JUNK and TORN_TAIL: what is wrong there
	Seq        outcrop.Seq  // of the first event that it is about
	Line       int
	Offset     int64
	TextOffset int64
	Bytes      int64 // that are left out; text where there are frames
	Events     int   // that are left out, or added, as far as they can be told
	Times      int   // how often the same was done in a row
	Message    string
}

// AppendJSON appends the change as the command line prints it.
func (c Change) AppendJSON(dst []byte) []byte {
	dst = append(dst, '{')
	dst = jsonwire.AppendStringMember(dst, "code", string(c.Code))
	if c.Reason != "" {
		dst = jsonwire.AppendStringMember(dst, "reason", string(c.Reason))
	}
	if c.Seq >= 0 {
		dst = jsonwire.AppendIntMember(dst, "seq", int64(c.Seq))
	}
	if c.Line > 0 {
		dst = jsonwire.AppendIntMember(dst, "line", int64(c.Line))
	}
	if c.Offset >= 0 {
		dst = jsonwire.AppendIntMember(dst, "offset", c.Offset)
	}
	if c.TextOffset >= 0 {
		dst = jsonwire.AppendIntMember(dst, "textOffset", c.TextOffset)
	}
	dst = jsonwire.AppendIntMember(dst, "bytes", c.Bytes)
	dst = jsonwire.AppendIntMember(dst, "events", int64(c.Events))
	dst = jsonwire.AppendIntMember(dst, "times", int64(c.Times))
	dst = jsonwire.AppendStringMember(dst, "message", c.Message)
	return append(dst, '}')
}

// Plan is what can be done for one log file.
type Plan struct {
	Changes []Change // in the order of the file; empty: there is nothing to do
	Header  outcrop.Header
	Events  int // of the repaired log
	Behind  int // events behind a cut, as far as they can be told

	target doctor.Target
	opts   Options
	limit  outcrop.Seq // the log ends before this event; -1: no limit
	why    *outcrop.Error

	rebuilt bool // the header is made anew
}

// ErrNotRepairable is the reason when a file cannot be repaired; nothing was
// written. The error says why, and what helps.
var ErrNotRepairable = errors.New("cannot be repaired")

func notRepairable(code outcrop.Code, msg, hint string) error {
	return &outcrop.Error{Op: "repair", Code: code, Seq: -1, Offset: -1, Err: ErrNotRepairable, Msg: msg, Hint: hint}
}

// NewPlan looks at a log file and says what Write would do. It writes nothing. The
// error is ErrNotRepairable, or one of reading or of ctx.
func NewPlan(ctx context.Context, t doctor.Target, o Options) (*Plan, error) {
	r := &Plan{target: t, opts: o, limit: -1}
	if t.Open != nil {
		return nil, notRepairable("", "the session lies in no file", "fork it before the event that cannot be taken, or copy it to a file with convert")
	}
	if t.Size == 0 {
		return nil, notRepairable("FILE_EMPTY", "the file is empty: it holds no session", "nothing is lost with it: remove it")
	}
	for {
		m := r.mender(ctx)
		if err := m.run(); err != nil {
			return nil, err
		}
		r.Changes, r.Events, r.Behind = m.changes, int(m.next), m.behind
		if err := m.finishHeader(); err != nil {
			return nil, err
		}
		if m.fold.NoMarkers() {
			return nil, notRepairable("SURFACE_MARKER_REQUIRED", "the log's messages carry no surface markers: it is from before them", "it can be looked at, not continued")
		}
		err := m.fold.CheckClosers()
		if err == nil {
			return r, nil
		}
		// Again, and the log ends before the turn that nothing can close.
		var e *outcrop.Error
		if !errors.As(err, &e) || r.limit >= 0 && e.Seq >= r.limit {
			return nil, err
		}
		r.limit, r.why = e.Seq, e
	}
}

// Write writes the repaired log to w. What is left out goes to the files that
// removed opens: removed.jsonl for what stood between the records that stay,
// behind.jsonl for what stood behind a cut, frame-OFFSET.zst for frames that
// could not be decoded, as they are. The file must be what it was when the plan
// was made.
func (r *Plan) Write(ctx context.Context, w io.Writer, removed func(name string) (io.WriteCloser, error)) (err error) {
	m := r.mender(ctx)
	m.out = &rewriter{w: w, enc: r.target.Encoding}
	m.aside = &aside{open: removed}
	defer func() { err = errors.Join(err, m.aside.close()) }()
	if err := m.run(); err != nil {
		return err
	}
	if len(m.changes) != len(r.Changes) || int(m.next) != r.Events {
		return &outcrop.Error{Op: "repair", Seq: -1, Offset: -1, Err: ErrNotRepairable,
			Msg: "the file changed while it was being repaired", Hint: "end the program that writes it, and try again"}
	}
	return m.out.flush()
}

func (r *Plan) mender(ctx context.Context) *mender {
	m := &mender{plan: r, bracket: -1}
	m.salvor = salvor{ctx: ctx, t: r.target, line: m.take, gap: m.gap}
	return m
}

// maxChanges is how many changes are listed one by one.
const maxChanges = 1000

// change notes a change. The same thing twice in a row is one change, and so is
// everything beyond the number that is listed.
func (m *mender) change(c Change) {
	c.Times = 1
	if n := len(m.changes); n > 0 {
		last := &m.changes[n-1]
		if last.Code == c.Code && last.Reason == c.Reason && c.Code != "CUT" || n >= maxChanges && c.Code != "CUT" {
			last.Bytes += c.Bytes
			last.Events += c.Events
			last.Times++
			return
		}
	}
	m.changes = append(m.changes, c)
}

// at makes a change at a line.
func at(code outcrop.Code, seq outcrop.Seq, p wire.Pos, msg string) Change {
	c := Change{Code: code, Seq: seq, Line: p.Line, Offset: p.Offset, TextOffset: -1, Message: msg}
	if p.TextOffset != p.Offset {
		c.TextOffset = p.TextOffset
	}
	return c
}

func seqs(from outcrop.Seq, n int) string {
	if n == 1 {
		return "event " + strconv.FormatInt(int64(from), 10)
	}
	return fmt.Sprintf("events %d to %d", from, int64(from)+int64(n)-1)
}

// Advice says in words what a repair would do, one sentence a change.
func (r *Plan) Advice() (lines []string) {
	for _, c := range r.Changes {
		var b strings.Builder
		b.WriteString(c.Message)
		if c.Times > 1 {
			b.WriteString(" (" + strconv.Itoa(c.Times) + " times)")
		}
		switch {
		case c.Code == "CUT" && c.Events > 0:
			b.WriteString("; what stands behind it is kept in a file of its own: " + count(int64(c.Events), "event"))
		case c.Code == "CUT":
			b.WriteString("; what stands behind it is kept in a file of its own")
		case c.Bytes > 0:
			b.WriteString("; " + count(c.Bytes, "byte") + " left out")
		}
		lines = append(lines, b.String())
	}
	return lines
}

func count(n int64, what string) string {
	if n != 1 {
		what += "s"
	}
	return strconv.FormatInt(n, 10) + " " + what
}
