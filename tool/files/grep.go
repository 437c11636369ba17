package files

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"

	"github.com/outcrop-dev/outcrop/tool"
)

const (
	// DefaultMatches is how many matching lines, or files, grep returns when
	// the call does not say, MaxMatches the most.
	DefaultMatches = 200
	MaxMatches     = 2000
	// maxContext is the most lines of context.
	maxContext = 20
	// maxExpression bounds a regular expression, in bytes.
	maxExpression = 2000
)

type grepArgs struct {
	Pattern    string `json:"pattern" jsonschema:"a regular expression (RE2) for one line"`
	Path       string `json:"path,omitempty" jsonschema:"a file or a directory, relative to the workspace; default the workspace"`
	Glob       string `json:"glob,omitempty" jsonschema:"only files that match, as for the tool glob: *.go"`
	IgnoreCase bool   `json:"ignore_case,omitempty" jsonschema:"upper and lower case are the same"`
	Context    int    `json:"context,omitempty" jsonschema:"lines to show before and after each match, at most 20"`
	FilesOnly  bool   `json:"files_only,omitempty" jsonschema:"return the names of the files only"`
	Limit      int    `json:"limit,omitempty" jsonschema:"most matching lines, or files; default 200, at most 2000"`
	Ignored    bool   `json:"ignored,omitempty" jsonschema:"also files that .gitignore excludes"`
}

func (w *Workspace) grep() (tool.Tool, error) {
	return tool.Define(tool.Spec[grepArgs]{
		Name: "grep",
		Description: "Search the lines of files for a regular expression. Returns each file's name and below it its matches as LINE:TEXT, " +
			"context as LINE-TEXT; long lines are cut around the match. .git, what .gitignore files exclude, links, and binary and " +
			"UTF-16 files are left out.",
		Class:    tool.Read,
		Parallel: true,
		Run:      w.runGrep,
	})
}

// compile checks the arguments and makes what searches one file.
func (a *grepArgs) compile() (*searcher, error) {
	switch {
	case a.Pattern == "":
		return nil, tool.InvalidArgs("pattern is empty")
	case len(a.Pattern) > maxExpression:
		return nil, tool.InvalidArgs(fmt.Sprintf("pattern has more than %d bytes", maxExpression))
	case a.Context < 0 || a.Context > maxContext:
		return nil, tool.InvalidArgs(fmt.Sprintf("context is 0 to %d lines", maxContext))
	case a.Limit < 0 || a.Limit > MaxMatches:
		return nil, tool.InvalidArgs(fmt.Sprintf("limit is 1 to %d", MaxMatches))
	}
	if a.Limit == 0 {
		a.Limit = DefaultMatches
	}
	expr := a.Pattern
	if a.IgnoreCase {
		expr = "(?i)" + expr
	}
	re, err := regexp.Compile(expr)
	if err != nil {
		text := err.Error()
		var se *syntax.Error
		if errors.As(err, &se) {
			text = fmt.Sprintf("%s: %q", se.Code, se.Expr)
		}
		return nil, tool.InvalidArgs("pattern is no regular expression: " + text + `; a backslash takes the meaning from a character: \(`)
	}
	s := &searcher{re: re, context: a.Context, limit: a.Limit}
	if a.FilesOnly {
		s.first, s.context = true, 0
	}
	s.literal, s.fold = required(expr)
	return s, nil
}

func (w *Workspace) runGrep(ctx context.Context, _ tool.Call, a grepArgs) (tool.Result, error) {
	search, err := a.compile()
	if err != nil {
		return tool.Result{}, err
	}
	if a.Path == "" {
		a.Path = "."
	}
	s, err := w.place(a.Path, true)
	if err != nil {
		return tool.Result{}, err
	}
	matches := func(string) bool { return true }
	if a.Glob != "" {
		pattern, err := parsePattern(a.Glob, w.dir)
		if err != nil {
			return tool.Result{}, err
		}
		matches = func(name string) bool { return pattern.match(inside(s.name, name)) }
	}
	info, err := s.root.Stat(s.name)
	if err != nil {
		return tool.Result{}, told(a.Path, err)
	}
	if !info.IsDir() {
		return w.grepFile(ctx, s, a, search)
	}
	out := &grepOutput{filesOnly: a.FilesOnly, limit: a.Limit, at: s}
	wk := &walker{root: s.root, all: a.Ignored}
	err = searchAll(ctx, wk, s, matches, search, out.add)
	if err != nil && !errors.Is(err, errEnough) {
		return tool.Result{}, told(a.Path, err)
	}
	if errors.Is(err, errEnough) {
		// The walk was stopped on purpose: what it did not see is no news.
		wk = &walker{}
	}
	return tool.Text(out.text(wk)), nil
}

