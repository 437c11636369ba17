package jetstream

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go"

	"github.com/outcrop-dev/outcrop"
)

// kind says what a message on a session's subject is.
type kind string

const (
	kindBatch  kind = "batch"  // events, behind those of the message before
	kindBase   kind = "base"   // a whole log, in the place of everything before
	kindTake   kind = "take"   // another owner, under the next epoch
	kindFree   kind = "free"   // the owner handed the session back
	kindRemove kind = "remove" // the session is gone; what is before it may be purged
)

// The header fields of a message.
const (
	fieldKind  = "Oc-Kind"
	fieldSeq   = "Oc-Seq"
	fieldCount = "Oc-Count"
	fieldEpoch = "Oc-Epoch"
	fieldGen   = "Oc-Gen"
	fieldPrev  = "Oc-Prev"
	fieldChain = "Oc-Chain"
	fieldOwner = "Oc-Owner"
	fieldRefs  = "Oc-Refs"
	fieldHead  = "Oc-Head"
)

// link of the digest chain of a log: sha256 of the one before, and of what a
// batch adds.
type chain [sha256.Size]byte

var coding = base64.RawURLEncoding

func (c chain) String() string { return coding.EncodeToString(c[:]) }

func parseChain(s string) (c chain, ok bool) {
	if len(s) != coding.EncodedLen(len(c)) {
		return c, false
	}
	n, err := coding.Strict().Decode(c[:], []byte(s))
	return c, err == nil && n == len(c)
}

// message is one message of a session's subject.
type message struct {
	Kind  kind
	Seq   outcrop.Seq // of the first event; of a message without events the next seq
	Count int64
	Epoch uint64
	Gen   uint64 // how often the log was put anew as a whole
	Prev  chain  // of the log before
	Chain chain  // of the log with this message
	Owner string // the worker that holds the session from here on; "" nobody
	Refs  bool   // the body names objects that have the text
	Head  head
	Body  []byte

	// Where it is stored.
	Stream  string
	Stored  uint64 // its sequence in the stream
	Subject string
}

// next is the chain behind a message with events.
func (m *message) next() chain {
	var room [128]byte // for what stands before the body
	b := append(room[:0], m.Prev[:]...)
	b = append(append(b, m.Kind...), ' ')
	b = append(strconv.AppendInt(b, int64(m.Seq), 10), ' ')
	b = append(strconv.AppendInt(b, m.Count, 10), ' ')
	b = append(strconv.AppendBool(b, m.Refs), '\n')
	h := sha256.New()
	h.Write(b)
	h.Write(m.Body)
	return chain(h.Sum(room[:0]))
}

// holdsEvents reports whether the message has a place in the chain.
func (m *message) holdsEvents() bool { return m.Kind == kindBatch || m.Kind == kindBase }

// nats is the message as it is published.
func (m *message) nats(subject string) *nats.Msg {
	out := &nats.Msg{Subject: subject, Data: m.Body, Header: nats.Header{
		fieldKind:  {string(m.Kind)},
		fieldSeq:   {strconv.FormatInt(int64(m.Seq), 10)},
		fieldCount: {strconv.FormatInt(m.Count, 10)},
		fieldEpoch: {strconv.FormatUint(m.Epoch, 10)},
		fieldChain: {m.Chain.String()},
		fieldHead:  {m.Head.text()},
	}}
	if m.Gen > 0 {
		out.Header[fieldGen] = []string{strconv.FormatUint(m.Gen, 10)}
	}
	if m.holdsEvents() {
		out.Header[fieldPrev] = []string{m.Prev.String()}
	}
	if m.Owner != "" {
		out.Header[fieldOwner] = []string{m.Owner}
	}
	if m.Refs {
		out.Header[fieldRefs] = []string{"1"}
	}
	return out
}

// fieldsSize is about how many bytes the header fields take, those of the
// servers included.
func fieldsSize(m *nats.Msg) int {
	n := 256
	for k, vs := range m.Header {
		for _, v := range vs {
			n += len(k) + len(v) + 4
		}
	}
	return n
}

// parseMessage reads the header fields and checks the body against the chain.
// bodyless is for messages of which the servers gave the header fields only.
func parseMessage(h nats.Header, body []byte, bodyless bool) (message, error) {
	m, err := parseBody(h, body, bodyless)
	if err != nil {
		return m, err
	}
	var ok bool
	if m.Head, ok = parseHead(h.Get(fieldHead)); !ok || m.Head.Events != int64(m.Seq)+m.Count {
		return message{}, badField(h, fieldHead)
	}
	return m, nil
}

