package dshsqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/conformance"
	"github.com/outcrop-dev/outcrop/internal/genlog"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/blob"
	"github.com/outcrop-dev/outcrop/store/dshsqlite"
	"github.com/outcrop-dev/outcrop/store/dshsqlite/dshsqlitetest"
	"github.com/outcrop-dev/outcrop/store/jsonl"
	"github.com/outcrop-dev/outcrop/store/memory"
)

var bg = context.Background()

// write makes a file of sessions.
func write(t testing.TB, schema int64, sessions ...dshsqlitetest.Session) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "sessions.db")
	if err := dshsqlitetest.Write(bg, path, schema, sessions...); err != nil {
		t.Fatal(err)
	}
	return path
}

func open(t testing.TB, path string) *dshsqlite.Store {
	t.Helper()
	s, err := dshsqlite.New(path, dshsqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// exec changes a file as no dsh would.
func exec(t testing.TB, path, query string, args ...any) {
	t.Helper()
	db, err := dshsqlitetest.Open(path)
	if err == nil {
		_, err = db.Exec(query, args...)
		err = errors.Join(err, db.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}

func generated(seed uint64, n int) dshsqlitetest.Session {
	return dshsqlitetest.Session{Header: genlog.Header(seed), Events: slices.Collect(genlog.Events(seed, n))}
}

// text is an event's members in one order.
func text(e outcrop.Event) string {
	op := ""
	if !e.Op.IsZero() {
		op = string(outcrop.Event{Type: e.Type, Op: e.Op, Data: []byte("0")}.AppendJSON(nil))
	}
	return fmt.Sprintf("%s %d %d %s %s %s %v", e.Type, e.Seq, e.Time, e.Data, e.Sources.JSON(), op, e.Ignorable)
}

func texts(events []outcrop.Event) (out []string) {
	for _, e := range events {
		out = append(out, text(e))
	}
	return out
}

// read gives everything that can be read of a session.
func read(st store.Store, id string) (out []string, tail store.Tail, err error) {
	sd, err := st.Read(bg, id)
	if err != nil {
		return nil, tail, err
	}
	defer sd.Close()
	for r, err := range sd.Records() {
		if err != nil {
			return out, sd.Tail(), err
		}
		for e := range r.Events() {
			out = append(out, text(e))
		}
	}
	return out, sd.Tail(), nil
}

func TestEveryLogComesBackFromEverySchema(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		schema := rapid.SampledFrom(dshsqlite.Schemas[:]).Draw(r, "schema")
		s := generated(rapid.Uint64Range(1, 1<<40).Draw(r, "seed"), rapid.IntRange(1, 700).Draw(r, "events"))
		s.Batch = rapid.IntRange(0, 300).Draw(r, "batch")
		path := write(t, schema, s)
		got, tail, err := read(open(t, path), s.Header.ID)
		if err != nil || tail.Torn {
			r.Fatalf("%v, tail %+v", err, tail)
		}
		if d := cmp.Diff(texts(s.Events), got); d != "" {
			r.Fatalf("schema %d (-written +read):\n%s", schema, d)
		}
	})
}

// TestRealLogsComeBack writes the logs of a real dsh, as dsh reads them, into
// each schema: sessions, surface and messages are the same as from the log file.
func TestRealLogsComeBack(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(conformance.Dir(), "corpus", "*", "sessions", "*", "*", "session.jsonl*"))
	if err != nil || len(files) < 20 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	n := 0
	for _, file := range files {
		st, err := jsonl.File(file, jsonl.Options{})
		if err != nil {
			continue
		}
		want, _, err := store.Inspect(bg, st, "", outcrop.Options{})
		if err != nil {
			continue // those that are damaged on purpose
		}
		n++
		schemas := dshsqlite.Schemas[:]
		if testing.Short() {
			schemas = schemas[n%len(schemas):][:1] // they take turns
		}
		for _, schema := range schemas {
			events := slices.Collect(outcrop.Events(want.Log(), 0))
			if schema == 14 && slices.ContainsFunc(events, func(e outcrop.Event) bool { return e.Ignorable }) {
				continue // the schema has no room for the mark
			}
			path := write(t, schema, dshsqlitetest.Session{Header: want.Header(), Events: events, Batch: 37})
			src := open(t, path)
			got, _, err := store.Inspect(bg, src, want.ID(), outcrop.Options{})
			if err != nil {
				t.Fatalf("%s in schema %d: %v", file, schema, err)
			}
			if d := cmp.Diff(texts(events), texts(slices.Collect(outcrop.Events(got.Log(), 0)))); d != "" {
				t.Fatalf("%s in schema %d:\n%s", file, schema, d)
			}
			if a, b := fmt.Sprint(want.Surface().View().Nodes()), fmt.Sprint(got.Surface().View().Nodes()); a != b {
				t.Errorf("%s in schema %d: surface %s, want %s", file, schema, b, a)
			}
			if a, b := want.RequestDigest(), got.RequestDigest(); a != b {
				t.Errorf("%s in schema %d: the request has another digest", file, schema)
			}
			// A copy in another store has the same events.
			dst := memory.New()
			if err := store.Copy(bg, dst, src, want.ID()); err != nil {
				t.Fatalf("%s in schema %d: %v", file, schema, err)
			}
			again, _, err := store.Inspect(bg, dst, want.ID(), outcrop.Options{})
			if err != nil || outcrop.LogDigest(again.Log()) != outcrop.LogDigest(got.Log()) {
				t.Errorf("%s in schema %d: the copy differs, %v", file, schema, err)
			}
		}
	}
	if n < 15 {
		t.Errorf("only %d logs were compared", n)
	}
}

func TestAHeaderHasWhatItsRowSays(t *testing.T) {
	cwd, parent, preset, seed := "/home/dev/x", "p", "coder", int64(0)
	full := dshsqlitetest.Session{Header: outcrop.Header{ID: "full", CreatedAt: 17, Cwd: &cwd, ParentSession: &parent, SeedLength: &seed, Origin: "subagent", DelegationDepth: 2, AgentPreset: &preset}}
	bare := dshsqlitetest.Session{Header: outcrop.Header{ID: "bare", CreatedAt: 18}}
	for _, schema := range dshsqlite.Schemas {
		st := open(t, write(t, schema, full, bare))
		for _, want := range []outcrop.Header{full.Header, bare.Header} {
			sd, err := st.Read(bg, want.ID)
			if err != nil {
				t.Fatal(err)
			}
			if got := sd.Header(); string(got.Line()) != string(want.Line()) || !got.Compatible() {
				t.Errorf("schema %d: header %s, want %s", schema, got.Line(), want.Line())
			}
			sd.Close()
		}
	}
}

func TestAListingSaysHowEachSessionIs(t *testing.T) {
	a, b := generated(1, 300), generated(2, 40)
	open1 := generated(3, 300)
	for i, e := range slices.Backward(open1.Events) {
		if e.Type == outcrop.TypeTurnEnd {
			open1.Events = open1.Events[:i]
			break
		}
	}
	none := dshsqlitetest.Session{Header: outcrop.Header{ID: "none", CreatedAt: 5}}
	for _, schema := range dshsqlite.Schemas {
		path := write(t, schema, a, b, open1, none)
		exec(t, path, "INSERT INTO sessions VALUES ('later', 3, 1, NULL, NULL, NULL, NULL, NULL, NULL, 'x', 0), ('odd', 0, -1, NULL, NULL, NULL, NULL, NULL, NULL, 'x', 0), ('rel', 0, 1, 'here', NULL, NULL, NULL, NULL, NULL, 'x', 0)")
		st := open(t, path)
		for _, full := range []bool{false, true} {
			infos, err := st.List(bg, store.ListOptions{Full: full})
			if err != nil || len(infos) != 7 {
				t.Fatalf("%d sessions, %v", len(infos), err)
			}
			for _, in := range infos {
				want, state := dshsqlitetest.Session{}, store.StateOK
				switch in.ID {
				case a.Header.ID:
					want = a
				case b.Header.ID:
					want = b
				case open1.Header.ID:
					want, state = open1, store.StateOpenTurn
				case "none":
					want = none
				case "later":
					state = store.StateNewer
				default:
					state = store.StateDamaged
				}
				if in.State != state || (in.State == store.StateOK) != (in.Reason == "") {
					t.Errorf("schema %d: %s is %s (%s), want %s", schema, in.ID, in.State, in.Reason, state)
				}
				if state == store.StateDamaged || state == store.StateNewer {
					continue
				}
				var sum store.Summary
				for _, e := range want.Events {
					sum.Add(outcrop.Record{Event: e})
				}
				if sum.Updated == 0 {
					sum.Updated = want.Header.CreatedAt
				}
				if in.Events != int64(sum.Events) || in.Turns != sum.Turns || in.UpdatedAt != sum.Updated || in.Title != sum.Title || in.Path != path {
					t.Errorf("schema %d, full %v: %+v, want %+v", schema, full, in, sum)
				}
			}
		}
	}
}

func TestAListingReadsOnlyWhatChanged(t *testing.T) {
	a, b := generated(1, 100), generated(2, 100)
	path := write(t, 17, a, b)
	st := open(t, path)
	first, err := st.ListKnown(bg, nil)
	if err != nil {
		t.Fatal(err)
	}
	kept := map[string]store.Kept{}
	for _, l := range first {
		kept[l.Place] = store.Kept{Stamp: l.Stamp, ID: l.Info.ID, Path: l.Info.Path}
	}
	if err := dshsqlitetest.Write(bg, path, 17); err != nil {
		t.Fatal(err)
	}
	exec(t, path, "UPDATE sessions SET revision = revision + 1 WHERE id = ?", a.Header.ID)
	again, err := st.ListKnown(bg, func(place string) (store.Kept, bool) { k, ok := kept[place]; return k, ok })
	if err != nil || len(again) != 2 {
		t.Fatalf("%d sessions, %v", len(again), err)
	}
	for _, l := range again {
		if was := l.Info == nil; was != (l.Place == b.Header.ID) {
			t.Errorf("%s: kept %v", l.Place, was)
		}
	}
}

func TestDamageIsNamedAndATornTailIsLeftOut(t *testing.T) {
	for _, c := range []struct {
		name, change string
		schema       int64
		code         outcrop.Code
	}{
		{"data is no JSON", "UPDATE events SET data = '{\"a\":' WHERE seq = ?", 14, "LINE_NOT_JSON"},
		{"data is two values", "UPDATE events SET data = '{},\"seq\":7' WHERE seq = ?", 15, "LINE_NOT_JSON"},
		{"a row is gone", "DELETE FROM events WHERE seq = ?", 15, "SEQ_GAP"},
		{"the sources are no JSON", "UPDATE events SET source_event_seqs = '[1' WHERE seq = ?", 14, "LINE_NOT_JSON"},
		{"the marker is no JSON", "UPDATE events SET surface_op = 'append' WHERE seq = ?", 17, "LINE_NOT_JSON"},
		{"data is no frame", "UPDATE events SET data = x'28b52ffd00' WHERE seq = ?", 17, "ROW_FRAME"},
		{"data is a number", "UPDATE events SET data = 12.5 WHERE seq = ?", 17, "ROW_COLUMN"},
		{"the sources are cut", "UPDATE events SET source_event_seqs = x'80' WHERE seq = ?", 17, "ROW_SOURCES"},
		{"the sources are text", "UPDATE events SET source_event_seqs = '[]' WHERE seq = ?", 17, "ROW_COLUMN"},
		{"an event has the name of a row", "UPDATE events SET type = 'text-chunks', ignorable = 1 WHERE seq = ?", 17, "ROW_COLUMN"},
		{"a row is marked as packed", "UPDATE events SET ignorable = 0 WHERE seq = ?", 17, "ROW_COLUMN"},
		{"a packed row is no row", "UPDATE events SET type = 'text-chunks', ignorable = 0, source_event_seqs = NULL, surface_op = NULL, data = '{\"turn\":1}' WHERE seq = ?", 17, "ROW_DATA_KEYS"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := generated(9, 400)
			var ends []int
			for i, e := range s.Events {
				if e.Type == outcrop.TypeTurnEnd {
					ends = append(ends, i)
				}
			}
			// In the middle: a closed turn lies behind it.
			at := slices.IndexFunc(s.Events, func(e outcrop.Event) bool { return e.Type == outcrop.TypeUserMessage })
			path := write(t, c.schema, s)
			exec(t, path, c.change, at)
			st := open(t, path)
			got, _, err := read(st, s.Header.ID)
			var e *outcrop.Error
			if !errors.Is(err, outcrop.ErrDamaged) && outcrop.CodeOf(err) != "ROW_DATA_KEYS" || !errors.As(err, &e) || e.Code != c.code || e.Seq != outcrop.Seq(at) || e.Path != path || e.Session != s.Header.ID || e.Hint == "" {
				t.Errorf("error %v, want code %s at event %d", err, c.code, at)
			}
			if d := cmp.Diff(texts(s.Events[:at]), got); d != "" {
				t.Errorf("what lies before (-want +got):\n%s", d)
			}
			infos, err := st.List(bg, store.ListOptions{Full: true})
			if err != nil || infos[0].State != store.StateDamaged || infos[0].Reason == "" {
				t.Errorf("listed as %+v, %v", infos, err)
			}
			// Behind the last closed turn.
			n := ends[len(ends)-2] + 1
			tailAt := n + 1 + slices.IndexFunc(s.Events[n+1:], func(e outcrop.Event) bool { return e.Type == outcrop.TypeUserMessage })
			s.Events = s.Events[:ends[len(ends)-1]]
			path = write(t, c.schema, s)
			exec(t, path, c.change, tailAt)
			got, tail, err := read(open(t, path), s.Header.ID)
			if err != nil || !tail.Torn || tail.Reason == nil || outcrop.CodeOf(tail.Reason) != c.code || tail.Bytes == 0 {
				t.Errorf("error %v, tail %+v", err, tail)
			}
			if d := cmp.Diff(texts(s.Events[:tailAt]), got); d != "" {
				t.Errorf("what lies before (-want +got):\n%s", d)
			}
		})
	}
}

