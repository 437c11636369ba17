package llmtest_test

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/outcrop-dev/outcrop/llm/llmtest"
)

// chat is a body of the chat completions dialect.
func chat(messages ...string) string {
	return `{"model":"m","stream":true,"messages":[` + strings.Join(messages, ",") + `]}`
}

// claude is a body of the messages dialect.
func claude(messages ...string) string {
	return `{"model":"m","stream":true,"max_tokens":100,"messages":[` + strings.Join(messages, ",") + `]}`
}

// with puts members in front of a body's.
func with(members, body string) string { return "{" + members + "," + body[1:] }

const (
	user     = `{"role":"user","content":"Hi."}`
	reply    = `{"role":"assistant","content":"Hello."}`
	system   = `{"role":"system","content":"Be kind."}`
	called   = `{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"look","arguments":"{}"}}]}`
	result   = `{"role":"tool","tool_call_id":"a","content":"ok"}`
	calledA  = `{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"look","input":{}}]}`
	resultA  = `{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"ok"}]}`
	toolGood = `{"type":"function","function":{"name":"look","parameters":{"type":"object"}}}`
)

func call(id, name, arguments string) string {
	return fmt.Sprintf(`{"role":"assistant","content":null,"tool_calls":[{"id":%q,"type":"function","function":{"name":%q,"arguments":%s}}]}`, id, name, arguments)
}

func answer(id string) string {
	return fmt.Sprintf(`{"role":"tool","tool_call_id":%q,"content":"ok"}`, id)
}

func callA(id, name, input string) string {
	return fmt.Sprintf(`{"role":"assistant","content":[{"type":"tool_use","id":%q,"name":%q,"input":%s}]}`, id, name, input)
}

func answerA(id string) string {
	return fmt.Sprintf(`{"role":"user","content":[{"type":"tool_result","tool_use_id":%q,"content":"ok"}]}`, id)
}

func thought(text, signature string) string {
	return fmt.Sprintf(`{"type":"thinking","thinking":%q,"signature":%q}`, text, signature)
}

func assistant(blocks ...string) string {
	return `{"role":"assistant","content":[` + strings.Join(blocks, ",") + `]}`
}

func mark(n int) string {
	return strings.TrimSuffix(strings.Repeat(`{"type":"text","text":"a","cache_control":{"type":"ephemeral"}},`, n), ",")
}

func tool(name, schema string) string {
	return fmt.Sprintf(`{"type":"function","function":{"name":%q,"parameters":%s}}`, name, schema)
}

