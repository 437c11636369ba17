package viewer_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/outcrop-dev/outcrop/store"
)

// pathOf is the file that holds a session's log.
func pathOf(t testing.TB, st store.Store, id string) string {
	t.Helper()
	sd, err := st.Read(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	defer sd.Close()
	return sd.Path()
}

// replaceFile puts a copy of from in the place of path.
func replaceFile(t testing.TB, path, from string) {
	t.Helper()
	b, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path+".new", b, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

func removeFile(t testing.TB, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

func removeFolder(t testing.TB, path string) {
	t.Helper()
	if err := os.RemoveAll(filepath.Dir(path)); err != nil {
		t.Fatal(err)
	}
}
