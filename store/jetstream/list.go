package jetstream

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/store"
)

// Head is what the last message of a session says. One with an ID of "" stands
// for a part of the realm that is missing.
type Head struct {
	ID        string
	Part      string // the stream that is missing; "" otherwise
	Title     string // the last one that was given, else the start of the first prompt
	Turns     int
	Events    int64
	Bytes     int64 // as stored
	UpdatedAt int64 // time of the last event, Unix milliseconds
	OpenTurn  bool
	Pending   int // inputs that wait in the inbox
	Epoch     uint64
	Owner     string // the worker that holds it; "" nobody
	Alive     bool   // the owner's key is there
	Holder    store.Holder
	Header    outcrop.Header
	Problem   error // why the session cannot be read; the members above may be zero then

	last   message
	stored time.Time // when the servers stored it
}

// listers is how many streams are listed at once.
const listers = 8

// Heads are the heads of all sessions, in no order. No log is read. Of a stream
// that is missing there is one head, with the reason.
func (s *Store) Heads(ctx context.Context) (_ []Head, err error) {
	lk, err := s.link(ctx)
	if err != nil {
		return nil, err
	}
	defer s.observe("list", time.Now(), &err)
	shards := make([][]Head, lk.realm.Streams)
	lacks, err := lk.shards(ctx, func(ctx context.Context, shard int) (err error) {
		shards[shard], err = lk.heads(ctx, shard)
		return err
	}, func(workers map[string]store.Holder) {
		for _, heads := range shards {
			for i := range heads {
				heads[i].Holder, heads[i].Alive = workers[heads[i].Owner]
			}
		}
	})
	if err != nil {
		return nil, s.failed("list", "", err)
	}
	return slices.Concat(append(shards, lacks)...), nil
}

