package portable

import (
	"archive/zip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"iter"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/wire"
)

// Package is a zip file that is open for reading. Its methods may be called
// from any goroutine.
type Package struct {
	file    io.ReaderAt
	size    int64
	m       *manifest
	members map[string]*zip.File
	objects map[string]*attachment // by id
}

// Open reads the directory and the manifest of a package in a file of size
// bytes. Names, sizes and completeness are judged here, the content by Verify.
// The error wraps outcrop.ErrDamaged, or ErrUnsupported for a version that this
// program does not know.
func Open(file io.ReaderAt, size int64) (*Package, error) {
	z, err := zip.NewReader(file, size)
	if err != nil {
		return nil, bad("it is no zip file that can be read: %v", err)
	}
	if len(z.File) > maxMembers {
		return nil, bad("it has %d members, and %d are the most", len(z.File), maxMembers)
	}
	p := &Package{file: file, size: size, members: map[string]*zip.File{}}
	var total uint64
	for _, f := range z.File {
		if p.members[f.Name] != nil {
			return nil, bad("it has two members called %q", f.Name)
		}
		p.members[f.Name] = f
		if f.UncompressedSize64 > 1<<62 {
			return nil, bad("its member %q says that it has %d bytes", f.Name, f.UncompressedSize64)
		}
		total += f.UncompressedSize64
		if total > uint64(size)*maxRatio+extra {
			return nil, bad("it says that its %d bytes unpack to more than %d: that is no package of sessions", size, total-1)
		}
	}
	f := p.members[manifestPath]
	if f == nil {
		return nil, bad("it has no %s", manifestPath)
	}
	if f.UncompressedSize64 > maxManifest {
		return nil, bad("its manifest has %d bytes, and %d are the most", f.UncompressedSize64, maxManifest)
	}
	b, err := readMember(f, int64(f.UncompressedSize64))
	if err != nil {
		return nil, bad("its manifest cannot be read: %v", err)
	}
	if p.m, err = parseManifest(b); err != nil {
		if errors.Is(err, outcrop.ErrUnsupported) {
			return nil, err
		}
		return nil, bad("its manifest cannot be used: %v", err)
	}
	p.objects = make(map[string]*attachment, len(p.m.Attachments))
	for i := range p.m.Attachments {
		p.objects[p.m.Attachments[i].ID] = &p.m.Attachments[i]
	}
	return p, p.complete()
}

// complete compares directory and manifest.
func (p *Package) complete() error {
	named := map[string]bool{manifestPath: true}
	check := func(path string, size int64) error {
		f := p.members[path]
		if f == nil {
			return bad("%s is in the manifest and not in the file", path)
		}
		if f.UncompressedSize64 != uint64(size) {
			return bad("%s has %d bytes, and the manifest says %d", path, f.UncompressedSize64, size)
		}
		if f.Method != zip.Store && f.Method != zip.Deflate {
			return bad("%s is packed by a method (%d) that this program does not know", path, f.Method)
		}
		named[path] = true
		return nil
	}
	for i := range p.m.Sessions {
		if err := check(p.m.Sessions[i].Path, p.m.Sessions[i].Bytes); err != nil {
			return err
		}
	}
	for i := range p.m.Attachments {
		if err := check(p.m.Attachments[i].Path, p.m.Attachments[i].Bytes); err != nil {
			return err
		}
	}
	for name := range p.members {
		if !named[name] {
			return bad("it has a member %q that its manifest does not name", name)
		}
	}
	return nil
}

func bad(format string, args ...any) error {
	return &outcrop.Error{Op: "import", Seq: -1, Offset: -1, Err: outcrop.ErrDamaged, Msg: fmt.Sprintf(format, args...),
		Hint: "get the file again; a package is whole or nothing"}
}

// readMember reads a member that has this size.
func readMember(f *zip.File, size int64) ([]byte, error) {
	r, err := f.Open()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	b, err := io.ReadAll(io.LimitReader(r, size+1))
	if err == nil && int64(len(b)) != size {
		err = fmt.Errorf("it has another size than it says")
	}
	return b, err
}

// Sessions are the sessions of the package, parents first.
func (p *Package) Sessions() []Session { return p.m.Sessions }

// Masked is how many places of the logs were masked.
func (p *Package) Masked() int { return p.m.Masked }

// Missing are the attachments that the logs name and that were missing when the
// package was made.
func (p *Package) Missing() []string { return p.m.Missing }

// Verify reads everything and compares it with the manifest.
func (p *Package) Verify(ctx context.Context) error {
	for i := range p.m.Sessions {
		if err := p.verifyLog(ctx, &p.m.Sessions[i]); err != nil {
			return err
		}
	}
	for i := range p.m.Attachments {
		if err := ctx.Err(); err != nil {
			return err
		}
		if _, err := p.Get(ctx, p.m.Attachments[i].ID); err != nil {
			return err
		}
	}
	return nil
}

