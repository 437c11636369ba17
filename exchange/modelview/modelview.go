// Package modelview reads what the model sees of a session: the surface after
// some event, with its messages, and the request header in force. The log is
// read once; what is held of it is what stands on the surface.
//
// Exports that hand a conversation on (requests, other programs' files) start
// from here: who goes on with it must see what the model saw, no more and no
// less.
package modelview

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/exchange/masking"
	"github.com/outcrop-dev/outcrop/exchange/transcript"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/internal/records"
	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/message"
	"github.com/outcrop-dev/outcrop/store"
)

// Node is a node of the surface that says something.
type Node struct {
	Seq         outcrop.Seq
	Time        int64 // of the event, Unix milliseconds
	Type        outcrop.Type
	Message     message.Message
	Usage       *message.Usage // of a reply, nil when the provider did not say
	Interrupted bool
}

// View is a surface.
type View struct {
	Header  outcrop.Header
	Events  int    // how many the view was made from
	Updated int64  // time of the last of them
	Request []byte // header in force: config, system, tools as logged; nil when there is none
	Nodes   []Node // in model order
	Masked  int    // places
	// Fallback: the messages of the log have no surface markers, so that
	// nobody knows what the model saw.
	Fallback bool
	Tail     store.Tail
	Damage   error // why the log could not be read to its end
}

// Options: the zero value is the whole log, masked.
type Options struct {
	Raw    bool
	Before outcrop.Seq // events from this seq on do not count; 0: all count
}

// kept is what is held of an event on the surface.
type kept struct {
	typ  outcrop.Type
	time int64
	data json.RawMessage
}

// Read reads a session. The error is one of opening, of ctx, or a refusal: a log
// whose surface does not fold.
func Read(ctx context.Context, src transcript.Source, o Options) (*View, error) {
	sd, err := src.Open(ctx)
	if err != nil {
		return nil, err
	}
	defer sd.Close()
	v := &View{Header: sd.Header()}
	held := map[outcrop.Seq]kept{}
	in, err := outcrop.NewInspection(v.Header, func(seq outcrop.Seq) []byte { return held[seq].data })
	if err != nil {
		return nil, err
	}
	for r, err := range records.Through(ctx, sd.Records(), o.Before-1) {
		if err != nil {
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			v.Damage = store.Located(err, sd)
			break
		}
		if r.Run != nil {
			if err := in.Add(r); err != nil {
				return nil, store.Located(err, sd)
			}
			v.Updated = r.Run.At(0).Time
			continue
		}
		if err := in.Add(r); err != nil {
			return nil, store.Located(err, sd)
		}
		v.Updated = r.Time
		switch {
		case r.Type == outcrop.TypeRequestHeader:
			v.Request = bytes.Clone(jsonwire.Get(r.Data, "header"))
		case r.Type.Surface():
			// The event shares memory with all that was read around it.
			held[r.Seq] = kept{r.Type, r.Time, bytes.Clone(r.Data)}
			if len(held) > 2*len(in.Nodes())+64 {
				held = still(held, in.Nodes())
			}
		}
	}
	v.Events = in.Len()
	if o.Before > 0 && v.Events > int(o.Before) {
		v.Events = int(o.Before)
	}
	if o.Before == 0 {
		v.Tail = sd.Tail()
	}
	v.Fallback = in.NoMarkers()
	return v, v.fill(held, in.Nodes(), o)
}

func still(held map[outcrop.Seq]kept, nodes []outcrop.Seq) map[outcrop.Seq]kept {
	out := make(map[outcrop.Seq]kept, len(nodes)+64)
	for _, n := range nodes {
		out[n] = held[n]
	}
	return out
}

// fill decodes and masks the nodes.
func (v *View) fill(held map[outcrop.Seq]kept, nodes []outcrop.Seq, o Options) error {
	m := masking.Masker{Raw: o.Raw}
	v.Nodes = make([]Node, 0, len(nodes))
	for _, seq := range nodes {
		k := held[seq]
		raw := []byte(k.data)
		if k.typ == outcrop.TypeAssistantMessage || k.typ == outcrop.TypeToolResult {
			raw = jsonwire.Get(k.data, "message")
		}
		msg, err := message.Parse(raw)
		if err != nil {
			return err
		}
		n := Node{Seq: seq, Time: k.time, Type: k.typ, Message: m.Message(msg)}
		if k.typ == outcrop.TypeAssistantMessage {
			n.Usage = message.ParseUsage(jsonwire.Get(k.data, "usage"))
			n.Interrupted = string(jsonwire.Get(k.data, "interrupted")) == "true"
		}
		if len(msg.Content) == 0 && k.typ != outcrop.TypeAssistantMessage {
			continue // it derives to nothing
		}
		v.Nodes = append(v.Nodes, n)
	}
	if v.Request != nil {
		v.Request = m.JSON(v.Request)
	}
	v.Nodes = slices.Clip(v.Nodes)
	v.Masked = m.Found
	return nil
}

// Messages are the messages as every provider takes them (llm.Build): each call
// with its result, nothing empty, nothing that is not valid.
func (v *View) Messages() []message.Message {
	nodes := make([]llm.Node, len(v.Nodes))
	for i := range v.Nodes {
		nodes[i] = llm.Node{Seq: int64(v.Nodes[i].Seq), Message: v.Nodes[i].Message}
	}
	return llm.Build(nodes)
}

// Config is the configuration in force, with system prompt and tools; zero
// values when the log has no request header.
func (v *View) Config() (cfg llm.Config, system string, tools []llm.Tool) {
	if v.Request != nil {
		cfg, system, tools, _ = llm.ParseHeader(v.Request)
	}
	return cfg, system, tools
}
