package script

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	outcrop "github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/message"
)

// ErrInvalid is the reason of every error of Parse.
var ErrInvalid = errors.New("script not usable")

// Parse reads a script file's text. path names it in errors and, by its base
// name, in failures. The error is an *outcrop.Error with path and line that
// wraps ErrInvalid.
func Parse(path string, text []byte) (*Script, error) {
	text = bytes.Clone(text) // the replies keep spans of it
	s := &Script{Path: path, Header: Header{
		Model:     filepath.Base(path),
		Window:    32000,
		MaxOutput: 4096,
		Piece:     defaultPiece,
		End:       EndError,
	}}
	p := &parser{path: path}
	first := true
	for len(text) > 0 {
		line, rest, _ := bytes.Cut(text, []byte{'\n'})
		text = rest
		p.line++
		line = bytes.TrimSuffix(line, []byte{'\r'})
		if len(bytes.TrimSpace(line)) == 0 || line[0] == '#' {
			continue
		}
		if err := jsonwire.Strict(line); err != nil {
			return nil, p.fail(err.Error(), "each line is one JSON object; a line that starts with # is a comment")
		}
		if jsonwire.Kind(line) != '{' {
			return nil, p.fail("a line must be a JSON object", "")
		}
		if jsonwire.Get(line, "script") != nil {
			if !first {
				return nil, p.fail("a header in the middle of the script", "it may stand only on the first line")
			}
			if err := p.header(line, &s.Header); err != nil {
				return nil, err
			}
		} else {
			r := Reply{Line: p.line, Delay: s.Header.Delay}
			if err := p.reply(line, &r); err != nil {
				return nil, err
			}
			s.Replies = append(s.Replies, r)
		}
		first = false
	}
	return s, nil
}

type parser struct {
	path string
	line int
}

func (p *parser) fail(msg, hint string) error {
	return &outcrop.Error{Op: "script", Path: p.path, Line: p.line, Seq: -1, Offset: -1, Err: ErrInvalid, Msg: msg, Hint: hint}
}

// A reader takes a member's value and says what is wrong with it, or "".
type reader func(v []byte) string

// members reads an object whose members are all known. where names it in
// errors, "" for the line itself.
func (p *parser) members(v []byte, where string, known map[string]reader) error {
	if jsonwire.Kind(v) != '{' {
		return p.fail(where+" must be an object", "")
	}
	for k, m := range jsonwire.Members(v) {
		name := jsonwire.Key(k)
		read, ok := known[name]
		at := name
		if where != "" {
			at = where + "." + name
		}
		if !ok {
			return p.fail(fmt.Sprintf("unknown member %q", at), "known here: "+strings.Join(slices.Sorted(maps.Keys(known)), " "))
		}
		if fault := read(m); fault != "" {
			return p.fail(at+" "+fault, "")
		}
	}
	return nil
}

func isText(dst *string) reader {
	return func(v []byte) string {
		var ok bool
		if *dst, ok = jsonwire.Text(v); !ok {
			return "must be a string"
		}
		return ""
	}
}

func isFilled(dst *string) reader {
	return func(v []byte) string {
		if fault := isText(dst)(v); fault != "" {
			return fault
		}
		if *dst == "" {
			return "must not be empty"
		}
		return ""
	}
}

func isNumber(dst *int64, low, high int64) reader {
	return func(v []byte) string {
		n, ok := jsonwire.Int(v)
		if !ok || n < low || n > high {
			return fmt.Sprintf("must be a whole number from %d to %d", low, high)
		}
		*dst = n
		return ""
	}
}

func isCount(dst *int, low int64) reader {
	return func(v []byte) string {
		var n int64
		fault := isNumber(&n, low, 1_000_000_000)(v)
		*dst = int(n)
		return fault
	}
}

func isMillis(dst *time.Duration) reader {
	return func(v []byte) string {
		var ms int64
		fault := isNumber(&ms, 0, 86_400_000)(v)
		*dst = time.Duration(ms) * time.Millisecond
		return fault
	}
}

func isOneOf[T ~string](dst *T, values ...T) reader {
	return func(v []byte) string {
		s, ok := jsonwire.Text(v)
		if *dst = T(s); !ok || !slices.Contains(values, T(s)) {
			var b strings.Builder
			for i, value := range values {
				switch {
				case i > 0 && i == len(values)-1:
					b.WriteString(" or ")
				case i > 0:
					b.WriteString(", ")
				}
				b.WriteString(string(value))
			}
			return "must be " + b.String()
		}
		return ""
	}
}

func isRaw(dst *[]byte) reader {
	return func(v []byte) string {
		*dst = v
		return ""
	}
}

