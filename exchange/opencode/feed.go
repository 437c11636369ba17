package opencode

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/exchange"
	"github.com/outcrop-dev/outcrop/exchange/internal/callargs"
	"github.com/outcrop-dev/outcrop/exchange/internal/fields"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/message"
)

// unfit says why a piece that cannot be read is left out; "" for a JSON object.
func unfit(v []byte) string {
	switch err := jsonwire.Valid(v); {
	case errors.Is(err, jsonwire.ErrDepth):
		return fmt.Sprintf("its values are nested more than %d deep", jsonwire.MaxReadDepth)
	case err != nil || jsonwire.Kind(v) != '{':
		return "it is no JSON object"
	}
	return ""
}

// feeder gives the messages of one session to a builder.
type feeder struct {
	b      *exchange.Builder
	title  string
	revert string

	order    []string // ids of what was given, for the place of a compaction
	tail     string   // of the compaction that was asked for last: where the kept messages begin
	titled   bool
	ended    *outcrop.TurnReason // of the last reply; the turn ends so when no other reply comes
	endedAt  int64
	done     *outcrop.TurnReason // how a turn ends whose last reply asked for nothing more; nil for another
	turns    int                 // before the message where all was taken back
	reverted bool
}

// entry gives one message.
func (f *feeder) entry(e *entry) error {
	for _, why := range e.lost {
		f.b.Dropped("part", why)
	}
	if f.revert != "" && e.id == f.revert && !f.reverted {
		if err := f.endTurn(); err != nil {
			return err
		}
		f.reverted, f.turns = true, f.b.Turns()
	}
	if !e.info.IsObject() {
		f.b.Dropped("message", cmp.Or(e.bad, "it is no JSON object"))
		for range e.parts {
			f.b.Dropped("part", "its message cannot be read")
		}
		return nil
	}
	if e.kind != "" {
		return f.item(e)
	}
	if own := e.info.Get("parts"); jsonwire.Kind(own) == '[' && len(e.parts) == 0 {
		return f.whole(e, own)
	}
	switch role := e.info.Text("role"); role {
	case "user":
		return f.user(e)
	case "assistant":
		return f.assistant(e)
	default:
		f.b.Dropped("message of role "+clip(role), "the role is not known")
		return nil
	}
}

// clip shortens a name that a report shows.
func clip(s string) string {
	const most = 40
	if len(s) > most {
		s = s[:most] + "..."
	}
	return fmt.Sprintf("%q", s)
}

// created is when a message was made.
func created(e *entry) int64 {
	if t := millis(e.info.Of("time").Get("created")); t > 0 {
		return t
	}
	return e.time
}

// user gives a message of a person.
func (f *feeder) user(e *entry) error {
	var content, added []message.Block
	seen := false // something of it was for a model
	asked := false
	synthetic := false
	for _, p := range e.parts {
		synthetic = synthetic || p.Text("type") == "text" && p.True("synthetic")
	}
	for _, p := range e.parts {
		switch t := p.Text("type"); t {
		case "text":
			s := p.Text("text")
			switch {
			case p.True("ignored"):
				f.b.Dropped("text for people alone", "the model did not read it")
				seen = true
			case s == "":
			case p.True("synthetic"):
				added = append(added, message.Text(s))
			default:
				content = append(content, message.Text(s))
			}
		case "file":
			block, ok, err := f.file(p, synthetic)
			if err != nil {
				return err
			}
			if seen = true; ok {
				content = append(content, block)
			}
		case "agent":
			f.b.Mapped("mention of an agent", "its place in the prompt's text")
			seen = true
		case "subtask":
			f.b.Mapped("subtask", "the text of its prompt")
			s := p.Text("prompt")
			if c := p.Text("command"); c != "" {
				s = "/" + c + " " + s
			}
			content = append(content, message.Text(strings.TrimSpace(s)))
		case "compaction":
			f.tail, asked = p.Text("tail_start_id"), true
		default:
			if f.own(t) {
				seen = true
				continue
			}
			content = append(content, f.raw(t, p))
		}
	}
	at := created(e)
	switch {
	case len(content) == 0 && len(added) == 0 && (asked || seen):
		return nil
	case len(content) == 0 && len(added) == 0:
		f.b.Dropped("prompt", "it has no parts")
		return nil
	}
	f.system(e.info.Text("system"))
	if err := f.endTurn(); err != nil {
		return err
	}
	if len(content) > 0 {
		id := e.id
		if len(added) > 0 {
			id = e.id + ".prompt"
		}
		if err := f.b.Prompt(exchange.Prompt{ID: id, Time: at, Content: content}); err != nil {
			return err
		}
	}
	if len(added) > 0 {
		if err := f.b.AddContext(exchange.Context{ID: e.id, Time: at, Content: added}); err != nil {
			return err
		}
	}
	f.order = append(f.order, e.id)
	return f.giveTitle(at)
}

