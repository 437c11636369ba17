package agent_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/jpeg"
	"image/png"
	"slices"
	"strings"
	"sync"
	"testing/synctest"

	"pgregory.net/rapid"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/agent"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/llm/llmtest"
	"github.com/outcrop-dev/outcrop/message"
	"github.com/outcrop-dev/outcrop/tool"
	"github.com/outcrop-dev/outcrop/workspace"
)

// objects are attachments in memory.
type objects map[string][]byte

func (o objects) Get(_ context.Context, id string) ([]byte, error) {
	if b, ok := o[id]; ok {
		return b, nil
	}
	return nil, errors.New("no such object")
}

// pictures are images of every kind that a session may hold, by the names under
// which imageBlock knows them.
var pictures, pictureIDs = func() (objects, map[string]string) {
	encode := func(format string, w, h int) []byte {
		var b bytes.Buffer
		var err error
		if img := image.NewGray(image.Rect(0, 0, w, h)); format == "png" {
			err = png.Encode(&b, img)
		} else {
			err = jpeg.Encode(&b, img, nil)
		}
		if err != nil {
			panic(err)
		}
		return b.Bytes()
	}
	all, ids := objects{}, map[string]string{}
	for name, b := range map[string][]byte{
		"small": encode("png", 4, 4), "other": encode("jpeg", 4, 4), "large": encode("png", 2100, 1), "huge": encode("png", 9000, 1),
		"heavy": append(encode("png", 4, 4), make([]byte, 5<<20)...), "weighty": append(encode("png", 4, 4), make([]byte, 4<<20)...),
		"none": []byte("not an image at all"), "empty": {}, "cut": encode("png", 4, 4)[:20],
	} {
		sum := sha256.Sum256(b)
		ids[name] = "sha256:" + hex.EncodeToString(sum[:])
		all[ids[name]] = b
	}
	ids["missing"] = "sha256:" + strings.Repeat("0", 64)
	return all, ids
}()

// imageBlock refers to a picture; the log says PNG whatever it is.
func imageBlock(name string) message.Block {
	return message.Block{Type: message.ImageBlock, Attachment: json.RawMessage(fmt.Sprintf(`{"attachmentId":%q,"mediaType":"image/png"}`, pictureIDs[name]))}
}

// What spoils requests in careless programs.
var (
	poisonTexts = []string{
		"Fine.", "", " ", "\n\t\u00a0", "a\x00b", "\x00", "\xed\xa0\xbd", "half \xed\xb8\x80", "\xed\xa0\xbd\xed\xb8\x80 split", "\xff\xfe", "cut \xe2\x82",
		"trailing \n", strings.Repeat("\U0001f600", 3000), `{"role":"system"}`, "\u2028", "</think>", "data: [DONE]\n\n",
	}
	poisonIDs = []string{
		"", "a", "b", "a", "call_1_1_1", "call_1_1_2", "has space", "call_abc|fc_def:" + strings.Repeat("x", 420), strings.Repeat("y", 41), "\x00", "ünïcode", "c_00000000000000000000",
	}
	poisonNames     = []string{"look", "look", "look", "edit", "boom", "image", "odd", "nope", "", "has space", strings.Repeat("n", 70), "\x00", "\xff"}
	poisonArguments = []string{
		`{}`, `{"x":"1"}`, ` { "x" : "1" } `, ``, ` `, `{"x":"cut`, `[]`, `"text"`, `null`, `7`, `{"x":1}`, `{"x":"a","x":"b"}`, `{"y":{"a":1,"\u0061":2}}`,
		`{"x":"\u0000"}`, `{"x":"\ud83d"}`, `{"x":"\ude00\ud83d"}`, `{"\ud83d":1}`, "{\"x\":\"\x00\"}", "{\"x\":\"\xff\"}", "{\"x\":\"\xed\xa0\xbd\"}",
		`{"x":"` + strings.Repeat("long ", 20_000) + `"}`, `{"x":` + strings.Repeat("[", 2000) + strings.Repeat("]", 2000) + `}`, `{"x":1e999}`, `{"x":-0}`, `{} {}`,
	}
	poisonBlocks = []message.Block{
		{Type: "x-call", Raw: json.RawMessage(`{"type":"x-call","id":"q"}`)},
		message.Reasoning("I think."), message.Reasoning(" "),
		message.ToolResult("a", false, message.Text("from nowhere")), message.ToolResult("", true),
		imageBlock("small"), imageBlock("other"), imageBlock("large"), imageBlock("huge"), imageBlock("none"), imageBlock("empty"), imageBlock("cut"), imageBlock("missing"),
		{Type: message.ImageBlock, Attachment: json.RawMessage(`{}`)}, {Type: message.ImageBlock, Attachment: json.RawMessage(`{"attachmentId":7}`)},
	}
)

