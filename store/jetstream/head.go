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
	Cut     bool   `json:"cut,omitzero"`    // the last turn has no complete answer: store.Due
	Cuts    int    `json:"cuts,omitzero"`   // processes in a row that died over a turn: store.Due
	// Header is the line of the session's header. It is absent when it is long
	// or holds control characters; the first message of the log has it.
	Header []byte `json:"-"`
}

const (
	// maxHeadTitle and maxHeadHeader bound what each message repeats, in bytes.
	maxHeadTitle  = 1 << 10
	maxHeadHeader = 2 << 10
)

// due is what the log leaves to be done.
func (h *head) due() *store.Due {
	return &store.Due{NextStep: h.Step, NextTurn: h.Turn, Open: h.Open, Cut: h.Cut, Cuts: h.Cuts}
}

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
	sum  store.Summary
	left *store.Due
}

func newFolder(h head, of outcrop.Header) *folder {
	f := &folder{head: h, left: h.due()}
	f.left.For(of)
	f.sum = store.Summary{Events: outcrop.Seq(h.Events), Title: h.Title, Turns: h.Turns, OpenTurn: h.Open, Updated: h.Updated}
	f.sum.SetTitled(h.Titled)
	return f
}

func (f *folder) add(r outcrop.Record) {
	f.sum.Add(r)
	f.left.Add(r)
}

// done is the head behind the records.
func (f *folder) done() head {
	h := f.head
	h.Events, h.Turns, h.Open, h.Titled, h.Updated = int64(f.sum.Events), f.sum.Turns, f.sum.OpenTurn, f.sum.Titled(), f.sum.Updated
	h.Step, h.Turn, h.Cut, h.Cuts = f.left.NextStep, f.left.NextTurn, f.left.Cut, f.left.Cuts
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
	ok = h.Events >= 0 && h.Turns >= 0 && h.Bytes >= 0 && h.Step >= 0 && h.Turn >= 0 && h.Cuts >= 0
	return h, ok
}
