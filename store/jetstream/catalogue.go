package jetstream

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	natsjs "github.com/nats-io/nats.go/jetstream"

	"github.com/outcrop-dev/outcrop/store"
)

var _ store.Cataloguer = (*Store)(nil)

// A list that is kept is gone on with like this, stream by stream. Of each session
// that nobody held, the sequence of its last message is kept, where that is not
// beyond the stream's newest one of the moment when the listing began; so whatever
// changed since stands behind the highest of them. These messages are read, the
// stream is asked which subjects it has, with how many messages, and only what is
// not known by that is asked for one by one.
//
// The message with the highest kept sequence must still be there and have its time:
// a stream that was restored from a backup has other ones.

// stamp is what is kept of a session's last message.
type stamp struct {
	seq      uint64 // its sequence
	messages uint64 // of the session
	stored   int64  // Unix nanoseconds
}

func (t stamp) String() string { return fmt.Sprintf("%d %d %d", t.seq, t.messages, t.stored) }

func parseStamp(text string) (t stamp, ok bool) {
	seq, rest, _ := strings.Cut(text, " ")
	messages, stored, _ := strings.Cut(rest, " ")
	var errs [3]error
	t.seq, errs[0] = strconv.ParseUint(seq, 10, 64)
	t.messages, errs[1] = strconv.ParseUint(messages, 10, 64)
	t.stored, errs[2] = strconv.ParseInt(stored, 10, 64)
	return t, errs == [3]error{} && t.seq > 0
}

const (
	// askedAtOnce is how many sessions are asked for by name in one question, and
	// fewBehind how many messages behind what is known are read at least before a
	// stream is listed as a whole.
	askedAtOnce = 256
	fewBehind   = 1000
)

// ListKnown is store.Cataloguer's. What known gives is of one earlier listing: an
// entry that was kept longer than others hides what changed between.
func (s *Store) ListKnown(ctx context.Context, known func(place string) (store.Kept, bool)) (_ []store.Listed, err error) {
	lk, err := s.link(ctx)
	if err != nil {
		return nil, err
	}
	defer s.observe("list", time.Now(), &err)
	if known == nil {
		known = func(string) (store.Kept, bool) { return store.Kept{}, false }
	}
	shards := make([]catalogue, lk.realm.Streams)
	var all []store.Listed
	lacks, err := lk.shards(ctx, func(ctx context.Context, shard int) error {
		c := &shards[shard]
		*c = catalogue{lk: lk, shard: shard, stream: lk.realm.stream(shard)}
		return c.list(ctx, known)
	}, func(workers map[string]store.Holder) {
		for i := range shards {
			all = append(all, shards[i].kept...)
			for j := range shards[i].fresh {
				h := &shards[i].fresh[j]
				h.Holder, h.Alive = workers[h.Owner]
				all = append(all, shards[i].listed(h))
			}
		}
	})
	if err != nil {
		return nil, s.failed("list", "", err)
	}
	for i := range lacks {
		in := s.info(&lacks[i])
		all = append(all, store.Listed{Info: &in, Place: in.Path})
	}
	return all, nil
}

// catalogue is the listing of one stream.
type catalogue struct {
	lk     *link
	shard  int
	stream string

	bound    uint64            // the newest message when the listing began
	messages map[string]uint64 // how many each session has
	kept     []store.Listed
	fresh    []Head
}

// listed is an entry that was read.
func (c *catalogue) listed(h *Head) store.Listed {
	in := c.lk.s.info(h)
	l := store.Listed{Info: &in, Place: h.ID}
	// Whether an owner lives is known for a moment only; what came later than the
	// bound may hide what came between.
	if h.Problem == nil && h.Owner == "" && h.last.Stored <= c.bound {
		l.Stamp = stamp{h.last.Stored, c.messages[h.ID], h.stored.UnixNano()}.String()
	}
	return l
}

