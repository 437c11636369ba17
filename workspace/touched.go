package workspace

import (
	"path"
	"path/filepath"
	"strings"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
)

// learn reads the new events of a log: the folders that calls name, and the
// instructions that were told. A log that is shorter than the last one is
// another log.
func (in *Instructions) learn(log outcrop.Log) {
	if outcrop.Seq(log.Len()) < in.next {
		in.forget()
	}
	for r := range log.Records(in.next) {
		if r.Run != nil {
			continue
		}
		switch r.Type {
		case outcrop.TypeToolCall:
			in.call(r.Data)
		case outcrop.TypeContextMessage, outcrop.TypeUserMessage:
			in.tell(nameOf(jsonwire.Get(r.Data, "source")))
		}
	}
	in.next = outcrop.Seq(log.Len())
}

// tell notes a context of the log. How many there are is what the log's writer
// decided, so that a log of somebody else's cannot grow it without end.
func (in *Instructions) tell(name string) {
	if strings.HasPrefix(name, instructionPrefix) && !in.isTold[name] && len(in.told) < 4*maxNamed {
		in.isTold[name] = true
		in.told = append(in.told, name)
	}
}

// call notes the folders that a call of a file tool names: that of a file, and
// those above it up to the workspace.
func (in *Instructions) call(data []byte) {
	name, _ := jsonwire.Text(jsonwire.Get(data, "name"))
	folder := false
	switch name {
	case "read", "edit", "write":
	case "list", "glob", "grep":
		folder = true
	default:
		return
	}
	text, _ := jsonwire.Text(jsonwire.Get(data, "arguments"))
	args := []byte(text)
	if jsonwire.Valid(args) != nil {
		return
	}
	at := "."
	for _, member := range [...]string{"path", "file_path"} {
		if p, ok := jsonwire.Text(jsonwire.Get(args, member)); ok && p != "" {
			at = p
			break
		}
	}
	at, ok := in.local(at)
	if !ok {
		return
	}
	if name == "glob" {
		pattern, _ := jsonwire.Text(jsonwire.Get(args, "pattern"))
		at = path.Join(at, literal(pattern))
		if at == ".." || strings.HasPrefix(at, "../") {
			return
		}
	}
	if !folder {
		at = path.Dir(at)
	}
	in.below(at)
}

// local is a path of a call relative to the workspace, with slashes; ok is false
// outside of it.
func (in *Instructions) local(p string) (string, bool) {
	if filepath.IsAbs(p) {
		rel, err := filepath.Rel(in.dir, filepath.Clean(p))
		if stated, absErr := filepath.Abs(in.o.Dir); absErr == nil && (err != nil || !filepath.IsLocal(rel)) {
			rel, err = filepath.Rel(stated, filepath.Clean(p))
		}
		if err != nil {
			return "", false
		}
		p = rel
	}
	p = path.Clean(filepath.ToSlash(p))
	return p, len(p) <= maxPath && filepath.IsLocal(filepath.FromSlash(p)) && !strings.ContainsRune(p, 0)
}

// maxPath is the longest path that is looked at, in bytes.
const maxPath = 4096

// literal is the folder that a pattern begins with, without any wild card.
func literal(pattern string) string {
	parts := strings.Split(filepath.ToSlash(pattern), "/")
	for i, part := range parts[:len(parts)-1] {
		if strings.ContainsAny(part, `*?[]{}\`) {
			return path.Join(parts[:i]...)
		}
	}
	return path.Join(parts[:len(parts)-1]...)
}

// below notes a folder and those above it, the workspace excepted. Of one that
// lies in a folder of others' work, what is above that one counts.
func (in *Instructions) below(dir string) {
	at := ""
	for part := range strings.SplitSeq(dir, "/") {
		switch part {
		case "", ".", ".git", "node_modules", "vendor":
			return
		}
		at = path.Join(at, part)
		if in.isIn[at] {
			continue
		}
		if len(in.named) >= maxNamed {
			in.warn("too many folders were named to look for instructions in all of them", in.dir, nil)
			return
		}
		in.isIn[at] = true
		in.named = append(in.named, at)
	}
}
