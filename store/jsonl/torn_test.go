package jsonl

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/conformance"
	"github.com/outcrop-dev/outcrop/internal/faultfs"
	"github.com/outcrop-dev/outcrop/message"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/storetest"
	"github.com/outcrop-dev/outcrop/wire"
)

func lines(log outcrop.Log) (all []string) {
	for e := range outcrop.Events(log, 0) {
		all = append(all, string(e.AppendJSON(nil)))
	}
	return all
}

// TestALogCutAtAnyByteGoesOn cuts a log at every byte behind its header, opens
// it, goes on in it, and opens it again.
func TestALogCutAtAnyByteGoesOn(t *testing.T) {
	both(t, func(t *testing.T, o Options) {
		s := root(t, o)
		l, err := store.Create(bg, s, storetest.Header("s1"), store.Options{})
		must(t, err)
		// A small log, as there are two cuts and two openings for each byte: a
		// turn, then one with a packed row, in three batches.
		batches := [][]outcrop.Candidate{{
			outcrop.LogCandidate(outcrop.TurnStart{Turn: 1}),
			outcrop.SurfaceCandidate(outcrop.UserMessage{Message: message.Message{Content: []message.Block{message.Text("hé日")}, Source: message.FromUser, ID: "u"}}, outcrop.Tail, outcrop.NoSources),
			outcrop.LogCandidate(outcrop.TurnEnd{Turn: 1, Reason: outcrop.TurnReason{Kind: outcrop.Completed}}),
		}, {
			outcrop.LogCandidate(outcrop.TurnStart{Turn: 2}),
			outcrop.LogCandidate(outcrop.StepStart{Turn: 2, Step: 1}),
		}, nil}
		for range 5 {
			batches[1] = append(batches[1], outcrop.LogCandidate(outcrop.AssistantChunk{Turn: 2, Step: 1, Chunk: message.Chunk{Type: message.TextDelta, Text: "ab"}}))
		}
		batches[2] = []outcrop.Candidate{
			outcrop.LogCandidate(outcrop.StepEnd{Turn: 2, Step: 1}),
			outcrop.LogCandidate(outcrop.TurnEnd{Turn: 2, Reason: outcrop.TurnReason{Kind: outcrop.Completed}}),
		}
		for _, batch := range batches {
			_, err := l.Session().AppendAll(batch...)
			must(t, err)
			must(t, l.Flush(bg))
		}
		must(t, l.Close(bg))
		path := logPath(t, s, "s1")
		whole, err := os.ReadFile(path)
		must(t, err)
		in, err := ReadFile(path)
		must(t, err)
		start := int(in.Reader().HeaderEnd())
		must(t, in.Close())
		all := lines(l.Session().Log())

		dir := filepath.Dir(path)
		last := 0
		for cut := start; cut <= len(whole); cut++ {
			overwrite(t, path, whole[:cut])
			l, err := store.Open(bg, s, "s1", store.Options{})
			if err != nil {
				t.Fatalf("cut at %d: %v", cut, err)
			}
			kept := int(l.Session().Stored())
			for i, line := range lines(l.Session().Log())[:kept] {
				if line != all[i] {
					t.Fatalf("cut at %d: event %d changed", cut, i)
				}
			}
			if kept < last {
				t.Fatalf("cut at %d: %d events are kept, with fewer bytes it were %d", cut, kept, last)
			}
			if want := strings.Count(string(whole[start:cut]), "\n"); o.Plain && kept < want {
				t.Fatalf("cut at %d: %d events are kept of %d lines", cut, kept, want)
			}
			last = kept
			tail := l.Tail()
			must(t, storetest.Turn(l.Session(), 3))
			must(t, l.Close(bg))
			// What was cut away is kept.
			if tail.Torn {
				aside, err := os.ReadFile(filepath.Join(dir, "session.torn-"+itoa(tail.Offset)))
				if err != nil || !bytes.Equal(aside, whole[tail.Offset:cut]) {
					t.Fatalf("cut at %d: the torn bytes are not aside: %v", cut, err)
				}
				must(t, os.Remove(filepath.Join(dir, "session.torn-"+itoa(tail.Offset))))
			}
			again, err := store.Open(bg, s, "s1", store.Options{})
			must(t, err)
			if again.Tail().Torn || int(again.Session().Stored()) != l.Session().Len() {
				t.Fatalf("cut at %d: %d events are stored, want %d; %+v", cut, again.Session().Stored(), l.Session().Len(), again.Tail())
			}
			must(t, again.Close(bg))
		}
		if last != len(all) {
			t.Fatalf("the whole log gives %d events, want %d", last, len(all))
		}
	})
}

// overwrite gives a file other bytes without emptying it first, which some file
// systems answer with a wait for the disk.
func overwrite(t *testing.T, path string, b []byte) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	must(t, err)
	_, err = f.WriteAt(b, 0)
	must(t, err)
	must(t, f.Truncate(int64(len(b))))
	must(t, f.Close())
}

