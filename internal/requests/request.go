package requests

import (
	"fmt"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/message"
)

// Request is a request that was made again from a log.
type Request struct {
	Attempt                     // Turn 0: the next request, which was not made yet
	Header   []byte             // data.header as logged
	Messages []*outcrop.Message // as logged
	Digest   string             // of header and messages
}

// Rebuild makes a request again from the events up to its prefix. Without a
// request header in force there it is refused.
func Rebuild(log outcrop.Log, at Attempt) (*Request, error) {
	h, ok := outcrop.RequestHeaderAt(log, at.Prefix)
	if !ok {
		return nil, fmt.Errorf("no request header is in force at event %d: no request can be made from the log", at.Prefix)
	}
	fold, err := outcrop.SurfaceAt(log, at.Prefix)
	if err != nil {
		return nil, err
	}
	r := &Request{Attempt: at, Header: h.Raw, Messages: outcrop.DeriveMessages(log, fold.Nodes)}
	r.Digest = outcrop.DigestOf(h.Raw, r.Messages)
	return r, nil
}

// Typed is the request as a provider takes it.
func (r *Request) Typed() (req llm.Request, err error) {
	if req.Config, req.System, req.Tools, err = llm.ParseHeader(r.Header); err != nil {
		return req, fmt.Errorf("the request cannot be encoded: %v", err)
	}
	msgs, err := Parse(r.Messages)
	if err != nil {
		return req, err
	}
	req.Messages, req.Purpose = llm.Build(msgs), llm.Turn
	req.Turn, req.Step, req.Attempt = r.Turn, r.Step, r.N
	req.MaxOutput, req.Images = r.MaxOutput, r.Images
	return req, nil
}

// Parse decodes derived messages.
func Parse(msgs []*outcrop.Message) ([]llm.Node, error) {
	out := make([]llm.Node, 0, len(msgs))
	for _, m := range msgs {
		p, err := message.Parse(m.Raw)
		if err != nil {
			return nil, fmt.Errorf("the message of event %d: %w", m.Seq, err)
		}
		out = append(out, llm.Node{Seq: int64(m.Seq), Message: p})
	}
	return out, nil
}
