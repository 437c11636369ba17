package facts

import (
	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/agent"
	"github.com/outcrop-dev/outcrop/history/meter"
	"github.com/outcrop-dev/outcrop/internal/brief"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/message"
	"github.com/outcrop-dev/outcrop/store/jsonl"
	"github.com/outcrop-dev/outcrop/viewer/internal/folded"
)

// Session is what one session is about.
type Session struct {
	Schema
	ID            Text          `json:"id"`
	Title         *Text         `json:"title"`
	Cwd           *Text         `json:"cwd"`
	CreatedAt     int64         `json:"createdAt"`
	UpdatedAt     int64         `json:"updatedAt"`
	Header        Text          `json:"header"`
	Parent        *Text         `json:"parent"`
	Format        int64         `json:"format"` // of what is stored: 0, or that of a later dsh
	SeedLength    int64         `json:"seedLength"`
	Depth         int64         `json:"depth"`
	Origin        *Text         `json:"origin"`
	Outcrop       bool          `json:"outcrop"`
	Events        outcrop.Seq   `json:"events"`
	Rows          int           `json:"rows"`
	LastSeq       outcrop.Seq   `json:"lastSeq"`
	Items         int           `json:"items"`
	Appended      int           `json:"appended"`
	Nodes         int           `json:"nodes"`
	Generation    int           `json:"generation"`
	Epoch         int           `json:"epoch"`
	OpenTurn      *OpenTurn     `json:"openTurn"`
	Turns         int           `json:"turns"`
	Model         *Text         `json:"model"`
	Window        *int64        `json:"window"`
	ContextTokens *int64        `json:"contextTokens"`
	Tokens        *Sum          `json:"tokens"`
	Cost          *int64        `json:"costMicroUSD"`
	Unpriced      int64         `json:"unpriced"`
	Bytes         int64         `json:"bytes"`
	Tags          []Text        `json:"tags"`
	Pins          []outcrop.Seq `json:"pins"`
	LostPins      []outcrop.Seq `json:"lostPins"`
	Prompts       []outcrop.Seq `json:"prompts"`
	NoMarkers     bool          `json:"noMarkers"`
	State         string        `json:"state"`
	Reason        *Text         `json:"reason"`
	Writer        Writer        `json:"writer"`
	Status        *Status       `json:"status"`
	Questions     []Question    `json:"questions"`
	Durable       outcrop.Seq   `json:"durable"`
	Cursor        string        `json:"cursor"`
	Masked        int           `json:"masked"`
}

// OpenTurn is where an open turn stands.
type OpenTurn struct {
	Turn int `json:"turn"`
	Step int `json:"step"`
}

// Writer says who writes a session: here, elsewhere or none.
type Writer struct {
	Where  string `json:"where"`
	Holder *Text  `json:"holder"`
}

// Status is what an agent does.
type Status struct {
	Phase    string `json:"phase"`
	Turn     int    `json:"turn"`
	Step     int    `json:"step"`
	Attempt  int    `json:"attempt"`
	Tool     Text   `json:"tool"`
	Canceled bool   `json:"canceled"`
	Tokens   int64  `json:"tokens"`
	Window   int64  `json:"window"`
	Spent    int64  `json:"spentMicroUSD"`
	Unpriced int    `json:"unpriced"`
	Pending  int    `json:"pending"`
	Approve  string `json:"approve"`
}

// StatusOf shows the status of an agent with an approval policy.
func StatusOf(s agent.Status, policy agent.Policy) *Status {
	return &Status{string(s.Phase), s.Turn, s.Step, s.Attempt, Text(s.Tool), s.Canceled, s.Tokens, s.Window, s.SpentMicroUSD, s.Unpriced, s.Pending, string(policy)}
}

// Question is an approval that waits for an answer.
type Question struct {
	ID        string `json:"id"`
	CallID    Text   `json:"callId"`
	Tool      Text   `json:"tool"`
	Class     string `json:"class"`
	Arguments Text   `json:"arguments"`
	Title     Text   `json:"title"`
	Preview   Text   `json:"preview"`
	Diff      bool   `json:"diff"`
	Dir       Text   `json:"dir"`
}

// mostPrompts is how many prompts a session names.
const mostPrompts = 2000

// About fills in what the index of a session knows.
func About(x *folded.Index, v *Veil) *Session {
	h := x.Header
	s := &Session{
		Schema: V1, ID: Text(h.ID), Title: orNull(v.Line(x.Title)), CreatedAt: h.CreatedAt, UpdatedAt: x.Updated,
		Depth: h.DelegationDepth, Origin: orNull(v.Line(h.Origin)), Outcrop: h.Outcrop != 0,
		Events: x.Len(), Rows: len(x.Rows), LastSeq: x.Len() - 1, Items: len(x.Visible), Appended: x.Forest.Columns(),
		Nodes: len(x.Forest.Surface()), Generation: x.Forest.Generation(), Epoch: x.EpochAt(x.Len()), Turns: len(x.TurnsOf),
		Model: orNull(v.Line(x.Model)), Bytes: x.Bytes, NoMarkers: x.NoMarkers, Questions: []Question{}, Tags: []Text{},
		Pins: []outcrop.Seq{}, LostPins: []outcrop.Seq{}, Prompts: append([]outcrop.Seq{}, x.Prompts[max(0, len(x.Prompts)-mostPrompts):]...),
		State: "ok",
	}
	s.Header, _ = v.JSON(h.Line())
	if h.Cwd != nil {
		s.Cwd = pointer(v.Line(*h.Cwd))
	}
	if s.Format = h.Format; h.Format > 0 {
		s.Reason = pointer(v.Line(jsonl.LaterReason(int(h.Format))))
	}
	if h.ParentSession != nil {
		s.Parent = pointer(Text(*h.ParentSession))
	}
	if h.SeedLength != nil {
		s.SeedLength = *h.SeedLength
	}
	if x.Updated == 0 {
		s.UpdatedAt = h.CreatedAt
	}
	if x.Window > 0 {
		s.Window = pointer(x.Window)
	}
	if x.OpenTurn > 0 {
		s.OpenTurn, s.State = &OpenTurn{x.OpenTurn, x.OpenStep}, "open-turn"
	}
	for _, t := range x.Tags {
		s.Tags = append(s.Tags, v.Line(t))
	}
	for _, p := range x.Pins() {
		if p.Held {
			s.Pins = append(s.Pins, p.Seq)
		} else {
			s.LostPins = append(s.LostPins, p.Seq)
		}
	}
	return s
}

// lastReplies is how far back the usage of a reply is looked for.
const lastReplies = 4096

// LastRequest is the size of the last request, as its provider counted it.
func LastRequest(log outcrop.Log) *int64 {
	for seq := outcrop.Seq(log.Len() - 1); seq >= max(0, outcrop.Seq(log.Len()-lastReplies)); seq-- {
		ev := log.At(seq)
		if ev.Type != outcrop.TypeAssistantMessage {
			continue
		}
		if u := message.ParseUsage(jsonwire.Get(ev.Data, "usage")); u != nil {
			if n, ok := meter.PromptTokens(u); ok {
				return &n
			}
		}
		return nil
	}
	return nil
}

// what is one line about an event.
func what(ev outcrop.Event, v *Veil) Text { return v.Line(brief.Event(ev)) }
