package jetstream

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/nats-io/nuid"

	natsjs "github.com/nats-io/nats.go/jetstream"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/blob"
)

// Objects of a realm are in one bucket: attachments, under "a." and their digest,
// and texts of messages that are too long, under "b.", the digest and a name that
// is given once. A text belongs to one message, so that it goes when the message
// is gone; an attachment belongs to nobody.

const (
	attachmentPrefix = "a."
	textPrefix       = "b."
)

// fit makes the message of a batch: with the text in it when that fits, else with
// the names of objects that have it.
func (lk *link) fit(ctx context.Context, id string, m message, body []byte, expected uint64) (*flight, error) {
	m.Head.Bytes += int64(len(body))
	m.Body = body
	m.Chain = m.next()
	f := lk.prepare(id, m, expected)
	limit, err := lk.limit(ctx, id, f.stream)
	if err != nil {
		return nil, err
	}
	if int64(fieldsSize(f.out)+len(body)) <= limit {
		return f, nil
	}
	p, err := lk.putText(ctx, body, m.Count)
	if err != nil {
		return nil, err
	}
	f = lk.refer(id, m, []piece{p}, expected)
	f.text, f.named, f.put = body, p.Object, time.Now()
	return f, nil
}

// textAge is how long an object that no message names yet may wait for its
// message. GC lets it be for longer.
const textAge = 20 * time.Minute

// refresh puts the object of a message that was long on its way once more.
func (lk *link) refresh(ctx context.Context, f *flight) error {
	if f.text == nil || elapsed(f.put) < textAge {
		return nil
	}
	if err := lk.putObject(ctx, f.named, f.text); err != nil {
		return err
	}
	f.put = time.Now()
	return nil
}

// refer makes a message that names objects.
func (lk *link) refer(id string, m message, ps []piece, expected uint64) *flight {
	m.Refs, m.Body = true, manifest(ps)
	m.Chain = m.next()
	return lk.prepare(id, m, expected)
}

// limit is how many bytes a message may have.
func (lk *link) limit(ctx context.Context, id, stream string) (int64, error) {
	most := lk.nc.MaxPayload()
	if v, ok := lk.limits.Load(stream); ok {
		return min(most, v.(int64)), nil
	}
	var st natsjs.Stream
	err := lk.try(ctx, func(ctx context.Context) (err error) {
		st, err = lk.js.Stream(ctx, stream)
		return err
	})
	if err != nil {
		return 0, err
	}
	shard := lk.realm.shard(id)
	if err := lk.mayWrite(st.CachedInfo(), lk.realm.subjects(shard, "*")); err != nil {
		return 0, err
	}
	own := int64(math.MaxInt64)
	if n := int64(st.CachedInfo().Config.MaxMsgSize); n > 0 {
		own = n
	}
	lk.limits.Store(stream, own)
	return min(most, own), nil
}

// putText stores the text of a message; it is durable on return.
func (lk *link) putText(ctx context.Context, b []byte, count int64) (piece, error) {
	sum := sha256.Sum256(b)
	p := piece{SHA256: hex.EncodeToString(sum[:]), Bytes: int64(len(b)), Count: count}
	p.Object = textPrefix + p.SHA256 + "." + nuid.Next()
	return p, lk.putObject(ctx, p.Object, b)
}

func (lk *link) bucket(ctx context.Context) (natsjs.ObjectStore, error) {
	lk.mu.Lock()
	defer lk.mu.Unlock()
	if lk.objects == nil {
		o, err := lk.js.ObjectStore(ctx, bucket(lk.realm.Name))
		if err != nil {
			return nil, err
		}
		lk.objects = o
	}
	return lk.objects, nil
}

// partBytes is the size of the parts in which objects are stored.
const partBytes = 128 << 10

// putObject stores an object, and tries again while the servers are away.
func (lk *link) putObject(ctx context.Context, name string, b []byte) error {
	return lk.try(ctx, func(ctx context.Context) error {
		o, err := lk.bucket(ctx)
		if err != nil {
			return err
		}
		part := uint32(min(partBytes, lk.nc.MaxPayload()-1024)) // servers with small messages get small parts
		_, err = o.Put(ctx, natsjs.ObjectMeta{Name: name, Opts: &natsjs.ObjectMetaOptions{ChunkSize: part}}, bytes.NewReader(b))
		return err
	})
}

// objectInfo is what the bucket says about an object.
type objectInfo struct {
	Name    string `json:"name"`
	NUID    string `json:"nuid"`
	Size    int64  `json:"size"`
	Chunks  int    `json:"chunks"`
	Deleted bool   `json:"deleted"`

	stored uint64 // sequence of the message that says so
	at     time.Time
}

func (lk *link) objectStream() string { return "OBJ_" + bucket(lk.realm.Name) }

func (lk *link) metaSubject(name string) string {
	return "$O." + bucket(lk.realm.Name) + ".M." + base64.URLEncoding.EncodeToString([]byte(name))
}

