package doctor

import (
	"errors"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/doctor/internal/dsh"
	"github.com/outcrop-dev/outcrop/store/jsonl"
	"github.com/outcrop-dev/outcrop/wire"
	"github.com/outcrop-dev/outcrop/wire/formats"
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
func (p *Place) header(h dsh.Header) string {
	if p == nil {
		return ""
	}
	project := "_no-cwd"
	if h.HasCwd {
		project = jsonl.ProjectKey(h.Cwd)
	}
	switch {
	case h.ID != p.ID:
		return "identity-mismatch"
	case project != p.Project || jsonl.EncodeSegment(h.ID) != p.Session:
		return "misplaced-log"
	}
	return ""
}

// findings are what keeps the store that the place is in from opening the log.
func (p *Place) findings(h outcrop.Header) (out []Finding) {
	if p == nil {
		return nil
	}
	add := func(code outcrop.Code, msg, hint string) {
		out = append(out, Finding{Code: code, Severity: SeverityError, Seq: -1, Line: 1, TextOffset: -1, Message: msg, Hint: hint})
	}
	project := "_no-cwd"
	if h.Cwd != nil {
		project = jsonl.ProjectKey(*h.Cwd)
	}
	const moved = "name the file by its path to look at it; move its folder to where it belongs to go on"
	switch {
	case h.ID != p.ID:
		add("IDENTITY_MISMATCH", "the header names session "+strconv.Quote(h.ID)+", the folder session "+strconv.Quote(p.ID), moved)
	case project != p.Project || jsonl.EncodeSegment(h.ID) != p.Session:
		add("MISPLACED_LOG", "the header belongs to "+path.Join(project, jsonl.EncodeSegment(h.ID)), moved)
	}
	entries, err := fs.ReadDir(p.Root, path.Join(p.Project, p.Session))
	if err != nil {
		return out
	}
	for _, e := range entries {
		n, ok := jsonl.FormatOf(e.Name())
		switch {
		case !ok || int64(n) <= h.Format:
		case n > formats.Newest:
			add("NEWER_GENERATION", e.Name()+" beside it is a newer generation of the log", "use the program that wrote it, or a newer version of this one")
			return out
		default:
			add(jsonl.CodeLaterFormat, e.Name()+" beside it is the session in a later format of dsh", "name that file, or the session's id; what is here is what it was before")
			return out
		}
	}
	return out
}
