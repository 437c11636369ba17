package endpoint

import (
	"strings"
	"testing"

	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/message"
)

// Small pieces cost more than their text: each is a chunk in memory and log.
func TestAReplyOfSmallPiecesIsBoundedToo(t *testing.T) {
	e, err := New(Options{Name: "p", BaseURL: "https://h/v1"})
	if err != nil {
		t.Fatal(err)
	}
	c := e.Call(t.Context(), "m")
	defer c.End()
	var failure error
	r := c.Reply(func(_ message.Chunk, err error) bool {
		failure = err
		return err == nil
	})
	r.Most = 1 << 20
	b := Block{Type: message.TextBlock}
	n := 0
	for ok := r.Start(&b); ok; ok = r.Add(&b, "x") {
		n++
	}
	f, _ := failure.(*message.Failure)
	if f == nil || f.Code != llm.CodeMalformed || f.Message != "p: sent a reply over 1 MiB" || n > 1<<20/deltaCost {
		t.Errorf("%v after %d pieces", failure, n)
	}
}

func TestAPairOfSurrogatesIsJoinedAcrossPieces(t *testing.T) {
	e, _ := New(Options{Name: "p", BaseURL: "https://h/v1"})
	c := e.Call(t.Context(), "m")
	defer c.End()
	var a message.Assembler
	deltas := 0
	r := c.Reply(func(c message.Chunk, _ error) bool {
		if c.Type == message.TextDelta {
			deltas++
		}
		a.Add(c)
		return true
	})
	b := Block{Type: message.TextBlock}
	r.Start(&b)
	for _, s := range []string{"a\xed\xa0\xbd", "\xed\xb8\x80", "\xed\xa0\xbd"} {
		r.Add(&b, s)
	}
	r.End(&b)
	if got := a.Blocks()[0].Text; got != "a\U0001f600\xed\xa0\xbd" || deltas != 3 {
		t.Errorf("%q in %d deltas", got, deltas)
	}
	if r.Finish(nil, message.Stop, nil); strings.TrimSpace(string(a.Finish().Kind)) != "stop" {
		t.Error(a.Finish())
	}
}
