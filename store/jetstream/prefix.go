package jetstream

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/wire"
)

var _ store.PrefixCopier = (*Store)(nil)

// keptBodies is how many bytes of bodies are kept between the look for the border
// and the copying; those of a longer prefix are read twice.
const keptBodies = 1 << 20

// PutPrefix is store.PrefixCopier's. Bodies are frames of a log file, so those of
// the messages up to the border are copied as they are, but for the header frame.
// The border is the end of a message: its head says that no turn is open there,
// and everything else that the child's own head has to say.
func (s *Store) PutPrefix(ctx context.Context, parent string, through outcrop.Seq,
	header func(outcrop.Header, outcrop.Seq) outcrop.Header,
	finish func(outcrop.Seq, outcrop.Type) []outcrop.Event,
) (copied bool, err error) {
	of, lk, err := s.find(ctx, parent)
	if err != nil {
		return false, err
	}
	if through < 0 {
		through = of.events - 1
	}
	if of.broken != nil || of.header.Format > 0 || through < 0 || through >= of.events {
		return false, nil
	}
	p := prefix{ctx: ctx, lk: lk, of: of, through: through}
	ok, err := p.find()
	if !ok || err != nil {
		return false, p.leave(err)
	}
	h := header(of.header, through+1)
	if h.SeedLength == nil || *h.SeedLength != int64(through)+1 {
		return false, nil // what waits in the inbox would be the child's, too
	}
	l, err := s.create(ctx, h)
	if err != nil {
		return false, err
	}
	defer l.Close()
	f, err := p.message(l, finish)
	if f == nil || err != nil {
		return false, p.leave(err)
	}
	return true, l.publish(ctx, f)
}

// prefix is a part of a log that is copied.
type prefix struct {
	ctx     context.Context
	lk      *link
	of      log
	through outcrop.Seq
	border  message   // the last one that is copied, with its head
	bodies  []message // all of them; nil when they are too long
}

// leave is the error of a copy that was given up. What is wrong with the log is
// said by whoever decodes it then.
func (p *prefix) leave(err error) error {
	if err == nil || errors.Is(err, outcrop.ErrDamaged) {
		return nil
	}
	return p.lk.s.failed("fork", p.of.id, err)
}

// find looks for the border; false when the seq is not at the end of a message,
// or a turn is open there.
func (p *prefix) find() (bool, error) {
	size, keep := 0, true
	err := p.walk(func(m message) (more bool) {
		if size += len(m.Body); size > keptBodies {
			keep, p.bodies = false, nil
		}
		if keep {
			p.bodies = append(p.bodies, m)
		}
		p.border = m
		return m.Seq+outcrop.Seq(m.Count) <= p.through
	})
	if err != nil || p.border.Seq+outcrop.Seq(p.border.Count) != p.through+1 {
		return false, err
	}
	r, err := p.lk.nextFrom(p.ctx, p.border.Stream, p.border.Subject, p.border.Stored)
	if err != nil || r.Seq != p.border.Stored {
		return false, err
	}
	p.border, err = p.lk.parse(r, p.border.Stream, false)
	return err == nil && !p.border.Head.Open, err
}

// walk yields the messages from the beginning of the log on.
func (p *prefix) walk(yield func(message) bool) error {
	w := walker{lk: p.lk, log: p.of}
	return w.messages(p.ctx, 1, yield)
}

// message is the message of the child; nil when the bytes cannot be copied.
func (p *prefix) message(l *Lease, finish func(outcrop.Seq, outcrop.Type) []outcrop.Event) (_ *flight, err error) {
	of := p.border.Head
	// What a seed leaves to be done is its parent's.
	of.Step, of.Turn, of.Cut, of.Cuts, of.Bytes = 0, 0, false, 0, 0
	w := whole{l: l, ctx: p.ctx, enc: wire.NewEncoder(wire.Plain), want: sha256.New(), fold: newFolder(of, l.header)}
	done := false
	defer func() {
		if !done {
			w.drop()
		}
	}()
	if err := w.frame(w.enc.Header(nil, l.header)); err != nil {
		return nil, err
	}
	last, ok, err := p.copy(&w)
	if !ok || err != nil {
		return nil, err
	}
	end, ok := p.lastOf(last)
	if !ok || end.Last() != p.through {
		return nil, nil // whoever decodes it says what is wrong
	}
	w.next = p.through + 1
	text, err := w.enc.Batch(nil, func(yield func(outcrop.Record) bool) {
		for _, e := range finish(w.next, end.Type) {
			r := outcrop.Record{Event: e}
			w.next = r.Last() + 1
			w.fold.add(r)
			w.count++
			if !yield(r) {
				return
			}
		}
	})
	if err == nil {
		err = w.frame(text)
	}
	if err != nil {
		return nil, err
	}
	f, err := w.message(message{Kind: kindBatch, Epoch: 1})
	if err != nil {
		return nil, err
	}
	for _, o := range w.pieces { // they are read back before anybody names them
		if _, err := p.lk.object(p.ctx, o.Object, o.SHA256); err != nil {
			return nil, err
		}
	}
	done = true
	return f, nil
}

// lastOf is the last record of some frames.
func (p *prefix) lastOf(frames []byte) (last outcrop.Record, ok bool) {
	var line []byte
	decompressed(frames, func(text []byte, err error) bool {
		end := len(text) - 1
		if ok = err == nil && end >= 0 && text[end] == '\n'; ok {
			line = text[bytes.LastIndexByte(text[:end], '\n')+1 : end]
		}
		return ok
	})
	if !ok {
		return last, false
	}
	last, err := wire.NewLines(p.of.id, nil).Record(line)
	return last, err == nil
}

// copy adds the bodies to what the child has. last is the end of it, whole frames;
// false when the bytes must be decoded.
func (p *prefix) copy(w *whole) (last []byte, ok bool, err error) {
	first := true
	add := func(frames []byte, count int64) bool {
		if first {
			first = false
			// The header frame is left out. Old shapes, whose ids are made of the
			// session's, are not copied.
			var rest bytes.Buffer
			if ok, err = wire.CopyPrefix(&rest, bytes.NewReader(frames), int64(len(frames)), wire.Zstd, outcrop.Seq(count)-1); !ok || err != nil {
				return false
			}
			frames = rest.Bytes()
		}
		w.frames, w.count, last = append(w.frames, frames...), w.count+count, frames
		if len(w.frames) > pieceBytes {
			err = w.flush()
		}
		return err == nil
	}
	ok = true
	each := func(m message) bool {
		if !m.Refs {
			return add(m.Body, m.Count) && m.Stored < p.border.Stored
		}
		var ps []piece
		if ps, err = parseManifest(m.Body, m.Count); err != nil {
			return false
		}
		for _, o := range ps {
			var b []byte
			if b, err = p.lk.object(p.ctx, o.Object, o.SHA256); err != nil || !add(b, o.Count) {
				return false
			}
		}
		return m.Stored < p.border.Stored
	}
	if p.bodies != nil {
		for _, m := range p.bodies {
			if !each(m) {
				break
			}
		}
		return last, ok, err
	}
	if werr := p.walk(each); err == nil {
		err = werr
	}
	return last, ok, err
}