// shards lists the streams, some at once, and then tells who is alive. What it
// returns stands for the streams that are missing.
func (lk *link) shards(ctx context.Context, list func(ctx context.Context, shard int) error, alive func(map[string]store.Holder)) (lacks []Head, err error) {
	var mu sync.Mutex
	lacking := func(stream, so string) error {
		mu.Lock()
		defer mu.Unlock()
		lacks = append(lacks, lk.lacking(stream, so))
		return nil
	}
	var workers map[string]store.Holder
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(listers)
	g.Go(func() (err error) {
		workers, err = lk.workers(gctx)
		if errors.Is(err, natsjs.ErrStreamNotFound) {
			err = lacking("KV_"+workersBucket(lk.realm.Name), "who holds sessions is unknown, and none can be opened")
		}
		return err
	})
	for shard := range lk.realm.Streams {
		g.Go(func() error {
			err := list(gctx, shard)
			if errors.Is(err, natsjs.ErrStreamNotFound) {
				err = lacking(lk.realm.stream(shard), "the sessions in it are not listed")
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	alive(workers)
	return lacks, nil
}

// lacking is what a list has of a stream that is missing.
func (lk *link) lacking(stream, so string) Head {
	return Head{Part: stream, Problem: fmt.Errorf("the stream %s is missing: %s; outcrop realm check says what can be done", stream, so)}
}

// heads are the heads of one stream.
func (lk *link) heads(ctx context.Context, shard int) ([]Head, error) {
	found := map[string]Head{}
	if err := lk.lasts(ctx, lk.realm.stream(shard), lk.realm.subjects(shard, "*"), true, lk.into(found, shard)); err != nil {
		return nil, err
	}
	return lk.headed(ctx, found)
}

// into takes the last messages of a stream into heads by session.
func (lk *link) into(found map[string]Head, shard int) (take func(raw) error) {
	stream, prefix := lk.realm.stream(shard), lk.realm.subjects(shard, "")
	return func(r raw) error {
		id, ok := untoken(strings.TrimPrefix(r.Subject, prefix))
		if !ok {
			return nil // no writer of ours makes such a subject
		}
		m, err := lk.parse(r, stream, true)
		if err == nil && m.Kind == kindRemove {
			delete(found, id)
			return nil
		}
		m.Stored = r.Seq
		h := Head{ID: id, Problem: err, last: m, stored: r.Time}
		if err == nil {
			h.Title, h.Turns, h.Events, h.Bytes, h.UpdatedAt = m.Head.Title, m.Head.Turns, m.Head.Events, m.Head.Bytes, m.Head.Updated
			h.OpenTurn, h.Pending, h.Epoch, h.Owner = m.Head.Open, m.Head.due().Pending(), m.Epoch, m.Owner
		}
		found[id] = h
		return nil
	}
}

// headed are heads with the headers of their sessions.
func (lk *link) headed(ctx context.Context, found map[string]Head) ([]Head, error) {
	all := make([]Head, 0, len(found))
	for _, h := range found {
		if h.Problem == nil {
			h.Header, h.Problem = lk.headerOf(ctx, h.ID, &h.last)
			if h.Problem != nil && ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
		}
		all = append(all, h)
	}
	return all, nil
}

// List is store.Store's. Everything that it says is in the last messages; with
// Full each log is read, and what is wrong with it found.
func (s *Store) List(ctx context.Context, o store.ListOptions) ([]store.Info, error) {
	heads, err := s.Heads(ctx)
	if err != nil {
		return nil, err
	}
	infos := make([]store.Info, len(heads))
	for i := range heads {
		infos[i] = s.info(&heads[i])
	}
	if o.Full {
		g, gctx := errgroup.WithContext(ctx)
		g.SetLimit(listers)
		for i := range infos {
			if infos[i].State != store.StateDamaged {
				g.Go(func() error {
					s.look(gctx, &heads[i], &infos[i])
					return context.Cause(gctx)
				})
			}
		}
		if err := g.Wait(); err != nil {
			return nil, err
		}
	}
	store.SortInfos(infos)
	return infos, nil
}

// info describes a session by its head.
func (s *Store) info(h *Head) store.Info {
	if h.Part != "" {
		return store.Info{Events: -1, Turns: -1, State: store.StateDamaged, Reason: h.Problem.Error(), Path: "stream " + h.Part}
	}
	i := store.Info{ID: h.ID, Title: h.Title, CreatedAt: h.Header.CreatedAt, UpdatedAt: h.UpdatedAt,
		Events: h.Events, Turns: h.Turns, Bytes: h.Bytes, State: store.StateOK, Header: h.Header}
	if h.Problem == nil {
		i.Due = h.last.Head.due()
	}
	if h.Header.Cwd != nil {
		i.Cwd = *h.Header.Cwd
	}
	switch {
	case errors.Is(h.Problem, outcrop.ErrUnsupported):
		i.State, i.Reason = store.StateNewer, h.Problem.Error()
	case h.Problem != nil:
		i.State, i.Reason = store.StateDamaged, h.Problem.Error()
	case h.Alive && (h.Owner != s.id || s.worker.holds(h.ID)):
		i.State, i.Reason = store.StateLocked, (&store.LockedError{Holder: h.Holder}).Error()
	case h.OpenTurn:
		i.State, i.Reason = store.StateOpenTurn, "the last turn was not closed"
	}
	return i
}

// look reads a whole log.
func (s *Store) look(ctx context.Context, h *Head, i *store.Info) {
	of, lk, err := s.find(ctx, h.ID)
	var sum store.Summary
	if err == nil {
		for r, rerr := range lk.records(ctx, of) {
			if err = rerr; err != nil {
				break
			}
			sum.Add(r)
		}
	}
	if err != nil {
		i.State, i.Reason = store.StateDamaged, err.Error()
		return
	}
	state, reason := i.State, i.Reason
	sum.Into(i)
	if state == store.StateLocked {
		i.State, i.Reason = state, reason
	}
}

func sortWorkers(ws []WorkerInfo) {
	slices.SortFunc(ws, func(a, b WorkerInfo) int { return cmp.Compare(a.ID, b.ID) })
}

var errTooMany = errors.New("more subjects than the server gives at once")

// lasts calls take with the last message of each subject that fits the wildcard,
// once or, when messages come meanwhile, more often: the latest call for a subject
// counts. Messages of kind remove or with a delete marker come too. What was
// acknowledged before the call is seen. With fields only the header fields may be
// there.
func (lk *link) lasts(ctx context.Context, stream, wildcard string, fields bool, take func(raw) error) error {
	newest, err := lk.last(ctx, stream, wildcard)
	if errors.Is(err, errNoMessage) {
		return nil
	}
	if err != nil {
		return err
	}
	// Any replica answers the first way, without anything to be set up for it,
	// but not for very many subjects.
	for range lagTries {
		behind, err := lk.lastsDirect(ctx, stream, []string{wildcard}, newest.Seq, take)
		switch {
		case err == nil && !behind:
			return nil
		case errors.Is(err, errTooMany):
			return lk.lastsConsumed(ctx, stream, wildcard, newest.Seq, fields, take)
		case err != nil && context.Cause(ctx) != nil:
			return context.Cause(ctx)
		}
		wait := time.NewTimer(20 * time.Millisecond)
		select {
		case <-wait.C:
		case <-ctx.Done():
			wait.Stop()
			return context.Cause(ctx)
		}
	}
	return lk.lastsConsumed(ctx, stream, wildcard, newest.Seq, fields, take)
}

// lastsDirect asks a replica. behind is true when it does not have the message
// newest yet; nothing of its answer counts then, though take has seen it.
func (lk *link) lastsDirect(ctx context.Context, stream string, subjects []string, newest uint64, take func(raw) error) (behind bool, err error) {
	const room = 1024 + 16 // what a server gives at most, and the end
	inbox := lk.nc.NewInbox()
	in := make(chan *nats.Msg, room)
	sub, err := lk.nc.ChanSubscribe(inbox, in)
	if err != nil {
		return false, err
	}
	defer sub.Unsubscribe()
	question := map[string]any{"multi_last": subjects, "batch": room, "max_bytes": 16 << 20}
	for {
		q, err := json.Marshal(question)
		if err != nil {
			return false, err
		}
		if err := lk.nc.PublishRequest(apiDirect+stream, inbox, q); err != nil {
			return false, err
		}
		var seq, pending uint64
		for more := true; more; {
			stall := time.NewTimer(answerWithin)
			select {
			case m := <-in:
				switch status := m.Header.Get("Status"); status {
				case "":
					if seq, err = strconv.ParseUint(m.Header.Get(natsjs.SequenceHeader), 10, 64); err == nil {
						at, _ := time.Parse(time.RFC3339Nano, m.Header.Get(natsjs.TimeStampHeaer))
						err = take(raw{Subject: m.Header.Get(natsjs.SubjectHeader), Seq: seq, Header: m.Header, Data: m.Data, Time: at})
					}
				case "204":
					through, perr := strconv.ParseUint(m.Header.Get("Nats-UpTo-Sequence"), 10, 64)
					if perr != nil || through < newest && question["up_to_seq"] == nil {
						return true, nil
					}
					pending, _ = strconv.ParseUint(m.Header.Get("Nats-Num-Pending"), 10, 64)
					question["up_to_seq"] = through
					more = false
				case "404":
					return true, nil // the leader has at least one
				case "413":
					err = errTooMany
				case "503":
					err = nats.ErrNoResponders
				default:
					err = fmt.Errorf("the server answers %s %s", status, m.Header.Get("Description"))
				}
			case <-stall.C:
				err = errStalled
			case <-ctx.Done():
				err = context.Cause(ctx)
			}
			stall.Stop()
			if err != nil {
				return false, err
			}
		}
		if pending == 0 || seq == 0 {
			return false, nil
		}
		question["seq"] = seq + 1
	}
}

// lastsConsumed reads the last messages with a consumer.
func (lk *link) lastsConsumed(ctx context.Context, stream, wildcard string, newest uint64, fields bool, take func(raw) error) error {
	// Making it takes the server as long as finding all these messages.
	c, err := lk.consumer(ctx, stream, natsjs.OrderedConsumerConfig{FilterSubjects: []string{wildcard},
		DeliverPolicy: natsjs.DeliverLastPerSubjectPolicy, HeadersOnly: fields, InactiveThreshold: time.Minute})
	if err != nil {
		return err
	}
	defer lk.forgetConsumer(stream, c)
	in, err := c.Messages(natsjs.PullMaxMessages(4096))
	if err != nil {
		return err
	}
	defer in.Stop()
	p := lk.s.patience(ctx)
	defer func() { p.stop() }()
	seen := uint64(0)
	for n := 1; ; n++ {
		if n%256 == 0 { // patience is for servers that give nothing, not for many sessions
			p.stop()
			p = lk.s.patience(ctx)
		}
		m, err := in.Next(natsjs.NextContext(p.ctx))
		if err != nil {
			if c := context.Cause(ctx); c != nil {
				return c
			}
			return err
		}
		meta, err := m.Metadata()
		if err != nil {
			return err
		}
		if err := take(raw{Subject: m.Subject(), Seq: meta.Sequence.Stream, Header: m.Headers(), Data: m.Data(), Time: meta.Timestamp}); err != nil {
			return err
		}
		seen = max(seen, meta.Sequence.Stream)
		if meta.NumPending > 0 {
			continue
		}
		if seen >= newest {
			return nil
		}
		// Is the newest one not on its way, it is gone.
		if last, err := lk.last(ctx, stream, wildcard); errors.Is(err, errNoMessage) || err == nil && last.Seq <= seen {
			return nil
		}
	}
}

// consumer makes a consumer, and gives the servers the time that they need for it.
func (lk *link) consumer(ctx context.Context, stream string, cfg natsjs.OrderedConsumerConfig) (c natsjs.Consumer, err error) {
	err = lk.tryWithin(ctx, lk.s.opt.Patience/2, func(ctx context.Context) (err error) {
		c, err = lk.js.OrderedConsumer(ctx, stream, cfg)
		return err
	})
	return c, err
}

// forgetConsumer deletes a consumer whose reader has ended; the servers do it by
// themselves later.
func (lk *link) forgetConsumer(stream string, c natsjs.Consumer) {
	in := c.CachedInfo()
	if in == nil {
		return
	}
	ctx, stop := context.WithTimeout(context.Background(), answerWithin)
	defer stop()
	if err := lk.js.DeleteConsumer(ctx, stream, in.Name); err != nil && !errors.Is(err, natsjs.ErrConsumerNotFound) {
		lk.s.opt.Logger.Debug("a consumer was not deleted; the servers do it later", "stream", stream, "consumer", in.Name, "error", err)
	}
}
