package collection_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/collection"
	"github.com/outcrop-dev/outcrop/internal/cputime"
	"github.com/outcrop-dev/outcrop/message"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/jsonl"
	"github.com/outcrop-dev/outcrop/store/memory"
	"github.com/outcrop-dev/outcrop/store/sqlite"
	"github.com/outcrop-dev/outcrop/wire"
)

func must(t interface{ Fatal(...any) }, err error) {
	if err != nil {
		t.Fatal(err)
	}
}

// all lists a collection with every log read, as one run of the command does.
func all(t interface{ Fatal(...any) }, st store.Store, state string) []collection.Entry {
	ctx := context.Background()
	c := collection.Of(st, collection.Options{State: state})
	entries, err := c.List(ctx)
	must(t, err)
	for i := range entries {
		must(t, c.Learn(ctx, &entries[i]))
	}
	collection.Sort(entries)
	must(t, c.Save(rand.Read))
	return entries
}

func prompt(text string) outcrop.UserMessage {
	return outcrop.UserMessage{Message: message.Message{Source: message.FromUser, Content: []message.Block{message.Text(text)}}}
}

// world is a store that random operations change.
type world struct {
	t     *rapid.T
	st    store.Store
	root  string // of log files; "" for another store
	clock int64
	saved time.Duration // how many files were replaced
	live  map[string]*store.Live
	ids   []string
	tags  map[string]map[string]bool
}

func (w *world) options() store.Options {
	return store.Options{Session: outcrop.Options{Now: func() int64 { w.clock++; return w.clock }}}
}

func (w *world) open(id string) (*store.Live, bool) {
	if l := w.live[id]; l != nil {
		return l, true
	}
	l, err := store.Open(context.Background(), w.st, id, w.options())
	if err != nil {
		return nil, false // damaged by now
	}
	return l, true
}

// step does one random thing.
func (w *world) step() {
	ctx := context.Background()
	var id string
	if len(w.ids) > 0 {
		id = rapid.SampledFrom(w.ids).Draw(w.t, "session")
	}
	what := rapid.SampledFrom([]string{"new", "prompt", "turn", "open turn", "title", "tag", "untag", "hold", "close", "cut", "flip", "remove"}).Draw(w.t, "what")
	if id == "" {
		what = "new"
	}
	switch what {
	case "new":
		id := fmt.Sprintf("s%d", len(w.ids))
		l, err := store.Create(ctx, w.st, outcrop.NewHeader(id, w.clock, "/home/dev"), w.options())
		must(w.t, err)
		_, err = l.Session().AppendSurface(prompt("first of "+id), outcrop.Tail, outcrop.NoSources)
		must(w.t, errors.Join(err, l.Close(ctx)))
		w.ids = append(w.ids, id)
		w.tags[id] = map[string]bool{}
		return
	case "hold":
		if l, ok := w.open(id); ok {
			w.live[id] = l
		}
		return
	case "close":
		if l := w.live[id]; l != nil {
			must(w.t, l.Close(ctx))
			delete(w.live, id)
		}
		return
	case "cut", "flip", "remove":
		w.damage(what, id)
		return
	}
	l, ok := w.open(id)
	if !ok {
		return
	}
	s := l.Session()
	turn, _, inTurn := outcrop.OpenTurn(s.Log())
	last := 0
	for ev := range outcrop.Events(s.Log(), 0) {
		if ev.Type == outcrop.TypeTurnStart {
			last++
		}
	}
	var err error
	switch what {
	case "prompt":
		_, err = s.AppendSurface(prompt("more"), outcrop.Tail, outcrop.NoSources)
	case "turn", "open turn":
		if !inTurn {
			turn = last + 1
			_, err = s.Append(outcrop.TurnStart{Turn: turn})
		}
		if err == nil && what == "turn" {
			_, err = s.Append(outcrop.TurnEnd{Turn: turn, Reason: outcrop.TurnReason{Kind: outcrop.Completed}})
		}
	case "title":
		_, err = s.Append(outcrop.SessionTitle{Title: fmt.Sprintf("title %d", w.clock), Source: "user"})
	case "tag", "untag":
		tag := rapid.SampledFrom([]string{"a", "b", collection.Star}).Draw(w.t, "tag")
		_, err = s.Append(outcrop.OutcropTag{Tag: tag, Set: what == "tag"})
		w.tags[id][tag] = what == "tag"
	}
	must(w.t, err)
	if w.live[id] != nil {
		must(w.t, l.Flush(ctx))
	} else {
		must(w.t, l.Close(ctx))
	}
}

