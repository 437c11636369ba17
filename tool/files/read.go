package files

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/outcrop-dev/outcrop/tool"
)

const (
	// DefaultLines is how many lines read returns when the call does not say.
	DefaultLines = 2000
	// MaxRead is how many bytes of a file one read returns, so that its
	// result is not cut in the middle but ends with a line.
	MaxRead = tool.DefaultInline - 1000
	// headSize is how much of a file is looked at to see what it is.
	headSize = 8 << 10
)

type readArgs struct {
	Path    string `json:"path" jsonschema:"the file, relative to the workspace"`
	Offset  int    `json:"offset,omitempty" jsonschema:"first line to return, from 1; default 1"`
	Limit   int    `json:"limit,omitempty" jsonschema:"most lines to return; default 2000"`
	Numbers bool   `json:"numbers,omitempty" jsonschema:"put the line number and a tab before each line"`
}

func (w *Workspace) read() (tool.Tool, error) {
	return tool.Define(tool.Spec[readArgs]{
		Name: "read",
		Description: "Read a text file of the workspace. Returns its lines as they are, from offset on, at most limit of them and " +
			"about 49,000 bytes; last lines in brackets say what is left and what was not shown as it is (CRLF, UTF-16, a byte order mark). " +
			"Binary files are refused.",
		Class:    tool.Read,
		Parallel: true,
		Run:      w.runRead,
	})
}

func (w *Workspace) runRead(ctx context.Context, _ tool.Call, a readArgs) (tool.Result, error) {
	if a.Offset < 0 || a.Limit < 0 {
		return tool.Result{}, tool.InvalidArgs("offset and limit count from 1")
	}
	s, err := w.place(a.Path, true)
	if err != nil {
		return tool.Result{}, err
	}
	f, info, err := openFile(s.root, s.name, a.Path)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) && s.dir == "" {
			// Now the model knows that it is gone, so a write may make it anew.
			w.forget(s.name)
		}
		return tool.Result{}, told(a.Path, err)
	}
	defer f.Close()
	text, digest, err := readLines(ctx, f, info, a)
	if err != nil {
		return tool.Result{}, told(a.Path, err)
	}
	res := tool.Text(text)
	if digest != "" && s.dir == "" {
		w.learn(s.name, digest)
		res.Meta = meta(s.name, digest)
	}
	return res, nil
}

// readLines makes the text of a result, and the digest of the whole file when
// it is not over MaxFile.
func readLines(ctx context.Context, f *os.File, info fs.FileInfo, a readArgs) (text, digest string, err error) {
	src := &hashed{r: ctxReader{ctx, f}, sum: sha256.New()}
	whole := info.Size() <= MaxFile
	r := bufio.NewReaderSize(src, 64<<10)
	head, err := r.Peek(headSize)
	if err != nil && !errors.Is(err, io.EOF) {
		return "", "", err
	}
	var notes []string
	switch name := utf16Name(head); {
	case name != "" && whole:
		raw, err := io.ReadAll(io.LimitReader(r, MaxFile+1))
		if err != nil {
			return "", "", err
		}
		r = bufio.NewReaderSize(bytes.NewReader(fromUTF16(raw)), 64<<10)
		notes = append(notes, name+", shown as UTF-8")
	case name != "":
		return "", "", refused("BINARY", "%s is a %s file of %d bytes; read shows such files up to %d bytes", a.Path, name, info.Size(), MaxFile)
	case isBinary(head):
		if isText(head) {
			return "", "", refused("NOT_UTF8", "%s is text that is not UTF-8 (%s); read shows UTF-8 and UTF-16: use shell, as in iconv -f latin1 -t utf-8", a.Path, plural(info.Size(), "byte"))
		}
		return "", "", refused("BINARY", "%s is a binary file of %s; read shows text only", a.Path, plural(info.Size(), "byte"))
	case bytes.HasPrefix(head, []byte(utf8BOM)):
		if _, err := r.Discard(len(utf8BOM)); err != nil {
			return "", "", err
		}
		notes = append(notes, "a byte order mark at the start, not shown")
	}
	p := &pager{first: max(a.Offset, 1), limit: a.Limit, budget: MaxRead, numbers: a.Numbers}
	if p.limit == 0 {
		p.limit = DefaultLines
	}
	if err := p.read(r, whole); err != nil {
		return "", "", err
	}
	if p.ended && src.n <= MaxFile {
		digest = "sha256:" + hex.EncodeToString(src.sum.Sum(nil))
	}
	if p.ended && p.lines == 0 {
		return "(empty file)", digest, nil
	}
	if p.taken == 0 {
		return "", "", tool.InvalidArgs(fmt.Sprintf("offset %d is behind the end: %s has %s", p.first, a.Path, plural(p.lines, "line")))
	}
	return p.text(notes), digest, nil
}

// hashed takes the digest of what is read through it, up to MaxFile bytes.
type hashed struct {
	r   io.Reader
	sum hash.Hash
	n   int64
}

func (h *hashed) Read(b []byte) (int, error) {
	n, err := h.r.Read(b)
	if h.n += int64(n); h.n <= MaxFile {
		h.sum.Write(b[:n])
	}
	return n, err
}

// text is what was taken and, in brackets, what is to know about it.
func (p *pager) text(notes []string) string {
	out := p.out
	if p.cut > 0 {
		out = wholeRunes(out)
	}
	switch {
	case p.crlf > 0 && p.crlf == p.ends:
		out = bytes.ReplaceAll(out, []byte("\r\n"), []byte("\n"))
		notes = append(notes, "CRLF line ends, shown as LF; edit keeps them")
	case p.crlf > 0:
		notes = append(notes, "mixed line ends, CRLF and LF")
	}
	text := string(out)
	if clean := strings.ToValidUTF8(text, "\uFFFD"); clean != text {
		text = clean
		notes = append(notes, "not UTF-8: other bytes are shown as \uFFFD")
	}
	last := p.first + p.taken - 1
	if p.cut > 0 {
		more := ""
		if !p.ended && p.open {
			more = "more than "
		}
		notes = append(notes, fmt.Sprintf("line %d is cut: %s%d bytes of it are not shown; grep finds a place in it", last, more, p.cut))
	}
	switch {
	case !p.ended:
		notes = append(notes, fmt.Sprintf("lines %d to %d, more follow; go on with offset %d", p.first, last, last+1))
	case last < p.lines:
		notes = append(notes, fmt.Sprintf("lines %d to %d of %d; go on with offset %d", p.first, last, p.lines, last+1))
	}
	var b strings.Builder
	b.WriteString(text)
	if len(notes) > 0 && text != "" && !strings.HasSuffix(text, "\n") {
		b.WriteByte('\n')
	}
	for i, n := range notes {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString("[" + n + "]")
	}
	return b.String()
}

// wholeRunes drops the beginning of a character from the end.
func wholeRunes(b []byte) []byte {
	for i := len(b) - 1; i >= max(0, len(b)-3); i-- {
		if b[i] >= 0xc0 {
			if !strings.ContainsRune(string(b[i:]), '\uFFFD') {
				return b
			}
			return b[:i]
		}
		if b[i] < 0x80 {
			return b
		}
	}
	return b
}
