// Package jetstream keeps sessions in NATS JetStream, a replicated log, so that
// many machines share them.
//
// A realm is what a store is here: some streams, over which the sessions are
// spread by the hash of their id, a record of what was fixed when it was made, the
// keys of the workers that are alive, and a bucket of objects. docs/realm.md says
// what is stored, byte by byte.
//
// # Messages
//
// A session is one subject. A message on it is one batch: the lines that a log
// file would have, as frames of a .jsonl.zstd file, so that the bodies of a
// session one behind the other are its log file. Header fields say the first seq,
// the number of events, the epoch, the owner, a digest chain, and the head: what a
// listing shows of the whole log. A batch that does not fit into a message goes
// into the object bucket first, and the message names it. A batch is never split.
//
// # Durability
//
// Each message is published with the sequence of the message that its writer
// believes to be the subject's last one. That is the fence: the servers refuse it
// when it is not. A batch is durable when a majority of the replicas has it; that
// they have it on their disks is for the servers' own setting (sync_interval:
// always), which Check looks at.
//
// One message of a session is under way at a time, because the fence of the next
// one is the sequence that the servers give to it. What comes meanwhile is the next
// batch. Append returns when the message is under way, Sync when it is
// acknowledged.
//
// When an acknowledgement does not come, the writer asks the leader of the stream
// for the last message of the subject. Is it the very one (by its digest chain and
// epoch), it is acknowledged; is it still the expected one, the message is
// published again with the same expected sequence, so that at most one copy is
// ever stored; is it another one, the message right behind the expected one says
// whether ours was stored before.
//
// # One writer
//
// Who opens a session publishes a take message with the next epoch, behind the
// last message it saw, and reads the log when that is acknowledged. From then on
// the fence refuses every message of the epoch before. A session is in use when
// the owner of its last message has a key among the workers, which expires with
// the realm's lease unless it is renewed; that is a courtesy between writers, and
// nothing more depends on it.
package jetstream

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/store"
)

// Options of a store. The zero value is right for servers that let everybody in.
type Options struct {
	Auth Auth
	// Program and Now are shown to people: who holds a session, and since when,
	// in Unix milliseconds.
	Program string
	Now     func() int64
	// Worker is the name of this store among the owners of sessions; "" makes
	// one up. No two stores may have the same at once. It has letters, digits, -
	// and _.
	Worker string
	// TakeOver opens sessions that a living worker holds, and ends its writing.
	TakeOver bool
	// AckWait is how long an acknowledgement is waited for before the leader is
	// asked; 0 means 4 seconds.
	AckWait time.Duration
	// Patience is how long an operation tries to reach the servers, or a leader,
	// before its error is returned; 0 means 20 seconds. What is not acknowledged
	// by then stays with the lease, and its next Sync tries again.
	Patience time.Duration
	// Logger hears of lost acknowledgements, lapsed leases and, unless Unsynced
	// does, of a realm whose servers may not sync; nil is silent.
	Logger *slog.Logger
	// Unsynced hears once, at the first connection, that what is acknowledged may
	// not be on disks: a sentence for people, by the record of the realm. It must
	// not block. Nil: the Logger hears it.
	Unsynced func(what string)
	// Observe hears of each operation when it is done: "append", "take", "hand
	// over", "read" or "list". It must not block. Nil: nobody does.
	Observe func(op string, took time.Duration, err error)

	// fail makes writes and syncs fail in tests.
	fail func(op string) error
}

// Store is a realm. It is connected by the first call that needs it.
type Store struct {
	addr Address
	opt  Options
	id   string // of this worker

	mu     sync.Mutex
	lk     *link
	closed bool

	worker worker
	denied atomic.Pointer[denial] // the last one
	asking sync.Map               // the *question that wait for answers are its keys
}

var _ store.Store = (*Store)(nil)

// link is a connection to the servers of a realm.
type link struct {
	s     *Store
	nc    *nats.Conn
	js    natsjs.JetStream
	realm Realm

	limits sync.Map // by stream: the int64 that a message may have at most

	mu      sync.Mutex
	objects natsjs.ObjectStore
	heard   time.Time // the last answer of a stream, or move to another server
}

