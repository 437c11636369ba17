package worker

import (
	"time"

	"github.com/outcrop-dev/outcrop"
)

// HappeningKind says what happened.
type HappeningKind string

const (
	Looked HappeningKind = "looked" // the store was looked through: Sessions, Due, Took, Err
	Woken  HappeningKind = "woken"  // a wake came
	Taken  HappeningKind = "taken"  // a session was taken: Took is how long opening it took; Err
	Asked  HappeningKind = "asked"  // a request of another process was answered: Request, Code
	Turned HappeningKind = "turned" // a turn ended: Reason, Took
	Gone   HappeningKind = "gone"   // a session that was worked on was lost to somebody else
	Handed HappeningKind = "handed" // a session was handed back, after Took: Err
)

// Happening is something that a worker did, for metrics.
type Happening struct {
	Kind     HappeningKind
	Session  string
	Took     time.Duration
	Err      error
	Reason   outcrop.ReasonKind
	Request  Kind
	Code     string
	Sessions int
	Due      int
}

// Load is what a worker does at one moment.
type Load struct {
	Waiting  int // sessions that wait for a slot
	Running  int // sessions that hold a slot
	Held     int // sessions that are held, those that wait for an answer included
	Ending   bool
	LookedAt time.Time // when the store was last looked through
	Err      error     // why the last look failed
}

// Load is what the worker does now.
func (w *Worker) Load() Load {
	w.mu.Lock()
	defer w.mu.Unlock()
	return Load{Waiting: len(w.queue), Running: w.running, Held: w.open, Ending: w.ending, LookedAt: w.lookedAt, Err: w.lookErr}
}