// giveTitle gives the session's title behind the first message, where a session
// that goes on still has it.
func (f *feeder) giveTitle(at int64) error {
	if f.titled {
		return nil
	}
	f.titled = true
	return f.b.Title(at, f.title)
}

// file gives a file that a message holds or names; ok is false for one that
// stands elsewhere.
func (f *feeder) file(p fields.Object, expanded bool) (block message.Block, ok bool, err error) {
	url, mime, name := p.Text("url"), p.Text("mime"), p.Text("filename")
	if url == "" {
		url = p.Text("uri")
	}
	if mime == "" {
		mime = p.Text("mediaType")
	}
	if name == "" {
		name = p.Text("name")
	}
	if strings.HasPrefix(url, "data:") {
		block, err = f.b.AttachBase64(url, mime, name)
		return block, err == nil, err
	}
	if expanded && (mime == "text/plain" || mime == "application/x-directory") {
		f.b.Mapped("named file", "the context message with its text")
		return block, false, nil
	}
	if name == "" {
		name = url
	}
	return f.b.Missing("file", name), true, nil
}

// raw keeps a part of a kind that is not known as it is, without what only names
// its place.
func (f *feeder) raw(kind string, p fields.Object) message.Block {
	return f.b.Raw("part "+clip(kind), without(p.Raw, "id", "messageID", "sessionID"))
}

// own reports a part that is a record of opencode's and no content.
func (f *feeder) own(kind string) bool {
	switch kind {
	case "snapshot", "patch":
		f.b.Dropped(kind, "a record of files, kept in opencode's own repository of snapshots")
	case "retry":
		f.b.Dropped(kind, "an attempt that failed and was repeated")
	case "step-start", "step-finish":
	default:
		return false
	}
	return true
}

// step is one call of the model and what came of it.
type step struct {
	content []message.Block
	states  []exchange.Thinking
	results []exchange.Result
	usage   *message.Usage
}

// assistant gives a message of the model: a summary, or one reply a step.
func (f *feeder) assistant(e *entry) error {
	provider, model := e.info.Text("providerID"), e.info.Text("modelID")
	var failure string
	if v := e.info.Of("error"); v.IsObject() {
		failure = v.Text("name")
		if failure == "" {
			failure = "UnknownError"
		}
	}
	steps, err := f.steps(e.parts, provider)
	if err != nil {
		return err
	}
	if len(steps) > 0 && steps[len(steps)-1].usage == nil || len(steps) == 1 {
		if u := usageOf(e.info.Of("tokens")); u != nil {
			steps[len(steps)-1].usage = u
		}
	}
	if e.info.True("summary") {
		return f.summary(e, steps, provider, model, failure)
	}
	at := created(e)
	done := millis(e.info.Of("time").Get("completed"))
	aborted := failure == "MessageAbortedError"
	given := false
	for i, s := range steps {
		last := i == len(steps)-1
		if len(s.content) == 0 {
			continue
		}
		id := e.id
		if !last {
			id = fmt.Sprintf("%s.%d", e.id, i+1)
		}
		if err := f.reply(exchange.Reply{ID: id, Time: at, Provider: provider, Model: model, Content: s.content, Replay: exchange.ThinkingReplay(s.states),
			Usage: s.usage, Interrupted: aborted && last, MaxTokens: last && e.info.Text("finish") == "length"}); err != nil {
			return err
		}
		given = true
		for _, r := range s.results {
			if err := f.b.Result(r); err != nil {
				return err
			}
		}
	}
	if given {
		f.order = append(f.order, e.id)
	} else if failure == "" {
		f.b.Dropped("reply", "it has no content")
	}
	if failure != "" {
		f.failed(e, failure, max(at, done))
	}
	return nil
}

// reply gives one reply. A turn that seemed to have ended goes on.
func (f *feeder) reply(r exchange.Reply) error {
	f.ended, f.done = nil, nil
	if !slices.ContainsFunc(r.Content, func(b message.Block) bool { return b.Type == message.ToolCallBlock }) {
		f.done = &outcrop.TurnReason{Kind: outcrop.Completed}
		if r.MaxTokens {
			f.done.Kind = outcrop.MaxTokens
		}
	}
	return f.b.Reply(r)
}

