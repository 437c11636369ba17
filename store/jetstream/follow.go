package jetstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	natsjs "github.com/nats-io/nats.go/jetstream"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/wire"
)

var _ store.Follower = (*Store)(nil)

// Follow is store.Follower's; what it gives is a *Following.
func (s *Store) Follow(ctx context.Context, id string) (store.Following, error) {
	of, lk, err := s.find(ctx, id)
	if err != nil {
		return nil, err
	}
	return &Following{s: s, lk: lk, log: of,
		in: lineReader{s: s, id: id, lines: wire.NewLines(id, lk.results(of)), first: true}}, nil
}

// Following is a log that is read while it grows. Next asks the leader where the
// log ends and reads up to there; Wait sleeps on a consumer, which only wakes: that
// nothing is missing is known from the seqs and the digest chain, whatever a
// consumer says or leaves out.
type Following struct {
	s   *Store
	lk  *link
	log log

	// Behind the last message of which everything was yielded.
	seen  uint64
	next  outcrop.Seq
	chain chain
	based bool

	in lineReader // it may be within the message after

	feed natsjs.Consumer
	live natsjs.MessagesContext
	told uint64 // the last message that a consumer told of
}

var (
	_ store.Marked  = (*Following)(nil)
	_ store.Awaited = (*Following)(nil)
)

// Header is store.Following's.
func (f *Following) Header() outcrop.Header { return f.log.header }

// Close is store.Following's.
func (f *Following) Close() error {
	f.hush()
	return nil
}

// Next is store.Following's.
func (f *Following) Next(ctx context.Context) iter.Seq2[outcrop.Record, error] {
	return func(yield func(outcrop.Record, error) bool) {
		if err := context.Cause(ctx); err != nil {
			yield(outcrop.Record{}, err)
			return
		}
		last, err := f.end(ctx)
		switch {
		case errors.Is(err, errNoMessage), err == nil && last.Kind == kindRemove:
			err = f.s.notFound("read", f.log.id)
		case err != nil:
			err = f.s.failed("read", f.log.id, err)
		case last.Gen != f.log.gen || last.Stored < f.seen:
			err = f.s.sessionProblem("read", f.log.id, "", store.ErrMoved, "another log is in its place", "follow it anew")
		}
		if err != nil {
			yield(outcrop.Record{}, err)
			return
		}
		if last.Stored == f.seen {
			return
		}
		f.log.last = last.Stored
		stale := f.in.taken // lines of an unfinished message that were yielded
		for p := range f.portions(ctx, last) {
			if stale > 0 && p.ends == nil && p.err == nil {
				for ; stale > 0 && len(p.text) > 0; stale-- {
					_, p.text, _ = bytes.Cut(p.text, []byte{'\n'})
				}
			}
			if !f.in.take(p, yield) {
				return
			}
			if m := p.ends; m != nil {
				f.seen, f.next, f.chain, f.based, stale = m.Stored, m.Seq+outcrop.Seq(m.Count), m.Chain, true, 0
			}
		}
		switch {
		case context.Cause(ctx) != nil:
			yield(outcrop.Record{}, context.Cause(ctx))
		case f.next != outcrop.Seq(last.Head.Events) || f.chain != last.Chain:
			yield(outcrop.Record{}, f.s.sessionProblem("read", f.log.id, "SEQ_GAP", outcrop.ErrDamaged, fmt.Sprintf("the log has %d events, its last message says %d", f.next, last.Head.Events), "messages were removed: restore the stream from a copy"))
		default:
			f.seen = last.Stored
		}
	}
}

// end is the last message of the log. The server of a consumer may tell of a
// message a moment before the leader gives it: that moment is waited for.
func (f *Following) end(ctx context.Context) (message, error) {
	for pause := time.Millisecond; ; pause *= 2 {
		last, err := f.lk.lastMessage(ctx, f.log.id)
		if err != nil || last.Stored >= f.told || last.Kind == kindRemove || pause > time.Second {
			f.told = min(f.told, last.Stored)
			return last, err
		}
		t := time.NewTimer(pause)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return last, context.Cause(ctx)
		}
	}
}

// portions are those of the messages that were not seen.
func (f *Following) portions(ctx context.Context, last message) iter.Seq[portion] {
	w := walker{lk: f.lk, log: f.log, based: f.based, next: f.next, chain: f.chain}
	if !last.holdsEvents() || last.Seq != f.next || last.Prev != f.chain || last.Kind == kindBase && f.based {
		return f.lk.run(ctx, &w, f.seen+1)
	}
	// The message at hand is the only new one that holds events.
	return func(yield func(portion) bool) {
		for text, err := range f.lk.text(ctx, last) {
			if !yield(portion{text: text, err: err}) || err != nil {
				return
			}
		}
		yield(portion{ends: &last})
	}
}

