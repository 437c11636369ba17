package facts

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strconv"
	"strings"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/brief"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/internal/requests"
	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/viewer/internal/folded"
	"github.com/outcrop-dev/outcrop/viewer/internal/strata"
)

const (
	// MostRequests is the longest list of requests, MostMessages the longest
	// list of messages of one.
	MostRequests = 500
	MostMessages = 2000
	// mostRaw is how much text of messages one answer has, in bytes.
	mostRaw = 64 << 20
)

// Request is a line about a request.
type Request struct {
	Index     int         `json:"index"`
	ID        string      `json:"id"`
	Turn      int         `json:"turn"`
	Step      int         `json:"step"`
	Attempt   int         `json:"attempt"`
	Prefix    outcrop.Seq `json:"prefix"`
	OK        bool        `json:"ok"`
	Outcome   *string     `json:"outcome"`
	Recorded  bool        `json:"recorded"`
	Encoder   *Text       `json:"encoder"`
	Model     *Text       `json:"model"`
	Time      int64       `json:"time"`
	MS        *int64      `json:"ms"`
	Usage     *Usage      `json:"usage"`
	Cost      *int64      `json:"costMicroUSD"`
	Inherited bool        `json:"inherited"`
	Seq       *int64      `json:"seq"`
	Break     *Break      `json:"break"`
}

// Break is why a request could not begin as the one before it did.
type Break struct {
	Why      string        `json:"why"`
	Edits    []outcrop.Seq `json:"edits"`
	Foretold *int64        `json:"foretold"`
	Held     *int64        `json:"held"`
	Read     *int64        `json:"read"`
	Lost     *int64        `json:"lost"`
	Cost     *int64        `json:"costMicroUSD"`
}

func requestOf(i int, c *folded.Call, v *Veil) Request {
	r := Request{Index: i, ID: idOf(c), Turn: c.Turn, Step: c.Step, Attempt: c.N, Prefix: c.Prefix, OK: c.OK,
		Recorded: c.Recorded != "", Encoder: orNull(v.Line(c.Encoder)), Time: c.Started, MS: knownOrNull(c.MS())}
	if c.Found {
		u := &c.Usage
		r.Outcome, r.Usage, r.Cost, r.Inherited = pointer(string(u.Outcome)), usageOf(u.Usage), u.Cost, u.Inherited
		r.Seq = pointer(int64(u.Seq))
		if u.Model != "" {
			r.Model = pointer(v.Line(u.Provider + ":" + u.Model))
		}
	}
	if b := c.Break; b != nil {
		r.Break = &Break{b.Why, append([]outcrop.Seq{}, b.Edits...), knownOrNull(b.Foretold), knownOrNull(b.Held), knownOrNull(b.Read), knownOrNull(b.Lost), knownOrNull(b.Cost)}
	}
	return r
}

func idOf(c *folded.Call) string {
	return strconv.Itoa(c.Turn) + "." + strconv.Itoa(c.Step) + "." + strconv.Itoa(c.N)
}

// Requests is a part of the list of requests.
type Requests struct {
	Schema
	From     int       `json:"from"`
	Total    int       `json:"total"`
	Requests []Request `json:"requests"`
	Masked   int       `json:"masked"`
}

// RequestsOf lists the requests of an account.
func RequestsOf(a *folded.Account, from, limit int, v *Veil) Requests {
	lo, hi := windowOf(from, limit, len(a.Calls))
	r := Requests{Schema: V1, From: lo, Total: len(a.Calls), Requests: []Request{}}
	for i := lo; i < hi; i++ {
		r.Requests = append(r.Requests, requestOf(i, &a.Calls[i], v))
	}
	r.Masked = v.Masked
	return r
}