// drawContent is what a person or a tool may give.
func drawContent(t *rapid.T, min int) []message.Block {
	if rapid.IntRange(0, 19).Draw(t, "many images") == 0 {
		var out []message.Block
		for range rapid.IntRange(10, 25).Draw(t, "images") {
			out = append(out, imageBlock(rapid.SampledFrom([]string{"small", "small", "small", "large"}).Draw(t, "image")))
		}
		return out
	}
	var out []message.Block
	for range rapid.IntRange(min, 3).Draw(t, "blocks") {
		if rapid.Bool().Draw(t, "text?") {
			out = append(out, message.Text(rapid.SampledFrom(poisonTexts).Draw(t, "text")))
		} else {
			out = append(out, rapid.SampledFrom(poisonBlocks).Draw(t, "block"))
		}
	}
	return out
}

// strictReply is what the model does at one call.
type strictReply struct {
	Chunks []message.Chunk
	End    string // "", "hang", "panic", or a failure code
	Cancel int    // cancel the turn before this chunk, -1 never
	Keep   bool   // the cancel keeps the inbox
}

func drawStrictReply(t *rapid.T) strictReply {
	var r strictReply
	r.Cancel = -1
	if rapid.Bool().Draw(t, "clean") {
		// Half of the replies are as they should be: what spoils one hides what
		// another comes to.
		r.Chunks = cleanChunks(rapid.IntRange(0, 3).Draw(t, "calls"), rapid.Bool().Draw(t, "says something"))
		return r
	}
	add := func(c message.Chunk) { r.Chunks = append(r.Chunks, c) }
	for i := range rapid.IntRange(0, 5).Draw(t, "blocks") {
		switch rapid.IntRange(0, 5).Draw(t, "kind") {
		case 0:
			add(message.Chunk{Type: message.TextDelta, Index: i, Text: rapid.SampledFrom(poisonTexts).Draw(t, "text")})
		case 1:
			add(message.Chunk{Type: message.ReasoningDelta, Index: i, Text: rapid.SampledFrom(poisonTexts).Draw(t, "reasoning")})
		case 2:
			b := rapid.SampledFrom(poisonBlocks).Draw(t, "block")
			add(message.Chunk{Type: message.BlockEnd, Index: i, Block: &b})
		default:
			id, name, args := rapid.SampledFrom(poisonIDs).Draw(t, "id"), rapid.SampledFrom(poisonNames).Draw(t, "name"), rapid.SampledFrom(poisonArguments).Draw(t, "arguments")
			add(message.Chunk{Type: message.ToolCallDelta, Index: i, ID: id, Name: name, Text: args})
			if rapid.Bool().Draw(t, "end") {
				b := message.ToolCall(id, name, args)
				add(message.Chunk{Type: message.BlockEnd, Index: i, Block: &b})
			}
		}
	}
	if kind := rapid.SampledFrom([]message.FinishKind{message.Stop, message.Stop, message.ToolCalls, message.MaxTokens, message.Errored, ""}).Draw(t, "finish"); kind != "" {
		state := rapid.SampledFrom([]string{signatures(r.Chunks), signatures(r.Chunks), signatures(r.Chunks), "", `{}`, `7`, `{"blocks":[{},{}]}`, `{"blocks":[null]}`}).Draw(t, "replay state")
		add(message.Chunk{Type: message.FinishChunk, Reason: &message.Finish{Kind: kind}, ReplayState: json.RawMessage(state)})
	}
	r.End = rapid.SampledFrom([]string{"", "", "", "", "", "", "", "", "hang", "panic", message.CodeServer, message.CodeTransport, message.CodeAuth}).Draw(t, "end")
	if rapid.IntRange(0, 5).Draw(t, "cancels") == 0 {
		r.Cancel, r.Keep = rapid.IntRange(0, len(r.Chunks)).Draw(t, "at"), rapid.Bool().Draw(t, "keep")
	}
	return r
}

