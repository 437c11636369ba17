package jsonl_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/outcrop-dev/outcrop/internal/faultfs"
)

// trace is what was done to each path since its last sync.
type trace struct {
	linked map[string]bool // temporary files that got their name
	last   map[string]faultfs.Kind
	before faultfs.Op // the call before
}

func (tr *trace) add(op faultfs.Op) {
	if tr.last == nil {
		tr.linked, tr.last = map[string]bool{}, map[string]faultfs.Kind{}
	}
	switch op.Kind {
	case faultfs.OpLink:
		tr.linked[op.Path] = true
	case faultfs.OpWrite, faultfs.OpTruncate, faultfs.OpSync:
		tr.last[op.Path] = op.Kind
	case faultfs.OpOpen:
		delete(tr.last, op.Path)
	}
	if op.Kind != faultfs.OpOpen && op.Kind != faultfs.OpStat {
		tr.before = op
	}
}

func logFile(path string) bool {
	return strings.HasPrefix(filepath.Base(path), "session.jsonl")
}

func under(dir string, up int) func(faultfs.Op) bool {
	return func(op faultfs.Op) bool {
		rel, err := filepath.Rel(dir, op.Path)
		return err == nil && !strings.HasPrefix(rel, "..") && len(strings.Split(filepath.ToSlash(rel), "/")) == up && rel != "."
	}
}

// The simulation is worth what it finds: without any one sync of the writer, it
// finds a broken promise soon.
func TestTheSimulationFindsEachSyncThatIsLeftOut(t *testing.T) {
	attachments := filepath.Join(top, "state", "attachments")
	for _, c := range []struct {
		name  string
		spoil func(s *simulation, tr *trace, op faultfs.Op) bool
	}{
		{"of a new log before it gets its name", func(s *simulation, tr *trace, op faultfs.Op) bool {
			return op.Kind == faultfs.OpSync && strings.HasSuffix(op.Path, ".tmp") && !tr.linked[op.Path]
		}},
		{"of the session's folder after that", func(s *simulation, tr *trace, op faultfs.Op) bool {
			return op.Kind == faultfs.OpSyncDir && under(simRoot, 2)(op) && tr.before.Kind == faultfs.OpRemove
		}},
		{"of the project's folder", func(s *simulation, tr *trace, op faultfs.Op) bool {
			return op.Kind == faultfs.OpSyncDir && under(simRoot, 1)(op)
		}},
		{"of the root", func(s *simulation, tr *trace, op faultfs.Op) bool {
			return op.Kind == faultfs.OpSyncDir && op.Path == simRoot
		}},
		{"of the folder that holds the root", func(s *simulation, tr *trace, op faultfs.Op) bool {
			return op.Kind == faultfs.OpSyncDir && op.Path == filepath.Dir(simRoot)
		}},
		{"of the folder above that one", func(s *simulation, tr *trace, op faultfs.Op) bool {
			return op.Kind == faultfs.OpSyncDir && op.Path == top
		}},
		{"of a batch", func(s *simulation, tr *trace, op faultfs.Op) bool {
			published := !strings.HasSuffix(op.Path, ".tmp") || tr.linked[op.Path]
			return op.Kind == faultfs.OpSync && logFile(op.Path) && published && tr.last[op.Path] == faultfs.OpWrite && !s.appending
		}},
		{"of earlier batches before one that ends a turn", func(s *simulation, tr *trace, op faultfs.Op) bool {
			published := !strings.HasSuffix(op.Path, ".tmp") || tr.linked[op.Path]
			return op.Kind == faultfs.OpSync && logFile(op.Path) && published && s.appending && tr.last[op.Path] == faultfs.OpWrite
		}},
		{"of a log that is opened", func(s *simulation, tr *trace, op faultfs.Op) bool {
			return op.Kind == faultfs.OpSync && logFile(op.Path) && tr.last[op.Path] == "" && !strings.Contains(op.Path, ".torn-")
		}},
		{"of the folders of a log that is opened", func(s *simulation, tr *trace, op faultfs.Op) bool {
			return op.Kind == faultfs.OpSyncDir && under(simRoot, 2)(op) && logFile(tr.before.Path) && tr.before.Kind == faultfs.OpSync
		}},
		{"of a torn tail aside", func(s *simulation, tr *trace, op faultfs.Op) bool {
			return op.Kind == faultfs.OpSync && strings.Contains(op.Path, ".torn-")
		}},
		{"of the folder of a torn tail aside", func(s *simulation, tr *trace, op faultfs.Op) bool {
			return op.Kind == faultfs.OpSyncDir && strings.Contains(tr.before.Path, ".torn-")
		}},
		{"of a new attachment before it gets its name", func(s *simulation, tr *trace, op faultfs.Op) bool {
			return op.Kind == faultfs.OpSync && under(attachments, 3)(op)
		}},
		{"of an attachment's folder", func(s *simulation, tr *trace, op faultfs.Op) bool {
			return op.Kind == faultfs.OpSyncDir && under(filepath.Join(attachments, "v1", "objects"), 1)(op)
		}},
		{"of the folder of all attachments", func(s *simulation, tr *trace, op faultfs.Op) bool {
			return op.Kind == faultfs.OpSyncDir && op.Path == filepath.Join(attachments, "v1", "objects")
		}},
		{"of the folder above that of all attachments", func(s *simulation, tr *trace, op faultfs.Op) bool {
			return op.Kind == faultfs.OpSyncDir && op.Path == filepath.Join(attachments, "v1")
		}},
		{"of the folder two above that of all attachments", func(s *simulation, tr *trace, op faultfs.Op) bool {
			return op.Kind == faultfs.OpSyncDir && op.Path == attachments
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			const most = 1000
			for seed := uint64(1); seed <= most; seed++ {
				o := optionsOf(seed)
				o.faults = false
				o.spoil = c.spoil
				if _, err := simulate(t, seed, o); err != nil {
					t.Logf("found with seed %d: %.300s", seed, err)
					return
				}
			}
			t.Errorf("not found with %d seeds", most)
		})
	}
}
