package claudecode

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/exchange"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/message"
)

// provider is who answers in these sessions.
const provider = "anthropic"

// maxMeta is how long the structured copy of a result may be that is kept with
// it, in bytes.
const maxMeta = 4 << 10

// sessionOf is a way as a session.
func (x *index) sessionOf(t *thread) *exchange.Session {
	s := &exchange.Session{
		Program: Name, Version: x.version, Source: t.source, CreatedAt: x.created, Cwd: x.cwd,
		Extent: func() (int64, string) { return x.bytes, x.digest },
	}
	if t.parent == nil {
		s.Title = x.title
	}
	if t.parent != nil {
		s.Parent, s.Subagent = t.parent.source, t.side
	} else if x.agent != "" {
		s.Parent, s.Subagent = x.session, true
	} else if x.from != "" && x.from != x.session {
		s.Parent = x.from
	}
	s.Feed = func(b *exchange.Builder) error {
		f := &feed{x: x, b: b, r: reader{f: x.file}, thread: t}
		return f.run()
	}
	return s
}

// feed gives one way to a builder.
type feed struct {
	x      *index
	b      *exchange.Builder
	r      reader
	thread *thread

	title    string
	last     string // id of the last message
	before   map[int32]string
	boundary []byte // compactMetadata of a boundary whose summary has not come
	kept     int32  // head of what it left standing, -1 nothing
	open     bool   // a boundary was seen
}

func (f *feed) run() error {
	f.before, f.kept = map[int32]string{}, -1
	t := f.thread
	order := t.entries()
	seeds := f.x.seeds(t, order)
	if t.bare {
		f.b.Mapped("branch", "it begins without the messages that it shares: the file has too many branches")
	}
	var lastTime int64
	for k := 0; k < len(order); {
		for len(seeds) > 0 && k >= seeds[0] {
			if err := f.seed(&seeds, lastTime); err != nil {
				return err
			}
		}
		i := order[k]
		e := &f.x.entries[i]
		f.b.At(int64(e.number))
		if f.x.heads[i] {
			f.before[i] = f.last
		}
		n := 1
		if e.kind == kindAssistant && e.message != (key{}) {
			for k+n < len(order) && f.x.entries[order[k+n]].kind == kindAssistant && f.x.entries[order[k+n]].message == e.message && (len(seeds) == 0 || k+n != seeds[0]) {
				n++
			}
		}
		var err error
		if e.kind == kindAssistant {
			lastTime, err = f.reply(order[k : k+n])
		} else {
			lastTime, err = f.one(i)
		}
		if err != nil {
			return err
		}
		for _, i := range order[k : k+n] {
			f.b.Report().Advance(int64(f.x.entries[i].length)/2 + 1)
		}
		k += n
	}
	for len(seeds) > 0 {
		if err := f.seed(&seeds, lastTime); err != nil {
			return err
		}
	}
	if f.open {
		f.b.Dropped("compaction", "its summary did not come")
	}
	return nil
}

// seed ends what was inherited, by the session or by its parents.
func (f *feed) seed(seeds *[]int, at int64) error {
	last := len(*seeds) == 1
	*seeds = (*seeds)[1:]
	if !last {
		return f.b.ParentsSeed(at)
	}
	return f.b.Seed(at)
}

// seeds are the lengths of what a way inherited, each parent's before it, its
// own last.
func (x *index) seeds(t *thread, order []int32) []int {
	if t.side {
		return nil
	}
	if t.parent != nil && t.shared == 0 {
		return []int{0}
	}
	if t.parent != nil {
		above := x.seeds(t.parent, order[:min(t.shared, len(order))])
		for len(above) > 0 && above[len(above)-1] > t.shared {
			above = above[:len(above)-1]
		}
		return append(above, t.shared)
	}
	if x.from == "" || x.from == x.session || x.agent != "" {
		return nil
	}
	n := 0
	for k, i := range order {
		if x.entries[i].flags&flagCopied != 0 {
			n = k + 1
		}
	}
	return []int{n}
}

// line reads an entry again.
func (f *feed) line(i int32) ([]byte, error) {
	e := &f.x.entries[i]
	line, err := f.r.line(e)
	if err != nil {
		return nil, exchange.Unreadable(f.x.path, int64(e.number), e.offset, "the file changed while it was read: %v", err)
	}
	return line, nil
}

// idOf is the uuid of an entry.
func idOf(e *entry, line []byte) string {
	switch {
	case e.flags&flagPlain != 0:
		return e.uuid.String()
	case e.kind == kindTitle:
		return ""
	}
	id, _ := jsonwire.Text(jsonwire.Get(line, "uuid"))
	return id
}