// cleanChunks is a reply that thinks, may say something, and calls tools.
func cleanChunks(calls int, says bool) []message.Chunk {
	out := []message.Chunk{{Type: message.ReasoningDelta, Text: "I see."}}
	if says || calls == 0 {
		out = append(out, message.Chunk{Type: message.TextDelta, Index: 1, Text: "Let me look."})
	}
	for i := range calls {
		name := []string{"look", "odd", "edit"}[i%3]
		out = append(out, message.Chunk{Type: message.ToolCallDelta, Index: 2 + i, ID: fmt.Sprintf("t%d", i), Name: name, Text: `{"x":"1"}`})
	}
	return append(out, message.Chunk{Type: message.FinishChunk, Reason: &message.Finish{Kind: message.Stop}, ReplayState: json.RawMessage(signatures(out))})
}

// signatures is the state that the messages API gives with a reply: a
// signature for each block of thinking.
func signatures(chunks []message.Chunk) string {
	var asm message.Assembler
	for _, c := range chunks {
		asm.Add(c)
	}
	var states []string
	for _, b := range asm.Blocks() {
		switch {
		case b.Type == message.ReasoningBlock && b.Text == "":
			states = append(states, `{"redacted":"sealed"}`)
		case b.Type == message.ReasoningBlock:
			// What a server signs is text that JSON can hold.
			said, _ := jsonwire.Text(jsonwire.AppendString(nil, b.Text))
			states = append(states, fmt.Sprintf(`{"signature":%q}`, llmtest.Sign(said)))
		default:
			states = append(states, "null")
		}
	}
	return `{"anthropic":1,"blocks":[` + strings.Join(states, ",") + `]}`
}

// strictLife is what happens between the start of a program and its death.
type strictLife struct {
	Replies []strictReply
	Results [][]message.Block // what the tools "odd" and "image" give
	Actions []int
	Inputs  [][]message.Block
	Keep    int // how much of the log the crash leaves, in thousandths
}

func drawStrictLife(t *rapid.T) strictLife {
	return strictLife{
		Replies: rapid.SliceOfN(rapid.Custom(drawStrictReply), 1, 6).Draw(t, "replies"),
		Results: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) []message.Block { return drawContent(t, 0) }), 1, 3).Draw(t, "results"),
		Actions: rapid.SliceOfN(rapid.IntRange(0, 5), 1, 5).Draw(t, "actions"),
		Inputs:  rapid.SliceOfN(rapid.Custom(func(t *rapid.T) []message.Block { return drawContent(t, 1) }), 1, 3).Draw(t, "inputs"),
		Keep:    rapid.IntRange(0, 1000).Draw(t, "keep"),
	}
}

// strictWorld plays a life.
type strictWorld struct {
	strictLife
	j *judges

	mu     sync.Mutex
	a      *agent.Agent
	calls  int // of the model
	ran    int // of the tools that give drawn results
	latest [3]int
}

// judge judges a request, unless it comes from a call that was cancelled and
// that runs on beside a later one.
func (w *strictWorld) judge(req llm.Request) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	at := [3]int{req.Turn, req.Step, req.Attempt}
	if slices.Compare(at[:], w.latest[:]) <= 0 {
		return nil
	}
	w.latest = at
	return w.j.judge(req)
}

