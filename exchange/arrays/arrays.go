// Package arrays reads conversations that are lists of messages, as the chat
// completions API of OpenAI and the Messages API of Anthropic take them. Many
// programs keep their histories so.
//
//	[{"role":"user","content":"..."},...]           a list
//	{"model":...,"messages":[...],"tools":[...]}    the body of a request
//	one of either a line                            .jsonl: each line is a session
//	{"role":"user","content":"..."} a line          .jsonl: the file is a session
//
// Two formats come from here, since the shapes of their messages differ: OpenAI
// and Anthropic. The facts are those of the public references of both APIs. A file
// is Anthropic's when it has what only that has (a system beside the messages,
// blocks tool_use, tool_result or thinking), else OpenAI's.
//
// # What becomes of it
//
// A session's name is, where the object has a member id, that; else it is made
// from the system prompt and the text of the messages through the first of the
// user, so that the same conversation is found again when it has grown. Of lines
// that each begin with the messages of the line before, the bodies of one
// conversation's requests, the last one is taken. There are no times in such lists:
// where neither the body (created, created_at, timestamp) nor a message
// (created_at, timestamp) has one, the events have none.
//
// System and developer messages at the beginning are the system prompt, later
// ones context messages. Text of the user behind tool results steers the turn.
// Images and files in data: URLs are kept as attachments, others as notes.
package arrays

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/outcrop-dev/outcrop/exchange"
	"github.com/outcrop-dev/outcrop/exchange/internal/fields"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
)

// Dialect is the API whose messages a list has.
type Dialect string

// Both dialects. Their texts are the names of the formats.
const (
	OpenAI    Dialect = "openai"
	Anthropic Dialect = "anthropic"
)

// Format is the dialect as a format for an importer.
func (d Dialect) Format() exchange.Format {
	label := "lists of OpenAI messages"
	if d == Anthropic {
		label = "lists of Anthropic messages"
	}
	return exchange.Format{
		Name: string(d), Label: label,
		Claims: func(path string, head []byte) bool { return d == dialectOf(path, head) },
		Open: func(path string) exchange.Source {
			return exchange.Source{Format: string(d), Path: path, Sessions: func(ctx context.Context, r *exchange.Report) iter.Seq2[*exchange.Session, error] {
				return d.file(ctx, path, r)
			}}
		},
	}
}

// dialectOf tells by the first bytes whose list a file is; "" for none.
func dialectOf(path string, head []byte) Dialect {
	lines := isLines(path)
	if !lines && filepath.Ext(path) != ".json" {
		return ""
	}
	head = bytes.TrimLeft(head, " \t\r\n\ufeff")
	if len(head) == 0 || !bytes.Contains(head, []byte(`"role"`)) {
		return ""
	}
	first := head
	if lines {
		first, _, _ = bytes.Cut(head, []byte{'\n'})
	}
	in := look(first)
	switch {
	case in.list && in.role, in.messages:
	case lines && in.role && in.content && !in.nested:
	default:
		return ""
	}
	if in.system {
		return Anthropic
	}
	for _, mark := range [...]string{"tool_use", "tool_result", "thinking", "redacted_thinking"} {
		if typeMark(head, mark) {
			return Anthropic
		}
	}
	return OpenAI
}

// typeMark reports a member "type" of this value, with any space.
func typeMark(head []byte, value string) bool {
	for rest := head; ; {
		i := bytes.Index(rest, []byte(`"`+value+`"`))
		if i < 0 {
			return false
		}
		before := bytes.TrimRight(rest[:i], " \t\r\n")
		if b, ok := bytes.CutSuffix(before, []byte(":")); ok && bytes.HasSuffix(bytes.TrimRight(b, " \t\r\n"), []byte(`"type"`)) {
			return true
		}
		rest = rest[i+1:]
	}
}

