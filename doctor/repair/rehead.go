package repair

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/doctor/internal/fold"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/store/jsonl"
	"github.com/outcrop-dev/outcrop/wire"
	"github.com/outcrop-dev/outcrop/wire/formats"
)

// A header is the first line of a log, or what is left of it. Made anew it has
// what can still be read of the old one, what the repair was told, and the time
// of the first event; what the session was forked from, its depth and its preset
// are lost with it.

// header takes the first line. rest is what of it is no header.
func (m *mender) header(l salvaged) (rest []byte, err error) {
	text := bytes.TrimLeft(l.text, "\x00")
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
	h, headErr := outcrop.ParseHeader(text)
	if headErr != nil {
		// The first event may be glued to it.
		if end, err := jsonwire.Value(text, 0); err == nil && jsonwire.Space(text, end) < len(text) {
			if glued, err := outcrop.ParseHeader(text[:end]); err == nil {
				m.change(at("GLUED", -1, l.pos, "the header and the first event stand on one line and get one each"))
				return text[end:], m.begin(glued, text[:end])
			}
		}
	}
	switch {
	case headErr == nil && l.size <= wire.MaxHeader:
		return nil, m.found(h, text, l)
	case errors.Is(headErr, outcrop.ErrUnsupported):
		if n, ok := formats.FormatOf(l.text); ok && n > 0 && n <= formats.Newest {
			return nil, notRepairable(jsonl.CodeLaterFormat, fmt.Sprintf("the log is in format %d of dsh, which is read and never written", n), "outcrop fork --at SEQ takes what is good of it into a new session")
		}
		return nil, notRepairable(outcrop.CodeOf(headErr), reason(headErr), "use a program that knows the format")
	case outcrop.CodeOf(headErr) == "HEADER_RETIRED":
		return nil, notRepairable("HEADER_RETIRED", reason(headErr), "the log is from before this format")
	}
	c := at("HEADER_REBUILT", -1, l.pos, "")
	first, err := wire.NewLines("", nil).Record(text)
	missing := err == nil && first.Seq == 0
	if missing {
		c.Message = "the log has no header; it gets one"
	} else {
		c.Message, c.Bytes = "the header cannot be read ("+reason(headErr)+"); it is made anew", int64(len(l.text))
	}
	made := m.plan.Header
	if m.out == nil {
		m.plan.rebuilt = true
		if made, err = m.rebuilt(text, &c); err != nil {
			return nil, err
		}
	}
	m.change(c)
	if err := m.begin(made, made.Line()); err != nil {
		return nil, err
	}
	if missing {
		return text, nil
	}
	return nil, m.remove(l.text)
}

// found takes a header that can be read.
func (m *mender) found(h outcrop.Header, line []byte, l salvaged) error {
	o := &m.plan.opts
	switch {
	case o.ID != "" && h.ID != "" && o.ID != h.ID:
		return notRepairable("HEADER_ID", "the header names session "+strconv.Quote(h.ID), "an id is given only to a log that has none")
	case h.ID == "" && o.ID != "":
		with := []byte{'{'}
		for k, v := range jsonwire.Members(line) {
			if jsonwire.KeyIs(k, "id") {
				v = jsonwire.AppendString(nil, o.ID)
			}
			with = jsonwire.AppendRawMember(with, jsonwire.Key(k), v)
		}
		with = append(with, '}')
		if named, err := outcrop.ParseHeader(with); err == nil && named.ID == o.ID {
			h, line = named, with
			m.change(at("HEADER_REBUILT", -1, l.pos, "the session gets the id "+strconv.Quote(o.ID)))
		}
	}
	if n := len(l.text) - len(line); n > 0 && bytes.HasSuffix(l.text, line) {
		c := at("HEADER_REBUILT", -1, l.pos, "what stands before the header is left out")
		c.Bytes = int64(n)
		m.change(c)
	}
	if !l.newline {
		m.change(at("NEWLINE_MISSING", -1, l.pos, "the header is whole but for its newline, which is added"))
	}
	if m.t.Encoding == wire.Zstd {
		if _, err := wire.NewReader(m.t.R, m.t.Size, m.t.Encoding); outcrop.CodeOf(err) == "FRAME_HEADER" {
			m.change(at("FRAME_HEADER", -1, l.pos, "the header gets a frame of its own"))
		}
	}
	if m.out == nil {
		m.plan.Header = h
	}
	return m.begin(h, bytes.Clone(line))
}

