// Package masking is what an export does to text before it leaves: package
// secret finds what looks like a key or a password, and the copy has
// [masked:KIND] in its place. The log is never touched.
//
// # What stays valid
//
// JSON stays JSON: arguments of calls are masked value by value, so that they
// are the same object with other strings. Names that hold things together
// (ids of messages, calls, attachments, compactions) stay as they are. What a
// provider signed is dropped together with its signature when the text under it
// changed: nobody would take it any more.
//
// A key that the model wrote is spread over many chunks. Chunks of a block are
// judged as one text; when something is found in it, the first chunk gets the
// whole masked text and the others are empty.
package masking

import (
	"bytes"
	"slices"
	"strconv"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/message"
	"github.com/outcrop-dev/outcrop/secret"
)

// Masker masks and counts. The zero value is ready; one with Raw changes
// nothing. One goroutine uses it.
type Masker struct {
	Raw   bool
	Found int // places so far
}

// Text masks a text.
func (m *Masker) Text(s string) string {
	if m.Raw || s == "" {
		return s
	}
	out, n := secret.Mask(s)
	m.Found += n
	return out
}

// Arguments masks the arguments of a call: an object value by value, another
// text as text.
func (m *Masker) Arguments(s string) string {
	if m.Raw {
		return s
	}
	if b := []byte(s); jsonwire.Kind(b) == '{' && jsonwire.Valid(b) == nil {
		return string(m.JSON(b))
	}
	return m.Text(s)
}

// JSON masks the strings of a JSON text, which must be valid, and names of
// members that are secrets themselves. Ids stay.
func (m *Masker) JSON(b []byte) []byte {
	if m.Raw {
		return b
	}
	// Most have nothing to hide, and are told at once; calls of tools hold JSON
	// in a string, which is looked at closely.
	if _, n := secret.MaskJSON(b); n == 0 && !bytes.Contains(b, []byte(`"arguments"`)) && len(secret.Find(string(b))) == 0 {
		return b
	}
	before := m.Found
	out := m.value(make([]byte, 0, len(b)), b)
	if m.Found == before {
		return b
	}
	return out
}

// kept are members that name things or that only their maker can read.
var kept = map[string]bool{
	"id": true, "callId": true, "toolCallId": true, "attachmentId": true, "compactionId": true, "type": true, "role": true,
	"kind": true, "provider": true, "model": true, "digest": true, "signature": true, "redacted": true, "parentSession": true,
}

func (m *Masker) value(dst, v []byte) []byte {
	switch jsonwire.Kind(v) {
	case '"':
		s, _ := jsonwire.Text(v)
		if out := m.Text(s); out != s {
			return jsonwire.AppendString(dst, out)
		}
	case '{':
		dst = append(dst, '{')
		hidden := 0
		for k, member := range jsonwire.Members(v) {
			if dst[len(dst)-1] != '{' {
				dst = append(dst, ',')
			}
			at := len(dst)
			name := jsonwire.Key(k)
			if out := m.Text(name); out != name {
				// Several such names stay several.
				if hidden++; hidden > 1 {
					out += " " + strconv.Itoa(hidden)
				}
				dst = m.value(append(jsonwire.AppendString(dst, out), ':'), member)
				continue
			}
			dst = append(append(append(dst, '"'), k...), '"', ':')
			dst = m.member(dst, at, name, member)
		}
		return append(dst, '}')
	case '[':
		dst = append(dst, '[')
		for e := range jsonwire.Elements(v) {
			if dst[len(dst)-1] != '[' {
				dst = append(dst, ',')
			}
			dst = m.value(dst, e)
		}
		return append(dst, ']')
	}
	return append(dst, v...)
}

// member appends a member's value; its name begins at dst[at].
func (m *Masker) member(dst []byte, at int, name string, v []byte) []byte {
	if jsonwire.Kind(v) != '"' {
		return m.value(dst, v)
	}
	if kept[name] {
		return append(dst, v...)
	}
	if name == "arguments" {
		s, _ := jsonwire.Text(v)
		if out := m.Arguments(s); out != s {
			return jsonwire.AppendString(dst, out)
		}
		return append(dst, v...)
	}
	// The name says whether the value is secret: both are judged together.
	one := append(append([]byte{'{'}, dst[at:]...), v...)
	masked, n := secret.MaskJSON(append(one, '}'))
	if n == 0 {
		return append(dst, v...)
	}
	m.Found += n
	return append(dst[:at], masked[1:len(masked)-1]...)
}

// Message masks a message. The one that is given stays as it is.
func (m *Masker) Message(msg message.Message) message.Message {
	if m.Raw {
		return msg
	}
	before := m.Found
	msg.Content = m.Blocks(msg.Content)
	if m.Found != before && msg.Source.ReplayState != nil {
		msg.Source.ReplayState, msg.Source.Raw = nil, nil
	}
	if s := m.Text(msg.Source.Summary); s != msg.Source.Summary {
		msg.Source.Summary, msg.Source.Raw = s, nil
	}
	return msg
}

// Blocks masks a content list.
func (m *Masker) Blocks(in []message.Block) []message.Block {
	if m.Raw {
		return in
	}
	out := slices.Clone(in)
	for i := range out {
		out[i] = m.block(out[i])
	}
	return out
}

func (m *Masker) block(b message.Block) message.Block {
	switch b.Type {
	case message.TextBlock, message.ReasoningBlock:
		if s := m.Text(b.Text); s != b.Text {
			b.Text, b.Raw = s, nil
		}
	case message.ToolCallBlock:
		if s := m.Arguments(b.Arguments); s != b.Arguments {
			b.Arguments, b.Raw = s, nil
		}
	case message.ToolResultBlock:
		before := m.Found
		if content := m.Blocks(b.Content); m.Found != before {
			b.Content, b.Raw = content, nil
		}
	case message.ImageBlock:
		if raw := m.JSON(b.Attachment); !bytes.Equal(raw, b.Attachment) {
			b.Attachment, b.Raw = raw, nil
		}
	default:
		if b.Raw != nil {
			b.Raw = m.JSON(b.Raw)
		}
	}
	return b
}

// Header masks the header of a log.
func (m *Masker) Header(h outcrop.Header) outcrop.Header {
	if m.Raw {
		return h
	}
	id := h.ID
	out, err := outcrop.ParseHeader(m.JSON(h.Line()))
	if err != nil || out.ID != id {
		return h // a cwd that is no path any more: the header stays
	}
	return out
}
