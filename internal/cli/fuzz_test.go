package cli_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/outcrop-dev/outcrop/internal/cli"
)

// readers are the commands that FuzzReaders runs, without the path.
var readers = [][]string{
	{"show"}, {"show", "--log"}, {"show", "--log", "--json"}, {"show", "--raw"}, {"show", "--model-view"},
	{"surface"}, {"surface", "--json", "--closed"}, {"surface", "--diff", "1..4"}, {"messages", "--json"}, {"messages", "--format", "openai"},
	{"request"}, {"request", "--turn", "1", "--diff"}, {"request", "--body"}, {"lineage"}, {"verify"},
}

// FuzzReaders gives any bytes to a command that reads a log file. It may not
// panic, end with an unknown code, or fail without a sentence; nor may its text
// for people hold a control character of the file.
func FuzzReaders(f *testing.F) {
	log, err := os.ReadFile(sample(f))
	if err != nil {
		f.Fatal(err)
	}
	header := `{"type":"session","version":0,"id":"x","createdAt":1,"delegationDepth":0}` + "\n"
	for which := range readers {
		f.Add(log, false, uint8(which))
		f.Add(log[:3000], false, uint8(which))
		f.Add([]byte(header+`{"type":"user/message","seq":0,"time":2,"data":{}}`+"\n"), false, uint8(which))
	}
	for i, l := range realLogs(f) {
		if b, err := os.ReadFile(l.path); err == nil && len(b) < 3000 {
			f.Add(b, strings.HasSuffix(l.path, ".zstd"), uint8(i))
		}
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, b []byte, compressed bool, which uint8) {
		path := filepath.Join(dir, "x.jsonl")
		if compressed {
			path += ".zstd"
		}
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		args := append([]string{}, readers[int(which)%len(readers)]...)
		forPeople := len(args) == 1 || args[1] == "--log" && len(args) == 2 || args[1] == "--model-view"
		if args = append(args, path); args[0] == "lineage" {
			args = append(args, "3")
		}
		var out, errOut bytes.Buffer
		code := cli.Main(context.Background(), args, cli.Env{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errOut, Dir: dir, Getenv: func(string) string { return "" }})
		if code < 0 || code > 3 {
			t.Errorf("%v: exit %d", args, code)
		}
		if code != 0 && errOut.Len() == 0 && args[0] != "verify" {
			t.Errorf("%v: exit %d without a word", args, code)
		}
		text := errOut.String()
		if forPeople {
			text += out.String()
		}
		if strings.ContainsFunc(text, func(r rune) bool { return r != '\n' && (r < 0x20 || r >= 0x7f && r < 0xa0) }) {
			t.Errorf("%v: control characters reach the terminal: %q", args, text)
		}
	})
}
