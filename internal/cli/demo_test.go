package cli_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func TestReadmeShowsWhatTheDemoPrints(t *testing.T) {
	if runtime.GOOS == "windows" {
		return // it has no wc; the scripts of the demo run elsewhere too
	}
	readme, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	d := newDesk(t, strings.NewReader(""))
	if code := d.run(t.Context(), "demo", "--dir", "d"); code != 0 {
		t.Fatalf("exit %d: %s", code, d.err)
	}
	shown, rest, ok := strings.Cut(d.out.String(), "\nLook at it ")
	if !ok {
		t.Fatalf("the demo ends otherwise:\n%s", d.out)
	}
	if !strings.Contains(string(readme), "```\n"+shown+"```\n") {
		t.Errorf("README.md shows something else than\n%s", shown)
	}
	all := strings.Split(strings.TrimSuffix(shown+rest, "\n"), "\n")
	if len(all) > 40 {
		t.Errorf("%d lines, at most 40 fit on a screen", len(all))
	}
	for _, line := range strings.Split(shown, "\n") {
		if len(line) > 80 {
			t.Errorf("longer than 80 columns: %s", line)
		}
	}
}
