package files

import (
	"context"
	"fmt"
	"strings"

	"github.com/outcrop-dev/outcrop/tool"
)

// maxReplacements is how many replacements one call may make.
const maxReplacements = 100

type editArgs struct {
	Path  string        `json:"path" jsonschema:"the file, relative to the workspace"`
	Edits []Replacement `json:"edits" jsonschema:"the replacements, made in this order, all or none"`
}

func (w *Workspace) edit() (tool.Tool, error) {
	return w.changes(tool.Define(tool.Spec[editArgs]{
		Name: "edit",
		Description: "Replace exact pieces of text in a file of the workspace that was read before. Each old must be found exactly once, " +
			"unless all is set. Line ends (CRLF) and a byte order mark stay as they are. All edits are made or none. " +
			"A file that changed since it was last read is refused.",
		Class:   tool.Edit,
		Run:     w.runEdit,
		Preview: w.previewEdit,
	}))
}

// planned is an edit that can be made: the file and what it becomes.
type planned struct {
	target
	content string
	places  int
}

func (w *Workspace) plan(a editArgs) (planned, error) {
	if n := len(a.Edits); n == 0 || n > maxReplacements {
		return planned{}, tool.InvalidArgs(fmt.Sprintf("edits holds 1 to %d replacements", maxReplacements))
	}
	t, err := w.look(a.Path)
	switch {
	case err != nil:
		return planned{}, err
	case !t.exists:
		return planned{}, refused("NOT_FOUND", "%s does not exist; write makes a new file", a.Path)
	case !t.known:
		return planned{}, refused("NOT_READ", "%s was not read yet; read it before editing it", a.Path)
	}
	if name := utf16Name(t.old); name != "" {
		return planned{}, refused("NOT_UTF8", "%s is a %s file; edit changes UTF-8 files only: use shell, or write it anew", a.Path, name)
	}
	text, bom := strings.CutPrefix(string(t.old), utf8BOM)
	text, n, err := Replace(text, a.Edits)
	if err != nil {
		return planned{}, err
	}
	if bom {
		text = utf8BOM + text
	}
	return planned{t, text, n}, nil
}

func (w *Workspace) previewEdit(_ context.Context, _ tool.Call, a editArgs) (tool.Preview, error) {
	p, err := w.plan(a)
	if err != nil {
		return tool.Preview{}, err
	}
	return tool.Preview{Title: "edit " + p.name, Dir: w.dir, Body: Diff(p.name, string(p.old), p.content)}, nil
}

func (w *Workspace) runEdit(ctx context.Context, _ tool.Call, a editArgs) (tool.Result, error) {
	p, err := w.plan(a)
	if err != nil {
		return tool.Result{}, err
	}
	digest, err := w.save(ctx, p.target, p.content)
	if err != nil {
		return tool.Result{}, told(a.Path, err)
	}
	res := tool.Text(fmt.Sprintf("edited %s in %s: %s", p.name, plural(p.places, "place"), size(p.content)))
	res.Meta = meta(p.name, digest)
	return res, nil
}
