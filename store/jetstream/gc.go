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

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/store"
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
	Kept    int   // objects that nothing is known to name, and that what is damaged may name
	// Left are the reasons why something was not decided, one for each session and
	// each part of the realm that is damaged: what it may name or hold was let be.
	Left []*outcrop.Error
}

const (
	leastAge = time.Hour
	// mayName is how much younger an object may be than a message that names it. An
	// object is stored before its message; the times are those of two servers, and an
	// object is put once more when its message was long on its way.
	mayName = 24 * time.Hour
)

// GC removes what nothing needs any more: logs that a Rewrite or a removal could
// not purge, texts in the object bucket that no message names, and parts of
// objects whose writer died. Attachments stay: which of them are needed is not
// for the realm to know. It reads the header fields of every message.
//
// What cannot be read stops nothing and costs nothing: its session is named in
// Swept.Left, and every object that may belong to it is kept.
func (s *Store) GC(ctx context.Context, o GCOptions) (Swept, error) {
	if o.Older == 0 {
		o.Older = 24 * time.Hour
	}
	if o.Older < leastAge {
		return Swept{}, s.refused("gc", fmt.Sprintf("objects younger than %s may be on their way into a message", leastAge), "")
	}
	return s.gc(ctx, o.Dry, time.Now().Add(-o.Older))
}

// gc is GC for objects that were stored before then.
func (s *Store) gc(ctx context.Context, dry bool, before time.Time) (Swept, error) {
	lk, err := s.link(ctx)
	if err != nil {
		return Swept{}, err
	}
	g := sweeper{s: s, lk: lk, dry: dry, before: before, named: map[string]bool{}, damaged: map[string]bool{}}
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
	s       *Store
	lk      *link
	dry     bool
	before  time.Time
	texts   []objectInfo    // old enough
	alive   map[string]bool // names under which parts of objects are stored
	strange bool            // what the bucket says about an object cannot be read
	named   map[string]bool // objects that messages name
	damaged map[string]bool // sessions in done.Left
	blind   bool            // a whole stream is missing: anything may be named there
	unsure  time.Time       // objects that were stored before this may be named by a message that cannot be read
	done    Swept
}

// leave notes why a session, or with "" a part of the realm, is let be.
func (g *sweeper) leave(id string, err error, hint string) {
	if id != "" {
		if g.damaged[id] {
			return
		}
		g.damaged[id] = true
	}
	e := g.s.sessionProblem("gc", id, outcrop.CodeOf(err), err, err.Error(), hint)
	var in *outcrop.Error
	if errors.As(err, &in) && in.Msg != "" {
		e.Msg = in.Msg
	}
	g.done.Left = append(g.done.Left, e)
}

// doubt notes a message that cannot be read: what it names is unknown.
func (g *sweeper) doubt(id string, stored time.Time, err error) {
	g.leave(id, err, "objects that it may name are kept; restore the stream from a backup, or copy the session from another place and remove the message with the servers' own tool (nats stream rmm STREAM MESSAGE)")
	if t := stored.Add(mayName); t.After(g.unsure) {
		g.unsure = t
	}
}

// objects lists the bucket.
func (g *sweeper) objects(ctx context.Context) error {
	g.alive = map[string]bool{}
	metas := map[string]objectInfo{}
	var strange error
	err := g.lk.lasts(ctx, g.lk.objectStream(), "$O."+bucket(g.lk.realm.Name)+".M.*", false, func(r raw) error {
		var in objectInfo
		if err := json.Unmarshal(r.Data, &in); err != nil || in.Name == "" {
			// Which parts it has is unknown.
			strange = fmt.Errorf("%w: message %d of stream %s does not say what object it is about", outcrop.ErrDamaged, r.Seq, g.lk.objectStream())
			return nil
		}
		in.stored, in.at = r.Seq, r.Time
		metas[in.Name] = in
		return nil
	})
	if errors.Is(err, natsjs.ErrStreamNotFound) {
		g.gone(g.lk.objectStream())
		g.strange = true // and there is nothing to look at
		return nil
	}
	if err != nil {
		return err
	}
	if strange != nil {
		g.strange = true
		g.leave("", strange, "parts of objects that have no name are kept")
	}
	for name, in := range metas {
		if in.Deleted {
			continue
		}
		g.alive[in.NUID] = true
		if strings.HasPrefix(name, textPrefix) && in.at.Before(g.before) {
			g.texts = append(g.texts, in)
		}
	}
	return nil
}

