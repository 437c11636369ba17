package jsonl

import (
	"context"
	"errors"
	"io"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/wire"
)

var _ store.BytesPutter = (*Store)(nil)

// PutBytes is store.BytesPutter's.
func (s *Store) PutBytes(ctx context.Context, h outcrop.Header, ending string, r io.Reader, digest string) (taken bool, err error) {
	l, err := s.newLease(h)
	if err != nil {
		return true, err
	}
	if l.enc != wire.Encoding(ending) {
		return false, nil
	}
	n, err := l.begin()
	if err != nil {
		return true, err
	}
	if err := n.copy(ctx, r); err != nil {
		n.drop()
		return true, err
	}
	if err := n.holds(digest); err != nil {
		n.drop()
		return true, err
	}
	err = n.finish()
	return true, errors.Join(err, l.Close())
}

// copy writes the bytes of a log.
func (n *newLog) copy(ctx context.Context, r io.Reader) error {
	b := make([]byte, writeBytes)
	for {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		got, err := io.ReadFull(r, b)
		if _, writeErr := n.Write(b[:got]); writeErr != nil {
			return writeErr
		}
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return nil
		case err != nil:
			return n.l.problem("create", err)
		}
	}
}

// holds reads the temporary file back and compares it with header and digest.
func (n *newLog) holds(digest string) error {
	wrong := func(msg string) error {
		return &outcrop.Error{Op: "create", Session: n.l.header.ID, Path: n.temp.Name(), Seq: -1, Offset: -1, Err: outcrop.ErrDamaged, Msg: msg}
	}
	back, err := openLog(n.l.disk, n.temp.Name(), n.l.enc)
	if err != nil {
		return err
	}
	defer back.Close()
	if string(back.r.HeaderLine()) != string(n.l.header.Line()) {
		return wrong("the header of the bytes is not that of the session")
	}
	var got store.Digest
	for r, err := range back.Records() {
		if err != nil {
			return err
		}
		got.Add(r)
	}
	if back.Tail().Torn {
		return wrong("the bytes end in a torn tail")
	}
	if got.Sum() != digest {
		return wrong("the bytes hold other events than they should")
	}
	return nil
}