// shape is what the beginning of a text shows of its outermost value.
type shape struct {
	list     bool // an array whose first element is an object
	role     bool // that object, or the outermost one, has a role
	content  bool // and a content
	messages bool // the outermost object has a list of messages with roles
	system   bool // and a system beside it
	nested   bool // members that no message has: the object is of another program
}

// look reads the outermost members of a text that may be cut off.
func look(head []byte) (s shape) {
	i := jsonwire.Space(head, 0)
	if i < len(head) && head[i] == '[' {
		s.list = true
		i = jsonwire.Space(head, i+1)
	}
	if i >= len(head) || head[i] != '{' {
		return shape{}
	}
	i++
	for {
		i = jsonwire.Space(head, i)
		if i < len(head) && head[i] == ',' {
			i = jsonwire.Space(head, i+1)
		}
		if i >= len(head) || head[i] != '"' {
			return s
		}
		end, err := jsonwire.String(head, i)
		if err != nil {
			return s
		}
		name := jsonwire.Key(head[i+1 : end-1])
		i = jsonwire.Space(head, end)
		if i >= len(head) || head[i] != ':' {
			return s
		}
		i = jsonwire.Space(head, i+1)
		if i >= len(head) {
			return s
		}
		value := head[i:]
		switch name {
		case "role":
			s.role = s.role || value[0] == '"'
		case "content":
			s.content = true
		case "messages":
			in := jsonwire.Space(value, 1)
			if value[0] == '[' && in < len(value) && value[in] == '{' && !s.list {
				s.messages = look(value).role
			}
		case "system":
			s.system = !s.list && (value[0] == '"' || value[0] == '[')
		case "message", "parts", "sessionID", "uuid", "info":
			s.nested = true
		}
		next, err := jsonwire.Value(head, i)
		if err != nil {
			return s
		}
		i = next
	}
}

func isLines(path string) bool {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".jsonl", ".ndjson":
		return true
	}
	return false
}

// areLines tells by the ending of a file, or else by its first line, whether it is
// one of lines: a line that is no JSON by itself is the beginning of a value.
func areLines(path string, f io.ReadSeeker) (bool, error) {
	if isLines(path) || strings.EqualFold(filepath.Ext(path), ".json") {
		return isLines(path), nil
	}
	head := make([]byte, exchange.HeadBytes)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return false, err
	}
	line, _, whole := bytes.Cut(bytes.TrimLeft(head[:n], " \t\r\n\ufeff"), []byte{'\n'})
	_, err = f.Seek(0, io.SeekStart)
	return !whole || jsonwire.Valid(line) == nil, err
}

// file yields the sessions of a file.
func (d Dialect) file(ctx context.Context, path string, r *exchange.Report) iter.Seq2[*exchange.Session, error] {
	return func(yield func(*exchange.Session, error) bool) {
		f, err := os.Open(path)
		if err != nil {
			yield(nil, err)
			return
		}
		defer f.Close()
		each := d.List
		if lines, err := areLines(path, f); err != nil {
			yield(nil, err)
			return
		} else if lines {
			each = d.Lines
		}
		for s, err := range each(ctx, f, r) {
			if err != nil && ctx.Err() == nil {
				err = exchange.Unreadable(path, 0, -1, "%v", err)
			}
			if !yield(s, err) || err != nil {
				return
			}
		}
	}
}

// List yields the one session of a text that is a list of messages, or an object
// that has one. At most exchange.MaxLine bytes are read. r hears of what belongs
// to no session; it may be nil.
func (d Dialect) List(_ context.Context, in io.Reader, r *exchange.Report) iter.Seq2[*exchange.Session, error] {
	return func(yield func(*exchange.Session, error) bool) {
		text, err := readAll(in)
		switch {
		case err != nil:
			yield(nil, err)
			return
		case len(text) > exchange.MaxLine:
			yield(nil, errText("the list has more than 256 MiB: write its conversations as lines"))
			return
		}
		text = bytes.TrimPrefix(text, []byte("\ufeff"))
		r.Advance(int64(len(text)))
		text, gone, err := readable(text)
		if errors.Is(err, jsonwire.ErrDepth) {
			yield(nil, errText(tooDeep))
			return
		}
		if err != nil {
			yield(nil, errText("it is no JSON: "+err.Error()))
			return
		}
		gone.tell(r, 0)
		body, ok := bodyOf(text, gone.messages)
		if !ok {
			yield(nil, errText("it is no list of messages, and no object with one"))
			return
		}
		yield(d.session(body), nil)
	}
}

