package jetstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"
)

// raw is a stored message as the servers give it.
type raw struct {
	Subject string
	Seq     uint64
	Header  nats.Header
	Data    []byte
	Time    time.Time // when the servers stored it
}

var (
	// errNoMessage: the subject has no message (from there on).
	errNoMessage = errors.New("no message on the subject")
	errStalled   = errors.New("the servers stopped answering")
)

const (
	apiGet    = "$JS.API.STREAM.MSG.GET."
	apiDirect = "$JS.API.DIRECT.GET."

	// answerWithin is how long one question to the servers waits.
	answerWithin = 2 * time.Second
)

// ask puts one question to the leader of a stream.
func (lk *link) ask(ctx context.Context, stream string, question any) (raw, error) {
	q, err := json.Marshal(question)
	if err != nil {
		return raw{}, err
	}
	ctx, stop := context.WithTimeoutCause(ctx, answerWithin, nats.ErrTimeout)
	defer stop()
	var m *nats.Msg
	err = lk.s.undeniedOn(ctx, apiGet+stream, func(ctx context.Context) (err error) {
		if m, err = lk.nc.RequestWithContext(ctx, apiGet+stream, q); err != nil && context.Cause(ctx) != nil {
			err = context.Cause(ctx)
		}
		return err
	})
	if err != nil {
		return raw{}, err
	}
	var a struct {
		Error   *natsjs.APIError `json:"error"`
		Message *struct {
			Subject string    `json:"subject"`
			Seq     uint64    `json:"seq"`
			Header  []byte    `json:"hdrs"`
			Data    []byte    `json:"data"`
			Time    time.Time `json:"time"`
		} `json:"message"`
	}
	if err := json.Unmarshal(m.Data, &a); err != nil {
		return raw{}, fmt.Errorf("the answer of the server: %w", err)
	}
	switch {
	case a.Error != nil && a.Error.ErrorCode == natsjs.JSErrCodeMessageNotFound:
		return raw{}, errNoMessage
	case a.Error != nil && a.Error.ErrorCode == natsjs.JSErrCodeStreamNotFound:
		return raw{}, natsjs.ErrStreamNotFound
	case a.Error != nil:
		return raw{}, a.Error
	case a.Message == nil:
		return raw{}, errors.New("the answer of the server has no message")
	}
	r := raw{Subject: a.Message.Subject, Seq: a.Message.Seq, Data: a.Message.Data, Time: a.Message.Time, Header: nats.Header{}}
	if len(a.Message.Header) > 0 {
		if r.Header, err = nats.DecodeHeadersMsg(a.Message.Header); err != nil {
			return raw{}, fmt.Errorf("message %d of stream %s: %w", r.Seq, stream, err)
		}
	}
	return r, nil
}

// last is the last message of a subject, as the stream's leader has it: a replica
// may be behind. It tries for a while.
func (lk *link) last(ctx context.Context, stream, subject string) (raw, error) {
	return lk.persist(ctx, stream, map[string]any{"last_by_subj": subject})
}

// nextFrom is the first message of a subject from a sequence on, from the leader.
func (lk *link) nextFrom(ctx context.Context, stream, subject string, seq uint64) (raw, error) {
	return lk.persist(ctx, stream, map[string]any{"next_by_subj": subject, "seq": max(seq, 1)})
}

// persist asks the leader until there is one that answers, or patience ends.
func (lk *link) persist(ctx context.Context, stream string, question any) (raw, error) {
	p := lk.s.patience(ctx)
	defer p.stop()
	for {
		r, err := lk.ask(p.ctx, stream, question)
		lk.hear(err)
		if err == nil || errors.Is(err, errNoMessage) || errors.Is(err, natsjs.ErrStreamNotFound) || final(err) {
			return r, err
		}
		if !p.again(err) {
			return raw{}, p.err
		}
	}
}

// final reports an error that waiting does not mend.
func final(err error) bool {
	return errors.Is(err, nats.ErrConnectionClosed) || errors.Is(err, nats.ErrAuthorization) || errors.Is(err, nats.ErrPermissionViolation) ||
		errors.Is(err, nats.ErrMaxPayload)
}

// try does something until it succeeds, fails for good, or patience ends. An
// answer that a connection lost does not come any more, however long it is waited
// for: each attempt has a time of its own, longer than the one before.
func (lk *link) try(ctx context.Context, do func(ctx context.Context) error) error {
	return lk.tryWithin(ctx, max(lk.s.opt.AckWait, answerWithin), do)
}

