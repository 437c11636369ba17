package jetstream

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"iter"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/wire"
)

// A whole log is published by one message, so that it is there as a whole or not
// at all. Its text is in the message when it fits, else in objects, which the
// message names; they are read back before it is published.

const (
	// encodeBytes is about how much text becomes one frame.
	encodeBytes = 256 << 10
	// pieceBytes is about how many bytes of frames become one object.
	pieceBytes = 1 << 20
)

// Put is store.Store's.
func (s *Store) Put(ctx context.Context, h outcrop.Header, recs iter.Seq2[outcrop.Record, error]) error {
	l, err := s.create(ctx, h)
	if err != nil {
		return err
	}
	defer l.Close()
	f, err := l.whole(ctx, message{Kind: kindBatch, Epoch: 1, Owner: ""}, recs)
	if err != nil {
		return l.s.failed("create", h.ID, err)
	}
	return l.publish(ctx, f)
}

// publish stores the message of a new session that is there as a whole.
func (l *Lease) publish(ctx context.Context, f *flight) error {
	s, id := l.s, l.header.ID
	if s.opt.fail != nil {
		if err := s.opt.fail("append"); err != nil {
			l.dropPieces(f)
			return s.failed("create", id, err)
		}
	}
	// Nobody owns the session: it is handed back with the very message.
	switch _, err := l.lk.settle(ctx, f); {
	case err == nil:
		return nil
	case errors.Is(err, store.ErrExists):
		l.dropPieces(f)
		return err
	default:
		// Its objects stay: the message may be stored all the same. GC knows.
		return store.Problem("create", id, s.failed("create", id, err), "", "whether the session is stored is unknown: look, and do it again if it is not")
	}
}

// whole makes the message of a whole log.
func (l *Lease) whole(ctx context.Context, m message, recs iter.Seq2[outcrop.Record, error]) (_ *flight, err error) {
	w := whole{l: l, ctx: ctx, enc: wire.NewEncoder(wire.Plain), want: sha256.New(), fold: newFolder(head{}, l.header)}
	defer func() {
		if err != nil {
			w.drop()
		}
	}()
	if err := w.encode(recs); err != nil {
		return nil, err
	}
	f, err := w.message(m)
	if err != nil {
		return nil, err
	}
	return f, l.same(ctx, f.message, &w)
}

// message is the message of what was gathered.
func (w *whole) message(m message) (*flight, error) {
	l := w.l
	m.Count = int64(w.next)
	m.Head = w.fold.done()
	m.Head.setHeader(l.header.Line())
	if len(w.pieces) == 0 {
		return l.lk.fit(w.ctx, l.header.ID, m, w.frames, l.last)
	}
	if err := w.flush(); err != nil {
		return nil, err
	}
	m.Head.Bytes = w.bytes
	return l.lk.refer(l.header.ID, m, w.pieces, l.last), nil
}

// whole gathers a log.
type whole struct {
	l      *Lease
	ctx    context.Context
	enc    *wire.Encoder
	fold   *folder
	next   outcrop.Seq
	want   hash.Hash // of the text
	text   []byte
	frames []byte
	count  int64 // events in frames
	pieces []piece
	bytes  int64
}

func (w *whole) encode(recs iter.Seq2[outcrop.Record, error]) error {
	next, stop := iter.Pull2(recs)
	defer stop()
	if err := w.frame(w.enc.Header(nil, w.l.header)); err != nil {
		return err
	}
	for more := true; more; {
		var failed, gap error
		size, first := 0, w.next
		text, err := w.enc.Batch(w.text[:0], func(yield func(outcrop.Record) bool) {
			for size < encodeBytes {
				r, err, ok := next()
				if !ok || err != nil {
					failed, more = err, false
					return
				}
				if r.Seq != w.next {
					gap = w.l.s.sessionProblem("append", w.l.header.ID, "SEQ_GAP", outcrop.ErrRefused, fmt.Sprintf("event %d follows event %d", r.Seq, w.next-1), "")
					return
				}
				w.next = r.Last() + 1
				w.fold.add(r)
				size += len(r.Data) + 64
				if r.Run != nil {
					size += len(r.Run.Line())
				}
				if !yield(r) {
					return
				}
			}
		})
		if err := cmp.Or(failed, gap, err, context.Cause(w.ctx)); err != nil {
			return err
		}
		w.text, w.count = text, w.count+int64(w.next-first)
		if err := w.frame(text); err != nil {
			return err
		}
		if len(w.frames) > pieceBytes {
			if err := w.flush(); err != nil {
				return err
			}
		}
	}
	return nil
}

// frame adds a frame of text.
func (w *whole) frame(text []byte) error {
	if len(text) == 0 {
		return nil
	}
	w.want.Write(text)
	z, err := encoder()
	if err != nil {
		return err
	}
	w.frames = z.EncodeAll(text, w.frames)
	return nil
}

// encoder makes frames. It may be used by several goroutines at once.
var encoder = sync.OnceValues(func() (*zstd.Encoder, error) {
	return zstd.NewWriter(nil, zstd.WithEncoderCRC(true), zstd.WithEncoderLevel(zstd.SpeedDefault), zstd.WithWindowSize(2<<20), zstd.WithLowerEncoderMem(true))
})

// flush makes an object of the frames so far.
func (w *whole) flush() error {
	if len(w.frames) == 0 {
		return nil
	}
	p, err := w.l.lk.putText(w.ctx, w.frames, w.count)
	if err != nil {
		return err
	}
	w.pieces, w.bytes = append(w.pieces, p), w.bytes+p.Bytes
	w.frames, w.count = w.frames[:0], 0
	return nil
}

// drop removes the objects of a log that is not published. What it misses is an
// orphan, which GC removes.
func (w *whole) drop() { w.l.lk.dropPieces(w.pieces) }

func (l *Lease) dropPieces(f *flight) {
	if f.Refs {
		if ps, err := parseManifest(f.Body, f.Count); err == nil {
			l.lk.dropPieces(ps)
		}
	}
}

func (lk *link) dropPieces(ps []piece) {
	ctx, stop := context.WithTimeout(context.Background(), lk.s.opt.AckWait)
	defer stop()
	for _, p := range ps {
		if err := lk.removeObject(ctx, p.Object); err != nil {
			lk.s.opt.Logger.Info("an object that no message names is left; outcrop realm gc removes it", "object", p.Object, "error", err)
		}
	}
}

// same reads back what a message says, objects and all, and compares. It is the
// text that is compared: what an old shape means is not asked.
func (l *Lease) same(ctx context.Context, m message, w *whole) error {
	got := sha256.New()
	for text, err := range l.lk.text(ctx, m) {
		if err != nil {
			return err
		}
		got.Write(text)
	}
	if !bytes.Equal(got.Sum(nil), w.want.Sum(nil)) {
		return l.s.sessionProblem("create", l.header.ID, "", outcrop.ErrDamaged, fmt.Sprintf("what is read back are not the %d events that were written", w.next), "")
	}
	return nil
}
