package worker

import (
	"context"
	"testing"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/agent"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/llm/script"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/memory"
)

// Whatever comes over a bus is answered with a reply that can be read, and puts
// nothing into a session but a message with an id, once.
func FuzzAnswer(f *testing.F) {
	for _, seed := range []string{
		`{"kind":"deliver","message":{"content":[{"type":"text","text":"x"}],"source":{"kind":"user"},"role":"user","id":"a"}}`,
		`{"kind":"steer","message":{"content":[{"type":"text","text":"\ud83d"}],"source":{"kind":"user"},"role":"user","id":"b"},"from":"me"}`,
		`{"kind":"steer","message":{"content":[{"type":"text","text":"x"}],"source":{"kind":"user"},"role":"user","id":"` + "\xff" + `"}}`,
		`{"kind":"deliver","message":{"content":[],"source":{"kind":"user"},"role":"assistant","id":"c"}}`,
		`{"kind":"cancel"}`, `{"kind":"questions"}`, `{"kind":"decide","question":"q","allow":true}`, `{"kind":"decide","reason":"no"}`,
		`{"kind":"release"}`, `{"kind":"dance"}`, `{}`, `[`, ``, `{"kind":"deliver","message":"x"}`, `{"kind":"deliver"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, question []byte) {
		ctx := context.Background()
		live, err := store.Create(ctx, memory.New(), outcrop.NewHeader("s", 1, "/srv"), store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		model := &script.Model{Reply: func(llm.Request) script.Reply { return script.Reply{Text: "ok"} }}
		ag, err := agent.New(agent.Options{Live: live, Provider: model, Config: llm.Config{Model: "m"}})
		if err != nil {
			t.Fatal(err)
		}
		h := NewHolder(ag, live.Session(), live.Flush, "h")
		inserted := func() (n int) {
			for ev := range outcrop.Events(live.Session().Log(), 0) {
				if ev.Type == outcrop.TypeInboxSpliced {
					for range jsonwire.Elements(jsonwire.Get(ev.Data, "inserted")) {
						n++
					}
				}
			}
			return n
		}
		var first Reply
		for range 2 {
			var reply Reply
			if err := jsonwire.UnmarshalStrict(answerTo(ctx, question, h.Answer), &reply); err != nil {
				t.Fatalf("the reply to %q: %v", question, err)
			}
			if first.By == "" {
				first = reply
			} else if first.Code == "" && reply.Code == "" && inserted() == 1 && (reply.Seq != first.Seq || !reply.Known) {
				t.Errorf("asked twice: %+v, then %+v", first, reply)
			}
		}
		if n := inserted(); n > 1 {
			t.Errorf("%d messages were put in", n)
		}
		if _, err := ag.Wait(ctx); err != nil {
			t.Error(err)
		}
		if err := ag.Close(ctx); err != nil {
			t.Error(err)
		}
		if err := live.Close(ctx); err != nil {
			t.Error(err)
		}
	})
}