// failed keeps why the model stopped, for the end of the turn.
func (f *feeder) failed(e *entry, name string, at int64) {
	if name == "MessageAbortedError" {
		f.ended, f.endedAt = &outcrop.TurnReason{Kind: outcrop.TurnAborted, Abort: outcrop.AbortReason{Kind: "user"}}, at
		return
	}
	v := e.info.Of("error")
	data := v.Of("data")
	fail := &message.Failure{Message: data.Text("message"), Code: codeOf(name, data.Int("statusCode"))}
	if fail.Message == "" {
		fail.Message = v.Text("message")
	}
	if fail.Message == "" {
		fail.Message = name
	}
	if n := data.Int("statusCode"); n >= 100 && n < 600 {
		fail.Status = int(n)
	}
	f.ended, f.endedAt = &outcrop.TurnReason{Kind: outcrop.TurnError, Error: fail}, at
}

// codeOf is the code of a failure that opencode names.
func codeOf(name string, status int64) string {
	switch {
	case name == "ProviderAuthError", status == 401, status == 403:
		return message.CodeAuth
	case name == "ContextOverflowError":
		return message.CodeContextWindow
	case status == 429:
		return message.CodeRateLimit
	case status >= 500:
		return message.CodeServer
	}
	return message.CodeUnknown
}

// endTurn ends the turn as its last reply did, when that failed.
func (f *feeder) endTurn() error {
	r := f.ended
	f.ended, f.done = nil, nil
	if r == nil {
		return nil
	}
	return f.b.EndTurn(f.endedAt, *r)
}

// compact gives a compaction. One that came behind the last reply of a turn
// stands between turns, another one inside.
func (f *feeder) compact(c exchange.Compaction) error {
	if f.ended == nil {
		f.ended, f.endedAt = f.done, 0
	}
	if err := f.endTurn(); err != nil {
		return err
	}
	return f.b.Compact(c)
}

// summary gives a compaction.
func (f *feeder) summary(e *entry, steps []step, provider, model, failure string) error {
	tail := f.tail
	f.tail = ""
	var content []message.Block
	var usage *message.Usage
	for _, s := range steps {
		for _, b := range s.content {
			if b.Type == message.TextBlock {
				content = append(content, b)
			}
		}
		if s.usage != nil {
			usage = s.usage
		}
	}
	if failure != "" || len(content) == 0 {
		f.b.Dropped("summary", "it was not finished, and replaced nothing")
		return nil
	}
	c := exchange.Compaction{Time: created(e), Summary: content, MessageID: e.id, Provider: provider, Model: model, Usage: usage}
	if tail != "" {
		for i, id := range f.order {
			if id == tail && i > 0 {
				c.Through = f.order[i-1]
			}
		}
		if len(f.order) > 0 && f.order[0] == tail {
			f.b.Dropped("summary", "it stands for no message")
			return nil
		}
	}
	if usage != nil {
		c.TokensBefore, c.TokensAfter = usage.InputTokens, usage.OutputTokens
		if usage.CacheReadTokens != nil {
			c.TokensBefore += *usage.CacheReadTokens
		}
		if usage.CacheWriteTokens != nil {
			c.TokensBefore += *usage.CacheWriteTokens
		}
	}
	f.order = append(f.order, e.id)
	return f.compact(c)
}

// system keeps what a message says that the model was told besides.
func (f *feeder) system(s string) {
	if s != "" {
		f.b.Model(exchange.Model{System: s})
	}
}

// steps takes the parts of a reply apart.
func (f *feeder) steps(parts []fields.Object, provider string) ([]step, error) {
	var all []step
	var s *step
	at := func() *step {
		if s == nil {
			all = append(all, step{})
			s = &all[len(all)-1]
		}
		return s
	}
	add := func(b message.Block, t exchange.Thinking) {
		at()
		s.content, s.states = append(s.content, b), append(s.states, t)
	}
	for _, p := range parts {
		switch t := p.Text("type"); t {
		case "step-start":
			if s != nil && len(s.content) > 0 {
				s = nil
			}
		case "step-finish":
			if u := usageOf(p.Of("tokens")); u != nil {
				at().usage = u
			}
		case "text":
			if str := p.Text("text"); str != "" {
				if p.True("ignored") {
					f.b.Dropped("text for people alone", "the model did not read it")
					continue
				}
				add(message.Text(str), exchange.Thinking{})
			}
		case "reasoning":
			f.reasoning(p, provider, add)
		case "tool":
			c, r, err := f.tool(p)
			if err != nil {
				return nil, err
			}
			add(c, exchange.Thinking{})
			if r != nil {
				s.results = append(s.results, *r)
			}
		case "file":
			b, ok, err := f.file(p, false)
			if err != nil {
				return nil, err
			}
			if ok {
				add(b, exchange.Thinking{})
			}
		default:
			if !f.own(t) {
				add(f.raw(t, p), exchange.Thinking{})
			}
		}
	}
	return all, nil
}

