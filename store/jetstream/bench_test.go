package jetstream

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"

	"github.com/outcrop-dev/outcrop"
	blocks "github.com/outcrop-dev/outcrop/message"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/jetstream/natstest"
	"github.com/outcrop-dev/outcrop/store/storetest"
)

// Each benchmark prints what it costs as a multiple of what the bare client
// needs for the same, measured in the same run and in turns with it.

// chunks are n deltas of an answer from a seq on.
func chunks(seq outcrop.Seq, n int) iter.Seq[outcrop.Record] {
	return func(yield func(outcrop.Record) bool) {
		for i := range outcrop.Seq(n) {
			data := fmt.Appendf(nil, `{"turn":1,"step":1,"chunk":{"type":"text-delta","index":0,"text":"piece %d of what is said "}}`, seq+i)
			if !yield(outcrop.Record{Event: outcrop.Event{Type: outcrop.TypeAssistantChunk, Seq: seq + i, Time: 1_700_000_000_000 + 20*int64(seq+i), Data: data}}) {
				return
			}
		}
	}
}

func p(ds []time.Duration, q float64) float64 {
	slices.Sort(ds)
	return float64(ds[min(int(q*float64(len(ds))), len(ds)-1)]) / 1e6
}

func BenchmarkAppend(b *testing.B) {
	for _, nodes := range []int{1, 3} {
		b.Run(fmt.Sprint("servers=", nodes), func(b *testing.B) {
			c := natstest.Start(b, natstest.Options{Nodes: nodes})
			s := open(b, newRealm(b, c), Options{})
			l, err := s.create(bg, storetest.Header("s1"))
			ok(b, err)
			defer l.Close()
			ok(b, l.Append(bg, chunks(0, 10)))
			ok(b, l.Sync(bg))
			// The same bytes, on a subject of the same stream.
			var bare *nats.Msg
			var last uint64
			ours, theirs := time.Duration(0), time.Duration(0)
			for b.Loop() {
				began := time.Now()
				ok(b, l.Append(bg, chunks(outcrop.Seq(l.head.Events), 10)))
				f := l.flying
				ok(b, l.Sync(bg))
				ours += time.Since(began)
				bare = &nats.Msg{Subject: l.lk.realm.subjects(l.lk.realm.shard("s1"), "bare"), Data: f.out.Data, Header: f.out.Header}
				bare.Header[natsjs.ExpectedLastSubjSeqHeader] = []string{fmt.Sprint(last)}
				began = time.Now()
				ack, err := l.lk.js.PublishMsg(bg, bare)
				theirs += time.Since(began)
				ok(b, err)
				last = ack.Sequence
			}
			b.ReportMetric(float64(ours.Microseconds())/float64(b.N), "append-µs")
			b.ReportMetric(float64(theirs.Microseconds())/float64(b.N), "bare-µs")
			b.ReportMetric(float64(theirs)/float64(ours), "of-bare-rate")
		})
	}
}

// BenchmarkTakeOver is from the death of a worker with a lease of one second to
// the acknowledged take message of its successor.
func BenchmarkTakeOver(b *testing.B) {
	c := natstest.Start(b, natstest.Options{Nodes: 3})
	address := newRealmWith(b, c, time.Second)
	next := open(b, address, Options{})
	var all []time.Duration
	for i := 0; b.Loop(); i++ {
		id := fmt.Sprint("s", i)
		s := open(b, address, Options{})
		l := create(b, s, id)
		ok(b, storetest.StartTurn(l.Session(), 1))
		ok(b, l.Flush(bg))
		die(s)
		lease, took := takeOver(b, next, id)
		all = append(all, took)
		ok(b, lease.Close())
	}
	b.ReportMetric(p(all, 0.5), "p50-ms")
	b.ReportMetric(p(all, 1), "max-ms")
}

