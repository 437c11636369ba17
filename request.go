package outcrop

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/outcrop-dev/outcrop/internal/jsonwire"
)

// HeaderEvent is the request header in force: the latest request/header.
type HeaderEvent struct {
	Seq    Seq
	Raw    json.RawMessage // data.header as logged
	Reason string
}

// RequestHeader returns the request header in force; ok is false when the log
// has none yet.
func (s *Session) RequestHeader() (h HeaderEvent, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.headerAt < 0 {
		return h, false
	}
	return headerEvent(s.log.At(s.headerAt)), true
}

func headerEvent(ev Event) HeaderEvent {
	reason, _ := jsonwire.Text(lastMember(ev.Data, "reason"))
	return HeaderEvent{Seq: ev.Seq, Raw: lastMember(ev.Data, "header"), Reason: reason}
}

// RequestContext returns the latest request/context; ok is false when the log
// has none yet.
func (s *Session) RequestContext() (c RequestContext, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.contextAt < 0 {
		return c, false
	}
	return ParseRequestContext(s.log.At(s.contextAt).Data), true
}

// ParseRequestContext reads the data of a request/context event.
func ParseRequestContext(data []byte) (c RequestContext) {
	c.Provider, _ = jsonwire.Text(lastMember(data, "provider"))
	c.Model, _ = jsonwire.Text(lastMember(data, "model"))
	c.ContextWindow, _ = jsonwire.Int(lastMember(data, "contextWindow"))
	return c
}

// RequestHeaderAt is the request header in force after the event seq.
func RequestHeaderAt(log Log, seq Seq) (h HeaderEvent, ok bool) {
	ev, ok := lastOfType(log, seq, TypeRequestHeader)
	if !ok {
		return h, false
	}
	return headerEvent(ev), true
}

// RequestContextAt is the latest request/context up to the event seq.
func RequestContextAt(log Log, seq Seq) (c RequestContext, ok bool) {
	ev, ok := lastOfType(log, seq, TypeRequestContext)
	if !ok {
		return c, false
	}
	return ParseRequestContext(ev.Data), true
}

func lastOfType(log Log, seq Seq, t Type) (last Event, ok bool) {
	if n := Seq(log.Len()); seq >= n {
		seq = n - 1
	}
	if d, is := log.(*logData); is {
		if seq < 0 {
			return last, false
		}
		id, known := typeIDs[t]
		for k := d.find(seq); known && k >= 0; k-- {
			if e, at := d.entry(k); e.typ == id && e.flags&flagRow == 0 {
				d.fill(&last, e, at)
				return last, true
			}
		}
		return last, false
	}
	for r := range Prefix(log, int(seq)+1).Records(0) {
		if r.Type == t && r.Run == nil {
			last, ok = r.Event, true
		}
	}
	return last, ok
}

// CanonicalHeader reduces a request header to what counts: config,
// adapterDefaults when it marks anything, system and tools when they are not
// empty.
func CanonicalHeader(raw []byte) json.RawMessage {
	o := newObject(nil)
	if v := lastMember(raw, "config"); v != nil {
		o.raw("config", v)
	}
	if v := lastMember(raw, "adapterDefaults"); marks(v, "reasoningEffort") || marks(v, "maxTokens") {
		o.raw("adapterDefaults", v)
	}
	if v := lastMember(raw, "system"); v != nil && string(v) != `""` {
		o.raw("system", v)
	}
	if v := someTools(raw); v != nil {
		o.raw("tools", v)
	}
	return o.end()
}

func marks(defaults []byte, name string) bool {
	return string(lastMember(defaults, name)) == "true"
}

// someTools is the header's tool list, nil when it is absent or empty.
func someTools(header []byte) []byte {
	v := lastMember(header, "tools")
	if jsonwire.Kind(v) == '[' && emptyArray(v) {
		return nil
	}
	return v
}

