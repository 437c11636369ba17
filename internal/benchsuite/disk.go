package benchsuite

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/genlog"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/jsonl"
	"github.com/outcrop-dev/outcrop/wire"
)

var diskWorks = []Work{
	{Name: "durable-zstd", About: "append and flush batches, zstd", start: durable(wire.Zstd)},
	{Name: "durable-plain", About: "append and flush batches, plain", start: durable(wire.Plain)},
	{Name: "fork", About: "fork of a large log on a frame border", start: startFork},
}

func openRoot(dir string, enc wire.Encoding) (*jsonl.Store, error) {
	return jsonl.New(dir, jsonl.Options{Plain: enc == wire.Plain, Program: "outcrop bench"})
}

// durable appends batches of events that are in memory to a stored log and syncs
// each. The floor does by hand what is left when the store is taken away: it
// joins the same lines, compresses them, writes them with one write and syncs
// the file, which stays open. They take turns at each batch, so that both see
// the same disk. A third party does the whole of it: it appends to a live
// session, which checks each event, and flushes.
func durable(enc wire.Encoding) func(context.Context, Env) (*trial, error) {
	return func(ctx context.Context, env Env) (*trial, error) {
		lengths := []int{1, 10, 100, 1000}
		most := 0
		for _, n := range lengths {
			most = max(most, n*batches(n, env.Sizes.Batches))
		}
		events := generated(most)
		byHand := hand{}
		if enc == wire.Zstd {
			var err error
			if byHand.z, err = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(true),
				zstd.WithEncoderLevel(zstd.SpeedDefault), zstd.WithWindowSize(2<<20), zstd.WithLowerEncoderMem(true)); err != nil {
				return nil, err
			}
		}
		stored, lived := make([]sides, len(lengths)), make([]sides, len(lengths))
		for i := range lengths {
			stored[i], lived[i] = newSides(), newSides()
		}
		return &trial{
			round: func() error {
				for i, n := range lengths {
					t, err := durableBatches(ctx, env.Dir, enc, &byHand, events, n, batches(n, env.Sizes.Batches))
					if err != nil {
						return err
					}
					stored[i].add(t.stored, t.byHand)
					lived[i].add(t.lived, t.byHand)
				}
				return nil
			},
			figures: func() []Figure {
				name := "zstd"
				if enc == wire.Plain {
					name = "plain"
				}
				var all []Figure
				for i, n := range lengths {
					events := float64(n * (batches(n, env.Sizes.Batches) - 1))
					const floorIs = "join, encode, write, sync"
					all = append(all,
						stored[i].rate(fmt.Sprintf("durable %s, batches of %d", name, n), events, "events", floorIs).judged(shareOf(0.9, "0.9 of the floor")),
						lived[i].rate(fmt.Sprintf("live append, flush each %d", n), events, "events", floorIs))
				}
				return all
			},
		}, nil
	}
}

// batches is how many batches of length n are measured.
func batches(n, most int) int {
	if n >= 1000 {
		return max(2, most/4)
	}
	return most
}

// hand does a store's steps without one.
type hand struct {
	z           *zstd.Encoder // nil: plain
	f           *os.File
	text, frame []byte
}

func (h *hand) append(batch []outcrop.Event) error {
	h.text = h.text[:0]
	for i := range batch {
		h.text = append(append(h.text, batch[i].Line()...), '\n')
	}
	out := h.text
	if h.z != nil {
		h.frame = h.z.EncodeAll(h.text, h.frame[:0])
		out = h.frame
	}
	if _, err := h.f.Write(out); err != nil {
		return err
	}
	return h.f.Sync()
}

type durableTimes struct{ stored, byHand, lived time.Duration }

// durableBatches leaves the first batch out, with which a store publishes a new
// file.
func durableBatches(ctx context.Context, dir string, enc wire.Encoding, byHand *hand, events []outcrop.Event, n, count int) (t durableTimes, err error) {
	root, err := os.MkdirTemp(dir, "durable-")
	if err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(root)) }()
	st, err := openRoot(filepath.Join(root, "sessions"), enc)
	if err != nil {
		return t, err
	}
	lease, err := st.Create(ctx, genlog.Header(1))
	if err != nil {
		return t, err
	}
	defer lease.Close()
	live, err := store.Create(ctx, st, genlog.Header(2), store.Options{Session: outcrop.Options{Now: clock}})
	if err != nil {
		return t, err
	}
	defer live.Close(ctx)
	if byHand.f, err = os.OpenFile(filepath.Join(root, "by-hand"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600); err != nil {
		return t, err
	}
	defer byHand.f.Close()
	s := live.Session()
	for b := range count {
		batch := events[b*n : (b+1)*n]
		for _, side := range []struct {
			sum *time.Duration
			do  func() error
		}{
			{&t.stored, func() error { return errors.Join(lease.Append(ctx, records(batch)), lease.Sync(ctx)) }},
			{&t.byHand, func() error { return byHand.append(batch) }},
			{&t.lived, func() error {
				for _, ev := range batch {
					if _, err := s.AppendRaw(ev); err != nil {
						return err
					}
				}
				return live.Flush(ctx)
			}},
		} {
			d, err := stopwatch(side.do)
			if err != nil {
				return t, err
			}
			if b > 0 {
				*side.sum += d
			}
		}
	}
	return t, nil
}

