// Package store is the contract between sessions and the places where their
// logs live, and the one implementation of everything that is the same in all
// of them: opening with repair, group commit, forks and copies.
//
// # Two layers
//
// A Store is a place with many sessions: files in a folder, a database, a
// server, memory. What it must do is small: hand out one Lease a session, read,
// list, and publish a whole log at once. storetest.Run is the contract as
// tests.
//
// A Live session joins lease, log, repair, session and writer. It comes from
// Create and Open, and is the same whatever the store is.
//
// # What durable means
//
// An event is acknowledged when a Flush that covers it returned nil. Then it
// survives the end of the process and, as far as the store's medium keeps what
// it has synced, a loss of power. The header goes with the first batch: before
// the first write of a new session the store holds nothing of it.
//
// Without a Flush, a committed event is written within WriteWithin of the
// first that is not written yet and synced within SyncWithin. A batch is
// everything that is committed when its write begins; a group of
// Session.AppendAll is committed at once, so no batch ends inside a group.
//
// # When a write goes wrong
//
// The batch is taken back, so that the stored log ends where it ended before,
// the events stay in the session, Flush and Err tell the reason, and the writer
// tries again, at each Flush and by itself with growing pauses. When more than
// MaxPending bytes of events wait meanwhile, appends are vetoed. Some errors end
// this session's writing for good, because going on could destroy the log: a
// failed sync (ErrSync), a log that somebody else changed (ErrMoved), a new
// session whose id was taken meanwhile (ErrExists, ErrLocked). Then every append
// but a closer is vetoed with the reason.
//
// # One writer
//
// A session has one lease at a time; a second one is refused with ErrLocked
// and the holder's name. Reading never needs a lease, never writes, and sees a
// whole prefix of the log.
package store

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/outcrop-dev/outcrop"
)

const (
	// WriteWithin is the longest time that a committed event waits for its
	// write.
	WriteWithin = 200 * time.Millisecond
	// SyncWithin is the longest time that a committed event waits to be synced
	// when nothing asks for it earlier.
	SyncWithin = 2 * time.Second
	// MaxPending is how many bytes of events may wait for a write that does not
	// succeed before appends are vetoed.
	MaxPending = 64 << 20
)

// Reasons of this package, for errors.Is. ErrNotFound, ErrDamaged, ErrReadOnly
// and ErrUnsupported of package outcrop are used too.
var (
	// ErrExists: a session with this id is in the store already.
	ErrExists = errors.New("session exists already")
	// ErrLocked: another writer holds the session. errors.As finds a *LockedError
	// with its name.
	ErrLocked = errors.New("session is in use")
	// ErrMoved: the stored log is not what this writer left: another program
	// wrote, replaced or removed it. Nothing was written.
	ErrMoved = errors.New("log was changed by another program")
	// ErrSync: a sync did not succeed. What the medium holds is unknown, so this
	// process never writes that log again.
	ErrSync = errors.New("sync did not succeed")
	// ErrClosed: the live session was closed.
	ErrClosed = errors.New("session is closed")
	// ErrAmbiguous: a target fits more than one session.
	ErrAmbiguous = errors.New("more than one session fits")
	// ErrEncoding: the store keeps its logs in another encoding than the one
	// asked for.
	ErrEncoding = errors.New("store has another encoding")
)

// Holder names who holds a lease. Members that are unknown are zero.
type Holder struct {
	PID     int    `json:"pid,omitzero"`
	Host    string `json:"host,omitzero"`
	Program string `json:"program,omitzero"`
	Since   int64  `json:"since,omitzero"` // Unix milliseconds
}

// LockedError says who holds a session. It answers to ErrLocked.
type LockedError struct {
	Holder Holder
}

// Store is a place where logs live. All methods may be called from any
// goroutine and from several processes at once.
type Store interface {
	// Address is the text that names the store on a command line.
	Address() string

	// Create reserves the place of a new session and returns its lease, with
	// nothing stored: the first Append publishes the header and the first batch
	// together. ErrExists when the id is taken, now or when it is published.
	Create(ctx context.Context, h outcrop.Header) (Lease, error)

	// Acquire takes the lease of a stored session. ErrNotFound; ErrLocked;
	// ErrReadOnly and ErrUnsupported for a log that can be read but not
	// continued; ErrDamaged and header codes as reading gives them. Damage
	// behind the header is found by Lease.Records.
	Acquire(ctx context.Context, id string) (Lease, error)

	// Put publishes a complete log at once: all of it or nothing, durable on
	// return. Before it is published it is read back and compared with what recs
	// yielded. Nothing is left behind by an error, which may be one that recs
	// yields. ErrExists when the id is taken.
	Put(ctx context.Context, h outcrop.Header, recs iter.Seq2[outcrop.Record, error]) error

	// Read opens a log for reading as it is stored. It needs no lease, sees what
	// was written when it was called, and changes nothing.
	Read(ctx context.Context, id string) (Stored, error)

	// List returns every session, newest first; one that cannot be read is in
	// the list with its reason. The error is about the store as a whole.
	List(ctx context.Context, o ListOptions) ([]Info, error)

	// Close releases what the store itself holds. Leases and logs that are open
	// are closed on their own, before.
	Close() error
}