// BenchmarkTail is from the call of Append to the moment a follower has the event,
// and the same for a bare message and a bare consumer.
func BenchmarkTail(b *testing.B) {
	c := natstest.Start(b, natstest.Options{Nodes: 3})
	s := open(b, newRealm(b, c), Options{})
	l, err := s.create(bg, storetest.Header("s1"))
	ok(b, err)
	defer l.Close()
	ok(b, l.Append(bg, chunks(0, 1)))
	in, err := s.Follow(bg, "s1")
	ok(b, err)
	f := in.(*Following)
	defer f.Close()
	for _, err := range f.Next(bg) {
		ok(b, err)
	}
	stream, subject := l.lk.realm.stream(l.lk.realm.shard("s1")), l.lk.realm.subjects(l.lk.realm.shard("s1"), "bare")
	oc, err := l.lk.js.OrderedConsumer(bg, stream, natsjs.OrderedConsumerConfig{FilterSubjects: []string{subject}, DeliverPolicy: natsjs.DeliverNewPolicy})
	ok(b, err)
	bare, err := oc.Messages()
	ok(b, err)
	defer bare.Stop()
	var ours, theirs []time.Duration
	for b.Loop() {
		began := time.Now()
		ok(b, l.Append(bg, chunks(outcrop.Seq(l.head.Events), 5)))
		for n := 0; n == 0; {
			ok(b, f.Wait(bg))
			for _, err := range f.Next(bg) {
				ok(b, err)
				n++
			}
		}
		ours = append(ours, time.Since(began))
		ok(b, l.Sync(bg))
		began = time.Now()
		_, err := l.lk.js.PublishAsync(subject, make([]byte, 400))
		ok(b, err)
		_, err = bare.Next()
		ok(b, err)
		theirs = append(theirs, time.Since(began))
	}
	b.ReportMetric(p(ours, 0.5), "p50-ms")
	b.ReportMetric(p(ours, 0.99), "p99-ms")
	b.ReportMetric(p(theirs, 0.5), "bare-p50-ms")
	b.ReportMetric(p(theirs, 0.99), "bare-p99-ms")
}

