// Package lines writes a session as JSON lines: the header, then one line for
// each record, as session format version 0 has them (docs/format.md).
//
// Raw, the text is what the store holds, to the byte, blank lines and CRLF
// included; a store that keeps no text gives the lines that it would have, and so
// does a log of a later format of dsh, which comes as it is read.
// Masked, lines in which nothing was found are as they are stored, and the
// others have other strings in data; everything else of a line stays. A masked
// log can be read and looked at like any other, but its recorded digests of
// requests do not fit it, so it is no session to go on with.
package lines

import (
	"bufio"
	"context"
	"errors"
	"io"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/exchange/masking"
	"github.com/outcrop-dev/outcrop/exchange/transcript"
	"github.com/outcrop-dev/outcrop/internal/records"
	"github.com/outcrop-dev/outcrop/store"
)

// Options: the zero value writes the whole log, masked.
type Options struct {
	Raw    bool
	Before outcrop.Seq // events from this seq on are left out; 0 leaves out none
}

// Report says what was written.
type Report struct {
	Header outcrop.Header
	Events int // -1 when the text was copied and not counted
	Masked int // places
	Tail   store.Tail
	Damage error // why the log could not be read to its end
}

// Write writes a session. The error is one of opening, of w or of ctx; what is
// damaged in the log ends the text and is in the report.
func Write(ctx context.Context, w io.Writer, src transcript.Source, o Options) (Report, error) {
	sd, err := src.Open(ctx)
	if err != nil {
		return Report{}, err
	}
	defer sd.Close()
	out := bufio.NewWriterSize(w, 64<<10)
	rep := Report{Header: sd.Header(), Events: -1}
	if o.Raw && o.Before == 0 && sd.Header().Format == outcrop.FormatVersion {
		if rep.Damage, err = records.WriteText(ctx, out, sd); err != nil {
			return rep, err
		}
		rep.Tail = sd.Tail()
		return rep, out.Flush()
	}
	m := masking.Masker{Raw: o.Raw}
	rep.Events = 0
	line := append(m.Header(sd.Header()).Line(), '\n')
	if _, err := out.Write(line); err != nil {
		return rep, err
	}
	for r, err := range m.Log(records.Through(ctx, sd.Records(), o.Before-1)) {
		if err != nil {
			if ctx.Err() != nil {
				return rep, context.Cause(ctx)
			}
			if outcrop.CodeOf(err) != "RECORD_TOO_BIG" {
				rep.Damage = errors.Join(rep.Damage, store.Located(err, sd))
				break
			}
			rep.Damage = errors.Join(rep.Damage, store.Located(err, sd))
			continue
		}
		if r.Run != nil && o.Before > 0 && r.Run.Last() >= o.Before {
			head := r.Run.Head(int(o.Before - r.Run.First))
			r = outcrop.RunRecord(&head)
		}
		if r.Run != nil {
			line = r.Run.AppendLine(line[:0])
		} else {
			line = r.AppendJSON(line[:0])
		}
		if _, err := out.Write(append(line, '\n')); err != nil {
			return rep, err
		}
		rep.Events = int(r.Last()) + 1
	}
	rep.Masked = m.Found
	if o.Before == 0 {
		rep.Tail = sd.Tail()
	}
	return rep, out.Flush()
}
