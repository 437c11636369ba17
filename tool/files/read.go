package files

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/outcrop-dev/outcrop/tool"
)

// DefaultLines is how many lines read returns when the call does not say.
const DefaultLines = 2000

type readArgs struct {
	Path   string `json:"path" jsonschema:"the file, relative to the workspace"`
	Offset int    `json:"offset,omitempty" jsonschema:"first line to return, from 1; default 1"`
	Limit  int    `json:"limit,omitempty" jsonschema:"most lines to return; default 2000"`
}

func (w *Workspace) read() (tool.Tool, error) {
	return tool.Define(tool.Spec[readArgs]{
		Name: "read",
		Description: "Read a text file of the workspace. Returns the lines as they are, from offset on, at most limit of them; " +
			"when lines are left, a last line in brackets says which. Binary files and files over 10 MiB are refused.",
		Class:    tool.Read,
		Parallel: true,
		Run:      w.runRead,
	})
}

func (w *Workspace) runRead(_ context.Context, _ tool.Call, a readArgs) (tool.Result, error) {
	if a.Offset < 0 || a.Limit < 0 {
		return tool.Result{}, tool.InvalidArgs("offset and limit count from 1")
	}
	root, name, err := w.place(a.Path, true)
	if err != nil {
		return tool.Result{}, told(a.Path, err)
	}
	b, _, err := load(root, name)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) && w.isWorkspace(root) {
			// Now the model knows that it is gone, so a write may make it anew.
			w.forget(name)
		}
		return tool.Result{}, told(a.Path, err)
	}
	if isBinary(b) {
		return tool.Result{}, &tool.Error{Name: "FileError", Code: "BINARY",
			Msg: fmt.Sprintf("%s is a binary file of %d bytes; read shows text only", a.Path, len(b))}
	}
	text, err := lines(a, b)
	if err != nil {
		return tool.Result{}, err
	}
	res := tool.Text(text)
	if w.isWorkspace(root) {
		digest := digestOf(b)
		w.learn(name, digest)
		res.Meta = meta(name, digest)
	}
	return res, nil
}

func (w *Workspace) isWorkspace(root *os.Root) bool { return root == w.root }

// lines cuts the lines that the call asks for and says what is left.
func lines(a readArgs, b []byte) (string, error) {
	first, limit := max(a.Offset, 1), a.Limit
	if limit == 0 {
		limit = DefaultLines
	}
	if len(b) == 0 {
		return "(empty file)", nil
	}
	total := bytes.Count(b, []byte{'\n'})
	if b[len(b)-1] != '\n' {
		total++
	}
	if first > total {
		return "", tool.InvalidArgs(fmt.Sprintf("offset %d is behind the end: %s has %d lines", first, a.Path, total))
	}
	rest := b
	for range first - 1 {
		rest = rest[bytes.IndexByte(rest, '\n')+1:]
	}
	end := 0
	last := first - 1
	for last < total && last-first+1 < limit {
		i := bytes.IndexByte(rest[end:], '\n')
		if i < 0 {
			end = len(rest)
		} else {
			end += i + 1
		}
		last++
	}
	text := strings.ToValidUTF8(string(rest[:end]), "\uFFFD")
	if last < total {
		text += fmt.Sprintf("[lines %d to %d of %d; go on with offset %d]", first, last, total, last+1)
	}
	return text, nil
}

// isBinary looks at the first 8 KiB: a NUL, or text that is mostly no UTF-8.
func isBinary(b []byte) bool {
	head := b[:min(len(b), 8<<10)]
	if bytes.IndexByte(head, 0) >= 0 {
		return true
	}
	bad, total := 0, 0
	for len(head) > 0 {
		r, n := utf8.DecodeRune(head)
		if r == utf8.RuneError && n == 1 && utf8.FullRune(head) {
			bad++
		}
		total++
		head = head[n:]
	}
	return bad*10 > total
}
