// Package workspace tells the model about the place it works in: context
// messages that the program injects, beside what a person wrote.
//
// A context has a name and a text. The newest copy on the surface is the one
// in force. A context is appended when no copy is on the surface (it never was,
// or an edit of the history took it away), or when its text changed; then the
// new copy says that it replaces the earlier one. Nothing is ever taken away by
// this package: the log keeps each copy.
//
// How a context stands in a log depends on the session, and Candidate alone
// decides it:
//
//	session                      event            source
//	ours                         context/message  {"kind":"outcrop","form":NAME}
//	only types that dsh knows    user/message     {"kind":"plugin","plugin":"outcrop","form":"snapshot","summary":NAME}
package workspace

import (
	"strings"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/message"
)

// Context is one thing that the program tells the model.
type Context struct {
	Name string // "runtime"; the same context has the same name each time
	Text string // for the model
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
		m.Source = message.Source{Kind: pluginKind, Plugin: pluginName, Form: snapshotForm, Summary: c.Name}
		return outcrop.SurfaceCandidate(outcrop.UserMessage{Message: m}, outcrop.Tail, outcrop.NoSources)
	}
	m.Source = message.Source{Kind: sourceKind, Form: c.Name}
	return outcrop.SurfaceCandidate(outcrop.ContextMessage{Message: m}, outcrop.Tail, outcrop.NoSources)
}

// Due returns those of the wanted contexts that have to be appended now, with
// the text to append.
func Due(messages []*outcrop.Message, want []Context) []Context {
	var due []Context
	for _, c := range want {
		have, ok := newest(messages, c.Name)
		switch {
		case !ok:
			due = append(due, c)
		case strings.TrimSuffix(have, replaces) != c.Text:
			due = append(due, Context{Name: c.Name, Text: c.Text + replaces})
		}
	}
	return due
}

// newest finds the text of the newest copy of a context.
func newest(messages []*outcrop.Message, name string) (text string, ok bool) {
	for i := len(messages) - 1; i >= 0; i-- {
		m := messages[i]
		if m.Role != string(message.User) || nameOf(jsonwire.Get(m.Raw, "source")) != name {
			continue
		}
		blocks, err := message.ParseBlocks(jsonwire.Get(m.Raw, "content"))
		if err != nil {
			continue
		}
		return message.PlainText(blocks), true
	}
	return "", false
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