// Rebuilt is a request that was made again from the log.
type Rebuilt struct {
	Schema
	Request       *Request  `json:"request"`
	Header        Text      `json:"header"`
	HeaderSeq     int64     `json:"headerSeq"`
	Exact         bool      `json:"exact"`
	System        Text      `json:"system"`
	Tools         []Tool    `json:"tools"`
	Config        Text      `json:"config"`
	Total         int       `json:"total"`
	From          int       `json:"from"`
	Messages      []Message `json:"messages"`
	Digest        string    `json:"digest"`
	Recorded      *Text     `json:"recorded"`
	Match         *bool     `json:"match"`
	H0            string    `json:"h0"`
	Before        *string   `json:"before"`
	Same          int       `json:"same"`
	HeaderChanged bool      `json:"headerChanged"`
	Removed       []Node    `json:"removed"`
	RemovedTotal  int       `json:"removedTotal"`
	Added         int       `json:"added"`
	Tokens        Shares    `json:"tokens"`
	Masked        int       `json:"masked"`
}

// Tool is a tool that a request offers.
type Tool struct {
	Name Text `json:"name"`
	Raw  Text `json:"raw"`
}

// Message is a message of a request.
type Message struct {
	I      int         `json:"i"`
	Seq    outcrop.Seq `json:"seq"`
	Role   Text        `json:"role"`
	Kind   string      `json:"kind"`
	What   Text        `json:"what"`
	Tokens int64       `json:"tokens"`
	Bytes  int         `json:"bytes"`
	Hash   string      `json:"hash"`
	Exact  bool        `json:"exact"`
	Raw    *Text       `json:"raw,omitzero"`
}

// Shares are the estimated tokens of a request by where they come from.
type Shares struct {
	System     int64 `json:"system"`
	Tools      int64 `json:"tools"`
	User       int64 `json:"user"`
	Assistant  int64 `json:"assistant"`
	Tool       int64 `json:"tool"`
	Context    int64 `json:"context"`
	Checkpoint int64 `json:"checkpoint"`
}

func (s *Shares) of(k strata.Kind) *int64 {
	return [...]*int64{&s.User, &s.Assistant, &s.Tool, &s.Context, &s.Checkpoint}[k]
}

// ErrNoRequest: the log has no such request.
var ErrNoRequest = errors.New("no such request")

// FindCall finds a call by its id, last or next. Next is nil, and ok.
func FindCall(a *folded.Account, id string) (c *folded.Call, index int, err error) {
	switch id {
	case "next":
		return nil, len(a.Calls), nil
	case "last":
		if len(a.Calls) > 0 {
			return &a.Calls[len(a.Calls)-1], len(a.Calls) - 1, nil
		}
		return nil, 0, ErrNoRequest
	}
	// A log may have one number twice; the last one counts, as it does when
	// calls are paired with their usage.
	for i := len(a.Calls) - 1; i >= 0; i-- {
		if idOf(&a.Calls[i]) == id {
			return &a.Calls[i], i, nil
		}
	}
	return nil, 0, ErrNoRequest
}

// Ask says which part of a request is asked for.
type Ask struct {
	From, Limit int
	Raw         bool
}

// RebuiltOf makes a request again, with the difference from the one before it.
func RebuiltOf(log outcrop.Log, a *folded.Account, c *folded.Call, index int, q Ask, v *Veil) (*Rebuilt, error) {
	at := requests.Next(outcrop.Seq(log.Len() - 1))
	if c != nil {
		at = c.Attempt
	}
	req, err := requests.Rebuild(log, at)
	if err != nil {
		return nil, err
	}
	r := &Rebuilt{Schema: V1, HeaderSeq: -1, Total: len(req.Messages), Messages: []Message{}, Digest: req.Digest, Tools: []Tool{}, Removed: []Node{}}
	if c != nil {
		r.Request = pointer(requestOf(index, c, v))
	}
	if h, ok := outcrop.RequestHeaderAt(log, at.Prefix); ok {
		r.HeaderSeq = int64(h.Seq)
	}
	if at.Recorded != "" {
		r.Recorded, r.Match = pointer(v.Line(at.Recorded)), pointer(at.Recorded == req.Digest)
	}
	r.header(req.Header, v)
	r.messages(log, req.Messages, q, v)
	if index > 0 && index <= len(a.Calls) {
		r.compare(log, &a.Calls[index-1], req, v)
	}
	r.Masked = v.Masked
	return r, nil
}

