package jetstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"
)

// GCOptions is what GC does.
type GCOptions struct {
	// Older is the age below which an object that no message names is let be: it
	// may be the text of a message that is on its way. 0 means 24 hours; at least
	// one hour.
	Older time.Duration
	// Dry only says what would be removed.
	Dry bool
}

// Swept is what GC removed, or would remove.
type Swept struct {
	Logs    int   // earlier logs of rewritten sessions, and what was left of removed ones
	Objects int   // objects that no message names, and parts of objects that nothing names
	Bytes   int64 // of these objects
}

const leastAge = time.Hour

// GC removes what nothing needs any more: logs that a Rewrite or a removal could
// not purge, texts in the object bucket that no message names, and parts of
// objects whose writer died. Attachments stay: which of them are needed is not
// for the realm to know. It reads the header fields of every message.
func (s *Store) GC(ctx context.Context, o GCOptions) (Swept, error) {
	if o.Older == 0 {
		o.Older = 24 * time.Hour
	}
	if o.Older < leastAge {
		return Swept{}, s.refused("gc", fmt.Sprintf("objects younger than %s may be on their way into a message", leastAge), "")
	}
	lk, err := s.link(ctx)
	if err != nil {
		return Swept{}, err
	}
	g := sweeper{s: s, lk: lk, o: o, before: time.Now().Add(-o.Older), named: map[string]bool{}}
	// Objects are listed before the messages are read: one that is named later
	// is younger.
	err = g.objects(ctx)
	if err == nil {
		err = g.logs(ctx)
	}
	if err == nil {
		err = g.sweep(ctx)
	}
	if err != nil {
		return g.done, s.failed("gc", "", err)
	}
	return g.done, nil
}

type sweeper struct {
	s      *Store
	lk     *link
	o      GCOptions
	before time.Time
	texts  []objectInfo    // old enough
	alive  map[string]bool // names under which parts of objects are stored
	named  map[string]bool // objects that messages name
	done   Swept
}

// objects lists the bucket.
func (g *sweeper) objects(ctx context.Context) error {
	g.alive = map[string]bool{}
	metas := map[string]objectInfo{}
	old := map[string]bool{}
	err := g.lk.lasts(ctx, g.lk.objectStream(), "$O."+bucket(g.lk.realm.Name)+".M.*", false, func(r raw) error {
		var in objectInfo
		if err := json.Unmarshal(r.Data, &in); err != nil {
			return nil // not made by us, and nothing to be swept
		}
		in.stored = r.Seq
		metas[in.Name], old[in.Name] = in, r.Time.Before(g.before)
		return nil
	})
	if err != nil {
		return err
	}
	for name, in := range metas {
		if in.Deleted {
			continue
		}
		g.alive[in.NUID] = true
		if strings.HasPrefix(name, textPrefix) && old[name] {
			g.texts = append(g.texts, in)
		}
	}
	return nil
}

