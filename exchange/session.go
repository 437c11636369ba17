package exchange

import (
	"context"
	"errors"
	"io"
	"iter"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/store"
)

// Session is one session of another program, as a source holds it. Exactly one
// of Feed and Log is set.
type Session struct {
	Program string // name of the format: "codex"
	Version string // of the program that wrote it, "" when unknown
	Source  string // what the program calls the session; never a path
	Title   string // for reports alone; Feed gives the title to the builder

	CreatedAt int64  // Unix milliseconds; 0: unknown
	Cwd       string // absolute path as the program wrote it, or ""

	// Parent is the Source of the session that this one came from, or "".
	Parent string
	// Subagent says that Parent's agent delegated work to this one.
	Subagent bool

	// Unfinished says that the program may still be writing the session, so that
	// Feed left out what its end may lack yet, see Report.Unfinished.
	Unfinished bool

	// Feed gives the session to a builder, in order. It is called more than
	// once, and gives the same each time while the source is the same. An error
	// of the builder ends it and is returned as it is.
	Feed func(b *Builder) error
	// Extent is how much was read, for the mark at the end: a length in bytes
	// and the digest sha256:HEX of them. It is asked when Feed is done; nil:
	// unknown.
	Extent func() (int64, string)

	// Log is a session that the source holds as a log already.
	Log *Log
}

// Log is a session that is taken over as it is, event by event.
type Log struct {
	Header  outcrop.Header
	Records func(ctx context.Context) iter.Seq2[outcrop.Record, error]
	// Objects has the attachments that the log names; nil: none.
	Objects store.Objects
	// Bytes opens the file of the log, for a store that takes it as it is
	// (store.BytesPutter): the ending of its name and the digest of its events.
	// Nil: there are records alone.
	Bytes func() (r io.ReadCloser, ending, digest string, err error)
}

// Options say how a foreign session becomes one of ours.
type Options struct {
	// ID is the new session's; "": Session.ID.
	ID string
	// ParentID gives the id under which the session with a Source was stored;
	// nil: the one that IDFor gives.
	ParentID func(source string) string
	// Cwd maps a working directory; nil: it stays as it is.
	Cwd func(string) string
	// Objects takes attachments before an event names them; nil: images become
	// notes, and the report says so.
	Objects store.Objects
	// Report hears what was kept, mapped and dropped; nil: nobody.
	Report *Report

	cuts []cut // where earlier imports ended
}

// ID is the id that a session has here, made from what its program calls it.
func (s *Session) ID() string {
	if s.Log != nil {
		return s.Log.Header.ID
	}
	return IDFor(s.Program, s.Source)
}

// Header is the header of the session as it will be stored. For a fork it runs
// Feed up to Builder.Seed, to count what is inherited.
func (s *Session) Header(ctx context.Context, o Options) (outcrop.Header, error) {
	if s.Log != nil {
		return s.Log.header(o)
	}
	id := o.ID
	if id == "" {
		id = s.ID()
	}
	cwd := s.Cwd
	if o.Cwd != nil && cwd != "" {
		cwd = o.Cwd(cwd)
	}
	h := outcrop.NewHeader(id, max(s.CreatedAt, 0), cwd)
	if s.Parent != "" {
		parent := IDFor(s.Program, s.Parent)
		if o.ParentID != nil {
			parent = o.ParentID(s.Parent)
		}
		h.ParentSession = &parent
		if s.Subagent {
			h.Origin, h.DelegationDepth = "subagent", 1
		}
		n, err := s.seedLength(ctx, h, o)
		if err != nil {
			return h, err
		}
		h.SeedLength = n
	}
	from := jsonwire.AppendStringMember([]byte{'{'}, "program", s.Program)
	if s.Version != "" {
		from = jsonwire.AppendStringMember(from, "version", s.Version)
	}
	from = append(jsonwire.AppendStringMember(from, "session", s.Source), '}')
	h, err := h.WithMember("importedFrom", from)
	if err != nil && cwd != "" && outcrop.CodeOf(err) == "HEADER_CWD_RELATIVE" {
		// A folder that is none: the session goes without.
		o.Report.Dropped("cwd", "it is no absolute path", 0)
		bare, none := *s, o
		bare.Cwd, none.Report = "", nil
		return bare.Header(ctx, none)
	}
	return h, err
}