func (c *catalogue) list(ctx context.Context, known func(place string) (store.Kept, bool)) error {
	wildcard := c.lk.realm.subjects(c.shard, "*")
	newest, err := c.lk.last(ctx, c.stream, wildcard)
	if errors.Is(err, errNoMessage) {
		return nil
	}
	if err != nil {
		return err
	}
	c.bound = newest.Seq
	if err := c.count(ctx, wildcard); err != nil {
		return err
	}
	had := map[string]store.Kept{}
	stamps := map[string]stamp{}
	top, topID := stamp{}, ""
	for id := range c.messages {
		k, ok := known(id)
		if !ok || k.ID != id {
			continue
		}
		if t, ok := parseStamp(k.Stamp); ok {
			had[id], stamps[id] = k, t
			if t.seq > top.seq {
				top, topID = t, id
			}
		}
	}
	behind := fewBehind + uint64(len(c.messages))/2
	if 2*len(had) < len(c.messages) || top.seq > c.bound || c.bound-top.seq > behind {
		c.fresh, err = c.lk.heads(ctx, c.shard)
		return err
	}
	switch r, err := c.lk.nextFrom(ctx, c.stream, c.lk.realm.subject(topID), top.seq); {
	case err != nil && !errors.Is(err, errNoMessage):
		return err
	case err != nil || r.Seq != top.seq || r.Time.UnixNano() != top.stored:
		c.fresh, err = c.lk.heads(ctx, c.shard)
		return err
	}
	found, err := c.since(ctx, wildcard, top.seq)
	if err != nil {
		return err
	}
	var ask []string
	for id, n := range c.messages {
		switch t, ok := stamps[id]; {
		case found[id]:
			ask = append(ask, id)
		case ok && t.messages == n:
			c.kept = append(c.kept, store.Listed{Place: id, Stamp: had[id].Stamp})
		default:
			ask = append(ask, id)
		}
	}
	for id := range found {
		if _, counted := c.messages[id]; !counted {
			ask = append(ask, id)
		}
	}
	return c.ask(ctx, ask)
}

// count asks which sessions there are, with how many messages.
func (c *catalogue) count(ctx context.Context, wildcard string) error {
	prefix := strings.TrimSuffix(wildcard, "*")
	return c.lk.tryWithin(ctx, c.lk.s.opt.Patience/2, func(ctx context.Context) error {
		st, err := c.lk.js.Stream(ctx, c.stream)
		if err != nil {
			return err
		}
		in, err := st.Info(ctx, natsjs.WithSubjectFilter(wildcard))
		if err != nil {
			return err
		}
		c.messages = make(map[string]uint64, len(in.State.Subjects))
		for subject, n := range in.State.Subjects {
			if id, ok := untoken(strings.TrimPrefix(subject, prefix)); ok {
				c.messages[id] = n
			}
		}
		return nil
	})
}

// since are the sessions with messages behind a sequence, through the bound.
func (c *catalogue) since(ctx context.Context, wildcard string, seq uint64) (found map[string]bool, err error) {
	found = map[string]bool{}
	prefix := strings.TrimSuffix(wildcard, "*")
	err = c.lk.fetch(ctx, c.stream, wildcard, seq+1, c.bound, func(r raw) bool {
		if id, ok := untoken(strings.TrimPrefix(r.Subject, prefix)); ok {
			found[id] = true
		}
		return true
	})
	if errors.Is(err, errNoMessage) {
		err = nil // the newest ones were purged meanwhile
	}
	return found, err
}

// ask reads the last messages of some sessions.
func (c *catalogue) ask(ctx context.Context, ids []string) error {
	found := map[string]Head{}
	for some := range slices.Chunk(ids, askedAtOnce) {
		subjects := make([]string, len(some))
		for i, id := range some {
			subjects[i] = c.lk.realm.subject(id)
		}
		these := map[string]Head{}
		behind, err := c.lk.lastsDirect(ctx, c.stream, subjects, c.bound, c.lk.into(these, c.shard))
		if behind || err != nil {
			// A replica that is behind, or is away: the leader of the stream knows.
			clear(these)
			if err := c.askLeader(ctx, some, these); err != nil {
				return err
			}
		}
		maps.Copy(found, these)
	}
	var err error
	c.fresh, err = c.lk.headed(ctx, found)
	return err
}

func (c *catalogue) askLeader(ctx context.Context, ids []string, found map[string]Head) error {
	take := c.lk.into(found, c.shard)
	for _, id := range ids {
		r, err := c.lk.last(ctx, c.stream, c.lk.realm.subject(id))
		if errors.Is(err, errNoMessage) {
			continue
		}
		if err == nil {
			err = take(r)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
