package doctor_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Every code that these packages give is explained in docs/format.md.
func TestFormatPageHasEveryCode(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "docs", "format.md"))
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for _, m := range regexp.MustCompile("`([A-Z][A-Z0-9_]+)`").FindAllStringSubmatch(string(page), -1) {
		listed[m[1]] = true
	}
	codes := regexp.MustCompile(`(?:refuse|damage|headerError|misplaced|warn|bad|fail)\("([A-Z][A-Z0-9_]+)"|(?:Code: +|outcrop\.Code = |WarningKind = |Code = )"([A-Z][A-Z0-9_]+)"|return "([A-Z][A-Z0-9_]+)", `)
	labels := regexp.MustCompile(`(?:bad\(|Violation\{)"([a-z-]+)"`)
	given := 0
	for _, dir := range []string{"..", "../wire", "../store", "../store/jsonl", ".", "repair", "internal/fold"} {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if strings.HasSuffix(f, "_test.go") {
				continue
			}
			src, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			var found []string
			for _, m := range codes.FindAllStringSubmatch(string(src), -1) {
				found = append(found, m[1]+m[2]+m[3])
			}
			if strings.HasSuffix(f, "invariants.go") {
				for _, m := range labels.FindAllStringSubmatch(string(src), -1) {
					found = append(found, strings.ToUpper(strings.ReplaceAll(m[1], "-", "_")))
				}
			}
			for _, c := range found {
				given++
				if !listed[c] {
					t.Errorf("%s: code %s is not in docs/format.md", f, c)
				}
			}
		}
	}
	if given < 80 {
		t.Errorf("only %d codes were found in the sources", given)
	}
}

// Every function and test that docs/traceability.md names is there.
func TestTraceabilityNamesWhatExists(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "docs", "traceability.md"))
	if err != nil {
		t.Fatal(err)
	}
	// Sources and tests of the root package and of those that are named.
	dirs := []string{"", "wire", "store", "store/jsonl", "store/memory", "store/sqlite", "store/storetest", "agent", "history", "history/meter",
		"history/pin", "history/rewind", "llm", "llm/llmtest", "llm/openai", "llm/anthropic", "llm/replay", "tool", "tool/files", "tool/shell",
		"tool/mcp", "tool/history", "workspace", "search", "doctor"}
	sources := map[string]string{} // by path from the root
	tests := map[string]bool{}     // "pkg: TestName", "TestName" for the root
	fn := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	for _, dir := range dirs {
		files, err := filepath.Glob(filepath.Join("..", filepath.FromSlash(dir), "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			src, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			name := strings.TrimPrefix(dir+"/"+filepath.Base(f), "/")
			if !strings.HasSuffix(f, "_test.go") {
				sources[name] = string(src)
				continue
			}
			for _, m := range fn.FindAllStringSubmatch(string(src), -1) {
				if dir == "" {
					tests[m[1]] = true
				} else {
					tests[dir+": "+m[1]] = true
				}
			}
		}
	}
	named := 0
	for _, m := range regexp.MustCompile("`((?:[a-z/]+: )?(?:Test|Fuzz)\\w+)[^`]*`").FindAllStringSubmatch(string(page), -1) {
		named++
		if !tests[m[1]] {
			t.Errorf("no test %s", m[1])
		}
	}
	for _, m := range regexp.MustCompile("`([a-z_/]+\\.go)(?:: ([^`]+))?`").FindAllStringSubmatch(string(page), -1) {
		src, ok := sources[m[1]]
		if !ok {
			t.Errorf("no file %s", m[1])
			continue
		}
		for name := range strings.SplitSeq(m[2], ", ") {
			if name == "" {
				continue
			}
			named++
			last := name[strings.LastIndexByte(name, '.')+1:]
			if !regexp.MustCompile(`(?m)(^func (\([^)]*\) )?|^type |^var |^const |^\t)` + last + `\b`).MatchString(src) {
				t.Errorf("%s has no %s", m[1], name)
			}
		}
	}
	if named < 100 {
		t.Errorf("only %d names were found in the page", named)
	}
}
