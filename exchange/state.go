package exchange

import (
	"bufio"
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/outcrop-dev/outcrop/internal/jsonwire"
)

// State remembers which sources were imported, so that one that did not change
// need not be read again. It is no truth: what was imported shows when sessions
// are compared, and the file may be deleted.
//
// The file has one line of JSON a source, {store, path, format, stamp,
// sessions}, and later lines count. A line is written when a source is done, so
// that an import that was stopped goes on where it was.
type State struct {
	path    string
	mu      sync.Mutex               // guards what follows
	entries map[[3]string]remembered // store, format and path
	out     *os.File
	err     error // why nothing is written any more
}

type remembered struct {
	stamp    string
	sessions []Outcome // ID, Source, Title and Parent alone
}

// OpenState reads the state in a file, which need not exist. Lines that cannot
// be read are passed over; a file in which most are outdated is written anew.
func OpenState(path string) (*State, error) {
	s := &State{path: path, entries: map[[3]string]remembered{}}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines := 0
	for line, err := range Lines(bufio.NewReader(f), nil) {
		if err != nil {
			return nil, err
		}
		if jsonwire.Valid(line.Text) != nil {
			continue
		}
		lines++
		s.add(line.Text)
	}
	if lines > 2*len(s.entries)+100 {
		return s, s.rewrite()
	}
	return s, nil
}

func (s *State) add(line []byte) {
	text := func(name string) string {
		t, _ := jsonwire.Text(jsonwire.Get(line, name))
		return t
	}
	e := remembered{stamp: text("stamp")}
	for v := range jsonwire.Elements(jsonwire.Get(line, "sessions")) {
		o := Outcome{Verdict: Present}
		o.ID, _ = jsonwire.Text(jsonwire.Get(v, "id"))
		o.Source, _ = jsonwire.Text(jsonwire.Get(v, "from"))
		o.Title, _ = jsonwire.Text(jsonwire.Get(v, "title"))
		o.Parent, _ = jsonwire.Text(jsonwire.Get(v, "parent"))
		e.sessions = append(e.sessions, o)
	}
	s.entries[[3]string{text("store"), text("format"), text("path")}] = e
}

func (s *State) find(store string, src Source, stamp string) []Outcome {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.entries[[3]string{store, src.Format, src.Path}]
	if !ok || e.stamp != stamp || len(e.sessions) == 0 {
		return nil
	}
	return e.sessions
}

// remember writes down what was made of a source. That it could not is told by
// Close: an import does not end for it.
func (s *State) remember(store string, src Source, stamp string, sessions []Outcome) {
	if stamp == "" || len(sessions) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return
	}
	key := [3]string{store, src.Format, src.Path}
	e := remembered{stamp: stamp}
	for _, o := range sessions {
		e.sessions = append(e.sessions, Outcome{ID: o.ID, Source: o.Source, Title: o.Title, Parent: o.Parent, Verdict: Present})
	}
	s.entries[key] = e
	if s.out == nil {
		if s.err = os.MkdirAll(filepath.Dir(s.path), 0o700); s.err != nil {
			return
		}
		if s.out, s.err = os.OpenFile(s.path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600); s.err != nil {
			s.out = nil
			return
		}
	}
	_, s.err = s.out.Write(appendEntry(nil, key, e))
}

func appendEntry(dst []byte, key [3]string, e remembered) []byte {
	dst = jsonwire.AppendStringMember(append(dst, '{'), "store", key[0])
	dst = jsonwire.AppendStringMember(dst, "format", key[1])
	dst = jsonwire.AppendStringMember(dst, "path", key[2])
	dst = jsonwire.AppendStringMember(dst, "stamp", e.stamp)
	dst = append(jsonwire.AppendMember(dst, "sessions"), '[')
	for i, o := range e.sessions {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = jsonwire.AppendStringMember(append(dst, '{'), "id", o.ID)
		dst = jsonwire.AppendStringMember(dst, "from", o.Source)
		if o.Title != "" {
			dst = jsonwire.AppendStringMember(dst, "title", o.Title)
		}
		if o.Parent != "" {
			dst = jsonwire.AppendStringMember(dst, "parent", o.Parent)
		}
		dst = append(dst, '}')
	}
	return append(dst, "]}\n"...)
}

// rewrite leaves one line a source.
func (s *State) rewrite() error {
	var b bytes.Buffer
	for key, e := range s.entries {
		b.Write(appendEntry(nil, key, e))
	}
	f, err := os.CreateTemp(filepath.Dir(s.path), "imports-*.tmp")
	if err != nil {
		return err
	}
	_, err = f.Write(b.Bytes())
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), s.path)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}

// Close ends writing. The error is why something could not be remembered.
func (s *State) Close() error {
	if s == nil {
		return nil
	}
	err := s.err
	if s.out != nil {
		err = errors.Join(err, s.out.Close())
		s.out = nil
	}
	return err
}

// number is an integer member.
func number(obj []byte, name string) (int64, bool) {
	return jsonwire.Int(jsonwire.Get(obj, name))
}
