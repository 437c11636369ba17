package opencode

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/outcrop-dev/outcrop/exchange"
	"github.com/outcrop-dev/outcrop/exchange/internal/fields"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
)

// maxFile is the largest file that is read, in bytes.
const maxFile = exchange.MaxLine

// readObject reads a file that is one JSON object. why is what a report says of
// one that is none.
func readObject(path string) (v []byte, why string, err error) {
	fi, err := os.Stat(path)
	if err != nil {
		return nil, "", err
	}
	if fi.Size() > maxFile {
		return nil, fmt.Sprintf("it has more than %d bytes", int64(maxFile)), nil
	}
	v, err = os.ReadFile(path)
	if err != nil {
		return nil, "", err
	}
	if why := unfit(v); why != "" {
		return nil, why, nil
	}
	return v, "", nil
}

// names are the ids of the files in a folder, in their order; none when it is
// not there.
func names(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	ids := make([]string, 0, len(entries))
	for _, e := range entries {
		// Files that are being written begin with a dot.
		if id, ok := strings.CutSuffix(e.Name(), ".json"); ok && id != "" && !strings.HasPrefix(id, ".") && !e.IsDir() {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// fromFolder yields the session of a file.
func fromFolder(ctx context.Context, l layout, h *homes, r *exchange.Report) iter.Seq2[*exchange.Session, error] {
	return func(yield func(*exchange.Session, error) bool) {
		v, why, err := readObject(l.path)
		switch {
		case err != nil:
			yield(nil, err)
			return
		case why != "":
			yield(nil, exchange.Unreadable(l.path, 0, -1, "%s", why))
			return
		}
		if h.has(ctx, l.database, l.id) {
			r.Dropped("session in an older form", "opencode.db beside it has the session too", 0)
			return
		}
		a := aboutOf(l.id, fields.Of(v))
		first := true
		yield(a.session(r.Unfinished(l.changed()), func(give func(*entry) error) error {
			report := r
			if !first {
				report = nil
			}
			first = false
			return l.each(ctx, report, give)
		}), nil)
	}
}

// each reads the messages in the order of their ids, which is that of their
// time. What is held is one message.
func (l layout) each(ctx context.Context, r *exchange.Report, give func(*entry) error) error {
	ids, err := names(l.messages)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		e := &entry{id: id}
		v, why, err := readObject(filepath.Join(l.messages, id+".json"))
		if err != nil {
			return err
		}
		e.info, e.bad = fields.Of(v), why
		r.Advance(int64(len(v)))
		dir := l.parts(id)
		parts, err := names(dir)
		if err != nil {
			return err
		}
		for _, part := range parts {
			v, why, err := readObject(filepath.Join(dir, part+".json"))
			if err != nil {
				return err
			}
			if why != "" {
				e.lost = append(e.lost, why)
				continue
			}
			r.Advance(int64(len(v)))
			e.parts = append(e.parts, fields.Of(v))
		}
		if err := give(e); err != nil {
			return err
		}
	}
	return nil
}

// changed is when the newest message of a session was written, or its folder.
func (l layout) changed() (t time.Time) {
	paths := []string{l.path, l.messages}
	if ids, err := names(l.messages); err == nil && len(ids) > 0 {
		last := ids[len(ids)-1]
		paths = append(paths, filepath.Join(l.messages, last+".json"), l.parts(last))
	}
	for _, p := range paths {
		if fi, err := os.Stat(p); err == nil && fi.ModTime().After(t) {
			t = fi.ModTime()
		}
	}
	return t
}

// weigh is the size of everything that belongs to a session, in bytes, and what
// tells its stamp: the same as long as no file came, went or changed.
func (l layout) weigh() (size int64, stamp func() (string, error)) {
	look := func() (size int64, stamp string, err error) {
		h := fnv.New64a()
		add := func(path string) error {
			fi, err := os.Stat(path)
			if err != nil {
				return err
			}
			size += fi.Size()
			fmt.Fprintf(h, "%s %d %d\n", filepath.Base(path), fi.Size(), fi.ModTime().UnixNano())
			return nil
		}
		if err := add(l.path); err != nil {
			return 0, "", err
		}
		ids, err := names(l.messages)
		if err != nil {
			return 0, "", err
		}
		for _, id := range ids {
			if err := add(filepath.Join(l.messages, id+".json")); err != nil {
				return 0, "", err
			}
			parts, err := names(l.parts(id))
			if err != nil {
				return 0, "", err
			}
			for _, part := range parts {
				if err := add(filepath.Join(l.parts(id), part+".json")); err != nil {
					return 0, "", err
				}
			}
		}
		return size, fmt.Sprintf("%d.%x", size, h.Sum64()), nil
	}
	size, first, err := look()
	return size, func() (string, error) {
		if err == nil && first != "" {
			s := first
			first = "" // what is asked for later is looked at again
			return s, nil
		}
		_, s, err := look()
		return s, err
	}
}

// fromExport yields the session of a file that opencode export made.
func fromExport(ctx context.Context, path string, r *exchange.Report) iter.Seq2[*exchange.Session, error] {
	return func(yield func(*exchange.Session, error) bool) {
		v, why, err := readObject(path)
		switch {
		case err != nil:
			yield(nil, err)
			return
		case why != "":
			yield(nil, exchange.Unreadable(path, 0, -1, "%s", why))
			return
		}
		o := fields.Of(v)
		info, messages := o.Of("info"), o.Get("messages")
		if jsonwire.Kind(messages) != '[' || info.Text("id") == "" {
			yield(nil, exchange.Unreadable(path, 0, -1, "it is no export of opencode: it has no info with an id, or no messages"))
			return
		}
		r.Advance(int64(len(v)))
		yield(aboutOf("", info).session(false, func(give func(*entry) error) error {
			for m := range fields.Elements(messages) {
				if err := context.Cause(ctx); err != nil {
					return err
				}
				m := fields.Of(m)
				e := &entry{info: m.Of("info")}
				e.id = e.info.Text("id")
				for p := range m.List("parts") {
					if o := fields.Of(p); o.IsObject() {
						e.parts = append(e.parts, o)
					} else {
						e.lost = append(e.lost, "it is no JSON object")
					}
				}
				if err := give(e); err != nil {
					return err
				}
			}
			return nil
		}), nil)
	}
}
