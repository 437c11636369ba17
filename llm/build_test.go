package llm

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/outcrop-dev/outcrop/message"
)

// Short forms for tables.
func says(blocks ...message.Block) message.Message {
	return message.Message{Role: message.Assistant, Content: blocks, Source: message.FromModel("p", "m")}
}

func asks(texts ...string) message.Message {
	m := message.Message{Role: message.User, Source: message.FromUser}
	for _, t := range texts {
		m.Content = append(m.Content, message.Text(t))
	}
	return m
}

func gives(id string, texts ...string) message.Message {
	m := message.Message{Role: message.User, Source: message.FromTool(id)}
	m.Content = []message.Block{message.ToolResult(id, false, asks(texts...).Content...)}
	return m
}

// nodes gives messages the seqs 0, 1, 2 and so on.
func nodes(messages ...message.Message) []Node {
	var out []Node
	for i, m := range messages {
		out = append(out, Node{Seq: int64(i), Message: m})
	}
	return out
}

func calls(id string) message.Block { return message.ToolCall(id, "read", `{"path":"a"}`) }

// shape writes messages in a short form: u and a for the roles, text quoted.
func shape(messages []message.Message) []string {
	var out []string
	for _, m := range messages {
		s := "u"
		if m.Role == message.Assistant {
			s = "a"
		}
		for _, b := range m.Content {
			switch b.Type {
			case message.TextBlock:
				s += " " + b.Text
			case message.ReasoningBlock:
				s += " think:" + b.Text
			case message.ToolCallBlock:
				s += " call:" + b.ID
			case message.ToolResultBlock:
				s += " result:" + b.ToolCallID + "=" + message.PlainText(b.Content)
				if b.IsError {
					s += "!"
				}
			default:
				s += " " + string(b.Type)
			}
		}
		out = append(out, s)
	}
	return out
}