func picture(t *testing.T, format string, width, height int) []byte {
	t.Helper()
	var b bytes.Buffer
	img := image.NewGray(image.Rect(0, 0, width, height))
	var err error
	switch format {
	case "png":
		err = png.Encode(&b, img)
	case "jpeg":
		err = jpeg.Encode(&b, img, nil)
	case "gif":
		err = gif.Encode(&b, img, nil)
	case "webp VP8X":
		b.WriteString("RIFF\x00\x00\x00\x00WEBPVP8X\x0a\x00\x00\x00\x00\x00\x00\x00")
		for _, n := range [...]int{width - 1, height - 1} {
			b.Write([]byte{byte(n), byte(n >> 8), byte(n >> 16)})
		}
	case "webp VP8L":
		b.WriteString("RIFF\x00\x00\x00\x00WEBPVP8L\x0a\x00\x00\x00\x2f")
		_ = binary.Write(&b, binary.LittleEndian, uint32(width-1)|uint32(height-1)<<14)
		b.WriteString("\x00\x00\x00\x00\x00")
	case "webp VP8":
		b.WriteString("RIFF\x00\x00\x00\x00WEBPVP8 \x0a\x00\x00\x00\x00\x00\x00\x9d\x01\x2a")
		_ = binary.Write(&b, binary.LittleEndian, [2]uint16{uint16(width), uint16(height)})
	default:
		t.Fatal(format)
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func imageURL(media string, data []byte) string {
	return `{"type":"image_url","image_url":{"url":"data:` + media + `;base64,` + base64.StdEncoding.EncodeToString(data) + `"}}`
}

func imageA(media string, data []byte) string {
	return `{"type":"image","source":{"type":"base64","media_type":"` + media + `","data":"` + base64.StdEncoding.EncodeToString(data) + `"}}`
}

func userOf(parts ...string) string {
	return `{"role":"user","content":[` + strings.Join(parts, ",") + `]}`
}

func repeated(s string, n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = s
	}
	return out
}

// For each rule a request that breaks it, and the nearest one that does not.
func TestARequestThatBreaksARuleIsRefusedAndItsNeighbourIsAccepted(t *testing.T) {
	const openai, deepseek, alternate, anthropic = llmtest.OpenAI, llmtest.DeepSeek, llmtest.Alternate, llmtest.Anthropic
	small := picture(t, "png", 10, 10)
	wide := picture(t, "png", 8001, 1)
	large := picture(t, "png", 2001, 1)
	heavy := append(picture(t, "png", 10, 10), make([]byte, 5<<20)...)
	signed := thought("Hm.", llmtest.Sign("Hm."))
	text := `{"type":"text","text":"Hello."}`
	use := `{"type":"tool_use","id":"a","name":"look","input":{}}`
	thinking := `"thinking":{"type":"enabled","budget_tokens":50}`
	for _, c := range []struct {
		name    string
		rules   llmtest.Rules
		refused string
		rule    int
		index   int
		good    string
	}{
		{"no messages", llmtest.Rules{Profile: openai}, chat(), 1, -1, chat(user)},
		{"messages is no list", llmtest.Rules{Profile: openai}, `{"messages":{}}`, 1, -1, chat(user)},
		{"only a system prompt", llmtest.Rules{Profile: openai}, chat(system), 1, -1, chat(system, user)},
		{"the assistant begins", llmtest.Rules{Profile: openai}, chat(system, reply, user), 1, 1, chat(system, user, reply, user)},
		{"the assistant begins, messages dialect", llmtest.Rules{Profile: anthropic}, claude(reply, user), 1, 0, claude(user, reply, user)},
		{"the assistant ends", llmtest.Rules{Profile: deepseek}, chat(user, reply), 1, 1, chat(user, reply, user)},

		{"two users in a row", llmtest.Rules{Profile: anthropic}, claude(user, user), 2, 1, claude(user, reply, user)},
		{"two assistants in a row", llmtest.Rules{Profile: alternate}, chat(user, reply, reply, user), 2, 2, chat(user, reply, user)},
		{"two users in a row where that is allowed", llmtest.Rules{Profile: alternate}, chat(user, user), 2, 1, chat(user, called, result, user)},

		{"a call without a result", llmtest.Rules{Profile: openai}, chat(user, called, user), 3, 1, chat(user, called, result, user)},
		{"a call without a result at the end", llmtest.Rules{Profile: anthropic}, claude(user, calledA, user), 3, 1, claude(user, calledA, resultA)},
		{"one of two calls without a result", llmtest.Rules{Profile: openai}, chat(user, strings.Replace(called, `]`, `,{"id":"b","type":"function","function":{"name":"look","arguments":"{}"}}]`, 1), result, user), 3, 1, chat(user, strings.Replace(called, `]`, `,{"id":"b","type":"function","function":{"name":"look","arguments":"{}"}}]`, 1), answer("b"), result, user)},
		{"a result without a call", llmtest.Rules{Profile: openai}, chat(user, reply, result), 3, 2, chat(user, called, result)},
		{"a result behind another message", llmtest.Rules{Profile: openai}, chat(user, called, user, result), 3, 1, chat(user, called, result, user)},
		{"a second result for a call", llmtest.Rules{Profile: openai}, chat(user, called, result, result), 3, 3, chat(user, called, result)},
		{"a result for another call", llmtest.Rules{Profile: anthropic}, claude(user, calledA, answerA("b")), 3, 2, claude(user, calledA, answerA("a"))},
		{"text before the result", llmtest.Rules{Profile: anthropic}, claude(user, calledA, userOf(text, `{"type":"tool_result","tool_use_id":"a","content":"ok"}`)), 3, 2, claude(user, calledA, userOf(`{"type":"tool_result","tool_use_id":"a","content":"ok"}`, text))},

		{"an id twice in the request", llmtest.Rules{Profile: openai}, chat(user, called, result, called, result), 4, 3, chat(user, called, result, call("b", "look", `"{}"`), answer("b"))},
		{"an id twice in one message", llmtest.Rules{Profile: anthropic}, claude(user, assistant(use, use), userOf(`{"type":"tool_result","tool_use_id":"a","content":"ok"}`, `{"type":"tool_result","tool_use_id":"a","content":"ok"}`)), 4, 1, claude(user, calledA, resultA)},
		{"an id that is too long", llmtest.Rules{Profile: openai}, chat(user, call(strings.Repeat("a", 41), "look", `"{}"`), answer(strings.Repeat("a", 41))), 4, 1, chat(user, call(strings.Repeat("a", 40), "look", `"{}"`), answer(strings.Repeat("a", 40)))},
		{"an id of odd characters", llmtest.Rules{Profile: anthropic}, claude(user, callA("a|b", "look", `{}`), answerA("a|b")), 4, 1, claude(user, callA("a_b", "look", `{}`), answerA("a_b"))},
		{"an id of 65 characters", llmtest.Rules{Profile: anthropic}, claude(user, callA(strings.Repeat("a", 65), "look", `{}`), answerA(strings.Repeat("a", 65))), 4, 1, claude(user, callA(strings.Repeat("a", 64), "look", `{}`), answerA(strings.Repeat("a", 64)))},
		{"an empty id", llmtest.Rules{Profile: alternate}, chat(user, call("", "look", `"{}"`), answer("")), 4, 1, chat(user, call("x", "look", `"{}"`), answer("x"))},

		{"arguments that are cut off", llmtest.Rules{Profile: openai}, chat(user, call("a", "look", `"{\"pa"`), result), 5, 1, chat(user, call("a", "look", `"{\"pa\":1}"`), result)},
		{"arguments that are a list", llmtest.Rules{Profile: openai}, chat(user, call("a", "look", `"[]"`), result), 5, 1, chat(user, called, result)},
		{"arguments that are nothing", llmtest.Rules{Profile: openai}, chat(user, call("a", "look", `""`), result), 5, 1, chat(user, called, result)},
		{"arguments that are no text", llmtest.Rules{Profile: openai}, chat(user, call("a", "look", `{}`), result), 5, 1, chat(user, called, result)},
		{"input that is a string", llmtest.Rules{Profile: anthropic}, claude(user, callA("a", "look", `"{}"`), resultA), 5, 1, claude(user, callA("a", "look", `{}`), resultA)},
		{"no input", llmtest.Rules{Profile: anthropic}, claude(user, strings.Replace(calledA, `,"input":{}`, "", 1), resultA), 5, 1, claude(user, calledA, resultA)},
		{"a member twice in the arguments", llmtest.Rules{Profile: openai}, chat(user, call("a", "look", `"{\"x\":1,\"x\":2}"`), result), 5, 1, chat(user, call("a", "look", `"{\"x\":1,\"y\":{\"x\":2}}"`), result)},
		{"a member twice, once escaped, deep inside", llmtest.Rules{Profile: anthropic}, claude(user, callA("a", "look", `{"l":[{"x":1,"\u0078":2}]}`), resultA), 5, 1, claude(user, callA("a", "look", `{"l":[{"x":1},{"x":2}]}`), resultA)},

		{"a tool with a space in its name", llmtest.Rules{Profile: openai}, with(`"tools":[`+tool("look up", `{"type":"object"}`)+`]`, chat(user)), 6, -1, with(`"tools":[`+tool("look_up", `{"type":"object"}`)+`]`, chat(user))},
		{"a call of a tool with a space in its name", llmtest.Rules{Profile: openai}, chat(user, call("a", "look up", `"{}"`), result), 6, 1, chat(user, call("a", "gone", `"{}"`), result)},
		{"two tools of one name", llmtest.Rules{Profile: openai}, with(`"tools":[`+toolGood+`,`+toolGood+`]`, chat(user)), 6, -1, with(`"tools":[`+toolGood+`,`+tool("b", `{"type":"object"}`)+`]`, chat(user))},
		{"an empty list of tools", llmtest.Rules{Profile: openai}, with(`"tools":[]`, chat(user)), 6, -1, with(`"tools":[`+toolGood+`]`, chat(user))},
		{"a schema that is a string", llmtest.Rules{Profile: openai}, with(`"tools":[`+tool("a", `{"type":"string"}`)+`]`, chat(user)), 6, -1, with(`"tools":[{"type":"function","function":{"name":"a"}}]`, chat(user))},
		{"a tool without a schema", llmtest.Rules{Profile: anthropic}, with(`"tools":[{"name":"a"}]`, claude(user)), 6, -1, with(`"tools":[{"name":"a","input_schema":{"type":"object"}}]`, claude(user))},
		{"tools is an object", llmtest.Rules{Profile: openai}, with(`"tools":{}`, chat(user)), 6, -1, with(`"tools":[`+toolGood+`]`, chat(user))},

		{"empty text", llmtest.Rules{Profile: openai}, chat(`{"role":"user","content":""}`), 7, 0, chat(user)},
		{"a blank block", llmtest.Rules{Profile: anthropic}, claude(userOf(text, `{"type":"text","text":" \n\u00a0"}`)), 7, 0, claude(userOf(text, `{"type":"text","text":" x"}`))},
		{"a blank result", llmtest.Rules{Profile: openai}, chat(user, called, `{"role":"tool","tool_call_id":"a","content":" "}`), 7, 2, chat(user, called, result)},
		{"a blank block in a result", llmtest.Rules{Profile: anthropic}, claude(user, calledA, userOf(`{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":""}]}`)), 7, 2, claude(user, calledA, userOf(`{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"ok"}]}`))},
		{"a result without content", llmtest.Rules{Profile: anthropic}, claude(user, calledA, userOf(`{"type":"tool_result","tool_use_id":"a"}`)), 7, 2, claude(user, calledA, resultA)},
		{"white space ends the assistant's text", llmtest.Rules{Profile: openai}, chat(user, `{"role":"assistant","content":"Hello. "}`, user), 7, 1, chat(user, `{"role":"assistant","content":" Hello."}`, user)},
		{"white space ends the assistant's last block", llmtest.Rules{Profile: anthropic}, claude(user, assistant(text, `{"type":"text","text":"x\n"}`), user), 7, 1, claude(user, assistant(`{"type":"text","text":"x\n"}`, use), resultA)},
		{"null without calls", llmtest.Rules{Profile: openai}, chat(user, `{"role":"assistant","content":null}`, user), 7, 1, chat(user, called, result)},
		{"no content without calls", llmtest.Rules{Profile: openai}, chat(`{"role":"user"}`), 7, 0, chat(user)},
		{"an empty list of content", llmtest.Rules{Profile: anthropic}, claude(userOf()), 7, 0, claude(userOf(text))},
		{"an empty list of content, chat dialect", llmtest.Rules{Profile: openai}, chat(userOf()), 7, 0, chat(userOf(text))},
		{"a number as content", llmtest.Rules{Profile: openai}, chat(`{"role":"user","content":7}`), 7, 0, chat(user)},
		{"an empty list of calls", llmtest.Rules{Profile: openai}, chat(user, `{"role":"assistant","content":"x","tool_calls":[]}`, user), 7, 1, chat(user, `{"role":"assistant","content":"x"}`, user)},
		{"a blank system prompt", llmtest.Rules{Profile: anthropic}, with(`"system":" "`, claude(user)), 7, -1, with(`"system":"Be kind."`, claude(user))},
		{"a blank block in the system prompt", llmtest.Rules{Profile: anthropic}, with(`"system":[{"type":"text","text":""}]`, claude(user)), 7, -1, with(`"system":[{"type":"text","text":"Be kind."}]`, claude(user))},

		{"invalid UTF-8", llmtest.Rules{Profile: openai}, chat("{\"role\":\"user\",\"content\":\"\xff\"}"), 8, -1, chat("{\"role\":\"user\",\"content\":\"\u00ff\"}")},
		{"a lone high surrogate", llmtest.Rules{Profile: openai}, chat(user, reply, `{"role":"user","content":"\ud83d"}`), 8, 2, chat(user, reply, `{"role":"user","content":"\ud83d\ude00"}`)},
		{"a lone low surrogate", llmtest.Rules{Profile: anthropic}, claude(`{"role":"user","content":"x\uDE00"}`), 8, 0, claude(`{"role":"user","content":"\\ude00"}`)},
		{"NUL", llmtest.Rules{Profile: openai}, chat(`{"role":"user","content":"a\u0000"}`), 8, 0, chat(`{"role":"user","content":"a\\u0000"}`)},
		{"a raw NUL", llmtest.Rules{Profile: openai}, chat(user) + "\x00", 8, -1, chat(user) + " "},
		{"NUL in the system prompt", llmtest.Rules{Profile: anthropic}, with(`"system":"\u0000"`, claude(user)), 8, -1, with(`"system":"0"`, claude(user))},
		{"a lone surrogate in a description", llmtest.Rules{Profile: openai}, with(`"tools":[{"type":"function","function":{"name":"a","description":"\ud800"}}]`, chat(user)), 8, -1, with(`"tools":[{"type":"function","function":{"name":"a","description":"x"}}]`, chat(user))},
		{"a lone surrogate inside arguments", llmtest.Rules{Profile: openai}, chat(user, call("a", "look", `"{\"x\":\"\\ud83d\"}"`), result), 8, 1, chat(user, call("a", "look", `"{\"x\":\"\\ud83d\\ude00\"}"`), result)},
		{"NUL inside arguments", llmtest.Rules{Profile: deepseek}, chat(user, call("a", "look", `"{\"x\":\"\\u0000\"}"`), result), 8, 1, chat(user)},
		{"NUL as a name inside input", llmtest.Rules{Profile: anthropic}, claude(user, callA("a", "look", `{"\u0000":1}`), resultA), 8, 1, claude(user, callA("a", "look", `{"\u0001":1}`), resultA)},
		{"no JSON", llmtest.Rules{Profile: openai}, `{"messages":`, 8, -1, chat(user)},
		{"a list", llmtest.Rules{Profile: openai}, `[]`, 8, -1, chat(user)},
		{"a body over 10 MiB", llmtest.Rules{Profile: openai}, chat(user) + strings.Repeat(" ", 10<<20), 8, -1, chat(user) + strings.Repeat(" ", 10<<20-len(chat(user)))},

		{"calls without reasoning", llmtest.Rules{Profile: deepseek}, chat(user, called, result), 9, 1, chat(user, strings.Replace(called, `null`, `null,"reasoning_content":"Hm."`, 1), result)},
		{"calls with blank reasoning", llmtest.Rules{Profile: deepseek}, chat(user, strings.Replace(called, `null`, `null,"reasoning_content":" "`, 1), result), 9, 1, chat(user, reply, user)},
		{"reasoning", llmtest.Rules{Profile: openai}, chat(user, strings.Replace(called, `null`, `null,"reasoning_content":"Hm."`, 1), result), 9, 1, chat(user, called, result)},
		{"an unknown member in a message", llmtest.Rules{Profile: openai}, chat(`{"role":"user","content":"x","id":"m-1"}`), 9, 0, chat(`{"role":"user","content":"x","name":"ann"}`)},
		{"an unknown member in a call", llmtest.Rules{Profile: openai}, chat(user, strings.Replace(called, `"id":"a"`, `"id":"a","index":0`, 1), result), 9, 1, chat(user, called, result)},
		{"an unknown member in a function", llmtest.Rules{Profile: openai}, chat(user, strings.Replace(called, `"name":"look"`, `"name":"look","x":0`, 1), result), 9, 1, chat(user, called, result)},
		{"an unknown member in a part", llmtest.Rules{Profile: openai}, chat(userOf(`{"type":"text","text":"x","cache_control":{}}`)), 9, 0, chat(userOf(`{"type":"text","text":"x"}`))},
		{"an unknown part", llmtest.Rules{Profile: openai}, chat(userOf(`{"type":"image","text":"x"}`)), 9, 0, chat(userOf(`{"type":"text","text":"x"}`))},
		{"an unknown role", llmtest.Rules{Profile: openai}, chat(user, `{"role":"model","content":"x"}`, user), 9, 1, chat(user, reply, user)},
		{"a role of the other dialect", llmtest.Rules{Profile: anthropic}, claude(user, calledA, result), 9, 2, claude(user, calledA, resultA)},
		{"an unknown member in a message, messages dialect", llmtest.Rules{Profile: anthropic}, claude(`{"role":"user","content":"x","id":"m-1"}`), 9, 0, claude(user)},
		{"an unknown member in a block", llmtest.Rules{Profile: anthropic}, claude(userOf(`{"type":"text","text":"x","id":"m-1"}`)), 9, 0, claude(userOf(text))},
		{"an unknown member in a result", llmtest.Rules{Profile: anthropic}, claude(user, calledA, strings.Replace(resultA, `"content":"ok"`, `"content":"ok","name":"look"`, 1)), 9, 2, claude(user, calledA, strings.Replace(resultA, `"content":"ok"`, `"content":"ok","is_error":true`, 1))},
		{"a call in a message of the user", llmtest.Rules{Profile: anthropic}, claude(userOf(use)), 9, 0, claude(userOf(text))},
		{"a message that is no object", llmtest.Rules{Profile: openai}, chat(user, `"x"`), 9, 1, chat(user)},

		{"no max_tokens", llmtest.Rules{Profile: anthropic}, chat(user), 10, -1, claude(user)},
		{"thinking without a signature", llmtest.Rules{Profile: anthropic}, claude(user, assistant(thought("Hm.", ""), text), user), 10, 1, claude(user, assistant(signed, text), user)},
		{"thinking with the signature of other thinking", llmtest.Rules{Profile: anthropic}, claude(user, assistant(thought("Hm!", llmtest.Sign("Hm.")), text), user), 10, 1, claude(user, assistant(signed, text), user)},
		{"empty thinking", llmtest.Rules{Profile: anthropic}, claude(user, assistant(thought("", llmtest.Sign("")), text), user), 10, 1, claude(user, assistant(text), user)},
		{"redacted thinking without data", llmtest.Rules{Profile: anthropic}, claude(user, assistant(`{"type":"redacted_thinking","data":""}`, text), user), 10, 1, claude(user, assistant(`{"type":"redacted_thinking","data":"x"}`, text), user)},
		{"thinking behind text", llmtest.Rules{Profile: anthropic}, claude(user, assistant(text, signed, text), user), 10, 1, claude(user, assistant(signed, signed, text), user)},
		{"thinking at the end", llmtest.Rules{Profile: anthropic}, claude(user, assistant(signed), user), 10, 1, claude(user, assistant(signed, text), user)},
		{"thinking missing before a call", llmtest.Rules{Profile: anthropic}, with(thinking, claude(user, calledA, resultA)), 10, 1, with(thinking, claude(user, assistant(signed, use), resultA))},
		{"thinking missing before an earlier call", llmtest.Rules{Profile: anthropic}, with(thinking, claude(user, calledA, resultA, assistant(strings.Replace(use, `"a"`, `"b"`, 1)), answerA("b"))), 10, 3, with(thinking, claude(user, calledA, resultA, reply, user))},
		{"a temperature with thinking", llmtest.Rules{Profile: anthropic}, with(thinking+`,"temperature":0.5`, claude(user)), 10, -1, with(`"temperature":0.5`, claude(user))},
		{"five cache marks", llmtest.Rules{Profile: anthropic}, with(`"system":[`+mark(3)+`]`, claude(userOf(mark(2)))), 10, -1, with(`"system":[`+mark(3)+`]`, claude(userOf(mark(1))))},

		{"max_tokens", llmtest.Rules{Profile: openai}, with(`"max_tokens":5`, chat(user)), 11, -1, with(`"max_completion_tokens":5`, chat(user))},
		{"max_completion_tokens", llmtest.Rules{Profile: deepseek}, with(`"max_completion_tokens":5`, chat(user)), 11, -1, with(`"max_tokens":5`, chat(user))},
		{"max_completion_tokens where the test says max_tokens", llmtest.Rules{Profile: openai, OutputMember: "max_tokens"}, with(`"max_completion_tokens":5`, chat(user)), 11, -1, with(`"max_tokens":5`, chat(user))},
		{"no output at all", llmtest.Rules{Profile: deepseek}, with(`"max_tokens":0`, chat(user)), 11, -1, with(`"max_tokens":1`, chat(user))},
		{"prompt and output over the window", llmtest.Rules{Profile: openai, Window: 109}, with(`"max_completion_tokens":101`, chat(user)), 11, -1, with(`"max_completion_tokens":100`, chat(user))},
		{"prompt and output over the window, messages dialect", llmtest.Rules{Profile: anthropic, Window: 108}, claude(user), 11, -1, with(`"x":1`, strings.Replace(claude(user), "100", "99", 1))},

		{"an image for a model of text", llmtest.Rules{Profile: openai, TextOnly: true}, chat(userOf(imageURL("image/png", small))), 12, 0, chat(user)},
		{"a media type unlike the bytes", llmtest.Rules{Profile: openai}, chat(userOf(imageURL("image/jpeg", small))), 12, 0, chat(userOf(imageURL("image/png", small)))},
		{"a media type unlike the bytes, messages dialect", llmtest.Rules{Profile: anthropic}, claude(userOf(imageA("image/png", picture(t, "jpeg", 3, 3)))), 12, 0, claude(userOf(imageA("image/jpeg", picture(t, "jpeg", 3, 3))))},
		{"bytes that are no image", llmtest.Rules{Profile: anthropic}, claude(userOf(imageA("image/png", []byte("hello")))), 12, 0, claude(userOf(imageA("image/gif", picture(t, "gif", 3, 3))))},
		{"data that is not base64", llmtest.Rules{Profile: openai}, chat(userOf(`{"type":"image_url","image_url":{"url":"data:image/png;base64,???"}}`)), 12, 0, chat(userOf(`{"type":"image_url","image_url":{"url":"https://example.com/a.png"}}`))},
		{"an address of another kind", llmtest.Rules{Profile: openai}, chat(userOf(`{"type":"image_url","image_url":{"url":"file:///a.png"}}`)), 12, 0, chat(userOf(imageURL("image/webp", picture(t, "webp VP8", 3, 3))))},
		{"a source of another kind", llmtest.Rules{Profile: anthropic}, claude(userOf(`{"type":"image","source":{"type":"file"}}`)), 12, 0, claude(userOf(`{"type":"image","source":{"type":"url","url":"https://example.com/a.png"}}`))},
		{"an image over 5 MB", llmtest.Rules{Profile: anthropic}, claude(userOf(imageA("image/png", heavy))), 12, 0, claude(userOf(imageA("image/png", heavy[:5<<20])))},
		{"an image over 8,000 pixels", llmtest.Rules{Profile: anthropic}, claude(user, calledA, userOf(`{"type":"tool_result","tool_use_id":"a","content":[`+imageA("image/png", wide)+`]}`)), 12, 2, claude(user, calledA, userOf(`{"type":"tool_result","tool_use_id":"a","content":[`+imageA("image/png", picture(t, "png", 8000, 1))+`]}`))},
		{"a WebP over 8,000 pixels", llmtest.Rules{Profile: anthropic}, claude(userOf(imageA("image/webp", picture(t, "webp VP8X", 8001, 1)))), 12, 0, claude(userOf(imageA("image/webp", picture(t, "webp VP8X", 8000, 1))))},
		{"a lossless WebP over 8,000 pixels", llmtest.Rules{Profile: anthropic}, claude(userOf(imageA("image/webp", picture(t, "webp VP8L", 1, 8001)))), 12, 0, claude(userOf(imageA("image/webp", picture(t, "webp VP8L", 1, 8000))))},
		{"a large image among 21", llmtest.Rules{Profile: anthropic}, claude(userOf(append(repeated(imageA("image/png", small), 20), imageA("image/png", large))...)), 12, 0, claude(userOf(append(repeated(imageA("image/png", small), 20), imageA("image/png", picture(t, "png", 2000, 1)))...))},
		{"a large image among 21, or among 20", llmtest.Rules{Profile: openai}, chat(userOf(append(repeated(imageURL("image/png", small), 20), imageURL("image/png", large))...)), 12, 0, chat(userOf(append(repeated(imageURL("image/png", small), 19), imageURL("image/png", large))...))},
		{"an image in a tool message", llmtest.Rules{Profile: openai}, chat(user, called, `{"role":"tool","tool_call_id":"a","content":[`+imageURL("image/png", small)+`]}`), 12, 2, chat(user, called, result, userOf(imageURL("image/png", small)))},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := c.rules.Check([]byte(c.refused))
			switch {
			case f == nil:
				t.Errorf("accepted: %.300s", c.refused)
			case f.Rule != c.rule || f.Index != c.index:
				t.Errorf("refused by rule %d at %d, want rule %d at %d: %v", f.Rule, f.Index, c.rule, c.index, f)
			case f.Status != http.StatusBadRequest && len(c.refused) <= llmtest.MaxBody:
				t.Errorf("status %d", f.Status)
			case len(c.refused) > llmtest.MaxBody && f.Status != http.StatusRequestEntityTooLarge:
				t.Errorf("status %d for a body that is too large", f.Status)
			}
			if f := c.rules.Check([]byte(c.good)); f != nil {
				t.Errorf("the neighbour is refused: %v\n%.300s", f, c.good)
			}
		})
	}
}

