package worker_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/store/jetstream"
	"github.com/outcrop-dev/outcrop/store/jetstream/natstest"
	"github.com/outcrop-dev/outcrop/worker"
)

// How long it takes until another worker goes on with a turn whose worker was
// killed in the middle of a tool. The floor is the lease: before it has lapsed
// nobody may go on.
func BenchmarkGoneOnWithAfterAKill(b *testing.B) {
	ctx := b.Context()
	const lease = time.Second
	c, err := natstest.New(b.TempDir(), natstest.Options{Nodes: 3, Processes: true})
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	address, effects := c.Address("bench"), filepath.Join(b.TempDir(), "effects")
	if _, err := jetstream.Init(ctx, address, jetstream.RealmOptions{Streams: 2, Replicas: 3, Lease: lease}, jetstream.Options{Program: "the tests"}); err != nil {
		b.Fatal(err)
	}
	st, err := jetstream.New(address, jetstream.Options{Program: "the tests"})
	if err != nil {
		b.Fatal(err)
	}
	defer st.Close()
	bus, err := worker.BusOf(ctx, st)
	if err != nil {
		b.Fatal(err)
	}
	hire := func() *proc {
		p, err := startProcess(nil, realmEnv+"="+address, effectsEnv+"="+effects, toolEnv+"=1h")
		if err != nil {
			b.Fatal(err)
		}
		return p
	}
	s := worker.Sender{Store: st, Bus: bus, Name: "the tests"}
	workers := []*proc{hire(), hire()}
	defer func() {
		for _, p := range workers {
			_ = p.end(true)
		}
	}()
	if _, err := s.Begin(ctx, outcrop.NewHeader("s", 1, "/srv"), inputOf("a")); err != nil {
		b.Fatal(err)
	}
	turns := func(n int) {
		for {
			in, err := st.Look(ctx, "s")
			if err == nil && in.Turns >= n && in.Due != nil && in.Due.Open {
				return
			}
			if ctx.Err() != nil {
				b.Fatal(err)
			}
		}
	}
	// holder is which of the workers has the session.
	holder := func() int {
		o, err := st.Holder(ctx, "s")
		if err != nil {
			b.Fatal(err)
		}
		for i, p := range workers {
			if o.Holder.PID == p.cmd.Process.Pid {
				return i
			}
		}
		b.Fatalf("it is held by %+v", o)
		return -1
	}
	turns(1)
	var took time.Duration
	n := 1
	for b.Loop() {
		i := holder()
		began := time.Now()
		_ = workers[i].end(true)
		n++
		turns(n)
		took += time.Since(began)
		workers[i] = hire()
	}
	each := took / time.Duration(b.N)
	b.ReportMetric(float64(each.Milliseconds()), "ms/take-over")
	b.ReportMetric(float64(lease.Milliseconds()), "ms/lease")
	b.ReportMetric(float64(each)/float64(lease), "times-the-lease")
}
