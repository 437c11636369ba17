package dsh_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/exchange"
	"github.com/outcrop-dev/outcrop/exchange/dsh"
	"github.com/outcrop-dev/outcrop/exchange/exchangetest"
	"github.com/outcrop-dev/outcrop/internal/conformance"
	"github.com/outcrop-dev/outcrop/internal/genlog"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/blob"
	"github.com/outcrop-dev/outcrop/store/dshsqlite/dshsqlitetest"
	"github.com/outcrop-dev/outcrop/store/jsonl"
	"github.com/outcrop-dev/outcrop/store/memory"
	"github.com/outcrop-dev/outcrop/wire"
)

func write(t testing.TB, path string, b []byte) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, b, 0o600)); err != nil {
		t.Fatal(err)
	}
}

// importAll imports what is at a path into a store in memory.
func importAll(t testing.TB, path string) (*memory.Store, []*exchange.Report) {
	t.Helper()
	st := memory.New()
	im := &exchange.Importer{Store: st}
	var reports []*exchange.Report
	for src, err := range exchange.Find(t.Context(), []exchange.Format{dsh.Format()}, path, "") {
		if err != nil {
			t.Fatal(err)
		}
		r, err := im.Import(t.Context(), src)
		if err != nil {
			t.Fatal(err)
		}
		reports = append(reports, r)
	}
	return st, reports
}

func digest(t testing.TB, st store.Store, id string) string {
	t.Helper()
	s, _, err := store.Inspect(t.Context(), st, id, outcrop.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return outcrop.LogDigest(s.Log()) + string(s.Header().Line())
}

// TestARealHomeIsTakenOver imports the logs of a real dsh, event for event, with
// those that are damaged named.
func TestARealHomeIsTakenOver(t *testing.T) {
	home := t.TempDir()
	cases, err := os.ReadDir(filepath.Join(conformance.Dir(), "corpus"))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	files := map[string]int{} // with a session of this id: a later one may go on with it
	for _, c := range cases {
		logs, _ := filepath.Glob(filepath.Join(conformance.Dir(), "corpus", c.Name(), "sessions", "*", "*", "session.jsonl*"))
		for i, file := range logs {
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			// A folder each: some have the same name on purpose.
			write(t, filepath.Join(home, "sessions", c.Name(), fmt.Sprint(i), filepath.Base(file)), b)
			st, err := jsonl.File(file, jsonl.Options{})
			if err != nil {
				t.Fatal(err)
			}
			s, _, err := store.Inspect(t.Context(), st, "", outcrop.Options{})
			if err == nil {
				want[s.ID()] = outcrop.LogDigest(s.Log()) + string(s.Header().Line())
				files[s.ID()]++
			}
		}
	}
	st, reports := importAll(t, home)
	skipped, imported := 0, 0
	for _, r := range reports {
		if r.Err != nil {
			skipped++
			if !strings.Contains(r.Err.Error(), home) {
				t.Errorf("the place is not named: %v", r.Err)
			}
			continue
		}
		for _, o := range r.Sessions {
			imported++
			if files[o.ID] == 1 && digest(t, st, o.ID) != want[o.ID] {
				t.Errorf("%s: %s is another session than its file", r.Path, o.ID)
			}
		}
	}
	if skipped == 0 || imported < 20 || imported+skipped != len(reports) {
		t.Errorf("%d imported, %d skipped, of %d", imported, skipped, len(reports))
	}
}

func TestADatabaseIsTakenOverAndABadSessionDoesNotHideTheOthers(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "sessions.db")
	var all []dshsqlitetest.Session
	for seed := range uint64(5) {
		all = append(all, dshsqlitetest.Session{Header: genlog.Header(seed), Events: slices.Collect(genlog.Events(seed, 200)), Batch: 50})
	}
	if err := dshsqlitetest.Write(t.Context(), path, 17, all...); err != nil {
		t.Fatal(err)
	}
	db, err := dshsqlitetest.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	_, err = db.Exec("UPDATE events SET data = '{' WHERE session_id = 'gen-2' AND seq = 3; UPDATE sessions SET created_at = -1 WHERE id = 'gen-3'; DELETE FROM events WHERE session_id = 'gen-4' AND seq > (SELECT max(seq) FROM events WHERE session_id = 'gen-4') - 2; UPDATE events SET data = 'x' WHERE session_id = 'gen-4' AND seq = (SELECT max(seq) FROM events WHERE session_id = 'gen-4')")
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	st, reports := importAll(t, dir)
	if len(reports) != 1 || reports[0].Err == nil || !errors.Is(reports[0].Err, outcrop.ErrDamaged) {
		t.Fatalf("%d reports, %v", len(reports), reports[0].Err)
	}
	got := map[string]exchange.Verdict{}
	for _, o := range reports[0].Sessions {
		got[o.ID] = o.Verdict
		if (o.Err != nil) != (o.Verdict == exchange.Failed) {
			t.Errorf("%+v", o)
		}
	}
	if fmt.Sprint(got) != "map[gen-0:imported gen-1:imported gen-2:failed gen-4:imported]" {
		t.Errorf("%v", got)
	}
	notes := exchangetest.Notes(reports[0])
	for _, want := range []string{"session: ", "created_at that is out of contract", "tail: it is torn, and no turn ends in it"} {
		if !strings.Contains(notes, want) {
			t.Errorf("the report lacks %q:\n%s", want, notes)
		}
	}
	exchangetest.Session(t, st, "gen-1")
	if after, err := os.ReadFile(path); err != nil || !bytes.Equal(before, after) {
		t.Error("the database was changed")
	}
}