// readAll reads one byte more than a list may have. A file is read into memory of
// its size.
func readAll(in io.Reader) ([]byte, error) {
	var b bytes.Buffer
	if f, ok := in.(*os.File); ok {
		if fi, err := f.Stat(); err == nil && fi.Size() <= exchange.MaxLine {
			b.Grow(int(fi.Size()) + bytes.MinRead)
		}
	}
	_, err := b.ReadFrom(io.LimitReader(in, exchange.MaxLine+1))
	return b.Bytes(), err
}

type errText string

func (e errText) Error() string { return string(e) }

// Lines yields the sessions of a text of lines: one a line that is a list or an
// object with one, and one of all lines that are messages themselves. What is
// held is a line, and the messages of the latter. r hears of lines that are
// neither; it may be nil.
func (d Dialect) Lines(ctx context.Context, in io.Reader, r *exchange.Report) iter.Seq2[*exchange.Session, error] {
	return func(yield func(*exchange.Session, error) bool) {
		var last *body // the next line may go on with it
		var single []row
		held := 0
		for l, err := range exchange.Lines(in, nil) {
			if err == nil {
				err = ctx.Err()
			}
			if err != nil {
				yield(nil, err)
				return
			}
			r.Advance(l.Bytes)
			text := bytes.TrimPrefix(l.Text, []byte("\ufeff"))
			switch {
			case l.Long:
				r.Dropped("line", "it is longer than 256 MiB", l.Number)
				continue
			case jsonwire.Space(text, 0) == len(text):
				continue
			}
			text, gone, err := readable(text)
			if err != nil {
				why := "it is no JSON"
				switch {
				case errors.Is(err, jsonwire.ErrDepth):
					why = tooDeep
				case l.Torn:
					why = "it is torn: the file ends in it"
				}
				r.Dropped("line", why, l.Number)
				continue
			}
			if body, ok := bodyOf(bytes.Clone(text), gone.messages); ok {
				gone.tell(r, l.Number)
				body.line = l.Number
				switch {
				case last != nil && body.goesOn(last):
					r.Mapped("request", "the later one that begins with its messages", last.line)
				case last != nil && !yield(d.session(*last), nil):
					return
				}
				last = &body
				continue
			}
			if gone.any() { // of a message no part is left out
				r.Dropped("line", tooDeep, l.Number)
				continue
			}
			if fields.Of(text).Text("role") == "" {
				r.Dropped("line", "it is no message, and no list of them", l.Number)
				continue
			}
			if held += len(text); held > exchange.MaxLine {
				yield(nil, errText("its messages have more than 256 MiB together"))
				return
			}
			single = append(single, row{fields.Of(bytes.Clone(text)), l.Number})
		}
		if last != nil && !yield(d.session(*last), nil) {
			return
		}
		if len(single) > 0 {
			yield(d.session(body{messages: single}), nil)
		}
	}
}

// row is one message and its line in the source, 0 where there is none.
type row struct {
	fields.Object
	line int64
}

// body is a list of messages and what stands beside it.
type body struct {
	fields.Object // no object for a bare list
	messages      []row
	line          int64
}