// reasoning gives what the model thought, with what its provider wants back.
func (f *feeder) reasoning(p fields.Object, provider string, add func(message.Block, exchange.Thinking)) {
	s := p.Text("text")
	var t exchange.Thinking
	meta := p.Of("metadata")
	if !meta.IsObject() {
		meta = p.Of("providerMetadata")
	}
	if a := meta.Of("anthropic"); a.IsObject() {
		t.Signature, t.Redacted = a.Text("signature"), a.Text("redactedData")
	}
	if o := meta.Of("openai"); o.Text("reasoningEncryptedContent") != "" {
		f.b.Dropped("encrypted reasoning", "only the service of "+clip(provider)+" can read it")
	}
	if s == "" && t == (exchange.Thinking{}) {
		return
	}
	add(message.Reasoning(s), t)
}

// tool gives a call and its result; nil when there is none.
func (f *feeder) tool(p fields.Object) (message.Block, *exchange.Result, error) {
	state := p.Of("state")
	id := p.Text("callID")
	call := message.ToolCall(id, p.Text("tool"), f.arguments(state.Get("input"), state.Text("raw")))
	r := &exchange.Result{CallID: id, Time: millis(state.Of("time").Get("end"))}
	if title := state.Text("title"); title != "" {
		r.Meta = append(jsonwire.AppendStringMember([]byte{'{'}, "title", title), '}')
	}
	switch state.Text("status") {
	case "completed":
		if state.Of("time").Get("compacted") != nil {
			f.b.Mapped("result that was cleared from requests", "the whole result")
		}
		if out := state.Text("output"); out != "" {
			r.Content = append(r.Content, message.Text(out))
		}
	case "error":
		if meta := state.Of("metadata"); meta.True("interrupted") && meta.Text("output") != "" {
			r.Content = append(r.Content, message.Text(meta.Text("output")))
			break
		}
		r.IsError = true
		if s := state.Text("error"); s != "" {
			r.Content = append(r.Content, message.Text(s))
		}
	default:
		return call, nil, nil
	}
	for a := range state.List("attachments") {
		b, ok, err := f.file(fields.Of(a), false)
		if err != nil {
			return call, nil, err
		}
		if ok {
			r.Content = append(r.Content, b)
		}
	}
	return call, r, nil
}

// arguments are those of a call: an object. raw is what the model wrote when it
// was not read yet.
func (f *feeder) arguments(input []byte, raw string) string {
	args, mended := callargs.OfValue(input)
	if args == "{}" && raw != "" {
		args, mended = callargs.Object(raw)
	}
	if mended {
		f.b.Mapped("arguments that are no object", "an object that holds them")
	}
	return args
}

// usageOf reads opencode's counts; nil when there are none.
func usageOf(v fields.Object) *message.Usage {
	cache := v.Of("cache")
	in, out, think := v.Int("input"), v.Int("output"), v.Int("reasoning")
	read, write := cache.Int("read"), cache.Int("write")
	if in < 0 || out < 0 || think < 0 || read < 0 || write < 0 || in+out+think+read+write <= 0 {
		return nil
	}
	// The output is counted without the reasoning, except by versions whose
	// total says otherwise.
	if total := v.Int("total"); think > 0 && (total == 0 || total != in+out+read+write) {
		out += think
	}
	u := &message.Usage{InputTokens: in, OutputTokens: out, CacheReadTokens: &read, CacheWriteTokens: &write}
	if think > 0 {
		u.ReasoningTokens = &think
	}
	return u
}

// finish ends the session.
func (f *feeder) finish() error {
	if err := f.endTurn(); err != nil {
		return err
	}
	if err := f.giveTitle(0); err != nil {
		return err
	}
	switch n := f.b.Turns() - f.turns; {
	case f.revert == "":
	case !f.reverted:
		f.b.Dropped("revert", "the message that it goes back to is not there")
	case n <= 0:
		f.b.Dropped("revert", "it goes back to the middle of a turn")
	default:
		return f.b.Rewind(0, n)
	}
	return nil
}
