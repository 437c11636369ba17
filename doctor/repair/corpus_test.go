package repair_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/outcrop-dev/outcrop/doctor"
	"github.com/outcrop-dev/outcrop/doctor/repair"
	"github.com/outcrop-dev/outcrop/internal/conformance"
	"github.com/outcrop-dev/outcrop/wire"
)

// The logs that dsh wrote: where verify finds no more than what opening mends,
// nothing is to be done; the others are repaired, or refused, and what is
// repaired can be continued.
func TestRepairOfTheCorpus(t *testing.T) {
	logs := 0
	err := filepath.WalkDir(filepath.Join(conformance.Dir(), "corpus"), func(path string, d fs.DirEntry, err error) error {
		enc, ok := wire.EncodingOf(path)
		if err != nil || d.IsDir() || !ok || filepath.Base(path) != "session."+string(enc) {
			return err
		}
		logs++
		file, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(conformance.Dir(), path)
		t.Run(name, func(t *testing.T) {
			mended(t, file, enc, repair.Options{ID: "s"})
			found, sum := verify(t, memory(file, enc), doctor.Options{})
			if !sum.OK || slices.ContainsFunc(found, func(f doctor.Finding) bool { return f.Code == "TORN_TAIL" || f.Code == "COMPACTION_OPEN" }) {
				return
			}
			if r, err := repair.NewPlan(t.Context(), memory(file, enc), repair.Options{}); err != nil || len(r.Changes) > 0 {
				t.Errorf("a healthy log: %+v, %v", r, err)
			}
		})
		return nil
	})
	if err != nil || logs < 30 {
		t.Errorf("%d logs, %v", logs, err)
	}
}