// one adds an entry that is no reply.
func (f *feed) one(i int32) (int64, error) {
	line, err := f.line(i)
	if err != nil {
		return 0, err
	}
	e := &f.x.entries[i]
	at, id := e.time, idOf(e, line)
	switch e.kind {
	case kindUser, kindResult:
		return at, f.user(i, id, at, line)
	case kindBoundary:
		f.open = true
		f.boundary = bytes.Clone(jsonwire.Get(line, "compactMetadata"))
		f.kept = -1
		for _, p := range f.x.preserve {
			if p.boundary == i {
				f.kept = p.head
			}
		}
	case kindAttachment:
		return at, f.attachment(id, at, jsonwire.Get(line, "attachment"))
	case kindTitle:
		for _, name := range [...]string{"customTitle", "aiTitle", "summary"} {
			if title, ok := jsonwire.Text(jsonwire.Get(line, name)); ok && title != f.title {
				f.title = title
				return at, f.b.Title(at, title)
			}
		}
	default:
		kind, _ := jsonwire.Text(jsonwire.Get(line, "type"))
		if sub, ok := jsonwire.Text(jsonwire.Get(line, "subtype")); ok {
			kind += " " + sub
		}
		f.b.Dropped("record "+kind, "what the program showed or counted: the model did not read it")
	}
	return at, nil
}

// Marks that the program puts into the text of a user line.
const (
	interrupted = "[Request interrupted by user"
	localOutput = "<local-command-"
	shellOutput = "<bash-stdout>"
)

func (f *feed) user(i int32, id string, at int64, line []byte) error {
	e := &f.x.entries[i]
	msg := e.body.of(line)
	var c exchange.AnthropicContent
	var err error
	jsonwire.Visit(msg, 0, func(key []byte, at int) (end int) {
		if string(key) == "content" && err == nil {
			c, end, err = f.b.AnthropicAt(msg, at)
		}
		return end
	})
	if err != nil {
		return err
	}
	for k := range c.Results {
		r := &c.Results[k]
		r.Time, r.ID = at, id
		if k > 0 || len(c.Blocks) > 0 {
			r.ID = fmt.Sprintf("%s-%d", id, k+1)
		}
		if len(c.Results) == 1 {
			r.Meta = f.metaOf(e.result.of(line))
		}
		f.last = r.ID
		if err := f.b.Result(*r); err != nil {
			return err
		}
	}
	if len(c.Blocks) == 0 {
		if len(c.Results) == 0 {
			f.b.Dropped("prompt", "it has no content")
		}
		return nil
	}
	f.last = id
	text := beginning(c.Blocks)
	switch {
	case e.flags&flagSummary != 0:
		return f.compact(id, at, c.Blocks)
	case e.flags&flagShown != 0:
		f.b.Dropped("note", "the program showed it, the model did not read it")
		return nil
	case strings.HasPrefix(text, interrupted) && len(c.Blocks) == 1:
		if err := f.b.AddContext(exchange.Context{ID: id, Time: at, Content: c.Blocks}); err != nil {
			return err
		}
		return f.b.EndTurn(at, outcrop.TurnReason{Kind: outcrop.TurnAborted, Abort: outcrop.AbortReason{Kind: "user"}})
	case e.flags&flagMeta != 0, strings.HasPrefix(text, localOutput), strings.HasPrefix(text, shellOutput):
		return f.b.AddContext(exchange.Context{ID: id, Time: at, Content: c.Blocks})
	}
	return f.b.Prompt(exchange.Prompt{ID: id, Time: at, Content: c.Blocks, Steer: len(c.Results) > 0})
}

// metaOf is the structured copy of a result.
func (f *feed) metaOf(v []byte) json.RawMessage {
	if v == nil || jsonwire.Kind(v) == '"' {
		return nil // the text once more
	}
	if len(v) > maxMeta || jsonwire.Strict(v) != nil {
		f.b.Dropped("structured copy of a result", "it is long, and the result says the same")
		return nil
	}
	return jsonwire.Compact(v)
}

func (f *feed) compact(id string, at int64, summary []message.Block) error {
	c := exchange.Compaction{Time: at, MessageID: id, Summary: summary}
	if f.kept >= 0 {
		c.Through = f.before[f.kept]
		if c.Through == "" {
			// Everything before it was left standing.
			f.b.Mapped("compaction", "a context message: it covers nothing")
			f.open, f.boundary = false, nil
			return f.b.AddContext(exchange.Context{ID: id, Time: at, Content: summary})
		}
	}
	c.TokensBefore, _ = jsonwire.Int(jsonwire.Get(f.boundary, "preTokens"))
	c.TokensAfter, _ = jsonwire.Int(jsonwire.Get(f.boundary, "postTokens"))
	f.open, f.boundary, f.kept = false, nil, -1
	return f.b.Compact(c)
}

