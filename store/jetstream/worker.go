package jetstream

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"

	"github.com/outcrop-dev/outcrop/store"
)

// worker is the key that says that this store is alive, and the leases that it
// answers for. The key is there while there is a lease.
type worker struct {
	starting chan struct{} // holds a token while a goroutine writes the key

	mu      sync.Mutex
	leases  map[string]*Lease // by session; a reserved place is there too
	kv      natsjs.KeyValue
	length  time.Duration
	renewed time.Time // when the last renewal that was acknowledged was sent
	lapses  int       // how often the key may have expired while there were leases
	lapsed  bool      // it may have now
	stop    context.CancelFunc
	done    chan struct{}
	taken   *nats.Subscription
}

// WorkerInfo is a worker that is alive.
type WorkerInfo struct {
	ID     string
	Holder store.Holder
}

// workerKey is the value of a worker's key.
type workerKey struct {
	Holder store.Holder `json:"holder"`
}

// elapsed is the time since t by the clock that goes on longest: the monotonic
// one stands still while a machine sleeps, and the other one may be set back.
func elapsed(t time.Time) time.Duration {
	now := time.Now()
	return max(now.Sub(t), now.Round(0).Sub(t.Round(0)))
}

// begin writes the key and keeps it alive, if nothing does yet.
func (w *worker) begin(ctx context.Context, lk *link) error {
	// One at a time, and nobody who only asks waits for it.
	select {
	case w.starting <- struct{}{}:
		defer func() { <-w.starting }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if alive, _ := w.now(); alive {
		return nil
	}
	value, err := json.Marshal(workerKey{lk.s.holder()})
	if err != nil {
		return err
	}
	var kv natsjs.KeyValue
	var began time.Time
	err = lk.try(ctx, func(ctx context.Context) (err error) {
		if kv == nil {
			if kv, err = lk.js.KeyValue(ctx, workersBucket(lk.realm.Name)); err != nil {
				return err
			}
		}
		began = time.Now()
		_, err = kv.Put(ctx, lk.s.id, value)
		return err
	})
	if err != nil {
		return lk.s.failed("open", "", err)
	}
	if w.kept() {
		w.renew(lk, began)
		return nil
	}
	taken, err := lk.nc.Subscribe(lk.realm.takenSubject(lk.s.id), w.takenOver)
	if err != nil {
		return lk.s.failed("open", "", err)
	}
	life, stop := context.WithCancel(context.Background())
	w.mu.Lock()
	defer w.mu.Unlock()
	w.kv, w.length, w.renewed, w.taken = kv, lk.realm.Lease, began, taken
	w.stop, w.done = stop, make(chan struct{})
	go w.keep(life, lk, w.length, value)
	return nil
}

// kept reports whether the key is being kept alive.
func (w *worker) kept() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.stop != nil
}

// renew notes that the key was renewed by a message that was sent then. When the
// one before may have expired meanwhile, somebody may have taken sessions over,
// although the key is there now.
func (w *worker) renew(lk *link, began time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.expired(lk)
	w.renewed, w.lapsed = began, false
}

// expired tells the leases, once, when the key may have expired; w.mu is held.
func (w *worker) expired(lk *link) {
	if w.lapsed || elapsed(w.renewed) < w.length {
		return
	}
	w.lapsed = true
	w.lapses++
	if len(w.leases) > 0 {
		lk.s.opt.Logger.Warn("the worker's lease was not renewed in time: others may take its sessions over", "worker", lk.s.id, "sessions", len(w.leases))
	}
	for _, l := range w.leases {
		if l != nil {
			l.lose()
		}
	}
}

// renewals is how often a lease is renewed in its length.
const renewals = 4