// New names a realm. It connects to nothing.
func New(address string, o Options) (*Store, error) {
	a, err := ParseAddress(address)
	if err != nil {
		return nil, err
	}
	if err := o.Auth.check(); err != nil {
		return nil, err
	}
	for _, c := range []byte(o.Worker) {
		if !plainByte(c) {
			return nil, &outcrop.Error{Op: "open", Seq: -1, Offset: -1, Err: outcrop.ErrRefused, Msg: fmt.Sprintf("the name of the worker %q: a name has letters, digits, - and _", o.Worker)}
		}
	}
	if o.AckWait <= 0 {
		o.AckWait = 4 * time.Second
	}
	if o.Patience <= 0 {
		o.Patience = 20 * time.Second
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Store{addr: a, opt: o, id: o.Worker}
	if s.id == "" {
		var b [12]byte
		rand.Read(b[:]) // never fails
		s.id = coding.EncodeToString(b[:])
	}
	s.worker.leases, s.worker.starting = map[string]*Lease{}, make(chan struct{}, 1)
	return s, nil
}

// Address is the address of the realm.
func (s *Store) Address() string { return s.addr.String() }

// Worker is the name under which this store owns sessions.
func (s *Store) Worker() string { return s.id }

// Close takes the worker's key away, so that sessions that were not handed back
// are free at once, and ends the connection.
func (s *Store) Close() error {
	s.worker.end(s)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if s.lk != nil {
		s.lk.nc.Close()
		s.lk = nil
	}
	return nil
}

func (s *Store) now() int64 {
	if s.opt.Now == nil {
		return time.Now().UnixMilli()
	}
	return s.opt.Now()
}

// holder describes this worker to people.
func (s *Store) holder() store.Holder {
	host, err := os.Hostname()
	if err != nil {
		host = ""
	}
	h := store.Holder{PID: os.Getpid(), Host: host, Program: s.opt.Program}
	if s.opt.Now != nil {
		h.Since = s.opt.Now()
	}
	return h
}

// link connects, the first time.
func (s *Store) link(ctx context.Context) (*link, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return nil, s.problem("open", store.ErrClosed, "the store is closed", "")
	case s.lk != nil:
		return s.lk, context.Cause(ctx)
	}
	nc, js, err := s.dial(ctx)
	if err != nil {
		return nil, err
	}
	lk := &link{s: s, nc: nc, js: js}
	if lk.realm, err = s.readRealm(ctx, lk); err != nil {
		nc.Close()
		return nil, err
	}
	if what := lk.realm.Sync.doubt(); what != "" {
		if s.opt.Unsynced == nil {
			s.opt.Logger.Warn(what, "store", s.Address())
		} else {
			s.opt.Unsynced(what)
		}
	}
	s.lk, lk.heard = lk, time.Now()
	return lk, nil
}

// hear notes whether streams answer. A server that is cut off from the others
// keeps its clients, and answers them nothing: then the next one is tried. So is
// the same one, when there is no other: the way to it may be what is cut.
func (lk *link) hear(err error) {
	silent := errors.Is(err, nats.ErrTimeout) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, nats.ErrNoResponders)
	if err != nil && !silent {
		return
	}
	lk.mu.Lock()
	move := silent && time.Since(lk.heard) > 2*lk.s.opt.AckWait
	if move || !silent {
		lk.heard = time.Now()
	}
	lk.mu.Unlock()
	if move {
		lk.s.opt.Logger.Warn("no stream answers by way of this connection; another one is made", "store", lk.s.Address(), "server", lk.nc.ConnectedUrlRedacted())
		if err := lk.nc.ForceReconnect(); err != nil {
			lk.s.opt.Logger.Warn("no other connection can be made", "store", lk.s.Address(), "error", err)
		}
	}
}

func (s *Store) readRealm(ctx context.Context, lk *link) (Realm, error) {
	raw, err := lk.last(ctx, "KV_"+bucket(s.addr.Name), "$KV."+bucket(s.addr.Name)+"."+recordKey)
	switch {
	case errors.Is(err, errNoMessage), errors.Is(err, natsjs.ErrStreamNotFound):
		return Realm{}, s.problem("open", outcrop.ErrNotFound, "there is no realm "+s.addr.Name, "outcrop realm init "+s.Address()+" makes one")
	case err != nil:
		return Realm{}, s.failed("open", "", err)
	case len(raw.Data) == 0: // a mark of the key-value bucket
		return Realm{}, s.problem("open", outcrop.ErrNotFound, "the record of the realm "+s.addr.Name+" was removed; its streams may be there",
			"outcrop realm init with --streams and --lease as the realm was made writes it anew, and leaves the streams as they are")
	}
	r, err := parseRealm(raw.Data, s.addr.Name)
	if err != nil {
		return Realm{}, s.problem("open", outcrop.ErrUnsupported, err.Error(), "")
	}
	return r, nil
}