// tryWithin is try whose first attempt may take so long.
func (lk *link) tryWithin(ctx context.Context, within time.Duration, do func(ctx context.Context) error) error {
	p := lk.s.patience(ctx)
	defer p.stop()
	for ; ; within *= 2 {
		attempt, stop := context.WithTimeoutCause(p.ctx, within, nats.ErrTimeout)
		err := lk.s.undenied(attempt, do)
		stop()
		if err == nil || !passing(err) {
			return err
		}
		lk.hear(err)
		if !p.again(err) {
			return p.err
		}
	}
}

// passing reports an error of servers that are busy with each other, or of a
// connection that is being made anew.
func passing(err error) bool {
	var api *natsjs.APIError
	for _, e := range []error{nats.ErrNoResponders, natsjs.ErrNoStreamResponse, nats.ErrTimeout, context.DeadlineExceeded,
		nats.ErrReconnectBufExceeded, nats.ErrDisconnected, nats.ErrConnectionReconnecting} {
		if errors.Is(err, e) {
			return true
		}
	}
	return errors.As(err, &api) && api.Code == 503 && !noRoom(err)
}

// patience is a loop that tries again, with growing pauses.
type patience struct {
	s     *Store
	ctx   context.Context
	outer context.Context
	stop  context.CancelFunc
	pause time.Duration
	began time.Time // of the try that is under way
	err   error     // why it ended
}

var errPatience = errors.New("the servers could not be reached in time")

func (s *Store) patience(ctx context.Context) *patience {
	p := &patience{s: s, outer: ctx, pause: 20 * time.Millisecond, began: time.Now()}
	p.ctx, p.stop = context.WithTimeoutCause(ctx, s.opt.Patience, errPatience)
	return p
}

// again waits, and reports whether there is time for another try. err is why the
// last one failed.
func (p *patience) again(err error) bool {
	if d := p.s.denied.Load(); d != nil && d.at.After(p.began) {
		// Nobody answers what a server did not let through: it says so on the
		// side, and would again.
		p.err = d.err
		return false
	}
	t := time.NewTimer(p.pause)
	defer t.Stop()
	p.pause = min(2*p.pause, time.Second)
	select {
	case <-t.C:
		p.began = time.Now()
		return true
	case <-p.ctx.Done():
		if p.err = context.Cause(p.outer); p.err == nil {
			if errors.Is(err, errPatience) || errors.Is(err, context.DeadlineExceeded) {
				err = nats.ErrTimeout
			}
			p.err = err
		}
		return false
	}
}

const (
	// fetchBytes bounds what a server has to keep for a reader at once; readers of
	// one connection share its limit, 64 MiB where nobody changed it.
	fetchFirst = 250 // messages of the first portion: most logs that are read have fewer
	fetchMost  = 8000
	fetchBytes = 4 << 20
	// consumeFrom is how many messages are worth a consumer: it costs the servers
	// an agreement, and each message less.
	consumeFrom = 2000
	// lagTries is how often a replica that is behind is asked again before the
	// leader is.
	lagTries = 5
)

// fetch yields the messages of a subject from one sequence of the stream through
// another one, both of which the leader named. They come from any replica, in
// portions; what a replica does not have yet, or a line swallowed, is asked for
// again. errNoMessage: the last one is not there any more.
func (lk *link) fetch(ctx context.Context, stream, subject string, from, through uint64, yield func(raw) bool) error {
	if from > through {
		return nil
	}
	f := fetcher{lk: lk, stream: stream, subject: subject}
	if err := f.open(fetchFirst); err != nil {
		return err
	}
	defer func() { f.sub.Unsubscribe() }()
	p := lk.s.patience(ctx)
	defer func() { p.stop() }()
	for lag := 0; from <= through; {
		n, more, err := f.portion(p.ctx, from, through, yield)
		if !more {
			return err
		}
		if n > from {
			from, lag = n, 0
			p.stop()
			p = lk.s.patience(ctx)
			if f.most == fetchFirst && from <= through {
				f.sub.Unsubscribe()
				if err := f.open(fetchMost); err != nil {
					return err
				}
				if f.pending >= consumeFrom {
					// What it does not give the portions do.
					if from, more = lk.consume(ctx, stream, subject, from, through, yield); !more {
						return context.Cause(ctx)
					}
				}
			}
			continue
		}
		if err == nil {
			if lag++; lag > lagTries {
				r, err := lk.nextFrom(ctx, stream, subject, from)
				if err != nil {
					return err
				}
				if r.Seq > through {
					return errNoMessage
				}
				if !yield(r) {
					return nil
				}
				from, lag = r.Seq+1, 0
				continue
			}
			err = errStalled
		}
		if final(err) {
			return err
		}
		if !p.again(err) {
			return p.err
		}
	}
	return nil
}

