package agent_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/conformance"
	"github.com/outcrop-dev/outcrop/wire"
)

// Every real log that can be read can be gone on with: one more turn, and
// everything in the log that was sound before still is.
func TestRealLogsGoOn(t *testing.T) {
	root := filepath.Join(conformance.Dir(), "corpus")
	ran := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		enc, ok := wire.EncodingOf(path)
		if err != nil || d.IsDir() || !ok {
			return err
		}
		name, _ := filepath.Rel(root, path)
		t.Run(name, func(t *testing.T) {
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			r, err := wire.NewReader(bytes.NewReader(b), int64(len(b)), enc)
			if err != nil {
				if !strings.Contains(name, "corrupt") {
					t.Fatal(err)
				}
				return
			}
			s, err := outcrop.Restore(r.Header(), r.Records(), outcrop.Options{})
			if err != nil {
				if !strings.Contains(name, "corrupt") {
					t.Fatal(err)
				}
				return
			}
			ran++
			synctest.Test(t, func(t *testing.T) {
				live := &memoryLive{s: s, foreign: true}
				n := s.Len()
				a := start(t, live, scripted(t, `{"script":1,"window":0,"end":"last"}`, `{"text":"Going on."}`))
				if out := ask(t, a, "Go on."); out.Reason.Kind != outcrop.Completed || out.Err != nil {
					t.Errorf("outcome %+v", out)
				}
				stop(t, a)
				var inv outcrop.Invariants
				for ev := range outcrop.Events(s.Log(), 0) {
					if v := inv.Check(ev); len(v) > 0 && int(ev.Seq) >= n {
						t.Errorf("event %d %s: %v", ev.Seq, ev.Type, v)
					} else if len(v) > 0 {
						inv.Apply(ev)
					}
					if int(ev.Seq) >= n && !ev.Type.DSH() && !ev.Ignorable {
						t.Errorf("event %d: dsh would refuse a %s", ev.Seq, ev.Type)
					}
				}
				if _, err := outcrop.FoldSurface(s.Log().Records(0)); err != nil {
					t.Error(err)
				}
			})
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if ran < 45 {
		t.Errorf("only %d logs were gone on with", ran)
	}
}
