package doctor

import (
	"errors"
	"io/fs"
	"path"
	"strings"

	"github.com/outcrop-dev/outcrop/store/jsonl"
	"github.com/outcrop-dev/outcrop/wire"
)

// Place says where a log lies in a root of sessions, ROOT/PROJECT/SESSION/FILE.
// dsh 0.1 judges more than the one file: a file of the other encoding anywhere
// in the root, or a flat file, and it opens nothing there.
type Place struct {
	Root    fs.FS
	Project string // folder below the root
	Session string // folder below that
	ID      string // the session that was asked for
}

// root judges the root; the class of what is wrong with it, or "".
func (p *Place) root(enc wire.Encoding) string {
	if p == nil {
		return ""
	}
	own, other := "session."+string(wire.Plain), "session."+string(wire.Zstd)
	if enc == wire.Zstd {
		own, other = other, own
	}
	projects, err := fs.ReadDir(p.Root, ".")
	if err != nil {
		return ""
	}
	flat, opposite, copies := false, false, 0
	for _, project := range projects {
		if !project.IsDir() {
			continue
		}
		entries, err := fs.ReadDir(p.Root, project.Name())
		if err != nil {
			continue
		}
		for _, e := range entries {
			if !e.IsDir() {
				flat = flat || strings.HasSuffix(e.Name(), "."+string(enc))
				continue
			}
			dir := path.Join(project.Name(), e.Name())
			opposite = opposite || p.has(dir, other)
			if e.Name() == p.Session && p.has(dir, own) {
				copies++
			}
		}
	}
	switch {
	case opposite:
		return "layout-encoding-mismatch"
	case flat:
		return "layout-flat-file"
	case copies > 1:
		return "layout-duplicate-id"
	}
	return ""
}

func (p *Place) has(dir, name string) bool {
	_, err := fs.Stat(p.Root, path.Join(dir, name))
	return !errors.Is(err, fs.ErrNotExist)
}

// header judges whether the file's header belongs where the file lies.
func (p *Place) header(h dshHeader) string {
	if p == nil {
		return ""
	}
	project := "_no-cwd"
	if h.hasCwd {
		project = jsonl.ProjectKey(h.cwd)
	}
	switch {
	case h.id != p.ID:
		return "identity-mismatch"
	case project != p.Project || jsonl.EncodeSegment(h.id) != p.Session:
		return "misplaced-log"
	}
	return ""
}
