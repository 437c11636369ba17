package agent

import (
	"testing"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/message"
)

// Whatever an event of the inbox holds, its lists stay lists, and what was
// removed was in them.
func FuzzInboxSplice(f *testing.F) {
	for _, seed := range []string{
		`{"target":"next-turn","start":0,"inserted":[{"content":[],"source":{"kind":"user"},"role":"user","id":"a"}]}`,
		`{"target":"next-step","start":0,"removedCount":1,"inserted":[]}`,
		`{"target":"next-turn","start":1,"removedCount":1,"inserted":[{"id":"b"}],"outcome":"canceled"}`,
		`{"target":"next-turn","start":-1,"removedCount":9007199254740991,"inserted":7}`,
		`{"target":"x"}`, `[]`, `{`, ``,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		b := inbox{nextTurn: []message.Message{{ID: "x"}, {ID: "y"}}, nextStep: []message.Message{{ID: "z"}}}
		before := b.len()
		removed, _, _ := b.splice(data)
		if len(removed) > before || b.len() < before-len(removed) {
			t.Fatalf("%d were there, %d removed, %d left", before, len(removed), b.len())
		}
		h := past{inbox: b, attempt: -1, cut: -1, badSplice: -1}
		for _, typ := range []outcrop.Type{outcrop.TypeInboxSpliced, outcrop.TypeTurnStart, outcrop.TypeUserMessage, outcrop.TypeTurnEnd} {
			h.read(outcrop.Event{Type: typ, Data: data}, true)
		}
	})
}
