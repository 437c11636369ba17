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

	admission string // class of the first refusal of an event
}

// read reads the file by dsh's rules. It is called before events are added.
func (d *dshJudge) read(ctx context.Context, t Target, p *Place) error {
	d.place = p.root(t.Encoding)
	if d.found = t.R != nil; !d.found || d.place != "" {
		return nil
	}
	var err error
	d.file, err = readDSHFile(ctx, t.R, t.Size, t.Encoding == wire.Zstd)
	if d.file.fatal == "" {
		d.place = p.header(d.file.header)
	}
	d.events.limit = d.file.events
	return err
}

// refusedByAdmission notes that a session cannot be built beyond an event.
func (d *dshJudge) refusedByAdmission(code outcrop.Code, seq outcrop.Seq) {
	if d.admission == "" && int64(seq) < d.file.events {
		d.admission = classOf(code)
	}
}

// verdict holds when all events have been added. The order is dsh's: the file,
// its place, the events one pass after the other, the header, the session.
func (d *dshJudge) verdict() (Verdict, string) {
	absent := ""
	if !d.found {
		absent = "not-found"
	}
	for _, class := range [...]string{d.file.fatal, d.place, absent, d.events.class(), d.file.header.late, d.admission} {
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
