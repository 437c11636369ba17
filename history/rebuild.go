package history

import (
	"errors"
	"fmt"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/message"
)

// Call is a request of a summariser that was made again from a log.
type Call struct {
	Header   []byte     // the request header that was in force, as logged
	Nodes    []llm.Node // what was given to llm.Build
	Digest   string
	Recorded string
}

// ErrNotKept: the log does not say how long the texts of a part were cut, so
// its request cannot be made again.
var ErrNotKept = errors.New("a part of a range was summarised with its texts cut to fit: the log does not keep where")

// RebuildCall makes the request of an outcrop/summarizer-call again, from the
// events up to its prefix and what the call itself holds. The error is
// ErrNotKept for a call of the mode part.
func RebuildCall(log outcrop.Log, seq outcrop.Seq) (c Call, err error) {
	ev := log.At(seq)
	if ev.Type != outcrop.TypeOutcropSummarizer {
		return c, fmt.Errorf("event %d is a %s, not an outcrop/summarizer-call: %w", seq, ev.Type, outcrop.ErrRefused)
	}
	prefix, ok := jsonwire.Int(jsonwire.Get(ev.Data, "prefix"))
	through, ok2 := jsonwire.Int(jsonwire.Get(ev.Data, "through"))
	if !ok || !ok2 || prefix < 0 || prefix >= int64(seq) {
		return c, fmt.Errorf("event %d does not say what it was made from: %w", seq, outcrop.ErrDamaged)
	}
	if h, ok := outcrop.RequestHeaderAt(log, outcrop.Seq(prefix)); ok {
		c.Header = h.Raw
	}
	mode, _ := jsonwire.Text(jsonwire.Get(ev.Data, "mode"))
	var raw []*outcrop.Message
	switch mode {
	case modeWhole, modeCut:
		if raw, c.Nodes, err = upTo(log, outcrop.Seq(prefix), outcrop.Seq(through)); err != nil {
			return c, err
		}
		if mode == modeCut {
			c.Nodes, raw = shortened(c.Nodes, cutHead, cutTail, false), nil
		}
	case modeJoin:
	case modePart:
		return c, ErrNotKept
	default:
		return c, fmt.Errorf("event %d took its messages in a way that is not known, %q: %w", seq, mode, outcrop.ErrUnsupported)
	}
	at := prefix
	for v := range jsonwire.Elements(jsonwire.Get(ev.Data, "extra")) {
		m, err := message.Parse(v)
		if err != nil {
			return c, err
		}
		at++
		c.Nodes = append(c.Nodes, llm.Node{Seq: at, Message: m})
	}
	c.Digest = digestOf(c.Header, c.Nodes, raw)
	c.Recorded, _ = jsonwire.Text(jsonwire.Get(ev.Data, "digest"))
	return c, nil
}

// upTo is the surface at a prefix, from its head up to a node.
func upTo(log outcrop.Log, prefix, through outcrop.Seq) (raw []*outcrop.Message, nodes []llm.Node, err error) {
	fold, err := outcrop.SurfaceAt(log, prefix)
	if err != nil {
		return nil, nil, err
	}
	for _, m := range outcrop.DeriveMessages(log, fold.Nodes) {
		parsed, err := message.Parse(m.Raw)
		if err != nil {
			return nil, nil, err
		}
		raw, nodes = append(raw, m), append(nodes, llm.Node{Seq: int64(m.Seq), Message: parsed})
		if m.Seq == through {
			return raw, nodes, nil
		}
	}
	return nil, nil, fmt.Errorf("node %d was not on the surface at event %d: %w", through, prefix, outcrop.ErrDamaged)
}
