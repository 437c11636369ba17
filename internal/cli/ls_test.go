package cli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/outcrop-dev/outcrop/store/jsonl"
)

// Without --full the newest logs are known, up to a size; a listing that finds
// nothing new reads no more than that.
func TestAListingAgainSaysTheSame(t *testing.T) {
	dir := t.TempDir()
	env := map[string]string{"OUTCROP_STORE": "jsonl+plain:store", "HOME": dir}
	long := time.UnixMilli(1_700_000_000_000)
	session := func(name string, updated, size int) {
		t.Helper()
		at := filepath.Join(dir, "store", jsonl.ProjectKey("/home/dev"), name)
		if err := os.MkdirAll(at, 0o700); err != nil {
			t.Fatal(err)
		}
		log := fmt.Sprintf(`{"type":"session","version":0,"id":%q,"createdAt":1,"cwd":"/home/dev","delegationDepth":0}
{"type":"x/more","seq":0,"time":%d,"ignorable":true,"data":%q}
{"type":"session/title","seq":1,"time":%d,"data":{"title":"about %s","messageSeqs":[],"source":"user"}}
`, name, updated, strings.Repeat("x", size), updated, name)
		if err := os.WriteFile(filepath.Join(at, "session.jsonl"), []byte(log), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{filepath.Join(at, "session.jsonl"), at} { // what changed just now is looked at again
			if err := os.Chtimes(path, long, long); err != nil {
				t.Fatal(err)
			}
		}
	}
	titles := func() (known []string) {
		t.Helper()
		code, out, errOut := run(t, dir, env, "ls")
		if code != 0 || errOut != "" {
			t.Fatalf("exit %d: %s", code, errOut)
		}
		for l := range strings.Lines(out) {
			if title, ok := strings.CutPrefix(strings.TrimSpace(l), "about "); ok {
				known = append(known, strings.TrimSuffix(title, " in /home/dev"))
			}
		}
		return known
	}
	for i, name := range []string{"oldest", "older", "new", "newest"} {
		session(name, 1000+i, 3<<19)
	}
	for range 3 {
		if got := strings.Join(titles(), " "); got != "newest new" {
			t.Errorf("known: %s", got)
		}
	}
	// What was known stays so when others come.
	session("just-now", 2000, 3<<19)
	for range 2 {
		if got := strings.Join(titles(), " "); got != "just-now newest new" {
			t.Errorf("known: %s", got)
		}
	}
}