// TestTheHighestFormatOfAFolderIsTheSession: the older file beside it is none.
func TestTheHighestFormatOfAFolderIsTheSession(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "p", "s")
	h := genlog.Header(7)
	s, err := outcrop.Restore(h, func(yield func(outcrop.Record, error) bool) {
		for r := range genlog.Records(7, 100) {
			if !yield(r, nil) {
				return
			}
		}
	}, outcrop.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var later bytes.Buffer
	if _, err := wire.WriteFormat3(&later, wire.Zstd, h, s.Log()); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, jsonl.FileName(3, wire.Zstd)), later.Bytes())
	e := wire.NewEncoder(wire.Plain)
	write(t, filepath.Join(dir, "session.jsonl"), e.Header(nil, h))
	write(t, filepath.Join(dir, "session.lock"), nil)
	st, reports := importAll(t, dir)
	if len(reports) != 1 || reports[0].Err != nil || filepath.Base(reports[0].Path) != "session.v3.jsonl.zstd" {
		t.Fatalf("%+v", reports)
	}
	id := reports[0].Sessions[0].ID
	got := exchangetest.Session(t, st, id)
	if got.Header().Version != 0 || len(got.Messages()) != len(s.Messages()) {
		t.Errorf("%s has %d messages, want %d", got.Header().Line(), len(got.Messages()), len(s.Messages()))
	}
	// The same again finds it.
	im := &exchange.Importer{Store: st}
	r, err := im.Import(t.Context(), dsh.Open(reports[0].Path))
	if err != nil || r.Sessions[0].Verdict != exchange.Present {
		t.Errorf("%+v, %v", r.Sessions, err)
	}
}

// TestABackupThatIsNamedIsTakenOver whatever its name; in a folder it is passed
// over.
func TestABackupThatIsNamedIsTakenOver(t *testing.T) {
	root := filepath.Join(t.TempDir(), "sessions")
	h := genlog.Header(7)
	dir := filepath.Join(root, jsonl.ProjectKey(*h.Cwd), jsonl.EncodeSegment(h.ID))
	object, err := blob.Beside(root).Put(t.Context(), []byte("a picture"))
	if err != nil {
		t.Fatal(err)
	}
	for name, enc := range map[string]wire.Encoding{"session.jsonl.bak": wire.Plain, "log": wire.Plain, "session.jsonl.zstd.bak": wire.Zstd, "old.zst": wire.Zstd} {
		e := wire.NewEncoder(enc)
		text := e.Header(nil, h)
		text, err := e.Batch(text, genlog.Records(7, 100))
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, name), text)
		st, reports := importAll(t, filepath.Join(dir, name))
		if len(reports) != 1 || reports[0].Err != nil || len(reports[0].Sessions) != 1 || reports[0].Sessions[0].ID != h.ID {
			t.Fatalf("%s: %+v", name, reports)
		}
		exchangetest.Session(t, st, h.ID)
		for s, err := range dsh.Sessions(t.Context(), filepath.Join(dir, name), nil) {
			if err != nil {
				t.Fatal(err)
			}
			if b, err := s.Log.Objects.Get(t.Context(), object); err != nil || string(b) != "a picture" {
				t.Errorf("%s: the attachment is %q, %v", name, b, err)
			}
		}
	}
	if _, reports := importAll(t, root); len(reports) != 0 {
		t.Errorf("in a folder: %+v", reports)
	}
}

func TestOtherFilesAreNotClaimed(t *testing.T) {
	for name, text := range map[string]string{
		"a.jsonl": `{"type":"session"}`, "b.jsonl": `{"type":"session_meta","version":0}`, "c.json": `{"type":"session","version":0}`, "d.jsonl": "", "e.jsonl.zstd": "\x28\xb5\x2f\xfd", "f.jsonl": "nothing",
	} {
		path := filepath.Join(t.TempDir(), name)
		write(t, path, []byte(text))
		if dsh.Claims(path, []byte(text)) {
			t.Errorf("%s %q is claimed", name, text)
		}
	}
	path := filepath.Join(t.TempDir(), "a.jsonl")
	line := append(genlog.Header(1).Line(), '\n')
	write(t, path, line)
	if !dsh.Claims(path, line) {
		t.Error("a log is not claimed")
	}
}

func ExampleSessions() {
	dir, err := os.MkdirTemp("", "dsh")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "session.jsonl")
	text := `{"type":"session","version":0,"id":"example","createdAt":1760000000000,"delegationDepth":0}
{"type":"turn/start","seq":0,"time":1760000000001,"data":{"turn":1}}
{"type":"turn/end","seq":1,"time":1760000000002,"data":{"turn":1,"reason":{"kind":"completed"}}}
`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	for s, err := range dsh.Sessions(ctx, path, nil) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(s.ID())
		for r, err := range s.Log.Records(ctx) {
			if err != nil {
				fmt.Println(err)
				return
			}
			fmt.Println(r.Seq, r.Type)
		}
	}
	// Output:
	// example
	// 0 turn/start
	// 1 turn/end
}
