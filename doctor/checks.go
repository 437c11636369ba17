package doctor

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/wire"
)

// checks looks at events one by one, beside admission.
type checks struct {
	v   *verifier
	own bool // an own session, which rewrites results between turns

	invariants outcrop.Invariants
	crossing   []crossing // turn bounds inside a compaction bracket, not judged yet

	calls         []call // of the open turn, without a result yet
	requests      []request
	attachments   map[string]bool
	firstUnmarked outcrop.Seq
	opened        wire.Pos // where the last turn/start stands
}

// crossing is a turn bound inside a compaction bracket. It is no fault when the
// bracket is never closed: the next session/end-seed makes it stale.
type crossing struct {
	seq outcrop.Seq
	pos wire.Pos
}

type call struct {
	id  string
	seq outcrop.Seq
	pos wire.Pos
}

// request is one recorded request digest.
type request struct {
	seq, prefix outcrop.Seq
	digest      string
	pos         wire.Pos
}

func newChecks(v *verifier, h outcrop.Header) checks {
	return checks{v: v, own: !h.Compatible(), attachments: map[string]bool{}, firstUnmarked: -1}
}

// add looks at the next record.
func (c *checks) add(rec *outcrop.Record) {
	pos := c.v.reader.Pos()
	if rec.Run != nil {
		// All members of a run have the same turn and step, so one stands for
		// all of them.
		c.invariant(rec.Run.At(0), pos)
		return
	}
	e := &rec.Event
	c.v.dsh.events.add(e)
	// An event without a type, and removed types, are refused by admission.
	named := e.Type != "" || jsonwire.Kind(jsonwire.Get(e.Line(), "type")) == '"'
	if named && !e.Type.Known() && !e.Ignorable && e.Type != "mode/set" && e.Type != "request/header-delta" {
		c.v.emit(c.unknown(e, pos))
	}
	c.invariant(*e, pos)
	switch e.Type {
	case outcrop.TypeTurnStart:
		c.v.sum.Turns++
		c.calls, c.opened = c.calls[:0], pos
	case outcrop.TypeTurnEnd:
		c.dangling()
	case outcrop.TypeAssistantMessage:
		c.asked(e, pos)
	case outcrop.TypeToolResult:
		c.answered(e)
	case outcrop.TypeOutcropRequest:
		c.recorded(e, pos)
	}
	if e.Type.Surface() {
		if e.Op.IsZero() && c.firstUnmarked < 0 {
			c.firstUnmarked = e.Seq
		}
		c.attached(e, pos)
	}
}

func (c *checks) unknown(e *outcrop.Event, pos wire.Pos) Finding {
	f := Finding{
		Code: "TYPE_UNKNOWN", Severity: SeverityError, Seq: e.Seq, TextOffset: -1,
		Message: fmt.Sprintf("type %q is unknown and not marked ignorable", string(e.Type)),
		Hint:    "the log was written by a newer program; use that one to go on",
	}
	c.v.place(&f, pos)
	return f
}

// invariant reports breaches of the optional invariants. The event is in the
// log whatever they say, so it counts as seen: one fault is reported once.
func (c *checks) invariant(e outcrop.Event, pos wire.Pos) {
	switch {
	case e.Type == outcrop.TypeEndSeed:
		c.crossing = nil
	case len(c.crossing) > 0 && strings.HasPrefix(string(e.Type), "compaction/"):
		for _, x := range c.crossing {
			c.breach("compaction-turn-boundary", x.seq, x.pos)
		}
		c.crossing = nil
	}
	found := c.invariants.Check(e)
	for _, x := range found {
		switch {
		case x.Label == "compaction-turn-boundary":
			c.crossing = append(c.crossing, crossing{x.Seq, pos})
		case x.Label == "tool-rewrite-outside-turn" && c.own:
		default:
			c.breach(x.Label, x.Seq, pos)
		}
	}
	if found != nil {
		c.invariants.Apply(e)
	}
}

func (c *checks) breach(label string, seq outcrop.Seq, pos wire.Pos) {
	code := outcrop.Code(strings.ToUpper(strings.ReplaceAll(label, "-", "_")))
	c.v.warn(code, seq, pos, "optional invariant: "+strings.ReplaceAll(label, "-", " "),
		"the log can be continued; the program that wrote it has a fault")
}

