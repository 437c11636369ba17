package wire

import (
	"errors"
	"fmt"
	"iter"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
)

// Lines decodes records that a store keeps one by one, each as the line that a
// log file would have, and reads old shapes as Reader does. It is for one
// goroutine and one log, whose lines it gets in order.
type Lines struct {
	up upgrader
}

// NewLines begins the log of a session. results yields the seq and the data of
// the log's tool/result events before a seq; it is asked at most once, by a log
// that mixes shapes.
func NewLines(session string, results func(before outcrop.Seq) iter.Seq2[outcrop.Seq, []byte]) *Lines {
	l := &Lines{up: upgrader{session: session}}
	l.up.ids = func(before outcrop.Seq) map[outcrop.Seq]string {
		ids := map[outcrop.Seq]string{}
		for seq, data := range results(before) {
			if hasMessage(data) {
				ids[seq] = resultID(data)
			}
		}
		return ids
	}
	return l
}

// Record decodes a line without its newline. The record shares its memory,
// which must not change. The errors are *outcrop.Error without a place.
func (l *Lines) Record(line []byte) (outcrop.Record, error) {
	var d decoded
	d.decode(line, len(line) > MaxLine)
	switch d.what {
	case isBlank:
		return outcrop.Record{}, badLine(line, errors.New("the record is empty"))
	case isTooLong:
		return outcrop.Record{}, damage("RECORD_TOO_BIG", fmt.Sprintf("the record has %d bytes, the limit is %d", len(line), MaxLine))
	case isTooDeep:
		return outcrop.Record{}, damage("RECORD_TOO_BIG", fmt.Sprintf("the record is nested deeper than %d levels", jsonwire.MaxReadDepth))
	case isBad:
		return outcrop.Record{}, badLine(line, d.err)
	}
	if d.rec.Run == nil && l.up.wants(d.rec.Type) {
		e, bad := l.up.upgrade(d.rec.Event)
		if bad != nil {
			bad.Seq = d.rec.Seq
			return d.rec, bad
		}
		d.rec.Event = e
	}
	return d.rec, nil
}