type fetcher struct {
	lk              *link
	stream, subject string
	inbox           string
	in              chan *nats.Msg
	sub             *nats.Subscription
	most            int // messages of a portion
	n               int
	pending         uint64 // messages that the last answer left out
}

// open listens for portions. The channel holds a whole one, so that nothing is
// dropped.
func (f *fetcher) open(most int) (err error) {
	f.inbox, f.most, f.in = f.lk.nc.NewInbox(), most, make(chan *nats.Msg, most+16)
	f.sub, err = f.lk.nc.ChanSubscribe(f.inbox+".*", f.in)
	return err
}

// portion asks for messages once. next is the sequence to go on with; more is
// false when yield wants no more.
func (f *fetcher) portion(ctx context.Context, from, through uint64, yield func(raw) bool) (next uint64, more bool, err error) {
	f.n++
	reply := f.inbox + "." + strconv.Itoa(f.n)
	q, err := json.Marshal(map[string]any{"next_by_subj": f.subject, "seq": max(from, 1), "batch": f.most, "max_bytes": fetchBytes})
	if err != nil {
		return from, true, err
	}
	if err := f.lk.nc.PublishRequest(apiDirect+f.stream, reply, q); err != nil {
		return from, true, err
	}
	next = from
	stall := time.NewTimer(answerWithin)
	defer stall.Stop()
	for {
		select {
		case m := <-f.in:
			if m.Subject != reply {
				continue // of a portion that was given up
			}
			switch m.Header.Get("Status") {
			case "":
			case "204", "404": // the end of the portion; no message from there on
				f.pending, _ = strconv.ParseUint(m.Header.Get("Nats-Num-Pending"), 10, 64)
				return next, true, nil
			case "503":
				return next, true, nats.ErrNoResponders
			default:
				return next, true, fmt.Errorf("the server answers %s %s", m.Header.Get("Status"), m.Header.Get("Description"))
			}
			seq, err := strconv.ParseUint(m.Header.Get(natsjs.SequenceHeader), 10, 64)
			if err != nil || seq < next {
				return next, true, fmt.Errorf("the server gives message %q where %d or a later one was asked for", m.Header.Get(natsjs.SequenceHeader), next)
			}
			if seq > through {
				return through + 1, true, nil
			}
			if !yield(raw{Subject: m.Header.Get(natsjs.SubjectHeader), Seq: seq, Header: m.Header, Data: m.Data}) {
				return seq + 1, false, nil
			}
			if next = seq + 1; seq == through {
				return next, true, nil
			}
			stall.Reset(answerWithin)
		case <-stall.C:
			return next, true, errStalled
		case <-ctx.Done():
			return next, true, context.Cause(ctx)
		}
	}
}

// consume is fetch by way of a consumer. It ends when all is there, and early, with
// the sequence to go on from, when nothing comes any more.
func (lk *link) consume(ctx context.Context, stream, subject string, from, through uint64, yield func(raw) bool) (next uint64, more bool) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	stall := time.AfterFunc(2*answerWithin, stop)
	defer stall.Stop()
	c, err := lk.js.OrderedConsumer(ctx, stream, natsjs.OrderedConsumerConfig{FilterSubjects: []string{subject},
		DeliverPolicy: natsjs.DeliverByStartSequencePolicy, OptStartSeq: from, InactiveThreshold: time.Minute})
	if err != nil {
		return from, true
	}
	defer lk.forgetConsumer(stream, c)
	in, err := c.Messages(natsjs.PullMaxMessagesWithBytesLimit(5000, 2*fetchBytes))
	if err != nil {
		return from, true
	}
	defer in.Stop()
	for n := 0; from <= through; n++ {
		if n%256 == 0 {
			stall.Reset(2 * answerWithin)
		}
		m, err := in.Next(natsjs.NextContext(ctx))
		if err != nil {
			return from, true
		}
		meta, err := m.Metadata()
		if err != nil || meta.Sequence.Stream < from || meta.Sequence.Stream > through {
			return from, true
		}
		if !yield(raw{Subject: m.Subject(), Seq: meta.Sequence.Stream, Header: m.Headers(), Data: m.Data()}) {
			return from, false
		}
		from = meta.Sequence.Stream + 1
	}
	return from, true
}
