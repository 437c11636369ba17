package files_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/outcrop-dev/outcrop/tool"
	"github.com/outcrop-dev/outcrop/tool/files"
)

// A result ends with a whole line and says where to go on, so that nothing of
// a long file is cut out of the middle.
func TestReadOfALongFileCanBeGoneOnWith(t *testing.T) {
	p := newPlace(t)
	var whole strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&whole, "line %d has some text of its own\n", i)
	}
	p.put("long.txt", whole.String())
	var got strings.Builder
	offset := 1
	for offset > 0 {
		text, code, _ := p.call("read", args{"path": "long.txt", "offset": offset})
		if code != "" || len(text) > files.MaxRead+200 {
			t.Fatalf("%s, %d bytes", code, len(text))
		}
		i := strings.LastIndex(text, "[lines ")
		if i < 0 {
			got.WriteString(text)
			break
		}
		got.WriteString(text[:i])
		var from, to, of int
		if _, err := fmt.Sscanf(text[i:], "[lines %d to %d of %d; go on with offset %d]", &from, &to, &of, &offset); err != nil || from > to || of != 5000 {
			t.Fatalf("%q: %v", text[i:], err)
		}
	}
	if got.String() != whole.String() {
		t.Error("the parts are not the whole")
	}
}

func TestReadOfALineThatIsTooLongShowsItsBeginning(t *testing.T) {
	p := newPlace(t)
	p.put("one.txt", "short\n"+strings.Repeat("é", 50_000)+"\nlast\n")
	text, _, _ := p.call("read", args{"path": "one.txt"})
	if text != "short\n[lines 1 to 1 of 3; go on with offset 2]" {
		t.Errorf("%.200q", text)
	}
	text, _, _ = p.call("read", args{"path": "one.txt", "offset": 2})
	shown := files.MaxRead - files.MaxRead%2
	want := strings.Repeat("é", shown/2) + fmt.Sprintf("\n[line 2 is cut: %d bytes of it are not shown; grep finds a place in it]\n[lines 2 to 2 of 3; go on with offset 3]", 100_001-files.MaxRead)
	if text != want {
		t.Errorf("end %q, want %q", text[len(text)-150:], want[len(want)-150:])
	}
}

// A sparse file of 256 MiB without a line end: memory does not grow with it.
func TestReadOfAHugeFileTakesOnlyWhatItShows(t *testing.T) {
	p := newPlace(t)
	f, err := os.Create(filepath.Join(p.dir, "huge.log"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(strings.Repeat("a line of text\n", 1000)); err != nil {
		t.Fatal(err)
	}
	if err := f.Truncate(256 << 20); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	var text, code string
	var out tool.Outcome
	// Of the line of zeros too only the beginning is kept.
	within(t, 4<<20, func() {
		_, code, _ = p.call("read", args{"path": "huge.log", "offset": 1001})
		text, code, out = p.call("read", args{"path": "huge.log", "offset": 2, "limit": 1})
	})
	if code != "" || text != "a line of text\n[lines 2 to 2, more follow; go on with offset 3]" {
		t.Errorf("%s %q", code, text)
	}
	if out.Meta != nil {
		t.Errorf("a digest of a file that was not read to its end: %s", out.Meta)
	}
	for _, name := range []string{"write", "edit"} {
		a := args{"path": "huge.log", "content": "x"}
		if name == "edit" {
			a = args{"path": "huge.log", "edits": []args{{"old": "a", "new": "b"}}}
		}
		if _, code, _ := p.call(name, a); code != "TOO_LARGE" {
			t.Errorf("%s: %s", name, code)
		}
	}
}

// What read shows of any range are the lines of the file.
func TestReadShowsTheLinesOfAnyRange(t *testing.T) {
	p := newPlace(t)
	rapid.Check(t, func(rt *rapid.T) {
		lines := rapid.SliceOfN(rapid.SampledFrom([]string{"a\n", "\n", "b b\n", strings.Repeat("x", 70_000) + "\n"}), 1, 8).Draw(rt, "lines")
		if rapid.Bool().Draw(rt, "no line end") {
			lines = append(lines, "end")
		}
		p.put("f", strings.Join(lines, ""))
		first := rapid.IntRange(1, len(lines)).Draw(rt, "offset")
		limit := rapid.IntRange(1, 10).Draw(rt, "limit")
		text, code, _ := p.call("read", args{"path": "f", "offset": first, "limit": limit})
		if code != "" {
			rt.Fatal(code)
		}
		want, size := "", 0
		for i := first - 1; i < len(lines) && i < first-1+limit; i++ {
			if size += len(lines[i]); size > files.MaxRead {
				break
			}
			want += lines[i]
		}
		if want == "" {
			want = lines[first-1][:files.MaxRead]
		}
		if !strings.HasPrefix(text, want) {
			rt.Fatalf("%.80q, want %.80q", text, want)
		}
		if rest := strings.TrimPrefix(text[len(want):], "\n"); rest != "" && !strings.HasPrefix(rest, "[line") {
			rt.Fatalf("more is shown: %.80q", rest)
		}
	})
}

func FuzzReadRange(f *testing.F) {
	f.Add("a\nb\r\n", 1, 1, false)
	f.Add("\xff\xfea\x00", 0, 0, true)
	f.Add("\ufeff", 3, 2, false)
	f.Add("a\rb\r\n\n", -1, 9, true)
	f.Add("\xff", 1, 1, false)
	f.Fuzz(func(t *testing.T, content string, offset, limit int, numbers bool) {
		p := newPlace(t)
		p.put("f", content)
		_, code, out := p.call("read", args{"path": "f", "offset": offset, "limit": limit, "numbers": numbers})
		switch code {
		case "", "INVALID_ARGS", "BINARY":
		case "NOT_UTF8":
			if utf8.ValidString(content) {
				t.Errorf("%q is UTF-8: %s", content, code)
			}
		default:
			t.Errorf("%q: %s", content, code)
		}
		if (code == "") != (out.Meta != nil) {
			t.Errorf("code %q and meta %s", code, out.Meta)
		}
	})
}
