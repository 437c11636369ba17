package jetstream

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/store"
)

// Realm is the record of a realm: what was fixed when it was made, and what is
// known about the servers.
type Realm struct {
	Version  int           `json:"version"` // of this record and of the messages
	Name     string        `json:"name"`
	Streams  int           `json:"streams"`
	Replicas int           `json:"replicas"`
	Lease    time.Duration `json:"lease"`   // nanoseconds: how long a worker's key lives without a sign of life
	Created  int64         `json:"created"` // Unix milliseconds
	Sync     SyncVerdict   `json:"sync"`
}

// SyncVerdict says whether the servers sync each write before they acknowledge
// it, as far as anybody was allowed to ask.
type SyncVerdict struct {
	State   SyncState    `json:"state"`
	Checked int64        `json:"checked,omitzero"` // Unix milliseconds
	Servers []ServerSync `json:"servers,omitempty"`
}

// doubt says what may become of what is acknowledged; "" when nothing may.
func (v SyncVerdict) doubt() string {
	switch v.State {
	case SyncAlways:
		return ""
	case SyncNotAlways:
		return "the servers of the realm do not sync each write: what is acknowledged may be lost with the power of a majority; outcrop realm check says which"
	}
	return "it is unknown whether the servers of the realm sync each write: outcrop realm check with rights on the system account finds out"
}

// SyncState is the short form of a SyncVerdict.
type SyncState string

const (
	SyncUnknown   SyncState = "unknown"    // nobody with rights on the system account asked yet
	SyncAlways    SyncState = "always"     // every server with a part of the realm syncs each write
	SyncNotAlways SyncState = "not always" // at least one server does not: an acknowledged event may be lost with the power of a majority
)

// ServerSync is what one server said.
type ServerSync struct {
	Name   string `json:"name"`
	Always bool   `json:"always"`
}

// RealmOptions is how a realm is made.
type RealmOptions struct {
	Streams  int           // 0 means 16
	Replicas int           // 0 means 3
	Single   bool          // one copy of everything, on one server
	Lease    time.Duration // 0 means 15 s; at least 1 s
	MaxBytes int64         // of each stream; 0 means no limit
}

const (
	version         = 1
	defaultStreams  = 16
	maxStreams      = 1024
	defaultReplicas = 3
	defaultLease    = 15 * time.Second
	minLease        = time.Second
	maxLease        = time.Hour
	recordKey       = "realm"
	// minPayload is the smallest limit on messages that servers may have, in
	// bytes: header fields have to fit.
	minPayload = 64 << 10
)

// bucket is the name of the realm's record and of its objects.
func bucket(name string) string { return "outcrop_" + name }

// workersBucket is the name of the keys of the workers.
func workersBucket(name string) string { return "outcrop_" + name + "_workers" }

func (r *Realm) stream(shard int) string {
	return "outcrop_" + r.Name + "_log_" + strconv.Itoa(shard)
}

// shard is the stream of a session.
func (r *Realm) shard(id string) int {
	sum := sha256.Sum256([]byte(id))
	return int(binary.BigEndian.Uint64(sum[:]) % uint64(r.Streams))
}

// subject is the subject of a session.
func (r *Realm) subject(id string) string {
	return r.subjects(r.shard(id), token(id))
}

func (r *Realm) subjects(shard int, tok string) string {
	return "outcrop." + r.Name + ".log." + strconv.Itoa(shard) + "." + tok
}

// streamConfig is a stream of the realm.
func (r *Realm) streamConfig(shard int, o RealmOptions) natsjs.StreamConfig {
	limit := o.MaxBytes
	if limit <= 0 {
		limit = -1
	}
	return natsjs.StreamConfig{
		Name: r.stream(shard), Subjects: []string{r.subjects(shard, "*")},
		Description: "outcrop: logs of the realm " + r.Name,
		Retention:   natsjs.LimitsPolicy, Discard: natsjs.DiscardNew, Storage: natsjs.FileStorage,
		MaxMsgs: -1, MaxBytes: limit, MaxMsgsPerSubject: -1, MaxConsumers: -1,
		Replicas: r.Replicas, AllowDirect: true,
	}
}

