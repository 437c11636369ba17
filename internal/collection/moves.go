package collection

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/faultfs"
	"github.com/outcrop-dev/outcrop/store"
)

// Take puts a session on the shelf, with copies of the attachments that it
// names and the whole outputs of its tools. held is its lock, which stays the
// caller's.
func (m *Moves) Take(ctx context.Context, st store.Store, held store.Held, e Entry) (Item, error) {
	name, err := m.newName(e.ID)
	if err != nil {
		return Item{}, m.problem(m.dir, err)
	}
	i := Item{Name: name, ID: e.ID, Store: st.Address(), Place: held.Place(), Title: e.Title, Cwd: e.Cwd, CreatedAt: e.CreatedAt,
		UpdatedAt: e.UpdatedAt, Events: e.Events, Turns: e.Turns, Bytes: e.Bytes, Parent: e.Parent(), Starred: e.Starred(),
		At: m.now(), Stage: coming}
	if e.Header.SeedLength != nil {
		i.Seed = *e.Header.SeedLength
	}
	if err := errors.Join(m.write(i), m.disk.SyncDir(m.dir)); err != nil {
		return i, errors.Join(m.problem(m.path(name), err), m.removeTree(m.path(name)))
	}
	if err := m.keepObjects(ctx, st, i, e.Objects); err != nil {
		return i, errors.Join(err, m.removeTree(m.path(name)))
	}
	if err := held.HandOver(ctx, m.Log(i)); err != nil {
		// How far it came is for the next one to find out.
		return i, err
	}
	return i, m.arrive(&i)
}

// keepObjects copies attachments into the entry. What the store does not have
// was missing before.
func (m *Moves) keepObjects(ctx context.Context, st store.Store, i Item, ids []string) error {
	from := store.ObjectsOf(st)
	if from == nil {
		return nil
	}
	for _, id := range ids {
		b, err := from.Get(ctx, id)
		switch {
		case errors.Is(err, outcrop.ErrNotFound), errors.Is(err, outcrop.ErrDamaged), errors.Is(err, outcrop.ErrRefused):
			continue
		case err != nil:
			return err
		}
		if _, err := m.objects(i).Put(ctx, b); err != nil {
			return err
		}
	}
	return nil
}

// arrive ends a coming: the session is on the shelf and nowhere else.
func (m *Moves) arrive(i *Item) error {
	if err := m.moveFiles(m.spill(i.ID), m.path(i.Name, spillPart)); err != nil {
		return m.problem(m.spill(i.ID), err)
	}
	i.Stage = here
	if err := m.write(*i); err != nil {
		return m.problem(m.path(i.Name), err)
	}
	return nil
}

// PutBack returns an item to the store that it came from.
func (m *Moves) PutBack(ctx context.Context, st store.Store, i Item) error {
	mover, ok := st.(store.Mover)
	if !ok {
		return CannotMove(st)
	}
	i.Stage = going
	if err := m.write(i); err != nil {
		return m.problem(m.path(i.Name), err)
	}
	err := m.returnObjects(ctx, st, i)
	if err == nil {
		err = mover.TakeBack(ctx, i.ID, i.Place, m.Log(i))
	}
	if err != nil {
		// As far as anybody knows it lies here as before.
		if there, herr := mover.Holds(ctx, i.ID, i.Place, m.Log(i)); herr == nil && !there {
			i.Stage = here
			err = errors.Join(err, m.write(i))
		}
		return err
	}
	return m.depart(i)
}

func (m *Moves) returnObjects(ctx context.Context, st store.Store, i Item) error {
	to := store.ObjectsOf(st)
	from := m.objects(i)
	for o, err := range from.All(ctx) {
		if err != nil {
			return err
		}
		if to == nil {
			return fmt.Errorf("%s keeps no attachments: %w", st.Address(), outcrop.ErrUnsupported)
		}
		b, err := from.Get(ctx, o.ID)
		if err != nil {
			return err
		}
		if _, err := to.Put(ctx, b); err != nil {
			return err
		}
	}
	return nil
}

// depart ends a going: the session is in the store.
func (m *Moves) depart(i Item) error {
	i.Stage = gone
	if err := m.write(i); err != nil {
		return m.problem(m.path(i.Name), err)
	}
	if err := m.removeTree(m.Log(i)); err != nil {
		return m.problem(m.Log(i), err)
	}
	if err := m.moveFiles(m.path(i.Name, spillPart), m.spill(i.ID)); err != nil {
		return m.problem(m.path(i.Name), err)
	}
	return m.discard(i)
}

// Purge removes an item for good. That its bytes are overwritten is not
// promised.
func (m *Moves) Purge(i Item) error {
	i.Stage = leaving
	if err := m.write(i); err != nil {
		return m.problem(m.path(i.Name), err)
	}
	return m.discard(i)
}

// discard removes an entry, its manifest last.
func (m *Moves) discard(i Item) error {
	for _, part := range [...]string{sessionPart, sessionPart + ".part", objectsPart, spillPart} {
		if err := m.removeTree(m.path(i.Name, part)); err != nil {
			return m.problem(m.path(i.Name, part), err)
		}
	}
	if err := m.disk.SyncDir(m.path(i.Name)); err != nil {
		return m.problem(m.path(i.Name), err)
	}
	if err := m.removeTree(m.path(i.Name)); err != nil {
		return m.problem(m.path(i.Name), err)
	}
	return m.disk.SyncDir(m.dir)
}

