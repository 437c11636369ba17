package jsonl_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/jsonl"
)

// A last event that has no time: a listing of any depth takes the file's.
func TestListTakesTheTimeOfTheFileForAnEventWithoutOne(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "--home-dev--", "s0")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	log := `{"type":"session","version":0,"id":"s0","createdAt":1000,"cwd":"/home/dev","delegationDepth":0}` + "\n" +
		`{"type":"turn/start","seq":0,"time":0,"data":{"turn":1}}` + "\n"
	path := filepath.Join(dir, "session.jsonl")
	if err := os.WriteFile(path, []byte(log), 0o644); err != nil {
		t.Fatal(err)
	}
	fi, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	st, err := jsonl.New(root, jsonl.Options{Plain: true})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	for _, full := range []bool{false, true} {
		list, err := st.List(context.Background(), store.ListOptions{Full: full})
		if err != nil {
			t.Fatal(err)
		}
		if len(list) != 1 || list[0].Events != 1 || list[0].UpdatedAt != fi.ModTime().UnixMilli() {
			t.Errorf("full %v: %+v, want one event and the file's time %d", full, list, fi.ModTime().UnixMilli())
		}
	}
}