func (r *Rebuilt) header(raw []byte, v *Veil) {
	r.Header, r.Exact = v.JSON(raw)
	r.Config, _ = v.JSON(orEmpty(jsonwire.Get(raw, "config")))
	system := text(raw, "system")
	r.System = v.Text(system)
	if system != "" {
		r.Tokens.System = llm.EstimateText(system)
	}
	for t := range jsonwire.Elements(jsonwire.Get(raw, "tools")) {
		masked, _ := v.JSON(t)
		r.Tools = append(r.Tools, Tool{v.Line(text(t, "name")), masked})
		r.Tokens.Tools += llm.EstimateText(string(t))
	}
}

func orEmpty(raw []byte) []byte {
	if raw == nil {
		return []byte("{}")
	}
	return raw
}

// messages makes the chain of hashes, and shows a part of the messages.
func (r *Rebuilt) messages(log outcrop.Log, list []*outcrop.Message, q Ask, v *Veil) {
	h, _ := outcrop.RequestHeaderAt(log, outcrop.Seq(r.HeaderSeq))
	sum := sha256.Sum256(h.Raw)
	r.H0 = hex.EncodeToString(sum[:])
	lo, hi := windowOf(q.From, q.Limit, len(list))
	r.From = lo
	room := mostRaw
	for i, m := range list {
		d := sha256.New()
		d.Write(sum[:])
		d.Write(m.Raw)
		d.Sum(sum[:0])
		ev := log.At(m.Seq)
		kind, tokens := folded.KindOf(ev), folded.Tokens(ev)
		*r.Tokens.of(kind) += tokens
		if i < lo || i >= hi {
			continue
		}
		out := Message{I: i, Seq: m.Seq, Role: v.Line(string(m.Role)), Kind: kind.String(), What: v.Line(brief.Event(ev)),
			Tokens: tokens, Bytes: len(m.Raw), Hash: hex.EncodeToString(sum[:])}
		if q.Raw && len(m.Raw) <= room {
			room -= len(m.Raw)
			raw, exact := v.JSON(m.Raw)
			out.Raw, out.Exact = &raw, exact
		}
		r.Messages = append(r.Messages, out)
	}
}

// compare tells the request from the one before it.
func (r *Rebuilt) compare(log outcrop.Log, before *folded.Call, req *requests.Request, v *Veil) {
	old, err := requests.Rebuild(log, before.Attempt)
	if err != nil {
		return // a log may begin to have a request header late
	}
	r.Before = pointer(idOf(before))
	r.HeaderChanged = !outcrop.EqualHeaders(old.Header, req.Header)
	for r.Same < len(old.Messages) && r.Same < len(req.Messages) && old.Messages[r.Same].Seq == req.Messages[r.Same].Seq {
		r.Same++
	}
	r.Added, r.RemovedTotal = len(req.Messages)-r.Same, len(old.Messages)-r.Same
	for _, m := range old.Messages[r.Same:] {
		if len(r.Removed) == MostRequests {
			break
		}
		ev := log.At(m.Seq)
		r.Removed = append(r.Removed, Node{Seq: m.Seq, Kind: folded.KindOf(ev).String(), Tokens: folded.Tokens(ev), What: what(ev, v)})
	}
}

// ParseDiff reads A..B.
func ParseDiff(s string) (a, b outcrop.Seq, ok bool) {
	from, to, ok := strings.Cut(s, "..")
	x, err := strconv.ParseInt(from, 10, 64)
	y, err2 := strconv.ParseInt(to, 10, 64)
	return outcrop.Seq(x), outcrop.Seq(y), ok && err == nil && err2 == nil
}