func itoa(n int64) string {
	b, _ := json.Marshal(n)
	return string(b)
}

func TestALogWithoutAWholeHeaderIsNotOpened(t *testing.T) {
	both(t, func(t *testing.T, o Options) {
		s := root(t, o)
		session(t, s, "s1", 1)
		path := logPath(t, s, "s1")
		whole, err := os.ReadFile(path)
		must(t, err)
		in, err := ReadFile(path)
		must(t, err)
		start := int(in.Reader().HeaderEnd())
		must(t, in.Close())
		for cut := range start {
			must(t, os.WriteFile(path, whole[:cut], 0o600))
			_, err := store.Open(bg, s, "s1", store.Options{})
			var e *outcrop.Error
			if !errors.As(err, &e) || e.Path != path || e.Code == "" {
				t.Fatalf("cut at %d: %v", cut, err)
			}
			if b, _ := os.ReadFile(path); len(b) != cut {
				t.Fatalf("cut at %d: the file was changed", cut)
			}
		}
	})
}

func TestATornTailIsPutAsideOnceAndNeverOverAnotherOne(t *testing.T) {
	s := root(t, Options{Plain: true})
	session(t, s, "s1", 1)
	path := logPath(t, s, "s1")
	good, err := os.ReadFile(path)
	must(t, err)
	aside := filepath.Join(filepath.Dir(path), "session.torn-"+itoa(int64(len(good))))
	for i, c := range []struct {
		tail string
		want string
	}{
		{`{"type":"turn`, aside},
		{`{"type":"turn`, aside}, // the same bytes again: a crash between putting aside and cutting
		{"\x00\x00\x00\x00", aside + ".2"},
	} {
		must(t, os.WriteFile(path, append(bytes.Clone(good), c.tail...), 0o600))
		// A reader cuts nothing.
		_, tail, err := store.Inspect(bg, s, "s1", outcrop.Options{})
		if err != nil || !tail.Torn || tail.Bytes != int64(len(c.tail)) {
			t.Fatalf("%v, %+v", err, tail)
		}
		if b, _ := os.ReadFile(path); len(b) != len(good)+len(c.tail) {
			t.Fatal("reading changed the file")
		}
		l, err := store.Open(bg, s, "s1", store.Options{})
		must(t, err)
		must(t, l.Close(bg))
		if b, err := os.ReadFile(c.want); err != nil || string(b) != c.tail {
			t.Fatalf("%d: aside are %q, %v", i, b, err)
		}
		if fi, err := os.Stat(c.want); err != nil || fi.Mode().Perm() != 0o600 {
			t.Fatalf("%d: mode %v, %v", i, fi.Mode(), err)
		}
	}
	if b, _ := os.ReadFile(aside); string(b) != `{"type":"turn` {
		t.Fatalf("the first torn tail was overwritten: %q", b)
	}
}

func TestTheTornTailIsSyncedAsideBeforeTheCut(t *testing.T) {
	s := root(t, Options{Plain: true})
	session(t, s, "s1", 1)
	path := logPath(t, s, "s1")
	good, err := os.ReadFile(path)
	must(t, err)
	torn := append(bytes.Clone(good), "torn"...)
	must(t, os.WriteFile(path, torn, 0o600))
	var steps []string
	s.disk = faulty(func(op faultfs.Op) (f faultfs.Fault) {
		switch name := filepath.Base(op.Path); {
		case op.Kind == faultfs.OpSync:
			steps = append(steps, "sync "+name)
		case op.Kind == faultfs.OpSyncDir:
			steps = append(steps, "sync folder")
		case op.Kind == faultfs.OpTruncate && !strings.HasSuffix(name, ".lock"):
			steps = append(steps, "cut "+name)
		}
		return f
	})
	l, err := store.Open(bg, s, "s1", store.Options{})
	must(t, err)
	steps = nil
	must(t, l.Close(bg))
	want := "sync session.torn-" + itoa(int64(len(good))) + ", sync folder, cut session.jsonl, sync session.jsonl, sync session.jsonl"
	if got := strings.Join(steps, ", "); got != want {
		t.Fatalf("steps: %s\nwant:  %s", got, want)
	}

	// When the bytes cannot be put aside, nothing is cut.
	must(t, os.WriteFile(path, torn, 0o600))
	must(t, os.Remove(filepath.Join(filepath.Dir(path), "session.torn-"+itoa(int64(len(good))))))
	full := errors.New("disk full")
	s.disk = faulty(func(op faultfs.Op) (f faultfs.Fault) {
		if toLog(op) {
			f.Err = full
		}
		return f
	})
	l, err = store.Open(bg, s, "s1", store.Options{})
	must(t, err)
	if err := l.Flush(bg); !errors.Is(err, full) {
		t.Fatal(err)
	}
	if b, _ := os.ReadFile(path); !bytes.Equal(b, torn) {
		t.Fatal("the tail was cut and is not aside")
	}
	if err := l.Close(bg); err == nil {
		t.Fatal("closing did not say that events were lost")
	}
	for _, name := range names(t, filepath.Dir(path)) {
		if strings.Contains(name, "torn") {
			t.Fatalf("a half torn file was left: %s", name)
		}
	}
}