// maxCounter bounds what counts up: the next one is a number of the same field.
const maxCounter = 1 << 53

// The codes of damage in messages.
const (
	codeFields outcrop.Code = "REALM_FIELDS" // a header field says nothing that it may say
	codeDigest outcrop.Code = "REALM_DIGEST" // the body is not the one that a digest was made of
	codeObject outcrop.Code = "REALM_OBJECT" // an object that has the text, or the list of them, is missing or another one
)

func damage(code outcrop.Code, format string, args ...any) *outcrop.Error {
	return &outcrop.Error{Code: code, Seq: -1, Offset: -1, Err: outcrop.ErrDamaged, Msg: fmt.Sprintf(format, args...)}
}

// ofMessage says which message an error about its content is about.
func ofMessage(stream string, stored uint64, err error) error {
	var e *outcrop.Error
	if !errors.As(err, &e) {
		return fmt.Errorf("message %d of stream %s: %w", stored, stream, err)
	}
	c := *e
	c.Msg = fmt.Sprintf("message %d of stream %s: %s", stored, stream, c.Msg)
	return &c
}

func badField(h nats.Header, field string) error {
	return damage(codeFields, "the header field %s is %s", field, strconv.Quote(clip(h.Get(field))))
}

// parseBody is parseMessage without the head, which only the last message of a
// log is asked for.
func parseBody(h nats.Header, body []byte, bodyless bool) (message, error) {
	m := message{Kind: kind(h.Get(fieldKind)), Owner: h.Get(fieldOwner), Body: body}
	bad := func(field string) (message, error) {
		return message{}, badField(h, field)
	}
	switch m.Kind {
	case kindBatch, kindBase, kindTake, kindFree, kindRemove:
	default:
		return bad(fieldKind)
	}
	seq, err := strconv.ParseInt(h.Get(fieldSeq), 10, 64)
	if err != nil || seq < 0 {
		return bad(fieldSeq)
	}
	m.Seq = outcrop.Seq(seq)
	if m.Count, err = strconv.ParseInt(h.Get(fieldCount), 10, 64); err != nil || m.Count < 0 || m.Count > maxCounter || !m.holdsEvents() && m.Count != 0 || m.Kind == kindBase && seq != 0 {
		return bad(fieldCount)
	}
	if m.Epoch, err = strconv.ParseUint(h.Get(fieldEpoch), 10, 64); err != nil || m.Epoch == 0 || m.Epoch > maxCounter {
		return bad(fieldEpoch)
	}
	if g := h.Get(fieldGen); g != "" {
		if m.Gen, err = strconv.ParseUint(g, 10, 64); err != nil || m.Gen > maxCounter {
			return bad(fieldGen)
		}
	}
	var ok bool
	if m.Chain, ok = parseChain(h.Get(fieldChain)); !ok {
		return bad(fieldChain)
	}
	if m.holdsEvents() {
		if m.Prev, ok = parseChain(h.Get(fieldPrev)); !ok {
			return bad(fieldPrev)
		}
	}
	switch h.Get(fieldRefs) {
	case "":
	case "1":
		m.Refs = true
	default:
		return bad(fieldRefs)
	}
	if !bodyless && m.holdsEvents() && m.next() != m.Chain {
		return message{}, damage(codeDigest, "the body is not the one that its digest in %s was made of", fieldChain)
	}
	return m, nil
}

func clip(s string) string {
	if len(s) > 64 {
		return s[:64] + "…"
	}
	return s
}

// piece is an object that holds a part of a log's text.
type piece struct {
	Object string `json:"object"` // its name in the bucket
	SHA256 string `json:"sha256"` // of its bytes, in hexadecimal
	Bytes  int64  `json:"bytes"`
	Count  int64  `json:"count"` // events
}

// manifest is the body of a message whose text is in objects: one line of JSON
// each, in the order of the text.
func manifest(ps []piece) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	for _, p := range ps {
		enc.Encode(p) // into memory, of strings and numbers
	}
	return b.Bytes()
}

func parseManifest(body []byte, count int64) (ps []piece, err error) {
	for line := range bytes.Lines(body) {
		var p piece
		if err := json.Unmarshal(line, &p); err != nil || p.Object == "" || len(p.SHA256) != 2*sha256.Size || p.Bytes < 0 || p.Count < 0 {
			return nil, damage(codeObject, "line %d of the list of objects: %q", len(ps)+1, clip(string(line)))
		}
		ps = append(ps, p)
		count -= p.Count
	}
	if count != 0 {
		return nil, damage(codeObject, "the objects of the message hold %d events less than it says", count)
	}
	return ps, nil
}
