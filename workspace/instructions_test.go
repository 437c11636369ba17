package workspace_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/message"
	"github.com/outcrop-dev/outcrop/workspace"
)

// place is a home with a repository in it, and a session that works in a folder
// of the repository.
type place struct {
	t    testing.TB
	base string // the home
	dir  string // the workspace: repo/app
	now  time.Time
	s    *outcrop.Session
	in   *workspace.Instructions
	seen workspace.Seen
	o    workspace.InstructionOptions
	ids  int
}

func newPlace(t *testing.T) *place {
	p := &place{t: t, base: t.TempDir(), now: time.Now()}
	p.dir = filepath.Join(p.base, "repo", "app")
	p.mkdir("repo/app")
	p.mkdir("repo/.git")
	p.o = workspace.InstructionOptions{Dir: p.dir, Home: p.base, Now: func() time.Time { return p.now }}
	p.s = session(t, 1)
	p.begin()
	return p
}

// begin looks anew, as another process does.
func (p *place) begin() {
	p.in, p.seen = workspace.NewInstructions(p.o), workspace.Seen{}
}

func (p *place) mkdir(name string) {
	p.t.Helper()
	if err := os.MkdirAll(filepath.Join(p.base, filepath.FromSlash(name)), 0o700); err != nil {
		p.t.Fatal(err)
	}
}

