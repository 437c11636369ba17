package llmtest

import (
	"fmt"
	"net/http"
	"unicode/utf8"

	"github.com/outcrop-dev/outcrop/internal/jsonwire"
)

// event is one server-sent event.
type event struct {
	name string // "": none
	data string
}

// pieceLen is how many bytes a delta has at least; it ends at a code point.
const pieceLen = 7

// stream sends a reply as server-sent events.
func (s *Server) stream(w http.ResponseWriter, r *http.Request, rep Reply, n int) {
	for i := range rep.Calls {
		if rep.Calls[i].ID == "" {
			rep.Calls = append([]Call(nil), rep.Calls...)
			rep.Calls[i].ID = fmt.Sprintf("call_%d_%d", n, i)
		}
	}
	events := openAIStream(rep, n)
	if s.o.Profile == Anthropic {
		events = anthropicStream(rep, n)
	}
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	w.Header().Set("X-Request-Id", fmt.Sprintf("req_%d", n))
	out := http.NewResponseController(w)
	end := "\n"
	if rep.Fault == CRLF {
		end = "\r\n"
	}
	for i, ev := range events {
		text := ""
		if rep.Fault == Comments {
			text = ": keep-alive" + end + end
		}
		if ev.name != "" {
			text += "event: " + ev.name + end
		}
		text += "data: " + ev.data + end + end
		half := i == len(events)/2
		if half && rep.Fault == Truncated {
			text = text[:len(text)/2]
		}
		if _, err := w.Write([]byte(text)); err != nil {
			return
		}
		_ = out.Flush() // a recorder that cannot flush has it all in the end
		if half && rep.Fault == Truncated {
			return
		}
		if half && rep.Fault == Silence {
			if s.o.Silence == nil {
				<-r.Context().Done()
				return
			}
			s.o.Silence(r.Context())
		}
	}
}

// pieces cuts text into deltas.
func pieces(s string, size int) []string {
	var out []string
	for s != "" {
		n := 0
		for n < len(s) && n < size {
			_, w := utf8.DecodeRuneInString(s[n:])
			n += w
		}
		out, s = append(out, s[:n]), s[n:]
	}
	return out
}

// argumentPieces are the pieces of each call's arguments in the order in which
// they are sent: the index of the call, and the piece.
type argumentPiece struct {
	call int
	text string
}

func argumentPieces(rep Reply) []argumentPiece {
	size := pieceLen
	if rep.Fault == BytePieces {
		size = 1
	}
	var byCall [][]string
	longest := 0
	for _, c := range rep.Calls {
		p := pieces(c.Arguments, size)
		byCall = append(byCall, p)
		longest = max(longest, len(p))
	}
	var out []argumentPiece
	if rep.Fault != IndexOnly {
		for i, list := range byCall {
			for _, p := range list {
				out = append(out, argumentPiece{i, p})
			}
		}
		return out
	}
	for k := range longest {
		for i, list := range byCall {
			if k < len(list) {
				out = append(out, argumentPiece{i, list[k]})
			}
		}
	}
	return out
}

// quote writes a JSON string.
func quote(s string) string { return string(jsonwire.AppendString(nil, s)) }

// openAIStream is a reply as chunks of a chat completion.
func openAIStream(rep Reply, n int) []event {
	var out []event
	add := func(delta, finish string) {
		out = append(out, event{data: fmt.Sprintf(
			`{"id":"chatcmpl-%d","object":"chat.completion.chunk","created":1700000000,"model":"mock-1","choices":[{"index":0,"delta":%s,"finish_reason":%s}]}`,
			n, delta, finish)})
	}
	u := *rep.Usage
	usage := event{data: fmt.Sprintf(`{"id":"chatcmpl-%d","object":"chat.completion.chunk","created":1700000000,"model":"mock-1","choices":[],`+
		`"usage":{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d,"prompt_tokens_details":{"cached_tokens":%d},"completion_tokens_details":{"reasoning_tokens":%d}}}`,
		n, u.Input+u.CacheRead, u.Output, u.Input+u.CacheRead+u.Output, u.CacheRead, u.Reasoning)}
	add(`{"role":"assistant","content":""}`, "null")
	for _, p := range pieces(rep.Reasoning, pieceLen) {
		add(`{"reasoning_content":`+quote(p)+`}`, "null")
	}
	for _, p := range pieces(rep.Text, pieceLen) {
		add(`{"content":`+quote(p)+`}`, "null")
	}
	if rep.Fault == UsageOnly {
		out = append(out, usage)
	}
	for i, c := range rep.Calls {
		id := `"id":` + quote(c.ID) + `,`
		if rep.Fault == NoCallID {
			id = ""
		}
		add(fmt.Sprintf(`{"tool_calls":[{"index":%d,%s"type":"function","function":{"name":%s,"arguments":""}}]}`, i, id, quote(c.Name)), "null")
	}
	for _, p := range argumentPieces(rep) {
		add(fmt.Sprintf(`{"tool_calls":[{"index":%d,"function":{"arguments":%s}}]}`, p.call, quote(p.text)), "null")
	}
	finish := rep.Finish
	if finish == "" {
		finish = "stop"
		if len(rep.Calls) > 0 {
			finish = "tool_calls"
		}
	}
	add(`{}`, quote(finish))
	if rep.Fault == FinishTwice {
		add(`{}`, quote(finish))
	}
	out = append(out, usage)
	if rep.Fault != NoDone {
		out = append(out, event{data: "[DONE]"})
	}
	return out
}

