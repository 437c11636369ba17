package demo_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/outcrop-dev/outcrop/internal/demo"
	"github.com/outcrop-dev/outcrop/internal/term"
)

func now() int64 { return time.Now().UnixMilli() }

func TestTheDemoHoldsWhatItClaims(t *testing.T) {
	if runtime.GOOS == "windows" {
		return // it has no wc
	}
	dir := t.TempDir()
	r, err := demo.Run(t.Context(), demo.Options{Dir: dir, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Faults) > 0 {
		t.Errorf("faults: %q", r.Faults)
	}
	if r.Prefixes != r.Log.Len() || r.Requests == 0 || r.Rebuilt != r.Requests || r.Crash.Results != 1 {
		t.Errorf("%d of %d prefixes, %d of %d requests, %d closing results", r.Prefixes, r.Log.Len(), r.Rebuilt, r.Requests, r.Crash.Results)
	}
	if len(r.Turns) != 3 {
		t.Fatalf("%d turns", len(r.Turns))
	}
	for i, turn := range r.Turns {
		if n := len(turn.Done); turn.Prompt == "" || n == 0 || turn.Done[n-1].Answer == "" {
			t.Errorf("turn %d: %+v", i+1, turn)
		}
	}
	text := r.Text("oc", func(command string) bool { return command == "show" })
	if !strings.Contains(text, "  oc show last") || strings.Contains(text, "oc surface") {
		t.Errorf("other commands than there are:\n%s", text)
	}
	shown, _, _ := strings.Cut(text, "\nLook at it ")
	for _, l := range strings.Split(shown, "\n") {
		if term.Columns(l) > term.Width {
			t.Errorf("too wide: %s", l)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 3 {
		t.Errorf("the folder holds %v (%v)", entries, err)
	}
}

func TestAFolderThatIsInUseIsRefused(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "work"), 0o700); err != nil {
		t.Fatal(err)
	}
	if r, err := demo.Run(t.Context(), demo.Options{Dir: dir, Now: now}); err == nil {
		t.Errorf("it ran: %+v", r)
	}
}
