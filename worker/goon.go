package worker

import (
	"strconv"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/message"
	"github.com/outcrop-dev/outcrop/store"
)

// Interrupted says what becomes of a turn that the end of its process cut.
type Interrupted string

const (
	// Continue: a message asks the model to go on, before anything else that
	// waits.
	Continue Interrupted = "continue"
	// End: repair ends the turn as interrupted, and nothing goes on with it.
	End Interrupted = "end"
)

// goOnText is what the model is told. Calls whose outcome is unknown have
// results that say so, and what was visible of a reply that was cut is told by
// the agent.
const goOnText = "The program that worked on this stopped before the work was done, and another one goes on with it. " +
	"Go on where it stopped. Check what was done before you repeat anything that changes something."

// goOnWith is the message that goes on with the last turn of a log. Its id is
// made from that turn, so that it enters once, however often workers die over it.
func goOnWith(log outcrop.Log) message.Message {
	turn := int64(0)
	for seq := outcrop.Seq(log.Len() - 1); seq >= 0; seq-- {
		if ev := log.At(seq); ev.Type == outcrop.TypeTurnStart {
			turn, _ = jsonwire.Int(jsonwire.Get(ev.Data, "turn"))
			break
		}
	}
	return message.Message{
		ID: "go-on-" + strconv.FormatInt(turn, 10), Role: message.User, Content: []message.Block{message.Text(goOnText)},
		Source: message.Source{Kind: "plugin", Plugin: "outcrop", Form: "notice", Summary: "gone on with by another process"},
	}
}

// dueOf folds a whole log.
func dueOf(h outcrop.Header, log outcrop.Log) *store.Due {
	d := store.NewDue(h)
	for r := range log.Records(0) {
		d.Add(r)
	}
	return d
}
