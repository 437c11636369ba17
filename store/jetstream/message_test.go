package jetstream

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"pgregory.net/rapid"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/store/storetest"
	"github.com/outcrop-dev/outcrop/wire"
)

// header is what a server gives back for a message: it goes through the bytes of
// the protocol.
func overTheWire(t interface{ Fatal(...any) }, m *nats.Msg) nats.Header {
	var b bytes.Buffer
	b.WriteString("NATS/1.0\r\n")
	for k, vs := range m.Header {
		for _, v := range vs {
			fmt.Fprintf(&b, "%s: %s\r\n", k, v)
		}
	}
	b.WriteString("\r\n")
	h, err := nats.DecodeHeadersMsg(b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func drawHead(t *rapid.T, events int64) head {
	h := head{Events: events, Turns: rapid.IntRange(0, 9).Draw(t, "turns"), Open: rapid.Bool().Draw(t, "open"),
		Title: strings.ToValidUTF8(rapid.String().Draw(t, "title"), "?"), Titled: rapid.Bool().Draw(t, "titled"), Updated: rapid.Int64().Draw(t, "updated"),
		Bytes: rapid.Int64Range(0, 1<<50).Draw(t, "bytes"), Step: rapid.IntRange(0, 9).Draw(t, "step"), Turn: rapid.IntRange(0, 9).Draw(t, "turn")}
	h.setHeader([]byte(rapid.SampledFrom([]string{``, `{"type":"session", "id":"<a>&\u2028 日" , "x":1e2}`, "{\"a\":\r1}", `{"long":"` + strings.Repeat("x", 3000) + `"}`}).Draw(t, "header")))
	return h
}

func TestAMessageComesBackAsItWas(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := message{Kind: rapid.SampledFrom([]kind{kindBatch, kindBase, kindTake, kindFree, kindRemove}).Draw(t, "kind"),
			Epoch: rapid.Uint64Range(1, maxCounter).Draw(t, "epoch"), Gen: rapid.Uint64Max(maxCounter).Draw(t, "gen"), Owner: rapid.SampledFrom([]string{"", "w-1"}).Draw(t, "owner")}
		if m.Kind != kindBase {
			m.Seq = outcrop.Seq(rapid.Int64Range(0, 1<<40).Draw(t, "seq"))
		}
		if m.holdsEvents() {
			m.Count = rapid.Int64Range(0, 1<<30).Draw(t, "count")
			m.Body = rapid.SliceOf(rapid.Byte()).Draw(t, "body")
			copy(m.Prev[:], rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "prev"))
			m.Refs = rapid.Bool().Draw(t, "refs")
			m.Chain = m.next()
		} else {
			copy(m.Chain[:], rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "chain"))
		}
		m.Head = drawHead(t, int64(m.Seq)+m.Count)
		out := m.nats("a.b")
		got, err := parseMessage(overTheWire(t, out), m.Body, false)
		if err != nil {
			t.Fatal(err)
		}
		if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", m) {
			t.Fatalf("got %+v\nwant %+v", got, m)
		}
		// Another body is not taken for this one.
		if m.holdsEvents() {
			if _, err := parseMessage(out.Header, append(bytes.Clone(m.Body), 0), false); err == nil {
				t.Fatal("another body was taken")
			}
		}
	})
}

func TestATokenStandsForOneIDAndFitsIntoASubject(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		id := rapid.OneOf(rapid.String(), rapid.StringMatching(`[a-z0-9.=*> -]{1,20}`)).Draw(t, "id")
		tok := token(id)
		if strings.ContainsAny(tok, ".*> \t\r\n") {
			t.Fatalf("%q has what a token cannot", tok)
		}
		got, ok := untoken(tok)
		if got != id || ok != (id != "") {
			t.Fatalf("%q became %q, %v", id, got, ok)
		}
	})
	for _, bad := range []string{"", "a.b", "=", "=4", "=41", "=zz", "=2e", "a b", "ä"} {
		if id, ok := untoken(bad); ok {
			t.Errorf("%q stands for %q", bad, id)
		}
	}
}

