package collection_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/klauspost/compress/zstd"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/collection"
	"github.com/outcrop-dev/outcrop/internal/genlog"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/jsonl"
	"github.com/outcrop-dev/outcrop/wire"
)

// dshHome is a root that another program changes.
type dshHome struct {
	t     *testing.T
	root  string
	clock time.Time // of the last change
}

const dshCwd = "/home/dev"

func (h *dshHome) dir(id string) string {
	return filepath.Join(h.root, jsonl.ProjectKey(dshCwd), jsonl.EncodeSegment(id))
}

func (h *dshHome) path(id string, format int) string {
	return filepath.Join(h.dir(id), jsonl.FileName(format, wire.Zstd))
}

// log is the log of a session in a format.
func (h *dshHome) log(id string, format, events int) []byte {
	h.t.Helper()
	file, err := genlog.Aged(1, events, format, wire.Plain)
	must(h.t, err)
	line, rest, _ := bytes.Cut(file, []byte("\n"))
	line = bytes.Replace(line, []byte(`"`+genlog.Header(1).ID+`"`), fmt.Appendf(nil, "%q", id), 1)
	line = bytes.Replace(line, []byte(*genlog.Header(1).Cwd), []byte(dshCwd), 1)
	z, err := zstd.NewWriter(nil, zstd.WithEncoderCRC(true))
	must(h.t, err)
	defer z.Close()
	return z.EncodeAll(rest, z.EncodeAll(append(line, '\n'), nil))
}

// events is how many events a log has, in the view.
func (h *dshHome) events(about int) (n int) {
	for range genlog.Events(1, about) {
		n++
	}
	return n
}

func (h *dshHome) write(path string, b []byte) {
	h.t.Helper()
	must(h.t, os.MkdirAll(filepath.Dir(path), 0o700))
	must(h.t, os.WriteFile(path, b, 0o600))
}

// grow appends an event to a log, in place.
func (h *dshHome) grow(path string, seq int, event string) {
	h.t.Helper()
	z, err := zstd.NewWriter(nil, zstd.WithEncoderCRC(true))
	must(h.t, err)
	defer z.Close()
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	must(h.t, err)
	_, err = f.Write(z.EncodeAll(fmt.Appendf(nil, event+"\n", seq), nil))
	must(h.t, err)
	must(h.t, f.Close())
}

// settle gives everything that was changed a time of its own that is long ago:
// what changed just now is looked at whatever is known.
func (h *dshHome) settle() {
	h.t.Helper()
	h.clock = h.clock.Add(time.Second)
	limit := time.Now().Add(-time.Hour)
	must(h.t, filepath.WalkDir(h.root, func(path string, d os.DirEntry, err error) error {
		must(h.t, err)
		if fi, err := os.Stat(path); err != nil || fi.ModTime().Before(limit) {
			return nil // a link that leads nowhere has no time
		}
		return os.Chtimes(path, h.clock, h.clock)
	}))
}

// store is the root as a new process opens it.
func (h *dshHome) store() store.Store {
	st, err := jsonl.New(h.root, jsonl.Options{Now: func() int64 { return time.Now().UnixMilli() }})
	must(h.t, err)
	return st
}

const (
	turnStart = `{"type":"turn/start","seq":%d,"time":1760000900000,"data":{"turn":900}}`
	turnEnd   = `{"type":"turn/end","seq":%d,"time":1760000900001,"data":{"turn":900,"reason":{"kind":"interrupted"}}}`
)

