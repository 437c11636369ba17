package jsonl

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/genlog"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/wire"
)

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}

// BenchmarkDurableAppend appends batches of events to a live session and
// flushes each. Its limit, measured in turn with it, is the same steps by hand
// on a file that stays open: join the events to text and encode it, with the
// same codec, then one write and one fsync. ratio is the flush against it,
// ratio-all with the appends to the session in memory.
func BenchmarkDurableAppend(b *testing.B) {
	for _, enc := range []wire.Encoding{wire.Zstd, wire.Plain} {
		for _, batch := range []int{1, 10, 100, 1000} {
			b.Run(fmt.Sprintf("%s/%d", enc, batch), func(b *testing.B) { durableAppend(b, enc, batch) })
		}
	}
}

func durableAppend(b *testing.B, enc wire.Encoding, batch int) {
	dir := b.TempDir()
	s, err := New(dir, Options{Plain: enc == wire.Plain})
	if err != nil {
		b.Fatal(err)
	}
	l, err := store.Create(bg, s, genlog.Header(1), store.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close(bg)
	hand, err := os.OpenFile(filepath.Join(dir, "by-hand"), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		b.Fatal(err)
	}
	defer hand.Close()
	codec := wire.NewEncoder(enc)
	next, stop := iter.Pull(genlog.Events(1, 1<<40))
	defer stop()
	var ours, all, floor []time.Duration
	var buf []byte
	byHand := func(from outcrop.Seq) time.Duration {
		t := time.Now()
		var err error
		if buf, err = codec.Batch(buf[:0], l.Session().Log().Records(from)); err != nil {
			b.Fatal(err)
		}
		if _, err := hand.Write(buf); err != nil {
			b.Fatal(err)
		}
		if err := hand.Sync(); err != nil {
			b.Fatal(err)
		}
		return time.Since(t)
	}
	flush := func() time.Duration {
		t := time.Now()
		if err := l.Flush(bg); err != nil {
			b.Fatal(err)
		}
		return time.Since(t)
	}
	rounds := 0
	round := func() {
		events := make([]outcrop.Event, 0, batch)
		for range batch {
			e, _ := next()
			events = append(events, e)
		}
		from := outcrop.Seq(l.Session().Len())
		t := time.Now()
		for _, e := range events {
			if _, err := l.Session().AppendRaw(e); err != nil {
				b.Fatal(err)
			}
		}
		appended := time.Since(t)
		// Whoever goes second finds the events in the processor's cache.
		var o, f time.Duration
		if rounds++; rounds%2 == 0 {
			f = byHand(from)
			o = flush()
		} else {
			o = flush()
			f = byHand(from)
		}
		ours, all, floor = append(ours, o), append(all, appended+o), append(floor, f)
	}
	round() // publishes the session
	ours, all, floor = ours[:0], all[:0], floor[:0]
	for b.Loop() {
		round()
	}
	o, a, f := median(ours), median(all), median(floor)
	b.ReportMetric(float64(batch)/a.Seconds(), "events/s")
	b.ReportMetric(float64(batch)/f.Seconds(), "floor-events/s")
	b.ReportMetric(f.Seconds()/o.Seconds(), "ratio")
	b.ReportMetric(f.Seconds()/a.Seconds(), "ratio-all")
	b.ReportMetric(0, "ns/op")
}

// collection makes a root with sessions of some turns in twenty projects.
func collection(b *testing.B, sessions int) string {
	b.Helper()
	root := b.TempDir()
	s, err := New(root, Options{})
	if err != nil {
		b.Fatal(err)
	}
	// A batch a step, as an agent flushes.
	codec := wire.NewEncoder(wire.Zstd)
	var body []byte
	for batch := range slices.Chunk(slices.Collect(genlog.Records(1, 700)), 35) {
		if body, err = codec.Batch(body, slices.Values(batch)); err != nil {
			b.Fatal(err)
		}
	}
	for i := range sessions {
		h := outcrop.NewHeader(fmt.Sprintf("session-%04d", i), int64(1_700_000_000_000+i), fmt.Sprintf("/home/dev/project-%d", i%20))
		path, err := s.pathFor(h, wire.Zstd)
		if err == nil {
			err = os.MkdirAll(filepath.Dir(path), 0o700)
		}
		if err == nil {
			err = os.WriteFile(path, append(codec.Header(nil, h), body...), 0o600)
		}
		if err == nil {
			err = os.WriteFile(lockIn(filepath.Dir(path)), nil, 0o600)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	return root
}

// BenchmarkList lists 2,000 sessions. Its limit is a walk that opens each log
// and reads the same bytes of it, on one goroutine.
func BenchmarkList(b *testing.B) {
	root := collection(b, 2000)
	var ours, floor []time.Duration
	for b.Loop() {
		t := time.Now()
		s, err := New(root, Options{})
		if err != nil {
			b.Fatal(err)
		}
		infos, err := s.List(bg, store.ListOptions{})
		if err != nil || len(infos) != 2000 {
			b.Fatal(len(infos), err)
		}
		ours = append(ours, time.Since(t))
		for _, in := range infos {
			if in.State != store.StateOK || in.Events < 0 {
				b.Fatalf("%+v", in)
			}
		}
		t = time.Now()
		if n := bareWalk(b, root); n != 2000 {
			b.Fatal(n)
		}
		floor = append(floor, time.Since(t))
	}
	o, f := median(ours), median(floor)
	b.ReportMetric(float64(o.Microseconds())/1000, "ms")
	b.ReportMetric(float64(f.Microseconds())/1000, "floor-ms")
	b.ReportMetric(f.Seconds()/o.Seconds(), "ratio")
	b.ReportMetric(0, "ns/op")
}

func bareWalk(b *testing.B, root string) (logs int) {
	buf := make([]byte, wholeRead)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if _, ok := wire.EncodingOf(path); !ok {
			return nil
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		fi, err := f.Stat()
		if err != nil {
			return err
		}
		if _, err := f.ReadAt(buf[:min(fi.Size(), wholeRead)], max(0, fi.Size()-wholeRead)); err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		logs++
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	return logs
}

// BenchmarkFork forks a log at its last turn/end. Its limit is a copy of the
// file with one fsync.
func BenchmarkFork(b *testing.B) {
	sizes := []int64{10 << 20, 100 << 20}
	if !testing.Short() {
		sizes = append(sizes, 1<<30)
	}
	for _, enc := range []wire.Encoding{wire.Plain, wire.Zstd} {
		for _, size := range sizes {
			b.Run(fmt.Sprintf("%s/%dMB", enc, size>>20), func(b *testing.B) { benchFork(b, enc, size) })
		}
	}
}

func benchFork(b *testing.B, enc wire.Encoding, size int64) {
	root := b.TempDir()
	h := genlog.Header(1)
	s, err := New(root, Options{Plain: enc == wire.Plain})
	if err != nil {
		b.Fatal(err)
	}
	path, err := s.pathFor(h, enc)
	if err != nil {
		b.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		b.Fatal(err)
	}
	f, err := os.Create(path)
	if err != nil {
		b.Fatal(err)
	}
	n, err := genlog.Write(f, enc, true, size)
	if err == nil {
		// The last batch may end inside a turn.
		end := outcrop.Event{Type: outcrop.TypeTurnEnd, Seq: outcrop.Seq(n), Data: []byte(`{"turn":1,"reason":{"kind":"interrupted"}}`)}
		var last []byte
		if last, err = wire.NewEncoder(enc).Batch(nil, slices.Values([]outcrop.Record{{Event: end}})); err == nil {
			_, err = f.Write(last)
		}
		n++
	}
	if err == nil {
		err = errors.Join(f.Sync(), f.Close())
	}
	if err != nil {
		b.Fatal(err)
	}
	var ours, floor []time.Duration
	var before, after runtime.MemStats
	i := 0
	runtime.ReadMemStats(&before)
	for b.Loop() {
		i++
		id := fmt.Sprint("child-", i)
		t := time.Now()
		child, err := store.Fork(bg, s, h.ID, -1, store.Child{ID: id, CreatedAt: 1})
		if err != nil || *child.SeedLength != int64(n) {
			b.Fatal(child, n, err)
		}
		ours = append(ours, time.Since(t))
		t = time.Now()
		dst := filepath.Join(root, "copy")
		if err := copyFile(dst, path); err != nil {
			b.Fatal(err)
		}
		floor = append(floor, time.Since(t))
		b.StopTimer()
		os.Remove(dst)
		cf, err := s.find(id)
		if err != nil {
			b.Fatal(err)
		}
		os.RemoveAll(cf.dir)
		b.StartTimer()
	}
	runtime.ReadMemStats(&after)
	o, fl := median(ours), median(floor)
	b.ReportMetric(float64(o.Microseconds())/1000, "ms")
	b.ReportMetric(float64(fl.Microseconds())/1000, "floor-ms")
	b.ReportMetric(fl.Seconds()/o.Seconds(), "ratio")
	b.ReportMetric(float64(after.TotalAlloc-before.TotalAlloc)/float64(i)/(1<<20), "MB-allocated/op")
	b.ReportMetric(0, "ns/op")
}

func copyFile(dst, src string) error {
	in, err := os.Open(src)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(dst)
	if err != nil {
		return err
	}
	defer out.Close()
	if _, err := io.Copy(out, in); err != nil {
		return err
	}
	return out.Sync()
}
