package arrays

import (
	"strconv"
	"strings"

	"github.com/outcrop-dev/outcrop/exchange"
	"github.com/outcrop-dev/outcrop/exchange/internal/fields"
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
	o := fields.Of(p)
	switch kind := o.Text("type"); kind {
	case "text", "input_text", "output_text":
		s := o.Text("text")
		return message.Text(s), s != "", nil
	case "refusal":
		s := o.Text("refusal")
		f.b.Mapped("refusal", "the text of the reply")
		return message.Text(s), s != "", nil
	case "image_url", "input_image":
		url := o.Of("image_url").Text("url")
		if url == "" {
			url = o.Text("image_url")
		}
		b, err = f.link("image", url, "", "")
	case "input_audio":
		in := o.Of("input_audio")
		b, err = f.link("audio", "data:audio/"+in.Text("format")+";base64,"+in.Text("data"), "", "")
	case "file", "input_file":
		in := o.Of("file")
		if !in.IsObject() {
			in = o
		}
		where := in.Text("file_data")
		if where == "" {
			where = in.Text("file_id")
		}
		b, err = f.link("file", where, "", in.Text("filename"))
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
func (f *feeder) completion(v fields.Object, r *exchange.Reply) error {
	for _, name := range [...]string{"reasoning_content", "reasoning"} {
		if s := v.Text(name); s != "" {
			r.Content = append(r.Content, message.Reasoning(s))
			break
		}
	}
	if v.Get("reasoning_details") != nil || v.Get("encrypted_content") != nil {
		f.b.Dropped("encrypted reasoning", "only the service that wrote it can read it")
	}
	said, err := f.parts(f.content(v))
	if err != nil {
		return err
	}
	r.Content = append(r.Content, said...)
	if s := v.Text("refusal"); s != "" {
		f.b.Mapped("refusal", "the text of the reply")
		r.Content = append(r.Content, message.Text(s))
	}
	if a := v.Of("audio"); a.IsObject() {
		if s := a.Text("transcript"); s != "" {
			f.b.Mapped("audio", "its transcript")
			r.Content = append(r.Content, message.Text(s))
		} else {
			f.b.Dropped("audio", "only the service that made it has it")
		}
	}
	for c := range v.List("tool_calls") {
		r.Content = append(r.Content, f.toolCall(fields.Of(c)))
	}
	if c := v.Of("function_call"); c.IsObject() {
		f.calls++
		f.named = c.Text("name")
		r.Content = append(r.Content, f.call(functionID(f.calls), f.named, arguments(c.Get("arguments"))))
	}
	r.MaxTokens = v.Text("finish_reason") == "length"
	r.Usage = openAIUsage(v.Of("usage"))
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
func (f *feeder) toolCall(c fields.Object) message.Block {
	id := c.Text("id")
	if custom := c.Of("custom"); custom.IsObject() {
		return f.call(id, custom.Text("name"), custom.Text("input"))
	}
	fn := c.Of("function")
	if !fn.IsObject() {
		fn = c
	}
	return f.call(id, fn.Text("name"), arguments(fn.Get("arguments")))
}

// result gives the answer to a call.
func (f *feeder) result(v fields.Object, callID string) error {
	blocks, err := f.parts(f.content(v))
	if err != nil {
		return err
	}
	return f.b.Result(exchange.Result{CallID: callID, ID: v.Text("id"), Time: timeOf(v), Content: blocks})
}

// function gives the answer to the function that was called last, by its name
// alone.
func (f *feeder) function(v fields.Object) error {
	if name := v.Text("name"); f.calls == 0 || name != f.named {
		return f.result(v, name)
	}
	return f.result(v, functionID(f.calls))
}

// openAIUsage reads counts that some programs store with a reply; nil for none.
func openAIUsage(v fields.Object) *message.Usage {
	n := func(v fields.Object, name string) int64 { return max(v.Int(name), 0) }
	in, out := n(v, "prompt_tokens"), n(v, "completion_tokens")
	if in+out <= 0 {
		return nil
	}
	u := &message.Usage{InputTokens: in, OutputTokens: out}
	if d := v.Of("prompt_tokens_details"); d.IsObject() {
		cached := min(n(d, "cached_tokens"), in)
		u.InputTokens, u.CacheReadTokens = in-cached, &cached
	}
	if think := n(v.Of("completion_tokens_details"), "reasoning_tokens"); think > 0 {
		u.ReasoningTokens = &think
	}
	return u
}