// Whatever another program does to a home, the very next listing says what one
// says that knows nothing, with logs that were read and without.
func TestTheNextListingSeesEveryChange(t *testing.T) {
	h := &dshHome{t: t, root: filepath.Join(t.TempDir(), "sessions"), clock: time.Now().Add(-100 * time.Hour)}
	// s is changed, the others stay.
	h.write(h.path("s", 1), h.log("s", 1, 350))
	for format := range 5 {
		id := fmt.Sprintf("other-%d", format)
		h.write(h.path(id, format), h.log(id, format, 40+format))
	}
	aside, events := t.TempDir(), h.events
	states := map[string]string{"heads": t.TempDir(), "whole": t.TempDir()}
	for _, step := range []struct {
		name string
		do   func()
		want string // what is said of s: state, format and events of each entry
	}{
		{"at first", func() {}, fmt.Sprint("ok 1 ", events(350))},
		{"nothing happened", func() {}, fmt.Sprint("ok 1 ", events(350))},
		{"the log grows in place", func() { h.grow(h.path("s", 1), events(350), turnStart) }, fmt.Sprint("open-turn 1 ", events(350)+1)},
		{"it grows again", func() { h.grow(h.path("s", 1), events(350)+1, turnEnd) }, fmt.Sprint("ok 1 ", events(350)+2)},
		{"it is cut in place", func() {
			must(t, os.WriteFile(h.path("s", 1), h.log("s", 1, 20), 0o600))
		}, fmt.Sprint("ok 1 ", events(20))},
		{"another file of its size and time takes its place", func() {
			fi, err := os.Stat(h.path("s", 1))
			must(t, err)
			dir, err := os.Stat(h.dir("s"))
			must(t, err)
			b, err := os.ReadFile(h.path("s", 1))
			must(t, err)
			b[len(b)-1] ^= 1
			other := filepath.Join(aside, "other")
			must(t, os.WriteFile(other, b, 0o600))
			must(t, os.Chtimes(other, fi.ModTime(), fi.ModTime()))
			must(t, os.Rename(other, h.path("s", 1)))
			must(t, os.Chtimes(h.dir("s"), dir.ModTime(), dir.ModTime()))
		}, "* 1 *"},
		{"a good one does", func() {
			other := filepath.Join(aside, "other")
			must(t, os.WriteFile(other, h.log("s", 1, 150), 0o600))
			must(t, os.Rename(other, h.path("s", 1)))
		}, fmt.Sprint("ok 1 ", events(150))},
		{"it is converted to a later format", func() { h.write(h.path("s", 3), h.log("s", 3, 250)) }, fmt.Sprint("ok 3 ", events(250))},
		{"what it was before grows", func() { h.grow(h.path("s", 1), events(150), turnStart) }, fmt.Sprint("ok 3 ", events(250))},
		{"what it was before goes", func() { must(t, os.Remove(h.path("s", 1))) }, fmt.Sprint("ok 3 ", events(250))},
		{"the later log grows", func() { h.write(h.path("s", 3), h.log("s", 3, 450)) }, fmt.Sprint("ok 3 ", events(450))},
		{"it is converted again", func() { h.write(h.path("s", 4), h.log("s", 4, 550)) }, fmt.Sprint("ok 4 ", events(550))},
		{"a format comes that is not known", func() { h.write(h.path("s", 9), []byte("?")) }, "newer 4 *"},
		{"it goes", func() { must(t, os.Remove(h.path("s", 9))) }, fmt.Sprint("ok 4 ", events(550))},
		{"the latest log goes", func() { must(t, os.Remove(h.path("s", 4))) }, fmt.Sprint("ok 3 ", events(450))},
		{"a plain log of the same format comes", func() { h.write(strings.TrimSuffix(h.path("s", 3), ".zstd"), []byte("{}")) }, "damaged 3 *"},
		{"it goes again", func() { must(t, os.Remove(strings.TrimSuffix(h.path("s", 3), ".zstd"))) }, fmt.Sprint("ok 3 ", events(450))},
		{"the log is a folder", func() {
			must(t, os.Rename(h.path("s", 3), filepath.Join(aside, "log")))
			must(t, os.Mkdir(h.path("s", 3), 0o700))
		}, "damaged 0 *"},
		{"it is a log again", func() {
			must(t, os.Remove(h.path("s", 3)))
			must(t, os.Rename(filepath.Join(aside, "log"), h.path("s", 3)))
		}, fmt.Sprint("ok 3 ", events(450))},
		{"the folder is empty", func() { must(t, os.Rename(h.path("s", 3), filepath.Join(aside, "log"))) }, ""},
		{"it has a log again", func() { must(t, os.Rename(filepath.Join(aside, "log"), h.path("s", 3))) }, fmt.Sprint("ok 3 ", events(450))},
		{"the folder goes", func() { must(t, os.Rename(h.dir("s"), filepath.Join(aside, "s"))) }, ""},
		{"it comes back", func() { must(t, os.Rename(filepath.Join(aside, "s"), h.dir("s"))) }, fmt.Sprint("ok 3 ", events(450))},
		{"the session is in a second folder too", func() {
			h.write(filepath.Join(h.root, "--other--", "s", "session.v3.jsonl.zstd"), h.log("s", 3, 450))
		}, "damaged 3 * damaged 3 *"},
		{"only there", func() { must(t, os.Rename(h.dir("s"), filepath.Join(aside, "s"))) }, "damaged 3 *"},
		{"only here", func() {
			must(t, os.RemoveAll(filepath.Join(h.root, "--other--")))
			must(t, os.Rename(filepath.Join(aside, "s"), h.dir("s")))
		}, fmt.Sprint("ok 3 ", events(450))},
		{"a new session comes", func() { h.write(h.path("new", 2), h.log("new", 2, 10)) }, fmt.Sprint("ok 3 ", events(450))},
		{"a log comes where none belongs", func() { h.write(filepath.Join(h.root, "--other--", "session.jsonl"), nil) }, fmt.Sprint("ok 3 ", events(450))},
		{"all goes", func() { must(t, os.Rename(h.root, filepath.Join(aside, "all"))) }, ""},
	} {
		step.do()
		if _, err := os.Stat(h.root); err == nil && !strings.HasPrefix(step.name, "another file of its") {
			h.settle()
		}
		for name, state := range states {
			whole := name == "whole"
			want, err := h.store().List(context.Background(), store.ListOptions{Full: whole})
			must(t, err)
			for range 2 {
				got := h.list(state, whole)
				if d := cmp.Diff(alike(want), alike(got), cmpopts.EquateEmpty(), cmpopts.IgnoreUnexported(outcrop.Header{})); d != "" {
					t.Errorf("%s, %s (-nothing known +known):\n%s", step.name, name, d)
				}
				if whole {
					if said := said(got); !matches(said, step.want) {
						t.Errorf("%s: %q, want %q", step.name, said, step.want)
					}
				}
			}
		}
	}
}

