package sqlite

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"hash"
	"io"
	"iter"
	"os"
	"path/filepath"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/wire"
)

// Put is store.Store's. The records are read before the transaction begins, so
// that a slow source keeps nobody waiting; large ones are kept in a temporary
// file meanwhile. They are read back before it ends.
func (s *Store) Put(ctx context.Context, h outcrop.Header, recs iter.Seq2[outcrop.Record, error]) error {
	made, err := s.Create(ctx, h)
	if err != nil {
		return err
	}
	l := made.(*lease)
	defer l.Close()
	text := newSpool(filepath.Dir(s.path))
	defer text.close()
	b := batch{s: s}
	if err := text.encode(ctx, &b, recs); err != nil {
		return err
	}
	b.head.bytes = text.size
	return l.store(ctx, &b, text.lines(), func(_ context.Context, c *sql.Conn) error { return l.same(c, text.digest(), b.next) })
}

// same reads back what was written. It is the lines that are compared: what an
// old shape means is not asked.
func (l *lease) same(c *sql.Conn, want []byte, n outcrop.Seq) error {
	ahead, stop := make(chan portion), make(chan struct{})
	go scan(c, l.key, 0, int64(n), ahead, stop)
	defer func() {
		close(stop)
		for range ahead {
		}
	}()
	got, events := sha256.New(), outcrop.Seq(0)
	for p := range ahead {
		for _, r := range p.rows {
			got.Write(r.line)
			got.Write([]byte{'\n'})
			events += outcrop.Seq(r.count)
		}
		if p.err != nil {
			return p.err
		}
	}
	if events != n || !bytes.Equal(got.Sum(nil), want) {
		return l.s.sessionProblem("create", l.header.ID, "", outcrop.ErrDamaged, fmt.Sprintf("%d events read back are not the %d written", events, n), "")
	}
	return nil
}

// spoolMemory is how many bytes of text are kept in memory.
const spoolMemory = 16 << 20

// spool keeps the lines of a log: in memory, and when they are many in a file
// that nobody else sees.
type spool struct {
	dir  string
	buf  []byte
	file *os.File
	size int64
	sum  hash.Hash // of the text
}

// newSpool makes one whose file lies in a folder, when there is one.
func newSpool(dir string) *spool { return &spool{dir: dir, sum: sha256.New()} }

// digest is that of all the lines.
func (s *spool) digest() []byte { return s.sum.Sum(nil) }

// encodeBytes is about how much text is encoded at once. Packed rows never reach
// over its end.
const encodeBytes = 256 << 10

func (s *spool) encode(ctx context.Context, b *batch, recs iter.Seq2[outcrop.Record, error]) error {
	enc := wire.NewEncoder(wire.Plain)
	next, stop := iter.Pull2(recs)
	defer stop()
	var failed error
	var part []byte
	for more := true; more; {
		bytes := 0
		var err error
		part, err = enc.Batch(part[:0], b.through(func(yield func(outcrop.Record) bool) {
			for bytes < encodeBytes {
				r, err, ok := next()
				if !ok || err != nil {
					failed, more = err, false
					return
				}
				bytes += len(r.Data) + 64
				if !yield(r) {
					return
				}
			}
		}))
		for _, e := range [...]error{failed, b.err, err, context.Cause(ctx)} {
			if e != nil {
				return e
			}
		}
		if err := s.add(part); err != nil {
			return err
		}
	}
	return nil
}

func (s *spool) add(text []byte) (err error) {
	s.size += int64(len(text))
	s.sum.Write(text)
	if s.file == nil && len(s.buf)+len(text) > spoolMemory {
		if _, e := os.Stat(s.dir); e != nil {
			s.dir = "" // the system's
		}
		if s.file, err = os.CreateTemp(s.dir, ".outcrop-put-*"); err == nil {
			_, err = s.file.Write(s.buf)
		}
		s.buf = nil
	}
	switch {
	case err != nil:
	case s.file != nil:
		_, err = s.file.Write(text)
	default:
		s.buf = append(s.buf, text...)
	}
	return err
}

// lines yields the lines; each is valid until the next one.
func (s *spool) lines() iter.Seq2[[]byte, error] {
	if s.file == nil {
		return lines(s.buf)
	}
	return func(yield func([]byte, error) bool) {
		in := bufio.NewReaderSize(io.NewSectionReader(s.file, 0, s.size), 1<<20)
		var long []byte
		for {
			part, err := in.ReadSlice('\n')
			if errors.Is(err, bufio.ErrBufferFull) {
				long = append(long, part...)
				continue
			}
			if err != nil {
				if !errors.Is(err, io.EOF) {
					yield(nil, err)
				}
				return
			}
			line := part
			if len(long) > 0 {
				line = append(long, part...)
			}
			if !yield(bytes.TrimSuffix(line, []byte{'\n'}), nil) {
				return
			}
			long = long[:0]
		}
	}
}

func (s *spool) close() {
	if s.file != nil {
		s.file.Close()
		os.Remove(s.file.Name())
	}
}
