package doctor

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/doctor/internal/fold"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/internal/redact"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/wire"
)

// checks looks at events one by one, beside admission.
type checks struct {
	v   *verifier
	own bool // an own session, which rewrites results between turns

	invariants outcrop.Invariants
	crossing   []crossing // turn bounds inside a compaction bracket, not judged yet

	calls         []call // of the open turn, without a result yet
	uncounted     bool   // the open turn has more calls than are followed
	late          []request
	unlike        []unlike
	redactions    []redaction
	unchecked     bool // requests whose digest was not looked at were reported
	attachments   map[string]bool
	firstUnmarked outcrop.Seq
	opened        wire.Pos // where the last turn/start stands
	bracket       *crossing
}

// How much is kept of what a log can have any number of.
const (
	maxCalls       = 4096
	maxLate        = 64 << 10
	maxAttachments = 64 << 10
)

// crossing is a turn bound inside a compaction bracket, or the start of one. It
// is no fault when the bracket is never closed: the next session/end-seed makes
// it stale.
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
	pos := c.v.source.Pos()
	if rec.Run != nil {
		c.invariant(rec, pos)
		return
	}
	e := &rec.Event
	c.v.dsh.Events.Add(e)
	if fold.Unknown(e) {
		c.v.emit(c.unknown(e, pos))
	}
	c.invariant(rec, pos)
	switch e.Type {
	case outcrop.TypeTurnStart:
		c.v.sum.Turns++
		c.calls, c.uncounted, c.opened = c.calls[:0], false, pos
	case outcrop.TypeTurnEnd:
		c.dangling()
	case outcrop.TypeAssistantMessage:
		c.asked(rec, pos)
	case outcrop.TypeToolResult:
		c.answered(rec)
	case outcrop.TypeOutcropRequest:
		c.recorded(e, pos)
	case outcrop.TypeOutcropRedacted:
		if seqs, ok := redact.Named(e); ok && len(c.redactions) < maxLate {
			c.redactions = append(c.redactions, redaction{e.Seq, seqs})
		}
	case outcrop.TypeCompactionStart:
		c.bracket = &crossing{e.Seq, pos}
	case outcrop.TypeCompactionEnd, outcrop.TypeEndSeed:
		c.bracket = nil
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
func (c *checks) invariant(e *outcrop.Record, pos wire.Pos) {
	switch {
	case e.Type == outcrop.TypeEndSeed:
		c.crossing = nil
	case len(c.crossing) > 0 && strings.HasPrefix(string(e.Type), "compaction/"):
		for _, x := range c.crossing {
			c.breach("compaction-turn-boundary", x.seq, x.pos)
		}
		c.crossing = nil
	}
	for _, x := range c.v.fold.Check(&c.invariants, e) {
		switch {
		case x.Label == "compaction-turn-boundary":
			c.crossing = append(c.crossing, crossing{x.Seq, pos})
		case x.Label == "tool-rewrite-outside-turn" && c.own:
		default:
			c.breach(x.Label, x.Seq, pos)
		}
	}
}

func (c *checks) breach(label string, seq outcrop.Seq, pos wire.Pos) {
	code := outcrop.Code(strings.ToUpper(strings.ReplaceAll(label, "-", "_")))
	c.v.warn(code, seq, pos, "optional invariant: "+strings.ReplaceAll(label, "-", " "),
		"the log can be continued; the program that wrote it has a fault")
}

// asked remembers the calls of an assistant/message and judges them.
func (c *checks) asked(e *outcrop.Record, pos wire.Pos) {
	var ids map[string]bool
	for id, block := range c.v.fold.Calls(e) {
		if ids == nil {
			ids = map[string]bool{}
		}
		name, _ := jsonwire.Text(jsonwire.Get(block, "name"))
		switch {
		case id == "" || name == "":
			c.v.warn("BAD_CALL", e.Seq, pos, "a tool call has no id or no name", "requests mend it; the log stays as it is")
		case ids[id]:
			c.v.warn("BAD_CALL", e.Seq, pos, fmt.Sprintf("two tool calls of one message have the id %q", id), "requests give the second one another id; the log stays as it is")
		}
		ids[id] = true
		if args, ok := jsonwire.Text(jsonwire.Get(block, "arguments")); ok && args != "" && (jsonwire.Kind([]byte(args)) != '{' || jsonwire.Valid([]byte(args)) != nil) {
			c.v.warn("BAD_ARGUMENTS", e.Seq, pos, fmt.Sprintf("the arguments of call %q are no JSON object: they may have been cut off", id),
				"requests have {} in their place; the log stays as it is")
		}
		if len(c.calls) < maxCalls {
			c.calls = append(c.calls, call{id, e.Seq, pos})
		} else if !c.uncounted {
			c.uncounted = true
			c.v.warn("MORE_FINDINGS", e.Seq, pos, fmt.Sprintf("the turn has more than %d calls without a result; the others are not followed", maxCalls), "")
		}
	}
}

func (c *checks) answered(e *outcrop.Record) {
	if !e.Op.IsAppend() {
		return
	}
	id := c.v.fold.Answers(e)
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

// recorded compares a recorded request digest with the log. The request was
// built from the events up to prefix; what changed a request since then is
// looked at in the end.
func (c *checks) recorded(e *outcrop.Event, pos wire.Pos) {
	digest, ok := jsonwire.Text(jsonwire.Get(e.Data, "digest"))
	prefix, whole := jsonwire.Int(jsonwire.Get(e.Data, "prefix"))
	if !ok {
		return
	}
	r := request{e.Seq, outcrop.Seq(prefix), digest, pos}
	switch f := c.v.fold; {
	case !whole || prefix < 0 || r.prefix >= e.Seq:
		c.v.warn("DIGEST_MISMATCH", e.Seq, pos, "the recorded request names no earlier event as its prefix", "")
	case c.v.firstRefused >= 0 && r.prefix >= c.v.firstRefused:
		// Behind an event that was refused, the log of this verification is not
		// what the requests were built from.
	case f.Full || len(c.late) == maxLate:
		if !c.unchecked {
			c.unchecked = true
			c.v.warn("MORE_FINDINGS", e.Seq, pos, "request digests from here on are not looked at: the surface is too large", "")
		}
	case f.Changed > r.prefix:
		c.late = append(c.late, r)
	default:
		c.compare(r, f.Digest())
	}
}

// compare keeps what does not fit: whether a redaction explains it is known when
// the log has ended.
func (c *checks) compare(r request, got string) {
	switch {
	case got == r.digest:
	case len(c.unlike) == maxLate:
		c.mismatch(unlike{r, got})
	default:
		c.unlike = append(c.unlike, unlike{r, got})
	}
}

// unlike is a request that the log does not give any more.
type unlike struct {
	request
	got string
}

// redaction is an outcrop/redacted and the events that it names.
type redaction struct {
	at   outcrop.Seq
	seqs []outcrop.Seq
}

// mismatches tells of the requests that the log does not give any more.
func (c *checks) mismatches() {
	for _, u := range c.unlike {
		explained := slices.IndexFunc(c.redactions, func(r redaction) bool { return redact.Explains(r.at, r.seqs, u.seq, u.prefix) })
		if explained < 0 {
			c.mismatch(u)
			continue
		}
		c.v.warn("REDACTED", u.seq, u.pos, fmt.Sprintf("the request that was made here cannot be made again: what it held was redacted, see event %d", c.redactions[explained].at), "")
	}
}

func (c *checks) mismatch(r unlike) {
	c.v.warn("DIGEST_MISMATCH", r.seq, r.pos, fmt.Sprintf("the log up to event %d gives another request than the one recorded: %s, recorded %s", r.prefix, r.got, r.digest),
		"the log was changed after the request, or the request was not built from it")
}

// lateRequests compares the digests of requests that were recorded after what
// they were built from had changed. The log is read again for them.
func (c *checks) lateRequests() {
	if len(c.late) == 0 {
		return
	}
	src, done, err := c.v.target.open(c.v.ctx)
	if err != nil {
		c.v.fail(err)
		return
	}
	f, err := fold.New(src.Header(), c.v.resultAgain)
	if err != nil {
		c.v.fail(err)
		return
	}
	slices.SortStableFunc(c.late, func(a, b request) int { return int(a.prefix - b.prefix) })
	for rec, err := range src.Records() {
		if err != nil || f.Next(&rec) != nil || f.Full {
			break // no prefix reaches further
		}
		for len(c.late) > 0 && c.late[0].prefix <= rec.Last() {
			c.compare(c.late[0], f.Digest())
			c.late = c.late[1:]
		}
		if c.v.ctx.Err() != nil || len(c.late) == 0 {
			break
		}
	}
	if err := done(); err != nil {
		c.v.fail(err)
	}
}

// attached looks for the attachments that a message names.
func (c *checks) attached(e *outcrop.Event, pos wire.Pos) {
	if c.v.opts.Attachment == nil || !bytes.Contains(e.Data, []byte("attachmentId")) {
		return
	}
	for id := range store.AttachmentIDs(e.Data) {
		if c.attachments[id] || len(c.attachments) == maxAttachments {
			continue
		}
		if c.attachments[id] = true; len(c.attachments) == maxAttachments {
			c.v.warn("MORE_FINDINGS", e.Seq, pos, fmt.Sprintf("the log names more than %d attachments; the others are not looked for", maxAttachments), "")
		}
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

// finish reports what can be said only at the end.
func (c *checks) finish() {
	c.lateRequests()
	c.mismatches()
	if c.bracket != nil {
		c.v.warn("COMPACTION_OPEN", c.bracket.seq, c.bracket.pos, "the log ends inside a compaction that begins here",
			"it did not come to its end and changed nothing; opening the session makes it stale")
	}
	c.v.fold.Orphans(func(seq outcrop.Seq, id string) bool {
		c.v.warn("ORPHAN_RESULT", seq, wire.Pos{}, fmt.Sprintf("the call %q, which this result on the surface answers, does not stand before it", id),
			"requests are built without the result; the log stays as it is")
		return !c.v.over
	})
}
