package jetstream

import (
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/store"
)

// head is what the last message of a session says about the whole log, so that a
// listing reads nothing else. Every message carries the head of the log that it
// ends.
type head struct {
	Events  int64  `json:"events"`
	Turns   int    `json:"turns"`
	Open    bool   `json:"open,omitzero"` // the last turn is not closed
	Title   string `json:"title,omitzero"`
	Titled  bool   `json:"titled,omitzero"` // the title was given, and is not the start of a prompt
	Updated int64  `json:"updated"`         // time of the last event, Unix milliseconds
	Bytes   int64  `json:"bytes"`           // of all bodies, objects included
	Step    int    `json:"step,omitzero"`   // messages in the inbox for the next step
	Turn    int    `json:"turn,omitzero"`   // messages in the inbox for the next turn
	// Header is the line of the session's header. It is absent when it is long
	// or holds control characters; the first message of the log has it.
	Header []byte `json:"-"`
}

const (
	// maxHeadTitle and maxHeadHeader bound what each message repeats, in bytes.
	maxHeadTitle  = 1 << 10
	maxHeadHeader = 2 << 10
)

// pending is how many inputs wait in the inbox of the log.
func (h *head) pending() int { return h.Step + h.Turn }

// setHeader notes the header line if it may stand in a header field.
func (h *head) setHeader(line []byte) {
	h.Header = nil
	if len(line) > maxHeadHeader || !utf8.Valid(line) {
		return
	}
	for _, c := range line {
		if c < ' ' || c == 0x7f {
			return
		}
	}
	h.Header = line
}

// folder makes the head of a log that grows.
type folder struct {
	head
	sum store.Summary
}

func newFolder(h head) *folder {
	f := &folder{head: h}
	f.sum = store.Summary{Events: outcrop.Seq(h.Events), Title: h.Title, Turns: h.Turns, OpenTurn: h.Open, Updated: h.Updated}
	f.sum.SetTitled(h.Titled)
	return f
}

func (f *folder) add(r outcrop.Record) {
	f.sum.Add(r)
	if r.Run == nil && r.Type == outcrop.TypeInboxSpliced {
		f.splice(r.Data)
	}
}

// done is the head behind the records.
func (f *folder) done() head {
	h := f.head
	h.Events, h.Turns, h.Open, h.Titled, h.Updated = int64(f.sum.Events), f.sum.Turns, f.sum.OpenTurn, f.sum.Titled(), f.sum.Updated
	h.Title = strings.ToValidUTF8(f.sum.Title, "\uFFFD")
	if len(h.Title) > maxHeadTitle {
		cut := maxHeadTitle
		for !utf8.RuneStart(h.Title[cut]) {
			cut--
		}
		h.Title = h.Title[:cut] + "…"
	}
	return h
}

// splice counts what an agent/inbox/spliced event puts into the inbox and takes
// out of it. What reaches beyond the list is cut to what is there, as the agent
// does.
func (f *folder) splice(data []byte) {
	n := &f.Turn
	switch target := jsonwire.Get(data, "target"); {
	case jsonwire.TextIs(target, string(outcrop.NextStep)):
		n = &f.Step
	case !jsonwire.TextIs(target, string(outcrop.NextTurn)):
		return
	}
	number := func(name string, most int64) int64 {
		v, ok := jsonwire.Int(jsonwire.Get(data, name))
		if !ok {
			v = 0
		}
		return min(max(v, 0), most)
	}
	start := number("start", int64(*n))
	*n -= int(number("removedCount", int64(*n)-start))
	if in := jsonwire.Get(data, "inserted"); jsonwire.Kind(in) == '[' {
		for range jsonwire.Elements(in) {
			*n++
		}
	}
}

// text is the head as it stands in a header field: one line of JSON. The header
// is the line as it is.
func (h *head) text() string {
	b, err := json.Marshal(h)
	if err != nil {
		panic("jetstream: a head of numbers and one string is JSON: " + err.Error())
	}
	if len(h.Header) > 0 {
		b = append(jsonwire.AppendRawMember(b[:len(b)-1], "header", h.Header), '}')
	}
	return string(b)
}

func parseHead(text string) (h head, ok bool) {
	if err := json.Unmarshal([]byte(text), &h); err != nil {
		return head{}, false
	}
	if line := jsonwire.Get([]byte(text), "header"); jsonwire.Kind(line) == '{' {
		h.Header = line
	}
	ok = h.Events >= 0 && h.Turns >= 0 && h.Bytes >= 0 && h.Step >= 0 && h.Turn >= 0
	return h, ok
}