func TestNothingCanBeWrittenAndTheErrorSaysHowToGoOn(t *testing.T) {
	s := generated(1, 50)
	path := write(t, 17, s)
	st := open(t, path)
	_, created := st.Create(bg, outcrop.NewHeader("x", 1, ""))
	_, acquired := st.Acquire(bg, s.Header.ID)
	put := st.Put(bg, s.Header, func(func(outcrop.Record, error) bool) {})
	_, stored := st.Objects().Put(bg, []byte("x"))
	for _, err := range []error{created, acquired, put, stored} {
		if !errors.Is(err, outcrop.ErrReadOnly) || !strings.Contains(err.Error(), "your own store") {
			t.Errorf("error %v", err)
		}
	}
	if _, err := st.Acquire(bg, "absent"); !errors.Is(err, outcrop.ErrNotFound) {
		t.Errorf("a session that is not there: %v", err)
	}
	if _, err := st.Read(bg, "absent"); !errors.Is(err, outcrop.ErrNotFound) || outcrop.CodeOf(err) != outcrop.CodeSessionNotFound {
		t.Errorf("a session that is not there: %v", err)
	}
}

func TestAnotherFileIsNamed(t *testing.T) {
	dir := t.TempDir()
	other := filepath.Join(dir, "other.db")
	db, err := sql.Open("sqlite", other)
	if err == nil {
		_, err = db.Exec("CREATE TABLE notes(x)")
		err = errors.Join(err, db.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	newer := write(t, 17)
	exec(t, newer, "PRAGMA user_version = 18")
	bare := write(t, 17)
	exec(t, bare, "DROP TABLE events")
	plain := filepath.Join(dir, "plain.txt")
	if err := os.WriteFile(plain, []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		path   string
		reason error
		says   string
	}{
		{other, outcrop.ErrUnsupported, "tables notes"},
		{newer, outcrop.ErrUnsupported, "schema version 18; this version reads 14, 15 and 17"},
		{bare, outcrop.ErrDamaged, "lacks the table events"},
		{plain, outcrop.ErrRefused, "no SQLite database"},
		{filepath.Join(dir, "absent.db"), fs.ErrNotExist, "absent.db"},
	} {
		_, err := open(t, c.path).List(bg, store.ListOptions{})
		if !errors.Is(err, c.reason) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", c.path, err)
		}
	}
}

func TestALogIsFollowedWhileItIsWritten(t *testing.T) {
	s := generated(4, 300)
	all := s.Events
	s.Events = all[:100]
	path := write(t, 17, s)
	st := open(t, path)
	in, err := st.Follow(bg, s.Header.ID)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	var got []string
	next := func(in store.Following) {
		t.Helper()
		for r, err := range in.Next(bg) {
			if err != nil {
				t.Fatal(err)
			}
			for e := range r.Events() {
				got = append(got, text(e))
			}
		}
	}
	next(in)
	next(in)
	if len(got) != 100 {
		t.Fatalf("%d events, want 100", len(got))
	}
	mark := in.(store.Marked).Mark()
	db, err := dshsqlitetest.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	// The writer stays while it is read.
	for from := 100; from < len(all); from += 50 {
		if err := dshsqlitetest.Append(bg, db, 17, s.Header.ID, 0, all[from:min(from+50, len(all))]); err != nil {
			t.Fatal(err)
		}
		next(in)
	}
	if d := cmp.Diff(texts(all), got); d != "" {
		t.Fatalf("(-written +followed):\n%s", d)
	}
	later, err := st.Follow(bg, s.Header.ID)
	if err != nil {
		t.Fatal(err)
	}
	defer later.Close()
	if !later.(store.Marked).Resume(mark) || later.(store.Marked).Resume("dsh 3 other") || later.(store.Marked).Resume("x") {
		t.Fatal("a mark is not told from another")
	}
	got = nil
	next(later)
	if d := cmp.Diff(texts(all[100:]), got); d != "" {
		t.Fatalf("from the mark (-written +followed):\n%s", d)
	}
	if _, err := db.Exec("UPDATE sessions SET incarnation = 'another', revision = 99"); err != nil {
		t.Fatal(err)
	}
	for _, err := range in.Next(bg) {
		if !errors.Is(err, store.ErrMoved) {
			t.Errorf("another log in its place: %v", err)
		}
	}
	if _, err := db.Exec("DELETE FROM sessions"); err != nil {
		t.Fatal(err)
	}
	for _, err := range in.Next(bg) {
		if !errors.Is(err, outcrop.ErrNotFound) {
			t.Errorf("the log is gone: %v", err)
		}
	}
}

func TestAttachmentsAreFoundWhereDshKeepsThem(t *testing.T) {
	home := t.TempDir()
	path := filepath.Join(home, "db", "sessions.db")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := dshsqlitetest.Write(bg, path, 17); err != nil {
		t.Fatal(err)
	}
	elsewhere := t.TempDir()
	st, err := dshsqlite.New(path, dshsqlite.Options{Homes: []string{elsewhere, ""}})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	var ids []string
	for i, dir := range []string{filepath.Dir(path), home, elsewhere} {
		id, err := blob.Open(filepath.Join(dir, "attachments", "v1")).Put(bg, []byte{byte(i)})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	for i, id := range ids {
		if b, err := st.Objects().Get(bg, id); err != nil || len(b) != 1 || b[0] != byte(i) {
			t.Errorf("%s: %v, %v", id, b, err)
		}
	}
	if _, err := st.Objects().Get(bg, blob.ID([]byte("absent"))); !errors.Is(err, outcrop.ErrNotFound) {
		t.Errorf("one that is nowhere: %v", err)
	}
	if _, err := st.Objects().Get(bg, "x"); !errors.Is(err, outcrop.ErrRefused) {
		t.Errorf("no id: %v", err)
	}
}

// TestAbsentEmptyAndSomeSourcesStayThreeThings: a list that is known to be empty
// is a BLOB of no bytes.
func TestAbsentEmptyAndSomeSourcesStayThreeThings(t *testing.T) {
	var events []outcrop.Event
	for _, line := range []string{
		`{"type":"turn/start","seq":0,"time":1,"data":{"turn":1}}`,
		`{"type":"assistant/message","seq":1,"time":1,"data":{"turn":1},"sourceEventSeqs":[],"surfaceOp":"append"}`,
		`{"type":"assistant/message","seq":2,"time":1,"data":{"turn":1},"sourceEventSeqs":[0,1],"surfaceOp":{"op":"replace","start":1,"end":1}}`,
		`{"type":"x/y","seq":3,"time":1,"data":null,"ignorable":true}`,
	} {
		e, err := outcrop.DecodeEvent([]byte(line))
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, e)
	}
	for _, schema := range dshsqlite.Schemas {
		want := events
		if schema == 14 {
			want = events[:3]
		}
		st := open(t, write(t, schema, dshsqlitetest.Session{Header: genlog.Header(1), Events: want}))
		got, _, err := read(st, "gen-1")
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(texts(want), got); d != "" {
			t.Errorf("schema %d (-want +got):\n%s", schema, d)
		}
	}
}