func (p *Package) verifyLog(ctx context.Context, s *Session) error {
	r, err := p.members[s.Path].Open()
	if err != nil {
		return bad("%s cannot be read: %v", s.Path, err)
	}
	h := sha256.New()
	in := io.TeeReader(&stoppable{ctx, io.LimitReader(r, s.Bytes+1)}, h)
	most := p.size*maxRatio*10 + extra*16
	var long bool
	if enc, _ := wire.EncodingOf(s.Path); enc == wire.Zstd {
		long = unpacksBeyond(in, most)
	}
	_, err = io.Copy(io.Discard, in)
	r.Close()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		return bad("%s cannot be read: %v", s.Path, err)
	}
	if hex.EncodeToString(h.Sum(nil)) != s.SHA256 {
		return bad("%s has another digest than its manifest says", s.Path)
	}
	if long {
		return bad("%s unpacks to more than %d bytes: that is no log", s.Path, most)
	}
	head, recs, err := p.Log(ctx, s.ID)
	if err != nil {
		return err
	}
	if head.ID != s.ID {
		return bad("%s is the log of %q, and the manifest says %q", s.Path, head.ID, s.ID)
	}
	var d store.Digest
	text := int64(0)
	for r, err := range recs {
		if err != nil {
			return err
		}
		d.Add(r)
		if r.Run != nil {
			text += int64(len(r.Run.Line()))
		} else {
			text += int64(len(r.Line()))
		}
		if text > most {
			return bad("%s unpacks to more than %d bytes of text: that is no log", s.Path, text)
		}
	}
	if int64(d.Len()) != s.Events || "sha256:"+d.Sum() != s.Digest {
		return bad("%s has other events than its manifest says", s.Path)
	}
	return nil
}

// unpacksBeyond reads frames until they end, break off, or give more than most
// bytes, and reports whether they did. A log is read line by line, and a few
// frames can hold empty lines without end: they would count as no text.
func unpacksBeyond(in io.Reader, most int64) bool {
	z, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(wire.MaxWindow))
	if err != nil {
		return false
	}
	defer z.Close()
	n, _ := io.Copy(io.Discard, io.LimitReader(z, most+1)) // what is damaged is found when it is read as a log
	return n > most
}

// Log is the log of a session. Its records can be read several times. An error
// of them is damage of the log itself, which Verify finds.
func (p *Package) Log(ctx context.Context, id string) (outcrop.Header, iter.Seq2[outcrop.Record, error], error) {
	s, err := p.find(id)
	if err != nil {
		return outcrop.Header{}, nil, err
	}
	open := func() (*wire.Reader, *inflated, error) {
		at := &inflated{f: p.members[s.Path]}
		enc, _ := wire.EncodingOf(s.Path)
		r, err := wire.NewReader(at, s.Bytes, enc)
		if err != nil {
			at.close()
			return nil, nil, store.Problem("import", id, err, "", "")
		}
		return r, at, nil
	}
	r, at, err := open()
	if err != nil {
		return outcrop.Header{}, nil, err
	}
	at.close()
	return r.Header(), func(yield func(outcrop.Record, error) bool) {
		r, at, err := open()
		if err != nil {
			yield(outcrop.Record{}, err)
			return
		}
		defer at.close()
		for rec, err := range r.Records() {
			if ctx.Err() != nil {
				yield(outcrop.Record{}, context.Cause(ctx))
				return
			}
			if err != nil {
				err = store.Problem("import", id, err, "", "")
			}
			if !yield(rec, err) || err != nil {
				return
			}
		}
		if r.Tail().Torn {
			yield(outcrop.Record{}, bad("the log of %q ends in a torn tail", id))
		}
	}, nil
}

// File opens the bytes of a session's log as they are packed.
func (p *Package) File(id string) (io.ReadCloser, wire.Encoding, error) {
	s, err := p.find(id)
	if err != nil {
		return nil, "", err
	}
	enc, _ := wire.EncodingOf(s.Path)
	r, err := p.members[s.Path].Open()
	return r, enc, err
}

func (p *Package) find(id string) (*Session, error) {
	for i := range p.m.Sessions {
		if p.m.Sessions[i].ID == id {
			return &p.m.Sessions[i], nil
		}
	}
	return nil, &outcrop.Error{Op: "import", Session: id, Seq: -1, Offset: -1, Err: outcrop.ErrNotFound, Msg: "the package has no such session"}
}

// Get is store.Objects': an attachment, checked against its id.
func (p *Package) Get(_ context.Context, id string) ([]byte, error) {
	a := p.objects[id]
	if a == nil {
		return nil, &outcrop.Error{Op: "import", Seq: -1, Offset: -1, Err: outcrop.ErrNotFound, Msg: "the package has no such attachment"}
	}
	b, err := readMember(p.members[a.Path], a.Bytes)
	if err != nil {
		return nil, bad("%s cannot be read: %v", a.Path, err)
	}
	if sum := sha256.Sum256(b); "sha256:"+hex.EncodeToString(sum[:]) != id {
		return nil, bad("%s has other bytes than its name says", a.Path)
	}
	return b, nil
}

// Put is store.Objects'. A package is not written.
func (p *Package) Put(context.Context, []byte) (string, error) {
	return "", &outcrop.Error{Op: "import", Seq: -1, Offset: -1, Err: outcrop.ErrReadOnly, Msg: "a package is only read"}
}

// inflated is a member as a file that is read from its beginning to its end, as
// logs are. A place before the last one begins again at the head.
type inflated struct {
	f   *zip.File
	mu  sync.Mutex
	r   io.ReadCloser
	pos int64
}

func (a *inflated) ReadAt(b []byte, off int64) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.r != nil && off < a.pos {
		a.r.Close()
		a.r = nil
	}
	if a.r == nil {
		r, err := a.f.Open()
		if err != nil {
			return 0, err
		}
		a.r, a.pos = r, 0
	}
	if off > a.pos {
		n, err := io.CopyN(io.Discard, a.r, off-a.pos)
		a.pos += n
		if err != nil {
			return 0, err
		}
	}
	n, err := io.ReadFull(a.r, b)
	a.pos += int64(n)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = io.EOF
	}
	return n, err
}

func (a *inflated) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.r != nil {
		a.r.Close()
		a.r = nil
	}
}
