package portable

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"math"
	"slices"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/exchange/masking"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/jsonl"
	"github.com/outcrop-dev/outcrop/wire"
)

// Options of a package: the zero value masks.
type Options struct {
	// Raw packs everything as it is stored, secrets too.
	Raw bool
}

// Report says what a package holds.
type Report struct {
	Sessions    []Session
	Attachments int
	Missing     []string // attachments that logs name and the store does not have
	Masked      int      // places
}

// Tree is a session and those that come from it, forks and sub-agents, parents
// first.
func Tree(ctx context.Context, st store.Store, id string) ([]string, error) {
	infos, err := st.List(ctx, store.ListOptions{})
	if err != nil {
		return nil, err
	}
	children := map[string][]string{}
	for _, in := range slices.Backward(infos) { // oldest first
		if p := in.Header.ParentSession; p != nil && in.ID != "" {
			children[*p] = append(children[*p], in.ID)
		}
	}
	ids, seen := []string{id}, map[string]bool{id: true}
	for i := 0; i < len(ids); i++ {
		for _, c := range children[ids[i]] {
			if !seen[c] {
				seen[c] = true
				ids = append(ids, c)
			}
		}
	}
	return ids, nil
}

// Write packs the sessions with these ids, parents before those that come from
// them, as Tree gives them. It reads each log two times and holds none. A torn
// tail is left out; a damaged log is refused, since what the package says of it
// would not be the session. After an error what w got is no package.
func Write(ctx context.Context, w io.Writer, st store.Store, ids []string, o Options) (Report, error) {
	p := packer{ctx: ctx, st: st, zip: zip.NewWriter(w), objects: map[string]int64{}}
	// Most sessions hold nothing to hide: those are packed as they are.
	if !o.Raw {
		for _, id := range ids {
			if err := p.search(id); err != nil {
				return Report{}, err
			}
		}
		p.masked = p.mask.Found
		p.mask.Found = 0
	}
	for _, id := range ids {
		if err := p.session(id); err != nil {
			return Report{}, err
		}
	}
	if err := p.attachments(); err != nil {
		return Report{}, err
	}
	return p.end()
}

type packer struct {
	ctx     context.Context
	st      store.Store
	zip     *zip.Writer
	m       manifest
	masked  int // places to be masked, 0 when all logs go as they are
	mask    masking.Masker
	objects map[string]int64 // attachments that logs name
	renamed map[string]string
	// How many events of each log were searched. A session may be written
	// meanwhile: what came later was not searched, and is not packed.
	searched map[string]outcrop.Seq
}

// read passes over a log and gives what stops it.
func (p *packer) read(sd store.Stored, each func(*outcrop.Record) error) error {
	for r, err := range sd.Records() {
		if p.ctx.Err() != nil {
			return context.Cause(p.ctx)
		}
		if err != nil {
			return store.Problem("export", sd.Header().ID, store.Located(err, sd), "", "verify and doctor say more; doctor --repair makes a log that can be packed")
		}
		if err := each(&r); err != nil {
			return err
		}
	}
	return nil
}

func (p *packer) search(id string) error {
	sd, err := p.st.Read(p.ctx, id)
	if err != nil {
		return err
	}
	defer sd.Close()
	h := sd.Header()
	if p.renamed == nil {
		p.renamed, p.searched = map[string]string{}, map[string]outcrop.Seq{}
	}
	p.renamed[h.ID] = h.ID + "-masked"
	p.mask.Header(h)
	n := outcrop.Seq(0)
	for r, err := range p.mask.Log(sd.Records()) {
		if p.ctx.Err() != nil {
			return context.Cause(p.ctx)
		}
		if err != nil {
			n = math.MaxInt64 // the second pass says it
			break
		}
		n = r.Last() + 1
	}
	p.searched[id] = n
	return nil
}

