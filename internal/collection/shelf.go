package collection

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/faultfs"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/blob"
	"github.com/outcrop-dev/outcrop/store/jsonl"
)

// Shelf is the trash or the archive. Sessions of all stores lie on it.
type Shelf struct {
	dir   string
	name  string
	disk  faultfs.FS
	now   func() int64
	spill func(id string) string
}

// stage is how far a move is; it is written before the step that it names.
type stage string

const (
	coming  stage = "coming"  // from the store
	here    stage = "here"    // nothing is under way
	going   stage = "going"   // back to the store
	gone    stage = "gone"    // in the store; what lies here is cleared away
	leaving stage = "leaving" // for good
)

// Item is a session on a shelf.
type Item struct {
	Name      string `json:"-"` // of the entry's folder
	ID        string `json:"id"`
	Store     string `json:"store"` // address
	Place     string `json:"place"`
	Title     string `json:"title,omitzero"`
	Cwd       string `json:"cwd,omitzero"`
	CreatedAt int64  `json:"createdAt"`
	UpdatedAt int64  `json:"updatedAt"`
	Events    int64  `json:"events"`
	Turns     int    `json:"turns"`
	Bytes     int64  `json:"bytes"` // of the log
	Parent    string `json:"parent,omitzero"`
	Seed      int64  `json:"seed,omitzero"` // events that it took over from Parent
	Starred   bool   `json:"starred,omitzero"`
	At        int64  `json:"at"` // when it was put here, Unix milliseconds
	Stage     stage  `json:"stage"`
}

// Unfinished reports that a move of the item was interrupted.
func (i *Item) Unfinished() bool { return i.Stage != here }

const (
	manifest    = "entry.json"
	sessionPart = "session"
	objectsPart = "objects"
	spillPart   = "spill"
)

func (s *Shelf) path(name string, parts ...string) string {
	return filepath.Join(append([]string{s.dir, name}, parts...)...)
}

// Log is the folder of an item's session.
func (s *Shelf) Log(i Item) string { return s.path(i.Name, sessionPart) }

// Dir is the folder of the shelf.
func (s *Shelf) Dir() string { return s.dir }

// List lists what lies on the shelf, the latest first. What cannot be read is
// passed over: it is no session that can be restored by its name.
func (s *Shelf) List() ([]Item, error) {
	entries, err := s.disk.ReadDir(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []Item
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		if i, err := s.read(e.Name()); err == nil {
			out = append(out, i)
		}
	}
	slices.SortFunc(out, func(a, b Item) int { return cmp.Or(cmp.Compare(b.At, a.At), strings.Compare(b.Name, a.Name)) })
	return out, nil
}

// Find is the latest item with an id, or with the only id that begins so.
func (s *Shelf) Find(id string) (Item, error) {
	items, err := s.List()
	if err != nil {
		return Item{}, err
	}
	var fits []string
	var found Item
	for _, i := range items {
		if i.ID == id {
			return i, nil
		}
		if strings.HasPrefix(i.ID, id) && !slices.Contains(fits, i.ID) {
			if fits = append(fits, i.ID); len(fits) == 1 {
				found = i
			}
		}
	}
	e := &outcrop.Error{Op: "find", Session: id, Seq: -1, Offset: -1, Err: outcrop.ErrNotFound,
		Msg: fmt.Sprintf("no session %q in the %s", id, s.name)}
	switch {
	case len(fits) == 1:
		return found, nil
	case len(fits) > 1:
		e.Err, e.Msg, e.Hint = store.ErrAmbiguous, fmt.Sprintf("%q is the start of %s", id, strings.Join(fits[:min(4, len(fits))], ", ")), "give more of the id"
	}
	return Item{}, e
}

func (s *Shelf) read(name string) (Item, error) {
	b, err := faultfs.ReadFile(s.disk, s.path(name, manifest))
	if err != nil {
		return Item{}, err
	}
	var i Item
	if err := jsonwire.Unmarshal(b, &i); err != nil {
		return Item{}, err
	}
	if i.ID == "" {
		return Item{}, fmt.Errorf("%s: %w: it names no session", s.path(name, manifest), outcrop.ErrDamaged)
	}
	i.Name = name
	return i, nil
}

// write writes the manifest, durably: all of it or the one before.
func (s *Shelf) write(i Item) error {
	b, err := jsonwire.Marshal(i)
	if err != nil {
		return err
	}
	path := s.path(i.Name, manifest)
	temp := path + ".tmp"
	if err := s.disk.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := s.disk.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	n, err := f.Write(append(b, '\n'))
	if err == nil && n <= len(b) {
		err = fmt.Errorf("%d of %d bytes written", n, len(b)+1)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := s.disk.Rename(temp, path); err != nil {
		return err
	}
	return s.disk.SyncDir(filepath.Dir(path))
}

// Lock takes the shelf for moves, and finishes or takes back what an earlier
// one left; open opens stores by their addresses. ErrLocked when somebody else
// moves sessions now.
func (s *Shelf) Lock(ctx context.Context, open func(address string) (store.Store, error)) (*Moves, error) {
	made, err := faultfs.MakeFolders(s.disk, s.dir)
	if err != nil {
		return nil, s.problem(s.dir, err)
	}
	for _, d := range made {
		if err := s.disk.SyncDir(filepath.Dir(d)); err != nil {
			return nil, s.problem(d, err)
		}
	}
	lock, err := s.disk.Lock(filepath.Join(s.dir, "lock"), os.O_CREATE|os.O_RDWR, false)
	if errors.Is(err, faultfs.ErrHeld) {
		return nil, &outcrop.Error{Op: s.name, Path: s.dir, Seq: -1, Offset: -1, Err: store.ErrLocked,
			Msg: "another program moves sessions now", Hint: "try again when it is done"}
	}
	if err != nil {
		return nil, s.problem(s.dir, err)
	}
	m := &Moves{Shelf: s, lock: lock}
	if err := m.recover(ctx, open); err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return m, nil
}

// Moves is the right to move sessions to and from a shelf.
type Moves struct {
	*Shelf
	lock faultfs.Lock
	// Left are entries that could not be finished, with the reason.
	Left []error
}

// Close gives the right back.
func (m *Moves) Close() error { return m.lock.Close() }

func (s *Shelf) problem(path string, err error) error {
	return &outcrop.Error{Op: s.name, Path: path, Seq: -1, Offset: -1, Err: err, Msg: cause(err)}
}

func cause(err error) string {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err.Error()
	}
	return err.Error()
}

// newName makes the folder of an entry.
func (s *Shelf) newName(id string) (string, error) {
	stem := strconv.FormatInt(s.now(), 10) + "-" + jsonl.EncodeSegment(id)
	stem = stem[:min(len(stem), 200)]
	for n := 1; n < 10_000; n++ {
		name := stem
		if n > 1 {
			name += "-" + strconv.Itoa(n)
		}
		err := s.disk.Mkdir(s.path(name), 0o700)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		return name, err
	}
	return "", fmt.Errorf("%s: %w", s.path(stem), fs.ErrExist)
}

func (s *Shelf) objects(i Item) *blob.Store { return blob.OpenOn(s.disk, s.path(i.Name, objectsPart)) }