// Receive moves an item from another shelf, where it comes to lie as if it was
// put here now. It is one rename.
func (m *Moves) Receive(from *Moves, i Item) (Item, error) {
	name, err := m.newName(i.ID)
	if err == nil {
		err = m.disk.Remove(m.path(name)) // the name is free: rename takes no folder's place
	}
	if err == nil {
		err = m.disk.Rename(from.path(i.Name), m.path(name))
	}
	if err == nil {
		err = errors.Join(m.disk.SyncDir(m.dir), from.disk.SyncDir(from.dir))
	}
	if err != nil {
		return i, m.problem(from.path(i.Name), err)
	}
	i.Name, i.At = name, m.now()
	if err := m.write(i); err != nil {
		return i, m.problem(m.path(name), err)
	}
	return i, nil
}

// recover finishes or takes back what interrupted moves left.
func (m *Moves) recover(ctx context.Context, open func(string) (store.Store, error)) error {
	entries, err := m.disk.ReadDir(m.dir)
	if err != nil {
		return m.problem(m.dir, err)
	}
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		if err := m.settle(ctx, e.Name(), open); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			m.Left = append(m.Left, fmt.Errorf("%s was left half moved: %w", m.path(e.Name()), err))
		}
	}
	return nil
}

func (m *Moves) settle(ctx context.Context, name string, open func(string) (store.Store, error)) error {
	arrived := true
	if _, err := m.disk.Lstat(m.path(name, sessionPart)); errors.Is(err, fs.ErrNotExist) {
		arrived = false
	} else if err != nil {
		return err
	}
	i, err := m.read(name)
	if err != nil {
		if !arrived && errors.Is(err, fs.ErrNotExist) { // it had just begun, or nearly ended
			return m.removeTree(m.path(name))
		}
		return err
	}
	switch {
	case i.Stage == here:
		return nil
	case i.Stage == leaving, i.Stage == coming && !arrived:
		return m.discard(i)
	case i.Stage == gone:
		return m.depart(i)
	}
	st, err := open(i.Store)
	if err != nil {
		return err
	}
	defer st.Close()
	mover, ok := st.(store.Mover)
	if !ok {
		return CannotMove(st)
	}
	there, err := mover.Holds(ctx, i.ID, i.Place, m.Log(i))
	switch {
	case err != nil:
		return err
	case i.Stage == coming && there:
		return m.Purge(i)
	case i.Stage == coming:
		return m.arrive(&i)
	case there:
		return m.depart(i)
	}
	i.Stage = here
	return m.write(i)
}

// CannotMove is the error for a store that hands no session over.
func CannotMove(st store.Store) error {
	if what, only := store.OnlyRead(st); only {
		return &outcrop.Error{Op: "move", Path: st.Address(), Seq: -1, Offset: -1, Err: outcrop.ErrReadOnly, Msg: "this is " + what + ", which is only read"}
	}
	return &outcrop.Error{Op: "move", Path: st.Address(), Seq: -1, Offset: -1, Err: outcrop.ErrUnsupported,
		Msg: "sessions of this store cannot be moved", Hint: "a log file outside a store is removed like any other file"}
}

// moveFiles moves a folder of files, which need not be there; what an earlier
// attempt moved is there already. The folder holds what can be missed, so that
// it is not compared.
func (s *Shelf) moveFiles(from, to string) error {
	entries, err := s.disk.ReadDir(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	made, err := faultfs.MakeFolders(s.disk, to)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !e.Type().IsRegular() || strings.HasSuffix(e.Name(), partial) {
			continue
		}
		err := s.disk.Link(filepath.Join(from, e.Name()), filepath.Join(to, e.Name()))
		if err != nil && !errors.Is(err, fs.ErrExist) {
			err = s.copyFile(filepath.Join(from, e.Name()), filepath.Join(to, e.Name()))
		}
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	for _, d := range append([]string{to, filepath.Join(to, "x")}, made...) {
		if err := s.disk.SyncDir(filepath.Dir(d)); err != nil {
			return err
		}
	}
	return s.removeTree(from)
}

// partial ends the name of a copy that is being made.
const partial = ".part"

func (s *Shelf) copyFile(from, name string) error {
	to := name + partial
	if err := s.removeTree(to); err != nil {
		return err
	}
	in, err := faultfs.Open(s.disk, from)
	if err != nil {
		return err
	}
	defer in.Close()
	fi, err := in.Stat()
	if err != nil {
		return err
	}
	out, err := s.disk.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, io.NewSectionReader(in, 0, fi.Size()))
	if err == nil {
		err = out.Sync()
	}
	if err = errors.Join(err, out.Close()); err != nil {
		return errors.Join(err, s.disk.Remove(to))
	}
	return s.disk.RenameNew(to, name)
}

// removeTree removes a file or a folder with what is in it, which need not be
// there. Links are removed and not followed.
func (s *Shelf) removeTree(path string) error {
	fi, err := s.disk.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if fi.IsDir() {
		entries, err := s.disk.ReadDir(path)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if err := s.removeTree(filepath.Join(path, e.Name())); err != nil {
				return err
			}
		}
	}
	if err := s.disk.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