func TestBuild(t *testing.T) {
	const lost = "u result:%=" + textNoResult + "!"
	const again = "9b4e3fa42a8278e688d9" // of 1:1:1
	missing := func(id string) string { return strings.Replace(lost, "%", id, 1) }
	image := message.Block{Type: message.ImageBlock, Attachment: []byte(`{"attachmentId":"sha256:ab"}`)}
	tests := []struct {
		name string
		in   []message.Message
		want []string
	}{
		{"a plain conversation stays as it is",
			[]message.Message{asks("hi"), says(message.Text("hello")), asks("bye")},
			[]string{"u hi", "a hello", "u bye"}},
		{"results come in the order of their calls",
			[]message.Message{asks("x"), says(calls("c1"), calls("c2")), gives("c2", "B"), gives("c1", "A")},
			[]string{"u x", "a call:c1 call:c2", "u result:c1=A", "u result:c2=B"}},
		{"a steering message between call and result goes behind the results",
			[]message.Message{asks("x"), says(calls("c1"), calls("c2")), gives("c1", "A"), asks("stop"), gives("c2", "B"), asks("now")},
			[]string{"u x", "a call:c1 call:c2", "u result:c1=A", "u result:c2=B", "u stop", "u now"}},
		{"a missing result is supplied at the end",
			[]message.Message{asks("x"), says(calls("c1"), calls("c2")), gives("c1", "A")},
			[]string{"u x", "a call:c1 call:c2", "u result:c1=A", missing("c2")}},
		{"a missing result is supplied in the middle of the history",
			[]message.Message{asks("x"), says(calls("c1")), asks("go on"), says(message.Text("ok")), asks("y")},
			[]string{"u x", "a call:c1", missing("c1"), "u go on", "a ok", "u y"}},
		{"equal counts do not hide a wrong id",
			[]message.Message{asks("x"), says(calls("c1"), calls("c2")), gives("c1", "A"), gives("c9", "Z")},
			[]string{"u x", "a call:c1 call:c2", "u result:c1=A", missing("c2"),
				"u [Result of tool call c9, which is no longer part of this conversation:] Z"}},
		{"a result whose call was taken off the surface becomes user text",
			[]message.Message{asks("summary"), gives("c1", "A"), says(message.Text("ok")), asks("y")},
			[]string{"u summary", "u [Result of tool call c1, which is no longer part of this conversation:] A", "a ok", "u y"}},
		{"a result that came after the next reply is told as late",
			[]message.Message{asks("x"), says(calls("c1")), says(message.Text("hm")), gives("c1", "A")},
			[]string{"u x", "a call:c1", missing("c1"), "a hm", "u [Another result of tool call c1, which came later:] A"}},
		{"a second result of one call becomes user text",
			[]message.Message{asks("x"), says(calls("c1")), gives("c1", "A"), gives("c1", "B")},
			[]string{"u x", "a call:c1", "u result:c1=A", "u [Another result of tool call c1, which came later:] B"}},
		{"ids that start anew in each turn are told apart, results follow their own call",
			[]message.Message{asks("x"), says(calls("call_0")), gives("call_0", "A"), asks("y"), says(calls("call_0")), gives("call_0", "B")},
			[]string{"u x", "a call:call_0", "u result:call_0=A", "u y", "a call:c_592506cf9dae29d0e663", "u result:c_592506cf9dae29d0e663=B"}},
		{"an id twice in one message takes results in order",
			[]message.Message{asks("x"), says(calls("c"), calls("c")), gives("c", "A"), gives("c", "B")},
			[]string{"u x", "a call:c call:c_d6b5915c46057bcb005f", "u result:c=A", "u result:c_d6b5915c46057bcb005f=B"}},
		{"an id that a model made up as we do is passed over",
			[]message.Message{asks("x"), says(calls("c_d6b5915c46057bcb005f"), calls(""))},
			[]string{"u x", "a call:c_d6b5915c46057bcb005f call:c_" + again, missing("c_d6b5915c46057bcb005f"), missing("c_" + again)}},
		{"an id is mapped by the place of its block in the log",
			[]message.Message{asks("x"), says(message.Text(" "), message.Reasoning("r"), calls("a|b"))},
			[]string{"u x", "a think:r call:c_673aeeb08cfbb00b91e5", missing("c_673aeeb08cfbb00b91e5")}},
		{"an id of 40 characters stays, one of 41 does not",
			[]message.Message{asks("x"), says(calls(strings.Repeat("i", 40)), calls(strings.Repeat("i", 41)))},
			[]string{"u x", "a call:" + strings.Repeat("i", 40) + " call:c_d6b5915c46057bcb005f", missing(strings.Repeat("i", 40)), missing("c_d6b5915c46057bcb005f")}},
		{"an empty id and name get usable ones",
			[]message.Message{asks("x"), says(message.ToolCall("", "", "{}")), gives("", "A")},
			[]string{"u x", "a call:c_a6685f3b62d57bfc4935", "u result:c_a6685f3b62d57bfc4935=A"}},
		{"a foreign id is mapped, call and result alike",
			[]message.Message{asks("x"), says(calls("call|fc:1")), gives("call|fc:1", "A")},
			[]string{"u x", "a call:c_a6685f3b62d57bfc4935", "u result:c_a6685f3b62d57bfc4935=A"}},
		{"blank text is dropped, and a prompt that is then empty keeps its place",
			[]message.Message{asks(""), asks("x"), says(message.Text(" \n")), says(message.Text(""), calls("c")), gives("c", " "), asks("\t")},
			[]string{"u (empty message)", "u x", "a call:c", "u result:c=(no output)", "u (empty message)"}},
		{"a reply of nothing but reasoning is dropped",
			[]message.Message{asks("x"), says(message.Reasoning("hm")), asks("y")},
			[]string{"u x", "u y"}},
		{"reasoning beside text stays",
			[]message.Message{asks("x"), says(message.Reasoning("hm"), message.Text("a ")), asks("y")},
			[]string{"u x", "a think:hm a", "u y"}},
		{"white space at the end of a text is cut before reasoning too",
			[]message.Message{asks("x"), says(message.Text("a \n"), message.Reasoning("hm")), asks("y")},
			[]string{"u x", "a a think:hm", "u y"}},
		{"a surface that starts with a reply gets a beginning",
			[]message.Message{says(message.Text("a")), asks("y")},
			[]string{"u " + textEarlier, "a a", "u y"}},
		{"a surface that ends in a reply gets an end, without white space before it",
			[]message.Message{asks("x"), says(message.Text("half an answ\n"))},
			[]string{"u x", "a half an answ", "u Continue."}},
		{"an empty surface is one message",
			nil, []string{"u Continue."}},
		{"unknown blocks become a note, images of users stay",
			[]message.Message{
				{Role: message.User, Content: []message.Block{image, {Type: "x-call"}}},
				says(message.Text("a"), image),
				asks("y")},
			[]string{`u image [A block of the type "x-call" stands here; it cannot be sent to a model.]`,
				`a a [A block of the type "image" stands here; it cannot be sent to a model.]`, "u y"}},
		{"a message of results and text is taken apart",
			[]message.Message{asks("x"), says(calls("c")),
				{Role: message.User, Content: []message.Block{message.Text("note"), message.ToolResult("c", true, message.Text("A"))}}},
			[]string{"u x", "a call:c", "u result:c=A!", "u note"}},
		{"results inside a result are laid flat",
			[]message.Message{asks("x"), says(calls("c")),
				{Role: message.User, Content: []message.Block{message.ToolResult("c", false, message.ToolResult("d", false, message.Text("in")))}}},
			[]string{"u x", "a call:c", "u result:c=in"}},
		{"half an emoji and NUL become the replacement character",
			[]message.Message{asks("ok \xed\xa0\xbd"), says(message.Text("a\x00b")), asks("\xed\xa0\xbd\xed\xb8\x80", "\xc3(")},
			[]string{"u ok \ufffd", "a a\ufffdb", "u \U0001f600 \ufffd("}},
		{"another role counts as the user",
			[]message.Message{{Role: "system", Content: asks("x").Content}},
			[]string{"u x"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := Build(nodes(tt.in...))
			if d := cmp.Diff(tt.want, shape(got)); d != "" {
				t.Errorf("messages (-want +got):\n%s", d)
			}
			if err := Check(Request{Messages: got}); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestBuildMakesArgumentsObjects(t *testing.T) {
	deep := strings.Repeat("[", 1500) + strings.Repeat("]", 1500)
	tests := []struct{ name, in, want string }{
		{"an object stays byte for byte", ` {"a": 1e999, "b":-0}`, ` {"a": 1e999, "b":-0}`},
		{"nothing is the empty object", " ", "{}"},
		{"a cut object is carried as text", `{"a":"b`, `{"_raw":"{\"a\":\"b"}`},
		{"an array is carried as text", `[1]`, `{"_raw":"[1]"}`},
		{"a repeated member is carried as text", `{"x":[{"a":1,"\u0061":2}]}`, `{"_raw":"{\"x\":[{\"a\":1,\"\\u0061\":2}]}"}`},
		{"a lone surrogate is replaced where it stands", `{"a":"\ud83d","b":"\ud83d\ude00"}`, `{"a":"\ufffd","b":"\ud83d\ude00"}`},
		{"a low half alone is replaced", `{"a":"x\udc00\\ud83d"}`, `{"a":"x\ufffd\\ud83d"}`},
		{"an escaped NUL is replaced", `{"a":"\u0000"}`, `{"a":"\ufffd"}`},
		{"names that become equal are carried as text", `{"\ud800":1,"\ud801":2}`, `{"_raw":"{\"\\ud800\":1,\"\\ud801\":2}"}`},
		{"invalid bytes are replaced", "{\"a\":\"\xff\"}", `{"a":"` + "\ufffd" + `"}`},
		{"deep nesting is carried as text", `{"a":` + deep + `}`, `{"_raw":"{\"a\":` + deep + `}"}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := Build(nodes(asks("x"), says(message.ToolCall("c", "read", tt.in)), gives("c", "A")))
			if got := got[1].Content[0].Arguments; got != tt.want {
				t.Errorf("arguments %s, want %s", got, tt.want)
			}
			if err := Check(Request{Messages: got}); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestBuildKeepsReplayStateInStep(t *testing.T) {
	state := `{"response":"r","blocks":[{"s":1},{"s":2},{"s":3}]}`
	source := message.FromModel("p", "m")
	source.ReplayState = []byte(state)
	build := func(blocks ...message.Block) string {
		m := says(blocks...)
		m.Source = source
		return string(Build(nodes(asks("x"), m, asks("y")))[1].Source.ReplayState)
	}
	tests := []struct {
		name, got, want string
	}{
		{"an unchanged message keeps it", build(message.Reasoning("h"), message.Text("a"), message.Text("b")), state},
		{"a dropped block takes its state along", build(message.Reasoning("h"), message.Text(" "), message.Text("b")), `{"response":"r","blocks":[{"s":1},{"s":3}]}`},
		{"a changed block drops it", build(message.Reasoning("h\x00"), message.Text("a"), message.Text("b")), ""},
		{"a state that does not fit goes", build(message.Text(""), message.Text("b")), ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.got != tt.want {
				t.Errorf("replay state %q, want %q", tt.got, tt.want)
			}
		})
	}
}

func TestBuildChangesNoMessageThatItWasGiven(t *testing.T) {
	in := []message.Message{asks("x\x00"), says(message.Text("a "), calls("c"), calls("c")), gives("c", ""), says(message.Text("b "))}
	before := message.AppendBlocks(nil, in[1].Content)
	Build(nodes(in...))
	if after := message.AppendBlocks(nil, in[1].Content); string(after) != string(before) || in[3].Content[0].Text != "b " || in[0].Content[0].Text != "x\x00" {
		t.Errorf("Build changed its input: %s", after)
	}
}

var oddTexts = []string{"", " ", "\n", "a", "a ", "long text of a few words", "\x00", "\xff", "\xed\xa0\xbd", "\xed\xa0\xbd\xed\xb8\x80", "日本", "\u00a0"}

func drawBlock(t *rapid.T, depth int) message.Block {
	text := rapid.SampledFrom(oddTexts)
	id := rapid.SampledFrom([]string{"", "c", "c", "c_2", "d", "call|1", strings.Repeat("x", 64), strings.Repeat("y", 70), "\xff"})
	kind := rapid.SampledFrom([]message.BlockType{message.TextBlock, message.TextBlock, message.ReasoningBlock, message.ImageBlock,
		message.ToolCallBlock, message.ToolCallBlock, message.ToolResultBlock, message.ToolResultBlock, "x-odd", ""}).Draw(t, "type")
	b := message.Block{Type: kind}
	switch kind {
	case message.ToolCallBlock:
		b.ID = id.Draw(t, "id")
		b.Name = rapid.SampledFrom([]string{"read", "", "a b", strings.Repeat("n", 70), "é"}).Draw(t, "name")
		b.Arguments = rapid.SampledFrom([]string{"", "{}", `{"a":1}`, `{"a":1,"a":2}`, `{"a":"\ud800"}`, `{"a":`, "[]", "\x00", `"s"`, "null", `{"a":"\u0000\\u0000"}`}).Draw(t, "arguments")
	case message.ToolResultBlock:
		b.ToolCallID = id.Draw(t, "call")
		b.IsError = rapid.Bool().Draw(t, "isError")
		if depth < 2 {
			for range rapid.IntRange(0, 2).Draw(t, "inner") {
				b.Content = append(b.Content, drawBlock(t, depth+1))
			}
		}
	default:
		b.Text = text.Draw(t, "text")
	}
	return b
}

func drawMessages(t *rapid.T) []message.Message {
	var out []message.Message
	for range rapid.IntRange(0, 8).Draw(t, "messages") {
		m := message.Message{Role: rapid.SampledFrom([]message.Role{message.User, message.Assistant, message.Assistant, "system"}).Draw(t, "role")}
		for range rapid.IntRange(0, 3).Draw(t, "blocks") {
			m.Content = append(m.Content, drawBlock(t, 0))
		}
		out = append(out, m)
	}
	return out
}

func TestCheckAcceptsEverythingThatBuildMakes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawMessages(t)
		out := Build(nodes(in...))
		if err := Check(Request{Messages: out}); err != nil {
			t.Fatalf("%v\nin  %q\nout %q", err, shape(in), shape(out))
		}
		if again := Build(nodes(in...)); !cmp.Equal(out, again) {
			t.Fatalf("two builds differ:\n%s", cmp.Diff(out, again))
		}
		if twice := Build(nodes(out...)); !cmp.Equal(shape(out), shape(twice)) {
			t.Fatalf("building what was built changes it:\n%s", cmp.Diff(shape(out), shape(twice)))
		}
	})
}

// drawGrowth makes a session as a loop grows it: prompts, and replies with all
// their results, which may stand in any order with steering between them. ends
// are the lengths at which a request was made.
func drawGrowth(t *rapid.T) (all []message.Message, ends []int) {
	for range rapid.IntRange(1, 6).Draw(t, "steps") {
		for range rapid.IntRange(0, 2).Draw(t, "prompts") {
			all = append(all, asks(rapid.SampledFrom(oddTexts).Draw(t, "prompt"), "p"))
		}
		if len(all) > 0 && all[len(all)-1].Role == message.User {
			ends = append(ends, len(all))
		}
		reply := says(message.Text(rapid.SampledFrom(oddTexts).Draw(t, "reply")))
		var results []message.Message
		for range rapid.IntRange(0, 3).Draw(t, "calls") {
			c := drawBlock(t, 0)
			if c.Type == message.ToolCallBlock {
				reply.Content = append(reply.Content, c)
				results = append(results, gives(c.ID, rapid.SampledFrom(oddTexts).Draw(t, "result")))
			}
		}
		all = append(all, reply)
		if len(results) > 0 {
			if rapid.Bool().Draw(t, "steered") {
				results = append(results, asks("steer"))
			}
			if rapid.Bool().Draw(t, "lost") {
				results = results[1:]
			}
			all = append(all, rapid.Permutation(results).Draw(t, "order")...)
			if len(results) > 0 {
				ends = append(ends, len(all))
			}
		}
	}
	return all, ends
}

func TestBuildOfALongerSessionBeginsWithTheShorterOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all, ends := drawGrowth(t)
		for i, end := range ends {
			short := Build(nodes(all[:end]...))
			for _, later := range append(slices.Clone(ends[i:]), len(all)) {
				long := Build(nodes(all[:later]...))
				if len(long) < len(short) || !cmp.Equal(long[:len(short)], short) {
					t.Fatalf("at %d of %d:\n%s", end, later, cmp.Diff(shape(short), shape(long)))
				}
			}
		}
	})
}

// What a builder and a checker remember never shows in what they say.
func TestBuilderAndCheckerAgreeWithABuildFromNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var b Builder
		var c Checker
		var all []Node
		seq := int64(0)
		add := func(to []Node, messages ...message.Message) []Node {
			for _, m := range messages {
				to = append(to, Node{Seq: seq, Message: m})
				seq++
			}
			return to
		}
		type earlier struct {
			out   []message.Message
			shape []string
		}
		var before []earlier
		for range rapid.IntRange(1, 8).Draw(t, "requests") {
			switch rapid.IntRange(0, 5).Draw(t, "change") {
			case 0: // an edit replaces a range by one message
				i := rapid.IntRange(0, len(all)).Draw(t, "start")
				j := rapid.IntRange(i, len(all)).Draw(t, "end")
				all = append(add(slices.Clone(all[:i]), asks("summary")), all[j:]...)
			case 1:
			default:
				all = add(all, drawMessages(t)...)
			}
			got, want := b.Build(all), Build(all)
			if !cmp.Equal(got, want) {
				t.Fatalf("built bit by bit:\n%s", cmp.Diff(shape(want), shape(got)))
			}
			if tokens := EstimateRequest(Request{Messages: got}); b.Tokens() != tokens {
				t.Fatalf("estimated bit by bit: %d tokens, want %d", b.Tokens(), tokens)
			}
			if err := c.Check(Request{Messages: got}); err != nil {
				t.Fatal(err)
			}
			var odd Request
			for _, n := range all {
				odd.Messages = append(odd.Messages, n.Message)
			}
			if got, want := c.Check(odd), Check(odd); !cmp.Equal(got, want) {
				t.Fatalf("checked bit by bit: %v, want %v", got, want)
			}
			before = append(before, earlier{got, shape(got)})
			for _, e := range before {
				if d := cmp.Diff(e.shape, shape(e.out)); d != "" {
					t.Fatalf("an earlier result changed:\n%s", d)
				}
			}
		}
	})
}

// After an edit in the middle, what stood before it keeps its memory, so that
// encoders and checkers know it again.
func TestABuilderGoesOnFromThePlaceOfAnEdit(t *testing.T) {
	var b Builder
	all := nodes(asks("a"), says(message.Text("b ")), asks("c"), says(calls("d|")), gives("d|", "e"), says(message.Text("f")), asks("g"))
	before := b.Build(all)
	edited := append(slices.Clone(all[:5]), Node{Seq: 7, Message: asks("h")})
	after := b.Build(edited)
	if d := cmp.Diff([]string{"u a", "a b", "u c", "a call:c_eab817087de37b4d5920", "u result:c_eab817087de37b4d5920=e", "u h"}, shape(after)); d != "" {
		t.Fatal(d)
	}
	for i := range 5 {
		if &before[i].Content[0] != &after[i].Content[0] {
			t.Errorf("message %d was built again", i)
		}
	}
	if got := b.Build(append(edited, Node{Seq: 8, Message: says(calls("d|"))}, Node{Seq: 9, Message: gives("d|", "i")})); shape(got)[6] != "a call:c_bf7799df6eb226435eb8" {
		t.Errorf("messages %q", shape(got))
	}
}

func TestABuilderLeavesEarlierResultsAsTheyWere(t *testing.T) {
	all := nodes(asks("x"), says(calls("c"), calls("d")), gives("d", "D"), asks("steer"), gives("c", "C"), says(message.Text("ok")), asks("y"))
	var b Builder
	var results [][]message.Message
	var shapes [][]string
	for i := range all {
		r := b.Build(all[:i+1])
		results, shapes = append(results, r), append(shapes, shape(r))
	}
	for i := range results {
		if d := cmp.Diff(shapes[i], shape(results[i])); d != "" {
			t.Errorf("the result for %d messages changed later:\n%s", i+1, d)
		}
	}
}

func FuzzBuild(f *testing.F) {
	f.Add([]byte(`[{"type":"text","text":"a"},{"type":"tool-call","id":"c","name":"n","arguments":"{"}]`), true)
	f.Add([]byte(`[{"type":"tool-result","toolCallId":"c","content":[{"type":"text","text":"\ud83d"}]}]`), false)
	f.Fuzz(func(t *testing.T, content []byte, assistant bool) {
		blocks, err := message.ParseBlocks(content)
		if err != nil {
			return
		}
		m := message.Message{Role: message.User, Content: blocks}
		if assistant {
			m.Role = message.Assistant
		}
		if err := Check(Request{Messages: Build(nodes(asks("x"), m, m))}); err != nil {
			t.Fatal(err)
		}
	})
}