func TestAPromptOverTheWindowHasACodeOfItsOwn(t *testing.T) {
	f := llmtest.Rules{Profile: llmtest.OpenAI, Window: 1}.Check([]byte(chat(user)))
	if f == nil || f.Code != "context_length_exceeded" || f.Status != http.StatusBadRequest {
		t.Errorf("%+v", f)
	}
}

// Rule 13 is about two requests.
func TestARequestMustBeginAsTheOneBefore(t *testing.T) {
	long := `{"role":"user","content":"Hi.\nAnd more."}`
	for _, c := range []struct {
		name          string
		profile       llmtest.Profile
		first, second string
		index         int // -2: accepted
	}{
		{"the same again", llmtest.OpenAI, chat(user), chat(user), -2},
		{"it grew", llmtest.OpenAI, chat(user), chat(user, reply, user), -2},
		{"its last message grew", llmtest.Alternate, chat(user, reply, user), chat(user, reply, long), -2},
		{"its last list grew", llmtest.Anthropic, claude(userOf(`{"type":"text","text":"a"}`)), claude(userOf(`{"type":"text","text":"a"}`, `{"type":"text","text":"b"}`)), -2},
		{"a message before the last one grew", llmtest.Alternate, chat(user, reply, user), chat(long, reply, user), 0},
		{"its last message has another role", llmtest.OpenAI, chat(user, user), chat(user, reply, user), 1},
		{"its last message became a list", llmtest.OpenAI, chat(user), chat(userOf(`{"type":"text","text":"Hi. And see:"}`, imageURL("image/png", picture(t, "png", 1, 1)))), -2},
		{"its last message became a list of other text", llmtest.OpenAI, chat(user), chat(userOf(`{"type":"text","text":"Ho."}`)), 0},
		{"its last list is shorter", llmtest.OpenAI, chat(userOf(`{"type":"text","text":"a"}`, `{"type":"text","text":"b"}`)), chat(userOf(`{"type":"text","text":"a"}`)), 0},
		{"its last list changed inside", llmtest.Anthropic, claude(userOf(`{"type":"text","text":"a"}`)), claude(userOf(`{"type":"text","text":"b"}`)), 0},
		{"a message changed", llmtest.OpenAI, chat(user, reply, user), chat(user, `{"role":"assistant","content":"Hello!"}`, user), 1},
		{"it ends earlier", llmtest.OpenAI, chat(user, reply, user), chat(user), 1},
		{"the system prompt changed", llmtest.Anthropic, with(`"system":"a"`, claude(user)), with(`"system":"b"`, claude(user)), -1},
		{"the system prompt changed, chat dialect", llmtest.OpenAI, chat(system, user), chat(`{"role":"system","content":"x"}`, user), 0},
		{"the tools changed", llmtest.OpenAI, with(`"tools":[`+toolGood+`]`, chat(user)), chat(user), -1},
		{"only white space changed", llmtest.OpenAI, chat(user), strings.ReplaceAll(chat(user, reply, user), ":", " : "), -2},
		{"cache marks moved", llmtest.Anthropic,
			with(`"system":[{"type":"text","text":"s","cache_control":{"type":"ephemeral"}}]`, claude(userOf(`{"cache_control":{"type":"ephemeral"},"type":"text","text":"a"}`))),
			with(`"system":[{"type":"text","text":"s"}]`, claude(userOf(`{"type":"text","text":"a"}`), reply, userOf(mark(1)))), -2},
		{"text that speaks of cache marks changed", llmtest.Anthropic,
			claude(`{"role":"user","content":"\"cache_control\":1"}`), claude(`{"role":"user","content":"\"cache_control\":2"}`), 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := llmtest.NewReferee(llmtest.Rules{Profile: c.profile})
			if f := r.Judge("s", []byte(c.first)); f != nil {
				t.Fatal(f)
			}
			f := r.Judge("s", []byte(c.second))
			switch {
			case c.index == -2 && f != nil:
				t.Errorf("refused: %v", f)
			case c.index != -2 && (f == nil || f.Rule != 13 || f.Index != c.index):
				t.Errorf("got %v, want a refusal by rule 13 at %d", f, c.index)
			}
			if f := r.Judge("another", []byte(c.second)); f != nil {
				t.Errorf("another session: %v", f)
			}
			if f := r.Judge("", []byte(c.second)); f != nil {
				t.Errorf("no session: %v", f)
			}
		})
	}
}

