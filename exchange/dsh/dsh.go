// Package dsh takes over the sessions of DeepSeek Harness (dsh), which are logs
// already: every event as it is, under the id that it has. It reads
//
//	PROJECT/SESSION/session.jsonl, session.vN.jsonl   log files, also with the ending .zstd;
//	                                                  of one folder the highest format counts
//	a SQLite file of dsh's                            all of its sessions
//
// A log file that is named itself may have any name, as a backup has.
// The logs of other programs that write the same format, such as Outcrop's own,
// are taken the same way. A log in a later format becomes one of format 0, as
// package wire reads it. Attachments are found where dsh keeps them: see package
// dshsqlite, and for files attachments/v1 beside the folder of the sessions.
//
// A torn tail is left out, and the report says so; a damaged log is named and
// skipped. Nothing is written beside the sources.
package dsh

import (
	"bytes"
	"context"
	"errors"
	"io"
	"iter"
	"os"
	"path/filepath"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/exchange"
	"github.com/outcrop-dev/outcrop/internal/foreigndb"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/blob"
	"github.com/outcrop-dev/outcrop/store/dshsqlite"
	"github.com/outcrop-dev/outcrop/store/jsonl"
	"github.com/outcrop-dev/outcrop/wire"
)

// Name is the name of the format.
const Name = "dsh"

// Format is the format for an importer.
func Format() exchange.Format {
	return exchange.Format{Name: Name, Label: "DeepSeek Harness", Home: []string{".dsh"}, Claims: Claims, Open: Open}
}

// Claims reports whether a file is a log or a database of dsh's. A log beside one
// of a higher format is none: that one is the session.
func Claims(path string, head []byte) bool {
	if application, _, ok := foreigndb.HeadIdentity(path); ok {
		return application == dshsqlite.ApplicationID || application == 0 && newDatabase(path)
	}
	enc, ok := wire.EncodingOf(path)
	if !ok {
		return false
	}
	if enc == wire.Plain {
		line, _, _ := bytes.Cut(head, []byte{'\n'})
		if !isHeader(line) {
			return false
		}
	} else if _, line, err := wire.ReadHeader(bytes.NewReader(head), enc); err != nil && !isHeader(line) {
		return false
	}
	return !outdated(path)
}

// newDatabase reports a database whose first page is still in its write-ahead
// log.
func newDatabase(path string) bool {
	if fi, err := os.Stat(path + "-wal"); err != nil || fi.Size() == 0 {
		return false
	}
	f, err := foreigndb.Open(context.Background(), path)
	if err != nil {
		return false
	}
	defer f.Close()
	return f.Identity().ApplicationID == dshsqlite.ApplicationID
}

// isHeader reports the first line of a log.
func isHeader(line []byte) bool {
	return jsonwire.Valid(line) == nil && jsonwire.Kind(line) == '{' && jsonwire.TextIs(jsonwire.Get(line, "type"), "session") && jsonwire.Kind(jsonwire.Get(line, "version")) == '0'
}

// outdated reports a log file with one of a higher format beside it.
func outdated(path string) bool {
	own, ok := jsonl.FormatOf(path)
	if !ok {
		return false
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return false
	}
	for _, e := range entries {
		if n, ok := jsonl.FormatOf(e.Name()); ok && n > own {
			return true
		}
	}
	return false
}

// Open is a file as a source.
func Open(path string) exchange.Source {
	src := exchange.Source{Format: Name, Path: path, Sessions: func(ctx context.Context, r *exchange.Report) iter.Seq2[*exchange.Session, error] {
		return Sessions(ctx, path, r)
	}}
	if foreigndb.Is(path) {
		src.Stamp = func() (string, error) {
			s, err := exchange.FileStamp(path)
			if err != nil {
				return "", err
			}
			if log, err := exchange.FileStamp(path + "-wal"); err == nil {
				s += " " + log
			}
			return s, nil
		}
	}
	return src
}

