package jsonl_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"math/rand/v2"
	"path/filepath"
	"sort"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/collection"
	"github.com/outcrop-dev/outcrop/internal/faultfs"
	"github.com/outcrop-dev/outcrop/message"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/blob"
	"github.com/outcrop-dev/outcrop/store/jsonl"
)

const (
	shelfRoot  = "/d/data/sessions"
	shelfState = "/d/state"
)

// shelfWorld is a root with a session that has everything a session can have.
type shelfWorld struct {
	mem  *faultfs.Memory
	file map[string]string // of the session: name and bytes
	id   string            // of its attachment
}

func writeFile(t testing.TB, disk faultfs.FS, path, text string) {
	t.Helper()
	if _, err := faultfs.MakeFolders(disk, filepath.Dir(path)); err != nil {
		t.Fatal(err)
	}
	f, err := disk.OpenFile(path, 0x41|0x200, 0o600) // O_CREATE|O_WRONLY|O_TRUNC
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		t.Fatal(err)
	}
	for d := filepath.Dir(path); ; d = filepath.Dir(d) {
		if err := disk.SyncDir(d); err != nil {
			t.Fatal(err)
		}
		if d == filepath.Dir(d) {
			return
		}
	}
}

func newShelfWorld(t testing.TB) *shelfWorld {
	t.Helper()
	ctx := context.Background()
	w := &shelfWorld{mem: faultfs.NewMemory(), file: map[string]string{}}
	st := w.store(t, w.mem)
	id, err := store.ObjectsOf(st).Put(ctx, []byte("a picture"))
	if err != nil {
		t.Fatal(err)
	}
	w.id = id
	live, err := store.Create(ctx, st, outcrop.NewHeader("s1", 1, "/home/dev"), store.Options{Session: outcrop.Options{Now: func() int64 { return 5 }}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = live.Session().AppendSurface(outcrop.UserMessage{Message: message.Message{Source: message.FromUser, Content: []message.Block{
		message.Text("hello"), {Type: message.ImageBlock, Attachment: fmt.Appendf(nil, `{"attachmentId":%q}`, id)}}}}, outcrop.Tail, outcrop.NoSources)
	if err := errors.Join(err, live.Close(ctx)); err != nil {
		t.Fatal(err)
	}
	writeFile(t, w.mem, shelfRoot+"/--home-dev--/s1/session.torn-99", "cut off")
	writeFile(t, w.mem, shelfState+"/output/s1/bash-1.txt", "long output")
	w.file = w.inStore(t, w.mem)
	if len(w.file) != 2 {
		t.Fatalf("the session has %v", w.file)
	}
	return w
}

func (w *shelfWorld) store(t testing.TB, disk faultfs.FS) *jsonl.Store {
	t.Helper()
	st, err := jsonl.NewOn(disk, shelfRoot, jsonl.Options{Program: "test"})
	if err != nil {
		t.Fatal(err)
	}
	return st
}

// filesIn are the files of a folder but for locks, with their bytes.
func filesIn(t testing.TB, disk faultfs.FS, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	entries, err := disk.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() == "session.lock" {
			continue
		}
		b, err := faultfs.ReadFile(disk, filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		out[e.Name()] = string(b)
	}
	return out
}

func (w *shelfWorld) inStore(t testing.TB, disk faultfs.FS) map[string]string {
	return filesIn(t, disk, shelfRoot+"/--home-dev--/s1")
}

func (w *shelfWorld) collection(t testing.TB, disk faultfs.FS) *collection.Collection {
	return collection.Of(w.store(t, disk), collection.Options{State: shelfState, Disk: disk, Now: func() int64 { return 1000 }})
}

// take moves the session into the trash.
func (w *shelfWorld) take(ctx context.Context, t testing.TB, disk faultfs.FS) error {
	c := w.collection(t, disk)
	entries, err := c.List(ctx)
	if err != nil {
		return err
	}
	if err := c.Learn(ctx, &entries[0]); err != nil {
		return err
	}
	m, err := c.Trash().Lock(ctx, func(string) (store.Store, error) { return w.store(t, disk), nil })
	if err != nil {
		return err
	}
	defer m.Close()
	st := c.Store().(*jsonl.Store)
	held, err := st.Hold(ctx, "s1")
	if err != nil {
		return err
	}
	defer held.Close()
	_, err = m.Take(ctx, st, held, entries[0])
	return err
}

// putBack restores it.
func (w *shelfWorld) putBack(ctx context.Context, t testing.TB, disk faultfs.FS) error {
	c := w.collection(t, disk)
	m, err := c.Trash().Lock(ctx, func(string) (store.Store, error) { return w.store(t, disk), nil })
	if err != nil {
		return err
	}
	defer m.Close()
	i, err := m.Find("s1")
	if err != nil {
		return err
	}
	return m.PutBack(ctx, c.Store(), i)
}

// settled finishes what was interrupted and checks that the session is in one
// place, whole, and says which.
func (w *shelfWorld) settled(t testing.TB, disk faultfs.FS) string {
	t.Helper()
	ctx := context.Background()
	c := w.collection(t, disk)
	m, err := c.Trash().Lock(ctx, func(string) (store.Store, error) { return w.store(t, disk), nil })
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if len(m.Left) > 0 {
		t.Fatalf("left unfinished: %v", m.Left)
	}
	items, err := m.List()
	if err != nil {
		t.Fatal(err)
	}
	infos, err := c.Store().List(ctx, store.ListOptions{Full: true})
	if err != nil {
		t.Fatal(err)
	}
	switch {
	case len(infos) == 1 && len(items) == 0:
		if infos[0].State != store.StateOK || infos[0].Events != 1 {
			t.Fatalf("in the store as %+v", infos[0])
		}
		if d := cmp.Diff(w.file, w.inStore(t, disk)); d != "" {
			t.Fatalf("in the store (-was +is):\n%s", d)
		}
		if b, err := store.ObjectsOf(c.Store()).Get(ctx, w.id); err != nil || string(b) != "a picture" {
			t.Fatalf("its attachment: %q, %v", b, err)
		}
		if got := filesIn(t, disk, shelfState+"/output/s1"); got["bash-1.txt"] != "long output" {
			t.Fatalf("its outputs: %v", got)
		}
		if entries, err := disk.ReadDir(m.Dir()); err != nil || len(entries) != 1 {
			t.Fatalf("the shelf is not empty: %v, %v", entries, err)
		}
		return "store"
	case len(infos) == 0 && len(items) == 1:
		if items[0].Unfinished() {
			t.Fatalf("unfinished: %+v", items[0])
		}
		if d := cmp.Diff(w.file, filesIn(t, disk, m.Log(items[0]))); d != "" {
			t.Fatalf("on the shelf (-was +is):\n%s", d)
		}
		dir := filepath.Dir(m.Log(items[0]))
		if b, err := blob.OpenOn(disk, filepath.Join(dir, "objects")).Get(ctx, w.id); err != nil || string(b) != "a picture" {
			t.Fatalf("its attachment: %q, %v", b, err)
		}
		if got := filesIn(t, disk, filepath.Join(dir, "spill")); got["bash-1.txt"] != "long output" {
			t.Fatalf("its outputs: %v", got)
		}
		return "shelf"
	}
	t.Fatalf("%d sessions in the store, %d on the shelf", len(infos), len(items))
	return ""
}

func TestAMoveThereAndBackLosesNothing(t *testing.T) {
	for _, links := range []bool{true, false} {
		t.Run(fmt.Sprintf("links %v", links), func(t *testing.T) {
			w := newShelfWorld(t)
			disk := faultfs.Inject(w.mem, func(op faultfs.Op) (f faultfs.Fault) {
				if op.Kind == faultfs.OpLink && !links {
					f.Err = syscall.EXDEV // another device
				}
				return f
			})
			if err := w.take(t.Context(), t, disk); err != nil {
				t.Fatal(err)
			}
			if at := w.settled(t, w.mem); at != "shelf" {
				t.Fatalf("it is in the %s", at)
			}
			if _, err := w.mem.ReadDir(shelfRoot + "/--home-dev--/s1"); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("its folder is still there: %v", err)
			}
			if err := w.putBack(t.Context(), t, disk); err != nil {
				t.Fatal(err)
			}
			if at := w.settled(t, w.mem); at != "store" {
				t.Fatalf("it is in the %s", at)
			}
			live, err := store.Open(t.Context(), w.store(t, w.mem), "s1", store.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if err := live.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// A process dies, or the power is lost, before any of the calls that a move
// makes: afterwards the session is in one place, whole.
func TestAnInterruptedMoveIsFinishedOrTakenBack(t *testing.T) {
	seeds := 6
	if testing.Short() {
		seeds = 2
	}
	for name, move := range map[string]func(*shelfWorld, faultfs.FS) error{
		"there": func(w *shelfWorld, d faultfs.FS) error { return w.take(context.Background(), t, d) },
		"back":  func(w *shelfWorld, d faultfs.FS) error { return w.putBack(context.Background(), t, d) },
	} {
		for _, links := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, links %v", name, links), func(t *testing.T) {
				ends := map[string]int{}
				for k := 0; ; k++ {
					done := false
					for seed := range seeds {
						w := newShelfWorld(t)
						if name == "back" {
							if err := w.take(t.Context(), t, w.mem); err != nil {
								t.Fatal(err)
							}
						}
						dead, n := false, 0
						disk := faultfs.Inject(w.mem, func(op faultfs.Op) (f faultfs.Fault) {
							switch op.Kind {
							case faultfs.OpStat, faultfs.OpReadDir, faultfs.OpLock:
								return f
							case faultfs.OpLink:
								if !links {
									f.Err = syscall.EXDEV
								}
							case faultfs.OpOpen:
								if op.Flag&3 == 0 {
									return f
								}
							}
							if n++; n > k {
								dead = true
							}
							if dead {
								f.Err = syscall.EIO
							}
							return f
						})
						err := move(w, disk)
						if !dead {
							if err != nil {
								t.Fatal(err)
							}
							done = true
							break
						}
						random := keepAll{}.rand()
						if seed > 0 {
							random = rand.New(rand.NewPCG(uint64(seed), uint64(k)))
						}
						after := w.mem.PowerCut(random)
						ends[w.settled(t, after)]++
						// Once more: what was settled stays so.
						w.settled(t, after.PowerCut(rand.New(rand.NewPCG(uint64(seed), 7))))
					}
					if done {
						if k < 10 {
							t.Fatalf("the move made %d calls", k)
						}
						break
					}
				}
				if ends["store"] == 0 || ends["shelf"] == 0 {
					t.Errorf("it always ended in the same place: %v", ends)
				}
			})
		}
	}
}

// keepAll makes a loss of power that loses nothing: the death of a process.
type keepAll struct{}

func (keepAll) rand() *rand.Rand { return rand.New(keepAll{}) }

// Uint64 gives 1 for every IntN(4): the fate that keeps all.
func (keepAll) Uint64() uint64 { return 1 }

func TestASessionThatWentOnIsNotTakenForTheCopyOfItself(t *testing.T) {
	w := newShelfWorld(t)
	// The copy is on the shelf, and the store still has the session.
	disk := faultfs.Inject(w.mem, func(op faultfs.Op) (f faultfs.Fault) {
		if op.Kind == faultfs.OpRemove && filepath.Base(op.Path) == "session.jsonl.zstd" {
			f.Err = syscall.EIO
		}
		return f
	})
	if err := w.take(t.Context(), t, disk); err == nil {
		t.Fatal("the move went through")
	}
	live, err := store.Open(t.Context(), w.store(t, w.mem), "s1", store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := live.Session().Append(outcrop.SessionTitle{Title: "it goes on", Source: "user"}); err != nil {
		t.Fatal(err)
	}
	if err := live.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	c := w.collection(t, w.mem)
	m, err := c.Trash().Lock(t.Context(), func(string) (store.Store, error) { return c.Store(), nil })
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if items, err := m.List(); err != nil || len(items) != 0 {
		t.Fatalf("on the shelf: %v, %v", items, err)
	}
	infos, err := c.Store().List(t.Context(), store.ListOptions{Full: true})
	if err != nil || len(infos) != 1 || infos[0].Title != "it goes on" {
		t.Fatalf("in the store: %+v, %v", infos, err)
	}
}

func TestWhatCannotBeMovedIsRefused(t *testing.T) {
	w := newShelfWorld(t)
	ctx := t.Context()
	st := w.store(t, w.mem)
	lease, err := st.Acquire(ctx, "s1")
	if err != nil {
		t.Fatal(err)
	}
	var locked *store.LockedError
	if _, err := st.Hold(ctx, "s1"); !errors.As(err, &locked) || locked.Holder.Program != "test" {
		t.Errorf("a session in use: %v", err)
	}
	if err := lease.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := st.Hold(ctx, "none"); !errors.Is(err, outcrop.ErrNotFound) {
		t.Errorf("a session that is not there: %v", err)
	}
	if err := w.take(ctx, t, w.mem); err != nil {
		t.Fatal(err)
	}
	// Another one has its id now.
	if err := st.Put(ctx, outcrop.NewHeader("s1", 1, "/elsewhere"), func(func(outcrop.Record, error) bool) {}); err != nil {
		t.Fatal(err)
	}
	if err := w.putBack(ctx, t, w.mem); !errors.Is(err, store.ErrExists) {
		t.Errorf("an id that is taken: %v", err)
	}
	items, err := w.collection(t, w.mem).Trash().List()
	if err != nil || len(items) != 1 || items[0].Unfinished() {
		t.Errorf("on the shelf: %+v, %v", items, err)
	}
	for _, place := range []string{"", "x", "../s1", "a/b/s1", "a/../s1", "/s1", "a/other", `a\s1`} {
		if err := st.TakeBack(ctx, "s1", place, w.collection(t, w.mem).Trash().Log(items[0])); !errors.Is(err, outcrop.ErrRefused) {
			t.Errorf("place %q: %v", place, err)
		}
	}
}

func TestARewriteIsAllOrNothing(t *testing.T) {
	for k := 0; ; k++ {
		w := newShelfWorld(t)
		n := 0
		disk := faultfs.Inject(w.mem, func(op faultfs.Op) (f faultfs.Fault) {
			switch op.Kind {
			case faultfs.OpStat, faultfs.OpReadDir, faultfs.OpLock:
				return f
			case faultfs.OpOpen:
				if op.Flag&3 == 0 {
					return f
				}
			}
			if n++; n > k {
				f.Err = syscall.EIO
			}
			return f
		})
		st := w.store(t, disk)
		old := readLog(t, w.store(t, w.mem))
		err := st.Rewrite(t.Context(), "s1", func(_ outcrop.Header, recs recordSeq) (recordSeq, error) {
			for _, err := range recs {
				if err != nil {
					return nil, err
				}
			}
			return func(yield func(outcrop.Record, error) bool) {
				yield(outcrop.Record{Event: outcrop.Event{Type: "session/title", Seq: 0, Time: 1, Data: []byte(`{"title":"new","messageSeqs":[],"source":"user"}`)}}, nil)
			}, nil
		})
		if err == nil {
			if got := readLog(t, w.store(t, w.mem)); bytes.Contains(got, []byte("hello")) || !bytes.Contains(got, []byte("new")) {
				t.Fatalf("rewritten: %s", got)
			}
			if got := w.inStore(t, w.mem); len(got) != 2 {
				t.Fatalf("files: %v", got)
			}
			return
		}
		for seed := range uint64(4) {
			got := readLog(t, w.store(t, w.mem.PowerCut(rand.New(rand.NewPCG(seed, uint64(k))))))
			if !bytes.Equal(got, old) && !(bytes.Contains(got, []byte(`"new"`)) && !bytes.Contains(got, []byte("hello"))) {
				t.Fatalf("cut at call %d: %s", k, got)
			}
		}
	}
}

type recordSeq = iter.Seq2[outcrop.Record, error]

func readLog(t testing.TB, st *jsonl.Store) []byte {
	t.Helper()
	sd, err := st.Read(context.Background(), "s1")
	if err != nil {
		t.Fatal(err)
	}
	defer sd.Close()
	var out []byte
	for r, err := range sd.Records() {
		if err != nil {
			t.Fatal(err)
		}
		out = append(r.AppendJSON(out), '\n')
	}
	return out
}

func TestAListingThatKnowsWhatDidNotChangeSaysTheSame(t *testing.T) {
	w := newShelfWorld(t)
	st := w.store(t, w.mem)
	kept := map[string]store.Listed{}
	list := func() (fresh int, states []string) {
		t.Helper()
		all, err := st.ListKnown(t.Context(), func(place string) (store.Kept, bool) {
			l, ok := kept[place]
			if !ok {
				return store.Kept{}, false
			}
			return store.Kept{Stamp: l.Stamp, ID: l.Info.ID, Path: l.Info.Path}, true
		})
		if err != nil {
			t.Fatal(err)
		}
		was := kept
		kept = map[string]store.Listed{}
		for _, l := range all {
			if l.Info != nil {
				fresh++
			} else if l.Info = was[l.Place].Info; l.Stamp != was[l.Place].Stamp || l.Stamp == "" {
				t.Errorf("%s is kept with the stamp %q, and had %q", l.Place, l.Stamp, was[l.Place].Stamp)
			}
			kept[l.Place] = l
			states = append(states, l.Info.ID+" "+string(l.Info.State))
		}
		sort.Strings(states)
		return fresh, states
	}
	want := func(what string, fresh int, states ...string) {
		t.Helper()
		n, got := list()
		if d := cmp.Diff(states, got); d != "" || n != fresh {
			t.Errorf("%s: %d read anew, not %d (-want +got):\n%s", what, n, fresh, d)
		}
	}
	want("at first", 1, "s1 ok")
	want("again", 0, "s1 ok")
	live, err := store.Open(t.Context(), st, "s1", store.Options{Session: outcrop.Options{Now: func() int64 { return 6 }}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = live.Session().Append(outcrop.TurnStart{Turn: 1})
	if err := errors.Join(err, live.Flush(t.Context())); err != nil {
		t.Fatal(err)
	}
	want("in use", 1, "s1 locked")
	want("in use still", 1, "s1 locked")
	if err := live.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	want("left with an open turn", 1, "s1 open-turn")
	want("that again", 0, "s1 open-turn")
	writeFile(t, w.mem, shelfRoot+"/--home-dev--/s1/session.v5.jsonl", "{}\n")
	want("with a newer generation", 1, "s1 newer")
	// The same id in a second folder.
	writeFile(t, w.mem, shelfRoot+"/--x--/s1/session.jsonl.zstd", w.file["session.jsonl.zstd"])
	want("twice", 2, "s1 damaged", "s1 damaged")
}
