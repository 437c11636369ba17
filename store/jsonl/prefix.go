package jsonl

import (
	"context"
	"errors"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/faultfs"
	"github.com/outcrop-dev/outcrop/wire"
)

// PutPrefix is store.PrefixCopier's. The child gets the root's encoding; a
// parent in another one is not copied as bytes.
func (s *Store) PutPrefix(ctx context.Context, parent string, through outcrop.Seq,
	header func(outcrop.Header, outcrop.Seq) outcrop.Header,
	finish func(outcrop.Seq, outcrop.Type) []outcrop.Event,
) (copied bool, err error) {
	f, err := s.find(parent)
	if err != nil {
		return false, err
	}
	if f.enc == "" {
		return false, f.problem("read", parent)
	}
	src, err := openLog(s.disk, f.path(), f.enc)
	if err != nil {
		return false, err
	}
	defer src.Close()
	if src.Header().Format > 0 {
		return false, nil
	}
	if through < 0 {
		last, err := wire.LastEvents(src.f, src.Size(), f.enc)
		if err != nil || !last.Known || last.Torn {
			return false, at(src.path, err)
		}
		through = last.Seq
	}
	h := header(src.Header(), through+1)
	l, err := s.newLease(h)
	if err != nil || l.enc != f.enc {
		return false, err
	}
	n, err := l.begin()
	if err != nil {
		return false, err
	}
	copied, err = n.copyPrefix(src, through, finish)
	if err != nil || !copied || ctx.Err() != nil {
		n.drop()
		return false, errors.Join(err, context.Cause(ctx))
	}
	return true, errors.Join(n.finish(), l.Close())
}

func (n *newLog) copyPrefix(src *Log, through outcrop.Seq, finish func(outcrop.Seq, outcrop.Type) []outcrop.Event) (bool, error) {
	l := n.l
	l.encoder = wire.NewEncoder(l.enc)
	if _, err := n.Write(l.encoder.Header(nil, l.header)); err != nil {
		return false, err
	}
	if copied, err := wire.CopyPrefix(n.temp, src.f, src.Size(), l.enc, through); !copied || err != nil {
		return false, at(src.path, err)
	}
	// The end of the copy is read back: it must show that no turn is open.
	back, err := faultfs.Open(l.disk, n.temp.Name())
	if err != nil {
		return false, pathProblem("create", n.temp.Name(), err)
	}
	defer back.Close()
	fi, err := back.Stat()
	if err != nil {
		return false, pathProblem("create", n.temp.Name(), err)
	}
	n.size = fi.Size()
	last, err := wire.LastEvents(back, n.size, l.enc)
	if err != nil || !last.Known || last.Torn || last.Seq != through || last.Turn != wire.TurnClosed {
		return false, at(src.path, err)
	}
	records := func(yield func(outcrop.Record) bool) {
		for _, e := range finish(through+1, last.Type) {
			if !yield(outcrop.Record{Event: e}) {
				return
			}
		}
	}
	b, err := l.encoder.Batch(nil, records)
	if err == nil && len(b) > 0 {
		_, err = n.Write(b)
	}
	return err == nil, err
}
