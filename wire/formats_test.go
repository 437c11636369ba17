package wire_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/genlog"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/wire"
	"github.com/outcrop-dev/outcrop/wire/formats"
)

// inFormat is a log as a plain file of a format from 1 to 4.
func inFormat(t interface {
	Helper()
	Fatal(...any)
}, h outcrop.Header, log outcrop.Log, format int) []byte {
	t.Helper()
	if format == 1 {
		e := wire.NewEncoder(wire.Plain)
		file := bytes.Replace(e.Header(nil, h), []byte(`"version":0`), []byte(`"version":1`), 1)
		file, err := e.Batch(file, log.Records(0))
		if err != nil {
			t.Fatal(err)
		}
		return file
	}
	var text []byte
	_, err := formats.Raise(h, log, min(format, 3), func(line []byte) error {
		if format == 4 {
			line = raise4(line)
		}
		text = append(append(text, line...), '\n')
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// raise4 is a line of format 3 as format 4 has it.
func raise4(line []byte) []byte {
	typ, _ := jsonwire.Text(jsonwire.Get(line, "type"))
	data := jsonwire.Get(line, "data")
	messages := func(l []byte) []byte {
		var out [][]byte
		for m := range jsonwire.Elements(l) {
			out = append(out, raiseMessage4(m))
		}
		return append(append([]byte{'['}, bytes.Join(out, []byte{','})...), ']')
	}
	switch typ {
	case "session":
		return bytes.Replace(line, []byte(`"version":3`), []byte(`"version":4`), 1)
	case "user/message":
		data = raiseMessage4(data)
	case "system/message", "assistant/message":
		data = put(data, "message", raiseMessage4(jsonwire.Get(data, "message")))
	case "tool/result":
		m := raiseMessage4(jsonwire.Get(data, "message"))
		var block []byte
		for b := range jsonwire.Elements(jsonwire.Get(m, "content")) {
			block = b
		}
		out := []byte{'{'}
		for k, v := range jsonwire.Members(m) {
			switch string(k) {
			case "role":
				out = jsonwire.AppendStringMember(out, "role", "tool")
				out = jsonwire.AppendRawMember(out, "toolCallId", jsonwire.Get(block, "toolCallId"))
				if e := jsonwire.Get(block, "isError"); e != nil {
					out = jsonwire.AppendRawMember(out, "isError", e)
				}
			case "content":
				out = jsonwire.AppendRawMember(out, "content", jsonwire.Get(block, "content"))
			default:
				out = jsonwire.AppendRawMember(out, string(k), v)
			}
		}
		data = put(data, "message", append(out, '}'))
	case "agent/inbox/spliced":
		data = put(data, "inserted", messages(jsonwire.Get(data, "inserted")))
	case "session/title-llm-request":
		data = put(data, "messages", messages(jsonwire.Get(data, "messages")))
	default:
		if t := outcrop.Type(typ); !t.Known() && string(jsonwire.Get(line, "ignorable")) == "true" {
			line = put(line, "type", jsonwire.AppendString(nil, "plugin:"+typ))
		}
	}
	return put(line, "data", data)
}

// put replaces a member that is there.
func put(obj []byte, name string, value []byte) []byte {
	out := []byte{'{'}
	for k, v := range jsonwire.Members(obj) {
		if string(k) == name {
			v = value
		}
		out = jsonwire.AppendRawMember(out, string(k), v)
	}
	return append(out, '}')
}

func raiseMessage4(m []byte) []byte {
	source := jsonwire.Get(m, "source")
	plugin, ok := jsonwire.Text(jsonwire.Get(source, "plugin"))
	if !ok || !jsonwire.TextIs(jsonwire.Get(source, "kind"), "plugin") {
		return m
	}
	kind := "plugin:" + plugin
	switch plugin {
	case "compact":
		kind = "compact-checkpoint"
	case "tools-ptc":
		kind = "ptc-mode"
	case "dsh-session-title-llm":
		kind = plugin
	case "@deepseek-ai/dsh-system-prompt":
		kind = "runtime-context"
		if jsonwire.TextIs(jsonwire.Get(m, "role"), "system") {
			kind = "system-prompt"
		}
	}
	out := []byte{'{'}
	for k, v := range jsonwire.Members(source) {
		switch string(k) {
		case "kind":
			out = jsonwire.AppendStringMember(out, "kind", kind)
		case "plugin":
		default:
			out = jsonwire.AppendRawMember(out, string(k), v)
		}
	}
	return put(m, "source", append(out, '}'))
}

// packed is a plain text as a zstd file of frames with a few lines each.
func packed(text []byte) []byte {
	lines := bytes.SplitAfter(text, []byte{'\n'})
	file := frameOf(string(lines[0]))
	for batch := range slices.Chunk(lines[1:], 5) {
		if b := bytes.Join(batch, nil); len(b) > 0 {
			file = append(file, frameOf(string(b))...)
		}
	}
	return file
}

// inspect reads a file to its end.
func inspect(t testing.TB, file []byte, enc wire.Encoding) (*outcrop.Session, *wire.Reader) {
	t.Helper()
	r, err := wire.NewReader(bytes.NewReader(file), int64(len(file)), enc)
	if err != nil {
		t.Fatal(err)
	}
	s, err := outcrop.Inspect(r.Header(), r.Records(), outcrop.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s, r
}

// told is what a session says to a model and to people: nodes and messages under
// their seqs, events and chunks in their order. Events that came between the
// chunks of a message stand before or behind them in a later format.
func told(s *outcrop.Session) string {
	var messages, events, chunks strings.Builder
	fmt.Fprintln(&messages, s.Len(), s.Surface().View().Nodes(), s.Surface().View().Generation())
	for _, m := range s.Messages() {
		fmt.Fprintln(&messages, m.Seq, m.Role, value(m.Raw))
	}
	for rec := range s.Log().Records(0) {
		for e := range rec.Events() {
			switch e.Type {
			case outcrop.TypeAssistantChunk:
				fmt.Fprintln(&chunks, e.Time, string(e.Data))
			case outcrop.TypeContextMessage:
				e.Type = outcrop.TypeUserMessage
				fallthrough
			case outcrop.TypeUserMessage, outcrop.TypeToolResult:
				fmt.Fprintln(&events, e.Seq, e.Type, e.Time, value(e.Data), e.Sources.Len())
			case outcrop.TypeAssistantMessage:
				fmt.Fprintln(&events, e.Seq, e.Type, e.Time, value(e.Data), string(e.Sources.JSON()) == "[]", e.Sources.Len())
				for c := range e.Sources.All() {
					fmt.Fprintln(&events, "  ", string(s.Log().At(c).Data))
				}
			default:
				fmt.Fprintln(&events, e.Type, e.Time, value(e.Data), string(e.Sources.JSON()), e.Ignorable)
			}
		}
	}
	return messages.String() + events.String() + chunks.String()
}

// value is JSON with its members sorted, and without what format 3 leaves out of
// a request header.
func value(raw []byte) string {
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		return string(raw)
	}
	if m, ok := v.(map[string]any); ok {
		if h, ok := m["header"].(map[string]any); ok {
			if l, ok := h["tools"].([]any); ok && len(l) == 0 {
				delete(h, "tools")
			}
			if h["system"] == "" {
				delete(h, "system") // no prompt
			}
		}
	}
	b, _ := json.Marshal(v)
	return string(b)
}

// exactly is the bytes of all messages.
func exactly(s *outcrop.Session) string {
	var b strings.Builder
	for _, m := range s.Messages() {
		fmt.Fprintln(&b, string(m.Raw))
	}
	return b.String()
}

// firstDifference is the first line in which two texts differ.
func firstDifference(a, b string) string {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range min(len(x), len(y)) {
		if x[i] != y[i] {
			return fmt.Sprintf("line %d:\n%.700s\n%.700s", i, x[i], y[i])
		}
	}
	return fmt.Sprintf("%d and %d lines", len(x), len(y))
}

// Every real log says the same after it went up to a later format and is read
// from there: all events, seqs, times and data, sources, surface and messages.
func TestRealLogsSayTheSameInEveryFormat(t *testing.T) {
	n := 0
	for _, rel := range corpus(t) {
		enc, _ := wire.EncodingOf(rel)
		got := readAll(corpusFile(t, rel), enc)
		if !got.OK || got.tail.Torn || testing.Short() && got.Events > 1000 {
			continue
		}
		n++
		before, r := inspect(t, corpusFile(t, rel), enc)
		said, raw := told(before), exactly(before)
		for format := 1; format <= formats.Newest; format++ {
			text := inFormat(t, r.Header(), before.Log(), format)
			for _, enc := range encodings {
				file := text
				if enc == wire.Zstd {
					if format != 3 { // frames hold the same lines in each
						continue
					}
					file = packed(text)
				}
				after, ar := inspect(t, file, enc)
				if ar.Format() != format || ar.Header().ID != r.Header().ID {
					t.Fatalf("%s in format %d: header %+v", rel, format, ar.Header())
				}
				if b := told(after); said != b {
					t.Errorf("%s in format %d, %s: %s", rel, format, enc, firstDifference(said, b))
				}
				if b := exactly(after); raw != b && format < 4 {
					t.Errorf("%s in format %d, %s: %s", rel, format, enc, firstDifference(raw, b))
				}
				if h, ah := r.Header(), ar.Header(); (h.SeedLength == nil) != (ah.SeedLength == nil) || h.SeedLength != nil && *h.SeedLength != *ah.SeedLength {
					t.Errorf("%s in format %d: seed %v and %v", rel, format, h.SeedLength, ah.SeedLength)
				}
			}
		}
	}
	if n < 30 {
		t.Errorf("only %d logs", n)
	}
}

func TestGeneratedLogsSayTheSameInEveryFormat(t *testing.T) {
	h := genlog.Header(7)
	s, err := outcrop.Inspect(h, func(yield func(outcrop.Record, error) bool) {
		for r := range genlog.Records(7, 3000) {
			if !yield(r, nil) {
				return
			}
		}
	}, outcrop.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for format := 1; format <= formats.Newest; format++ {
		after, _ := inspect(t, inFormat(t, h, s.Log(), format), wire.Plain)
		if a, b := told(s), told(after); a != b {
			t.Errorf("format %d: %s", format, firstDifference(a, b))
		}
	}
}
