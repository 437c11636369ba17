package doctor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/doctor/internal/dsh"
	"github.com/outcrop-dev/outcrop/doctor/internal/fold"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/wire"
)

// verifier is one verification.
type verifier struct {
	ctx    context.Context
	target Target
	opts   Options
	sum    *Summary
	yield  func(Finding) bool
	over   bool // the caller wants no more findings

	source source
	fold   *fold.Fold
	dsh    dsh.Judge
	checks checks

	refusals     int
	firstRefused outcrop.Seq // -1 without one
	warned       int         // warnings of the reader that were reported
	seq          outcrop.Seq // of the record that is looked at
	data         []byte      // and its data
	reread       int64       // bytes that were read again for results that are not kept
}

func (v *verifier) run() {
	v.firstRefused = -1
	inFile := v.target.Open == nil
	if inFile {
		v.dsh.Start(v.ctx, v.target.R, v.target.Size, v.target.Encoding == wire.Zstd, v.opts.Place.root(v.target.Encoding), v.opts.Place.header)
		if v.opts.doubt {
			v.dsh.Doubt()
		}
	}
	// Also when the caller stops, or panics.
	defer func() {
		if err := v.dsh.Wait(v.over || v.sum.Err != nil && outcrop.CodeOf(v.sum.Err) == ""); err != nil && !v.over {
			v.fail(err)
		} else if err == nil && inFile {
			verdict, class := v.dsh.Verdict()
			v.sum.DSH, v.sum.DSHClass = Verdict(verdict), class
		}
		v.sum.OK = v.sum.Errors == 0 && v.sum.Err == nil
	}()
	v.check()
}

func (v *verifier) check() {
	src, done, err := v.target.open(v.ctx)
	if err != nil {
		v.noSession(err)
		return
	}
	defer func() {
		if err := done(); err != nil {
			v.fail(err)
		}
	}()
	v.sum.Format = "dsh-v" + strconv.FormatInt(src.Header().Format, 10)
	v.source = src
	v.checks = newChecks(v, src.Header())
	if v.fold, err = fold.New(src.Header(), v.resultAgain); err != nil {
		v.noSession(err)
		return
	}
	v.header(src.Header())
	v.records()
	if v.over || v.sum.Err != nil {
		return
	}
	if src.Tail().Torn {
		v.dsh.Doubt()
	} else {
		v.dsh.Sound(int64(v.fold.Len())) // unless there was a doubt
	}
	v.sum.Events, v.sum.LastSeq = v.fold.Len(), outcrop.Seq(v.fold.Len()-1)
	v.sum.Surface, v.sum.Generation = len(v.fold.Nodes()), v.fold.Generation()
	v.end(src.Header())
}

// header reports what the header means for the log's place.
func (v *verifier) header(h outcrop.Header) {
	if h.ID == "" {
		v.emit(Finding{Code: "HEADER_ID", Severity: SeverityWarning, Seq: -1, Line: 1, TextOffset: -1, Message: "the session's id is empty",
			Hint: "a file can hold it, no other store can; doctor --repair --id gives it one"})
	}
	for _, f := range v.opts.Place.findings(h) {
		v.emit(f)
	}
}

// end reports what the end of the log shows.
func (v *verifier) end(h outcrop.Header) {
	if v.fold.NoMarkers() {
		v.noMarkers()
	}
	v.tail()
	last := outcrop.Seq(v.fold.Len() - 1)
	if turn, step, open := v.fold.OpenTurn(); open {
		v.sum.OpenTurn = true
		msg := "the log ends inside turn " + strconv.Itoa(turn)
		if step > 0 {
			msg += ", step " + strconv.Itoa(step)
		}
		if err := v.fold.CheckClosers(); err != nil {
			v.unclosable(err, v.checks.opened)
		} else {
			hint := "opening the session closes it as interrupted"
			if h.Format > 0 {
				hint = "the session that goes on from it closes it as interrupted"
			}
			v.warn("TURN_OPEN", last, wire.Pos{}, msg, hint)
		}
	}
	if n := h.SeedLength; n != nil && *n > int64(v.fold.Len()) {
		v.warn("SEED_LENGTH", -1, wire.Pos{Line: 1}, fmt.Sprintf("the header says that %d events were inherited, the log has %d", *n, v.fold.Len()),
			"the log lost events, or its header is that of another one")
	}
	v.checks.finish()
}

