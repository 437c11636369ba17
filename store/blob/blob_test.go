package blob_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/store/blob"
)

func write(t *testing.T, dir, hash string, b []byte) {
	t.Helper()
	p := filepath.Join(dir, "objects", hash[:2], hash)
	if err := os.MkdirAll(filepath.Dir(p), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestGet(t *testing.T) {
	home := t.TempDir()
	dir := filepath.Join(home, "attachments", "v1")
	content := []byte("\x89PNG bytes")
	good, changed := blob.ID(content), blob.ID([]byte("other"))
	write(t, dir, good[7:], content)
	write(t, dir, changed[7:], content)
	folder := blob.ID([]byte("folder"))
	if err := os.MkdirAll(filepath.Join(dir, "objects", folder[7:9], folder[7:]), 0o700); err != nil {
		t.Fatal(err)
	}
	s := blob.Beside(filepath.Join(home, "sessions") + string(filepath.Separator))
	for _, c := range []struct {
		name, id string
		want     error
	}{
		{"an object is given back", good, nil},
		{"a missing object is not found", blob.ID([]byte("missing")), outcrop.ErrNotFound},
		{"bytes that do not fit the id are damaged", changed, outcrop.ErrDamaged},
		{"a folder is no object", folder, outcrop.ErrDamaged},
		{"an upper-case digest is no id", "sha256:" + "AB" + good[9:], outcrop.ErrRefused},
		{"a path is no id", "sha256:../../../../etc/passwd", outcrop.ErrRefused},
		{"a short digest is no id", good[:20], outcrop.ErrRefused},
		{"an empty text is no id", "", outcrop.ErrRefused},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, err := s.Get(context.Background(), c.id)
			if !errors.Is(err, c.want) || c.want == nil && (err != nil || string(b) != string(content)) {
				t.Fatalf("got %q, %v; want error %v", b, err, c.want)
			}
		})
	}
}