// gone notes that a stream is missing.
func (g *sweeper) gone(stream string) {
	f := g.lk.realm.gone(g.s.Address(), stream)
	g.leave("", fmt.Errorf("%w: the stream %s is missing", outcrop.ErrDamaged, stream), f.Hint)
}

// logs purges what is left of earlier logs, and notes which objects are named.
func (g *sweeper) logs(ctx context.Context) error {
	realm := &g.lk.realm
	for shard := range realm.Streams {
		stream := realm.stream(shard)
		err := g.stream(ctx, shard)
		if errors.Is(err, natsjs.ErrStreamNotFound) {
			g.blind = true
			g.gone(stream)
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (g *sweeper) stream(ctx context.Context, shard int) error {
	realm := &g.lk.realm
	stream, prefix := realm.stream(shard), realm.subjects(shard, "")
	lasts := map[string]message{}
	err := g.lk.lasts(ctx, stream, realm.subjects(shard, "*"), true, func(r raw) error {
		id, ok := untoken(strings.TrimPrefix(r.Subject, prefix))
		if !ok {
			return nil
		}
		if m, err := g.lk.parse(r, stream, true); err == nil {
			lasts[id] = m
		} else {
			delete(lasts, id)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for id, last := range lasts {
		err := g.log(ctx, id, &last)
		switch {
		case errors.Is(err, outcrop.ErrDamaged):
			g.leave(id, err, "an earlier log of it may be left in the stream")
		case errors.Is(err, store.ErrMoved), errors.Is(err, errNoMessage):
			// Somebody writes, rewrites or removes it now.
		case err != nil:
			return err
		}
	}
	return g.names(ctx, stream, realm.subjects(shard, "*"), prefix)
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
	if g.dry {
		return nil
	}
	return g.lk.purge(ctx, id, below)
}

// names notes the objects that the messages of a stream name.
func (g *sweeper) names(ctx context.Context, stream, wildcard, prefix string) error {
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
		id, ok := untoken(strings.TrimPrefix(m.Subject(), prefix))
		if !ok {
			id = m.Subject()
		}
		if _, err := parseBody(m.Headers(), nil, true); err != nil {
			g.doubt(id, meta.Timestamp, ofMessage(stream, meta.Sequence.Stream, err))
		} else if m.Headers().Get(fieldRefs) != "" {
			if err := g.refs(ctx, id, stream, m.Subject(), meta); err != nil {
				return err
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

// refs notes the objects that one message names.
func (g *sweeper) refs(ctx context.Context, id, stream, subject string, meta *natsjs.MsgMetadata) error {
	r, err := g.lk.nextFrom(ctx, stream, subject, meta.Sequence.Stream)
	if errors.Is(err, errNoMessage) || err == nil && r.Seq != meta.Sequence.Stream {
		return nil // it was purged meanwhile, and its objects with it
	}
	if err != nil {
		return err
	}
	msg, err := g.lk.parse(r, stream, false)
	var ps []piece
	if err == nil {
		if ps, err = parseManifest(msg.Body, msg.Count); err != nil {
			err = ofMessage(stream, r.Seq, err)
		}
	}
	if err != nil {
		g.doubt(id, meta.Timestamp, err)
	}
	for _, p := range ps {
		g.named[p.Object] = true
	}
	return nil
}

// sweep removes the objects that nothing names.
func (g *sweeper) sweep(ctx context.Context) error {
	for _, in := range g.texts {
		if g.named[in.Name] {
			continue
		}
		if g.blind || !in.at.After(g.unsure) {
			g.done.Kept++
			continue
		}
		g.done.Objects++
		g.done.Bytes += in.Size
		if g.dry {
			continue
		}
		if err := g.lk.removeUnchanged(ctx, in); err != nil {
			return err
		}
	}
	if g.strange {
		return nil
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
		if g.dry {
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
