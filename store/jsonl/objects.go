package jsonl

import (
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/blob"
)

var (
	_ store.Attachments = (*Store)(nil)
	_ store.Attachments = (*FileStore)(nil)
)

// Objects are the attachments of the root, in the folder attachments/v1 beside
// it.
func (s *Store) Objects() store.Objects { return s.objects }

// Objects are the attachments of a log file: those of its root when it lies
// where a root has it, else those in the folder FILE.attachments beside it.
func (s *FileStore) Objects() store.Objects {
	if in, err := openLog(s.disk, s.path, s.enc); err == nil {
		_, root := s.lockFor(in.Header())
		in.Close()
		if root != "" {
			return blob.BesideOn(s.disk, root)
		}
	}
	return blob.OpenOn(s.disk, s.real()+".attachments")
}
