package worker

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/store"
)

// Bus is how processes that share a store reach each other: whoever holds a
// session answers for it, and wakes tell workers where there may be work. Nothing
// depends on it for being right: what a bus loses is found in the logs. All
// methods may be called from any goroutine.
type Bus interface {
	// Ask puts a request to whoever answers for a session, and waits for the
	// reply. store.ErrNobody when nobody does, or nobody says so in time. No error
	// says that the request was not carried out.
	Ask(ctx context.Context, session string, r Request) (Reply, error)

	// Answer answers for a session until stop is called, each request on a
	// goroutine of its own; stop waits for those that are being answered.
	Answer(session string, answer func(ctx context.Context, r Request) Reply) (stop func(), err error)

	// Wake and Wakes are those of store.Courier.
	Wake(ctx context.Context, session string, each bool) error
	Wakes(f func(session string, one bool)) (stop func(), err error)
}

// BusOf is the bus of a store, nil where its processes cannot reach each other.
func BusOf(ctx context.Context, st store.Store) (Bus, error) {
	r, ok := st.(store.Reachable)
	if !ok {
		return nil, nil
	}
	c, err := r.Courier(ctx)
	if err != nil {
		return nil, err
	}
	return Over(c), nil
}

// Over makes a bus of a courier: requests and replies are JSON.
func Over(c store.Courier) Bus { return over{c} }

type over struct{ store.Courier }

func (o over) Ask(ctx context.Context, session string, r Request) (reply Reply, err error) {
	question, err := jsonwire.Marshal(r)
	if err != nil {
		return reply, err
	}
	b, err := o.Courier.Ask(ctx, session, question)
	if err != nil {
		return reply, err
	}
	if err := jsonwire.Unmarshal(b, &reply); err != nil {
		return Reply{}, fmt.Errorf("the reply cannot be read: %w", err)
	}
	return reply, nil
}

func (o over) Answer(session string, answer func(ctx context.Context, r Request) Reply) (func(), error) {
	return o.Courier.Answer(session, func(ctx context.Context, question []byte) []byte {
		return answerTo(ctx, question, answer)
	})
}

// answerTo answers a question as it came.
func answerTo(ctx context.Context, question []byte, answer func(ctx context.Context, r Request) Reply) []byte {
	var r Request
	reply := Reply{Code: CodeRefused}
	if err := jsonwire.Unmarshal(question, &r); err != nil {
		reply.Text = "the request cannot be read: " + err.Error()
	} else {
		reply = answer(ctx, r)
	}
	b, err := jsonwire.Marshal(reply)
	if err != nil { // a text that is no UTF-8
		b, _ = jsonwire.Marshal(Reply{Code: CodeFailed, Text: "the reply cannot be written"})
	}
	return b
}

// Kind says what a Request is for.
type Kind string

const (
	// Deliver puts a message at the end of the inbox, Steer where the running
	// turn's next step takes it. The reply comes when it is durable.
	Deliver Kind = "deliver"
	Steer   Kind = "steer"
	// Cancel ends the running turn and drops what is pending.
	Cancel Kind = "cancel"
	// Questions asks for the calls that wait for approval, Decide answers one.
	Questions Kind = "questions"
	Decide    Kind = "decide"
	// Release asks the holder to hand the session over: its turn is stopped and
	// gone on with elsewhere.
	Release Kind = "release"
)

// Request is what is asked of the holder of a session.
type Request struct {
	Kind Kind `json:"kind"`
	// Message is that of Deliver and Steer, as a log has it, with an id.
	Message json.RawMessage `json:"message,omitempty"`
	// Question is what Decide answers: the id of the question or of its call.
	Question string `json:"question,omitempty"`
	Allow    bool   `json:"allow,omitempty"`
	Reason   string `json:"reason,omitempty"` // told to the model when Allow is false
	// From names who asks, for logs.
	From string `json:"from,omitempty"`
}

// Reply answers a Request. Code is empty when it was carried out.
type Reply struct {
	Code string `json:"code,omitempty"` // see the Code constants
	Text string `json:"text,omitempty"` // what is wrong, for people

	Seq       outcrop.Seq `json:"seq"`             // of the event that holds the input
	Known     bool        `json:"known,omitempty"` // it was there before
	Canceled  bool        `json:"canceled,omitempty"`
	Dropped   int         `json:"dropped,omitempty"`
	Questions []Question  `json:"questions,omitempty"`
	By        string      `json:"by,omitempty"` // name of the holder
}

// Codes of a Reply.
const (
	CodeLeaving  = "LEAVING"  // the holder hands the session back: ask again
	CodeRefused  = "REFUSED"  // the request cannot be carried out, now or later
	CodeFull     = "FULL"     // too much is pending
	CodeFailed   = "FAILED"   // it may be carried out when it is asked again
	CodeNotAsked = "NOTASKED" // no such question waits
)

// Question is a call that waits for approval.
type Question struct {
	ID        string `json:"id"`
	CallID    string `json:"callId"`
	Tool      string `json:"tool"`
	Class     string `json:"class"`
	Arguments string `json:"arguments"`
	Title     string `json:"title"`
	Body      string `json:"body"`
	Dir       string `json:"dir,omitempty"`
}