const (
	// lookEvery is how often Wait asks the leader although nothing woke it.
	lookEvery = 5 * time.Second
	// feedBeat is how soon a consumer that is gone is noticed.
	feedBeat = time.Second
)

// Wait returns nil when Next has something to yield, or an error to tell: at the
// latest some seconds after a message that no consumer told of. The error is the
// reason of ctx.
func (f *Following) Wait(ctx context.Context) error {
	for {
		if f.told > f.seen {
			return context.Cause(ctx)
		}
		look, stop := context.WithTimeout(ctx, lookEvery)
		told := f.tell(look)
		stop()
		if err := context.Cause(ctx); err != nil {
			return err
		}
		if told {
			return nil
		}
		last, err := f.lk.lastMessage(ctx, f.log.id)
		switch {
		case context.Cause(ctx) != nil:
			return context.Cause(ctx)
		case err != nil || last.Stored != f.seen:
			return nil // Next says what it is
		}
	}
}

// tell waits for a consumer to say that there is a message.
func (f *Following) tell(ctx context.Context) bool {
	for ctx.Err() == nil {
		if err := f.listen(ctx); err != nil {
			break
		}
		m, err := f.live.Next(natsjs.NextContext(ctx))
		if err != nil {
			if ctx.Err() == nil {
				f.hush() // another one, from where we are
			}
			continue
		}
		if meta, err := m.Metadata(); err == nil && meta.Sequence.Stream > f.seen {
			f.told = meta.Sequence.Stream
			return true
		}
	}
	<-ctx.Done()
	return false
}

// listen makes the consumer when there is none.
func (f *Following) listen(ctx context.Context) error {
	if f.live != nil {
		return nil
	}
	stream := f.lk.realm.stream(f.lk.realm.shard(f.log.id))
	c, err := f.lk.js.OrderedConsumer(ctx, stream, natsjs.OrderedConsumerConfig{
		FilterSubjects: []string{f.lk.realm.subject(f.log.id)}, HeadersOnly: true,
		DeliverPolicy: natsjs.DeliverByStartSequencePolicy, OptStartSeq: f.seen + 1, InactiveThreshold: time.Minute})
	if err != nil {
		return err
	}
	live, err := c.Messages(natsjs.PullHeartbeat(feedBeat), natsjs.PullExpiry(30*time.Second))
	if err != nil {
		f.lk.forgetConsumer(stream, c)
		return err
	}
	f.feed, f.live = c, live
	return nil
}

func (f *Following) hush() {
	if f.live != nil {
		f.live.Stop()
		f.lk.forgetConsumer(f.lk.realm.stream(f.lk.realm.shard(f.log.id)), f.feed)
		f.live, f.feed = nil, nil
	}
}

// Mark is store.Marked's: what was read, as a place in the stream and a digest.
func (f *Following) Mark() string {
	if f.in.taken > 0 || f.seen == 0 {
		return ""
	}
	return fmt.Sprintf("jetstream %d %d %d %s", f.log.gen, f.seen, f.next, f.chain)
}

// Resume is store.Marked's.
func (f *Following) Resume(mark string) bool {
	var gen, seen uint64
	var next int64
	var text string
	if n, err := fmt.Sscanf(mark, "jetstream %d %d %d %s", &gen, &seen, &next, &text); n != 4 || err != nil || gen != f.log.gen || seen > f.log.last || next < 0 {
		return false
	}
	c, ok := parseChain(text)
	if !ok {
		return false
	}
	ctx, stop := context.WithTimeout(context.Background(), f.s.opt.Patience)
	defer stop()
	stream := f.lk.realm.stream(f.lk.realm.shard(f.log.id))
	r, err := f.lk.nextFrom(ctx, stream, f.lk.realm.subject(f.log.id), seen)
	if err != nil || r.Seq != seen {
		return false
	}
	m, err := f.lk.parse(r, stream, true)
	if err != nil || m.Gen != gen || m.Chain != c || int64(m.Seq)+m.Count != next {
		return false
	}
	f.seen, f.next, f.chain, f.based = seen, outcrop.Seq(next), c, true
	f.in.next, f.in.first, f.in.taken = f.next, false, 0
	return true
}
