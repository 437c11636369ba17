// Package stream makes the live stream of a session, once for all who listen.
//
// One goroutine a session, its pump, looks for what is new and makes a frame of
// it: records of the log, what came to the reply that is being written, and the
// state of the agent. Frames are kept for a while; a listener takes them at its
// own pace, and one that is too slow gets what it missed from the log. So nobody
// waits for a listener, neither the writer of the session nor another listener.
//
//	log -> pump -> frame frame frame -> listener -> bytes
//	 \--------------------------------------^ (what is not kept any more)
//
// Two frames are some time apart, longer when many listen, and what comes at once
// beyond a limit is told as one batch: a fast writer does not make its listeners
// slow each other down.
//
// What an event of the stream holds docs/http.md says.
package stream

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/usage"
	"github.com/outcrop-dev/outcrop/viewer/internal/facts"
	"github.com/outcrop-dev/outcrop/viewer/internal/opened"
)

const (
	// followEvery is how often a log of another process is looked at.
	followEvery = 200 * time.Millisecond
	// statusEvery is how often the status of an agent is looked at.
	statusEvery = 100 * time.Millisecond
	// WriterEvery is how often is looked who writes a session.
	WriterEvery = 2 * time.Second
	// PingEvery is how often a stream says that it is there.
	PingEvery = 10 * time.Second
	// pause lies between two frames at least, and more for many listeners:
	// writing to all of them must leave room for other work.
	pause     = 20 * time.Millisecond
	pauseEach = 250 * time.Microsecond
	mostPause = 40 * time.Millisecond
	// floodEach and mostFlood are the same when more comes than is sent one by
	// one.
	floodEach = 1250 * time.Microsecond
	mostFlood = 250 * time.Millisecond
	// mostSingle is how many records of a frame are sent one by one, and
	// fewSingle how many of them are when many listen: together these get
	// mostCopies. More come as a batch, so that what listeners cost does not
	// grow with what a fast writer writes.
	mostSingle = 64
	fewSingle  = 4
	mostCopies = 800
	mostFrames = 128 // that are kept for those who are slower
	mostKept   = 4 << 20
)

// Running is a session that this process writes.
type Running interface {
	Session() *outcrop.Session
	// Durable is the first seq that is not synced.
	Durable() outcrop.Seq
	// Status is what its agent does.
	Status() *facts.Status
	// Questions are the approvals that wait.
	Questions() []facts.Question
	// Answered are the questions that do not wait any more, since the last
	// call.
	Answered() []Answered
}

// Answered is a question that waits no more.
type Answered struct {
	ID      string `json:"id"`
	Outcome string `json:"outcome"`
}

// Options of a Set.
type Options struct {
	Open *opened.Sessions
	// Running is the session as this process writes it, nil when it does not.
	Running func(id string) Running
	// Writer says who writes a session.
	Writer func(ctx context.Context, id string) facts.Writer
	// Spawn starts a function in the background, until its ctx ends; false when
	// nothing is started any more.
	Spawn  func(f func(ctx context.Context)) bool
	Price  usage.Price
	Now    func() int64 // Unix milliseconds
	Logger *slog.Logger
}

// Set are the pumps that run: one for each session that somebody listens to.
type Set struct {
	o Options

	mu    sync.Mutex
	pumps map[string]*pump
}

// New makes an empty set.
func New(o Options) *Set { return &Set{o: o, pumps: map[string]*pump{}} }

// Watched reports whether somebody listens to a session.
func (s *Set) Watched(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pumps[id] != nil
}

// Nudge makes the pump of a session look at once, when there is one. It never
// waits.
func (s *Set) Nudge(id string) {
	s.mu.Lock()
	p := s.pumps[id]
	s.mu.Unlock()
	if p != nil {
		p.nudge()
	}
}

// Mode is a way in which a stream can be had.
type Mode int

const (
	ShowSecrets Mode = 1 << iota // nothing is masked
	WithDrafts                   // with the reply that is being written
	modes       = 4
)

// ring are the last frames of one mode.
type ring struct {
	listeners int
	frames    []frame
	first     uint64 // number of frames[0]
	bytes     int
	more      chan struct{} // closed when a frame comes
	drafted   drafted       // what the draft is to the listeners
	fresh     bool          // the first listener just came
}

// frame is what came at one time.
type frame struct {
	parts []part
	rest  []byte // what has no place in the log
}

// part is one event of the stream that has a place in the log.
type part struct {
	last  outcrop.Seq
	reset bool
	batch bool
	b     []byte
}

func (f *frame) size() int {
	n := len(f.rest)
	for i := range f.parts {
		n += len(f.parts[i].b)
	}
	return n
}

func (r *ring) add(f frame) {
	r.frames = append(r.frames, f)
	r.bytes += f.size()
	for len(r.frames) > 1 && (len(r.frames) > mostFrames || r.bytes > mostKept) {
		r.bytes -= r.frames[0].size()
		r.frames[0] = frame{}
		r.frames = r.frames[1:]
		r.first++
	}
	if r.more != nil {
		close(r.more)
	}
	r.more = make(chan struct{})
}

// join lets one more listener in.
func (r *ring) join() {
	if r.listeners++; r.listeners == 1 {
		// What others have seen of a draft is nothing to these.
		r.first += uint64(len(r.frames))
		r.frames, r.bytes, r.drafted, r.fresh = nil, 0, drafted{}, true
		r.more = make(chan struct{})
	}
}
