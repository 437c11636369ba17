package collection

import (
	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/store"
)

// record is what the catalogue keeps of one place. What a listing asks of each
// is at hand; the rest lies in the text of the file until it is needed.
type record struct {
	place string
	kept  store.Kept
	shown int64 // UpdatedAt of its entry

	text  string // the record as the file has it, "" when it is not in the file as it is
	*rest        // what it says; nil: it is in text
}

// rest is what is not asked of every record.
type rest struct {
	info store.Info
	sum  summary // the zero value: never read
}

// still reports whether the store said again what is kept.
func (r *record) still(l *store.Listed) bool {
	return r != nil && l.Stamp != "" && r.kept == store.Kept{Stamp: l.Stamp, ID: l.Info.ID, Path: l.Info.Path}
}

// renewed is the record of what a listing says now. What was read of the log of
// that session stays, so that reading goes on there.
func (r *record) renewed(l *store.Listed) *record {
	n := &record{place: l.Place, kept: store.Kept{Stamp: l.Stamp, ID: l.Info.ID, Path: l.Info.Path}, rest: &rest{info: *l.Info}}
	if r != nil && r.kept.ID == n.kept.ID && r.open() {
		n.sum = r.sum
	}
	n.changed()
	return n
}

// open makes the rest of a record known.
func (r *record) open() bool {
	if r.rest == nil {
		var rest rest
		if !r.read(&rest) {
			return false
		}
		r.rest = &rest
	}
	return true
}

// changed notes that the record is not what the file has.
func (r *record) changed() {
	var e Entry
	r.text = ""
	r.entry(&e, nil)
	r.shown = e.UpdatedAt
}

// entry puts together what a listing and the reading of the log said; false when
// the record cannot be read. buf is room to read it into.
func (r *record) entry(e *Entry, buf *rest) bool {
	of := r.rest
	if of == nil {
		if of = buf; !r.read(of) {
			return false
		}
	}
	e.Info, e.rec = of.info, r
	if r.kept.Stamp != "" && of.sum.stamp == r.kept.Stamp {
		of.sum.into(e)
	}
	return true
}

// appendTo writes a record as decoder.record reads it.
func (r *record) appendTo(e *encoder) {
	if r.text != "" {
		e.text(r.text)
		return
	}
	// The length stands before the text and is known behind it.
	from := len(e.b)
	e.record(r)
	length := encoder{}
	length.int(int64(len(e.b) - from))
	e.b = append(e.b, length.b...)
	copy(e.b[from+len(length.b):], e.b[from:])
	copy(e.b[from:], length.b)
}

// record writes what is asked of every record first.
func (e *encoder) record(r *record) {
	k, in := &r.kept, &r.info
	e.text(k.Path)
	e.part(r.place, k.Path[:min(len(r.place), len(k.Path))])
	e.part(k.ID, r.place[max(0, len(r.place)-len(k.ID)):])
	e.text(k.Stamp)
	e.int(r.shown)

	e.text(in.Title)
	e.int(in.UpdatedAt)
	e.int(in.Events)
	e.int(int64(in.Turns))
	e.int(in.Bytes)
	e.text(string(in.State))
	e.text(in.Reason)
	e.text(in.Cwd)
	e.int(in.CreatedAt)
	e.flag(in.Header.ID != "")
	if in.Header.ID != "" {
		e.header(in)
	}
	s := &r.sum
	e.part(s.stamp, k.Stamp)
	e.text(s.mark)
	if s.stamp == "" && s.mark == "" {
		return
	}
	e.text(s.failed)
	e.flag(s.unread)
	e.flag(s.torn)
	e.int(int64(s.events))
	e.int(int64(s.turns))
	e.text(s.title)
	e.flag(s.titled)
	e.int(s.updated)
	e.flag(s.openTurn)
	e.texts(s.tags)
	e.texts(s.objects)
}

func (e *encoder) header(in *store.Info) {
	h := &in.Header
	e.int(h.Version)
	e.part(h.ID, in.ID)
	e.int(h.CreatedAt)
	e.flag(h.Cwd != nil)
	if h.Cwd != nil {
		e.part(*h.Cwd, in.Cwd)
	}
	e.optText(h.ParentSession)
	e.int(h.ParentFormat)
	e.flag(h.SeedLength != nil)
	if h.SeedLength != nil {
		e.int(*h.SeedLength)
	}
	e.text(h.Origin)
	e.int(h.DelegationDepth)
	e.optText(h.AgentPreset)
	e.int(h.Outcrop)
	e.int(h.Format)
}

// record reads what is asked of every record; the text of the rest stays.
func (d *decoder) record(r *record) {
	r.text = d.text()
	in := decoder{s: r.text}
	in.head(r)
	d.bad = d.bad || in.bad
}

func (d *decoder) head(r *record) {
	k := &r.kept
	k.Path = d.text()
	r.place = d.part(k.Path, true)
	k.ID = d.part(r.place, false)
	k.Stamp = d.text()
	r.shown = d.int()
}

// read reads the rest of a record, false when its text is not one.
func (r *record) read(to *rest) bool {
	*to = rest{}
	d := &decoder{s: r.text}
	var head record
	d.head(&head)
	in := &to.info
	in.ID, in.Path = r.kept.ID, r.kept.Path
	in.Title = d.text()
	in.UpdatedAt = d.int()
	in.Events = d.int()
	in.Turns = int(d.int())
	in.Bytes = d.int()
	in.State = store.State(d.text())
	in.Reason = d.text()
	in.Cwd = d.text()
	in.CreatedAt = d.int()
	if d.flag() {
		d.header(in)
	}
	s := &to.sum
	s.stamp = d.part(r.kept.Stamp, true)
	s.mark = d.text()
	if s.stamp == "" && s.mark == "" {
		return !d.bad && d.s == ""
	}
	s.failed = d.text()
	s.unread = d.flag()
	s.torn = d.flag()
	s.events = outcrop.Seq(d.int())
	s.turns = int(d.int())
	s.title = d.text()
	s.titled = d.flag()
	s.updated = d.int()
	s.openTurn = d.flag()
	s.tags = d.texts()
	s.objects = d.texts()
	return !d.bad && d.s == ""
}

func (d *decoder) header(in *store.Info) {
	h := &in.Header
	h.Version = d.int()
	h.ID = d.part(in.ID, true)
	h.CreatedAt = d.int()
	if d.flag() {
		cwd := d.part(in.Cwd, true)
		h.Cwd = &cwd
	}
	h.ParentSession = d.optText()
	h.ParentFormat = d.int()
	if d.flag() {
		n := d.int()
		h.SeedLength = &n
	}
	h.Origin = d.text()
	h.DelegationDepth = d.int()
	h.AgentPreset = d.optText()
	h.Outcrop = d.int()
	h.Format = d.int()
}

// part is a text that another one before it often says: there it is how many
// bytes of that, else it is written out.
func (e *encoder) part(s, of string) {
	if s == of {
		e.int(int64(len(s)))
		return
	}
	e.int(-1)
	e.text(s)
}

// part reads a text that encoder.part wrote, which may be the beginning of
// another one, or its end.
func (d *decoder) part(of string, first bool) string {
	n := d.int()
	if n == -1 {
		return d.text()
	}
	switch {
	case n < 0 || n > int64(len(of)):
		d.bad, d.s = true, ""
		return ""
	case first:
		return of[:n]
	}
	return of[int64(len(of))-n:]
}