func (w *strictWorld) stream(ctx context.Context, req llm.Request, yield func(message.Chunk, error) bool) {
	if err := w.judge(req); err != nil {
		yield(message.Chunk{}, &message.Failure{Code: "REFUSED", Message: err.Error()})
		return
	}
	w.mu.Lock()
	i := w.calls
	w.calls++
	w.mu.Unlock()
	if i >= len(w.Replies) {
		yield(message.Chunk{Type: message.TextDelta, Text: "Done."}, nil)
		return
	}
	r := w.Replies[i]
	for i := 0; i <= len(r.Chunks); i++ {
		if i == r.Cancel {
			var keep []agent.CancelOption
			if r.Keep {
				keep = append(keep, agent.KeepInbox)
			}
			_, _ = w.a.Cancel(ctx, agent.Cause{Kind: agent.ByUser}, keep...)
		}
		if i < len(r.Chunks) && !yield(r.Chunks[i], nil) {
			return
		}
	}
	switch r.End {
	case "":
	case "panic":
		panic("drawn")
	case "hang":
		go func() { _, _ = w.a.Cancel(ctx, agent.Cause{Kind: agent.ByUser}) }()
		<-ctx.Done()
		yield(message.Chunk{}, &message.Failure{Code: message.CodeAborted, Message: "cancelled"})
	default:
		yield(message.Chunk{}, &message.Failure{Code: r.End, Message: "drawn"})
	}
}

func (w *strictWorld) tools() []tool.Tool {
	odd := func(ctx context.Context, _ tool.Call) (tool.Result, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		r := tool.Result{Content: w.Results[w.ran%len(w.Results)], IsError: w.ran%5 == 4}
		w.ran++
		return r, nil
	}
	return []tool.Tool{
		&fakeTool{name: "look", class: tool.Read, parallel: true},
		&fakeTool{name: "edit", class: tool.Edit, run: func(ctx context.Context, _ tool.Call) (tool.Result, error) {
			_, err := w.a.Steer(ctx, message.Message{Content: w.Inputs[0]})
			return tool.Text("steered"), err
		}},
		&fakeTool{name: "boom", class: tool.Read, parallel: true, run: func(context.Context, tool.Call) (tool.Result, error) { panic("drawn") }},
		&fakeTool{name: "odd", class: tool.Read, parallel: true, run: odd},
		&fakeTool{name: "image", class: tool.Read, run: odd},
	}
}

// live runs one life on a session.
func (w *strictWorld) live(s *outcrop.Session) error {
	reg, err := tool.NewRegistry(tool.Options{}, w.tools()...)
	if err != nil {
		return err
	}
	w.a, err = agent.New(agent.Options{
		Live: &memoryLive{s: s}, Provider: streamFunc(w.stream), Config: llm.Config{Provider: "p", Model: "m1", MaxTokens: 100},
		System: "Be kind.", Tools: reg, Limits: agent.Limits{Steps: 4}, Policy: agent.AllowAll, Images: true, Objects: pictures,
		Retry: agent.RetryPolicy{Max: 1},
		Contexts: func(context.Context) []workspace.Context {
			return []workspace.Context{{Name: "runtime", Text: "Here."}}
		},
	})
	if err != nil {
		return err
	}
	ctx := context.Background()
	for i, action := range w.Actions {
		m := message.Message{Content: w.Inputs[i%len(w.Inputs)]}
		switch action {
		case 0, 1:
			_, err = w.a.Send(ctx, m)
		case 2:
			_, err = w.a.Steer(ctx, m)
		case 3:
			_, err = w.a.Cancel(ctx, agent.Cause{Kind: agent.ByUser}, agent.KeepInbox)
		case 4:
			_, err = w.a.Wake(ctx)
		case 5:
			synctest.Wait()
			continue
		}
		if err != nil && !errors.Is(err, outcrop.ErrRefused) {
			w.a.Close(ctx)
			return fmt.Errorf("action %d: %w", i, err)
		}
	}
	_, err = w.a.Send(ctx, said("And now?"))
	_, werr := w.a.Wait(ctx)
	return errors.Join(err, werr, w.a.Close(ctx), s.Err(), w.j.first)
}