// damage spoils a file that nobody holds.
func (w *world) damage(how, id string) {
	if w.root == "" || w.live[id] != nil {
		return
	}
	logs, err := filepath.Glob(filepath.Join(w.root, "*", id, "session.jsonl*"))
	must(w.t, err)
	if len(logs) != 1 {
		return
	}
	b, err := os.ReadFile(logs[0])
	must(w.t, err)
	at := rapid.IntRange(0, len(b)).Draw(w.t, "at")
	switch how {
	case "cut":
		must(w.t, os.WriteFile(logs[0], b[:at], 0o600))
	case "flip":
		if at == len(b) {
			return
		}
		// In another file, as programs save.
		b[at] ^= 0x10
		must(w.t, os.WriteFile(logs[0]+".new", b, 0o600))
		must(w.t, os.Rename(logs[0]+".new", logs[0]))
		// The clock of a file system ticks every few milliseconds: a file that is
		// replaced twice within one tick may have its number, size and time again.
		w.saved++
		must(w.t, os.Chtimes(logs[0], time.Time{}, time.Now().Add(w.saved*time.Second)))
	case "remove":
		must(w.t, os.Remove(logs[0]))
	}
	clear(w.tags[id])
	w.tags[id]["?"] = true
}

// A catalogue says what a listing says that reads everything, whatever happened
// since it was written.
func TestACatalogueSaysWhatAFullListingSays(t *testing.T) {
	for name, open := range map[string]func(*rapid.T, string) (store.Store, string){
		"zstd":   func(t *rapid.T, dir string) (store.Store, string) { return openRoot(t, dir, false), dir },
		"plain":  func(t *rapid.T, dir string) (store.Store, string) { return openRoot(t, dir, true), dir },
		"memory": func(*rapid.T, string) (store.Store, string) { return memory.New(), "" },
		"sqlite": func(t *rapid.T, dir string) (store.Store, string) {
			st, err := sqlite.New(filepath.Join(dir, "s.db"), sqlite.Options{})
			must(t, err)
			return st, ""
		},
	} {
		t.Run(name, func(t *testing.T) {
			base := t.TempDir()
			rapid.Check(t, func(t *rapid.T) {
				dir, err := os.MkdirTemp(base, "")
				must(t, err)
				st, root := open(t, filepath.Join(dir, "store"))
				w := &world{t: t, st: st, root: root, clock: 1000, live: map[string]*store.Live{}, tags: map[string]map[string]bool{}}
				defer func() {
					for _, l := range w.live {
						must(t, l.Close(context.Background()))
					}
					must(t, st.Close())
				}()
				state := filepath.Join(dir, "state")
				for range rapid.IntRange(1, 4).Draw(t, "rounds") {
					for range rapid.IntRange(1, 4).Draw(t, "steps") {
						w.step()
					}
					w.compare(state)
				}
			})
		})
	}
}

func openRoot(t *rapid.T, dir string, plain bool) store.Store {
	st, err := jsonl.New(dir, jsonl.Options{Plain: plain})
	must(t, err)
	return st
}

func (w *world) compare(state string) {
	want, err := w.st.List(context.Background(), store.ListOptions{Full: true})
	must(w.t, err)
	entries := all(w.t, w.st, state)
	got := make([]store.Info, len(entries))
	for i := range entries {
		e := &entries[i]
		got[i] = e.Info
		if tags := w.tags[e.ID]; e.State != store.StateDamaged && !tags["?"] {
			have := []string{}
			for tag, set := range tags {
				if set {
					have = append(have, tag)
				}
			}
			slices.Sort(have)
			if d := cmp.Diff(have, e.Tags); d != "" {
				w.t.Fatalf("tags of %s (-set +known):\n%s", e.ID, d)
			}
		}
	}
	// A log of which no event can be read has no time but that of its file, and
	// a listing that looks at its end may see another one.
	for _, list := range [][]store.Info{want, got} {
		for i := range list {
			if list[i].Events == 0 {
				list[i].UpdatedAt = 0
			}
		}
		store.SortInfos(list)
	}
	ignore := []cmp.Option{cmpopts.EquateEmpty(), cmpopts.IgnoreUnexported(outcrop.Header{}), cmp.FilterPath(func(p cmp.Path) bool {
		// A store that is no files words a reason as it likes.
		return w.root == "" && p.Last().String() == ".Reason"
	}, cmp.Ignore())}
	if d := cmp.Diff(want, got, ignore...); d != "" {
		w.t.Fatalf("(-full listing +catalogue):\n%s", d)
	}
}

