package portable

import (
	"bytes"
	"context"
	"errors"
	"io"
	"iter"
	"strings"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/exchange"
	"github.com/outcrop-dev/outcrop/store/jsonl"
)

// Format is the package as something that is imported: each session as it is,
// to the byte where the store can take it so.
func Format() exchange.Format {
	return exchange.Format{Name: "zip", Label: "package of sessions", Claims: claims,
		Open: func(path string) exchange.Source {
			return exchange.Source{Format: "zip", Path: path, Stamp: func() (string, error) { return exchange.FileStamp(path) }, Sessions: func(ctx context.Context, r *exchange.Report) iter.Seq2[*exchange.Session, error] {
				return sessions(ctx, path, r)
			}}
		}}
}

// claims tells a package by its content: other zip files are not ours.
func claims(path string, head []byte) bool {
	if !bytes.HasPrefix(head, []byte("PK\x03\x04")) {
		return false
	}
	_, f, err := openFile(path)
	if f != nil {
		f.Close()
	}
	// One that is of a later version or damaged is still ours to speak about.
	return err == nil || errors.Is(err, outcrop.ErrUnsupported) || bytes.Contains(head, []byte("sessions/1/session."))
}

func openFile(path string) (*Package, jsonl.Bytes, error) {
	f, fi, err := jsonl.OpenBytes(path)
	if err != nil {
		return nil, nil, err
	}
	p, err := Open(f, fi.Size())
	if err != nil {
		f.Close()
		return nil, nil, at(path, err)
	}
	return p, f, nil
}

// OpenFile opens a package by its path. close ends it.
func OpenFile(path string) (p *Package, close func() error, err error) {
	p, f, err := openFile(path)
	if err != nil {
		return nil, nil, err
	}
	return p, f.Close, nil
}

// at adds the path to an error about the package.
func at(path string, err error) error {
	var e *outcrop.Error
	if errors.As(err, &e) && e.Path == "" {
		c := *e
		c.Path = path
		return &c
	}
	return err
}

// sessions yields the sessions of a package when all of it was verified.
func sessions(ctx context.Context, path string, r *exchange.Report) iter.Seq2[*exchange.Session, error] {
	return func(yield func(*exchange.Session, error) bool) {
		p, f, err := openFile(path)
		if err != nil {
			yield(nil, err)
			return
		}
		defer f.Close()
		if err := p.Verify(ctx); err != nil {
			yield(nil, at(path, err))
			return
		}
		for range p.Missing() {
			r.Dropped("attachment", "it was missing when the package was made", 0)
		}
		for _, s := range p.Sessions() {
			h, recs, err := p.Log(ctx, s.ID)
			if err != nil {
				yield(nil, at(path, err))
				return
			}
			es := &exchange.Session{Program: "outcrop", Source: s.ID, CreatedAt: h.CreatedAt, Parent: s.Parent,
				Subagent: h.Origin == "subagent",
				Log: &exchange.Log{Header: h, Objects: p,
					Records: func(context.Context) iter.Seq2[outcrop.Record, error] { return recs },
					Bytes: func() (io.ReadCloser, string, string, error) {
						r, ending, err := p.File(s.ID)
						return r, string(ending), strings.TrimPrefix(s.Digest, "sha256:"), err
					}}}
			if h.Cwd != nil {
				es.Cwd = *h.Cwd
			}
			if !yield(es, nil) {
				return
			}
			r.Advance(s.Bytes)
		}
	}
}