// session packs one log.
func (p *packer) session(id string) error {
	sd, err := p.st.Read(p.ctx, id)
	if err != nil {
		return err
	}
	defer sd.Close()
	h := sd.Header()
	s := Session{ID: h.ID}
	if p.masked > 0 {
		return p.maskedLog(sd, s)
	}
	if h.ParentSession != nil {
		s.Parent = *h.ParentSession
	}
	var d store.Digest
	most, cut := p.most(id), false
	if err := p.read(sd, func(r *outcrop.Record) error {
		if cut = r.Seq >= most; cut {
			return errEnough
		}
		d.Add(*r)
		p.name(r)
		return nil
	}); err != nil && !errors.Is(err, errEnough) {
		return err
	}
	s.Events, s.Digest = int64(d.Len()), "sha256:"+d.Sum()
	if log, ok := sd.(*jsonl.Log); ok && !cut && log.Reader().Tail().Recovered == 0 && log.Reader().Format() == outcrop.FormatVersion {
		return p.file(log, s)
	}
	again, err := p.st.Read(p.ctx, id)
	if err != nil {
		return err
	}
	defer again.Close()
	return p.text(s, h, func(yield func(outcrop.Record, error) bool) {
		n := outcrop.Seq(s.Events)
		for r, err := range again.Records() {
			if err == nil && r.Seq >= n || !yield(r, err) {
				return
			}
		}
	})
}

// errEnough ends the reading of a log.
var errEnough = errors.New("enough of the log")

// most is how many events of a log may be packed.
func (p *packer) most(id string) outcrop.Seq {
	if n, ok := p.searched[id]; ok {
		return n
	}
	return math.MaxInt64
}

// name keeps the attachments that a record names.
func (p *packer) name(r *outcrop.Record) {
	if r.Run != nil {
		return
	}
	for id := range store.AttachmentIDs(r.Data) {
		if len(id) == len("sha256:")+64 {
			p.objects[id] = 0
		}
	}
}

// file packs the good bytes of a log file.
func (p *packer) file(log *jsonl.Log, s Session) error {
	f, _, err := jsonl.OpenBytes(log.Path())
	if err != nil {
		return err
	}
	defer f.Close()
	enc, _ := wire.EncodingOf(log.Path())
	return p.member(s, enc, func(w io.Writer) error {
		good := log.Reader().Tail().Good
		n, err := io.Copy(w, &stoppable{p.ctx, io.NewSectionReader(f, 0, good)})
		if err == nil && n < good {
			err = fmt.Errorf("%s has become shorter while it was read", log.Path())
		}
		return err
	})
}

type stoppable struct {
	ctx context.Context
	r   io.Reader
}

func (s *stoppable) Read(b []byte) (int, error) {
	if s.ctx.Err() != nil {
		return 0, context.Cause(s.ctx)
	}
	return s.r.Read(b)
}

// text packs a log as text.
func (p *packer) text(s Session, h outcrop.Header, recs iter.Seq2[outcrop.Record, error]) error {
	return p.member(s, wire.Plain, func(w io.Writer) error {
		line := append(bytes.Clone(h.Line()), '\n')
		if _, err := w.Write(line); err != nil {
			return err
		}
		for r, err := range recs {
			if err != nil {
				return err
			}
			if p.ctx.Err() != nil {
				return context.Cause(p.ctx)
			}
			if r.Run != nil {
				line = r.Run.AppendLine(line[:0])
			} else {
				line = r.AppendJSON(line[:0])
			}
			if _, err := w.Write(append(line, '\n')); err != nil {
				return err
			}
		}
		return nil
	})
}

// maskedLog packs a masked log under another id.
func (p *packer) maskedLog(sd store.Stored, s Session) error {
	h, err := p.rehead(p.mask.Header(sd.Header()), s.ID)
	if err != nil {
		return err
	}
	s.ID, s.MaskedFrom = h.ID, s.ID
	if h.ParentSession != nil {
		s.Parent = *h.ParentSession
	}
	var d store.Digest
	var damage error
	recs := func(yield func(outcrop.Record, error) bool) {
		for r, err := range p.mask.Log(sd.Records()) {
			if err != nil {
				damage = store.Problem("export", s.MaskedFrom, store.Located(err, sd), "", "doctor --repair makes a log that can be packed")
				return
			}
			if r.Run == nil {
				r.Event = r.Event.Current() // another id: old shapes are filled in from the old one
			}
			d.Add(r)
			p.name(&r)
			if !yield(r, nil) {
				return
			}
		}
	}
	if err := p.text(s, h, recs); err != nil || damage != nil {
		return errors.Join(err, damage)
	}
	last := &p.m.Sessions[len(p.m.Sessions)-1]
	last.Events, last.Digest = int64(d.Len()), "sha256:"+d.Sum()
	return nil
}