// BenchmarkManySessions has many sessions stream through one realm of three
// servers at once: a chunk every 50 ms each, written in batches within 200 ms, and
// a sync point every two seconds that is waited for. They fall behind when sync
// points take longer than that.
func BenchmarkManySessions(b *testing.B) {
	const sessions, beat = 1000, 50 * time.Millisecond
	c := natstest.Start(b, natstest.Options{Nodes: 3, Processes: true})
	address := c.Address("many")
	_, err := Init(bg, address, RealmOptions{Lease: 10 * time.Second}, Options{})
	ok(b, err)
	s := open(b, address, Options{})
	lives := make([]*store.Live, sessions)
	var wg sync.WaitGroup
	for i := range lives {
		wg.Go(func() {
			l, err := store.Create(bg, s, storetest.Header(fmt.Sprint("s", i)), store.Options{})
			if err == nil {
				_, err = l.Session().Append(outcrop.TurnStart{Turn: 1})
			}
			if err == nil {
				err = l.Flush(bg)
			}
			if err != nil {
				b.Error(err)
			}
			lives[i] = l
		})
	}
	if wg.Wait(); b.Failed() {
		b.FailNow()
	}
	var mu sync.Mutex
	var syncs []time.Duration
	events := 0
	began := time.Now()
	for b.Loop() {
		ctx, stop := context.WithTimeout(bg, 8*time.Second)
		for i, l := range lives {
			wg.Go(func() {
				tick := time.NewTicker(beat)
				defer tick.Stop()
				for n := i; ; n++ {
					select {
					case <-tick.C:
					case <-ctx.Done():
						return
					}
					_, err := l.Session().Append(outcrop.AssistantChunk{Turn: 1, Step: 1, Chunk: blocks.Chunk{Type: blocks.TextDelta, Text: "a piece of what is said "}})
					if err == nil && n%40 == 0 {
						at := time.Now()
						err = l.Flush(bg)
						mu.Lock()
						syncs = append(syncs, time.Since(at))
						mu.Unlock()
					}
					if err != nil {
						b.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
		stop()
	}
	took := time.Since(began)
	for _, l := range lives {
		events += l.Session().Len()
		wg.Go(func() { l.Close(bg) })
	}
	wg.Wait()
	b.ReportMetric(float64(events)/took.Seconds(), "events/s")
	b.ReportMetric(float64(sessions)*took.Seconds()/beat.Seconds()/took.Seconds(), "asked/s")
	b.ReportMetric(p(syncs, 0.5), "sync-p50-ms")
	b.ReportMetric(p(syncs, 0.99), "sync-p99-ms")
}

// BenchmarkOpen reads a long session between whose messages those of a thousand
// others lie, and the same messages with a bare consumer.
func BenchmarkOpen(b *testing.B) {
	events, batch := 188_000, 20
	if *long {
		events = 1_880_000
	}
	c := natstest.Start(b, natstest.Options{Lazy: true})
	address := c.Address("open")
	_, err := Init(bg, address, RealmOptions{Single: true, Streams: 1}, Options{})
	ok(b, err)
	s := open(b, address, Options{})
	l, err := s.create(bg, storetest.Header("s1"))
	ok(b, err)
	lk := l.lk
	for n := 0; n < events; n += batch {
		ok(b, l.Append(bg, chunks(outcrop.Seq(n), batch)))
		// A message of another session behind each.
		_, err := lk.js.PublishAsync(lk.realm.subjects(0, fmt.Sprint("other", n/batch%1000)), make([]byte, 300))
		ok(b, err)
	}
	ok(b, l.Sync(bg))
	ok(b, l.Close())
	<-lk.js.PublishAsyncComplete()
	st, err := lk.js.Stream(bg, lk.realm.stream(0))
	ok(b, err)
	var raws, reads, opens time.Duration
	for b.Loop() {
		began := time.Now()
		oc, err := lk.js.OrderedConsumer(bg, st.CachedInfo().Config.Name, natsjs.OrderedConsumerConfig{FilterSubjects: []string{lk.realm.subject("s1")}})
		ok(b, err)
		in, err := oc.Messages(natsjs.PullMaxMessages(5000))
		ok(b, err)
		for range (events+batch-1)/batch + 1 {
			_, err := in.Next()
			ok(b, err)
		}
		in.Stop()
		raws += time.Since(began)

		began = time.Now()
		sd, err := s.Read(bg, "s1")
		ok(b, err)
		n := 0
		for r, err := range sd.Records() {
			ok(b, err)
			n += r.Count()
		}
		reads += time.Since(began)
		if n != events {
			b.Fatalf("%d events are read", n)
		}
		began = time.Now()
		_, _, err = store.Inspect(bg, s, "s1", outcrop.Options{})
		ok(b, err)
		opens += time.Since(began)
	}
	rate := func(d time.Duration) float64 { return float64(b.N) * float64(events) / d.Seconds() }
	b.ReportMetric(rate(raws), "bare-events/s")
	b.ReportMetric(rate(reads), "read-events/s")
	b.ReportMetric(rate(opens), "open-events/s")
	b.ReportMetric(float64(raws)/float64(reads), "read-of-bare")
	b.ReportMetric(float64(raws)/float64(opens), "open-of-bare")
}

// BenchmarkGrowth shows what the number of sessions changes: nothing for one
// session, and the list in proportion.
func BenchmarkGrowth(b *testing.B) {
	sizes := []int{10, 1000}
	if *long {
		sizes = append(sizes, 100_000)
	}
	for _, size := range sizes {
		b.Run(fmt.Sprint("sessions=", size), func(b *testing.B) {
			c := natstest.Start(b, natstest.Options{Lazy: true})
			address := c.Address("growth")
			_, err := Init(bg, address, RealmOptions{Single: true}, Options{})
			ok(b, err)
			s := open(b, address, Options{})
			var wg sync.WaitGroup
			for w := range 32 {
				wg.Go(func() {
					for i := w; i < size; i += 32 {
						l, err := s.create(bg, storetest.Header(fmt.Sprint("s", i)))
						if err == nil {
							err = l.Append(bg, chunks(0, 3))
						}
						if err == nil {
							err = l.Close()
						}
						if err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			if wg.Wait(); b.Failed() {
				b.FailNow()
			}
			k := &keeper{s: s}
			k.list(b)
			var list, relist, open, add time.Duration
			for b.Loop() {
				began := time.Now()
				if _, unread := k.list(b); unread < size-1 { // one went on since the last time
					b.Fatalf("%d sessions of %d were not read again", unread, size)
				}
				relist += time.Since(began)
				began = time.Now()
				infos, err := s.List(bg, store.ListOptions{})
				ok(b, err)
				list += time.Since(began)
				if len(infos) != size {
					b.Fatalf("%d sessions are listed", len(infos))
				}
				began = time.Now()
				l, err := s.acquire(bg, "s7", false)
				ok(b, err)
				for _, err := range l.Records() {
					ok(b, err)
				}
				open += time.Since(began)
				began = time.Now()
				ok(b, l.Append(bg, chunks(outcrop.Seq(l.head.Events), 3)))
				ok(b, l.Sync(bg))
				add += time.Since(began)
				b.StopTimer()
				ok(b, l.Close())
				b.StartTimer()
			}
			n := float64(b.N)
			b.ReportMetric(list.Seconds()*1e6/n/float64(size), "list-µs/session")
			b.ReportMetric(list.Seconds()*1e3/n, "list-ms")
			b.ReportMetric(relist.Seconds()*1e3/n, "list-kept-ms")
			b.ReportMetric(open.Seconds()*1e6/n, "open-µs")
			b.ReportMetric(add.Seconds()*1e6/n, "append-µs")
		})
	}
}

// BenchmarkFork forks a log that was written in batches, at its end. Its limit is
// what the bare client needs to read these messages and to store their bytes;
// decoded is the same fork by way of the events.
func BenchmarkFork(b *testing.B) {
	c := natstest.Start(b, natstest.Options{})
	s := open(b, newRealm(b, c), Options{})
	l, err := s.create(bg, storetest.Header("s1"))
	ok(b, err)
	const batches, each = 400, 500
	for n := range batches {
		ok(b, l.Append(bg, chunks(outcrop.Seq(n*each), each)))
	}
	ok(b, l.Close())
	lk, err := s.link(bg)
	ok(b, err)
	stream, subject := lk.realm.stream(lk.realm.shard("s1")), lk.realm.subject("s1")
	var copied, decoded, bare time.Duration
	size := 0
	for n := 0; b.Loop(); n++ {
		began := time.Now()
		_, err := store.Fork(bg, s, "s1", -1, store.Child{ID: fmt.Sprint("copied", n), CreatedAt: 1})
		copied += time.Since(began)
		ok(b, err)
		began = time.Now()
		_, err = store.Fork(bg, decoding{s}, "s1", -1, store.Child{ID: fmt.Sprint("decoded", n), CreatedAt: 1})
		decoded += time.Since(began)
		ok(b, err)
		began = time.Now()
		last, err := lk.last(bg, stream, subject)
		ok(b, err)
		var bodies []byte
		ok(b, lk.fetch(bg, stream, subject, 1, last.Seq, func(r raw) bool {
			bodies = append(bodies, r.Data...)
			return true
		}))
		size = len(bodies)
		parts := 0
		for part := range slices.Chunk(bodies, pieceBytes) {
			parts++
			ok(b, lk.putObject(bg, fmt.Sprint("bare", n, "-", parts), part))
		}
		bare += time.Since(began)
	}
	b.ReportMetric(float64(size)/(1<<20), "MB")
	b.ReportMetric(copied.Seconds()*1000/float64(b.N), "copied-ms")
	b.ReportMetric(decoded.Seconds()*1000/float64(b.N), "decoded-ms")
	b.ReportMetric(bare.Seconds()*1000/float64(b.N), "bare-ms")
	b.ReportMetric(float64(bare)/float64(copied), "of-bare-rate")
	b.ReportMetric(float64(decoded)/float64(copied), "of-decoding-rate")
}
