package collection

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/jsonl"
)

// summary is what the reading of a whole log told.
type summary struct {
	stamp  string // of what was read; "" when it may not be used without reading on
	mark   string // where reading goes on, see store.Marked; "": at the beginning
	failed string // why the log could not be read to its end
	torn   bool
	unread bool // it could not even be opened: nothing else is known

	events   outcrop.Seq
	turns    int
	title    string
	titled   bool
	updated  int64
	openTurn bool
	tags     []string
	objects  []string
}

// into puts the summary into an entry of a listing.
func (s *summary) into(e *Entry) {
	e.Whole = true
	if s.unread {
		return
	}
	e.Tags, e.Objects = s.tags, s.objects
	e.Events, e.Turns, e.Title = int64(s.events), s.turns, s.title
	if s.updated > 0 {
		e.UpdatedAt = s.updated
	}
	switch e.State {
	case store.StateDamaged, store.StateNewer:
		return
	case store.StateOK, store.StateOpenTurn:
		e.State, e.Reason = store.StateOK, ""
		if s.openTurn {
			e.State, e.Reason = store.StateOpenTurn, "the last turn was not closed"
		}
	}
	switch {
	case s.failed != "":
		e.State, e.Reason = store.StateDamaged, s.failed
	case e.State == store.StateLocked:
	default:
		if s.torn {
			e.also("the tail is torn")
		}
		if e.Header.Format > 0 {
			e.also(jsonl.LaterReason(int(e.Header.Format)))
		}
	}
}

// also adds to the reason of an entry.
func (e *Entry) also(reason string) {
	if e.Reason != "" {
		e.Reason += "; "
	}
	e.Reason += reason
}

// reader folds a log into a summary.
type reader struct {
	sum     store.Summary
	tags    map[string]bool
	objects map[string]bool
}

func newReader(s *summary) *reader {
	r := &reader{tags: map[string]bool{}, objects: map[string]bool{}}
	r.sum = store.Summary{Events: s.events, Turns: s.turns, Title: s.title, Updated: s.updated, OpenTurn: s.openTurn}
	r.sum.SetTitled(s.titled)
	for _, t := range s.tags {
		r.tags[t] = true
	}
	for _, o := range s.objects {
		r.objects[o] = true
	}
	return r
}

const (
	longestTag  = 200
	mostTags    = 200
	mostObjects = 100_000
	longestID   = 128
)

func (r *reader) add(rec outcrop.Record) {
	r.sum.Add(rec)
	if rec.Run != nil {
		return
	}
	for id := range store.AttachmentIDs(rec.Data) {
		if len(id) <= longestID && len(r.objects) < mostObjects {
			r.objects[strings.Clone(id)] = true
		}
	}
	if rec.Type == outcrop.TypeOutcropTag {
		if tag, set, ok := ParseTag(rec.Data); ok {
			if !set {
				delete(r.tags, tag)
			} else if len(r.tags) < mostTags {
				r.tags[tag] = true
			}
		}
	}
}

// ParseTag reads the data of an outcrop/tag.
func ParseTag(data []byte) (tag string, set, ok bool) {
	tag, ok = jsonwire.Text(jsonwire.Get(data, "tag"))
	set = string(jsonwire.Get(data, "set")) == "true"
	return tag, set, ok && tag != "" && len(tag) <= longestTag
}

// Tags are the tags that a log has.
func Tags(log outcrop.Log) []string {
	r := newReader(&summary{})
	for rec := range log.Records(0) {
		if rec.Run == nil && rec.Type == outcrop.TypeOutcropTag {
			r.add(rec)
		}
	}
	return sorted(r.tags)
}

func (r *reader) into(s *summary) {
	s.events, s.turns, s.title, s.titled = r.sum.Events, r.sum.Turns, strings.Clone(r.sum.Title), r.sum.Titled()
	s.updated, s.openTurn = r.sum.Updated, r.sum.OpenTurn
	s.tags, s.objects = sorted(r.tags), sorted(r.objects)
}

func sorted(m map[string]bool) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// Learn reads the whole log of an entry, or what came since it was read, and
// brings the entry up to it. A log that cannot be read to its end is an entry
// that says so, and no error.
func (c *Collection) Learn(ctx context.Context, e *Entry) error {
	if e.Whole || e.ID == "" || e.rec == nil {
		return nil
	}
	rec := e.rec
	if !rec.open() {
		return nil // what List took was read
	}
	sum, ok := c.readOn(ctx, rec)
	if !ok {
		sum = c.readAll(ctx, rec)
	}
	if err := context.Cause(ctx); err != nil {
		return err
	}
	// Of a log that somebody writes a little more is read the next time: the
	// catalogue is not written anew for every listing.
	c.dirty = c.dirty || rec.kept.Stamp != "" || sum.mark != "" && sum.events-rec.sum.events > mostReadAgain
	rec.sum = sum
	rec.changed()
	fresh := Entry{Info: rec.info, rec: rec}
	rec.sum.into(&fresh)
	*e = fresh
	return nil
}

// mostReadAgain is how many events of a log in use are read again rather than
// kept.
const mostReadAgain = 500

// readOn reads through store.Follower, which can go on later. It is for logs in
// good order: what it cannot answer for is left to readAll.
func (c *Collection) readOn(ctx context.Context, rec *record) (summary, bool) {
	in := &rec.info
	f, ok := c.st.(store.Follower)
	if !ok || in.Events < 0 || in.State == store.StateDamaged || in.State == store.StateNewer ||
		in.State == store.StateOK && in.Reason != "" || in.State == store.StateOpenTurn && strings.Contains(in.Reason, "; ") {
		return summary{}, false // a torn tail has a reason of its own
	}
	log, err := f.Follow(ctx, in.ID)
	if err != nil {
		return summary{}, false
	}
	defer log.Close()
	sum := summary{}
	marked, canMark := log.(store.Marked)
	if canMark && rec.sum.mark != "" && marked.Resume(rec.sum.mark) {
		sum = rec.sum
	}
	r := newReader(&sum)
	for rec, err := range log.Next(ctx) {
		if err != nil {
			return summary{}, false
		}
		r.add(rec)
	}
	r.into(&sum)
	if t, ok := log.(interface{ Torn() bool }); ok && t.Torn() {
		return summary{}, false // a reader recovers more of it
	}
	if int64(sum.events) != in.Events && (in.State != store.StateLocked || int64(sum.events) < in.Events) {
		return summary{}, false
	}
	sum.stamp, sum.mark = rec.kept.Stamp, ""
	if canMark {
		sum.mark = marked.Mark()
	}
	return sum, true
}

// readAll reads a log as every reader does.
func (c *Collection) readAll(ctx context.Context, rec *record) (sum summary) {
	sum.stamp = rec.kept.Stamp
	r := newReader(&sum)
	sd, err := c.st.Read(ctx, rec.info.ID)
	if err != nil {
		sum.unread = true
		return sum
	}
	defer sd.Close()
	for rec, err := range sd.Records() {
		if err != nil {
			sum.failed = Reason(err)
			break
		}
		if r.add(rec); ctx.Err() != nil {
			break
		}
	}
	r.into(&sum)
	sum.torn = sum.failed == "" && sd.Tail().Torn
	return sum
}

// Reason is an error about a log without its place, as listings show it.
func Reason(err error) string {
	var e *outcrop.Error
	if !errors.As(err, &e) || e.Msg == "" {
		return err.Error()
	}
	if e.Code != "" {
		return fmt.Sprintf("%s (%s)", e.Msg, e.Code)
	}
	return e.Msg
}
