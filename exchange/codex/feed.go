package codex

import (
	"encoding/json"
	"strings"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/exchange"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/message"
)

// feed gives the lines of a rollout to a builder. A reply and its results are
// held until it is known that nothing of it, its count of tokens least of all,
// is still to come.
type feed struct {
	b     *exchange.Builder
	model exchange.Model
	time  int64

	reply   *exchange.Reply
	states  []json.RawMessage // of the reply's blocks
	sealed  bool              // the reply has its count of tokens
	results []exchange.Result

	tokens  string // the totals that were counted last
	inTask  bool   // between a turn's begin and its end
	asked   bool   // the task has its prompt
	failure string // of the open task
}

func newFeed(h header, b *exchange.Builder) *feed {
	f := &feed{b: b, model: exchange.Model{Provider: h.provider, System: h.system}}
	if f.model.Provider == "" {
		f.model.Provider = "openai"
	}
	b.Model(f.model)
	return f
}

// text is the text of a value that is one; v is exactly the value's span, so that
// its end need not be looked for.
func text(v []byte) string {
	if len(v) < 2 || v[0] != '"' {
		return ""
	}
	return jsonwire.Key(v[1 : len(v)-1])
}

// flush gives the reply that is held, and its results.
func (f *feed) flush() error {
	if r := f.reply; r != nil {
		f.reply, f.sealed = nil, false
		for _, s := range f.states {
			if s != nil {
				r.Replay = replay(f.states)
				break
			}
		}
		f.states = nil
		if err := f.b.Reply(*r); err != nil {
			return err
		}
	}
	results := f.results
	f.results = nil
	for _, r := range results {
		if err := f.b.Result(r); err != nil {
			return err
		}
	}
	return nil
}

// replay is the replay state of a reply with encrypted reasoning: opaque to all
// but the program that continues with the same model.
func replay(states []json.RawMessage) json.RawMessage {
	dst := []byte(`{"openai-responses":1,"blocks":[`)
	for i, s := range states {
		if i > 0 {
			dst = append(dst, ',')
		}
		if s == nil {
			s = json.RawMessage("null")
		}
		dst = append(dst, s...)
	}
	return append(dst, ']', '}')
}

// end gives what is held when the file ends.
func (f *feed) end() error { return f.flush() }

// seed says that what came was inherited.
func (f *feed) seed() error {
	if err := f.flush(); err != nil {
		return err
	}
	f.inTask, f.asked = false, false
	return f.b.Seed(f.time)
}

// frame is what a walk over a line finds.
type frame struct {
	kind    string
	at      int64
	payload []byte // nil: the line has no frame
	item    fields // of payload
	state   bool   // it is one of the program's state, of the older form
}

// readFrame checks a line, and reads its frame and what that holds, in one walk.
func readFrame(line []byte) (fr frame, err error) {
	err = jsonwire.WholeObject(line, func(name []byte, at int) (end int, err error) {
		if string(name) == "payload" && at < len(line) && line[at] == '{' {
			fr.item = fields{}
			end, err = jsonwire.ObjectAt(line, at, func(name []byte, at int) (end int, err error) {
				if end, err = jsonwire.Value(line, at); err == nil {
					fr.item.set(name, line[at:end:end])
				}
				return end, err
			})
		} else {
			end, err = jsonwire.Value(line, at)
		}
		if err != nil {
			return end, err
		}
		v := line[at:end:end]
		switch string(name) {
		case "type":
			fr.kind = text(v)
		case "timestamp":
			fr.at = timeOf(v)
		case "payload":
			fr.payload = v
		case "record_type":
			fr.state = true
		}
		return end, nil
	})
	return fr, err
}

// framed reports whether a line is of the present form.
func (fr *frame) framed() bool { return types[fr.kind] && jsonwire.Kind(fr.payload) == '{' }

// line takes a line of the present form.
func (f *feed) line(fr *frame) error {
	at, payload := fr.at, fr.payload
	if at != 0 {
		f.time = at
	}
	switch fr.kind {
	case "response_item":
		fr.item.complete()
		return f.read(&fr.item, payload, at)
	case "turn_context":
		f.turnContext(payload)
	case "compacted":
		return f.compacted(payload, at)
	case "event_msg":
		return f.event(payload, at)
	case "session_meta":
		// The first one was read; a fork has its parent's too.
	}
	return nil
}

