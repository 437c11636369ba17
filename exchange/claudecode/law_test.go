package claudecode_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/exchange"
	"github.com/outcrop-dev/outcrop/exchange/claudecode"
	"github.com/outcrop-dev/outcrop/exchange/exchangetest"
	"github.com/outcrop-dev/outcrop/store/memory"
)

// tree draws a file whose lines form any graph: branches, circles, parents that
// come later or never, uuids twice, replies in parts, sidechains, compactions.
func tree(t *rapid.T) []string {
	contents := []string{`"p"`, `[]`, `7`, `[` + text("a") + `]`, `[` + text("a") + `,` + use("t1") + `]`, `[` + use("t2") + `,` + use("t2") + `]`, gives("t1"), gives("t2"),
		`[` + think("x") + `]`, `[{"type":"redacted_thinking","data":"r"}]`, `[{"type":"odd"},{"type":"image","source":{"type":"base64","data":"!"}},4]`,
		`[{"type":"tool_result","tool_use_id":"t1","content":[` + text("r") + `,{"type":"image","source":{"type":"url","url":"u"}}]},` + text("more") + `]`}
	var lines []string
	n := rapid.IntRange(1, 24).Draw(t, "lines")
	for i := 1; i <= n; i++ {
		uuid := i
		if rapid.IntRange(0, 9).Draw(t, "twice") == 0 {
			uuid = rapid.IntRange(1, n).Draw(t, "uuid")
		}
		parent := i - 1
		if rapid.IntRange(0, 3).Draw(t, "turns off") == 0 {
			parent = rapid.IntRange(0, n+2).Draw(t, "parent")
		}
		content := rapid.SampledFrom(contents).Draw(t, "content")
		var more []string
		for _, m := range []string{`"isMeta":true`, `"isCompactSummary":true`, `"isApiErrorMessage":true`, `"toolUseResult":{"a":1}`, `"forkedFrom":{"sessionId":"other","messageUuid":"x"}`} {
			if rapid.IntRange(0, 11).Draw(t, "more") == 0 {
				more = append(more, m)
			}
		}
		var l string
		switch rapid.IntRange(0, 12).Draw(t, "kind") {
		case 0, 1, 2, 3:
			l = user(uuid, parent, content, more...)
		case 4, 5, 6, 7, 8:
			msg := fmt.Sprint("m", rapid.IntRange(1, 5).Draw(t, "message"))
			l = assistant(uuid, parent, msg, strings.Trim(content, "[]"), more...)
		case 9:
			l = line("system", uuid, parent, `"subtype":"compact_boundary","compactMetadata":{"preTokens":5,"preservedSegment":{"headUuid":"#`+fmt.Sprint(rapid.IntRange(1, n).Draw(t, "head"))+`","tailUuid":"#`+fmt.Sprint(rapid.IntRange(1, n).Draw(t, "tail"))+`"}}`, `"logicalParentUuid":"#1"`)
		case 10:
			l = line("attachment", uuid, parent, `"attachment":{"type":"queued_command","prompt":"q"}`)
		case 11:
			l = rapid.SampledFrom([]string{`{"type":"summary","summary":"S","leafUuid":"#1"}`, `{"type":"custom-title","customTitle":"T"}`, `junk`, `[]`, ``, `{"type":"x"}`}).Draw(t, "other")
		case 12:
			l = line("progress", uuid, parent, `"data":{}`)
		}
		if rapid.IntRange(0, 5).Draw(t, "side") == 0 {
			l = side(l)
		}
		lines = append(lines, l)
	}
	return lines
}

func TestEveryFileMakesValidSessions(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		file(t, dir, session+".jsonl", tree(rt)...)
		in := exchangetest.Import(rt, force(), dir)
		for _, r := range in.Reports {
			if r.Err != nil && !errors.Is(r.Err, outcrop.ErrDamaged) {
				rt.Fatalf("%v", r.Err)
			}
		}
	})
}

// force is the format, whatever a file looks like.
func force() exchange.Format {
	f := claudecode.Format()
	f.Claims = func(string, []byte) bool { return true }
	return f
}

func TestEveryPrefixOfAFileCanBeImported(t *testing.T) {
	whole, err := os.ReadFile(file(t, t.TempDir(), "x.jsonl",
		user(1, 0, `"2+2?"`), assistant(2, 1, "m1", think("easy")), assistant(3, 2, "m1", use("t1")), user(4, 3, gives("t1")), assistant(5, 4, "m2", text("4"))))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for n := 0; n <= len(whole); n += 7 {
		if err := os.WriteFile(filepath.Join(dir, session+".jsonl"), whole[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		exchangetest.Import(t, force(), dir)
	}
}

// TestAFileThatIsBeingWrittenIsNeverCopied imports a file after each of its
// lines while the program is at work on it, and then when it is finished.
func TestAFileThatIsBeingWrittenIsNeverCopied(t *testing.T) {
	lines := []string{
		user(1, 0, `"go"`), assistant(2, 1, "m1", think("x")), assistant(3, 2, "m1", use("t1")), assistant(4, 3, "m1", use("t2")),
		user(5, 3, gives("t1")), user(6, 4, gives("t2")), `{"type":"custom-title","customTitle":"T"}`,
		assistant(7, 6, "m2", text("half")), assistant(8, 7, "m2", use("t3")), user(9, 8, gives("t3")), assistant(10, 9, "m3", text("done")),
		user(11, 10, `"more"`), assistant(12, 11, "m4", text("yes")),
	}
	dir := t.TempDir()
	in := exchangetest.Imported{Store: memory.New(), Now: time.Now}
	for n := 1; n <= len(lines)+1; n++ {
		if n > len(lines) {
			in.Now = nil
		}
		file(t, dir, session+".jsonl", lines[:min(n, len(lines))]...)
		for _, r := range in.Again(t, claudecode.Format(), dir) {
			for _, o := range r.Sessions {
				if o.Verdict == exchange.Copied || o.ID != session || r.Err != nil {
					t.Fatalf("%d lines: %s %s %s %v", n, o.ID, o.Verdict, o.Why, r.Err)
				}
				exchangetest.Check(t, in.Store, session)
			}
		}
	}
	whole := exchangetest.Import(t, claudecode.Format(), dir)
	if got, want := exchangetest.Texts(t, in.Store, session), exchangetest.Texts(t, whole.Store, session); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func FuzzRead(f *testing.F) {
	for _, lines := range [][]string{
		{user(1, 0, `"2+2?"`), assistant(2, 1, "m1", think("easy")), assistant(3, 2, "m1", use("t1")), user(4, 3, gives("t1"))},
		{user(1, 0, `"a"`), line("system", 2, 0, `"subtype":"compact_boundary","logicalParentUuid":"#1"`), user(3, 2, `"S"`, `"isCompactSummary":true`), side(user(4, 0, `"b"`))},
		{`{"type":"summary","summary":"S","leafUuid":"#1"}`, line("attachment", 1, 0, `"attachment":{"type":"file","filename":"f","content":{"file":{"content":"c"}}}`)},
	} {
		b, err := os.ReadFile(file(f, f.TempDir(), "x.jsonl", lines...))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		claudecode.Claims("x.jsonl", b)
		ctx := context.Background()
		for s, err := range claudecode.Read(ctx, bytes.NewReader(b), "x.jsonl", &exchange.Report{}) {
			if err != nil {
				return
			}
			o := exchange.Options{Objects: exchange.Measure}
			h, err := s.Header(ctx, o)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := outcrop.Restore(h, s.Records(ctx, h, o), outcrop.Options{}); err != nil {
				t.Fatal(err)
			}
		}
	})
}
