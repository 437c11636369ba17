package workspace

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// gitTime bounds how long git may take to say whether the tree is dirty.
const gitTime = 2 * time.Second

// gitHead reads what is checked out, without running git.
func gitHead(dir string) (head string, ok bool) {
	git, ok := gitDir(dir)
	if !ok {
		return "", false
	}
	b, err := readSmall(filepath.Join(git, "HEAD"))
	if err != nil {
		return "", false
	}
	line := string(bytes.TrimSpace(b))
	if ref, ok := strings.CutPrefix(line, "ref: "); ok {
		return oneLine(strings.TrimPrefix(ref, "refs/heads/")), true
	}
	if len(line) >= 12 {
		return oneLine(line[:12]), true
	}
	return "", false
}

// gitDir finds the repository that dir lies in. In a linked work tree .git is
// a file that names the folder.
func gitDir(dir string) (string, bool) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", false
	}
	for {
		p := filepath.Join(dir, ".git")
		info, err := os.Stat(p)
		switch {
		case err == nil && info.IsDir():
			return p, true
		case err == nil && info.Mode().IsRegular():
			b, err := readSmall(p)
			if err != nil {
				return "", false
			}
			to, ok := strings.CutPrefix(string(bytes.TrimSpace(b)), "gitdir: ")
			if ok && !filepath.IsAbs(to) {
				to = filepath.Join(dir, to)
			}
			return to, ok
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return "", false
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", false
		}
		dir = up
	}
}

// readSmall reads a file of at most 4 KiB.
func readSmall(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b := make([]byte, 4096)
	n, err := f.Read(b)
	return b[:n], err
}

// gitDirty asks git whether a tracked file, or the index, differs from the
// last commit.
//
// A repository that somebody else made can name programs in its configuration
// that git would run: a file monitor, filters, helpers that fetch what is
// missing. None of them may run just because a session starts here, so they are
// all switched off. A file that a filter would make equal counts as changed.
func gitDirty(ctx context.Context, dir string) Tri {
	ctx, cancel := context.WithTimeout(ctx, gitTime)
	defer cancel()
	off, ok := filtersOff(ctx, dir)
	if !ok {
		return Unknown
	}
	for _, args := range [][]string{
		{"diff-files", "--raw", "--ignore-submodules"},
		{"diff-index", "--cached", "--raw", "--ignore-submodules", "HEAD"},
	} {
		out, err := git(ctx, dir, off, args...)
		switch {
		case err != nil:
			return Unknown
		case len(bytes.TrimSpace(out)) > 0:
			return Yes
		}
	}
	return No
}

// filtersOff lists the settings that switch off every filter that is
// configured here; ok is false when that cannot be done.
func filtersOff(ctx context.Context, dir string) (off []string, ok bool) {
	out, err := git(ctx, dir, nil, "config", "--null", "--name-only", "--get-regexp", `^filter\..*\.(clean|smudge|process|required)$`)
	var exit *exec.ExitError
	if err != nil && !(errors.As(err, &exit) && exit.ExitCode() == 1) { // 1: there is none
		return nil, false
	}
	for _, key := range strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		switch {
		case key == "":
		case strings.ContainsAny(key, "=\n"): // cannot be given as -c key=value
			return nil, false
		case strings.HasSuffix(key, ".required"):
			off = append(off, "-c", key+"=false")
		default:
			off = append(off, "-c", key+"=")
		}
	}
	return off, true
}

func git(ctx context.Context, dir string, settings []string, args ...string) ([]byte, error) {
	all := append([]string{"-c", "core.fsmonitor=false", "-c", "core.hooksPath=" + os.DevNull}, settings...)
	cmd := exec.CommandContext(ctx, "git", append(all, args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_OPTIONAL_LOCKS=0", "GIT_NO_LAZY_FETCH=1", "GIT_ALLOW_PROTOCOL=none", "GIT_TERMINAL_PROMPT=0")
	cmd.WaitDelay = gitTime
	return cmd.Output()
}
