package worker

import (
	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
)

// inputs knows where in a log each input entered its inbox, by message id: so a
// sender that asks again after a lost answer is told of what is there already. It
// reads a log once, as it grows.
type inputs struct {
	upTo outcrop.Seq
	at   map[string]outcrop.Seq
	own  outcrop.Seq // what a seed holds was delivered to another session
}

func newInputs(h outcrop.Header) *inputs {
	in := &inputs{at: map[string]outcrop.Seq{}}
	if h.SeedLength != nil {
		in.own = outcrop.Seq(*h.SeedLength)
	}
	return in
}

// find returns the event with which an input entered, and whether it did.
func (in *inputs) find(log outcrop.Log, id string) (outcrop.Seq, bool) {
	for r := range log.Records(in.upTo) {
		in.upTo = r.Last() + 1
		if r.Run != nil || r.Seq < in.own || r.Type != outcrop.TypeInboxSpliced {
			continue
		}
		for v := range jsonwire.Elements(jsonwire.Get(r.Data, "inserted")) {
			if m, ok := jsonwire.Text(jsonwire.Get(v, "id")); ok {
				if _, there := in.at[m]; !there {
					in.at[m] = r.Seq
				}
			}
		}
	}
	seq, ok := in.at[id]
	return seq, ok
}
