package doctor

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/wire"
)

// maxPasses bounds how often a file is read again after an event that
// admission refuses.
const maxPasses = 100

// So that a long log with many refused events ends in some time, fewer passes
// are made once so much text was read again, in bytes.
var maxReread int64 = 1 << 30

const minPasses = 10

// verifier is one verification.
type verifier struct {
	ctx    context.Context
	target Target
	opts   Options
	sum    *Summary
	yield  func(Finding) bool
	over   bool // the caller wants no more findings

	reader *wire.Reader
	dsh    dshJudge
	checks checks

	// A pass that ends at a refused event is followed by another one in which
	// a neutral event stands in its place. What lies before seen was looked at
	// by an earlier pass.
	seen    outcrop.Seq
	neutral map[outcrop.Seq]bool
	reread  int64         // bytes of text that were read up to refused events
	warned  int           // warnings of the reader that were reported
	last    outcrop.Event // the one that admission was given last
}

func (v *verifier) run() {
	v.check()
	v.sum.OK = v.sum.Errors == 0 && v.sum.Err == nil
}

func (v *verifier) check() {
	if err := v.dsh.read(v.ctx, v.target, v.opts.Place); err != nil {
		v.fail(err)
		return
	}
	defer func() { v.sum.DSH, v.sum.DSHClass = v.dsh.verdict() }()
	r, err := wire.NewReader(v.target.R, v.target.Size, v.target.Encoding)
	if err != nil {
		v.noSession(err)
		return
	}
	v.sum.Format = "dsh-v0"
	r.CheckContent()
	v.reader = r
	v.neutral = map[outcrop.Seq]bool{}
	v.checks = newChecks(v, r.Header())

	var s *outcrop.Session
	for pass := 1; ; pass++ {
		s, err = outcrop.Inspect(r.Header(), v.records(), outcrop.Options{})
		if err == nil || v.over || !v.refused(err, outcrop.Seq(s.Len()), pass) {
			break
		}
	}
	if v.over || v.sum.Err != nil {
		return
	}
	if s.NoMarkers() {
		v.noMarkers()
	}
	v.sum.Events, v.sum.LastSeq = s.Len(), outcrop.Seq(s.Len()-1)
	v.sum.Surface, v.sum.Generation = s.Surface().Len(), s.Surface().Generation()
	v.tail()
	if turn, step, open := outcrop.OpenTurn(s.Log()); open {
		v.sum.OpenTurn = true
		msg := "the log ends inside turn " + strconv.Itoa(turn)
		if step > 0 {
			msg += ", step " + strconv.Itoa(step)
		}
		if err := outcrop.CheckClosers(s.Log()); err != nil {
			v.unclosable(err, v.checks.opened)
		} else {
			v.warn("TURN_OPEN", outcrop.Seq(s.Len()-1), wire.Pos{}, msg, "opening the session closes it as interrupted")
		}
	}
	v.checks.finish(s.Log())
}

// refused notes that admission refused the event at seq, and reports whether
// another pass is to be made.
func (v *verifier) refused(err error, seq outcrop.Seq, pass int) bool {
	var e *outcrop.Error
	if v.sum.Err != nil || !errors.As(err, &e) || !errors.Is(err, outcrop.ErrRefused) || v.neutral[seq] {
		return false
	}
	f := v.finding(SeverityError, e)
	f.Seq = seq
	v.place(&f, v.reader.Pos())
	v.emit(f)
	if v.last.Seq == seq {
		v.dsh.events.message(&v.last)
	}
	v.dsh.refusedByAdmission(e.Code, seq)
	v.neutral[seq] = true
	pos := v.reader.Pos()
	v.reread += max(pos.Offset, pos.TextOffset)
	if pass == maxPasses || pass >= minPasses && v.reread > maxReread {
		v.warn("MORE_FINDINGS", seq, v.reader.Pos(), fmt.Sprintf("%d events were refused; the ones behind are not looked for", pass), "")
		return false
	}
	return !v.over
}

