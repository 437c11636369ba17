// Package moved is what a session becomes that a store without files hands over
// (store.Mover): a folder with one log file, session.jsonl.zstd.
package moved

import (
	"context"
	"errors"
	"io/fs"
	"iter"
	"os"
	"path/filepath"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/faultfs"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/jsonl"
)

const name = "session.jsonl.zstd"

func file(dir string) (*jsonl.FileStore, error) {
	return jsonl.File(filepath.Join(dir, name), jsonl.Options{})
}

// Write makes the folder dir, which must not exist and whose parent does, of a
// log, compares it with what was given, and returns when it is durable. Before
// that there is no dir; what an earlier call left half done is removed.
func Write(ctx context.Context, dir string, h outcrop.Header, recs iter.Seq2[outcrop.Record, error]) error {
	part := dir + ".part"
	if err := os.RemoveAll(part); err != nil {
		return err
	}
	if err := os.Mkdir(part, 0o700); err != nil {
		return err
	}
	to, err := file(part)
	if err != nil {
		return err
	}
	if err := to.Put(ctx, h, recs); err != nil {
		return store.Problem("move", h.ID, err, "", "")
	}
	if err := os.Remove(filepath.Join(part, name+".lock")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Rename(part, dir); err != nil {
		return err
	}
	return faultfs.Real.SyncDir(filepath.Dir(dir))
}

// TakeBack is store.Mover's for a folder that Write made.
func TakeBack(ctx context.Context, st store.Store, id, dir string) error {
	there, err := Holds(ctx, st, id, dir)
	if err != nil || there {
		return err
	}
	from, err := file(dir)
	if err != nil {
		return err
	}
	return store.Copy(ctx, st, from, id)
}

// Holds is store.Mover's for a folder that Write made.
func Holds(ctx context.Context, st store.Store, id, dir string) (bool, error) {
	here, err := st.Read(ctx, id)
	if errors.Is(err, outcrop.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer here.Close()
	from, err := file(dir)
	if err != nil {
		return false, err
	}
	there, err := from.Read(ctx, id)
	if err != nil {
		return false, err
	}
	defer there.Close()
	var want, got store.Digest
	for r, err := range there.Records() {
		if err != nil {
			return false, err
		}
		want.Add(r)
	}
	for r, err := range here.Records() {
		if err != nil || got.Len() >= want.Len() {
			break
		}
		got.Add(r)
	}
	return got.Len() == want.Len() && got.Sum() == want.Sum(), nil
}