// Init makes a realm: its streams, its record and its buckets. What exists with
// the same numbers is kept, so that an Init that was interrupted can be made
// again; a realm that was made with other numbers is refused (store.ErrExists).
func Init(ctx context.Context, address string, ro RealmOptions, o Options) (Realm, error) {
	s, err := New(address, o)
	if err != nil {
		return Realm{}, err
	}
	defer s.Close()
	r, err := ro.realm(s.addr.Name, s.now())
	if err != nil {
		return Realm{}, s.refused("init", err.Error(), "")
	}
	nc, js, err := s.dial(ctx)
	if err != nil {
		return Realm{}, err
	}
	defer nc.Close()
	lk := &link{s: s, nc: nc, js: js, realm: r, heard: time.Now()}
	// What was just made may have no leader yet, and servers that were just started
	// answer nothing before they have found each other.
	err = lk.tryWithin(ctx, answerWithin+time.Duration(r.Streams)*answerWithin/4, func(ctx context.Context) (err error) {
		r, err = s.init(ctx, lk, ro)
		return err
	})
	if err != nil {
		return Realm{}, s.failed("init", "", err)
	}
	return r, nil
}

// init does what Init does, once.
func (s *Store) init(ctx context.Context, lk *link, ro RealmOptions) (Realm, error) {
	r, js := lk.realm, lk.js
	kv, err := js.CreateKeyValue(ctx, natsjs.KeyValueConfig{Bucket: bucket(r.Name), Description: "outcrop: the record of the realm " + r.Name,
		History: 1, Storage: natsjs.FileStorage, Replicas: r.Replicas})
	if errors.Is(err, natsjs.ErrBucketExists) {
		kv, err = js.KeyValue(ctx, bucket(r.Name))
	}
	if err != nil {
		return Realm{}, s.failed("init", "", err)
	}
	entry, err := kv.Get(ctx, recordKey)
	switch {
	case err == nil:
		had, err := parseRealm(entry.Value(), r.Name)
		if err != nil {
			return Realm{}, s.problem("init", outcrop.ErrUnsupported, err.Error(), "")
		}
		if had.Streams != r.Streams || had.Replicas != r.Replicas || had.Lease != r.Lease {
			return Realm{}, s.problem("init", store.ErrExists, fmt.Sprintf("the realm was made with %d streams, %d replicas and a lease of %s", had.Streams, had.Replicas, had.Lease),
				"these numbers are fixed: make a realm with another name and copy the sessions with outcrop convert")
		}
		r = had
	case !errors.Is(err, natsjs.ErrKeyNotFound):
		return Realm{}, s.failed("init", "", err)
	}
	if entry == nil {
		if err := s.fits(ctx, js, &r); err != nil {
			return Realm{}, err
		}
	}
	if err := r.make(ctx, js, ro); err != nil {
		return Realm{}, s.failed("init", "", err)
	}
	if entry == nil {
		// The record comes last: a realm without one is not there yet.
		if _, err := kv.Create(ctx, recordKey, r.record()); err != nil && !errors.Is(err, natsjs.ErrKeyExists) {
			return Realm{}, s.failed("init", "", err)
		}
	}
	// What was there already may be configured in another way.
	rep, err := s.check(ctx, lk)
	if err != nil {
		return Realm{}, s.failed("init", "", err)
	}
	for _, f := range rep.Findings {
		if f.What == noLeader {
			return Realm{}, s.failed("init", "", nats.ErrNoResponders)
		}
		if !f.Warning {
			return Realm{}, s.refused("init", f.Where+": "+f.What, "put it right there, or make a realm with another name")
		}
	}
	return rep.Realm, nil
}

// fits refuses a number of streams other than that of a realm whose record was
// removed and whose streams are there: sessions would be looked for in other
// streams than theirs. A realm that was begun and holds nothing may be made anew.
func (s *Store) fits(ctx context.Context, js natsjs.JetStream, r *Realm) error {
	var there []int
	held := uint64(0)
	for shard := 0; shard <= r.Streams; shard++ {
		if shard == r.Streams && len(there) == 0 {
			break // where nothing is, the one behind the last is not asked for: a user may have no right to
		}
		st, err := js.Stream(ctx, r.stream(shard))
		switch {
		case errors.Is(err, natsjs.ErrStreamNotFound):
		case err != nil:
			return s.failed("init", "", err)
		default:
			there = append(there, shard)
			held += st.CachedInfo().State.Msgs
		}
	}
	switch n := len(there); {
	case n > 0 && there[n-1] == r.Streams:
		return s.problem("init", store.ErrExists, fmt.Sprintf("the realm has no record, but the stream %s: it was made with more than %d streams", r.stream(r.Streams), r.Streams),
			"give --streams the number that it was made with; the last stream's number is one less")
	case held > 0 && n < r.Streams:
		return s.problem("init", store.ErrExists, fmt.Sprintf("the realm has no record, and %d of %d streams, with messages: it was made with another number, or streams were removed", n, r.Streams),
			"give --streams the number that it was made with, or restore the streams first")
	}
	return nil
}