func (p *parser) header(v []byte, h *Header) error {
	return p.members(v, "", map[string]reader{
		"script": func(v []byte) string {
			if n, ok := jsonwire.Int(v); !ok || n != 1 {
				return fmt.Sprintf("is version %s; this program reads version 1", v)
			}
			return ""
		},
		"model":     isFilled(&h.Model),
		"window":    isNumber(&h.Window, 0, jsonwire.MaxSafe),
		"maxOutput": isNumber(&h.MaxOutput, 1, jsonwire.MaxSafe),
		"piece":     isCount(&h.Piece, 1),
		"delayMs":   isMillis(&h.Delay),
		"end":       isOneOf(&h.End, EndError, EndLast, EndStop),
	})
}

func (p *parser) reply(v []byte, r *Reply) error {
	var tools, blocks, chunks, usage, failure, when, expect []byte
	err := p.members(v, "", map[string]reader{
		"reasoning": isText(&r.Reasoning),
		"text":      isText(&r.Text),
		"tools":     isRaw(&tools),
		"blocks":    isRaw(&blocks),
		"chunks":    isRaw(&chunks),
		"finish":    isOneOf(&r.Finish, message.Stop, message.ToolCalls, message.MaxTokens),
		"usage":     isRaw(&usage),
		"error":     isRaw(&failure),
		"cut":       isOneOf(&r.Cut, CutEOF, CutReset, CutHang),
		"after":     isCount(&r.After, 0),
		"delayMs":   isMillis(&r.Delay),
		"when":      isRaw(&when),
		"expect":    isRaw(&expect),
	})
	if err != nil {
		return err
	}
	has := func(name string) bool { return jsonwire.Get(v, name) != nil }
	for _, pair := range [...][2]string{
		{"blocks", "reasoning"}, {"blocks", "text"}, {"blocks", "tools"}, {"blocks", "chunks"},
		{"chunks", "reasoning"}, {"chunks", "text"}, {"chunks", "tools"}, {"chunks", "finish"}, {"chunks", "usage"},
		{"error", "cut"}, {"error", "finish"}, {"cut", "finish"},
	} {
		if has(pair[0]) && has(pair[1]) {
			return p.fail(fmt.Sprintf("%s and %s exclude each other", pair[0], pair[1]), "")
		}
	}
	if r.After > 0 && !has("error") && !has("cut") {
		return p.fail("after needs error or cut", "")
	}
	for _, part := range [...]struct {
		v    []byte
		read func([]byte, *Reply) error
	}{{tools, p.tools}, {blocks, p.blocks}, {chunks, p.chunks}, {usage, p.usage}, {failure, p.failure}, {when, p.when}, {expect, p.expect}} {
		if part.v != nil {
			if err := part.read(part.v, r); err != nil {
				return err
			}
		}
	}
	return nil
}

// list reads an array, element by element.
func (p *parser) list(v []byte, name string, read func(v []byte, at string) error) error {
	if jsonwire.Kind(v) != '[' {
		return p.fail(name+" must be an array", "")
	}
	i := 0
	for e := range jsonwire.Elements(v) {
		if err := read(e, fmt.Sprintf("%s[%d]", name, i)); err != nil {
			return err
		}
		i++
	}
	return nil
}

func (p *parser) tools(v []byte, r *Reply) error {
	return p.list(v, "tools", func(v []byte, at string) error {
		var c Call
		var args []byte
		if err := p.members(v, at, map[string]reader{
			"id": isFilled(&c.ID), "name": isText(&c.Name), "args": isRaw(&args), "raw": isText(&c.Arguments),
		}); err != nil {
			return err
		}
		raw := jsonwire.Get(v, "raw") != nil
		switch {
		case jsonwire.Get(v, "name") == nil:
			return p.fail(at+".name is missing", "")
		case raw && args != nil:
			return p.fail(at+" has args and raw", "raw stands in the place of args")
		case args != nil && jsonwire.Kind(args) != '{':
			return p.fail(at+".args must be an object", "broken arguments are written as a string in raw")
		case args != nil:
			c.Arguments = string(jsonwire.Compact(args))
		case !raw:
			c.Arguments = "{}"
		}
		r.Tools = append(r.Tools, c)
		return nil
	})
}

func (p *parser) blocks(v []byte, r *Reply) error {
	r.Blocks = []message.Block{}
	return p.list(v, "blocks", func(v []byte, at string) error {
		var typ message.BlockType
		var text, id, name, arguments string
		var attachment []byte
		known := map[string]reader{"type": isOneOf(&typ, message.TextBlock, message.ReasoningBlock, message.ToolCallBlock, message.ImageBlock)}
		need := "text"
		switch {
		case jsonwire.TextIs(jsonwire.Get(v, "type"), string(message.ToolCallBlock)):
			known["id"], known["name"], known["arguments"] = isFilled(&id), isText(&name), isText(&arguments)
			need = "arguments"
		case jsonwire.TextIs(jsonwire.Get(v, "type"), string(message.ImageBlock)):
			known["attachment"] = isRaw(&attachment)
			need = "attachment"
		default:
			known["text"] = isText(&text)
		}
		if err := p.members(v, at, known); err != nil {
			return err
		}
		for _, name := range [...]string{"type", need} {
			if jsonwire.Get(v, name) == nil {
				return p.fail(at+"."+name+" is missing", "")
			}
		}
		b := message.Block{Type: typ, Text: text, ID: id, Name: name, Arguments: arguments, Attachment: attachment}
		r.Blocks = append(r.Blocks, b)
		return nil
	})
}

