package workspace_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/message"
	"github.com/outcrop-dev/outcrop/workspace"
)

func session(t *testing.T, own int64) *outcrop.Session {
	t.Helper()
	h := outcrop.NewHeader("s1", 1000, "/srv/demo")
	h.Outcrop = own
	s, err := outcrop.New(h, outcrop.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func enter(t *testing.T, s *outcrop.Session, c workspace.Context) outcrop.Event {
	t.Helper()
	evs, err := s.AppendAll(workspace.Candidate(s.Header(), "c1", c))
	if err != nil {
		t.Fatal(err)
	}
	return evs[0]
}

func TestCandidateFitsTheSession(t *testing.T) {
	c := workspace.Context{Name: "runtime", Text: "It is monday."}
	for _, tc := range []struct {
		name string
		own  int64
		typ  outcrop.Type
		data string
	}{
		{"own", 1, outcrop.TypeContextMessage,
			`{"content":[{"type":"text","text":"It is monday."}],"source":{"kind":"outcrop","form":"runtime"},"role":"user","id":"c1"}`},
		{"for dsh", 0, outcrop.TypeUserMessage,
			`{"content":[{"type":"text","text":"It is monday."}],"source":{"kind":"plugin","plugin":"outcrop","form":"snapshot","summary":"runtime"},"role":"user","id":"c1"}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			ev := enter(t, session(t, tc.own), c)
			if ev.Type != tc.typ || string(ev.Data) != tc.data || !ev.Op.IsAppend() || ev.Sources.Known() {
				t.Errorf("%s", ev.AppendJSON(nil))
			}
		})
	}
}

func TestAContextIsDueWhenItIsMissingOrDifferent(t *testing.T) {
	for _, own := range []int64{0, 1} {
		s := session(t, own)
		monday, tuesday := workspace.Context{Name: "runtime", Text: "It is monday."}, workspace.Context{Name: "runtime", Text: "It is tuesday."}
		other := workspace.Context{Name: "instructions", Text: "Be brief."}
		due := func(want ...workspace.Context) []workspace.Context { return workspace.Due(s.Messages(), want) }
		if diff := cmp.Diff([]workspace.Context{monday, other}, due(monday, other)); diff != "" {
			t.Errorf("at first: %s", diff)
		}
		enter(t, s, monday)
		if diff := cmp.Diff([]workspace.Context{other}, due(monday, other)); diff != "" {
			t.Errorf("one is there: %s", diff)
		}
		changed := workspace.Context{Name: "runtime", Text: "It is tuesday.\n\nThis replaces the earlier message of the same kind."}
		if diff := cmp.Diff([]workspace.Context{changed}, due(tuesday)); diff != "" {
			t.Errorf("it changed: %s", diff)
		}
		ev := enter(t, s, changed)
		if got := due(tuesday); got != nil {
			t.Errorf("it is there: %v", got)
		}
		if got := due(monday); len(got) != 1 {
			t.Errorf("changed back: %v", got)
		}
		// An edit of the history takes both copies off the surface.
		_, err := s.AppendSurface(outcrop.UserMessage{Message: message.Message{
			Content: []message.Block{message.Text("Summary.")}, Source: message.Source{Kind: "plugin", Plugin: "compact"}}},
			outcrop.Replace(0, ev.Seq), outcrop.SourceRange(0, ev.Seq))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]workspace.Context{tuesday}, due(tuesday)); diff != "" {
			t.Errorf("covered: %s", diff)
		}
	}
}

func TestAPersonsMessageIsNoContext(t *testing.T) {
	s := session(t, 1)
	_, err := s.AppendSurface(outcrop.UserMessage{Message: message.Message{
		Content: []message.Block{message.Text("It is monday.")}, Source: message.FromUser}}, outcrop.Tail, outcrop.NoSources)
	if err != nil {
		t.Fatal(err)
	}
	if got := workspace.Due(s.Messages(), []workspace.Context{{Name: "", Text: "x"}, {Name: "runtime", Text: "It is monday."}}); len(got) != 2 {
		t.Errorf("due %v", got)
	}
}

func gitDo(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main"}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

func TestSampleOutsideARepository(t *testing.T) {
	dir := t.TempDir()
	// A folder that is no repository, whatever lies above it.
	if err := os.WriteFile(filepath.Join(dir, ".git"), []byte("nothing"), 0o600); err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 3, 1, 23, 59, 0, 0, time.UTC)
	got := workspace.Sample(context.Background(), dir, at)
	want := workspace.Facts{Dir: dir, Day: "2026-03-01", Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if got != want {
		t.Errorf("%+v", got)
	}
	if text := got.Context().Text; text != "Facts about the environment:\n- working directory: "+dir+"\n- date: 2026-03-01\n- platform: "+want.Platform {
		t.Errorf("%q", text)
	}
}

func TestSampleReadsWhatIsCheckedOut(t *testing.T) {
	dir := t.TempDir()
	for file, want := range map[string]string{
		"ref: refs/heads/feature/x\n":                "feature/x",
		"0123456789abcdef0123456789abcdef01234567\n": "0123456789ab",
		"ref: refs/heads/odd\x07name\n":              "odd?name",
		"junk":                                       "",
	} {
		if err := os.MkdirAll(filepath.Join(dir, ".git"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, ".git", "HEAD"), []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
		sub := filepath.Join(dir, "sub")
		if err := os.MkdirAll(sub, 0o700); err != nil {
			t.Fatal(err)
		}
		if got := workspace.Sample(context.Background(), sub, time.Unix(0, 0)).Branch; got != want {
			t.Errorf("%q: branch %q, want %q", file, got, want)
		}
	}
}

func TestSampleSaysWhetherTheTreeIsDirty(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		// Without git the fact is left out; that is all there is to see.
		dir := t.TempDir()
		if err := os.MkdirAll(filepath.Join(dir, ".git"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, ".git", "HEAD"), []byte("ref: refs/heads/main\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if f := workspace.Sample(context.Background(), dir, time.Unix(0, 0)); f.Dirty != workspace.Unknown {
			t.Errorf("%+v", f)
		}
		return
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "a.txt")
	gitDo(t, dir, "init", "-q")
	if err := os.WriteFile(file, []byte("one\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	gitDo(t, dir, "add", "a.txt")
	gitDo(t, dir, "commit", "-qm", "first")
	// A filter that a repository brings along must not run.
	ran := filepath.Join(t.TempDir(), "ran")
	gitDo(t, dir, "config", "filter.evil.clean", "touch "+ran+"; cat")
	gitDo(t, dir, "config", "core.fsmonitor", "touch "+ran+"; false")
	if err := os.WriteFile(filepath.Join(dir, ".gitattributes"), []byte("* filter=evil\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if f := workspace.Sample(context.Background(), dir, time.Unix(0, 0)); f.Branch != "main" || f.Dirty != workspace.No {
		t.Errorf("clean: %+v", f)
	}
	if err := os.WriteFile(file, []byte("three lines\n\n\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f := workspace.Sample(context.Background(), dir, time.Unix(0, 0))
	if f.Dirty != workspace.Yes {
		t.Errorf("changed: %+v", f)
	}
	if _, err := os.Stat(ran); err == nil {
		t.Error("a program that the repository names was run")
	}
	want := "\n- git: on main, with uncommitted changes"
	if text := f.Context().Text; text[len(text)-len(want):] != want {
		t.Errorf("%q", text)
	}
}

// A Seen that went along with the session and a look at every message agree.
func TestWhatWasSeenBeforeIsNotLookedAtAgain(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := session(t, rapid.SampledFrom([]int64{0, 1}).Draw(rt, "own"))
		var seen workspace.Seen
		for range rapid.IntRange(1, 30).Draw(rt, "steps") {
			var want []workspace.Context
			for _, name := range []string{"a", "b", "c"} {
				c := workspace.Context{Name: name, Text: rapid.SampledFrom([]string{"one", "two"}).Draw(rt, "text")}
				if rapid.Bool().Draw(rt, "of a file") {
					c.Digest = "sha256:" + c.Text
				}
				c.Gone = rapid.IntRange(0, 4).Draw(rt, "gone") == 0
				want = append(want, c)
			}
			due := seen.Due(s.Messages(), want)
			if d := cmp.Diff(workspace.Due(s.Messages(), want), due); d != "" {
				rt.Fatalf("(-anew +seen):\n%s", d)
			}
			for _, c := range due {
				enter(t, s, c)
			}
			if more := seen.Due(s.Messages(), want); more != nil {
				rt.Fatalf("still due: %v", more)
			}
			if nodes := s.Surface().Nodes(); len(nodes) > 0 && rapid.IntRange(0, 3).Draw(rt, "edit") == 0 {
				from := rapid.IntRange(0, len(nodes)-1).Draw(rt, "from")
				to := rapid.IntRange(from, len(nodes)-1).Draw(rt, "to")
				if _, err := s.AppendSurface(outcrop.UserMessage{Message: message.Message{
					Content: []message.Block{message.Text("Summary.")}, Source: message.Source{Kind: "plugin", Plugin: "compact"}}},
					outcrop.Replace(nodes[from], nodes[to]), outcrop.SourcesOf(nodes[from:to+1]...)); err != nil {
					rt.Fatal(err)
				}
			}
		}
	})
}

// A directory can be called anything.
func TestTheNameOfADirectoryStaysInItsLine(t *testing.T) {
	f := workspace.Facts{Dir: "/tmp/w\n- date: 1999-01-01\u202e\u009b", Day: "2026-03-01", Platform: "linux/amd64"}
	want := "Facts about the environment:\n- working directory: /tmp/w?- date: 1999-01-01??\n- date: 2026-03-01\n- platform: linux/amd64"
	if got := f.Context().Text; got != want {
		t.Errorf("%q", got)
	}
}