func TestADamagedCatalogueIsMadeAnew(t *testing.T) {
	st := memory.New()
	for i := range 3 {
		l, err := store.Create(t.Context(), st, outcrop.NewHeader(fmt.Sprintf("s%d", i), 1, ""), store.Options{})
		must(t, err)
		_, err = l.Session().AppendSurface(prompt("hello"), outcrop.Tail, outcrop.NoSources)
		must(t, errors.Join(err, l.Close(t.Context())))
	}
	state := t.TempDir()
	c := collection.Of(st, collection.Options{State: state})
	want := all(t, st, state)
	good, err := os.ReadFile(c.CatalogueFile())
	must(t, err)
	// It is used: without reading anything it knows the titles.
	entries, err := c.List(t.Context())
	must(t, err)
	if entries[0].Title != "hello" || !entries[0].Whole {
		t.Fatalf("nothing is known: %+v", entries[0])
	}
	for at := range good {
		for _, b := range [][]byte{good[:at], slices.Concat(good[:at], []byte{good[at] ^ 1}, good[at+1:])} {
			must(t, os.WriteFile(c.CatalogueFile(), b, 0o600))
			got := all(t, st, state)
			if d := cmp.Diff(infos(want), infos(got), cmpopts.IgnoreUnexported(outcrop.Header{})); d != "" {
				t.Fatalf("spoilt at byte %d (-want +got):\n%s", at, d)
			}
		}
	}
	must(t, os.Remove(c.CatalogueFile()))
	must(t, os.Mkdir(c.CatalogueFile(), 0o700))
	if _, err := collection.Of(st, collection.Options{State: state}).List(t.Context()); err != nil {
		t.Errorf("a folder in its place: %v", err)
	}
}

func infos(entries []collection.Entry) []store.Info {
	out := make([]store.Info, len(entries))
	for i := range entries {
		out[i] = entries[i].Info
	}
	return out
}

// A log that grew is read on from where the reading ended.
func TestOnlyWhatIsNewIsRead(t *testing.T) {
	dir := t.TempDir()
	st, err := jsonl.New(filepath.Join(dir, "store"), jsonl.Options{})
	must(t, err)
	ctx := t.Context()
	l, err := store.Create(ctx, st, outcrop.NewHeader("s1", 1, ""), store.Options{})
	must(t, err)
	for range 50 {
		_, err = l.Session().AppendSurface(prompt("hello"), outcrop.Tail, outcrop.NoSources)
		must(t, errors.Join(err, l.Flush(ctx)))
	}
	must(t, l.Close(ctx))
	count := &counting{Store: st}
	all(t, count, dir)
	if count.read < 50 {
		t.Fatalf("%d records at first", count.read)
	}
	count.read = 0
	all(t, count, dir)
	if count.read != 0 {
		t.Errorf("%d records again", count.read)
	}
	l, err = store.Open(ctx, st, "s1", store.Options{})
	must(t, err)
	_, err = l.Session().Append(outcrop.SessionTitle{Title: "given", Source: "user"})
	must(t, errors.Join(err, l.Close(ctx)))
	if e := all(t, count, dir); e[0].Title != "given" || count.read > 5 {
		t.Errorf("title %q, %d records", e[0].Title, count.read)
	}
}

// counting counts the records that are read.
type counting struct {
	*jsonl.Store
	read int
}

type countingLog struct {
	store.Marked
	c *counting
}

func (c *counting) Follow(ctx context.Context, id string) (store.Following, error) {
	f, err := c.Store.Follow(ctx, id)
	if err != nil {
		return nil, err
	}
	return &countingLog{f.(store.Marked), c}, nil
}

func (l *countingLog) Next(ctx context.Context) iter.Seq2[outcrop.Record, error] {
	return func(yield func(outcrop.Record, error) bool) {
		for r, err := range l.Marked.Next(ctx) {
			l.c.read++
			if !yield(r, err) {
				return
			}
		}
	}
}

