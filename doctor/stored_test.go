package doctor_test

import (
	"bytes"
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/doctor"
	"github.com/outcrop-dev/outcrop/internal/genlog"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/dshsqlite"
	"github.com/outcrop-dev/outcrop/store/dshsqlite/dshsqlitetest"
	"github.com/outcrop-dev/outcrop/store/jsonl"
	memorystore "github.com/outcrop-dev/outcrop/store/memory"
	"github.com/outcrop-dev/outcrop/store/sqlite"
	"github.com/outcrop-dev/outcrop/wire"
)

// A session that lies in no file is read through its store: the same events
// give the same findings, without places and without a verdict of dsh.
func TestVerifyReadsASessionThroughItsStore(t *testing.T) {
	file := requestLog(t, func(n int, d string) string {
		if n == 2 {
			return "v1:00"
		}
		return d
	})
	file = append(file, assistant(12, 9, `[{"type":"tool-call","id":"","name":"n","arguments":"{"}]`)+"\n"...)
	inFile, want := verify(t, memory(file, wire.Plain), doctor.Options{})
	db, err := sqlite.New(filepath.Join(t.TempDir(), "s.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	rd, err := wire.NewReader(bytes.NewReader(file), int64(len(file)), wire.Plain)
	if err != nil {
		t.Fatal(err)
	}
	for _, st := range []store.Store{db, memorystore.New()} {
		if err := st.Put(t.Context(), rd.Header(), rd.Records()); err != nil {
			t.Fatal(err)
		}
		target := doctor.Target{Name: "F", Open: func(ctx context.Context) (store.Stored, error) { return st.Read(ctx, "s1") }}
		found, sum := verify(t, target, doctor.Options{})
		for i := range inFile {
			inFile[i].Line, inFile[i].Offset, inFile[i].TextOffset = 0, -1, -1
		}
		for i := range found {
			found[i].Line, found[i].Offset, found[i].TextOffset = 0, -1, -1
		}
		if diff := cmp.Diff(inFile, found); diff != "" {
			t.Errorf("%s: findings (-file +store):\n%s", st.Address(), diff)
		}
		want.Encoding, want.DSH, want.DSHClass = "", "", ""
		if diff := cmp.Diff(want, sum); diff != "" {
			t.Errorf("%s: summary (-file +store):\n%s", st.Address(), diff)
		}
	}
}

// What keeps a root from opening a log is an error, though the log is good.
func TestVerifyFindsALogInAWrongPlace(t *testing.T) {
	cwd := "/home/x"
	h := outcrop.Header{ID: "s1", CreatedAt: 1, Cwd: &cwd}
	file := append(h.Line(), '\n')
	for _, c := range []struct {
		name, project, session, id string
		beside                     string
		want                       []string
	}{
		{"where it belongs", jsonl.ProjectKey(cwd), "s1", "s1", "session.lock", nil},
		{"in another session's folder", jsonl.ProjectKey(cwd), "s2", "s2", "", []string{"error IDENTITY_MISMATCH -1 1"}},
		{"in another project's folder", "--home-y--", "s1", "s1", "", []string{"error MISPLACED_LOG -1 1"}},
		{"beside a newer generation", jsonl.ProjectKey(cwd), "s1", "s1", "session.v5.jsonl.zstd", []string{"error NEWER_GENERATION -1 1"}},
		{"beside a later format", jsonl.ProjectKey(cwd), "s1", "s1", "session.v3.jsonl.zstd", []string{"error LATER_FORMAT -1 1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			found, sum := verify(t, memory(file, wire.Plain), doctor.Options{Place: &doctor.Place{
				Root: fileTree(c.project+"/"+c.session+"/session.jsonl", c.project+"/"+c.session+"/"+c.beside), Project: c.project, Session: c.session, ID: c.id}})
			if diff := cmp.Diff(c.want, codes(found)); diff != "" || sum.OK != (c.want == nil) {
				t.Errorf("ok %v (-want +got):\n%s", sum.OK, diff)
			}
		})
	}
}

func fileTree(names ...string) fstest.MapFS {
	m := fstest.MapFS{}
	for _, name := range names {
		if !strings.HasSuffix(name, "/") {
			m[name] = &fstest.MapFile{Data: []byte("x")}
		}
	}
	return m
}

// A torn tail of a log that lies in no file is found too; it has a seq and no
// offset.
func TestVerifyFindsTheTornTailOfASessionInItsStore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	events := slices.Collect(genlog.Events(1, 100))
	events = events[:len(events)-1] // the last turn is open
	if err := dshsqlitetest.Write(t.Context(), path, 17, dshsqlitetest.Session{Header: genlog.Header(1), Events: events}); err != nil {
		t.Fatal(err)
	}
	db, err := dshsqlitetest.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	last := events[len(events)-1].Seq
	if _, err := db.Exec("UPDATE events SET data = '{\"cut' WHERE seq = ?", int64(last)); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	st, err := dshsqlite.New(path, dshsqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	found, sum := verify(t, doctor.Target{Name: "F", Open: func(ctx context.Context) (store.Stored, error) { return st.Read(ctx, "gen-1") }}, doctor.Options{})
	var torn []doctor.Finding
	for _, f := range found {
		if f.Code == "TORN_TAIL" {
			torn = append(torn, f)
		}
	}
	if len(torn) != 1 || torn[0].Seq != last || torn[0].Offset != -1 || !strings.HasPrefix(torn[0].Message, "torn tail of 5 bytes: data is not JSON") {
		t.Errorf("%+v", torn)
	}
	if !sum.OK || sum.TruncatedAt != nil || !sum.OpenTurn {
		t.Errorf("%+v", sum)
	}
}
