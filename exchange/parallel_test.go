package exchange_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"

	"github.com/outcrop-dev/outcrop/exchange"
	"github.com/outcrop-dev/outcrop/exchange/codex"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/jsonl"
	"github.com/outcrop-dev/outcrop/store/memory"
)

// sourcesIn are the sources of Codex below a folder.
func sourcesIn(t testing.TB, dir string) (out []exchange.Source) {
	for src, err := range exchange.Find(context.Background(), []exchange.Format{codex.Format()}, dir, "") {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, src)
	}
	return out
}

// TestManyAtOnceAreAsOneAfterAnother imports folders with forks, copies of files
// that have other content, and files that cannot be read.
func TestManyAtOnceAreAsOneAfterAnother(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp("", "import")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		n := rapid.IntRange(1, 20).Draw(t, "files")
		for i := range n {
			who := rapid.IntRange(0, n).Draw(t, "session")
			text := rollout(rapid.IntRange(3, rolloutLines).Draw(t, "lines"))
			if rapid.IntRange(0, 9).Draw(t, "bad") == 0 {
				text = "{\n"
			}
			if from := rapid.IntRange(-n, n).Draw(t, "from"); from >= 0 && from != who {
				text = strings.Replace(text, `"cwd"`, `"forked_from_id":"`+strings.Replace(thread, "0199aaaa", fmt.Sprintf("0199aa%02d", from), 1)+`","cwd"`, 1)
			}
			text = strings.Replace(text, thread, strings.Replace(thread, "0199aaaa", fmt.Sprintf("0199aa%02d", who), 1), 1)
			if rapid.Bool().Draw(t, "other") {
				text = strings.ReplaceAll(text, `"one"`, fmt.Sprintf(`"one %d"`, i))
			}
			at := filepath.Join(dir, fmt.Sprint(i))
			if err := os.Mkdir(at, 0o700); err != nil {
				t.Fatal(err)
			}
			name := "rollout-2026-03-01T10-00-00-" + strings.Replace(thread, "0199aaaa", fmt.Sprintf("0199aa%02d", who), 1) + ".jsonl"
			if err := os.WriteFile(filepath.Join(at, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		var sources []exchange.Source
		for src, err := range exchange.Find(context.Background(), []exchange.Format{codex.Format()}, dir, "") {
			if err != nil {
				t.Fatal(err)
			}
			sources = append(sources, src)
		}
		said := func(r *exchange.Report) string { return string(r.AppendJSON(nil)) }
		one := &exchange.Importer{Store: memory.New()}
		var want []string
		for _, src := range sources {
			r, err := one.Import(context.Background(), src)
			if err != nil {
				t.Fatal(err)
			}
			want = append(want, said(r))
		}
		var read int64
		many := &exchange.Importer{Store: memory.New(), Progress: func(n int64) { read += n }}
		var got []string
		for r, err := range many.ImportAll(context.Background(), sources) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, said(r))
		}
		if !slices.Equal(got, want) {
			t.Fatalf("at once:\n%s\none after another:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		size := int64(0)
		for _, src := range sources {
			size += src.Size
		}
		if read != size {
			t.Fatalf("progress heard of %d bytes of %d", read, size)
		}
		if a, b := logs(t, one.Store), logs(t, many.Store); !reflect.DeepEqual(a, b) {
			t.Fatalf("the stores differ: %v, %v", a, b)
		}
	})
}

// logs are the digests of all logs of a store.
func logs(t *rapid.T, st store.Store) map[string]string {
	infos, err := st.List(context.Background(), store.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, in := range infos {
		s, err := st.Read(context.Background(), in.Header.ID)
		if err != nil {
			t.Fatal(err)
		}
		var d store.Digest
		for r, err := range s.Records() {
			if err != nil {
				t.Fatal(err)
			}
			d.Add(r)
		}
		out[string(s.Header().Line())] = d.Sum()
		s.Close()
	}
	return out
}

// TestTwoImportsAtOnceGiveWayToEachOther: who finds that the other one stores a
// session just now waits, and finds it present.
func TestTwoImportsAtOnceGiveWayToEachOther(t *testing.T) {
	dir := t.TempDir()
	const files = 60
	for i := range files {
		at := filepath.Join(dir, fmt.Sprint(i))
		if err := os.Mkdir(at, 0o700); err != nil {
			t.Fatal(err)
		}
		put(t, at, strings.ReplaceAll(rollout(rolloutLines), "0199aaaa", fmt.Sprintf("0199%04d", i)))
	}
	sources := sourcesIn(t, dir)
	root := t.TempDir()
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() {
			st, err := jsonl.New(root, jsonl.Options{})
			if err != nil {
				t.Error(err)
				return
			}
			defer st.Close()
			for r, err := range (&exchange.Importer{Store: st}).ImportAll(context.Background(), sources) {
				if err == nil {
					err = r.Err
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	both.Wait()
	st, err := jsonl.New(root, jsonl.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	if list, err := st.List(context.Background(), store.ListOptions{}); err != nil || len(list) != files {
		t.Errorf("%d sessions of %d, %v", len(list), files, err)
	}
}

// TestWhoStopsListeningStopsTheImport takes one report and no more.
func TestWhoStopsListeningStopsTheImport(t *testing.T) {
	dir := t.TempDir()
	for i := range 40 {
		at := filepath.Join(dir, fmt.Sprint(i))
		if err := os.Mkdir(at, 0o700); err != nil {
			t.Fatal(err)
		}
		put(t, at, rollout(rolloutLines))
	}
	sources := sourcesIn(t, dir)
	synctest.Test(t, func(t *testing.T) {
		im := &exchange.Importer{Store: memory.New()}
		for _, err := range im.ImportAll(context.Background(), sources) {
			if err != nil {
				t.Fatal(err)
			}
			break
		}
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		for r, err := range im.ImportAll(ctx, sources) {
			if !errors.Is(err, context.Canceled) || r == nil {
				t.Fatalf("%+v, %v", r, err)
			}
		}
	})
}
