// Package dsh says what dsh 0.1 would do with a log file. Its rules differ from
// ours where a file is odd, so that such a file is read by them beside the
// reading by ours: lines and frames in lines.go and file.go, its checks of events
// in events.go. Of a file that is not odd, header and frames are looked at; its
// lines are the same for both.
package dsh

import (
	"context"
	"io"
	"strings"

	"github.com/outcrop-dev/outcrop"
)

// What dsh does with a file.
const (
	OK      = "ok"      // reads all of it
	Cut     = "cut"     // drops a torn tail and reads the rest
	Refused = "refused" // does not open it
)

// Judge collects what dsh's verdict depends on. The zero value judges an
// absent file. Its methods but Start's work are for one goroutine.
type Judge struct {
	Events Events

	found bool
	place string // class of what is wrong with the place of the file
	file  file

	admission fault // the first refusal of an event

	stop  context.CancelFunc
	sound chan int64 // how many events a sound file has; closed: it is not sound
	told  bool       // whether it is sound has been said
	done  chan error // has the error of reading when the file was read
}

// Start begins to read a file by dsh's rules; r nil: there is no file. root is
// the class of what is wrong with the root that the file lies in, or "", and
// place judges whether a header belongs where it lies. Lines are read only when
// the file is not sound. Wait must be called.
func (d *Judge) Start(ctx context.Context, r io.ReaderAt, size int64, compressed bool, root string, place func(Header) string) {
	d.place = root
	if d.found = r != nil; !d.found || root != "" {
		return
	}
	ctx, d.stop = context.WithCancel(ctx)
	d.done, d.sound = make(chan error, 1), make(chan int64, 1)
	go func() {
		file, err := readFile(ctx, r, size, compressed, d.sound)
		if d.file = file; file.fatal == "" {
			d.place = place(file.header)
		}
		d.done <- err
	}()
}

// Sound says that package wire has read the whole file and that each line is a
// record in its place, up to a clean end: as many events as given. dsh reads
// such lines and frames as it does.
func (d *Judge) Sound(events int64) {
	if d.done != nil && !d.told {
		d.told = true
		d.sound <- events
	}
}

// Doubt says that the file is not sound. The reading by dsh's rules begins.
func (d *Judge) Doubt() {
	if d.done != nil && !d.told {
		d.told = true
		close(d.sound)
	}
}

// Wait waits until the file was read, and returns the error of that. With cut
// it is not read to its end: nobody wants the verdict. A file of which nothing
// was said is not sound.
func (d *Judge) Wait(cut bool) error {
	if d.done == nil {
		return nil
	}
	if cut {
		d.stop()
	} else {
		d.Doubt()
	}
	err := <-d.done
	d.stop()
	d.done = nil
	return err
}

// HeaderLine is the file's first line, when it could be read; after Wait.
func (d *Judge) HeaderLine() []byte { return d.file.headerLine }

// RefusedByAdmission notes that a session cannot be built beyond an event.
func (d *Judge) RefusedByAdmission(code outcrop.Code, seq outcrop.Seq) {
	d.admission.first(classOf(code), seq)
}

// Verdict is what dsh does, and the class of its refusal. It holds when all
// events have been added and Wait has returned. The order is dsh's: the file,
// its place, the events one pass after the other, the header, the session.
func (d *Judge) Verdict() (verdict, class string) {
	absent := ""
	if !d.found {
		absent = "not-found"
	}
	n := d.file.events
	for _, class := range [...]string{d.file.fatal, d.place, absent, d.Events.class(n), d.file.header.late, d.admission.within(n)} {
		if class != "" {
			return Refused, class
		}
	}
	if d.file.cut >= 0 {
		return Cut, ""
	}
	return OK, ""
}

// classes are the codes whose class is not the code itself in lower case
// with dashes.
var classes = map[outcrop.Code]string{
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
	if c, ok := classes[code]; ok {
		return c
	}
	return strings.ToLower(strings.ReplaceAll(string(code), "_", "-"))
}