// EqualHeaders reports whether two request headers ask for the same: the
// members of config that the format knows, which of them an adapter filled in,
// system, and tools, in order and each by its text.
func EqualHeaders(a, b []byte) bool {
	same := func(a, b []byte, name string) bool {
		va, vb := lastMember(a, name), lastMember(b, name)
		return (va == nil) == (vb == nil) && (va == nil || jsonwire.Equal(va, vb))
	}
	ca, cb := lastMember(a, "config"), lastMember(b, "config")
	for _, name := range [...]string{"provider", "model", "reasoningEffort", "temperature", "maxTokens", "stop"} {
		if !same(ca, cb, name) {
			return false
		}
	}
	da, db := lastMember(a, "adapterDefaults"), lastMember(b, "adapterDefaults")
	for _, name := range [...]string{"reasoningEffort", "maxTokens"} {
		if marks(da, name) != marks(db, name) {
			return false
		}
	}
	return same(a, b, "system") && bytes.Equal(jsonwire.Compact(someTools(a)), jsonwire.Compact(someTools(b)))
}

// digestChain caches the request digest: one block a message.
type digestChain struct {
	header Seq
	msgs   []*Message // what blocks stands for
	blocks [][sha256.Size]byte
}

// RequestDigest identifies the request that the log gives now: the request
// header in force and the messages. It is "v1:" and the hex of h(n), where
// h(0) is the SHA-256 of the header's bytes as logged, and h(i+1) that of h(i)
// followed by the bytes of message i as logged. "" without a header.
//
// It costs one block for each new message; a replace recomputes from its
// position on.
func (s *Session) RequestDigest() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.headerAt < 0 {
		return ""
	}
	c := &s.digest
	if len(c.blocks) == 0 || c.header != s.headerAt {
		c.header, c.msgs = s.headerAt, nil
		c.blocks = append(c.blocks[:0], sha256.Sum256(headerEvent(s.log.At(s.headerAt)).Raw))
	}
	msgs := s.derive()
	same := min(len(msgs), len(c.msgs))
	if s.surface.generation != s.digestGeneration {
		for i := range same {
			if msgs[i] != c.msgs[i] {
				same = i
				break
			}
		}
		s.digestGeneration = s.surface.generation
	}
	c.blocks = c.blocks[:same+1]
	for _, m := range msgs[same:] {
		c.blocks = append(c.blocks, nextBlock(c.blocks[len(c.blocks)-1], m.Raw))
	}
	c.msgs = msgs
	return formatDigest(c.blocks[len(c.blocks)-1])
}

func nextBlock(prev [sha256.Size]byte, raw []byte) (next [sha256.Size]byte) {
	h := sha256.New()
	h.Write(prev[:])
	h.Write(raw)
	h.Sum(next[:0])
	return next
}

func formatDigest(h [sha256.Size]byte) string { return "v1:" + hex.EncodeToString(h[:]) }

// RequestDigestAt is the digest of the request that the log gave after the
// event seq; "" when no request header was in force.
func RequestDigestAt(log Log, seq Seq) (string, error) {
	header, ok := RequestHeaderAt(log, seq)
	if !ok {
		return "", nil
	}
	fold, err := SurfaceAt(log, seq)
	if err != nil {
		return "", err
	}
	return DigestOf(header.Raw, DeriveMessages(log, fold.Nodes)), nil
}

// DigestOf is the request digest of a header and messages.
func DigestOf(header []byte, msgs []*Message) string {
	h := sha256.Sum256(header)
	for _, m := range msgs {
		h = nextBlock(h, m.Raw)
	}
	return formatDigest(h)
}

// LogDigest identifies the events of a log: the hex of the SHA-256 over the
// JSON text of each event and a newline, packed rows expanded. Two stores that
// hold the same events give the same digest.
func LogDigest(log Log) string {
	h := sha256.New()
	var b []byte
	for ev := range Events(log, 0) {
		b = append(ev.AppendJSON(b[:0]), '\n')
		h.Write(b)
	}
	return hex.EncodeToString(h.Sum(nil))
}
