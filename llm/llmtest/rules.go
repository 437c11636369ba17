package llmtest

import (
	"fmt"
	"net/http"

	"github.com/outcrop-dev/outcrop/internal/jsonwire"
)

// Profile is the kind of provider that is played.
type Profile string

const (
	// OpenAI is the chat completions API at its strictest: short ids, no
	// reasoning, output limit in max_completion_tokens.
	OpenAI Profile = "openai"
	// DeepSeek is the same dialect: reasoning_content with calls, output limit in
	// max_tokens.
	DeepSeek Profile = "deepseek"
	// Alternate is the same dialect as servers with a strict template speak it:
	// user and assistant take turns, output limit in max_tokens.
	Alternate Profile = "alternate"
	// Anthropic is the messages API.
	Anthropic Profile = "anthropic"
)

// MaxBody is the longest body that is accepted, in bytes.
const MaxBody = 10 << 20

// Rules are what a body is held against. Only Profile is needed.
type Rules struct {
	Profile Profile
	// Window is what prompt and output together may take, in tokens: one for
	// every four bytes of system, tools and messages, 1,600 an image. 0: no
	// limit.
	Window int64
	// TextOnly says that the model takes no images.
	TextOnly bool
	// OutputMember is the member in which the output limit is due, max_tokens or
	// max_completion_tokens; "": the profile's.
	OutputMember string
}

// Refusal is why a request was refused.
type Refusal struct {
	Rule    int    // number in the list of the package comment
	Status  int    // HTTP status
	Index   int    // of the message, -1 when it is about something else
	Code    string // as the provider's error carries it: invalid_request_error, context_length_exceeded, request_too_large
	Problem string
}

// Error names the rule and the place.
func (r *Refusal) Error() string {
	if r.Index < 0 {
		return fmt.Sprintf("rule %d: %s", r.Rule, r.Problem)
	}
	return fmt.Sprintf("rule %d: messages[%d]: %s", r.Rule, r.Index, r.Problem)
}

const (
	codeInvalid  = "invalid_request_error"
	codeTooLong  = "context_length_exceeded"
	codeTooLarge = "request_too_large"
)

func refuse(rule, index int, format string, args ...any) *Refusal {
	return &Refusal{Rule: rule, Status: http.StatusBadRequest, Index: index, Code: codeInvalid, Problem: fmt.Sprintf(format, args...)}
}

// Check holds a body against rules 1 to 12; nil means that it is accepted. It
// keeps nothing.
func (r Rules) Check(body []byte) *Refusal {
	_, f := r.check(body)
	return f
}

// check also counts the tokens of the prompt.
func (r Rules) check(body []byte) (prompt int64, f *Refusal) {
	if len(body) > MaxBody {
		f := refuse(8, -1, "the body has %d bytes, more than %d", len(body), MaxBody)
		f.Status, f.Code = http.StatusRequestEntityTooLarge, codeTooLarge
		return 0, f
	}
	if fault := rawFault(body); fault != "" {
		return 0, refuse(8, -1, "the body holds %s", fault)
	}
	if jsonwire.Valid(body) != nil || jsonwire.Kind(body) != '{' {
		return 0, refuse(8, -1, "the body is not a JSON object")
	}
	for _, name := range [...]string{"system", "tools"} {
		if fault := stringFault(jsonwire.Get(body, name)); fault != "" {
			return 0, refuse(8, -1, "%s holds %s", name, fault)
		}
	}
	if f := r.limits(body); f != nil {
		return 0, f
	}
	if f := r.tools(body); f != nil {
		return 0, f
	}
	msgs, f := r.read(jsonwire.Get(body, "messages"))
	if f != nil {
		return 0, f
	}
	for _, rule := range [...]func([]entry) *Refusal{r.ends, r.neighbours, r.pairs, r.ids, content, r.images} {
		if f := rule(msgs); f != nil {
			return 0, f
		}
	}
	if r.Profile == Anthropic {
		if f := anthropicRules(body, msgs); f != nil {
			return 0, f
		}
	}
	prompt = count(body, msgs)
	return prompt, r.window(prompt, outputLimit(body))
}

// read takes the messages apart.
func (r Rules) read(list []byte) ([]entry, *Refusal) {
	if jsonwire.Kind(list) != '[' {
		return nil, refuse(1, -1, "no messages")
	}
	var msgs []entry
	for v := range jsonwire.Elements(list) {
		e := entry{index: len(msgs), role: text(v, "role")}
		if fault := stringFault(v); fault != "" {
			return nil, refuse(8, e.index, "text holds %s", fault)
		}
		read := e.readOpenAI
		if r.Profile == Anthropic {
			read = e.readAnthropic
		}
		if f := read(v, r.Profile); f != nil {
			return nil, f
		}
		msgs = append(msgs, e)
	}
	return msgs, nil
}

// limits is about the member of the output limit.
func (r Rules) limits(body []byte) *Refusal {
	due, other := r.OutputMember, "max_completion_tokens"
	switch {
	case due != "":
	case r.Profile == OpenAI:
		due = "max_completion_tokens"
	default:
		due = "max_tokens"
	}
	if due == other {
		other = "max_tokens"
	}
	if jsonwire.Get(body, other) != nil {
		return refuse(11, -1, "%s is not supported with this model: use %s", other, due)
	}
	if v := jsonwire.Get(body, due); v != nil {
		if n, ok := jsonwire.Int(v); !ok || n < 1 {
			return refuse(11, -1, "%s is %s: it must be a positive integer", due, v)
		}
	} else if r.Profile == Anthropic {
		return refuse(10, -1, "max_tokens is required")
	}
	return nil
}

func (r Rules) window(prompt, output int64) *Refusal {
	if r.Window == 0 || prompt+output <= r.Window {
		return nil
	}
	f := refuse(11, -1, "this model's maximum context length is %d tokens, however you requested %d tokens (%d in the messages, %d in the completion)",
		r.Window, prompt+output, prompt, output)
	if r.Profile == Anthropic {
		f.Problem = fmt.Sprintf("prompt is too long: %d tokens and max_tokens %d exceed the context limit of %d", prompt, output, r.Window)
	}
	f.Code = codeTooLong
	return f
}

func outputLimit(body []byte) int64 {
	for _, name := range [...]string{"max_tokens", "max_completion_tokens"} {
		if n, ok := jsonwire.Int(jsonwire.Get(body, name)); ok && n > 0 {
			return n
		}
	}
	return 0
}

const tokensPerImage = 1600

// count is a token for every four bytes of system, tools and messages as they
// stand in the body, and a fixed price for an image.
func count(body []byte, msgs []entry) int64 {
	bytes, images := 0, 0
	for _, name := range [...]string{"system", "tools", "messages"} {
		bytes += len(jsonwire.Get(body, name))
	}
	for i := range msgs {
		for p := range msgs[i].all() {
			if p.kind == imagePart {
				images++
				bytes -= p.encoded
			}
		}
	}
	return int64(bytes+3)/4 + tokensPerImage*int64(images)
}

// text is a member's text, "" when it is none.
func text(obj []byte, name string) string {
	s, _ := jsonwire.Text(jsonwire.Get(obj, name))
	return s
}