// logs purges what is left of earlier logs, and notes which objects are named.
func (g *sweeper) logs(ctx context.Context) error {
	realm := &g.lk.realm
	for shard := range realm.Streams {
		stream, prefix := realm.stream(shard), realm.subjects(shard, "")
		lasts := map[string]message{}
		err := g.lk.lasts(ctx, stream, realm.subjects(shard, "*"), true, func(r raw) error {
			if id, ok := untoken(strings.TrimPrefix(r.Subject, prefix)); ok {
				if m, err := g.lk.parse(r, stream, true); err == nil {
					lasts[id] = m
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		for id, last := range lasts {
			if err := g.log(ctx, id, &last); err != nil {
				return err
			}
		}
		if err := g.names(ctx, stream, realm.subjects(shard, "*")); err != nil {
			return err
		}
	}
	return nil
}

func (g *sweeper) log(ctx context.Context, id string, last *message) error {
	below := uint64(0)
	if last.Kind == kindRemove {
		below = last.Stored + 1
	} else if left, err := g.lk.unpurged(ctx, id, last); err != nil {
		return err
	} else if left {
		if below, err = g.lk.base(ctx, id, last); err != nil {
			return err
		}
	}
	if below == 0 {
		return nil
	}
	g.done.Logs++
	if g.o.Dry {
		return nil
	}
	return g.lk.purge(ctx, id, below)
}

// names notes the objects that the messages of a stream name.
func (g *sweeper) names(ctx context.Context, stream, wildcard string) error {
	if len(g.texts) == 0 {
		return nil
	}
	newest, err := g.lk.last(ctx, stream, wildcard)
	if errors.Is(err, errNoMessage) {
		return nil
	}
	if err != nil {
		return err
	}
	c, err := g.lk.consumer(ctx, stream, natsjs.OrderedConsumerConfig{FilterSubjects: []string{wildcard},
		DeliverPolicy: natsjs.DeliverAllPolicy, HeadersOnly: true, InactiveThreshold: time.Minute})
	if err != nil {
		return err
	}
	defer g.lk.forgetConsumer(stream, c)
	in, err := c.Messages(natsjs.PullMaxMessages(4096))
	if err != nil {
		return err
	}
	defer in.Stop()
	for {
		p := g.s.patience(ctx)
		m, err := in.Next(natsjs.NextContext(p.ctx))
		p.stop()
		if err != nil {
			return err
		}
		meta, err := m.Metadata()
		if err != nil {
			return err
		}
		if m.Headers().Get(fieldRefs) != "" {
			r, err := g.lk.nextFrom(ctx, stream, m.Subject(), meta.Sequence.Stream)
			if err != nil && !errors.Is(err, errNoMessage) {
				return err
			}
			if err == nil {
				msg, err := g.lk.parse(r, stream, false)
				var ps []piece
				if err == nil {
					ps, err = parseManifest(msg.Body, msg.Count)
				}
				if err != nil {
					// What a damaged message names is unknown, so nothing is swept.
					return err
				}
				for _, p := range ps {
					g.named[p.Object] = true
				}
			}
		}
		if meta.NumPending == 0 {
			if meta.Sequence.Stream >= newest.Seq {
				return nil
			}
			if last, err := g.lk.last(ctx, stream, wildcard); errors.Is(err, errNoMessage) || err == nil && last.Seq <= meta.Sequence.Stream {
				return nil
			}
		}
	}
}

// sweep removes the objects that nothing names.
func (g *sweeper) sweep(ctx context.Context) error {
	for _, in := range g.texts {
		if g.named[in.Name] {
			continue
		}
		g.done.Objects++
		g.done.Bytes += in.Size
		if g.o.Dry {
			continue
		}
		if err := g.lk.removeUnchanged(ctx, in); err != nil {
			return err
		}
	}
	return g.parts(ctx)
}

// removeUnchanged removes an object unless it was put anew meanwhile.
func (lk *link) removeUnchanged(ctx context.Context, in objectInfo) error {
	name := bucket(lk.realm.Name)
	gone, err := json.Marshal(map[string]any{"name": in.Name, "bucket": name, "nuid": in.NUID, "size": 0, "chunks": 0, "deleted": true})
	if err != nil {
		return err
	}
	m := &nats.Msg{Subject: lk.metaSubject(in.Name), Data: gone, Header: nats.Header{
		natsjs.MsgRollup:                 {natsjs.MsgRollupSubject},
		natsjs.ExpectedLastSubjSeqHeader: {strconv.FormatUint(in.stored, 10)}}}
	if _, err := lk.js.PublishMsg(ctx, m); err != nil {
		if conflict(err) {
			return nil
		}
		return err
	}
	return lk.purgeParts(ctx, in.NUID)
}

func (lk *link) purgeParts(ctx context.Context, id string) error {
	st, err := lk.js.Stream(ctx, lk.objectStream())
	if err != nil {
		return err
	}
	return st.Purge(ctx, natsjs.WithPurgeSubject("$O."+bucket(lk.realm.Name)+".C."+id))
}

// parts removes parts of objects that never became one.
func (g *sweeper) parts(ctx context.Context) error {
	prefix := "$O." + bucket(g.lk.realm.Name) + ".C."
	st, err := g.lk.js.Stream(ctx, g.lk.objectStream())
	if err != nil {
		return err
	}
	in, err := st.Info(ctx, natsjs.WithSubjectFilter(prefix+"*"))
	if err != nil {
		return err
	}
	for subject := range in.State.Subjects {
		id := strings.TrimPrefix(subject, prefix)
		if g.alive[id] {
			continue
		}
		last, err := g.lk.last(ctx, g.lk.objectStream(), subject)
		if errors.Is(err, errNoMessage) || err == nil && last.Time.After(g.before) {
			continue
		}
		if err != nil {
			return err
		}
		// An object may have been made of them since the list was read.
		if g.o.Dry {
			g.done.Objects++
			continue
		}
		if err := g.lk.purgeParts(ctx, id); err != nil {
			return err
		}
		g.done.Objects++
	}
	return nil
}