// asked remembers the calls of an assistant/message.
func (c *checks) asked(e *outcrop.Event, pos wire.Pos) {
	for b := range jsonwire.Elements(jsonwire.Get(jsonwire.Get(e.Data, "message"), "content")) {
		if !jsonwire.TextIs(jsonwire.Get(b, "type"), "tool-call") {
			continue
		}
		id, _ := jsonwire.Text(jsonwire.Get(b, "id"))
		c.calls = append(c.calls, call{id, e.Seq, pos})
	}
}

func (c *checks) answered(e *outcrop.Event) {
	if !e.Op.IsAppend() {
		return
	}
	id, _ := jsonwire.Text(jsonwire.Get(jsonwire.Get(jsonwire.Get(e.Data, "message"), "source"), "callId"))
	if i := slices.IndexFunc(c.calls, func(x call) bool { return x.id == id }); i >= 0 {
		c.calls = slices.Delete(c.calls, i, i+1)
	}
}

// dangling reports the calls that a turn leaves without a result.
func (c *checks) dangling() {
	for _, x := range c.calls {
		c.v.warn("DANGLING_CALL", x.seq, x.pos, fmt.Sprintf("call %q has no result in its turn", x.id),
			"requests supply one; the log stays as it is")
	}
	c.calls = c.calls[:0]
}

// recorded remembers a request digest for the end.
func (c *checks) recorded(e *outcrop.Event, pos wire.Pos) {
	digest, ok := jsonwire.Text(jsonwire.Get(e.Data, "digest"))
	prefix, whole := jsonwire.Int(jsonwire.Get(e.Data, "prefix"))
	if !ok {
		return
	}
	if !whole || prefix < 0 || outcrop.Seq(prefix) >= e.Seq {
		c.v.warn("DIGEST_MISMATCH", e.Seq, pos, "the recorded request names no earlier event as its prefix", "")
		return
	}
	c.requests = append(c.requests, request{e.Seq, outcrop.Seq(prefix), digest, pos})
}

// attached looks for the attachments that a message names.
func (c *checks) attached(e *outcrop.Event, pos wire.Pos) {
	if c.v.opts.Attachment == nil || !bytes.Contains(e.Data, []byte("attachmentId")) {
		return
	}
	for id := range attachmentIDs(e.Data) {
		if c.attachments[id] {
			continue
		}
		c.attachments[id] = true
		there, err := c.v.opts.Attachment(c.v.ctx, id)
		switch {
		case err != nil:
			c.v.warn("ATTACHMENT_MISSING", e.Seq, pos, fmt.Sprintf("attachment %s cannot be read: %v", id, err), "")
		case !there:
			c.v.warn("ATTACHMENT_MISSING", e.Seq, pos, fmt.Sprintf("attachment %s is missing", id),
				"requests have a placeholder in its place")
		}
	}
}

// attachmentIDs yields the string members called attachmentId, at any depth.
func attachmentIDs(v []byte) func(func(string) bool) {
	return func(yield func(string) bool) {
		const name = `"attachmentId"`
		for {
			i := bytes.Index(v, []byte(name))
			if i < 0 {
				return
			}
			v = v[i+len(name):]
			at := jsonwire.Space(v, 0)
			if at >= len(v) || v[at] != ':' {
				continue
			}
			at = jsonwire.Space(v, at+1)
			id, ok := jsonwire.Text(v[at:])
			if ok && !yield(id) {
				return
			}
		}
	}
}

// finish reports what can be said only at the end.
func (c *checks) finish(log outcrop.Log) {
	// Behind an event that was refused, the log of this verification is not
	// what the requests were built from.
	for seq := range c.v.neutral {
		c.requests = slices.DeleteFunc(c.requests, func(r request) bool { return r.prefix >= seq })
	}
	for _, r := range wrongDigests(log, c.requests) {
		c.v.warn("DIGEST_MISMATCH", r.seq, r.pos, fmt.Sprintf("the log up to event %d gives another request than the one recorded: %s, recorded %s", r.prefix, r.got, r.digest),
			"the log was changed after the request, or the request was not built from it")
	}
}