// PrefixCopier is a store that can copy the head of a log without decoding it.
// Fork uses it where it is there.
type PrefixCopier interface {
	// PutPrefix publishes a new log, as Put does, that begins with the stored
	// bytes of parent's events through the event with the seq through, or of all
	// of them when through is negative; what is copied is not judged. header
	// makes its header from the number of copied events, finish the events that
	// follow them. copied is false, with nothing written, when through is not on
	// a border of what is stored as one piece, or when the bytes near it do not
	// show that no turn is open there.
	PutPrefix(ctx context.Context, parent string, through outcrop.Seq,
		header func(parent outcrop.Header, length outcrop.Seq) outcrop.Header,
		finish func(length outcrop.Seq, last outcrop.Type) []outcrop.Event) (copied bool, err error)
}

// Lease is the right to write one log. One goroutine uses it. After ErrMoved or
// ErrSync only Close may be called.
type Lease interface {
	// Header is the header as stored, or as given to Create.
	Header() outcrop.Header

	// Records yields the stored log in order, once, before the first Append.
	// Events saved from a torn tail are included, at the end. An error ends it:
	// the log is damaged and must not be continued. A log that is new has none.
	Records() iter.Seq2[outcrop.Record, error]

	// Tail is what Records found at the end of the log. Nothing is cut before
	// the first Append.
	Tail() Tail

	// Append writes one batch behind what is stored. The first Append of a new
	// session publishes header and batch together, durably; the first one of a
	// log with a torn tail cuts the tail away, after its bytes were put aside,
	// durably. Otherwise the batch is durable only when Sync returned nil;
	// readers may see it earlier. After an error the log ends where it ended
	// before the call.
	Append(ctx context.Context, recs iter.Seq[outcrop.Record]) error

	// Sync makes every batch durable. An error is ErrSync.
	Sync(ctx context.Context) error

	// Close hands the lease back. It writes nothing.
	Close() error
}

// Stored is a log opened for reading. One goroutine uses it.
type Stored interface {
	Header() outcrop.Header
	// Path is the file that holds the log, or "".
	Path() string
	// Records yields the log in order, once, with the events saved from a torn
	// tail at the end. It stops quietly at a torn tail, and with an error at
	// damage that is none; what came before the error is good.
	Records() iter.Seq2[outcrop.Record, error]
	// Tail is what Records found at the end; valid when Records is done.
	Tail() Tail
	Close() error
}

// Placed is a Stored or a Lease that knows where in a file its records stand.
type Placed interface {
	// Stopped is the place of the record at which the reader of Records stopped
	// before the end; line 0 when it did not.
	Stopped() (path string, line int, offset int64)
}

// Tail says where a stored log ends.
type Tail struct {
	Torn      bool
	Offset    int64 // bytes of the file that stay; the cut is made here
	Bytes     int64 // bytes behind the cut
	Recovered int   // events that Records yielded from behind the cut; the first batch stores them again
	Reason    error // why the tail is torn
}

// ListOptions: the zero value reads as little as possible.
type ListOptions struct {
	// Full reads whole logs: Title, Turns and Events are known, and damage in
	// the middle is found.
	Full bool
}

// State is the condition of a stored session.
type State string

// Every state but StateOK comes with a reason.
const (
	StateOK       State = "ok"
	StateOpenTurn State = "open-turn" // the last turn was not closed; opening repairs it
	StateDamaged  State = "damaged"   // cannot be continued; Read gives what is good
	StateNewer    State = "newer"     // of a newer format or generation; at most readable
	StateLocked   State = "locked"    // a writer holds it
)

// Info describes one stored session.
type Info struct {
	ID        string
	Title     string // "" when unknown or none
	Cwd       string
	CreatedAt int64 // Unix milliseconds
	UpdatedAt int64 // time of the last event, else of the file; Unix milliseconds
	Events    int64 // -1 when unknown
	Turns     int   // -1 when unknown
	Bytes     int64 // as stored
	State     State
	Reason    string
	Path      string         // file or folder the entry stands for; "" when the store has none
	Header    outcrop.Header // zero when it could not be read
	Due       *Due           // what is left to be done; nil where the log would have to be read for it
}