// corpus calls run with a copy of each log of a kind in the corpus, as a store.
func corpus(t *testing.T, kind string, run func(t *testing.T, name string, s *Store, info store.Info)) {
	cases, err := os.ReadDir(filepath.Join(conformance.Dir(), "corpus"))
	must(t, err)
	n := 0
	for _, c := range cases {
		from := filepath.Join(conformance.Dir(), "corpus", c.Name(), kind)
		if _, err := os.Stat(from); err != nil {
			continue
		}
		n++
		t.Run(c.Name(), func(t *testing.T) {
			s := root(t, Options{})
			must(t, os.CopyFS(s.root, os.DirFS(from)))
			infos, err := s.List(bg, store.ListOptions{Full: true})
			must(t, err)
			if len(infos) == 0 {
				t.Fatal("no session is listed")
			}
			for _, in := range infos {
				run(t, c.Name(), s, in)
			}
		})
	}
	if n == 0 {
		t.Fatal("no cases")
	}
}

func TestEveryHealthyLogOfTheCorpusIsContinued(t *testing.T) {
	corpus(t, "sessions", func(t *testing.T, name string, s *Store, in store.Info) {
		if strings.HasPrefix(name, "corrupt-") || strings.HasPrefix(name, "torn-") {
			return
		}
		if in.State != store.StateOK && in.State != store.StateOpenTurn {
			t.Fatalf("listed as %+v", in)
		}
		before, err := os.ReadFile(in.Path)
		must(t, err)
		l, err := store.Open(bg, s, in.ID, store.Options{})
		must(t, err)
		added := l.Session().Len() - int(l.Session().Stored())
		must(t, storetest.Turn(l.Session(), 1000))
		must(t, l.Close(bg))
		after, err := os.ReadFile(in.Path)
		must(t, err)
		if !bytes.HasPrefix(after, before) {
			t.Fatal("stored bytes were changed")
		}
		got, _, err := store.Inspect(bg, s, in.ID, outcrop.Options{})
		must(t, err)
		if outcrop.LogDigest(got.Log()) != outcrop.LogDigest(l.Session().Log()) {
			t.Fatal("the stored log is not the session's")
		}
		if in.Events >= 0 && got.Len() != int(in.Events)+added+15 {
			t.Fatalf("%d events are stored, %d were listed and %d added", got.Len(), in.Events, added)
		}
		// And it goes through the other encoding unchanged.
		dst := root(t, Options{Plain: strings.HasSuffix(in.Path, string(wire.Zstd))})
		must(t, store.Copy(bg, dst, s, in.ID))
		back, _, err := store.Inspect(bg, dst, in.ID, outcrop.Options{})
		must(t, err)
		if outcrop.LogDigest(back.Log()) != outcrop.LogDigest(got.Log()) || !bytes.Equal(back.Header().Line(), got.Header().Line()) {
			t.Fatal("the copy in the other encoding differs")
		}
	})
}

func TestTheDamagedLogsOfTheCorpus(t *testing.T) {
	corpus(t, "before-sessions", func(t *testing.T, name string, s *Store, in store.Info) {
		before, err := os.ReadFile(in.Path)
		must(t, err)
		l, err := store.Open(bg, s, in.ID, store.Options{})
		switch {
		case strings.HasPrefix(name, "torn-"):
			must(t, err)
			if !l.Tail().Torn {
				t.Fatal("no torn tail is seen")
			}
			must(t, l.Close(bg))
			aside, err := os.ReadFile(filepath.Join(filepath.Dir(in.Path), "session.torn-"+itoa(l.Tail().Offset)))
			must(t, err)
			if !bytes.Equal(append(bytes.Clone(before[:l.Tail().Offset]), aside...), before) {
				t.Fatal("what was cut is not aside")
			}
		case name == "corrupt-plain-committed":
			if !errors.Is(err, outcrop.ErrDamaged) || in.State != store.StateDamaged {
				t.Fatalf("%v, listed as %+v", err, in)
			}
		case name == "corrupt-plain-header":
			if err == nil || in.State != store.StateDamaged {
				t.Fatalf("%v, listed as %+v", err, in)
			}
		default:
			must(t, err)
			must(t, l.Close(bg))
			return
		}
		if strings.HasPrefix(name, "corrupt-") {
			if after, _ := os.ReadFile(in.Path); !bytes.Equal(after, before) {
				t.Fatal("a damaged log was changed")
			}
		}
	})
}