// bare takes a line without a frame.
func (f *feed) bare(line []byte, fr *frame) error {
	switch {
	case fr.state:
		f.b.Dropped("record state", "what the program remembered of itself")
		return nil
	case fr.payload != nil:
		f.b.Dropped("record "+fr.kind, "its kind is not known")
		return nil
	case fr.kind == "" && bareHead(line):
		return nil
	}
	return f.item(line, fr.at)
}

func (f *feed) turnContext(v []byte) {
	if m := text(jsonwire.Get(v, "model")); m != "" {
		f.model.Model = m
	}
	f.model.Effort = text(jsonwire.Get(v, "effort"))
	// What is held was answered by the model before.
	if f.reply == nil {
		f.b.Model(f.model)
	}
}

// part adds a block to the reply, which begins with it when none is open.
func (f *feed) part(block message.Block, state json.RawMessage, at int64) error {
	if f.reply != nil && (f.sealed || len(f.results) > 0) || f.reply == nil && len(f.results) > 0 {
		if err := f.flush(); err != nil {
			return err
		}
	}
	if f.reply == nil {
		f.b.Model(f.model)
		f.reply = &exchange.Reply{Time: at, Provider: f.model.Provider, Model: f.model.Model}
	}
	f.reply.Content = append(f.reply.Content, block)
	f.states = append(f.states, state)
	return nil
}

// item takes a response item.
func (f *feed) item(v []byte, at int64) error {
	var i fields
	for name, m := range jsonwire.Members(v) {
		i.set(name, m)
	}
	i.complete()
	return f.read(&i, v, at)
}

// read takes a response item that was taken apart.
func (f *feed) read(i *fields, v []byte, at int64) error {
	switch i.kind {
	case "message":
		return f.message(i, at)
	case "":
		if i.role != "" {
			return f.message(i, at)
		}
		f.b.Dropped("item", "it has no type")
		return nil
	case "reasoning":
		f.b.Report().Kept("thinking")
		return f.part(message.Reasoning(i.reasoning()), i.state(), at)
	case "function_call":
		f.b.Report().Kept("call")
		return f.part(message.ToolCall(i.callID, i.name, text(i.arguments)), nil, at)
	case "custom_tool_call":
		f.b.Mapped("call of a free-form tool", "its text as the argument input")
		args := append(jsonwire.AppendStringMember([]byte{'{'}, "input", text(i.input)), '}')
		return f.part(message.ToolCall(i.callID, i.name, string(args)), nil, at)
	case "local_shell_call":
		f.b.Report().Kept("call")
		action := i.action
		if jsonwire.Kind(action) != '{' {
			action = []byte("{}")
		}
		return f.part(message.ToolCall(i.callID, "local_shell", string(jsonwire.Compact(action))), nil, at)
	case "image_generation_call":
		if result := text(i.result); result != "" {
			block, err := f.b.AttachBase64(result, "image/png", "")
			if err != nil {
				return err
			}
			return f.part(block, nil, at)
		}
	case "ghost_snapshot":
		f.b.Dropped("item "+i.kind, "a copy of files, kept by the program")
		return nil
	case "compaction", "context_compaction", "compaction_summary", "compaction_trigger":
		f.b.Dropped("item "+i.kind, "it is encrypted: only its provider can read it")
		return nil
	}
	if strings.HasSuffix(i.kind, "_output") {
		return f.output(i, at)
	}
	return f.part(f.b.Raw("item "+i.kind, v), nil, at)
}