// chunkMembers are the members that a chunk of each type has; the optional
// ones follow the semicolon.
var chunkMembers = map[message.ChunkType]string{
	message.BlockStart:     "type index blockType",
	message.TextDelta:      "type index text",
	message.ReasoningDelta: "type index text",
	message.ToolCallDelta:  "type index id argumentsDelta;name",
	message.BlockEnd:       "type index block",
	message.UsageChunk:     "type usage",
	message.FinishChunk:    "type reason;replayState",
}

func (p *parser) chunks(v []byte, r *Reply) error {
	r.Chunks = []message.Chunk{}
	return p.list(v, "chunks", func(v []byte, at string) error {
		if jsonwire.Kind(v) != '{' {
			return p.fail(at+" must be an object", "")
		}
		c, err := message.ParseChunk(v)
		if err != nil {
			return p.fail(at+": "+err.Error(), "")
		}
		names, ok := chunkMembers[c.Type]
		if !ok {
			return p.fail(fmt.Sprintf("%s.type %q is no chunk type", at, c.Type), "")
		}
		must, may, _ := strings.Cut(names, ";")
		known := make(map[string]reader)
		for _, name := range strings.Fields(must + " " + may) {
			known[name] = chunkReader(name)
		}
		if err := p.members(v, at, known); err != nil {
			return err
		}
		for _, name := range strings.Fields(must) {
			if jsonwire.Get(v, name) == nil {
				return p.fail(at+"."+name+" is missing", "")
			}
		}
		r.Chunks = append(r.Chunks, c)
		return nil
	})
}

func chunkReader(name string) reader {
	var text string
	var n int64
	switch name {
	case "index":
		return isNumber(&n, 0, 1_000_000)
	case "block", "usage", "reason":
		return func(v []byte) string {
			if jsonwire.Kind(v) != '{' {
				return "must be an object"
			}
			return ""
		}
	case "replayState":
		return func([]byte) string { return "" }
	}
	return isText(&text)
}

func (p *parser) usage(v []byte, r *Reply) error {
	u := &message.Usage{}
	count := func(dst **int64) reader {
		return func(v []byte) string {
			*dst = new(int64)
			return isNumber(*dst, 0, jsonwire.MaxSafe)(v)
		}
	}
	r.Usage = u
	return p.members(v, "usage", map[string]reader{
		"input":      isNumber(&u.InputTokens, 0, jsonwire.MaxSafe),
		"output":     isNumber(&u.OutputTokens, 0, jsonwire.MaxSafe),
		"cacheRead":  count(&u.CacheReadTokens),
		"cacheWrite": count(&u.CacheWriteTokens),
		"reasoning":  count(&u.ReasoningTokens),
	})
}

func (p *parser) failure(v []byte, r *Reply) error {
	f := &message.Failure{}
	var status int64
	if err := p.members(v, "error", map[string]reader{
		"code":         isFilled(&f.Code),
		"message":      isFilled(&f.Message),
		"status":       isNumber(&status, 100, 599),
		"retryAfterMs": isNumber(&f.RetryAfterMs, 1, 86_400_000),
	}); err != nil {
		return err
	}
	if f.Code == "" {
		return p.fail("error.code is missing", "")
	}
	if f.Message == "" {
		f.Message = Provider + ": " + f.Code
	}
	f.Status = int(status)
	r.Error = f
	return nil
}

func (p *parser) when(v []byte, r *Reply) error {
	w := &r.When
	return p.members(v, "when", map[string]reader{
		"purpose":  isOneOf(&w.Purpose, llm.Turn, llm.Compaction, llm.Title),
		"turn":     isCount(&w.Turn, 1),
		"step":     isCount(&w.Step, 1),
		"attempt":  isCount(&w.Attempt, 1),
		"contains": isFilled(&w.Contains),
	})
}

func (p *parser) expect(v []byte, r *Reply) error {
	e := &r.Expect
	var tools []byte
	if err := p.members(v, "expect", map[string]reader{
		"contains": isFilled(&e.Contains),
		"absent":   isFilled(&e.Absent),
		"tools":    isRaw(&tools),
		"messages": isCount(&e.Messages, 1),
	}); err != nil || tools == nil {
		return err
	}
	e.Tools = []string{}
	return p.list(tools, "expect.tools", func(v []byte, at string) error {
		var name string
		if fault := isFilled(&name)(v); fault != "" {
			return p.fail(at+" "+fault, "")
		}
		e.Tools = append(e.Tools, name)
		return nil
	})
}