// seedLength counts the events before Builder.Seed; nil when Feed has no seed.
func (s *Session) seedLength(ctx context.Context, h outcrop.Header, o Options) (*int64, error) {
	if s.Subagent {
		return nil, nil
	}
	h.Cwd = nil // judged later
	o.Report, o.Objects = nil, Measure
	b, err := newBuilder(ctx, s, h, o, func(outcrop.Record, error) bool { return true })
	if err != nil {
		return nil, err
	}
	b.counting = true
	err = s.Feed(b)
	switch {
	case errors.Is(err, errSeeded):
		return &b.inherited, nil
	case err != nil:
		return nil, err
	}
	return nil, nil
}

// Records makes the session's log under a header that Header gave. The records
// come while the source is read; an error of it ends them.
func (s *Session) Records(ctx context.Context, h outcrop.Header, o Options) iter.Seq2[outcrop.Record, error] {
	if s.Log != nil {
		return s.Log.records(ctx, o)
	}
	return func(yield func(outcrop.Record, error) bool) {
		b, err := newBuilder(ctx, s, h, o, yield)
		if err == nil {
			if err = s.Feed(b); err == nil {
				err = b.finish(s)
			}
		}
		if err != nil && !errors.Is(err, errStopped) {
			yield(outcrop.Record{}, err)
		}
	}
}

func (l *Log) header(o Options) (outcrop.Header, error) {
	h := l.Header
	cwd := ""
	if h.Cwd != nil {
		cwd = *h.Cwd
		if o.Cwd != nil {
			cwd = o.Cwd(cwd)
		}
	}
	parent := ""
	if h.ParentSession != nil {
		if parent = *h.ParentSession; o.ParentID != nil {
			parent = o.ParentID(parent)
		}
	}
	if (o.ID == "" || o.ID == h.ID) && (h.Cwd == nil || cwd == *h.Cwd) && (h.ParentSession == nil || parent == *h.ParentSession) {
		return h, nil
	}
	// Of members that stand twice the last one counts: the line stays what it
	// was, and says at its end what is new.
	var err error
	if o.ID != "" && o.ID != h.ID {
		if h, err = replaceMember(h, "id", o.ID); err != nil {
			return h, err
		}
	}
	if h.ParentSession != nil && parent != *h.ParentSession {
		if h, err = replaceMember(h, "parentSession", parent); err != nil {
			return h, err
		}
	}
	if h.Cwd != nil && cwd != *h.Cwd {
		h, err = replaceMember(h, "cwd", cwd)
	}
	return h, err
}

// replaceMember is the header with another text for one of its members, in its
// place.
func replaceMember(h outcrop.Header, name, text string) (outcrop.Header, error) {
	line := []byte{'{'}
	for k, v := range jsonwire.Members(h.Line()) {
		if len(line) > 1 {
			line = append(line, ',')
		}
		line = append(append(append(line, '"'), k...), '"', ':')
		if jsonwire.KeyIs(k, name) {
			line = jsonwire.AppendString(line, text)
		} else {
			line = append(line, v...)
		}
	}
	return outcrop.ParseHeader(append(line, '}'))
}

// records yields the log; before an event is yielded, what it names is stored.
func (l *Log) records(ctx context.Context, o Options) iter.Seq2[outcrop.Record, error] {
	return func(yield func(outcrop.Record, error) bool) {
		done := map[string]bool{}
		for r, err := range l.Records(ctx) {
			if err == nil && r.Run == nil && l.Objects != nil && o.Objects != nil {
				for id := range store.AttachmentIDs(r.Data) {
					if done[id] {
						continue
					}
					done[id] = true
					if err = carry(ctx, o.Objects, l.Objects, id); err != nil {
						break
					}
				}
			}
			if !yield(r, err) || err != nil {
				return
			}
		}
	}
}

// carry copies one attachment; one that the source does not have was missing
// before.
func carry(ctx context.Context, to, from store.Objects, id string) error {
	b, err := from.Get(ctx, id)
	if err != nil {
		if errors.Is(err, outcrop.ErrNotFound) || errors.Is(err, outcrop.ErrDamaged) || errors.Is(err, outcrop.ErrRefused) {
			return nil
		}
		return err
	}
	_, err = to.Put(ctx, b)
	return err
}
