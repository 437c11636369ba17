package faultfs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestARenameNeverTakesTheNameOfAnotherFile(t *testing.T) {
	for name, rename := range map[string]func(from, to string) error{"by the system": renameNew, "after a look": renameChecked} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			from, to := filepath.Join(dir, "from"), filepath.Join(dir, "to")
			must(t, os.WriteFile(from, []byte("new"), 0o600))
			must(t, os.WriteFile(to, []byte("old"), 0o600))
			if err := rename(from, to); !errors.Is(err, fs.ErrExist) {
				t.Fatalf("got %v", err)
			}
			if b, _ := os.ReadFile(to); string(b) != "old" {
				t.Fatal("the file was replaced")
			}
			must(t, os.Remove(to))
			must(t, rename(from, to))
			if b, _ := os.ReadFile(to); string(b) != "new" {
				t.Fatal("the file was not renamed")
			}
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