// bodyOf takes a value apart; ok is false for one that is no list of messages.
// gone are places in the list where nothing is left.
func bodyOf(v []byte, gone []int) (b body, ok bool) {
	list := v
	if jsonwire.Kind(v) == '{' {
		b.Object = fields.Of(v)
		list = b.Get("messages")
	}
	if jsonwire.Kind(list) != '[' {
		return b, false
	}
	roles := false
	at := 0
	for m := range jsonwire.Elements(list) {
		if at++; len(gone) > 0 && gone[0] == at-1 {
			gone = gone[1:]
			continue
		}
		b.messages = append(b.messages, row{Object: fields.Of(m)})
		// A list of something else has no roles.
		roles = roles || b.messages[len(b.messages)-1].Text("role") != ""
	}
	return b, roles || b.IsObject() && len(b.messages) == 0
}

// session makes the session of a list.
func (d Dialect) session(b body) *exchange.Session {
	s := &exchange.Session{Program: string(d), Source: b.Text("id"), Title: b.Text("title"), Cwd: b.Text("cwd"), CreatedAt: timeOf(b.Object)}
	if s.Source == "" {
		s.Source = b.name()
	}
	s.Feed = func(to *exchange.Builder) error {
		f := feeder{b: to, dialect: d, title: s.Title}
		f.model.Model = b.Text("model")
		if f.model.Model != "" || d == Anthropic {
			f.model.Provider = string(d)
		}
		to.At(b.line)
		f.system(b.Get("system"))
		f.tools(b.Get("tools"))
		for _, m := range b.messages {
			if m.line > 0 {
				to.At(m.line)
			}
			if err := f.message(m.Object); err != nil {
				return err
			}
		}
		return f.giveTitle()
	}
	return s
}

// name is made from the text of the messages through the first of the user.
func (b body) name() string {
	h := sha256.New()
	fmt.Fprintf(h, "%q\n", plain(b.Get("system")))
	for _, m := range b.messages {
		role := m.Text("role")
		fmt.Fprintf(h, "%q %q\n", role, plain(m.Get("content")))
		if role == "user" {
			break
		}
	}
	return "list-" + hex.EncodeToString(h.Sum(nil)[:16])
}

// goesOn reports whether a body begins with the messages of another one, but for
// the marks of a cache, and names the same session.
func (b body) goesOn(of *body) bool {
	if len(b.messages) <= len(of.messages) || b.Text("id") != of.Text("id") || plain(b.Get("system")) != plain(of.Get("system")) {
		return false
	}
	for i, m := range of.messages {
		if !bytes.Equal(bare(nil, m.Raw), bare(nil, b.messages[i].Raw)) {
			return false
		}
	}
	return true
}

// bare appends a value without the members cache_control in it, by which a
// request says what a provider should keep.
func bare(dst, v []byte) []byte {
	switch jsonwire.Kind(v) {
	case '{':
		dst = append(dst, '{')
		for k, m := range jsonwire.Members(v) {
			if !jsonwire.KeyIs(k, "cache_control") {
				dst = append(append(append(dst, '"'), k...), '"', ':')
				dst = append(bare(dst, m), ',')
			}
		}
		return append(dst, '}')
	case '[':
		dst = append(dst, '[')
		for e := range jsonwire.Elements(v) {
			dst = append(bare(dst, e), ',')
		}
		return append(dst, ']')
	}
	return append(dst, bytes.TrimSpace(v)...)
}

// timeOf is the time that an object has in Unix milliseconds, 0 for none.
func timeOf(o fields.Object) int64 {
	for _, name := range [...]string{"created_at", "created", "timestamp"} {
		m := o.Get(name)
		if n, ok := jsonwire.Int(m); ok && n > 0 {
			if n < 100_000_000_000 { // seconds
				n *= 1000
			}
			return n
		}
		if s, ok := jsonwire.Text(m); ok {
			if t, err := time.Parse(time.RFC3339Nano, s); err == nil && t.UnixMilli() > 0 {
				return t.UnixMilli()
			}
		}
	}
	return 0
}
