package exchange_test

import (
	"context"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/outcrop-dev/outcrop/exchange"
	"github.com/outcrop-dev/outcrop/exchange/codex"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/memory"
)

// run imports a folder with a state and says how many sources were read.
func run(t *testing.T, st store.Store, state, dir string) (read int, outcomes []exchange.Outcome) {
	t.Helper()
	s, err := exchange.OpenState(state)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	f := codex.Format()
	opened := f.Open
	f.Open = func(path string) exchange.Source {
		src := opened(path)
		sessions := src.Sessions
		src.Sessions = func(ctx context.Context, r *exchange.Report) iter.Seq2[*exchange.Session, error] {
			read++
			return sessions(ctx, r)
		}
		return src
	}
	im := &exchange.Importer{Store: st, State: s}
	for src, err := range exchange.Find(context.Background(), []exchange.Format{f}, dir, "") {
		if err != nil {
			t.Fatal(err)
		}
		r, err := im.Import(context.Background(), src)
		if err != nil || r.Err != nil {
			t.Fatal(err, r.Err)
		}
		outcomes = append(outcomes, r.Sessions...)
	}
	return read, outcomes
}

func TestWhatDidNotChangeIsNotReadAgain(t *testing.T) {
	dir, state := t.TempDir(), filepath.Join(t.TempDir(), "deep", "imports.jsonl")
	put(t, dir, rollout(rolloutLines))
	st := memory.New()
	if n, o := run(t, st, state, dir); n != 1 || len(o) != 1 || o[0].Verdict != exchange.Imported {
		t.Fatalf("%d read, %+v", n, o)
	}
	if n, o := run(t, st, state, dir); n != 0 || len(o) != 1 || o[0].Verdict != exchange.Present || o[0].ID != thread {
		t.Errorf("again: %d read, %+v", n, o)
	}
	// Without the file, or when it is damaged, everything is read and found.
	for name, damage := range map[string]string{"no file": "", "junk": "junk\n{\"store\":7}\n", "torn": `{"store":"memory:","format":"codex","path":"`} {
		if err := os.WriteFile(state, []byte(damage), 0o600); err != nil {
			t.Fatal(err)
		}
		if n, o := run(t, st, state, dir); n != 1 || o[0].Verdict != exchange.Present {
			t.Errorf("%s: %d read, %+v", name, n, o)
		}
	}
	// The state is no truth: a session that is gone is imported again.
	if n, o := run(t, memory.New(), state, dir); n != 1 || o[0].Verdict != exchange.Imported {
		t.Errorf("another store: %d read, %+v", n, o)
	}
	put(t, dir, rollout(rolloutLines)+"\n")
	if n, o := run(t, st, state, dir); n != 1 || o[0].Verdict != exchange.Present {
		t.Errorf("another length: %d read, %+v", n, o)
	}
}

func TestAnImportDoesNotEndForItsMemory(t *testing.T) {
	dir, in := t.TempDir(), t.TempDir()
	put(t, dir, rollout(rolloutLines))
	s, err := exchange.OpenState(filepath.Join(in, "imports.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(in, "imports.jsonl"), 0o700); err != nil { // it cannot be written
		t.Fatal(err)
	}
	im := &exchange.Importer{Store: memory.New(), State: s}
	for src, err := range exchange.Find(context.Background(), []exchange.Format{codex.Format()}, dir, "") {
		if err != nil {
			t.Fatal(err)
		}
		if r, err := im.Import(context.Background(), src); err != nil || r.Err != nil || r.Sessions[0].Verdict != exchange.Imported {
			t.Fatalf("%v %+v", err, r)
		}
	}
	if err := s.Close(); err == nil {
		t.Error("nobody says that it was not remembered")
	}
}

func TestAStateOfManyRunsIsWrittenAnew(t *testing.T) {
	state := filepath.Join(t.TempDir(), "imports.jsonl")
	line := `{"store":"s","format":"codex","path":"/a","stamp":"1","sessions":[{"id":"x","from":"y","title":"t","parent":"p"}]}` + "\n"
	if err := os.WriteFile(state, []byte(strings.Repeat(line, 200)), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := exchange.OpenState(state)
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	if b, err := os.ReadFile(state); err != nil || string(b) != line {
		t.Errorf("%v %q", err, b)
	}
}

func TestFilesOfNobodyArePassedOver(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a/notes.md": "x", "b/data.jsonl": "{\"a\":1}\n", "c/empty.jsonl": "",
		"d/rollout-x.jsonl": "torn", "e/session.jsonl": rollout(3),
	} {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(dir, "e"), filepath.Join(dir, "link")); err != nil {
		t.Logf("no links here: %v", err)
	} else {
		n := 0
		for src, err := range exchange.Find(context.Background(), []exchange.Format{codex.Format()}, filepath.Join(dir, "link"), "") {
			if n++; err != nil || filepath.Base(src.Path) != "session.jsonl" {
				t.Errorf("through a link: %s %v", src.Path, err)
			}
		}
		if n != 1 {
			t.Errorf("through a link: %d sources", n)
		}
	}
	find := func(path, from string) (found []string) {
		for src, err := range exchange.Find(context.Background(), []exchange.Format{codex.Format()}, filepath.Join(dir, path), from) {
			name, _ := filepath.Rel(dir, src.Path)
			if err != nil {
				name += " " + err.Error()[:7]
			}
			found = append(found, filepath.ToSlash(name))
		}
		return found
	}
	for _, c := range []struct{ path, from, want string }{
		{"", "", "d/rollout-x.jsonl e/session.jsonl"},
		{"e/session.jsonl", "", "e/session.jsonl"},
		{"a/notes.md", "", "a/notes.md import:"},
		{"a/notes.md", "codex", "a/notes.md"}, // a person says so
		{"gone", "", "gone import:"},
	} {
		if got := strings.Join(find(c.path, c.from), " "); strings.TrimSpace(got) != c.want {
			t.Errorf("%q --from %q: %q, want %q", c.path, c.from, got, c.want)
		}
	}
}