// records yields the file's records for admission, with a neutral event in the
// place of each that cannot be used, and looks at each that no earlier pass
// has looked at.
func (v *verifier) records() iter.Seq2[outcrop.Record, error] {
	return func(yield func(outcrop.Record, error) bool) {
		next := outcrop.Seq(0)
		for rec, err := range v.reader.Records() {
			v.oddities()
			if v.over {
				return
			}
			if ctxErr := v.ctx.Err(); ctxErr != nil {
				v.fail(ctxErr)
				return
			}
			if err != nil {
				var more bool
				if rec, more = v.unusable(rec, err, next); !more {
					return
				}
			} else {
				// A record that was too big to read may have been a run.
				for next < rec.Seq {
					if !yield(neutral(next, rec.Time), nil) {
						return
					}
					next++
				}
				v.last = rec.Event
				if rec.Seq >= v.seen {
					v.checks.add(&rec)
					v.seen = rec.Last() + 1
				}
				if v.neutral[rec.Seq] {
					rec = neutral(rec.Seq, rec.Time)
				}
			}
			next = rec.Last() + 1
			if v.over || !yield(rec, nil) {
				return
			}
		}
		v.oddities()
	}
}

// unusable reports an error of the reader and gives what stands in its place;
// more is false when nothing is read behind it.
func (v *verifier) unusable(rec outcrop.Record, err error, next outcrop.Seq) (stand outcrop.Record, more bool) {
	var e *outcrop.Error
	if !errors.As(err, &e) {
		v.fail(err)
		return rec, false
	}
	legacy := strings.HasPrefix(string(e.Code), "LEGACY_")
	if e.Code == "" {
		v.fail(err)
		return rec, false
	}
	if next >= v.seen {
		f := v.finding(SeverityError, e)
		v.place(&f, v.reader.Pos())
		v.emit(f)
		if legacy {
			v.dsh.events.refused(e.Code, rec.Seq)
		}
		v.seen = next + 1
	}
	if e.Code != "RECORD_TOO_BIG" && !legacy {
		return rec, false
	}
	return neutral(next, rec.Time), true
}

// neutral is an event that changes nothing.
func neutral(seq outcrop.Seq, time int64) outcrop.Record {
	line := []byte(`{"type":"feedback/record","seq":` + strconv.FormatInt(int64(seq), 10) +
		`,"time":` + strconv.FormatInt(min(max(time, -jsonwire.MaxSafe), jsonwire.MaxSafe), 10) + `,"data":{}}`)
	e, err := outcrop.DecodeEvent(line)
	if err != nil {
		panic("doctor: the neutral event: " + err.Error()) // its text is a constant but for two numbers
	}
	return outcrop.Record{Event: e}
}

// oddities reports what the reader warned of since the last call.
func (v *verifier) oddities() {
	list, _ := v.reader.Warnings()
	for ; v.warned < len(list); v.warned++ {
		w := list[v.warned]
		v.warn(outcrop.Code(w.Kind), w.Seq, w.Pos, w.Msg, oddHints[w.Kind])
	}
}

var oddHints = map[wire.WarningKind]string{
	wire.WarnBlankLine:     "dsh takes a blank line for the start of a torn tail",
	wire.WarnCRLF:          "the line was written by something else; it is read all the same",
	wire.WarnDuplicateName: "nothing has to be done; a writer of such lines should be found",
	wire.WarnInvalidUTF8:   "nothing has to be done; a writer of such lines should be found",
	wire.WarnNumber:        "it is kept as written, but an event with it cannot be copied into another log",
}