// info looks an object up, at the leader: a replica may not have it yet.
func (lk *link) info(ctx context.Context, name string) (objectInfo, error) {
	r, err := lk.last(ctx, lk.objectStream(), lk.metaSubject(name))
	if errors.Is(err, errNoMessage) {
		return objectInfo{}, fmt.Errorf("%w: object %s", outcrop.ErrNotFound, name)
	}
	if err != nil {
		return objectInfo{}, err
	}
	var in objectInfo
	if err := json.Unmarshal(r.Data, &in); err != nil {
		return in, fmt.Errorf("%w: what the bucket says about object %s: %w", outcrop.ErrDamaged, name, err)
	}
	if in.Deleted {
		return in, fmt.Errorf("%w: object %s", outcrop.ErrNotFound, name)
	}
	in.stored = r.Seq
	return in, nil
}

// object reads an object, and checks its bytes when sum is not "".
func (lk *link) object(ctx context.Context, name, sum string) ([]byte, error) {
	in, err := lk.info(ctx, name)
	if err != nil {
		return nil, err
	}
	damaged := func(what string) error {
		return fmt.Errorf("%w: object %s: %s", outcrop.ErrDamaged, name, what)
	}
	if in.Size < 0 || in.Size > maxText || in.Chunks < 0 {
		return nil, damaged("its size is impossible")
	}
	b := make([]byte, 0, min(in.Size, 64<<20))
	if in.Chunks > 0 {
		subject := "$O." + bucket(lk.realm.Name) + ".C." + in.NUID
		last, err := lk.last(ctx, lk.objectStream(), subject)
		if err == nil {
			err = lk.fetch(ctx, lk.objectStream(), subject, 1, last.Seq, func(r raw) bool {
				b = append(b, r.Data...)
				return int64(len(b)) <= in.Size
			})
		}
		if errors.Is(err, errNoMessage) {
			return nil, damaged("parts of it are missing")
		}
		if err != nil {
			return nil, err
		}
	}
	got := sha256.Sum256(b)
	switch {
	case int64(len(b)) != in.Size:
		return nil, damaged(fmt.Sprintf("it has %d bytes, and should have %d", len(b), in.Size))
	case sum != "" && hex.EncodeToString(got[:]) != sum:
		return nil, damaged("its bytes are not those that the message names")
	}
	return b, nil
}

var _ store.Attachments = (*Store)(nil)

// Objects are the realm's attachments.
func (s *Store) Objects() store.Objects { return objects{s} }

type objects struct{ s *Store }

var _ store.ObjectRemover = objects{}

// Get is store.Objects's.
func (o objects) Get(ctx context.Context, id string) ([]byte, error) {
	if err := blob.Valid(id); err != nil {
		return nil, err
	}
	lk, err := o.s.link(ctx)
	if err != nil {
		return nil, err
	}
	b, err := lk.object(ctx, attachmentPrefix+id[len("sha256:"):], "")
	switch {
	case errors.Is(err, outcrop.ErrNotFound):
		return nil, o.s.problem("read attachment", outcrop.ErrNotFound, id+" is missing", "copy it from where the session was made")
	case errors.Is(err, outcrop.ErrDamaged), err == nil && blob.ID(b) != id:
		return nil, o.s.problem("read attachment", outcrop.ErrDamaged, "its bytes are not those of "+id, "copy it again from where the session was made")
	case err != nil:
		return nil, o.s.failed("read attachment", "", err)
	}
	return b, nil
}

// Put is store.Objects's. Bytes that are not those of their id are put right.
func (o objects) Put(ctx context.Context, b []byte) (string, error) {
	if len(b) > blob.MaxSize {
		return "", o.s.problem("store attachment", outcrop.ErrRefused, "it is larger than an attachment may be", "")
	}
	lk, err := o.s.link(ctx)
	if err != nil {
		return "", err
	}
	id := blob.ID(b)
	if had, err := o.Get(ctx, id); err == nil && bytes.Equal(had, b) {
		return id, nil
	}
	if err := lk.putObject(ctx, attachmentPrefix+id[len("sha256:"):], b); err != nil {
		return "", o.s.failed("store attachment", "", err)
	}
	return id, nil
}

// RemoveObject is store.ObjectRemover's.
func (o objects) RemoveObject(ctx context.Context, id string) error {
	if err := blob.Valid(id); err != nil {
		return err
	}
	lk, err := o.s.link(ctx)
	if err != nil {
		return err
	}
	if err := lk.removeObject(ctx, attachmentPrefix+id[len("sha256:"):]); err != nil {
		return o.s.failed("remove attachment", "", err)
	}
	return nil
}

func (lk *link) removeObject(ctx context.Context, name string) error {
	o, err := lk.bucket(ctx)
	if err != nil {
		return err
	}
	if err := o.Delete(ctx, name); err != nil && !errors.Is(err, natsjs.ErrObjectNotFound) {
		return err
	}
	return nil
}