// grepFile searches one file that was named.
func (w *Workspace) grepFile(ctx context.Context, s spot, a grepArgs, search *searcher) (tool.Result, error) {
	f, _, err := openFile(s.root, s.name, a.Path)
	if err != nil {
		return tool.Result{}, told(a.Path, err)
	}
	defer f.Close()
	found, err := search.file(ctx, f, new(buffers))
	if err != nil {
		return tool.Result{}, told(a.Path, err)
	}
	if found.binary {
		return tool.Result{}, refused("BINARY", "%s is a binary or UTF-16 file; grep searches UTF-8 text only", a.Path)
	}
	out := &grepOutput{filesOnly: a.FilesOnly, limit: a.Limit, at: s}
	found.name = s.name
	if err := out.add(found); err != nil && !errors.Is(err, errEnough) {
		return tool.Result{}, err
	}
	return tool.Text(out.text(&walker{})), nil
}

// errEnough ends a search whose result is full.
var errEnough = errors.New("enough")

// grepOutput makes the text of a result out of what was found, file by file.
type grepOutput struct {
	filesOnly bool
	limit     int
	at        spot

	b       strings.Builder
	matches int // lines, or files
	unread  int // files that could not be read
	long    int // files with lines that were not searched to their end
	full    bool
}

// add takes what one file has. The error is errEnough once nothing more fits.
func (o *grepOutput) add(f found) error {
	if f.failed {
		o.unread++
	}
	if f.long {
		o.long++
	}
	if len(f.lines) == 0 {
		return nil
	}
	if o.matches == o.limit {
		o.full = true
		return errEnough
	}
	name := shown(o.at.shown(f.name)) + "\n"
	if o.filesOnly {
		o.b.WriteString(name)
		o.matches++
		return o.check(f)
	}
	if o.b.Len() > 0 {
		o.b.WriteByte('\n')
	}
	o.b.WriteString(name)
	last := 0
	for _, l := range f.lines {
		if l.match && o.matches == o.limit || o.b.Len()+len(l.text) > MaxRead {
			o.full = true
			return errEnough
		}
		if last > 0 && l.number > last+1 && f.gaps {
			o.b.WriteString("--\n")
		}
		last = l.number
		mark := byte('-')
		if l.match {
			mark = ':'
			o.matches++
		}
		fmt.Fprintf(&o.b, "%d%c%s\n", l.number, mark, l.text)
	}
	return o.check(f)
}

func (o *grepOutput) check(f found) error {
	if f.more || o.b.Len() > MaxRead {
		o.full = true
		return errEnough
	}
	return nil
}

// text is the whole result.
func (o *grepOutput) text(wk *walker) string {
	if o.matches == 0 {
		o.b.WriteString("(no match)\n")
	}
	if o.full {
		what := "matching lines"
		if o.filesOnly {
			what = "files"
		}
		fmt.Fprintf(&o.b, "[stopped after %d %s; there may be more: choose a narrower pattern, path or glob]\n", o.matches, what)
	}
	if o.long > 0 {
		fmt.Fprintf(&o.b, "[lines over %d bytes in %s; only the beginning of those was searched]\n", maxLine, plural(o.long, "file"))
	}
	if o.unread > 0 {
		fmt.Fprintf(&o.b, "[%s could not be read]\n", plural(o.unread, "file"))
	}
	wk.notes(&o.b)
	return o.b.String()
}
