package files_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/outcrop-dev/outcrop/tool/files"
)

// project is a workspace with what searches have to leave out or find.
func project(t *testing.T) *place {
	p := newPlace(t)
	for name, text := range map[string]string{
		".gitignore":        "*.log\n/build/\n",
		".git/config":       "needle in git\n",
		"main.go":           "package main\n\nfunc needle() {}\n",
		"sub/a.go":          "// Needle\nvar x = 1\n",
		"sub/deep/b.ts":     "needle one\r\nplain\r\nneedle two\r\n",
		"sub/deep/c.md":     "nothing\n",
		"sub/.gitignore":    "!keep.log\ndeep/c.md\n",
		"sub/keep.log":      "needle kept\n",
		"sub/drop.log":      "needle dropped\n",
		"build/out.go":      "needle built\n",
		"sub/build/in.go":   "needle in a build below\n",
		"bin":               "needle\x00\n",
		"utf16":             "\xff\xfen\x00",
		"latin":             "na\xefve needle\n",
		"odd\nname [1].txt": "needle\n",
	} {
		p.put(name, text)
	}
	if err := os.Symlink("main.go", filepath.Join(p.dir, "link.go")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("..", filepath.Join(p.dir, "sub", "loop")); err != nil {
		t.Fatal(err)
	}
	return p
}

func TestGlobFindsFilesByPattern(t *testing.T) {
	p := project(t)
	for _, c := range []struct {
		name string
		args args
		text string
		code string
	}{
		{"a name in every directory", args{"pattern": "*.go"}, "link.go\nmain.go\nsub/a.go\nsub/build/in.go\n", ""},
		{"in the directory itself", args{"pattern": "/*.go"}, "link.go\nmain.go\n", ""},
		{"in the directory itself, with a dot", args{"pattern": "./*.go"}, "link.go\nmain.go\n", ""},
		{"an absolute pattern", args{"pattern": p.dir + "/sub/*.go"}, "sub/a.go\n", ""},
		{"any directories", args{"pattern": "sub/**/*.{go,ts}"}, "sub/a.go\nsub/build/in.go\nsub/deep/b.ts\n", ""},
		{"below a path", args{"pattern": "*.go", "path": "sub"}, "sub/a.go\nsub/build/in.go\n", ""},
		{"from a path", args{"pattern": "deep/*", "path": "sub"}, "sub/deep/b.ts\n", ""},
		{"ignored files are left out", args{"pattern": "*.log"}, "sub/keep.log\n", ""},
		{"ignored files are found when asked for", args{"pattern": "*.log", "ignored": true}, "sub/drop.log\nsub/keep.log\n", ""},
		{"a directory that is ignored can be looked at", args{"pattern": "*", "path": "build"}, "build/out.go\n", ""},
		{"what is below .git is left out", args{"pattern": "config", "ignored": true}, "(no file matches)\n", ""},
		{"a name with a line end", args{"pattern": "odd*"}, "\"odd\\nname [1].txt\"\n", ""},
		{"no pattern", args{"pattern": ""}, "the pattern is empty", "INVALID_ARGS"},
		{"a pattern that is none", args{"pattern": "[a"}, "brackets", "INVALID_ARGS"},
		{"a pattern that leads up", args{"pattern": "../*"}, "lead up", "INVALID_ARGS"},
		{"braces without end", args{"pattern": strings.Repeat("{a,b}", 20)}, "combinations", "INVALID_ARGS"},
		{"a long pattern", args{"pattern": strings.Repeat("a", 2000)}, "1000 bytes", "INVALID_ARGS"},
		{"a path that is a file", args{"pattern": "*", "path": "main.go"}, "main.go is not a directory", "NOT_A_DIRECTORY"},
		{"a path that is not there", args{"pattern": "*", "path": "no"}, "no does not exist", "NOT_FOUND"},
		{"a path outside", args{"pattern": "*", "path": ".."}, "outside the workspace", "OUTSIDE_WORKSPACE"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text, code, _ := p.call("glob", c.args)
			if code != c.code || code == "" && text != c.text || !strings.Contains(text, c.text) {
				t.Errorf("%s %q, want %s %q", code, text, c.code, c.text)
			}
		})
	}
}