// rehead gives a header the id of a masked copy, and its parent's.
func (p *packer) rehead(h outcrop.Header, id string) (outcrop.Header, error) {
	line := []byte{'{'}
	for k, v := range jsonwire.Members(h.Line()) {
		if len(line) > 1 {
			line = append(line, ',')
		}
		line = append(append(append(line, '"'), k...), '"', ':')
		text, _ := jsonwire.Text(v)
		switch to, ok := p.renamed[text]; {
		case ok && (jsonwire.KeyIs(k, "id") || jsonwire.KeyIs(k, "parentSession")):
			line = jsonwire.AppendString(line, to)
		default:
			line = append(line, v...)
		}
	}
	line = append(jsonwire.AppendStringMember(line, "maskedFrom", id), '}')
	return outcrop.ParseHeader(line)
}

// member writes the log of a session.
func (p *packer) member(s Session, enc wire.Encoding, write func(io.Writer) error) error {
	s.Path = sessionPath(len(p.m.Sessions)+1, string(enc))
	method := zip.Deflate
	if enc == wire.Zstd {
		method = zip.Store // it is compressed
	}
	w, err := p.zip.CreateHeader(&zip.FileHeader{Name: s.Path, Method: method})
	if err != nil {
		return err
	}
	h := sha256.New()
	c := &counter{w: io.MultiWriter(w, h)}
	if err := write(c); err != nil {
		return err
	}
	s.Bytes, s.SHA256 = c.n, hex.EncodeToString(h.Sum(nil))
	p.m.Sessions = append(p.m.Sessions, s)
	return nil
}

type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.n += int64(n)
	return n, err
}

func (p *packer) attachments() error {
	objects := store.ObjectsOf(p.st)
	for _, id := range slices.Sorted(maps.Keys(p.objects)) {
		var b []byte
		err := outcrop.ErrNotFound
		if objects != nil {
			b, err = objects.Get(p.ctx, id)
		}
		switch {
		case errors.Is(err, outcrop.ErrNotFound), errors.Is(err, outcrop.ErrDamaged), errors.Is(err, outcrop.ErrRefused):
			p.m.Missing = append(p.m.Missing, id)
			continue
		case err != nil:
			return err
		}
		a := attachment{ID: id, Path: attachmentPath(id), Bytes: int64(len(b))}
		w, err := p.zip.CreateHeader(&zip.FileHeader{Name: a.Path, Method: zip.Store})
		if err == nil {
			_, err = w.Write(b)
		}
		if err != nil {
			return err
		}
		p.m.Attachments = append(p.m.Attachments, a)
	}
	return nil
}

func (p *packer) end() (Report, error) {
	m := &p.m
	m.Format, m.Version, m.Masked = formatName, version, p.masked
	if m.Attachments == nil {
		m.Attachments = []attachment{}
	}
	if m.Missing == nil {
		m.Missing = []string{}
	}
	b, err := jsonwire.Marshal(m)
	if err != nil {
		return Report{}, err
	}
	w, err := p.zip.CreateHeader(&zip.FileHeader{Name: manifestPath, Method: zip.Deflate})
	if err == nil {
		_, err = w.Write(append(jsonwire.Indent(b), '\n'))
	}
	if err == nil {
		err = p.zip.Close()
	}
	return Report{Sessions: m.Sessions, Attachments: len(m.Attachments), Missing: m.Missing, Masked: m.Masked}, err
}
