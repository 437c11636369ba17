package outcrop

import (
	"encoding/json"

	"github.com/outcrop-dev/outcrop/message"
)

// RawPayload is the data of an event that does not stand on the surface, given
// as JSON text.
type RawPayload struct {
	Type      Type
	Data      json.RawMessage
	Ignorable bool
}

// EventType implements LogPayload.
func (p RawPayload) EventType() Type              { return p.Type }
func (RawPayload) logPayload()                    {}
func (p RawPayload) appendData(dst []byte) []byte { return append(dst, p.Data...) }
func (RawPayload) holdsRaw() bool                 { return true }

func blockHoldsRaw(b *message.Block) bool {
	if b.Raw != nil || b.Attachment != nil {
		return true
	}
	for i := range b.Content {
		if blockHoldsRaw(&b.Content[i]) {
			return true
		}
	}
	return false
}

func messageHoldsRaw(m *message.Message) bool {
	if m.Source.Raw != nil || m.Source.ReplayState != nil || m.Source.Sections != nil {
		return true
	}
	for i := range m.Content {
		if blockHoldsRaw(&m.Content[i]) {
			return true
		}
	}
	return false
}
