// Package workspace tells the model about the place it works in: context
// messages that the program injects, beside what a person wrote.
//
// A context has a name and a text. The newest copy on the surface is the one
// in force. A context is appended when no copy is on the surface (it never was,
// or an edit of the history took it away), or when it changed; then the new copy
// says that it replaces the earlier one. Nothing is ever taken away by this
// package: the log keeps each copy. What holds no more is said once, in a copy
// of its own.
//
// There are two kinds: Facts about the environment, sampled once a turn, and
// Instructions, the files that people leave for agents.
//
// How a context stands in a log depends on the session, and Candidate alone
// decides it:
//
//	session                      event            source
//	ours                         context/message  {"kind":"outcrop","form":NAME}
//	only types that dsh knows    user/message     {"kind":"plugin","plugin":"outcrop","form":"snapshot","summary":NAME}
//
// A context that was made from a file has one more member in its source,
// "digest":"sha256:…" of the file's bytes.
package workspace

import (
	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/message"
)

// Context is one thing that the program tells the model.
type Context struct {
	Name string // "runtime"; the same context has the same name each time
	Text string // for the model
	// Digest is of what the text was made from, "" when there is no such thing.
	// A copy with the same digest is as good as one with the same text.
	Digest string
	// Gone says that an earlier context of this name holds no more, which Text
	// tells. It is due only where a copy of that is on the surface.
	Gone bool
}

// replaces ends the text of a copy that stands for an earlier one.
const replaces = "\n\nThis replaces the earlier message of the same kind."

const (
	sourceKind   = "outcrop"
	pluginKind   = "plugin"
	pluginName   = "outcrop"
	snapshotForm = "snapshot"
)

// Candidate makes the event that puts a context on the surface of a session
// with header h. id is the message's id.
func Candidate(h outcrop.Header, id string, c Context) outcrop.Candidate {
	m := message.Message{ID: id, Role: message.User, Content: []message.Block{message.Text(c.Text)}}
	if h.Compatible() {
		m.Source = withDigest(message.Source{Kind: pluginKind, Plugin: pluginName, Form: snapshotForm, Summary: c.Name}, c.Digest)
		return outcrop.SurfaceCandidate(outcrop.UserMessage{Message: m}, outcrop.Tail, outcrop.NoSources)
	}
	m.Source = withDigest(message.Source{Kind: sourceKind, Form: c.Name}, c.Digest)
	return outcrop.SurfaceCandidate(outcrop.ContextMessage{Message: m}, outcrop.Tail, outcrop.NoSources)
}

// withDigest adds the member digest to a source.
func withDigest(s message.Source, digest string) message.Source {
	if digest == "" {
		return s
	}
	b := s.AppendJSON(nil)
	b = jsonwire.AppendStringMember(b[:len(b)-1], "digest", digest)
	return message.Source{Raw: append(b, '}')}
}

// nameOf reads the name of a context from a message's source, in both forms;
// "" when the message is no context of ours.
func nameOf(source []byte) string {
	kind := jsonwire.Get(source, "kind")
	switch {
	case jsonwire.TextIs(kind, sourceKind):
		name, _ := jsonwire.Text(jsonwire.Get(source, "form"))
		return name
	case jsonwire.TextIs(kind, pluginKind) &&
		jsonwire.TextIs(jsonwire.Get(source, "plugin"), pluginName) &&
		jsonwire.TextIs(jsonwire.Get(source, "form"), snapshotForm):
		name, _ := jsonwire.Text(jsonwire.Get(source, "summary"))
		return name
	}
	return ""
}