func TestGlobSortsByTimeWhenAsked(t *testing.T) {
	p := newPlace(t)
	for i, name := range []string{"b", "c", "a", "d"} {
		p.put(name, "")
		at := time.Unix(int64(1_000_000-i/2), 0) // two and two are equally old
		if err := os.Chtimes(filepath.Join(p.dir, name), at, at); err != nil {
			t.Fatal(err)
		}
	}
	if text, _, _ := p.call("glob", args{"pattern": "*", "newest": true}); text != "b\nc\na\nd\n" {
		t.Errorf("%q", text)
	}
	for i := range files.MaxFound {
		p.put(fmt.Sprintf("many/%d", i), "")
	}
	text, _, _ := p.call("glob", args{"pattern": "*"})
	if n := strings.Count(text, "\n"); n != files.MaxFound+1 || !strings.HasSuffix(text, "[4 more files match; choose a narrower pattern or path]\n") {
		t.Errorf("%d lines, end %q", n, text[len(text)-80:])
	}
}

func TestGrepFindsLines(t *testing.T) {
	p := project(t)
	for _, c := range []struct {
		name string
		args args
		text string
		code string
	}{
		{"below the workspace", args{"pattern": "needle"},
			"latin\n1:na\uFFFDve needle\n\nmain.go\n3:func needle() {}\n\n\"odd\\nname [1].txt\"\n1:needle\n\nsub/build/in.go\n1:needle in a build below\n\nsub/deep/b.ts\n1:needle one\n3:needle two\n\nsub/keep.log\n1:needle kept\n", ""},
		{"any case", args{"pattern": "NEEDLE", "ignore_case": true, "glob": "*.go"}, "main.go\n3:func needle() {}\n\nsub/a.go\n1:// Needle\n\nsub/build/in.go\n1:needle in a build below\n", ""},
		{"names only", args{"pattern": "needle", "files_only": true, "glob": "sub/**"}, "sub/build/in.go\nsub/deep/b.ts\nsub/keep.log\n", ""},
		{"a glob counts from the path", args{"pattern": "needle", "path": "sub", "glob": "/deep/*"}, "sub/deep/b.ts\n1:needle one\n3:needle two\n", ""},
		{"context", args{"pattern": "Needle|^}", "path": "sub/a.go", "context": 3}, "sub/a.go\n1:// Needle\n2-var x = 1\n", ""},
		{"line ends are no part of a line", args{"pattern": "(one|two)$", "path": "sub/deep"}, "sub/deep/b.ts\n1:needle one\n3:needle two\n", ""},
		{"a limit", args{"pattern": "needle", "path": "sub/deep", "limit": 1}, "sub/deep/b.ts\n1:needle one\n[stopped after 1 matching lines; there may be more: choose a narrower pattern, path or glob]\n", ""},
		{"just the limit", args{"pattern": "needle", "path": "sub/deep", "limit": 2}, "sub/deep/b.ts\n1:needle one\n3:needle two\n", ""},
		{"a limit of files", args{"pattern": "needle", "files_only": true, "limit": 1}, "latin\n[stopped after 1 files; there may be more: choose a narrower pattern, path or glob]\n", ""},
		{"ignored files when asked for", args{"pattern": "needle", "path": "build", "ignored": true}, "build/out.go\n1:needle built\n", ""},
		{"a file through a link", args{"pattern": "needle", "path": "link.go"}, "main.go\n3:func needle() {}\n", ""},
		{"an ignored file that is named", args{"pattern": "needle", "path": "sub/drop.log"}, "sub/drop.log\n1:needle dropped\n", ""},
		{"nothing", args{"pattern": "absent"}, "(no match)\n", ""},
		{"a binary file that is named", args{"pattern": "needle", "path": "bin"}, "binary or UTF-16", "BINARY"},
		{"no pattern", args{"pattern": ""}, "pattern is empty", "INVALID_ARGS"},
		{"a pattern that is none", args{"pattern": "a(b"}, "missing closing )", "INVALID_ARGS"},
		{"too much context", args{"pattern": "a", "context": 21}, "context is 0 to 20", "INVALID_ARGS"},
		{"a limit below zero", args{"pattern": "a", "limit": -1}, "limit is 1 to 2000", "INVALID_ARGS"},
		{"a path that is not there", args{"pattern": "a", "path": "no"}, "no does not exist", "NOT_FOUND"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text, code, _ := p.call("grep", c.args)
			if code != c.code || code == "" && text != c.text || !strings.Contains(text, c.text) {
				t.Errorf("%s\n%s\nwant %s\n%s", code, text, c.code, c.text)
			}
		})
	}
}

