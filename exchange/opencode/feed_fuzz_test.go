package opencode

import (
	"testing"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/exchange"
	"github.com/outcrop-dev/outcrop/exchange/internal/fields"
)

// FuzzItem gives the reader of session messages any objects of any kind, behind
// a prompt: it never panics, and what it makes is a valid session.
func FuzzItem(f *testing.F) {
	f.Add("user", []byte(`{"text":"x","files":[{"uri":"data:,"},7],"agents":[{}]}`), []byte(`{}`))
	f.Add("assistant", []byte(`{"model":{"id":"m","providerID":"p"},"content":[{"type":"tool","id":"c","name":"n","state":{"status":"completed","input":{},"content":[{"type":"text","text":"y"},{"type":"file","uri":"x"},{"type":"?"}]}},{"type":"reasoning","text":"r"}],"tokens":{"input":1,"output":2,"reasoning":1},"error":{"type":"aborted"}}`), []byte(`{"role":"user"}`))
	f.Add("compaction", []byte(`{"summary":"s","include":"i"}`), []byte(`{"type":"tool","state":{"status":"error","metadata":{"interrupted":true,"output":"o"}}}`))
	f.Add("shell", []byte(`{"command":"c","output":"o"}`), []byte(`{"type":"reasoning","metadata":{"anthropic":{"redactedData":"eA=="}}}`))
	f.Fuzz(func(t *testing.T, kind string, info, part []byte) {
		if unfit(info) != "" || unfit(part) != "" {
			return
		}
		s := about{id: "ses_0000000000000000"}.session(false, func(give func(*entry) error) error {
			for _, e := range []*entry{
				{id: "a", kind: "user", info: fields.Of([]byte(`{"text":"hello"}`))},
				{id: "b", kind: kind, info: fields.Of(info)},
				{id: "c", info: fields.Of([]byte(`{"role":"assistant","providerID":"p","modelID":"m"}`)), parts: []fields.Object{fields.Of(part)}},
				{id: "d", kind: kind, info: fields.Of(info)},
				{id: "e", info: fields.Of([]byte(`{"role":"user"}`)), parts: []fields.Object{fields.Of(part)}},
			} {
				if err := give(e); err != nil {
					return err
				}
			}
			return nil
		})
		o := exchange.Options{Objects: exchange.Measure}
		h, err := s.Header(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := outcrop.Restore(h, s.Records(t.Context(), h, o), outcrop.Options{}); err != nil {
			t.Fatalf("%v\n%s %s %s", err, kind, info, part)
		}
	})
}
