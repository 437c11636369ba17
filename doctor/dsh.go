package doctor

import (
	"context"
	"strings"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/wire"
)

// Verdict is what dsh 0.1 does with a file.
type Verdict string

const (
	DSHOK      Verdict = "ok"      // reads all of it
	DSHCut     Verdict = "cut"     // drops a torn tail and reads the rest
	DSHRefused Verdict = "refused" // does not open it
)

// dshJudge collects what dsh's verdict depends on. The zero value judges an
// absent file.
type dshJudge struct {
	found  bool
	place  string // class of what is wrong with the place of the file
	file   dshFile
	events dshEvents

	admission fault // the first refusal of an event

	stop context.CancelFunc
	done chan error // has the error of reading when the file was read
}

// start begins to read the file by dsh's rules, beside the reading by ours.
func (d *dshJudge) start(ctx context.Context, t Target, p *Place) {
	d.place = p.root(t.Encoding)
	if d.found = t.R != nil; !d.found || d.place != "" {
		return
	}
	ctx, d.stop = context.WithCancel(ctx)
	d.done = make(chan error, 1)
	go func() {
		file, err := readDSHFile(ctx, t.R, t.Size, t.Encoding == wire.Zstd)
		if d.file = file; file.fatal == "" {
			d.place = p.header(file.header)
		}
		d.done <- err
	}()
}

// wait waits until the file was read, and returns the error of that. With cut
// it is not read to its end: nobody wants the verdict.
func (d *dshJudge) wait(cut bool) error {
	if d.done == nil {
		return nil
	}
	if cut {
		d.stop()
	}
	err := <-d.done
	d.stop()
	d.done = nil
	return err
}

// refusedByAdmission notes that a session cannot be built beyond an event.
func (d *dshJudge) refusedByAdmission(code outcrop.Code, seq outcrop.Seq) {
	d.admission.first(classOf(code), seq)
}

// verdict holds when all events have been added and the file was read. The
// order is dsh's: the file, its place, the events one pass after the other, the
// header, the session.
func (d *dshJudge) verdict() (Verdict, string) {
	absent := ""
	if !d.found {
		absent = "not-found"
	}
	n := d.file.events
	for _, class := range [...]string{d.file.fatal, d.place, absent, d.events.class(n), d.file.header.late, d.admission.within(n)} {
		if class != "" {
			return DSHRefused, class
		}
	}
	if d.file.cut >= 0 {
		return DSHCut, ""
	}
	return DSHOK, ""
}

// markerRequired is the code of a surface event without its marker.
const markerRequired outcrop.Code = "SURFACE_MARKER_REQUIRED"

// dshClasses are the codes whose class is not the code itself in lower case
// with dashes.
var dshClasses = map[outcrop.Code]string{
	"ENVELOPE":                        "event-envelope",
	"LEGACY_TURN_START":               "legacy-malformed-turn-start",
	"LEGACY_TURN_END":                 "legacy-malformed-turn-end",
	"LEGACY_STEERING":                 "legacy-malformed-steering",
	"REQUEST_HEADER_NO_MODEL":         "reqheader-no-provider-model",
	"REQUEST_HEADER_REASONING_EFFORT": "reqheader-reasoning-effort",
	"REQUEST_HEADER_ADAPTER_DEFAULTS": "reqheader-adapter-defaults",
	"SURFACE_NOT_ELIGIBLE_OP":         "op-on-ineligible",
	"SURFACE_NOT_ELIGIBLE_SOURCES":    "sources-on-ineligible",
	"SURFACE_MARKER_REQUIRED":         "op-missing",
	"SURFACE_BAD_OP":                  "op-invalid",
	"SURFACE_BAD_REPLACE":             "op-invalid-replace",
	"SURFACE_START_MISSING":           "replace-start-absent",
	"SURFACE_END_MISSING":             "replace-end-absent",
	"SURFACE_REVERSED":                "replace-reversed",
	"SOURCES_BAD_ELEMENT":             "sources-not-seqs",
	"SOURCES_INCOMPLETE":              "sources-miss-shadowed",
	"REWRITE_NOT_SINGLE":              "tool-rewrite-not-one",
	"REWRITE_NOT_RESULT":              "tool-rewrite-target",
	"REWRITE_NOT_CONTENT_ONLY":        "tool-rewrite-changes",
}

// classOf is dsh's class for one of our codes, where both refuse.
func classOf(code outcrop.Code) string {
	if c, ok := dshClasses[code]; ok {
		return c
	}
	return strings.ToLower(strings.ReplaceAll(string(code), "_", "-"))
}