// begin begins the log with its header.
func (m *mender) begin(h outcrop.Header, line []byte) (err error) {
	if m.headed = true; m.fold == nil {
		known := h
		known.CreatedAt = max(h.CreatedAt, 0)
		if m.fold, err = fold.New(known, m.result); err != nil {
			return err
		}
		m.lines = wire.NewLines(h.ID, m.resultsBefore)
	}
	if m.out == nil {
		m.plan.Header = h
		return nil
	}
	return m.out.line(line)
}

// rebuilt is a header of what is known.
func (m *mender) rebuilt(old []byte, c *Change) (outcrop.Header, error) {
	o := &m.plan.opts
	text := func(name string) *string {
		if s, ok := jsonwire.Text(memberOf(old, name)); ok {
			return &s
		}
		return nil
	}
	number := func(name string) *int64 {
		if n, ok := jsonwire.Int(memberOf(old, name)); ok && n >= 0 {
			return &n
		}
		return nil
	}
	h := outcrop.Header{CreatedAt: -1, Cwd: text("cwd"), ParentSession: text("parentSession"), SeedLength: number("seedLength"), AgentPreset: text("agentPreset")}
	switch id := text("id"); {
	case id != nil && *id != "":
		h.ID = *id
	case o.ID != "":
		h.ID = o.ID
	case o.Place != nil:
		h.ID = o.Place.ID
	}
	if n := number("createdAt"); n != nil {
		h.CreatedAt = *n
	}
	if n := number("delegationDepth"); n != nil {
		h.DelegationDepth = *n
	}
	if s := text("origin"); s != nil && *s == "subagent" {
		h.Origin = *s
	}
	if n := number("outcrop"); n != nil {
		h.Outcrop = *n
	}
	if h.Cwd == nil && o.Cwd != "" {
		h.Cwd = &o.Cwd
	}
	c.Message += "; what the session was forked from, its depth and its preset are lost unless they stand in what is left of the old one"
	if h.Cwd == nil {
		c.Message += "; its working directory is not known"
	}
	check := h
	check.CreatedAt = max(h.CreatedAt, 0)
	if _, err := outcrop.ParseHeader(check.Line()); err != nil {
		return h, notRepairable(outcrop.CodeOf(err), "no header can be made of what is known: "+reason(err), "give --id and --cwd")
	}
	return h, nil
}

// finishHeader completes a header that was made anew, when the events are known.
func (m *mender) finishHeader() error {
	r := m.plan
	if !r.rebuilt {
		return nil
	}
	h := &r.Header
	if m.next == 0 {
		return notRepairable("FILE_NO_HEADER", "the file has no header and no first event: no session can be found in it", "take the file from a backup")
	}
	if h.ID == "" {
		return notRepairable("HEADER_ID", "the header is lost, and with it the session's id", "give the id with --id")
	}
	if h.CreatedAt < 0 {
		h.CreatedAt = max(*m.first, 0)
	}
	if m.own {
		h.Outcrop = max(h.Outcrop, 1)
	}
	p := r.opts.Place
	if p == nil {
		return nil
	}
	project := "_no-cwd"
	if h.Cwd != nil {
		project = jsonl.ProjectKey(*h.Cwd)
	}
	if project != p.Project {
		return notRepairable("HEADER_CWD", "the header is lost, and with it the working directory; the session lies in the folder "+p.Project, "give the directory with --cwd")
	}
	return nil
}

// memberOf finds a member of a header line, also of one that is torn.
func memberOf(line []byte, name string) []byte {
	if jsonwire.Valid(line) == nil {
		return jsonwire.Get(line, name)
	}
	i := bytes.Index(line, []byte(`"`+name+`":`))
	if i < 0 {
		return nil
	}
	i += len(name) + 3
	end, err := jsonwire.Value(line, i)
	if err != nil {
		return nil
	}
	return bytes.TrimSpace(line[i:end])
}

// noSession is why a file without one line is no log.
func (m *mender) noSession() error {
	_, err := wire.NewReader(m.t.R, m.t.Size, m.t.Encoding)
	msg := "no line of the file can be read"
	if err != nil {
		msg = reason(err)
	}
	return notRepairable(outcrop.CodeOf(err), msg, "take the file from a backup")
}