// content reads the content of a message or of an output.
func (f *feed) content(v []byte) ([]message.Block, error) {
	if jsonwire.Kind(v) == '"' {
		if t := text(v); t != "" {
			return []message.Block{message.Text(t)}, nil
		}
		return nil, nil
	}
	var out []message.Block
	for e := range jsonwire.Elements(v) {
		var kind string
		var said, image []byte
		for k, m := range jsonwire.Members(e) {
			switch string(k) {
			case "type":
				kind = text(m)
			case "text", "refusal":
				said = m
			case "image_url":
				image = m
			}
		}
		switch kind {
		case "input_text", "output_text", "text", "summary_text", "reasoning_text", "refusal":
			if t := text(said); t != "" {
				out = append(out, message.Text(t))
			}
			continue
		case "input_image", "image_url":
			url := text(image)
			if url == "" {
				url = text(jsonwire.Get(image, "url"))
			}
			if !strings.HasPrefix(url, "data:") {
				out = append(out, f.b.Missing("image", url))
				continue
			}
			block, err := f.b.AttachBase64(url, "", "")
			if err != nil {
				return nil, err
			}
			out = append(out, block)
			continue
		}
		out = append(out, f.b.Raw("content "+kind, e))
	}
	return out, nil
}

func (f *feed) output(i *fields, at int64) error {
	r := exchange.Result{CallID: i.callID, Time: at, IsError: string(i.success) == "false"}
	out := i.output
	if jsonwire.Kind(out) == '{' {
		if string(jsonwire.Get(out, "success")) == "false" {
			r.IsError = true
		}
		if c := jsonwire.Get(out, "content"); c != nil {
			out = c
		} else {
			r.Content = []message.Block{message.Text(string(out))}
		}
	}
	if r.Content == nil {
		var err error
		if r.Content, err = f.content(out); err != nil {
			return err
		}
	}
	f.results = append(f.results, r)
	return nil
}

// injected are the beginnings of user messages that the program writes.
var injected = [...]string{
	"<environment_context>", "<user_instructions>", "# AGENTS.md instructions", "<INSTRUCTIONS>", "<permissions", "<collaboration_mode>",
	"<turn_aborted>", "<subagent_notification>", "<skill>", "<skills", "<user_shell_command>", "<apps_instructions>", "<plugins_instructions>",
	"<personality_spec>", "<model_switch>", "<system_reminder>", "<goal",
}

func (f *feed) message(i *fields, at int64) error {
	blocks, err := f.content(i.content)
	if err != nil {
		return err
	}
	if i.role == "assistant" {
		for _, block := range blocks {
			if err := f.part(block, nil, at); err != nil {
				return err
			}
		}
		return nil
	}
	if err := f.flush(); err != nil {
		return err
	}
	f.b.Model(f.model)
	if len(blocks) == 0 {
		f.b.Dropped("message", "it has no content")
		return nil
	}
	if i.role != "user" {
		return f.b.AddContext(exchange.Context{ID: i.id, Time: at, Content: blocks, Form: "instructions"})
	}
	if by, form := written(blocks); by {
		return f.b.AddContext(exchange.Context{ID: i.id, Time: at, Content: blocks, Form: form})
	}
	steer := f.inTask && f.asked
	f.asked = true
	return f.b.Prompt(exchange.Prompt{ID: i.id, Time: at, Content: blocks, Steer: steer})
}

// written reports whether the program wrote a user message, and what it is.
func written(blocks []message.Block) (bool, string) {
	form := "notice"
	for i := range blocks {
		if blocks[i].Type != message.TextBlock {
			return false, ""
		}
		t := strings.TrimSpace(blocks[i].Text)
		found := false
		for k, mark := range injected {
			if strings.HasPrefix(t, mark) {
				found = true
				switch {
				case k == 0:
					form = "snapshot"
				case k < 4:
					form = "instructions"
				}
				break
			}
		}
		if !found {
			return false, ""
		}
	}
	return true, form
}

// compacted takes a summary, with the history that it leaves.
func (f *feed) compacted(v []byte, at int64) error {
	if err := f.flush(); err != nil {
		return err
	}
	c := exchange.Compaction{Time: at, Provider: f.model.Provider, Model: f.model.Model}
	said := text(jsonwire.Get(v, "message"))
	for item := range jsonwire.Elements(jsonwire.Get(v, "replacement_history")) {
		// Newer versions wrap each item.
		if in := jsonwire.Get(item, "item"); jsonwire.Kind(in) == '{' {
			item = in
		}
		switch kind := text(jsonwire.Get(item, "type")); kind {
		case "message":
			blocks, err := f.content(jsonwire.Get(item, "content"))
			if err != nil {
				return err
			}
			c.Summary = append(c.Summary, blocks...)
		case "ghost_snapshot":
		default:
			f.b.Dropped("item "+kind+" that a compaction left", "it is encrypted, or no message")
		}
	}
	if len(c.Summary) == 0 && said != "" {
		c.Summary = []message.Block{message.Text(said)}
	}
	if len(c.Summary) == 0 {
		c.Summary = []message.Block{message.Text("[The earlier conversation was condensed by its provider, in a form that nobody else can read.]")}
	}
	return f.b.Compact(c)
}

// event takes what happened beside the items.
func (f *feed) event(v []byte, at int64) error {
	kind := text(jsonwire.Get(v, "type"))
	switch kind {
	case "token_count":
		f.usage(jsonwire.Get(v, "info"))
	case "task_started", "turn_started":
		if err := f.flush(); err != nil {
			return err
		}
		f.inTask, f.asked, f.failure = true, false, ""
		if n, ok := jsonwire.Int(jsonwire.Get(v, "model_context_window")); ok && n > 0 {
			f.model.Window = n
		}
		f.b.Model(f.model)
	case "task_complete", "turn_complete":
		if err := f.flush(); err != nil {
			return err
		}
		f.inTask = false
		reason := outcrop.TurnReason{Kind: outcrop.Completed}
		if f.failure != "" {
			reason = outcrop.TurnReason{Kind: outcrop.TurnError, Error: &message.Failure{Message: f.failure, Code: message.CodeUnknown}}
		}
		return f.b.EndTurn(at, reason)
	case "turn_aborted":
		if err := f.flush(); err != nil {
			return err
		}
		f.inTask = false
		return f.b.EndTurn(at, outcrop.TurnReason{Kind: outcrop.TurnAborted, Abort: outcrop.AbortReason{Kind: "user"}})
	case "thread_rolled_back":
		if err := f.flush(); err != nil {
			return err
		}
		f.inTask = false
		n, _ := jsonwire.Int(jsonwire.Get(v, "num_turns"))
		return f.b.Rewind(at, int(min(max(n, 1), 1<<30)))
	case "thread_name_updated":
		return f.b.Title(at, text(jsonwire.Get(v, "thread_name")))
	case "error":
		f.failure = text(jsonwire.Get(v, "message"))
		f.b.Mapped("event error", "the reason for which its turn ended")
	case "user_message", "agent_message", "agent_reasoning", "agent_reasoning_raw_content", "context_compacted", "item_completed":
		// The items say it too.
	default:
		f.b.Dropped("event "+kind, "what the program showed: the model did not read it")
	}
	return nil
}

// usage takes a count of tokens. It is told again when only limits changed.
func (f *feed) usage(info []byte) {
	if jsonwire.Kind(info) != '{' {
		return
	}
	if n, ok := jsonwire.Int(jsonwire.Get(info, "model_context_window")); ok && n > 0 {
		f.model.Window = n
	}
	total := string(jsonwire.Get(info, "total_token_usage"))
	if total == f.tokens {
		return
	}
	f.tokens = total
	last := jsonwire.Get(info, "last_token_usage")
	if jsonwire.Kind(last) != '{' {
		return
	}
	if f.reply == nil {
		f.b.Dropped("usage", "no reply stands before it")
		return
	}
	u := &message.Usage{}
	count := func(name string) int64 {
		n, ok := jsonwire.Int(jsonwire.Get(last, name))
		if !ok || n < 0 {
			return 0
		}
		return n
	}
	cached, thought := count("cached_input_tokens"), count("reasoning_output_tokens")
	u.InputTokens, u.OutputTokens = max(count("input_tokens")-cached, 0), count("output_tokens")
	u.CacheReadTokens, u.ReasoningTokens = &cached, &thought
	f.reply.Usage, f.sealed = u, true
}