// tail reports how the file ends.
func (v *verifier) tail() {
	if list, n := v.reader.Warnings(); n > len(list) {
		v.warn("MORE_FINDINGS", -1, wire.Pos{}, fmt.Sprintf("%d more odd lines", n-len(list)), "")
	}
	t := v.reader.Tail()
	if !t.Torn {
		return
	}
	good := t.Good
	v.sum.TruncatedAt = &good
	f := Finding{Code: "TORN_TAIL", Severity: SeverityWarning, Seq: -1, Offset: good, TextOffset: -1, Message: "the tail is torn"}
	var e *outcrop.Error
	if errors.As(t.Reason, &e) {
		f.Seq, f.Line, f.Hint = e.Seq, e.Line, e.Hint
		f.Message = fmt.Sprintf("torn tail of %d bytes: %s (%s)", v.target.Size-good, e.Msg, e.Code)
		if e.Offset >= 0 {
			f.Offset = e.Offset
		}
	}
	if t.Recovered > 0 {
		f.Message += fmt.Sprintf("; %d events were saved from it", t.Recovered)
	}
	v.emit(f)
}

// noMarkers reports a log from before surface markers.
func (v *verifier) noMarkers() {
	seq := v.checks.firstUnmarked
	v.emit(Finding{
		Code: markerRequired, Severity: SeverityError, Seq: seq, Offset: -1, TextOffset: -1,
		Message: "the log's messages carry no surface markers",
		Hint:    "it can be looked at, not continued",
	})
	v.dsh.refusedByAdmission(markerRequired, seq)
}

// unclosable reports an open turn that nothing can close; pos is where it
// begins.
func (v *verifier) unclosable(err error, pos wire.Pos) {
	var e *outcrop.Error
	if errors.As(err, &e) {
		f := v.finding(SeverityError, e)
		v.place(&f, pos)
		v.emit(f)
	}
}

// noSession reports a file without a header that can be used.
func (v *verifier) noSession(err error) {
	var e *outcrop.Error
	if !errors.As(err, &e) || e.Code == "" {
		v.fail(err)
		return
	}
	f := v.finding(SeverityError, e)
	f.Seq, f.Line, f.Offset = -1, 1, 0
	v.emit(f)
	if errors.Is(err, outcrop.ErrUnsupported) {
		v.sum.Format = "dsh-v" + v.version()
		v.sum.Err = err
		return
	}
	switch c := string(e.Code); {
	case c == "HEADER_NOT_JSON", c == "HEADER_SHAPE", c == "HEADER_RETIRED", !strings.HasPrefix(c, "HEADER_"):
		v.sum.Err = err
	default:
		v.sum.Format = "dsh-v0"
	}
}

// version is the format version that the header line names.
func (v *verifier) version() string {
	return string(jsonwire.Get(v.dsh.file.headerLine, "version"))
}

func (v *verifier) finding(s Severity, e *outcrop.Error) Finding {
	msg := e.Msg
	if msg == "" && e.Err != nil {
		msg = e.Err.Error()
	}
	return Finding{Code: e.Code, Severity: s, Seq: e.Seq, Line: e.Line, Offset: e.Offset, TextOffset: -1, Message: msg, Hint: e.Hint}
}

// place puts a finding where a record is.
func (v *verifier) place(f *Finding, p wire.Pos) {
	if p.Line == 0 {
		return
	}
	f.Line, f.Offset = p.Line, p.Offset
	if v.target.Encoding == wire.Zstd {
		f.TextOffset = p.TextOffset
	}
}

func (v *verifier) warn(code outcrop.Code, seq outcrop.Seq, p wire.Pos, msg, hint string) {
	f := Finding{Code: code, Severity: SeverityWarning, Seq: seq, Offset: -1, TextOffset: -1, Message: msg, Hint: hint}
	v.place(&f, p)
	v.emit(f)
}

func (v *verifier) emit(f Finding) {
	if v.over {
		return
	}
	if f.Severity == SeverityError {
		v.sum.Errors++
	} else {
		v.sum.Warnings++
	}
	v.over = !v.yield(f)
}

// fail ends the verification: the file could not be read, or nobody waits any
// more.
func (v *verifier) fail(err error) {
	if v.sum.Err == nil {
		v.sum.Err = err
	}
}