// Realm is the record of the realm.
func (s *Store) Realm(ctx context.Context) (Realm, error) {
	lk, err := s.link(ctx)
	if err != nil {
		return Realm{}, err
	}
	return s.readRealm(ctx, lk)
}

// observe tells how long an operation took; it is for defer, with the error by
// its address.
func (s *Store) observe(op string, began time.Time, err *error) {
	if s.opt.Observe != nil {
		s.opt.Observe(op, time.Since(began), *err)
	}
}

func (s *Store) problem(op string, err error, msg, hint string) error {
	return &outcrop.Error{Op: op, Path: s.Address(), Seq: -1, Offset: -1, Err: err, Msg: msg, Hint: hint}
}

func (s *Store) sessionProblem(op, id string, code outcrop.Code, err error, msg, hint string) *outcrop.Error {
	return &outcrop.Error{Op: op, Session: id, Path: s.Address(), Code: code, Seq: -1, Offset: -1, Err: err, Msg: msg, Hint: hint}
}

const damageHint = "the events before it can be read; restore the stream, or copy the session from another place"

// damaged is the problem of a session with a damaged message.
func (s *Store) damaged(op, id string, err error) *outcrop.Error {
	e := store.Problem(op, id, err, "", "")
	e.Path = s.Address()
	if e.Hint == "" {
		e.Hint = damageHint
	}
	return e
}

func (s *Store) refused(op, msg, hint string) error {
	return s.problem(op, outcrop.ErrRefused, msg, hint)
}

func (s *Store) notFound(op, id string) error {
	return s.sessionProblem(op, id, outcrop.CodeSessionNotFound, outcrop.ErrNotFound, fmt.Sprintf("no session %q", id), "")
}

func (s *Store) exists(id string) error {
	return s.sessionProblem("create", id, outcrop.CodeSessionExists, store.ErrExists, "", "")
}

// failed says what an error of the servers or of the way to them means.
func (s *Store) failed(op, id string, err error) error {
	var own *outcrop.Error
	if errors.As(err, &own) {
		if own.Op == "" { // about a message: whose it is is known here
			return s.damaged(op, id, err)
		}
		return err
	}
	msg, hint := "", ""
	var api *natsjs.APIError
	switch {
	case errors.Is(err, nats.ErrAuthorization), errors.Is(err, nats.ErrAuthExpired), errors.Is(err, nats.ErrPermissionViolation):
		msg, hint = "the servers do not let this user do that: "+err.Error(), "give credentials with --creds, or in [nats] of the configuration; docs/operations.md lists the permissions"
	case errors.Is(err, natsjs.ErrStreamNotFound), errors.Is(err, natsjs.ErrBucketNotFound):
		msg, hint = "a stream or bucket of the realm is missing", "outcrop realm check says which; restore it from a backup (outcrop realm init makes an empty one)"
	case errors.Is(err, natsjs.ErrJetStreamNotEnabled), errors.Is(err, natsjs.ErrJetStreamNotEnabledForAccount):
		msg, hint = err.Error(), "switch JetStream on for this account"
	case errors.Is(err, nats.ErrNoResponders), errors.Is(err, natsjs.ErrNoStreamResponse):
		msg, hint = "no server answers for the stream: it has no leader now", "a majority of its replicas must be there; outcrop realm check says which are"
	case errors.As(err, &api) && (api.ErrorCode == codeMaxBytes || api.ErrorCode == codeStorage):
		msg, hint = "the servers have no room: "+api.Description, "nothing that was acknowledged is lost; raise the limit of the stream or of the account, or remove sessions"
	case errors.Is(err, nats.ErrTimeout), errors.Is(err, context.DeadlineExceeded), errors.Is(err, nats.ErrNoServers):
		msg, hint = "the servers do not answer: "+err.Error(), "see that "+s.addr.urls()+" can be reached"
	}
	return s.sessionProblem(op, id, "", err, msg, hint)
}

const (
	codeMaxBytes natsjs.ErrorCode = 10077 // the stream refuses: maximum bytes or messages exceeded
	codeStorage  natsjs.ErrorCode = 10047 // storage resources exceeded
)