func (f *feed) attachment(id string, at int64, v []byte) error {
	kind, _ := jsonwire.Text(jsonwire.Get(v, "type"))
	switch kind {
	case "queued_command":
		c, err := f.b.Anthropic(jsonwire.Get(v, "prompt"))
		if err != nil {
			return err
		}
		if len(c.Blocks) > 0 {
			f.last = id
			return f.b.Prompt(exchange.Prompt{ID: id, Time: at, Content: c.Blocks, Steer: true})
		}
	case "file", "already_read_file", "edited_text_file":
		name, _ := jsonwire.Text(jsonwire.Get(v, "filename"))
		content := jsonwire.Get(v, "content")
		text, ok := jsonwire.Text(jsonwire.Get(jsonwire.Get(content, "file"), "content"))
		if !ok {
			text, ok = jsonwire.Text(jsonwire.Get(v, "snippet"))
		}
		if ok {
			f.last = id
			f.b.Mapped("attachment "+kind, "a context message with its text")
			return f.b.AddContext(exchange.Context{ID: id, Time: at, Form: "snapshot", Content: []message.Block{message.Text("File " + name + ":\n" + text)}})
		}
	}
	if jsonwire.Kind(v) != '{' {
		f.b.Dropped("attachment", "it is no object")
		return nil
	}
	f.last = id
	f.b.Mapped("attachment "+kind, "a context message with its JSON: what the model read is not in the file")
	return f.b.AddContext(exchange.Context{ID: id, Time: at, Content: []message.Block{message.Text("[" + Name + " " + kind + "] " + string(v))}})
}

// reply adds the lines of one reply.
func (f *feed) reply(lines []int32) (int64, error) {
	var r exchange.Reply
	var states []json.RawMessage
	signed := false
	calls, texts := map[string]bool{}, map[string]bool{}
	var failure string
	for _, i := range lines {
		line, err := f.line(i)
		if err != nil {
			return 0, err
		}
		f.b.At(int64(f.x.entries[i].number))
		e := &f.x.entries[i]
		if r.Time == 0 {
			r.Time = e.time
		}
		if r.ID == "" {
			r.ID = idOf(e, line)
		}
		m := e.body.of(line)
		var c exchange.AnthropicContent
		jsonwire.Visit(m, 0, func(key []byte, at int) (end int) {
			switch string(key) {
			case "model":
				var model string
				if model, end, _ = jsonwire.TextAt(m, at); model != "" {
					r.Model = model
				}
			case "usage":
				end = jsonwire.Skip(m, at)
				if u := exchange.AnthropicUsage(m[at:end]); u != nil {
					r.Usage = u // of one that is told again and again the last one counts
				}
			case "stop_reason":
				var reason string
				if reason, end, _ = jsonwire.TextAt(m, at); reason == "max_tokens" {
					r.MaxTokens = true
				}
			case "content":
				if err == nil {
					c, end, err = f.b.AnthropicAt(m, at)
				}
			}
			return end
		})
		if err != nil {
			return 0, err
		}
		if e.flags&flagError != 0 {
			failure = message.PlainText(c.Blocks)
		}
		state := statesOf(c.Replay, len(c.Blocks))
		for k, block := range c.Blocks {
			again := false
			switch block.Type {
			case message.ToolCallBlock:
				again = block.ID != "" && calls[block.ID]
				calls[block.ID] = true
			case message.TextBlock, message.ReasoningBlock:
				if len(lines) > 1 && block.Text != "" {
					t := string(block.Type) + block.Text
					again = texts[t]
					texts[t] = true
				}
			}
			if again {
				f.b.Dropped("block of a reply", "it was written before, under the same message id")
				continue
			}
			r.Content = append(r.Content, block)
			states = append(states, state[k])
			signed = signed || state[k] != nil
		}
		for k := range c.Results {
			f.b.Mapped("result in a reply", "text")
			r.Content = append(r.Content, c.Results[k].Content...)
			for range c.Results[k].Content {
				states = append(states, nil)
			}
		}
	}
	switch {
	case failure != "":
		f.b.Mapped("failure of a call to the model", "the reason for which its turn ended")
		return r.Time, f.b.EndTurn(r.Time, outcrop.TurnReason{Kind: outcrop.TurnError, Error: &message.Failure{Message: failure, Code: message.CodeUnknown}})
	case r.Model == "<synthetic>":
		f.b.Dropped("reply", "the program wrote it in place of the model")
		return r.Time, nil
	}
	if signed {
		dst := []byte(`{"anthropic":1,"blocks":[`)
		for k, s := range states {
			if k > 0 {
				dst = append(dst, ',')
			}
			if s == nil {
				s = json.RawMessage("null")
			}
			dst = append(dst, s...)
		}
		r.Replay = append(dst, ']', '}')
	}
	r.Provider = provider
	f.last = r.ID
	return r.Time, f.b.Reply(r)
}

// statesOf are the elements of a replay state, n of them, nil where a block has
// none.
func statesOf(replay json.RawMessage, n int) []json.RawMessage {
	out := make([]json.RawMessage, n)
	k := 0
	for v := range jsonwire.Elements(jsonwire.Get(replay, "blocks")) {
		if k < n && jsonwire.Kind(v) == '{' {
			out[k] = v
		}
		k++
	}
	return out
}

// beginning is the first text of a message.
func beginning(blocks []message.Block) string {
	for i := range blocks {
		if blocks[i].Type == message.TextBlock {
			return strings.TrimSpace(blocks[i].Text)
		}
	}
	return ""
}