// list is one run of the command; it reads the logs when they are asked for.
func (h *dshHome) list(state string, whole bool) []store.Info {
	h.t.Helper()
	c := collection.Of(h.store(), collection.Options{State: state})
	entries, err := c.List(context.Background())
	must(h.t, err)
	for i := range entries {
		if whole {
			must(h.t, c.Learn(context.Background(), &entries[i]))
		}
	}
	must(h.t, c.Save(rand.Read))
	return infos(entries)
}

// alike are entries in one order. A log of which nothing could be read has no time
// but its file's.
func alike(list []store.Info) []store.Info {
	list = slices.Clone(list)
	folders := map[string]int{}
	for i := range list {
		folders[list[i].ID]++
	}
	for i := range list {
		in := &list[i]
		if in.State == store.StateDamaged || in.State == store.StateNewer {
			in.UpdatedAt = 0
		}
		if folders[in.ID] > 1 { // nobody can read it by its id
			in.Title, in.Events, in.Turns = "", -1, -1
		}
	}
	store.SortInfos(list)
	return list
}

func said(list []store.Info) string {
	var out []string
	for _, in := range list {
		if in.ID == "s" {
			format, _ := jsonl.FormatOf(in.Path)
			out = append(out, fmt.Sprint(in.State, " ", format, " ", in.Events))
		}
	}
	return strings.Join(out, " ")
}

// matches compares words; * stands for any.
func matches(got, want string) bool {
	return slices.EqualFunc(strings.Fields(got), strings.Fields(want), func(g, w string) bool { return w == "*" || g == w })
}