func records(events []outcrop.Event) iter.Seq[outcrop.Record] {
	return func(yield func(outcrop.Record) bool) {
		for _, ev := range events {
			if !yield(outcrop.Record{Event: ev}) {
				return
			}
		}
	}
}

// place writes a generated log to where a store of jsonl keeps it, without the
// syncs that a store would make.
func place(root string, h outcrop.Header, enc wire.Encoding, write func(io.Writer) error) error {
	dir := filepath.Join(root, jsonl.ProjectKey(*h.Cwd), jsonl.EncodeSegment(h.ID))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(dir, "session."+string(enc)), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(f, 1<<20)
	return errors.Join(write(w), w.Flush(), f.Close())
}

// writeTurns writes frames of whole turns, so that the log ends at a turn/end
// and a frame's end, until their lines have size bytes.
func writeTurns(w io.Writer, h outcrop.Header, size int64) error {
	enc := wire.NewEncoder(wire.Zstd)
	if _, err := w.Write(enc.Header(nil, h)); err != nil {
		return err
	}
	var batch []outcrop.Record
	var frame []byte
	var written int64
	for rec := range genlog.Records(1, int(size)) {
		batch = append(batch, rec)
		written += int64(len(rec.Line())) + 1
		if rec.Type != outcrop.TypeTurnEnd || len(batch) < genlog.BatchEvents && written < size {
			continue
		}
		var err error
		if frame, err = enc.Batch(frame[:0], slices.Values(batch)); err != nil {
			return err
		}
		if _, err := w.Write(frame); err != nil {
			return err
		}
		batch = batch[:0]
		if written >= size {
			return nil
		}
	}
	return nil
}

func startFork(ctx context.Context, env Env) (*trial, error) {
	root, err := os.MkdirTemp(env.Dir, "fork-")
	if err != nil {
		return nil, err
	}
	h := genlog.Header(1)
	err = place(root, h, wire.Zstd, func(w io.Writer) error {
		return writeTurns(w, h, env.Sizes.Fork)
	})
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(root))
	}
	st, err := openRoot(root, wire.Zstd)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(root))
	}
	parent := filepath.Join(root, jsonl.ProjectKey(*h.Cwd), jsonl.EncodeSegment(h.ID), "session."+string(wire.Zstd))
	sum, held, n := newSides(), 1e18, 0
	return &trial{
		round: func() error {
			n++
			child := "child-" + strconv.Itoa(n)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			ours, err := stopwatch(func() error {
				_, err := store.Fork(ctx, st, h.ID, -1, store.Child{ID: child, CreatedAt: h.CreatedAt})
				return err
			})
			if err != nil {
				return err
			}
			runtime.ReadMemStats(&after)
			held = min(held, float64(after.TotalAlloc-before.TotalAlloc))
			floor, err := stopwatch(func() error { return copyFile(parent, filepath.Join(root, "copy")) })
			if err != nil {
				return err
			}
			sum.add(ours, floor)
			return errors.Join(os.Remove(filepath.Join(root, "copy")),
				os.RemoveAll(filepath.Join(root, jsonl.ProjectKey(*h.Cwd), jsonl.EncodeSegment(child))))
		},
		figures: func() []Figure {
			forked := sum.took("fork of "+Bytes(env.Sizes.Fork), "copy the file and sync it")
			if env.Sizes.Fork >= 64<<20 { // below, what a new file costs weighs more
				forked = forked.judged(atMost(1000*float64(env.Sizes.Fork)/(1<<30), "1 s a GB"))
			}
			return []Figure{
				forked,
				Figure{Name: "fork, memory asked for", Value: held / (1 << 20), Unit: "MB"}.judged(atMost(64, "flat: 64 MB at most")),
			}
		},
		close: func() error { return os.RemoveAll(root) },
	}, nil
}

func copyFile(from, to string) error {
	src, err := os.Open(from)
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(dst, src)
	return errors.Join(err, dst.Sync(), dst.Close())
}
