package agent_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/requests"
)

// differsFrom holds a replayed log against its recording: the same messages,
// byte for byte, and the same request for each recorded call. With ownWords
// what the loop says by itself counts by what it is about, see spoken.
func (r *recording) differsFrom(got outcrop.Log, ownWords bool) error {
	want, err := messagesOf(r.log, outcrop.Seq(r.log.Len()-1), ownWords)
	if err != nil {
		return err
	}
	have, err := messagesOf(got, outcrop.Seq(got.Len()-1), ownWords)
	if err != nil {
		return err
	}
	for i := range max(len(want), len(have)) {
		if i >= len(want) || i >= len(have) || !bytes.Equal(want[i].Raw, have[i].Raw) {
			return fmt.Errorf("message %d differs:\nrecorded %s\nreplayed %s", i, rawAt(want, i), rawAt(have, i))
		}
	}
	calls := map[string]requests.Attempt{}
	for _, at := range requests.Find(got) {
		calls[at.String()] = at
	}
	for _, at := range requests.Find(r.log) {
		if at.Prefix < r.lives[0].start {
			continue // it belongs to the parent
		}
		again, ok := calls[at.String()]
		if !ok {
			return fmt.Errorf("%s: the replay did not make it", at.String())
		}
		a, err := requestDigest(r.log, at, nil, ownWords)
		if err != nil {
			return err
		}
		b, err := requestDigest(got, again, a.header, ownWords)
		if err != nil {
			return err
		}
		if at.Recorded != "" && (at.Recorded != a.digest || again.Recorded != at.Recorded) {
			return fmt.Errorf("%s: recorded as %s, again as %s", at.String(), at.Recorded, again.Recorded)
		}
		if a.digest != b.digest {
			return fmt.Errorf("%s: recorded request %s, replayed %s", at.String(), a.digest, b.digest)
		}
		if !outcrop.EqualHeaders(a.header, b.header) {
			return fmt.Errorf("%s: the headers differ\nrecorded %s\nreplayed %s", at.String(), a.header, b.header)
		}
	}
	return nil
}

func rawAt(msgs []*outcrop.Message, i int) []byte {
	if i < len(msgs) {
		return msgs[i].Raw
	}
	return []byte("nothing")
}

func messagesOf(log outcrop.Log, seq outcrop.Seq, ownWords bool) ([]*outcrop.Message, error) {
	fold, err := outcrop.SurfaceAt(log, seq)
	if err != nil {
		return nil, err
	}
	var out []*outcrop.Message
	for _, m := range outcrop.DeriveMessages(log, fold.Nodes) {
		if ownWords {
			if m = spoken(log, m); m == nil {
				continue
			}
		}
		out = append(out, m)
	}
	return out, nil
}

// spoken leaves out the words that a loop has of its own. A message that tells
// of a reply that a crash cut is none, and a call that was answered without
// being run has its code as its result.
func spoken(log outcrop.Log, m *outcrop.Message) *outcrop.Message {
	if isCutNotice(m.Raw) {
		return nil
	}
	data := log.At(m.Seq).Data
	switch code := word(data, "error", "code"); code {
	case "INVALID_ARGS", "UNKNOWN_TOOL":
		said := *m
		said.Raw = fmt.Appendf(nil, "%s %s %s", m.ID, word(data, "message", "source", "callId"), code)
		return &said
	}
	return m
}

type digested struct {
	header []byte
	digest string
}

// requestDigest is the digest of the request of an attempt. dsh writes the
// members of a header in another order than we do; so the digest is made with
// the header as given, and the headers are compared by what they say.
func requestDigest(log outcrop.Log, at requests.Attempt, header []byte, ownWords bool) (digested, error) {
	h, ok := outcrop.RequestHeaderAt(log, at.Prefix)
	if !ok {
		return digested{}, fmt.Errorf("%s: no header", at.String())
	}
	msgs, err := messagesOf(log, at.Prefix, ownWords)
	if header == nil {
		header = h.Raw
	}
	return digested{h.Raw, outcrop.DigestOf(header, msgs)}, err
}

// replayLog runs a log again and holds what comes of it against it.
func replayLog(t *testing.T, h outcrop.Header, log outcrop.Log, ownWords bool) {
	t.Helper()
	r, err := takeApart(h, log)
	if err != nil {
		t.Fatal(err)
	}
	var got outcrop.Log
	synctest.Test(t, func(*testing.T) { got, err = r.play(!ownWords) })
	if err == nil {
		err = r.differsFrom(got, ownWords)
	}
	if err != nil {
		lines := strings.SplitAfter(clipped(got), "\n")
		t.Errorf("%.3000s\nthe end of the replay:\n%s", err, strings.Join(lines[max(0, len(lines)-40):], ""))
	} else if ownWords && r.differsFrom(got, false) == nil {
		t.Error("the replay is the same to the byte: no exception is needed")
	}
}

// Sessions of dsh in which the loop itself says something, which ours says in
// words of its own.
var inOtherWords = map[string]string{
	"resume-after-kill-midstream/":       "a crash cut a reply: our loop tells the model what was visible of it, dsh does not",
	"resume-after-kill-midstream-plain/": "the same",
	"torn-plain-badlast-terminated/":     "the same",
	"torn-plain-garbage/":                "the same",
	"torn-plain-midline/":                "the same",
	"torn-plain-nonewline/":              "the same",
	"torn-plain-nul/":                    "the same",
	"tool-roundtrip/":                    "arguments were cut off and a tool is unknown: the loop answers those calls",
	"tool-roundtrip-jsonl/":              "the same",
}

// Each real session, run again from its own chunks, gives the same messages and
// the same requests. What is damaged so that it cannot be loaded is left out by
// eachRealLog: it has no surface to give messages.
func TestRealSessionsCanBeReplayed(t *testing.T) {
	n := 0
	eachRealLog(t, func(t *testing.T, name string, h outcrop.Header, log outcrop.Log) {
		n++
		session, _, _ := strings.Cut(name, "/")
		_, other := inOtherWords[session+"/"]
		replayLog(t, h, log, other && !strings.Contains(name, "before-sessions"))
	})
	if n < 45 {
		t.Errorf("only %d sessions were replayed", n)
	}
}
