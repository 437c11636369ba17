package opencode

import (
	"regexp"

	"github.com/outcrop-dev/outcrop/exchange"
	"github.com/outcrop-dev/outcrop/exchange/internal/fields"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
)

// about is what opencode says of a session.
type about struct {
	id, parent, title, directory, version string
	created, updated                      int64
	revert                                string // id of the message from which on all was taken back
}

// aboutOf reads the object of a session. The id is that of the file's name or the
// row, where there is one.
func aboutOf(id string, v fields.Object) about {
	a := about{id: id}
	if a.id == "" {
		a.id = v.Text("id")
	}
	a.parent = v.Text("parentID")
	a.title = v.Text("title")
	a.directory = v.Text("directory")
	a.version = v.Text("version")
	a.created, a.updated = millis(v.Of("time").Get("created")), millis(v.Of("time").Get("updated"))
	a.revert = v.Of("revert").Text("messageID")
	return a
}

// made are titles that opencode gives to a session before it has one.
var made = regexp.MustCompile(`^(New|Child) session - \d{4}-\d\d-\d\dT`)

// session makes the session that feeds messages to a builder. writing says that
// opencode may be writing it: a last reply that is not complete is left out then.
func (a about) session(writing bool, each func(yield func(*entry) error) error) *exchange.Session {
	s := &exchange.Session{Program: Name, Version: a.version, Source: a.id, Title: a.title, CreatedAt: a.created, Cwd: a.directory}
	if made.MatchString(s.Title) {
		s.Title = ""
	}
	if a.parent != "" && a.parent != a.id {
		s.Parent, s.Subagent = a.parent, true
	}
	s.Unfinished = writing
	s.Feed = func(b *exchange.Builder) error {
		f := feeder{b: b, title: s.Title, revert: a.revert}
		var last *entry
		err := each(func(e *entry) error {
			before := last
			if last = e; before == nil {
				return nil
			}
			return f.entry(before)
		})
		if err == nil && last != nil {
			if writing && last.incomplete() {
				b.Dropped("reply", "it may not be complete yet: it is left for the next import")
			} else {
				err = f.entry(last)
			}
		}
		if err != nil {
			return err
		}
		return f.finish()
	}
	return s
}

// entry is one message.
type entry struct {
	id    string
	kind  string          // of a session message; "" for one that has parts
	info  fields.Object   // the message without its parts; none when it cannot be read
	bad   string          // why it cannot
	parts []fields.Object // in order
	lost  []string        // why parts could not be read
	time  int64           // that the row has, where info has none; Unix milliseconds
}

// incomplete reports a reply that has not ended, in whatever way.
func (e *entry) incomplete() bool {
	if e.kind != "assistant" && e.info.Text("role") != "assistant" {
		return false
	}
	return e.info.Of("time").Get("completed") == nil && !e.info.Of("error").IsObject()
}

// millis is a time in Unix milliseconds. The first versions wrote some in
// seconds.
func millis(v []byte) int64 {
	n, ok := jsonwire.Int(v)
	switch {
	case !ok || n < 0:
		return 0
	case n > 0 && n < 100_000_000_000: // before 1973, or seconds
		return n * 1000
	}
	return n
}