// BenchmarkWarmList lists 15,000 sessions that a catalogue knows. Its floor is
// finding and looking at the same files: a folder is read a project, and folder,
// log and lock of each session are looked at by as many goroutines as there are
// processors. Both are measured in turn, each figure is the least of all runs, and
// x-floor says how many floors a listing costs; CPU time is that of all processors.
func BenchmarkWarmList(b *testing.B) {
	const sessions = 15_000
	root, state := filepath.Join(b.TempDir(), "store"), b.TempDir()
	// What a store would write, without its syncs.
	for i := range sessions {
		cwd := fmt.Sprintf("/home/dev/project-%d", i%20)
		h := outcrop.NewHeader(fmt.Sprintf("%016x", i*0x9E3779B9), 1, cwd)
		dir := filepath.Join(root, jsonl.ProjectKey(cwd), jsonl.EncodeSegment(h.ID))
		must(b, os.MkdirAll(dir, 0o700))
		enc := wire.NewEncoder(wire.Zstd)
		file, err := enc.Batch(enc.Header(nil, h), func(yield func(outcrop.Record) bool) {
			yield(outcrop.Record{Event: outcrop.Event{Type: "session/title", Seq: 0, Time: int64(i), Data: []byte(`{"title":"what it is about","messageSeqs":[],"source":"user"}`)}})
		})
		must(b, err)
		must(b, os.WriteFile(filepath.Join(dir, "session.jsonl.zstd"), file, 0o600))
		must(b, os.WriteFile(filepath.Join(dir, "session.lock"), nil, 0o600))
	}
	st, err := jsonl.New(root, jsonl.Options{})
	must(b, err)
	ctx := context.Background()
	all(b, st, state)
	b.Run("list", func(b *testing.B) {
		var floor, floorCPU, list, listCPU time.Duration
		measure := func(wall, cpu *time.Duration, f func()) {
			used, start := cputime.Used(), time.Now()
			f()
			took, used := time.Since(start), cputime.Used()-used
			if *wall == 0 || took < *wall {
				*wall = took
			}
			if *cpu == 0 || used < *cpu {
				*cpu = used
			}
		}
		for b.Loop() {
			measure(&floor, &floorCPU, func() { lookAtAll(b, root) })
			measure(&list, &listCPU, func() {
				c := collection.Of(st, collection.Options{State: state})
				entries, err := c.List(ctx)
				must(b, err)
				if len(entries) != sessions || !entries[0].Whole {
					b.Fatalf("%d sessions, %+v", len(entries), entries[0])
				}
				must(b, c.Save(rand.Read))
			})
		}
		for name, d := range map[string]time.Duration{"floor-ms": floor, "floor-cpu-ms": floorCPU, "ms": list, "cpu-ms": listCPU} {
			b.ReportMetric(float64(d.Microseconds())/1000, name)
		}
		b.ReportMetric(list.Seconds()/floor.Seconds(), "x-floor")
		b.ReportMetric(0, "ns/op")
	})
	b.Run("cold", func(b *testing.B) {
		for b.Loop() {
			_, err := st.List(ctx, store.ListOptions{})
			must(b, err)
		}
	})
}

// lookAtAll finds the sessions of a root and looks at their files.
func lookAtAll(b *testing.B, root string) {
	projects, err := os.ReadDir(root)
	must(b, err)
	var dirs []string
	for _, p := range projects {
		entries, err := os.ReadDir(filepath.Join(root, p.Name()))
		must(b, err)
		for _, e := range entries {
			dirs = append(dirs, filepath.Join(root, p.Name(), e.Name()))
		}
	}
	var wait sync.WaitGroup
	n := runtime.GOMAXPROCS(0)
	for w := range n {
		wait.Go(func() {
			for i := w; i < len(dirs); i += n {
				for _, name := range [...]string{"", "/session.jsonl.zstd", "/session.lock"} {
					if _, err := os.Stat(dirs[i] + name); err != nil {
						panic(err)
					}
				}
			}
		})
	}
	wait.Wait()
}

// A log that somebody holds, whose last batch lacks the end of its checksum, says
// what a full reading recovers.
func TestOfAHeldLogAsMuchIsReadAsCanBe(t *testing.T) {
	dir := t.TempDir()
	st, err := jsonl.New(dir, jsonl.Options{})
	must(t, err)
	l, err := store.Create(t.Context(), st, outcrop.NewHeader("s0", 1, ""), store.Options{})
	must(t, err)
	_, err = l.Session().AppendSurface(prompt("hello"), outcrop.Tail, outcrop.NoSources)
	must(t, errors.Join(err, l.Close(t.Context())))
	logs, err := filepath.Glob(filepath.Join(dir, "*", "s0", "session.jsonl*"))
	must(t, err)
	b, err := os.ReadFile(logs[0])
	must(t, err)
	must(t, os.WriteFile(logs[0], b[:len(b)-2], 0o600))
	l, err = store.Open(t.Context(), st, "s0", store.Options{})
	must(t, err)
	defer l.Close(t.Context())
	got := all(t, st, t.TempDir())
	if len(got) != 1 || got[0].State != store.StateLocked || got[0].Events != 1 || got[0].Title != "hello" {
		t.Fatalf("%+v", got)
	}
}
