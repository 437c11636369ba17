// Package conformance reads the handed test cases: language-neutral vectors
// with the values that dsh's own code returned, and real dsh logs with what
// dsh reads from them. Only tests import it.
package conformance

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// Dir is the module's testdata folder.
func Dir() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(file), "..", "..", "testdata")
}

// Cases calls run as a subtest for each case of testdata/vectors/NAME.jsonl.gz,
// decoded into T; T has a member Name.
func Cases[T any](t *testing.T, name string, caseName func(*T) string, run func(*testing.T, *T)) {
	t.Helper()
	n := 0
	for _, line := range Lines(t, name) {
		var c T
		if err := json.Unmarshal(line, &c); err != nil {
			t.Fatalf("%s: case %d: %v", name, n, err)
		}
		n++
		t.Run(caseName(&c), func(t *testing.T) { run(t, &c) })
	}
	if n == 0 {
		t.Fatalf("%s: no cases", name)
	}
}

// Lines returns the raw lines of testdata/vectors/NAME.jsonl.gz.
func Lines(t testing.TB, name string) [][]byte {
	t.Helper()
	f, err := os.Open(filepath.Join(Dir(), "vectors", name+".jsonl.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var out [][]byte
	r := bufio.NewReaderSize(z, 1<<20)
	for {
		line, err := r.ReadBytes('\n')
		if len(line) > 1 {
			out = append(out, line[:len(line)-1])
		}
		if err != nil {
			return out
		}
	}
}
