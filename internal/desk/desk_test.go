package desk_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/desk"
	"github.com/outcrop-dev/outcrop/internal/exit"
)

// at makes a desk in a folder, with an environment.
func at(dir string, env map[string]string) (*desk.Desk, *strings.Builder) {
	said := &strings.Builder{}
	return desk.New(desk.Env{
		Stdin: strings.NewReader(""), Stdout: &strings.Builder{}, Stderr: said, Dir: dir,
		Getenv: func(name string) string { return env[name] },
	}), said
}

func TestTheStoreIsWhereTheNearestWordSays(t *testing.T) {
	dir := t.TempDir()
	home := filepath.Join(dir, "home")
	for _, c := range []struct {
		name, flag      string
		env             map[string]string
		address, origin string
	}{
		{"the flag first", "jsonl:x", map[string]string{"OUTCROP_STORE": "jsonl:y", "HOME": home}, "jsonl:x", "--store"},
		{"then the variable", "", map[string]string{"OUTCROP_STORE": "jsonl:y", "HOME": home}, "jsonl:y", "OUTCROP_STORE"},
		{"then this program's own folder", "", map[string]string{"OUTCROP_HOME": "oc", "HOME": home}, "jsonl:" + filepath.Join(dir, "oc", "sessions"), "default"},
		{"then the folder for data", "", map[string]string{"XDG_DATA_HOME": filepath.Join(dir, "xdg"), "HOME": home}, "jsonl:" + filepath.Join(dir, "xdg", "outcrop", "sessions"), "default"},
		{"a relative one does not count", "", map[string]string{"XDG_DATA_HOME": "xdg", "HOME": home}, "jsonl:" + filepath.Join(home, ".local", "share", "outcrop", "sessions"), "default"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, _ := at(dir, c.env)
			d.Flags.Store = c.flag
			address, origin, err := d.StoreAddress()
			if err != nil || address != c.address || origin != c.origin {
				t.Errorf("%s from %s, %v; want %s from %s", address, origin, err, c.address, c.origin)
			}
		})
	}
	d, _ := at(dir, nil)
	if _, _, err := d.StoreAddress(); exit.Code(err) != 2 {
		t.Errorf("without a home: %v", err)
	}
}

func TestATargetIsAPathOrASession(t *testing.T) {
	dir := t.TempDir()
	log := append(outcrop.NewHeader("s1", 1, "").Line(), '\n')
	if err := os.WriteFile(filepath.Join(dir, "a.jsonl"), log, 0o600); err != nil {
		t.Fatal(err)
	}
	d, _ := at(dir, map[string]string{"OUTCROP_STORE": "jsonl:store"})
	for _, name := range []string{"a.jsonl", "./a.jsonl", filepath.Join(dir, "a.jsonl")} {
		target, err := d.Resolve(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		sd, err := target.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if sd.Header().ID != "s1" || target.Path != filepath.Join(dir, "a.jsonl") || target.Name != name {
			t.Errorf("%s is %+v", name, target)
		}
		if err := sd.Close(); err != nil {
			t.Error(err)
		}
	}
	for _, name := range []string{"", "b.jsonl", ".", "./b", "s1", "last"} {
		if _, err := d.Resolve(t.Context(), name); exit.Code(err) != 2 {
			t.Errorf("%q: exit code %d, %v", name, exit.Code(err), err)
		}
	}
}

func TestANoteIsSilencedByQuietAProblemIsNot(t *testing.T) {
	d, said := at(t.TempDir(), nil)
	d.Note("%d things", 2)
	d.Flags.Quiet = true
	d.Note("more")
	d.Problem(errors.New("it broke"))
	if got, want := said.String(), "outcrop: 2 things\noutcrop: it broke\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestTheProgramsOwnLogGoesToAFileAndItsWarningsToStderr(t *testing.T) {
	dir := t.TempDir()
	d, said := at(dir, nil)
	d.Flags.LogFile = "log.txt"
	if err := d.OpenLog(); err != nil {
		t.Fatal(err)
	}
	d.Logger.Info("fine")
	d.Logger.Warn("not fine")
	if err := d.LogFile.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(dir, "log.txt"))
	if err != nil || strings.Count(string(b), "\n") != 2 {
		t.Errorf("the file has %q, %v", b, err)
	}
	if got := said.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "not fine") {
		t.Errorf("stderr has %q", got)
	}
	d.Flags.LogLevel = "loud"
	if err := d.OpenLog(); exit.Code(err) != 2 {
		t.Errorf("--log-level loud: %v", err)
	}
}

func TestStderrIsDivertedForAWhileTheLogToo(t *testing.T) {
	d, said := at(t.TempDir(), nil)
	if err := d.OpenLog(); err != nil {
		t.Fatal(err)
	}
	var screen strings.Builder
	back := d.Divert(&screen)
	d.Note("a note")
	d.Logger.Warn("a warning")
	back()
	d.Note("afterwards")
	if got, want := said.String(), "outcrop: afterwards\n"; got != want {
		t.Errorf("stderr %q, want %q", got, want)
	}
	if got := screen.String(); !strings.HasPrefix(got, "outcrop: a note\n") || !strings.Contains(got, "a warning") {
		t.Errorf("the screen got %q", got)
	}
}