// anthropicStream is a reply as events of the messages API.
func anthropicStream(rep Reply, n int) []event {
	var out []event
	add := func(name, data string) {
		out = append(out, event{name, `{"type":"` + name + `",` + data + `}`})
	}
	u := *rep.Usage
	ping := func() {
		if rep.Fault == Comments {
			out = append(out, event{"ping", `{"type":"ping"}`})
		}
	}
	add("message_start", fmt.Sprintf(`"message":{"id":"msg_%d","type":"message","role":"assistant","model":"mock-1","content":[],"stop_reason":null,"stop_sequence":null,`+
		`"usage":{"input_tokens":%d,"cache_creation_input_tokens":0,"cache_read_input_tokens":%d,"output_tokens":1}}`, n, u.Input, u.CacheRead))
	ping()
	block := 0
	start := func(i int, content string) {
		add("content_block_start", fmt.Sprintf(`"index":%d,"content_block":%s`, i, content))
	}
	delta := func(i int, d string) { add("content_block_delta", fmt.Sprintf(`"index":%d,"delta":%s`, i, d)) }
	stop := func(i int) { add("content_block_stop", fmt.Sprintf(`"index":%d`, i)) }
	if rep.Reasoning != "" {
		start(block, `{"type":"thinking","thinking":"","signature":""}`)
		for _, p := range pieces(rep.Reasoning, pieceLen) {
			delta(block, `{"type":"thinking_delta","thinking":`+quote(p)+`}`)
		}
		delta(block, `{"type":"signature_delta","signature":`+quote(Sign(rep.Reasoning))+`}`)
		stop(block)
		block++
	}
	if rep.Text != "" {
		start(block, `{"type":"text","text":""}`)
		for _, p := range pieces(rep.Text, pieceLen) {
			delta(block, `{"type":"text_delta","text":`+quote(p)+`}`)
		}
		stop(block)
		block++
	}
	ping()
	if rep.Fault == UsageOnly {
		add("message_delta", fmt.Sprintf(`"delta":{},"usage":{"output_tokens":%d}`, u.Output))
	}
	call := func(i int) {
		id := rep.Calls[i].ID
		if rep.Fault == NoCallID {
			id = ""
		}
		start(block+i, `{"type":"tool_use","id":`+quote(id)+`,"name":`+quote(rep.Calls[i].Name)+`,"input":{}}`)
	}
	if rep.Fault == IndexOnly {
		for i := range rep.Calls {
			call(i)
		}
	}
	at := -1 // the call whose block is open
	next := func(to int) {
		for rep.Fault != IndexOnly && at < to {
			if at >= 0 {
				stop(block + at)
			}
			if at++; at < len(rep.Calls) {
				call(at)
			}
		}
	}
	for _, p := range argumentPieces(rep) {
		next(p.call)
		delta(block+p.call, `{"type":"input_json_delta","partial_json":`+quote(p.text)+`}`)
	}
	if len(rep.Calls) > 0 {
		next(len(rep.Calls))
	}
	if rep.Fault == IndexOnly {
		for i := range rep.Calls {
			stop(block + i)
		}
	}
	finish := rep.Finish
	if finish == "" {
		finish = "end_turn"
		if len(rep.Calls) > 0 {
			finish = "tool_use"
		}
	}
	end := fmt.Sprintf(`"delta":{"stop_reason":%s,"stop_sequence":null},"usage":{"output_tokens":%d}`, quote(finish), u.Output)
	add("message_delta", end)
	if rep.Fault == FinishTwice {
		add("message_delta", end)
	}
	if rep.Fault != NoDone {
		out = append(out, event{"message_stop", `{"type":"message_stop"}`})
	}
	return out
}