func TestGrepShowsContextOnce(t *testing.T) {
	p := newPlace(t)
	var text strings.Builder
	for i := range 40_000 { // more than is read at a time
		fmt.Fprintf(&text, "line %d\n", i+1)
	}
	p.put("f", text.String())
	for _, c := range []struct{ name, pattern, want string }{
		{"matches near each other", "line (10|13)$", "f\n8-line 8\n9-line 9\n10:line 10\n11-line 11\n12-line 12\n13:line 13\n14-line 14\n15-line 15\n"},
		{"matches apart", "line (10|20)$", "f\n8-line 8\n9-line 9\n10:line 10\n11-line 11\n12-line 12\n--\n18-line 18\n19-line 19\n20:line 20\n21-line 21\n22-line 22\n"},
		{"both ends", "line (1|40000)$", "f\n1:line 1\n2-line 2\n3-line 3\n--\n39998-line 39998\n39999-line 39999\n40000:line 40000\n"},
	} {
		if got, _, _ := p.call("grep", args{"pattern": c.pattern, "context": 2}); got != c.want {
			t.Errorf("%s: %s\nwant %s", c.name, got, c.want)
		}
	}
}

func TestGrepOfLongLinesShowsTheMatch(t *testing.T) {
	p := newPlace(t)
	p.put("min.js", strings.Repeat("é", 5000)+"needle"+strings.Repeat("y", 10_000)+"\nneedle\n")
	text, _, _ := p.call("grep", args{"pattern": "needle"})
	if !strings.HasPrefix(text, "min.js\n1:[...] éé") || !strings.Contains(text, "éneedley") || !strings.HasSuffix(text, "yyy [...]\n2:needle\n") || len(text) > 600 {
		t.Errorf("%q", text)
	}
	// 256 MiB without a line end, and a line behind it.
	f, err := os.Create(filepath.Join(p.dir, "huge"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("needle at the start" + strings.Repeat("x", 10_000)); err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte("\nneedle after it\n"), 256<<20); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	within(t, 8<<20, func() { text, _, _ = p.call("grep", args{"pattern": "needle", "path": "huge"}) })
	if !strings.HasPrefix(text, "huge\n1:needle at the startxxx") || !strings.Contains(text, " [...]\n2:needle after it\n") ||
		!strings.HasSuffix(text, "[lines over 262144 bytes in 1 file; only the beginning of those was searched]\n") {
		t.Errorf("%.100q ... %q", text, text[max(0, len(text)-200):])
	}
}

// A result has a limit, and so has what is kept of each file for it.
func TestGrepOfManyMatchesIsBounded(t *testing.T) {
	p := newPlace(t)
	line := strings.Repeat("needle ", 50)
	for i := range 40 {
		p.put(fmt.Sprintf("f%02d", i), strings.Repeat(line+"\n", 5000))
	}
	var text string
	within(t, 64<<20, func() {
		text, _, _ = p.call("grep", args{"pattern": "needle", "limit": files.MaxMatches, "context": 20})
	})
	if len(text) > files.MaxRead+1000 || !strings.Contains(text, "[stopped after ") {
		t.Errorf("%d bytes, end %q", len(text), text[len(text)-100:])
	}
}

// within fails when f allocates more than so many bytes.
func within(t *testing.T, most uint64, f func()) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > most {
		t.Errorf("%d bytes were allocated, at most %d are needed", got, most)
	}
}