func (p *place) write(name, text string) {
	p.t.Helper()
	p.mkdir(filepath.ToSlash(filepath.Dir(name)))
	if err := os.WriteFile(filepath.Join(p.base, filepath.FromSlash(name)), []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

func (p *place) remove(name string) {
	p.t.Helper()
	if err := os.RemoveAll(filepath.Join(p.base, filepath.FromSlash(name))); err != nil {
		p.t.Fatal(err)
	}
}

func (p *place) link(to, name string) {
	p.t.Helper()
	if err := os.Symlink(to, filepath.Join(p.base, filepath.FromSlash(name))); err != nil {
		p.t.Fatal(err)
	}
}

func (p *place) call(tool, args string) {
	p.t.Helper()
	if _, err := p.s.Append(outcrop.ToolCall{Turn: 1, Step: 1, CallID: "c", Name: tool, Arguments: args}); err != nil {
		p.t.Fatal(err)
	}
}

// step appends what is due, as the loop does, and returns it as "NAME: the text
// behind the heading".
func (p *place) step() (told []string) {
	p.t.Helper()
	want, err := p.in.Contexts(context.Background(), p.s.Log())
	if err != nil {
		p.t.Fatal(err)
	}
	for _, c := range p.seen.Due(p.s.Messages(), want) {
		p.ids++
		if _, err := p.s.AppendAll(workspace.Candidate(p.s.Header(), fmt.Sprint("i", p.ids), c)); err != nil {
			p.t.Fatal(err)
		}
		_, text, ok := strings.Cut(c.Text, "\n\n")
		if !ok {
			text = "(" + c.Text + ")"
		}
		told = append(told, strings.TrimPrefix(c.Name, "instructions:")+": "+text)
	}
	return told
}

func (p *place) wants(what string, want ...string) {
	p.t.Helper()
	if d := cmp.Diff(want, p.step()); d != "" {
		p.t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

const again = "\n\nThis replaces the earlier message of the same kind."

func TestInstructionsComeFromTheHomeThenFromTheTopOfTheRepositoryDown(t *testing.T) {
	p := newPlace(t)
	p.write("AGENTS.md", "above the repository")
	p.write(".config/outcrop/AGENTS.md", "mine")
	p.write(".config/outcrop/CLAUDE.md", "not read")
	p.write("repo/AGENTS.md", "the repository's")
	p.write("repo/app/CLAUDE.md", "for another program\n")
	p.write("repo/app/AGENTS.md", "\ufeffthe app's\r\nsecond line\r\n\n")
	p.write("repo/app/sub/AGENTS.md", "not named yet")
	p.wants("at first",
		"~/.config/outcrop/AGENTS.md: mine",
		"../AGENTS.md: the repository's",
		"AGENTS.md: the app's\nsecond line",
		"CLAUDE.md: for another program")
	p.wants("unchanged")
	p.begin()
	p.wants("in another process")
	ev := p.s.Log().At(0)
	if want := `{"kind":"outcrop","form":"instructions:~/.config/outcrop/AGENTS.md","digest":"sha256:`; !strings.Contains(string(ev.Data), want) {
		t.Errorf("no digest in %s", ev.Data)
	}
}

func TestAChangeIsToldOnceAndSoIsAnEnd(t *testing.T) {
	p := newPlace(t)
	p.write("repo/app/AGENTS.md", "one")
	p.write("repo/app/CLAUDE.md", "two")
	p.wants("at first", "AGENTS.md: one", "CLAUDE.md: two")
	p.write("repo/app/AGENTS.md", "three")
	p.wants("changed", "AGENTS.md: three"+again)
	p.wants("unchanged")
	p.write("repo/app/AGENTS.md", "one")
	p.wants("changed back", "AGENTS.md: one"+again)
	p.remove("repo/app/AGENTS.md")
	p.wants("removed", "AGENTS.md: (The instructions from the file AGENTS.md do not hold any more.)")
	p.wants("still removed")
	p.begin()
	p.wants("still removed, in another process")
	p.write("repo/app/AGENTS.md", "one")
	p.wants("back", "AGENTS.md: one"+again)
	// What was changed or removed while nobody looked.
	p.write("repo/app/AGENTS.md", "four")
	p.remove("repo/app/CLAUDE.md")
	p.begin()
	p.wants("offline", "AGENTS.md: four"+again, "CLAUDE.md: (The instructions from the file CLAUDE.md do not hold any more.)")
	// A blank file says nothing.
	p.write("repo/app/AGENTS.md", " \n")
	p.wants("blank", "AGENTS.md: (The instructions from the file AGENTS.md do not hold any more.)")
}

func TestAChangeThatLeavesSizeAndTimeIsSeenWhileTheFileIsFresh(t *testing.T) {
	p := newPlace(t)
	path := filepath.Join(p.dir, "AGENTS.md")
	p.write("repo/app/AGENTS.md", "one")
	written := p.now
	stamp := func() {
		if err := os.Chtimes(path, written, written); err != nil {
			t.Fatal(err)
		}
	}
	stamp()
	p.wants("at first", "AGENTS.md: one")
	p.write("repo/app/AGENTS.md", "two")
	stamp()
	p.wants("same size, same time", "AGENTS.md: two"+again)
	// Once the time is old enough to prove something the file is not read again.
	p.now = written.Add(time.Minute)
	p.wants("unchanged")
	p.write("repo/app/AGENTS.md", "six")
	stamp()
	p.wants("a change behind the clock's back")
	written = written.Add(time.Second)
	stamp()
	p.wants("another time", "AGENTS.md: six"+again)
}

func TestWhatAnEditOfTheHistoryCoversIsToldAgain(t *testing.T) {
	p := newPlace(t)
	p.write("repo/app/AGENTS.md", "one")
	p.write("repo/app/sub/AGENTS.md", "below")
	p.write("repo/app/CLAUDE.md", "soon gone")
	p.call("read", `{"path":"sub/a.go"}`)
	p.wants("at first", "AGENTS.md: one", "CLAUDE.md: soon gone", "sub/AGENTS.md: below")
	p.remove("repo/app/CLAUDE.md")
	nodes := p.s.Surface().Nodes()
	_, err := p.s.AppendSurface(outcrop.UserMessage{Message: message.Message{
		Content: []message.Block{message.Text("Summary.")}, Source: message.Source{Kind: "plugin", Plugin: "compact"}}},
		outcrop.Replace(nodes[0], nodes[len(nodes)-1]), outcrop.SourcesOf(nodes...))
	if err != nil {
		t.Fatal(err)
	}
	p.wants("covered", "AGENTS.md: one", "sub/AGENTS.md: below") // that CLAUDE.md is gone nobody has to be told
	p.wants("there again")
}

func TestACallOfAFileToolOpensTheFoldersItNames(t *testing.T) {
	for _, c := range []struct {
		name, tool, args string
		want             []string
	}{
		{"a file", "read", `{"path":"a/b/x.go"}`, []string{"a/AGENTS.md", "a/b/AGENTS.md"}},
		{"a file that is not there", "write", `{"path":"a/new/x.go","content":""}`, []string{"a/AGENTS.md"}},
		{"a file, in the words of dsh", "edit", `{"file_path":"a/x.go"}`, []string{"a/AGENTS.md"}},
		{"a folder", "list", `{"path":"a/b"}`, []string{"a/AGENTS.md", "a/b/AGENTS.md"}},
		{"a folder to search in", "grep", `{"path":"a","pattern":"x"}`, []string{"a/AGENTS.md"}},
		{"the folder that a pattern begins with", "glob", `{"pattern":"a/b/**/x*.go"}`, []string{"a/AGENTS.md", "a/b/AGENTS.md"}},
		{"a pattern below a path", "glob", `{"path":"a","pattern":"b/*.go"}`, []string{"a/AGENTS.md", "a/b/AGENTS.md"}},
		{"a pattern that begins with a wild card", "glob", `{"pattern":"**/a/b/*.go"}`, nil},
		{"the workspace itself", "list", `{}`, nil},
		{"a way around", "read", `{"path":"./a/../a/b/../x.go"}`, []string{"a/AGENTS.md"}},
		{"a path that leads out", "read", `{"path":"../other/x.go"}`, nil},
		{"a pattern that leads out", "glob", `{"pattern":"../other/*"}`, nil},
		{"a tool that works on no files", "shell", `{"path":"a/x.go","command":"cat a/x.go"}`, nil},
		{"arguments that are cut off", "read", `{"path":"a/b/x`, nil},
		{"a path that is no text", "read", `{"path":["a/x"]}`, nil},
		{"a NUL", "read", `{"path":"a/\u0000/x"}`, nil},
		{"the repository's own folder", "read", `{"path":".git/hooks/x"}`, nil},
		{"what was installed", "read", `{"path":"a/node_modules/m/x.js"}`, []string{"a/AGENTS.md"}},
		{"a link that leads out", "read", `{"path":"out/x"}`, nil},
		{"a link that stays inside", "read", `{"path":"in/x"}`, []string{"in/AGENTS.md"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPlace(t)
			for _, d := range []string{"a", "a/b", ".git", ".git/hooks", "a/node_modules/m", "../../elsewhere", "../other"} {
				p.write("repo/app/"+d+"/AGENTS.md", "text of "+d)
			}
			p.link(filepath.Join(p.base, "elsewhere"), "repo/app/out")
			p.link(filepath.Join("a", "b"), "repo/app/in")
			p.call(c.tool, c.args)
			var got []string
			for _, told := range p.step() {
				name, _, _ := strings.Cut(told, ":")
				got = append(got, name)
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
	t.Run("an absolute path", func(t *testing.T) {
		p := newPlace(t)
		p.write("repo/app/a/AGENTS.md", "below")
		p.call("read", `{"path":"`+filepath.ToSlash(p.dir)+`/a/x.go"}`)
		p.wants("named", "a/AGENTS.md: below")
		p.call("read", `{"path":"a/y.go"}`)
		p.wants("named again")
	})
	t.Run("the order is that of the naming", func(t *testing.T) {
		p := newPlace(t)
		p.write("repo/app/z/AGENTS.md", "z")
		p.write("repo/app/a/AGENTS.md", "a")
		p.call("read", `{"path":"z/x"}`)
		p.call("read", `{"path":"a/x"}`)
		p.wants("both", "z/AGENTS.md: z", "a/AGENTS.md: a")
	})
}

func TestWhatCountsAsAnInstructionFile(t *testing.T) {
	for _, c := range []struct {
		name string
		make func(p *place)
		want []string
	}{
		{"nothing", func(*place) {}, nil},
		{"a folder of that name", func(p *place) { p.mkdir("repo/app/AGENTS.md") }, nil},
		{"a link inside the repository", func(p *place) { p.write("repo/doc.md", "x"); p.link("../doc.md", "repo/app/AGENTS.md") }, []string{"AGENTS.md: x"}},
		{"a link out of the repository", func(p *place) { p.write("secret", "x"); p.link("../../secret", "repo/app/AGENTS.md") }, nil},
		{"a link to an absolute path", func(p *place) {
			p.write("repo/doc.md", "x")
			p.link(filepath.Join(p.base, "repo", "doc.md"), "repo/app/AGENTS.md")
		}, nil},
		{"a link to itself", func(p *place) { p.link("AGENTS.md", "repo/app/AGENTS.md") }, nil},
		{"a second name of the same file", func(p *place) { p.write("repo/app/AGENTS.md", "x"); p.link("AGENTS.md", "repo/app/CLAUDE.md") }, []string{"AGENTS.md: x"}},
		{"the same text twice in a folder", func(p *place) { p.write("repo/app/AGENTS.md", "x\n"); p.write("repo/app/CLAUDE.md", "\n x ") }, []string{"AGENTS.md: x"}},
		{"the same text in two folders", func(p *place) { p.write("repo/AGENTS.md", "x"); p.write("repo/app/AGENTS.md", "x") }, []string{"../AGENTS.md: x", "AGENTS.md: x"}},
		{"bytes that are no UTF-8", func(p *place) { p.write("repo/app/AGENTS.md", "a\xff\xfeb") }, []string{"AGENTS.md: a\ufffdb"}},
		{"bytes that are no text", func(p *place) { p.write("repo/app/AGENTS.md", "a\x00b") }, nil},
		{"an import", func(p *place) { p.write("repo/app/AGENTS.md", "@../../secret"); p.write("secret", "x") }, []string{"AGENTS.md: @../../secret"}},
		{"a repository whose .git is a file", func(p *place) {
			p.remove("repo/.git")
			p.write("repo/.git", "gitdir: elsewhere")
			p.write("repo/AGENTS.md", "x")
		}, []string{"../AGENTS.md: x"}},
		{"no repository", func(p *place) {
			p.remove("repo/.git")
			p.write("repo/AGENTS.md", "x")
			p.write("repo/app/AGENTS.md", "y")
		}, []string{"AGENTS.md: y"}},
		{"a repository above a folder for everybody", func(p *place) {
			p.write("repo/AGENTS.md", "x")
			if err := os.Chmod(filepath.Join(p.base, "repo"), 0o777); err != nil {
				p.t.Fatal(err)
			}
		}, nil},
		{"a repository above the home", func(p *place) {
			p.o.Home = p.dir
			p.begin()
			p.write("repo/AGENTS.md", "x")
		}, nil},
		{"other names", func(p *place) {
			p.o.Names = []string{"B.md", "../AGENTS.md", "", ".", "a/b", "A.md"}
			p.begin()
			p.write("repo/AGENTS.md", "x")
			p.write("repo/app/A.md", "a")
			p.write("repo/app/B.md", "b")
		}, []string{"B.md: b", "A.md: a"}},
		{"the person's own folder is the workspace", func(p *place) {
			p.o.Config = p.dir
			p.begin()
			p.write("repo/app/AGENTS.md", "x")
		}, []string{"~/repo/app/AGENTS.md: x"}},
		{"a name that would break a line", func(p *place) {
			p.write("repo/app/a\nb/AGENTS.md", "x")
			p.write("repo/app/a\tb/AGENTS.md", "the one that is named later looks the same, and is not told")
			p.call("read", `{"path":"a\nb/x"}`)
			p.call("read", `{"path":"a\tb/x"}`)
		}, []string{"a?b/AGENTS.md: x"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if runtime.GOOS == "windows" && strings.Contains(c.name, "everybody") {
				t.Skip("folders have no such mode there")
			}
			p := newPlace(t)
			c.make(p)
			p.wants("told", c.want...)
			p.wants("told again")
		})
	}
}

func TestAFileThatCannotBeReadIsNeitherChangedNorGone(t *testing.T) {
	p := newPlace(t)
	p.write("repo/app/sub/AGENTS.md", "below")
	p.call("list", `{"path":"sub"}`)
	p.wants("at first", "sub/AGENTS.md: below")
	p.begin()
	path := filepath.Join(p.dir, "sub", "AGENTS.md")
	if err := os.Truncate(path, 17<<20); err != nil { // too large to be read
		t.Fatal(err)
	}
	p.wants("unreadable")
	p.write("repo/app/sub/AGENTS.md", "below")
	p.wants("readable and the same")
	p.remove("repo")
	p.begin()
	p.wants("no workspace")
}

func TestInstructionsHaveLimits(t *testing.T) {
	p := newPlace(t)
	p.o.MaxBytes, p.o.MaxTotal, p.o.MaxFiles = 10, 24, 4
	p.begin()
	p.write("repo/AGENTS.md", "1234567890")
	p.write("repo/app/AGENTS.md", "123456789é and more")
	for _, d := range []string{"a", "b", "c"} {
		p.write("repo/app/"+d+"/AGENTS.md", d+"bcdefghi")
		p.call("list", `{"path":"`+d+`"}`)
	}
	p.wants("at first",
		"../AGENTS.md: 1234567890",
		"AGENTS.md: 123456789\n[cut here: the file has 20 bytes; read AGENTS.md for the rest]",
		"a/AGENTS.md: abcde\n[cut here: the file has 9 bytes; read a/AGENTS.md for the rest]",
		"b/AGENTS.md: [left out: there are too many instructions; read b/AGENTS.md when you work there]",
	) // c is one too many
	p.wants("again")
	// More room changes nothing as long as the file is the same.
	p.o.MaxTotal = 100
	p.begin()
	p.wants("with more room")
}

func TestALogOfAnotherSessionIsReadFromItsStart(t *testing.T) {
	p := newPlace(t)
	p.write("repo/app/sub/AGENTS.md", "below")
	p.call("list", `{"path":"sub"}`)
	p.wants("at first", "sub/AGENTS.md: below")
	p.s, p.seen = session(t, 0), workspace.Seen{}
	p.wants("nothing was named there")
	p.call("list", `{"path":"sub"}`)
	p.wants("for dsh", "sub/AGENTS.md: below")
	p.wants("for dsh, again")
	p.remove("repo/app/sub")
	p.wants("for dsh, gone", "sub/AGENTS.md: (The instructions from the file sub/AGENTS.md do not hold any more.)")
	p.wants("for dsh, still gone")
}

func TestAnEndedContextEndsTheSearch(t *testing.T) {
	p := newPlace(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := p.in.Contexts(ctx, p.s.Log()); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// However files come and go and whatever is covered meanwhile: what the newest
// copies on the surface say is what the files say.
func TestTheSurfaceSaysWhatTheFilesSay(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p := newPlace(t)
		p.write("repo/.git/HEAD", "x")
		files := []string{"repo/AGENTS.md", "repo/app/AGENTS.md", "repo/app/CLAUDE.md", "repo/app/s/AGENTS.md", "repo/app/s/t/CLAUDE.md"}
		p.call("list", `{"path":"s/t"}`)
		texts := map[string]string{}
		for range rapid.IntRange(1, 20).Draw(rt, "steps") {
			f := rapid.SampledFrom(files).Draw(rt, "file")
			switch rapid.IntRange(0, 4).Draw(rt, "do") {
			case 0:
				p.remove(f)
				delete(texts, f)
			case 1:
				p.begin()
			case 2:
				if nodes := p.s.Surface().Nodes(); len(nodes) > 0 {
					from := rapid.IntRange(0, len(nodes)-1).Draw(rt, "from")
					if _, err := p.s.AppendSurface(outcrop.UserMessage{Message: message.Message{
						Content: []message.Block{message.Text("Summary.")}, Source: message.Source{Kind: "plugin", Plugin: "compact"}}},
						outcrop.Replace(nodes[from], nodes[len(nodes)-1]), outcrop.SourcesOf(nodes[from:]...)); err != nil {
						rt.Fatal(err)
					}
				}
			default:
				texts[f] = rapid.SampledFrom([]string{"one", "two", "three"}).Draw(rt, "text") + " of " + f
				p.write(f, texts[f])
			}
			p.step()
			if more := p.step(); more != nil {
				rt.Fatalf("told again: %v", more)
			}
			inForce := map[string]string{}
			for _, m := range p.s.Messages() {
				msg, err := message.Parse(m.Raw)
				if err != nil {
					rt.Fatal(err)
				}
				name := strings.TrimPrefix(msg.Source.Form, "instructions:")
				if name == msg.Source.Form {
					continue
				}
				text := message.PlainText(msg.Content)
				if strings.HasSuffix(text, "do not hold any more.") {
					delete(inForce, name)
					continue
				}
				_, text, _ = strings.Cut(strings.TrimSuffix(text, again), "\n\n")
				inForce[name] = text
			}
			want := map[string]string{}
			for f, text := range texts {
				name, err := filepath.Rel("repo/app", f)
				if err != nil {
					rt.Fatal(err)
				}
				want[filepath.ToSlash(name)] = text
			}
			if d := cmp.Diff(want, inForce); d != "" {
				rt.Fatalf("(-files +surface):\n%s", d)
			}
		}
	})
}