// records reads the log.
func (v *verifier) records() {
	for rec, err := range v.source.Records() {
		v.oddities()
		if v.over {
			return
		}
		if ctxErr := v.ctx.Err(); ctxErr != nil {
			v.fail(ctxErr)
			return
		}
		if err != nil {
			v.dsh.Doubt()
			if !v.unusable(rec, err) {
				return
			}
			v.fold.Pass(1)
			continue
		}
		if n := int(rec.Seq) - v.fold.Len(); n > 0 {
			v.fold.Pass(n) // a record that was too big to read may have been a run
		}
		v.seq, v.data = rec.Seq, rec.Data
		refusal := v.fold.Next(&rec)
		v.checks.add(&rec)
		if refusal != nil {
			v.refused(refusal, &rec)
		}
		if v.over {
			return
		}
	}
	v.oddities()
}

// refused reports an event that admission refuses.
func (v *verifier) refused(err error, rec *outcrop.Record) {
	var e *outcrop.Error
	if !errors.As(err, &e) {
		v.fail(err)
		return
	}
	f := v.finding(SeverityError, e)
	f.Seq = rec.Seq
	v.place(&f, v.source.Pos())
	v.emit(f)
	v.dsh.Events.Message(&rec.Event)
	v.dsh.RefusedByAdmission(e.Code, rec.Seq)
	if v.refusals++; v.firstRefused < 0 {
		v.firstRefused = rec.Seq
	}
}

// unusable reports an error of the reader; false when nothing is read behind
// it.
func (v *verifier) unusable(rec outcrop.Record, err error) bool {
	var e *outcrop.Error
	if !errors.As(err, &e) || e.Code == "" {
		v.fail(err)
		return false
	}
	f := v.finding(SeverityError, e)
	v.place(&f, v.source.Pos())
	v.emit(f)
	legacy := strings.HasPrefix(string(e.Code), "LEGACY_")
	if legacy {
		v.dsh.Events.Refused(e.Code, rec.Seq)
	}
	if v.firstRefused < 0 {
		v.firstRefused = outcrop.Seq(v.fold.Len())
	}
	return e.Code == "RECORD_TOO_BIG" || legacy
}

// maxReread is how much is read again, in bytes, for results that are too many
// to be kept.
const maxReread = 64 << 30

// resultAgain reads the data of a tool/result that is not kept. When that would
// take too long it answers with what replaces it, which then fits.
func (v *verifier) resultAgain(seq outcrop.Seq) []byte {
	if v.reread > maxReread {
		v.warn("MORE_FINDINGS", v.seq, v.source.Pos(), "it is not looked for whether a rewritten result was changed only in its content: the surface is too large", "")
		return v.data
	}
	var data []byte
	src, done, err := v.target.open(v.ctx)
	if err != nil {
		v.fail(err)
		return v.data
	}
	for rec, err := range src.Records() {
		if v.reread += int64(len(rec.Data)); err == nil && rec.Seq == seq {
			data = bytes.Clone(rec.Data)
		}
		if rec.Seq >= seq || v.ctx.Err() != nil {
			break
		}
	}
	if err := done(); err != nil {
		v.fail(err)
	}
	return data
}

// oddities reports what the reader warned of since the last call.
func (v *verifier) oddities() {
	list, n := v.source.Warnings()
	if n > len(list) {
		v.dsh.Doubt() // it is not known what they are
	}
	for ; v.warned < len(list); v.warned++ {
		w := list[v.warned]
		if w.Kind == wire.WarnBlankLine {
			v.dsh.Doubt()
		}
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
	if list, n := v.source.Warnings(); n > len(list) {
		v.warn("MORE_FINDINGS", -1, wire.Pos{}, fmt.Sprintf("%d more odd lines", n-len(list)), "")
	}
	t := v.source.Tail()
	if !t.Torn {
		return
	}
	good := t.Good
	f := Finding{Code: "TORN_TAIL", Severity: SeverityWarning, Seq: -1, Offset: good, TextOffset: -1, Message: "the tail is torn"}
	if v.target.Open == nil {
		v.sum.TruncatedAt = &good
	} else {
		f.Offset = -1
	}
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

// markerRequired is the code of a surface event without its marker.
const markerRequired outcrop.Code = "SURFACE_MARKER_REQUIRED"

// noMarkers reports a log from before surface markers.
func (v *verifier) noMarkers() {
	seq := v.checks.firstUnmarked
	v.emit(Finding{
		Code: markerRequired, Severity: SeverityError, Seq: seq, Offset: -1, TextOffset: -1,
		Message: "the log's messages carry no surface markers",
		Hint:    "it can be looked at, not continued",
	})
	v.dsh.RefusedByAdmission(markerRequired, seq)
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
		if err := v.dsh.Wait(false); err != nil {
			v.fail(err)
			return
		}
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
	return string(jsonwire.Get(v.dsh.HeaderLine(), "version"))
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