func TestAddresses(t *testing.T) {
	for text, want := range map[string]string{
		"nats://h/n":             "nats://h:4222/n",
		"nats://a:1,b:2,[::1]/N": "nats://a:1,b:2,[::1]:4222/N",
		"tls://h/a-b_c":          "tls://h:4222/a-b_c",
	} {
		a, err := ParseAddress(text)
		if err != nil || a.String() != want {
			t.Errorf("%s is %s, %v; want %s", text, a, err, want)
		}
		if again, err := ParseAddress(a.String()); err != nil || again.String() != want {
			t.Errorf("%s is not read back: %s, %v", want, again, err)
		}
	}
	for _, bad := range []string{"", "nats:", "nats://", "nats://h", "nats://h/", "nats:///n", "nats://h/a.b", "nats://h/a/b", "http://h/n", "nats://u:p@h/n", "nats://h:x/n", "nats://h,/n", "nats://h/" + strings.Repeat("n", 65)} {
		if a, err := ParseAddress(bad); err == nil {
			t.Errorf("%q is %s", bad, a)
		}
	}
}

// FuzzMessage feeds the decoder of stored messages what servers could give.
func FuzzMessage(f *testing.F) {
	for _, m := range samples(f) {
		var h bytes.Buffer
		for k, vs := range m.nats("a").Header {
			fmt.Fprintf(&h, "%s: %s\r\n", k, vs[0])
		}
		f.Add(h.Bytes(), m.Body)
	}
	f.Fuzz(func(t *testing.T, fields, body []byte) {
		h, err := nats.DecodeHeadersMsg(append(append([]byte("NATS/1.0\r\n"), fields...), "\r\n"...))
		if err != nil {
			return
		}
		m, err := parseMessage(h, body, false)
		if err != nil {
			return
		}
		// What was taken is what would be written.
		out := m.nats("a")
		again, err := parseMessage(overTheWire(t, out), body, false)
		if err != nil || again.Kind != m.Kind || again.Seq != m.Seq || again.Count != m.Count || again.Chain != m.Chain || again.Epoch != m.Epoch || again.Head.Events != m.Head.Events {
			t.Fatalf("%+v was written as %+v: %v", m, again, err)
		}
		if m.Refs {
			if ps, err := parseManifest(m.Body, m.Count); err == nil {
				if again, err := parseManifest(manifest(ps), m.Count); err != nil || len(again) != len(ps) {
					t.Fatalf("%v was written as %v: %v", ps, again, err)
				}
			}
			return
		}
		lk := &link{}
		for text, err := range lk.text(bg, m) {
			if err == nil {
				in := lineReader{s: &Store{}, id: "s", lines: wire.NewLines("s", nil), first: true}
				in.take(portion{text: text}, func(outcrop.Record, error) bool { return true })
			}
		}
	})
}

// samples are messages of a real session.
func samples(t testing.TB) (all []message) {
	s, err := outcrop.New(storetest.Header("s1"), outcrop.Options{Now: func() int64 { return 1 }})
	if err == nil {
		err = storetest.Turn(s, 1)
	}
	if err != nil {
		t.Fatal(err)
	}
	l := &Lease{s: &Store{id: "w1"}, header: s.Header(), isNew: true, epoch: 1}
	l.head.setHeader(l.header.Line())
	m, body, err := l.batch(s.Log().Records(0))
	if err != nil {
		t.Fatal(err)
	}
	m.Body = body
	m.Chain = m.next()
	take := message{Kind: kindTake, Seq: outcrop.Seq(m.Head.Events), Epoch: 2, Owner: "w2", Chain: m.Chain, Head: m.Head}
	refs := m
	refs.Refs, refs.Body = true, manifest([]piece{{Object: "b.x", SHA256: strings.Repeat("0", 64), Bytes: 3, Count: m.Count}})
	refs.Chain = refs.next()
	free, remove := take, take
	free.Kind, remove.Kind = kindFree, kindRemove
	return []message{m, take, refs, free, remove}
}
