package codex

import (
	"encoding/json"
	"strings"

	"github.com/outcrop-dev/outcrop/internal/jsonwire"
)

// fields are the members of a response item, as spans, from one walk.
type fields struct {
	kind, role, id, callID, name, namespace                     string
	arguments, input, output, success, action, summary, content []byte
	encrypted, result                                           []byte
}

// set takes a member.
func (i *fields) set(name, v []byte) {
	switch string(name) {
	case "type":
		i.kind = text(v)
	case "role":
		i.role = text(v)
	case "id":
		i.id = text(v)
	case "call_id":
		i.callID = text(v)
	case "name":
		i.name = text(v)
	case "namespace":
		i.namespace = text(v)
	case "arguments":
		i.arguments = v
	case "input":
		i.input = v
	case "output":
		i.output = v
	case "success":
		i.success = v
	case "action":
		i.action = v
	case "summary":
		i.summary = v
	case "content":
		i.content = v
	case "encrypted_content":
		i.encrypted = v
	case "result":
		i.result = v
	}
}

// complete is called when all members are there.
func (i *fields) complete() {
	if i.callID == "" {
		i.callID = i.id
	}
	i.name = i.namespace + i.name
}

// reasoning is the text of a reasoning item: its summary, and what else of it
// can be read.
func (i *fields) reasoning() string {
	var parts []string
	for _, list := range [...][]byte{i.summary, i.content} {
		for e := range jsonwire.Elements(list) {
			if t := text(jsonwire.Get(e, "text")); t != "" {
				parts = append(parts, t)
			}
		}
	}
	return strings.Join(parts, "\n\n")
}

// state is what the provider wants back with a reasoning item; nil: nothing.
func (i *fields) state() json.RawMessage {
	e := text(i.encrypted)
	if e == "" {
		return nil
	}
	dst := []byte{'{'}
	if i.id != "" {
		dst = jsonwire.AppendStringMember(dst, "id", i.id)
	}
	return append(jsonwire.AppendStringMember(dst, "encryptedContent", e), '}')
}
