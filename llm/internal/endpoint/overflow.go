package endpoint

import (
	"strconv"
	"strings"
)

// overflows are words by which servers say that a prompt is too long for the
// model. There is no code for it that all of them use.
var overflows = [...]string{
	"context_length", "context length", "context window", "context size", "context limit", "n_ctx",
	"maximum context", "maximum model length", "maximum prompt length", "maximum input length", "max_prompt_tokens_exceeded",
	"prompt is too long", "prompt too long", "input is too long", "input length exceeds", "range of input length",
	"exceeded model token limit", "token limit exceeded", "input token count", "input tokens exceed",
	"reduce the length", "tokens must be reduced", "shorter input", "when context the overflows",
	"exceed_context_size", "max_new_tokens", "inputs` must have less",
}

func overflow(text string) bool {
	for _, w := range overflows {
		if strings.Contains(text, w) {
			return true
		}
	}
	return false
}

// limits are the words after which a message says how many tokens the model
// takes, and by which it is told from the number of those it was given.
var limits = [...]string{
	"maximum context length is", "maximum prompt length is", "context length of only", "maximum model length of", "n_ctx", "context length",
	"configured limit of", "exceeds the limit of", "token limit:", "maximum number of tokens allowed", "> ",
}

// figures finds how many tokens a prompt that is too long had, and how many are
// allowed. The limit is the first number behind the words that announce it, the
// prompt the first greater number; numbers below 256 count something else.
func (e *Error) figures() (used, of int64, ok bool) {
	if e.window > 0 && e.used > e.window {
		return e.used, e.window, true
	}
	text := strings.ToLower(e.Message)
	for _, w := range limits {
		if i := strings.Index(text, w); i >= 0 {
			if n := numbers(text[i+len(w):]); len(n) > 0 {
				of = n[0]
				break
			}
		}
	}
	for _, n := range numbers(text) {
		switch {
		case of == 0:
			of = n
		case n > of:
			return n, of, true
		}
	}
	return 0, 0, false
}

func numbers(s string) (out []int64) {
	for _, word := range strings.FieldsFunc(s, func(r rune) bool { return (r < '0' || r > '9') && r != ',' }) {
		if n, err := strconv.ParseInt(strings.ReplaceAll(word, ",", ""), 10, 64); err == nil && n >= 256 {
			out = append(out, n)
		}
	}
	return out
}