// Sessions yields the session of a log file, or all of a database, the oldest
// first. r hears of what is left out; it may be nil.
func Sessions(ctx context.Context, path string, r *exchange.Report) iter.Seq2[*exchange.Session, error] {
	return func(yield func(*exchange.Session, error) bool) {
		if !foreigndb.Is(path) {
			enc, err := encodingOf(path)
			if err != nil {
				yield(nil, err)
				return
			}
			st, err := jsonl.FileAs(path, enc, jsonl.Options{})
			if err != nil {
				yield(nil, err)
				return
			}
			defer st.Close()
			s, err := session(ctx, st, "", r)
			if _, ok := wire.EncodingOf(path); !ok && err == nil && jsonl.EncodeSegment(s.Source) == filepath.Base(filepath.Dir(path)) {
				// A backup in its session's folder: its attachments are those of
				// the session.
				s.Log.Objects = blob.Beside(filepath.Dir(filepath.Dir(filepath.Dir(path))))
			}
			var late *outcrop.Error
			switch {
			case err != nil:
				err = hinted(err, path)
			case errors.As(store.Overtaken(ctx, st, ""), &late):
				r.Dropped("later log", filepath.Base(late.Path)+": "+late.Msg, 0)
			}
			yield(s, err)
			return
		}
		st, err := dshsqlite.New(path, dshsqlite.Options{})
		if err != nil {
			yield(nil, err)
			return
		}
		defer st.Close()
		infos, err := st.List(ctx, store.ListOptions{})
		if err != nil {
			yield(nil, err)
			return
		}
		for i := len(infos) - 1; i >= 0; i-- {
			s, err := session(ctx, st, infos[i].ID, r)
			if err != nil && ctx.Err() == nil {
				// One session's row does not hide the others.
				r.Dropped("session", err.Error(), 0)
				continue
			}
			if !yield(s, err) || err != nil {
				return
			}
		}
	}
}

// encodingOf is the encoding of a log file: its ending says it, or else its first
// bytes do.
func encodingOf(path string) (wire.Encoding, error) {
	if enc, ok := wire.EncodingOf(path); ok {
		return enc, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	head := make([]byte, len(zstdMagic))
	if n, err := io.ReadFull(f, head); err == nil && string(head[:n]) == zstdMagic {
		return wire.Zstd, nil
	}
	return wire.Plain, nil
}

// zstdMagic begins a compressed log.
const zstdMagic = "\x28\xb5\x2f\xfd"

// hinted adds to the error about a log of a format that is not known what else
// of the session could be taken.
func hinted(err error, path string) error {
	own, ok := jsonl.FormatOf(path)
	if outcrop.CodeOf(err) != "HEADER_VERSION" || !ok {
		return err
	}
	entries, _ := os.ReadDir(filepath.Dir(path))
	best, older := -1, ""
	for _, e := range entries {
		if n, ok := jsonl.FormatOf(e.Name()); ok && n < own && n > best {
			best, older = n, e.Name()
		}
	}
	if older == "" {
		return err
	}
	e := store.Problem("read", "", err, "", "")
	e.Hint += "; " + older + " beside it, which is older, is imported when it is named itself"
	return e
}

// session is one session of a store. An empty id stands for the one in a file.
func session(ctx context.Context, st store.Store, id string, r *exchange.Report) (*exchange.Session, error) {
	sd, err := st.Read(ctx, id)
	if err != nil {
		return nil, err
	}
	h := sd.Header()
	if err := sd.Close(); err != nil {
		return nil, err
	}
	s := &exchange.Session{Program: Name, Source: h.ID, CreatedAt: h.CreatedAt, Subagent: h.Origin != ""}
	if h.Cwd != nil {
		s.Cwd = *h.Cwd
	}
	if h.ParentSession != nil {
		s.Parent = *h.ParentSession
	}
	first := true
	s.Log = &exchange.Log{Header: h, Objects: store.ObjectsOf(st), Records: func(ctx context.Context) iter.Seq2[outcrop.Record, error] {
		report := r
		if !first {
			report = nil
		}
		first = false
		return records(ctx, st, id, report)
	}}
	return s, nil
}

// records reads a log. What a report counts is told once.
func records(ctx context.Context, st store.Store, id string, r *exchange.Report) iter.Seq2[outcrop.Record, error] {
	return func(yield func(outcrop.Record, error) bool) {
		sd, err := st.Read(ctx, id)
		if err != nil {
			yield(outcrop.Record{}, err)
			return
		}
		defer sd.Close()
		n := 0
		for rec, err := range sd.Records() {
			if err == nil {
				if n++; n%1024 == 0 {
					err = ctx.Err()
				}
				r.Advance(int64(len(rec.Line())))
			}
			if err != nil {
				err = store.Located(err, sd)
			}
			if !yield(rec, err) || err != nil {
				return
			}
		}
		if t := sd.Tail(); t.Torn {
			why := "it is torn, and no turn ends in it"
			if t.Reason != nil {
				why += ": " + t.Reason.Error()
			}
			r.Dropped("tail", why, 0)
		}
	}
}