func TestASearchEndsWhenItIsCancelled(t *testing.T) {
	p := newPlace(t)
	for i := range 200 {
		p.put(fmt.Sprintf("d%d/f", i), "needle\n")
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for name, a := range map[string]args{"grep": {"pattern": "absent"}, "glob": {"pattern": "*"}, "list": {}, "read": {"path": "d1/f"}} {
		raw, err := json.Marshal(a)
		if err != nil {
			t.Fatal(err)
		}
		tl, call, bad := p.reg.Check("c1", name, string(raw))
		if bad != nil {
			t.Fatal(bad)
		}
		if out := p.reg.Run(ctx, tl, call); out.Err == nil || out.Err.Code != "ABORTED" {
			t.Errorf("%s: %+v", name, out)
		}
	}
}

// What grep shows are the lines that the expression matches.
func TestGrepAgreesWithTheExpression(t *testing.T) {
	p := newPlace(t)
	expressions := []string{"a", "ab", "a+b", "^a", "b$", "^$", "(?i)Ks", "s", "(a|b)c", "a{2}", "x*", `\bab\b`, "[^a]", "é", "(?i)É", ".c.", "(?:ab)+c", "K", "a.*b"}
	rapid.Check(t, func(rt *rapid.T) {
		lines := rapid.SliceOfN(rapid.StringMatching(`[abcksKé\x{212A} ]{0,6}`), 0, 30).Draw(rt, "lines")
		end := rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(rt, "line end")
		text := strings.Join(lines, end)
		if rapid.Bool().Draw(rt, "line end at the end") {
			text += end
		}
		p.put("f", text)
		expr := rapid.SampledFrom(expressions).Draw(rt, "expression")
		fold := rapid.Bool().Draw(rt, "any case")
		re := regexp.MustCompile(expr)
		if fold {
			re = regexp.MustCompile("(?i)" + expr)
		}
		lines = strings.Split(text, end)
		if n := len(lines); lines[n-1] == "" {
			lines = lines[:n-1] // behind the last line end there is no line
		}
		want := ""
		for i, l := range lines {
			if re.MatchString(l) {
				want += fmt.Sprintf("%d:%s\n", i+1, l)
			}
		}
		if want == "" {
			want = "(no match)\n"
		} else {
			want = "f\n" + want
		}
		if got, _, _ := p.call("grep", args{"pattern": expr, "ignore_case": fold}); got != want {
			rt.Fatalf("%q in %q (any case %v): got %q, want %q", expr, text, fold, got, want)
		}
	})
}

func TestParallelCallsDoNotDisturbEachOther(t *testing.T) {
	p := project(t)
	calls := []struct {
		name string
		args args
	}{
		{"grep", args{"pattern": "needle"}}, {"glob", args{"pattern": "**"}}, {"list", args{}}, {"read", args{"path": "main.go"}}, {"grep", args{"pattern": "n", "limit": 1}},
	}
	want := make([]string, len(calls))
	for i, c := range calls {
		want[i], _, _ = p.call(c.name, c.args)
	}
	errs := make(chan error, 40)
	for i := range 40 {
		go func() {
			c := calls[i%len(calls)]
			if got, _, _ := p.call(c.name, c.args); got != want[i%len(calls)] {
				errs <- fmt.Errorf("%s: %q, want %q", c.name, got, want[i%len(calls)])
				return
			}
			errs <- nil
		}()
	}
	var all error
	for range 40 {
		all = errors.Join(all, <-errs)
	}
	if all != nil {
		t.Error(all)
	}
}
