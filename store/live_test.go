package store_test

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/memory"
	"github.com/outcrop-dev/outcrop/store/storetest"
)

var bg = context.Background()

// diary is a store that notes when each batch and each sync happens.
type diary struct {
	*memory.Store
	start   time.Time
	mu      sync.Mutex
	entries []entry
	hold    chan struct{} // a write waits here when it is not nil
}

type entry struct {
	At   time.Duration
	What string
}

func newDiary() *diary { return &diary{Store: memory.New(), start: time.Now()} }

func (d *diary) note(what string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.entries = append(d.entries, entry{time.Since(d.start), what})
}

func (d *diary) read() []entry {
	d.mu.Lock()
	defer d.mu.Unlock()
	e := d.entries
	d.entries = nil
	return e
}

func (d *diary) Create(ctx context.Context, h outcrop.Header) (store.Lease, error) {
	l, err := d.Store.Create(ctx, h)
	return &diaryLease{l, d}, err
}

type diaryLease struct {
	store.Lease
	d *diary
}

func (l *diaryLease) Append(ctx context.Context, recs iter.Seq[outcrop.Record]) error {
	if l.d.hold != nil {
		<-l.d.hold
	}
	err := l.Lease.Append(ctx, recs)
	if err != nil {
		l.d.note("write fails")
	} else {
		l.d.note("write")
	}
	return err
}

func (l *diaryLease) Sync(ctx context.Context) error {
	l.d.note("sync")
	return l.Lease.Sync(ctx)
}

func open(t *testing.T, d *diary) *store.Live {
	t.Helper()
	l, err := store.Create(bg, d, storetest.Header("s1"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	// The first batch of a session is durable at once; what follows is about
	// the others.
	appendOne(t, l)
	if err := l.Flush(bg); err != nil {
		t.Fatal(err)
	}
	d.read()
	d.start = time.Now()
	return l
}

func appendOne(t *testing.T, l *store.Live) {
	t.Helper()
	if _, err := l.Session().Append(outcrop.TodoWrite{}); err != nil {
		t.Fatal(err)
	}
}

func appendBytes(l *store.Live, n int) error {
	data, err := json.Marshal(map[string]string{"text": strings.Repeat("x", n)})
	if err != nil {
		return err
	}
	_, err = l.Session().Append(outcrop.RawPayload{Type: "note", Data: data, Ignorable: true})
	return err
}

func expect(t *testing.T, d *diary, want ...entry) {
	t.Helper()
	synctest.Wait()
	if diff := cmp.Diff(want, d.read()); diff != "" {
		t.Fatalf("what the store saw (-want +got):\n%s", diff)
	}
}

const ms = time.Millisecond

func TestAnEventIsWrittenAndSyncedInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDiary()
		l := open(t, d)
		defer l.Close(bg)
		time.Sleep(50 * ms)
		appendOne(t, l)
		time.Sleep(100 * ms)
		appendOne(t, l) // waits for the timer of the first one, not longer
		n := l.Durable()
		time.Sleep(149 * ms)
		expect(t, d, entry{250 * ms, "write"})
		if l.Durable() != n {
			t.Fatal("an event is durable that was not synced")
		}
		time.Sleep(2 * time.Second)
		expect(t, d, entry{2050 * ms, "sync"})
		if got, want := int(l.Durable()), l.Session().Len(); got != want {
			t.Fatalf("%d events are durable, want %d", got, want)
		}
		time.Sleep(time.Hour)
		expect(t, d) // an idle session does nothing
	})
}

func TestAStreamIsWrittenFiveTimesAndSyncedOnceInTwoSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDiary()
		l := open(t, d)
		defer l.Close(bg)
		for range 1000 { // ten seconds
			appendOne(t, l)
			time.Sleep(10 * ms)
		}
		synctest.Wait()
		count := map[string]int{}
		for _, e := range d.read() {
			count[e.What]++
		}
		if count["write"] < 40 || count["write"] > 55 || count["sync"] < 4 || count["sync"] > 6 {
			t.Fatalf("in ten seconds: %v", count)
		}
	})
}

func TestAFlushDoesNotWaitForATimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDiary()
		l := open(t, d)
		defer l.Close(bg)
		appendOne(t, l)
		if err := l.Flush(bg); err != nil {
			t.Fatal(err)
		}
		if err := l.Flush(bg); err != nil { // nothing to do
			t.Fatal(err)
		}
		expect(t, d, entry{0, "write"}, entry{0, "sync"})
		time.Sleep(time.Hour)
		expect(t, d) // the timers of the flushed event are gone
	})
}

func TestAFailedWriteIsTriedAgainWithGrowingPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDiary()
		l := open(t, d)
		defer l.Close(bg)
		full := errors.New("disk full")
		d.FailWith(func(op string) error { return full })
		appendOne(t, l)
		time.Sleep(20 * time.Second)
		at := []time.Duration{200, 300, 500, 900, 1700, 3300, 6500, 11500, 16500}
		var want []entry
		for _, a := range at {
			want = append(want, entry{a * ms, "write fails"})
		}
		expect(t, d, want...)
		if !errors.Is(l.Err(), full) {
			t.Fatalf("Err is %v", l.Err())
		}
		// New events do not make it try more often; a flush tries at once.
		appendOne(t, l)
		time.Sleep(time.Second)
		expect(t, d)
		if err := l.Flush(bg); !errors.Is(err, full) {
			t.Fatal(err)
		}
		expect(t, d, entry{21000 * ms, "write fails"})
		d.FailWith(nil)
		time.Sleep(5 * time.Second)
		expect(t, d, entry{26000 * ms, "write"}, entry{26000 * ms, "sync"})
		if l.Err() != nil || int(l.Durable()) != l.Session().Len() {
			t.Fatalf("after the disk has room: %v, %d of %d events durable", l.Err(), l.Durable(), l.Session().Len())
		}
		// And it forgets the long pause.
		d.FailWith(func(string) error { return full })
		d.start = time.Now()
		appendOne(t, l)
		time.Sleep(350 * ms)
		expect(t, d, entry{200 * ms, "write fails"}, entry{300 * ms, "write fails"})
		d.FailWith(nil)
	})
}

func TestTooManyWaitingBytesVetoAppends(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDiary()
		l := open(t, d)
		full := errors.New("disk full")
		d.FailWith(func(string) error { return full })
		const piece = 4 << 20
		n := 0
		var err error
		for ; n < 2*store.MaxPending/piece; n++ {
			if err = appendBytes(l, piece); err != nil {
				break
			}
			synctest.Wait()
		}
		if !errors.Is(err, outcrop.ErrVetoed) || !errors.Is(err, full) {
			t.Fatalf("after %d pieces: %v", n, err)
		}
		if n != store.MaxPending/piece {
			t.Fatalf("%d pieces of %d bytes were taken", n, piece)
		}
		// A closer is not asked about.
		if _, err := l.Session().Append(outcrop.StepEnd{Turn: 1, Step: 1}); err != nil {
			t.Fatal(err)
		}
		d.FailWith(nil)
		if err := l.Flush(bg); err != nil {
			t.Fatal(err)
		}
		if err := appendBytes(l, piece); err != nil {
			t.Fatal(err)
		}
		if err := l.Close(bg); err != nil {
			t.Fatal(err)
		}
		s, _, err := store.Inspect(bg, d.Store, "s1", outcrop.Options{})
		if err != nil || s.Len() != l.Session().Len() {
			t.Fatalf("%d of %d events are stored: %v", s.Len(), l.Session().Len(), err)
		}
	})
}

func TestAFastProducerIsWrittenBeforeTheTimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDiary()
		l := open(t, d)
		defer l.Close(bg)
		for range 5 {
			if err := appendBytes(l, 512<<10); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		expect(t, d, entry{0, "write"}, entry{0, "write"})
	})
}

func TestFlushAndCloseGiveUpWaitingWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDiary()
		l := open(t, d)
		d.hold = make(chan struct{})
		appendOne(t, l)
		ctx, cancel := context.WithTimeout(bg, time.Second)
		defer cancel()
		if err := l.Flush(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		if err := l.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		// The lease is handed back when the write has ended.
		if _, err := store.Open(bg, d.Store, "s1", store.Options{}); !errors.Is(err, store.ErrLocked) {
			t.Fatalf("opened while a write is under way: %v", err)
		}
		close(d.hold)
		if err := l.Close(bg); err != nil {
			t.Fatal(err)
		}
		again, err := store.Open(bg, d.Store, "s1", store.Options{})
		if err != nil || int(again.Session().Stored()) != l.Session().Len() {
			t.Fatalf("%v", err)
		}
		if err := again.Close(bg); err != nil {
			t.Fatal(err)
		}
	})
}

func TestAFlushThatWaitsCoversOnlyWhatWasThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDiary()
		l := open(t, d)
		d.hold = make(chan struct{})
		appendOne(t, l)
		first := make(chan error, 1)
		go func() { first <- l.Flush(bg) }()
		synctest.Wait() // the write is under way
		appendOne(t, l)
		second := make(chan error, 1)
		go func() { second <- l.Flush(bg) }()
		synctest.Wait()
		d.hold <- struct{}{}
		synctest.Wait()
		select {
		case err := <-first:
			if err != nil {
				t.Fatal(err)
			}
		default:
			t.Fatal("the first flush waits for the second write")
		}
		select {
		case <-second:
			t.Fatal("the second flush was answered by the first write")
		default:
		}
		close(d.hold)
		if err := <-second; err != nil {
			t.Fatal(err)
		}
		if int(l.Durable()) != l.Session().Len() {
			t.Fatalf("%d of %d events durable", l.Durable(), l.Session().Len())
		}
		if err := l.Close(bg); err != nil {
			t.Fatal(err)
		}
	})
}

func TestClosingSaysWhatIsNotSaved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDiary()
		l := open(t, d)
		d.FailWith(func(op string) error { return errors.New("disk full") })
		appendOne(t, l)
		appendOne(t, l)
		err := l.Close(bg)
		if err == nil || !strings.Contains(err.Error(), "2 events were not saved: disk full") {
			t.Fatalf("got %v", err)
		}
		if again := l.Close(bg); again == nil || again.Error() != err.Error() {
			t.Fatalf("the second close says %v", again)
		}
		if err := l.Flush(bg); err == nil {
			t.Fatal("a flush after the close succeeded")
		}
		d.FailWith(nil)
		again, err := store.Open(bg, d.Store, "s1", store.Options{}) // the lease is free
		if err != nil {
			t.Fatal(err)
		}
		if err := again.Close(bg); err != nil {
			t.Fatal(err)
		}
	})
}

func TestACrashLosesNothingThatWasAcknowledged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDiary()
		l := open(t, d)
		appendOne(t, l)
		if err := l.Flush(bg); err != nil {
			t.Fatal(err)
		}
		n := l.Durable()
		appendOne(t, l)
		time.Sleep(time.Second) // written, not synced
		d.Crash()
		s, _, err := store.Inspect(bg, d.Store, "s1", outcrop.Options{})
		if err != nil || outcrop.Seq(s.Len()) != n {
			t.Fatalf("%d events after the crash, want %d: %v", s.Len(), n, err)
		}
		appendOne(t, l)
		if err := l.Flush(bg); !errors.Is(err, store.ErrMoved) {
			t.Fatalf("the writer from before the crash goes on: %v", err)
		}
		if _, err := l.Session().Append(outcrop.TodoWrite{}); !errors.Is(err, outcrop.ErrVetoed) || !errors.Is(err, store.ErrMoved) {
			t.Fatalf("an append that can never be stored gives %v", err)
		}
		if err := l.Close(bg); err == nil {
			t.Fatal("closing did not say that events were lost")
		}
	})
}