func TestAnAnnouncedChangeIsAcceptedOnce(t *testing.T) {
	r := llmtest.NewReferee(llmtest.Rules{Profile: llmtest.OpenAI})
	other := chat(`{"role":"user","content":"Other."}`)
	judge := func(want bool, body string) {
		t.Helper()
		if f := r.Judge("s", []byte(body)); (f == nil) != want {
			t.Errorf("got %v", f)
		}
	}
	judge(true, chat(user))
	judge(false, other)
	r.Announce("s", "a compaction")
	judge(false, chat(reply)) // refused for another reason: the announcement holds
	judge(true, other)
	judge(false, chat(user))
	judge(true, other) // what was refused is not remembered
}

func FuzzCheck(f *testing.F) {
	for _, s := range []string{chat(system, user, called, result, user), claude(user, calledA, resultA), chat(userOf(imageURL("image/png", []byte("x")))),
		with(`"tools":[`+toolGood+`]`, chat(user)), claude(user, assistant(thought("Hm.", llmtest.Sign("Hm.")), `{"type":"text","text":"x"}`), user)} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, p := range []llmtest.Profile{llmtest.OpenAI, llmtest.DeepSeek, llmtest.Alternate, llmtest.Anthropic} {
			r := llmtest.NewReferee(llmtest.Rules{Profile: p, Window: 100_000})
			if f := r.Judge("s", body); f != nil {
				if f.Rule < 1 || f.Rule > 12 || f.Error() == "" {
					t.Errorf("%+v", f)
				}
				continue
			}
			if f := r.Judge("s", body); f != nil {
				t.Errorf("accepted once, then refused: %v", f)
			}
		}
	})
}

func readAll(t *testing.T, r io.Reader) string {
	t.Helper()
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
