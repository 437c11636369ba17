// Package drawn draws sessions for the property tests of encoders: as odd as a
// log can hold them, and in the order in which a loop writes them.
package drawn

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash/crc32"
	"strings"

	"pgregory.net/rapid"

	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/message"
)

// Objects are attachments in memory, by id.
type Objects map[string][]byte

// Get implements llm.Objects.
func (o Objects) Get(ctx context.Context, id string) ([]byte, error) {
	if b, ok := o[id]; ok {
		return b, ctx.Err()
	}
	return nil, errors.New("no such object")
}

// Add adds an object and returns the block that refers to it.
func (o Objects) Add(data []byte) message.Block {
	sum := sha256.Sum256(data)
	id := "sha256:" + hex.EncodeToString(sum[:])
	o[id] = data
	return Image(id)
}

// Image is a block that refers to an object.
func Image(id string) message.Block {
	return message.Block{Type: message.ImageBlock, Attachment: []byte(`{"attachmentId":"` + id + `"}`)}
}

// PNG is the beginning of an image of this size: all that is looked at, and the
// same bytes whoever compresses the rest.
func PNG(width, height int) []byte {
	header := binary.BigEndian.AppendUint32([]byte("IHDR"), uint32(width))
	header = binary.BigEndian.AppendUint32(header, uint32(height))
	header = append(header, 1, 0, 0, 0, 0) // one bit of grey
	b := []byte("\x89PNG\r\n\x1a\n\x00\x00\x00\x0d" + string(header))
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(header))
}

// Log is a session that grows.
type Log struct {
	Nodes   []llm.Node
	Objects Objects

	images []message.Block
	source message.Source
	state  func(content []message.Block) []byte
}

// NewLog begins a session. Replies come from the source; state gives their
// replay state, and may be nil.
func NewLog(source message.Source, state func(content []message.Block) []byte) *Log {
	l := &Log{Objects: Objects{}, source: source, state: state}
	l.images = []message.Block{
		l.Objects.Add(PNG(3, 2)), l.Objects.Add(PNG(2500, 1)), l.Objects.Add(PNG(8001, 1)), l.Objects.Add([]byte("no image")),
		Image("sha256:" + strings.Repeat("ab", 32)), {Type: message.ImageBlock}, {Type: message.ImageBlock, Attachment: []byte("{")},
	}
	return l
}

func (l *Log) add(m message.Message) {
	seq := int64(1)
	if n := len(l.Nodes); n > 0 {
		seq = l.Nodes[n-1].Seq + 2
	}
	l.Nodes = append(l.Nodes, llm.Node{Seq: seq, Message: m})
}

func (l *Log) reply(content []message.Block) {
	m := message.Message{Role: message.Assistant, Content: content, Source: l.source}
	if l.state != nil {
		m.Source.ReplayState = l.state(content)
	}
	l.add(m)
}

var (
	texts     = rapid.SampledFrom([]string{"", " ", "\n", "a", "a ", "long text of a few words", "\x00", "\xff", "\xed\xa0\xbd", "\xed\xa0\xbd\xed\xb8\x80", "日本", "\u00a0", "\"\\<&>\u2028"})
	ids       = rapid.SampledFrom([]string{"", "c", "c", "d", strings.Repeat("x", 40), strings.Repeat("x", 41), strings.Repeat("z", 64), "a|b", "c_a6685f3b62d57bfc4935"})
	names     = rapid.SampledFrom([]string{"read", "", "a b", strings.Repeat("n", 65)})
	arguments = rapid.SampledFrom([]string{"{}", "", "{", "[]", ` {"a": [1, 2]}`, `{"a":1,"a":1}`, `{"a":"\ud83d"}`, `{"a":"\udc00\u0000"}`, "null"})
)

func (l *Log) block(t *rapid.T, depth int) message.Block {
	switch rapid.IntRange(0, 6).Draw(t, "block") {
	case 0, 1:
		return message.Text(texts.Draw(t, "text"))
	case 2:
		return message.Reasoning(texts.Draw(t, "reasoning"))
	case 3, 4:
		return message.ToolCall(ids.Draw(t, "id"), names.Draw(t, "name"), arguments.Draw(t, "arguments"))
	case 5:
		var in []message.Block
		for range rapid.IntRange(0, 2-depth).Draw(t, "inner") {
			in = append(in, l.block(t, depth+1))
		}
		return message.ToolResult(ids.Draw(t, "call"), rapid.Bool().Draw(t, "isError"), in...)
	}
	return rapid.SampledFrom(l.images).Draw(t, "image")
}

// Odd adds messages of any kind in any order.
func (l *Log) Odd(t *rapid.T) {
	for range rapid.IntRange(0, 5).Draw(t, "messages") {
		var content []message.Block
		for range rapid.IntRange(0, 3).Draw(t, "blocks") {
			content = append(content, l.block(t, 0))
		}
		if rapid.Bool().Draw(t, "assistant") {
			l.reply(content)
		} else {
			l.add(message.Message{Role: message.User, Content: content, Source: message.FromUser})
		}
	}
}

// Edit replaces a range of nodes by one, as an edit of the surface does.
func (l *Log) Edit(t *rapid.T) {
	i := rapid.IntRange(0, len(l.Nodes)).Draw(t, "start")
	j := rapid.IntRange(i, len(l.Nodes)).Draw(t, "end")
	tail := l.Nodes[j:]
	seq := int64(1_000_000 + len(l.Nodes))
	l.Nodes = append([]llm.Node(nil), l.Nodes[:i]...)
	l.Nodes = append(l.Nodes, llm.Node{Seq: seq, Message: message.Message{Role: message.User, Content: []message.Block{message.Text("summary")}}})
	l.Nodes = append(l.Nodes, tail...)
}

// Step adds what a loop adds from one request to the next: a reply with all
// results, or a reply and a prompt; then perhaps a message that steers.
func (l *Log) Step(t *rapid.T) {
	if len(l.Nodes) == 0 {
		l.prompt(t)
		return
	}
	content := []message.Block{message.Reasoning("hm"), message.Text(texts.Draw(t, "text"))}
	if rapid.Bool().Draw(t, "thoughtless") {
		content = content[1:]
	}
	var results []message.Message
	for range rapid.IntRange(0, 3).Draw(t, "calls") {
		id := ids.Draw(t, "id")
		content = append(content, message.ToolCall(id, names.Draw(t, "name"), arguments.Draw(t, "arguments")))
		out := []message.Block{message.Text(texts.Draw(t, "result"))}
		if rapid.Bool().Draw(t, "with image") {
			out = append(out, rapid.SampledFrom(l.images).Draw(t, "image"))
		}
		results = append(results, message.Message{Role: message.User, Content: []message.Block{message.ToolResult(id, false, out...)}, Source: message.FromTool(id)})
	}
	l.reply(content)
	for _, r := range results {
		l.add(r)
	}
	if len(results) == 0 || rapid.Bool().Draw(t, "steered") {
		l.prompt(t)
	}
}

func (l *Log) prompt(t *rapid.T) {
	content := []message.Block{message.Text("go on"), message.Text(texts.Draw(t, "prompt"))}
	if rapid.Bool().Draw(t, "with image") {
		content = append(content, rapid.SampledFrom(l.images).Draw(t, "image"))
	}
	l.add(message.Message{Role: message.User, Content: content, Source: message.FromUser})
}