// realm is the record that the options ask for.
func (o RealmOptions) realm(name string, now int64) (Realm, error) {
	r := Realm{Version: version, Name: name, Streams: o.Streams, Replicas: o.Replicas, Lease: o.Lease, Created: now, Sync: SyncVerdict{State: SyncUnknown}}
	if r.Streams == 0 {
		r.Streams = defaultStreams
	}
	switch {
	case o.Single && r.Replicas > 1:
		return r, errors.New("one copy of everything has no replicas: give the one or the other")
	case o.Single:
		r.Replicas = 1
	case r.Replicas == 0:
		r.Replicas = defaultReplicas
	}
	if r.Lease == 0 {
		r.Lease = defaultLease
	}
	switch {
	case r.Streams < 1 || r.Streams > maxStreams:
		return r, fmt.Errorf("a realm has 1 to %d streams, not %d", maxStreams, r.Streams)
	case r.Replicas == 1 && !o.Single:
		return r, errors.New("one replica loses everything with one server: that must be asked for with single")
	case r.Replicas != 1 && r.Replicas != 3 && r.Replicas != 5:
		return r, fmt.Errorf("a realm has 3 or 5 replicas, not %d", r.Replicas)
	case r.Lease < minLease || r.Lease > maxLease:
		return r, fmt.Errorf("a lease is %s to 1h, not %s", minLease, r.Lease)
	}
	return r, nil
}

// make makes the streams and buckets.
func (r *Realm) make(ctx context.Context, js natsjs.JetStream, o RealmOptions) error {
	for shard := range r.Streams {
		_, err := js.CreateStream(ctx, r.streamConfig(shard, o))
		// One that is there with another configuration is judged by Check.
		if err != nil && !errors.Is(err, natsjs.ErrStreamNameAlreadyInUse) {
			return fmt.Errorf("stream %s: %w", r.stream(shard), err)
		}
	}
	_, err := js.CreateKeyValue(ctx, natsjs.KeyValueConfig{Bucket: workersBucket(r.Name), Description: "outcrop: the workers of the realm " + r.Name + " that are alive",
		History: 1, TTL: r.Lease, Storage: natsjs.FileStorage, Replicas: r.Replicas})
	if err != nil && !errors.Is(err, natsjs.ErrBucketExists) {
		return fmt.Errorf("bucket %s: %w", workersBucket(r.Name), err)
	}
	_, err = js.CreateObjectStore(ctx, natsjs.ObjectStoreConfig{Bucket: bucket(r.Name), Description: "outcrop: objects of the realm " + r.Name,
		Storage: natsjs.FileStorage, Replicas: r.Replicas})
	if err != nil && !errors.Is(err, natsjs.ErrBucketExists) {
		return fmt.Errorf("objects of %s: %w", bucket(r.Name), err)
	}
	return nil
}

func (r Realm) record() []byte {
	b, err := json.Marshal(r)
	if err != nil {
		panic("jetstream: a record of numbers and strings is JSON: " + err.Error())
	}
	return b
}

// parseRealm reads the record of the realm of a name.
func parseRealm(b []byte, name string) (r Realm, err error) {
	if err := json.Unmarshal(b, &r); err != nil {
		return r, fmt.Errorf("the record of the realm is not readable: %w", err)
	}
	switch {
	case r.Version != version:
		return r, fmt.Errorf("the realm is of version %d; this program knows version %d", r.Version, version)
	case r.Name != name:
		return r, fmt.Errorf("the record is that of the realm %q: streams and buckets keep the names that they were made with", clip(r.Name))
	case r.Streams < 1 || r.Streams > maxStreams || r.Lease < minLease || r.Lease > maxLease || r.Replicas < 1:
		return r, fmt.Errorf("the record of the realm is not readable: %d streams, %d replicas, a lease of %s", r.Streams, r.Replicas, r.Lease)
	}
	return r, nil
}
