package requests_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/genlog"
	"github.com/outcrop-dev/outcrop/internal/requests"
	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/llm/script"
	"github.com/outcrop-dev/outcrop/message"
)

// called is the log of a step whose first attempt failed, and the digests that
// were recorded.
func called(t *testing.T) (outcrop.Log, []string) {
	t.Helper()
	s, err := outcrop.New(outcrop.NewHeader("s", 1, ""), outcrop.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var digests []string
	add := func(format string, args ...any) {
		t.Helper()
		ev, err := outcrop.DecodeEvent(fmt.Appendf(nil, format, args...))
		if err == nil {
			_, err = s.AppendRaw(ev)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	request := func(n int) {
		digests = append(digests, s.RequestDigest())
		add(`{"type":"outcrop/request","seq":0,"time":1,"data":{"turn":1,"step":1,"attempt":%d,"purpose":"turn","prefix":%d,"digest":%q,"encoder":"e"},"ignorable":true}`,
			n, s.Len()-1, s.RequestDigest())
	}
	add(`{"type":"turn/start","seq":0,"time":1,"data":{"turn":1}}`)
	add(`{"type":"step/start","seq":0,"time":1,"data":{"turn":1,"step":1}}`)
	add(`{"type":"user/message","seq":0,"time":1,"data":{"content":[{"type":"text","text":"hello"}],"source":{"kind":"user"},"role":"user","id":"m1"},"surfaceOp":"append"}`)
	add(`{"type":"request/header","seq":0,"time":1,"data":{"header":{"config":{"provider":"p","model":"m"},"system":"be brief"},"reason":"initial"}}`)
	request(1)
	add(`{"type":"assistant/chunk","seq":0,"time":1,"data":{"turn":1,"step":1,"chunk":{"type":"finish","reason":{"kind":"error","failure":{"code":"OVERLOADED","message":"later"}}}}}`)
	request(2)
	add(`{"type":"assistant/chunk","seq":0,"time":1,"data":{"turn":1,"step":1,"chunk":{"type":"finish","reason":{"kind":"stop"}}}}`)
	add(`{"type":"assistant/message","seq":0,"time":1,"data":{"turn":1,"step":1,"message":{"content":[{"type":"text","text":"hi"}],"source":{"kind":"model","provider":"p","model":"m"},"role":"assistant","id":"m2"}},"surfaceOp":"append","sourceEventSeqs":[7]}`)
	return s.Log(), digests
}

func TestRecordedRequestsAreMadeAgain(t *testing.T) {
	log, digests := called(t)
	all := requests.Find(log)
	if len(all) != 2 {
		t.Fatalf("%d attempts: %+v", len(all), all)
	}
	for i, at := range all {
		if at.Turn != 1 || at.Step != 1 || at.N != i+1 || at.OK != (i == 1) || at.Encoder != "e" {
			t.Errorf("attempt %d is %+v", i+1, at)
		}
		r, err := requests.Rebuild(log, at)
		if err != nil {
			t.Fatal(err)
		}
		if r.Digest != digests[i] || r.Digest != at.Recorded {
			t.Errorf("attempt %d has the digest %s, recorded %s, was %s", i+1, r.Digest, at.Recorded, digests[i])
		}
		req, err := r.Typed()
		if err != nil {
			t.Fatal(err)
		}
		if req.System != "be brief" || req.Config.Model != "m" || req.Attempt != i+1 || len(req.Messages) != 1 || message.PlainText(req.Messages[0].Content) != "hello" {
			t.Errorf("attempt %d is %+v", i+1, req)
		}
	}
	next, err := requests.Rebuild(log, requests.Next(outcrop.Seq(log.Len()-1)))
	if err != nil || len(next.Messages) != 2 || next.String() != "the next request" {
		t.Errorf("the next request is %v, %v", next, err)
	}
	if _, err := requests.Rebuild(log, requests.Next(1)); err == nil {
		t.Error("a request without a header")
	}
}

func TestWithoutAnythingRecordedAStepShowsOneAttempt(t *testing.T) {
	s, err := outcrop.Inspect(genlog.Header(1), func(yield func(outcrop.Record, error) bool) {
		for r := range genlog.Records(1, 200) {
			if !yield(r, nil) {
				return
			}
		}
	}, outcrop.Options{})
	if err != nil {
		t.Fatal(err)
	}
	steps := 0
	for ev := range outcrop.Events(s.Log(), 0) {
		if ev.Type == outcrop.TypeStepStart {
			steps++
		}
	}
	all := requests.Find(s.Log())
	if len(all) != steps || steps == 0 {
		t.Fatalf("%d attempts in %d steps", len(all), steps)
	}
	for _, at := range all {
		if at.N != 1 || !at.OK || at.Recorded != "" {
			t.Errorf("%+v", at)
		}
	}
}

func TestAnAttemptIsPickedOrTheErrorSaysWhatThereIs(t *testing.T) {
	log, _ := called(t)
	all := requests.Find(log)
	for _, c := range []struct {
		turn, step, n, want int
		err                 string
	}{
		{1, 1, 0, 1, ""},
		{1, 1, 1, 0, ""},
		{1, 1, 3, -1, "turn 1 step 1 has no attempt 3: it has 2 attempts"},
		{1, 2, 0, -1, "turn 1 has no step 2: it has 1 step"},
		{2, 1, 0, -1, "turn 2 made no model call: the last turn that did is 1"},
	} {
		got, err := requests.Pick(all, c.turn, c.step, c.n)
		if said := fmt.Sprint(err); got != c.want || c.err != "" && said != c.err || c.err == "" && err != nil {
			t.Errorf("turn %d step %d attempt %d: %d, %v", c.turn, c.step, c.n, got, err)
		}
	}
	if _, err := requests.Pick(nil, 1, 1, 0); err == nil {
		t.Error("picked from nothing")
	}
}

func TestFinishedAttemptsAreThoseOfOneModel(t *testing.T) {
	log, _ := called(t)
	want := []script.Attempt{
		{Turn: 1, Step: 1, Attempt: 1, Purpose: llm.Turn, Code: "OVERLOADED"},
		{Turn: 1, Step: 1, Attempt: 2, Purpose: llm.Turn},
	}
	if diff := cmp.Diff(want, requests.Finished(log, "p", "m")); diff != "" {
		t.Error(diff)
	}
	if got := requests.Finished(log, "p", "other"); len(got) != 0 {
		t.Errorf("of another model: %+v", got)
	}
	if got := requests.Finished(outcrop.Prefix(log, 5), "p", "m"); len(got) != 0 {
		t.Errorf("cut off in the first attempt: %+v", got)
	}
}
