package outcrop

import (
	"strconv"

	"github.com/outcrop-dev/outcrop/internal/jsonwire"
)

// origin says where a candidate comes from; it decides which rules apply.
type origin uint8

const (
	fromAppend  origin = iota // live: what a writer may write
	fromSeed                  // copied events: lossless JSON
	fromStore                 // stored events: bytes are trusted to be JSON, unknown types are refused
	fromReading               // looked at only: unknown types pass
)

// MaxRecord is the longest line of an event, in bytes. A stored log with a
// longer one could not be continued, so none is accepted.
const MaxRecord = 256 << 20

// admit judges everything about a candidate that does not depend on the
// surface, in the order that docs/format.md lists: lossless JSON, legacy
// names, envelope, shape of request headers, shape of messages, seq.
func (s *Session) admit(ev *Event, from origin, want Seq, info *msgInfo) *Error {
	if len(ev.line) > MaxRecord {
		return refuse("RECORD_TOO_BIG", want, "the event has "+itoa(int64(len(ev.line)))+" bytes, no log holds one of more than "+itoa(MaxRecord))
	}
	if from == fromSeed {
		if err := jsonwire.Lossless(ev.Data); err != nil {
			return refuse("NOT_LOSSLESS", want, "data would not survive a JavaScript reader: "+err.Error())
		}
	}
	cls := ev.class()
	switch cls {
	case classLegacy:
		if ev.Type == "mode/set" {
			if from != fromSeed {
				return refuse("LEGACY_MODE_SET", want, "type mode/set is of a retired format")
			}
		} else {
			return refuse("LEGACY_HEADER_DELTA", want, "type "+string(ev.Type)+" is of a retired format")
		}
	case classRow:
		return refuse("TYPE_IS_ROW", want, "type "+string(ev.Type)+" is the name of a storage row, no event can have it")
	}
	if from == fromStore && cls == classUnknown && !ev.Ignorable {
		e := refuse("TYPE_UNKNOWN", want, "type "+strconv.Quote(string(ev.Type))+" is unknown and not ignorable")
		e.Err, e.Hint = ErrUnsupported, "the log was written by a newer program; use that one"
		return e
	}
	if ev.bad != envGood {
		return refuse("ENVELOPE", want, "event out of contract: "+ev.bad.String())
	}
	if ev.Time > jsonwire.MaxSafe || ev.Time < -jsonwire.MaxSafe {
		return refuse("ENVELOPE", want, "event out of contract: time is not a safe integer")
	}
	if ev.Data == nil {
		return refuse("ENVELOPE", want, "event out of contract: "+envData.String())
	}
	switch {
	case ev.Type == TypeRequestHeader:
		if code, msg := checkRequestHeader(ev.Data); code != "" {
			return refuse(code, want, msg)
		}
	case cls.surface():
		if cls == classContext && from == fromAppend && s.header.Compatible() {
			return refuse("CONTEXT_IN_COMPATIBLE", want, "a session that dsh must be able to read cannot hold context/message")
		}
		if code, msg := checkMessage(cls, ev.Data, info); code != "" {
			return refuse(code, want, msg)
		}
	case cls == classUnknown && !ev.Ignorable:
		if from == fromAppend {
			return refuse("TYPE_UNKNOWN", want, "type "+strconv.Quote(string(ev.Type))+" is unknown: a log may hold it only as ignorable")
		}
	case from == fromAppend:
		if code, msg := checkBoundary(ev); code != "" {
			return refuse(code, want, msg)
		}
	}
	if ev.Seq != want || ev.state&seqUnknown != 0 {
		return seqGap(ev.Seq, want)
	}
	return nil
}

// checkBoundary refuses live turn bounds in a shape that a reader would take
// for one of an old format.
func checkBoundary(ev *Event) (Code, string) {
	switch ev.Type {
	case TypeTurnStart:
		if lastMember(ev.Data, "trigger") != nil {
			return "LEGACY_TURN_START", "turn/start has no trigger in this format"
		}
	case TypeTurnEnd:
		turn, ok := jsonwire.Int(lastMember(ev.Data, "turn"))
		n := 0
		for range jsonwire.Members(ev.Data) {
			n++
		}
		reason := lastMember(ev.Data, "reason")
		kind, isText := jsonwire.Text(lastMember(reason, "kind"))
		members := 0
		for range jsonwire.Members(reason) {
			members++
		}
		bad := !ok || turn < 1 || n != 2 || !isText
		switch kind {
		case "completed", "blocked", "max-tokens", "interrupted":
			bad = bad || members != 1
		case "aborted":
			bad = bad || members != 2 || jsonwire.Kind(lastMember(reason, "reason")) != '{'
		case "error":
			bad = bad || members != 2 || jsonwire.Kind(lastMember(reason, "error")) != '{'
		}
		if bad {
			return "LEGACY_TURN_END", "turn/end needs a turn from 1 on and a reason of this format"
		}
	}
	return "", ""
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }
