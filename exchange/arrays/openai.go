package arrays

import (
	"strconv"
	"strings"

	"github.com/outcrop-dev/outcrop/exchange"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/message"
)

// parts reads a content of OpenAI's: a string, or a list of parts.
func (f *feeder) parts(v []byte) ([]message.Block, error) {
	if s, ok := jsonwire.Text(v); ok {
		if s == "" {
			return nil, nil
		}
		return []message.Block{message.Text(s)}, nil
	}
	var blocks []message.Block
	for p := range jsonwire.Elements(v) {
		b, ok, err := f.part(p)
		if err != nil {
			return nil, err
		}
		if ok {
			blocks = append(blocks, b)
		}
	}
	return blocks, nil
}

func (f *feeder) part(p []byte) (b message.Block, ok bool, err error) {
	if s, isText := jsonwire.Text(p); isText {
		return message.Text(s), s != "", nil
	}
	switch kind := text(p, "type"); kind {
	case "text", "input_text", "output_text":
		s := text(p, "text")
		return message.Text(s), s != "", nil
	case "refusal":
		s := text(p, "refusal")
		f.b.Mapped("refusal", "the text of the reply")
		return message.Text(s), s != "", nil
	case "image_url", "input_image":
		url := text(get(p, "image_url"), "url")
		if url == "" {
			url = text(p, "image_url")
		}
		b, err = f.link("image", url, "", "")
	case "input_audio":
		in := get(p, "input_audio")
		b, err = f.link("audio", "data:audio/"+text(in, "format")+";base64,"+text(in, "data"), "", "")
	case "file", "input_file":
		in := get(p, "file")
		if in == nil {
			in = p
		}
		where := text(in, "file_data")
		if where == "" {
			where = text(in, "file_id")
		}
		b, err = f.link("file", where, "", text(in, "filename"))
	default:
		b = f.b.Raw("part "+clip(kind), p)
	}
	return b, err == nil, err
}

// link keeps what a data: URL holds, and a note of any other.
func (f *feeder) link(kind, url, mediaType, name string) (message.Block, error) {
	if strings.HasPrefix(url, "data:") {
		return f.b.AttachBase64(url, mediaType, name)
	}
	if name != "" {
		url = name
	}
	return f.b.Missing(kind, url), nil
}

// completion reads a reply of OpenAI's.
func (f *feeder) completion(v []byte, r *exchange.Reply) error {
	for _, name := range [...]string{"reasoning_content", "reasoning"} {
		if s := text(v, name); s != "" {
			r.Content = append(r.Content, message.Reasoning(s))
			break
		}
	}
	if get(v, "reasoning_details") != nil || get(v, "encrypted_content") != nil {
		f.b.Dropped("encrypted reasoning", "only the service that wrote it can read it")
	}
	said, err := f.parts(f.content(v))
	if err != nil {
		return err
	}
	r.Content = append(r.Content, said...)
	if s := text(v, "refusal"); s != "" {
		f.b.Mapped("refusal", "the text of the reply")
		r.Content = append(r.Content, message.Text(s))
	}
	if a := get(v, "audio"); jsonwire.Kind(a) == '{' {
		if s := text(a, "transcript"); s != "" {
			f.b.Mapped("audio", "its transcript")
			r.Content = append(r.Content, message.Text(s))
		} else {
			f.b.Dropped("audio", "only the service that made it has it")
		}
	}
	for c := range elements(get(v, "tool_calls")) {
		r.Content = append(r.Content, f.toolCall(c))
	}
	if c := get(v, "function_call"); jsonwire.Kind(c) == '{' {
		f.calls++
		f.named = text(c, "name")
		r.Content = append(r.Content, f.call(functionID(f.calls), f.named, arguments(get(c, "arguments"))))
	}
	r.MaxTokens = text(v, "finish_reason") == "length"
	r.Usage = openAIUsage(get(v, "usage"))
	return nil
}

func functionID(n int) string { return "function-" + strconv.Itoa(n) }

// arguments are those of a call: text, which some programs have read already.
func arguments(v []byte) string {
	if s, ok := jsonwire.Text(v); ok {
		return s
	}
	if jsonwire.Kind(v) == 'n' {
		return ""
	}
	return string(jsonwire.Compact(v))
}

// toolCall reads one call.
func (f *feeder) toolCall(c []byte) message.Block {
	id := text(c, "id")
	if custom := get(c, "custom"); custom != nil {
		return f.call(id, text(custom, "name"), text(custom, "input"))
	}
	fn := get(c, "function")
	if fn == nil {
		fn = c
	}
	return f.call(id, text(fn, "name"), arguments(get(fn, "arguments")))
}

// result gives the answer to a call.
func (f *feeder) result(v []byte, callID string) error {
	blocks, err := f.parts(f.content(v))
	if err != nil {
		return err
	}
	return f.b.Result(exchange.Result{CallID: callID, ID: text(v, "id"), Time: timeOf(v), Content: blocks})
}

// function gives the answer to the function that was called last, by its name
// alone.
func (f *feeder) function(v []byte) error {
	if name := text(v, "name"); f.calls == 0 || name != f.named {
		return f.result(v, name)
	}
	return f.result(v, functionID(f.calls))
}

// openAIUsage reads counts that some programs store with a reply; nil for none.
func openAIUsage(v []byte) *message.Usage {
	n := func(v []byte, name string) int64 { n, _ := jsonwire.Int(get(v, name)); return max(n, 0) }
	in, out := n(v, "prompt_tokens"), n(v, "completion_tokens")
	if in+out == 0 {
		return nil
	}
	cached := min(n(get(v, "prompt_tokens_details"), "cached_tokens"), in)
	u := &message.Usage{InputTokens: in - cached, OutputTokens: out}
	if get(v, "prompt_tokens_details") != nil {
		u.CacheReadTokens = &cached
	}
	if think := n(get(v, "completion_tokens_details"), "reasoning_tokens"); think > 0 {
		u.ReasoningTokens = &think
	}
	return u
}