// keep renews the key, and notices when that did not succeed in time.
func (w *worker) keep(ctx context.Context, lk *link, length time.Duration, value []byte) {
	defer close(w.done)
	tick := time.NewTicker(length / renewals)
	defer tick.Stop()
	answers := make(chan time.Time, 1)
	waiting := false
	for {
		if !waiting {
			waiting = true
			began := time.Now()
			go func() {
				ask, stop := context.WithTimeout(ctx, length/2)
				defer stop()
				if _, err := w.kv.Put(ask, lk.s.id, value); err != nil {
					began = time.Time{}
					if ctx.Err() == nil {
						lk.s.opt.Logger.Info("the worker's key was not renewed", "worker", lk.s.id, "error", err)
					}
				}
				answers <- began
			}()
		}
		select {
		case began := <-answers:
			waiting = false
			if !began.IsZero() {
				w.renew(lk, began)
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		w.lapse(lk)
	}
}

// lapse looks whether the key may have expired.
func (w *worker) lapse(lk *link) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.expired(lk)
}

// good reports whether the key was there all the time since a lease saw lapses.
func (w *worker) good(lapses int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lapses == lapses && !w.lapsed && elapsed(w.renewed) < w.length
}

// now reports whether the key is there, and how often it may have expired.
func (w *worker) now() (alive bool, lapses int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.stop != nil && elapsed(w.renewed) < w.length, w.lapses
}

// reserve keeps others of this process out of a session.
func (w *worker) reserve(id string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, there := w.leases[id]; there {
		return false
	}
	w.leases[id] = nil
	return true
}

func (w *worker) set(id string, l *Lease) (lapses int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.leases[id] = l
	return w.lapses
}

func (w *worker) forget(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.leases, id)
}

func (w *worker) holds(id string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, there := w.leases[id]
	return there
}

// takenOver hears that a session was taken over by hand.
func (w *worker) takenOver(m *nats.Msg) {
	id, ok := untoken(string(m.Data))
	if !ok {
		return
	}
	w.mu.Lock()
	l := w.leases[id]
	w.mu.Unlock()
	if l != nil {
		// Anybody can say so; the next Held asks the leader.
		l.doubt()
	}
}

// end takes the key away.
func (w *worker) end(s *Store) {
	w.mu.Lock()
	stop, done, kv, taken := w.stop, w.done, w.kv, w.taken
	w.stop = nil
	w.mu.Unlock()
	if stop == nil {
		return
	}
	stop()
	<-done
	taken.Unsubscribe()
	ctx, cancel := context.WithTimeout(context.Background(), min(s.opt.AckWait, 2*time.Second))
	defer cancel()
	if err := kv.Delete(ctx, s.id); err != nil {
		s.opt.Logger.Info("the worker's key could not be taken away; it expires", "worker", s.id, "error", err)
	}
}

func (r *Realm) takenSubject(worker string) string {
	return "outcrop." + r.Name + ".taken." + worker
}

// alive looks a worker's key up, at the leader: a replica may not have it yet.
func (lk *link) alive(ctx context.Context, worker string) (store.Holder, bool, error) {
	bucket := workersBucket(lk.realm.Name)
	r, err := lk.last(ctx, "KV_"+bucket, "$KV."+bucket+"."+worker)
	switch {
	case errors.Is(err, errNoMessage):
		return store.Holder{}, false, nil
	case err != nil:
		return store.Holder{}, false, err
	case r.Header.Get("KV-Operation") != "":
		return store.Holder{}, false, nil
	}
	return parseKey(r.Data), true, nil
}

func parseKey(b []byte) store.Holder {
	var k workerKey
	if json.Unmarshal(b, &k) != nil || k.Holder == (store.Holder{}) {
		k.Holder.Program = "another program"
	}
	return k.Holder
}

// workers are those that are alive.
func (lk *link) workers(ctx context.Context) (map[string]store.Holder, error) {
	bucket := workersBucket(lk.realm.Name)
	all := map[string]store.Holder{}
	err := lk.lasts(ctx, "KV_"+bucket, "$KV."+bucket+".*", false, func(r raw) error {
		if r.Header.Get("KV-Operation") == "" {
			all[strings.TrimPrefix(r.Subject, "$KV."+bucket+".")] = parseKey(r.Data)
		} else {
			delete(all, strings.TrimPrefix(r.Subject, "$KV."+bucket+"."))
		}
		return nil
	})
	return all, err
}

// Workers are the workers that are alive.
func (s *Store) Workers(ctx context.Context) ([]WorkerInfo, error) {
	lk, err := s.link(ctx)
	if err != nil {
		return nil, err
	}
	all, err := lk.workers(ctx)
	if err != nil {
		return nil, s.failed("list", "", err)
	}
	var ws []WorkerInfo
	for id, h := range all {
		ws = append(ws, WorkerInfo{id, h})
	}
	sortWorkers(ws)
	return ws, nil
}

// mine reports whether a session's place is this lease's.
func (w *worker) mine(id string, l *Lease) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.leases[id] == l
}
