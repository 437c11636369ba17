package opencode

import (
	"regexp"

	"github.com/outcrop-dev/outcrop/exchange"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
)

// about is what opencode says of a session.
type about struct {
	id, parent, title, directory, version string
	created                               int64
	revert                                string // id of the message from which on all was taken back
}

// aboutOf reads the object of a session. The id is that of the file's name or the
// row, where there is one.
func aboutOf(id string, v []byte) about {
	a := about{id: id}
	if a.id == "" {
		a.id = text(v, "id")
	}
	a.parent = text(v, "parentID")
	a.title = text(v, "title")
	a.directory = text(v, "directory")
	a.version = text(v, "version")
	a.created = millis(jsonwire.Get(get(v, "time"), "created"))
	a.revert = text(get(v, "revert"), "messageID")
	return a
}

// made are titles that opencode gives to a session before it has one.
var made = regexp.MustCompile(`^(New|Child) session - \d{4}-\d\d-\d\dT`)

// session makes the session that feeds messages to a builder.
func (a about) session(each func(yield func(*entry) error) error) *exchange.Session {
	s := &exchange.Session{Program: Name, Version: a.version, Source: a.id, Title: a.title, CreatedAt: a.created, Cwd: a.directory}
	if made.MatchString(s.Title) {
		s.Title = ""
	}
	if a.parent != "" && a.parent != a.id {
		s.Parent, s.Subagent = a.parent, true
	}
	s.Feed = func(b *exchange.Builder) error {
		f := feeder{b: b, title: s.Title, revert: a.revert}
		if err := each(f.entry); err != nil {
			return err
		}
		return f.finish()
	}
	return s
}

// entry is one message.
type entry struct {
	id    string
	kind  string   // of a session message; "" for one that has parts
	info  []byte   // the message without its parts; valid JSON, or nil when it cannot be read
	parts [][]byte // in order; valid JSON
	lost  []string // why parts could not be read
	time  int64    // that the row has, where info has none; Unix milliseconds
}

// get is a member of an object; nil for anything else.
func get(v []byte, name string) []byte {
	if jsonwire.Kind(v) != '{' {
		return nil
	}
	return jsonwire.Get(v, name)
}

// text is a member that is a string, "" for anything else.
func text(v []byte, name string) string {
	s, _ := jsonwire.Text(get(v, name))
	return s
}

// isTrue reports a member that is true.
func isTrue(v []byte, name string) bool { return string(get(v, name)) == "true" }

// number is a member that is a whole number, 0 for anything else.
func number(v []byte, name string) int64 {
	n, _ := jsonwire.Int(get(v, name))
	return n
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
