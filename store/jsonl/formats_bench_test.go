package jsonl

import (
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/outcrop-dev/outcrop/internal/cputime"
	"github.com/outcrop-dev/outcrop/internal/faultfs"
	"github.com/outcrop-dev/outcrop/internal/genlog"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/wire"
)

// everyAge is genlog.Home as a root, whose files are a day old.
func everyAge(b *testing.B, n int) string {
	root := b.TempDir()
	old := time.Now().Add(-24 * time.Hour)
	err := genlog.Home(n, func(_, format int, id, cwd string, file []byte) error {
		dir := filepath.Join(root, ProjectKey(cwd), EncodeSegment(id))
		path := filepath.Join(dir, FileName(format, wire.Zstd))
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(path, file, 0o600); err != nil {
			return err
		}
		if err := os.Chtimes(path, old, old); err != nil {
			return err
		}
		return os.Chtimes(dir, old, old)
	})
	if err != nil {
		b.Fatal(err)
	}
	return root
}

// best is the least that several runs of something took.
type best struct{ wall, cpu time.Duration }

func (m *best) run(f func()) {
	cpu, from := cputime.Used(), time.Now()
	f()
	wall := time.Since(from)
	cpu = cputime.Used() - cpu
	if m.wall == 0 || wall < m.wall {
		m.wall = wall
	}
	if m.cpu == 0 || cpu < m.cpu {
		m.cpu = cpu
	}
}

// against reports what was measured beside its limit. CPU time is that of all
// processors, and says more on a machine with other work; 0 where the system
// does not tell.
func (m *best) against(b *testing.B, floor best) {
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	b.ReportMetric(ms(m.wall), "ms")
	b.ReportMetric(ms(m.cpu), "cpu-ms")
	b.ReportMetric(ms(floor.wall), "floor-ms")
	b.ReportMetric(ms(floor.cpu), "floor-cpu-ms")
	b.ReportMetric(floor.wall.Seconds()/m.wall.Seconds(), "ratio")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkListOfEveryAge lists a dsh home of 15,000 sessions of mixed age.
// The limit of a listing that knows nothing is that of BenchmarkList: a walk that
// opens every log and reads the same bytes of it, older files included. That of a
// listing again, when nothing changed, is looking at the folder and the log of
// each session, by as many goroutines as there are processors; the folders of the
// projects are read for both. Each is the least of all runs.
func BenchmarkListOfEveryAge(b *testing.B) {
	const sessions = 15_000
	root := everyAge(b, sessions)
	b.Run("anew", func(b *testing.B) {
		var ours, floor best
		for b.Loop() {
			var infos []store.Info
			ours.run(func() {
				s, err := New(root, Options{})
				ok(b, err)
				infos, err = s.List(bg, store.ListOptions{})
				ok(b, err)
			})
			if len(infos) != sessions {
				b.Fatal(len(infos))
			}
			for _, in := range infos {
				if in.State != store.StateOK {
					b.Fatalf("%+v", in)
				}
			}
			floor.run(func() {
				if n := bareWalk(b, root); n < sessions {
					b.Fatal(n)
				}
			})
		}
		ours.against(b, floor)
	})
	s, err := New(root, Options{})
	ok(b, err)
	listed, err := s.ListKnown(bg, nil)
	ok(b, err)
	kept := map[string]store.Kept{}
	for _, l := range listed {
		kept[l.Place] = store.Kept{Stamp: l.Stamp, ID: l.Info.ID, Path: l.Info.Path}
	}
	b.Run("again", func(b *testing.B) {
		var ours, floor best
		for b.Loop() {
			var listed []store.Listed
			ours.run(func() {
				s, err := New(root, Options{})
				ok(b, err)
				listed, err = s.ListKnown(bg, func(place string) (store.Kept, bool) { k, ok := kept[place]; return k, ok })
				ok(b, err)
			})
			for i := range listed {
				if len(listed) != sessions || listed[i].Info != nil {
					b.Fatalf("%d sessions, %+v", len(listed), listed[i])
				}
			}
			floor.run(func() { bareLook(b, root, kept) })
		}
		ours.against(b, floor)
	})
}

// bareLook finds the sessions of a root and looks at their folders and logs.
func bareLook(b *testing.B, root string, logs map[string]store.Kept) {
	projects, err := os.ReadDir(root)
	ok(b, err)
	var dirs, files []string
	for _, p := range projects {
		dir := filepath.Join(root, p.Name())
		entries, err := os.ReadDir(dir)
		ok(b, err)
		for _, e := range entries {
			dirs = append(dirs, filepath.Join(dir, e.Name()))
		}
	}
	for _, dir := range dirs {
		files = append(files, filepath.Base(logs[dir].Path))
	}
	var wait sync.WaitGroup
	part := (len(dirs) + runtime.GOMAXPROCS(0) - 1) / runtime.GOMAXPROCS(0)
	for from := 0; from < len(dirs); from += part {
		wait.Go(func() {
			at := &glancer{disk: faultfs.Real}
			defer at.close()
			for i := from; i < min(from+part, len(dirs)); i++ {
				for _, name := range [...]string{"", files[i]} {
					if _, err := at.look(dirs[i], name); err != nil {
						panic(err)
					}
				}
			}
		})
	}
	wait.Wait()
}
