package tool

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/message"
)

// Options of a registry. The zero value is right: the default limit, nothing
// spilled, silent.
type Options struct {
	// Inline is the most bytes of text that a result keeps; 0 means
	// DefaultInline.
	Inline int
	// Spill keeps what Inline cuts off. Nil: the cut text is gone and the
	// result says so.
	Spill Spill
	// Logger hears of panics, with their stacks.
	Logger *slog.Logger
}

// Registry holds the tools of one agent, sorted by name. It does not change
// once it is made.
type Registry struct {
	tools  []entry
	limit  limiter
	logger *slog.Logger
}

type entry struct {
	Tool
	schema *jsonschema.Resolved
}

var validName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// NewRegistry checks the tools and sorts them. Names must be unique and fit
// what every provider takes; a schema must be an object at its root.
func NewRegistry(o Options, tools ...Tool) (*Registry, error) {
	r := &Registry{limit: newLimiter(o), logger: o.Logger}
	if r.logger == nil {
		r.logger = slog.New(slog.DiscardHandler)
	}
	for _, t := range tools {
		if !validName.MatchString(t.Name()) {
			return nil, fmt.Errorf("tool %q: a name has 1 to 64 letters, digits, _ or -", t.Name())
		}
		var s jsonschema.Schema
		if err := s.UnmarshalJSON(t.Schema()); err != nil {
			return nil, fmt.Errorf("tool %s: schema: %w", t.Name(), err)
		}
		if s.Type != "object" {
			return nil, fmt.Errorf("tool %s: schema: the root must be of type object", t.Name())
		}
		resolved, err := s.Resolve(nil)
		if err != nil {
			return nil, fmt.Errorf("tool %s: schema: %w", t.Name(), err)
		}
		r.tools = append(r.tools, entry{t, resolved})
	}
	slices.SortFunc(r.tools, func(a, b entry) int { return cmp.Compare(a.Name(), b.Name()) })
	for i := 1; i < len(r.tools); i++ {
		if r.tools[i].Name() == r.tools[i-1].Name() {
			return nil, fmt.Errorf("tool %s: registered twice", r.tools[i].Name())
		}
	}
	return r, nil
}

// All yields the tools in the order of their names.
func (r *Registry) All() iter.Seq[Tool] {
	return func(yield func(Tool) bool) {
		if r == nil {
			return
		}
		for _, e := range r.tools {
			if !yield(e.Tool) {
				return
			}
		}
	}
}

// Get finds a tool by name; nil when there is none.
func (r *Registry) Get(name string) Tool {
	if e := r.find(name); e != nil {
		return e.Tool
	}
	return nil
}

func (r *Registry) find(name string) *entry {
	if r == nil {
		return nil
	}
	i, ok := slices.BinarySearchFunc(r.tools, name, func(e entry, name string) int { return cmp.Compare(e.Name(), name) })
	if !ok {
		return nil
	}
	return &r.tools[i]
}

// Offered is the list as a request header records it.
func (r *Registry) Offered() []llm.Tool {
	var out []llm.Tool
	for t := range r.All() {
		out = append(out, llm.Tool{Name: t.Name(), Description: t.Description(), Parameters: t.Schema()})
	}
	return out
}

// Check finds the tool of a call and checks the arguments as the model wrote
// them. An empty text stands for an empty object. The error is an UNKNOWN_TOOL
// one that names the nearest tool, or an INVALID_ARGS one that names the
// violation.
func (r *Registry) Check(id, name, arguments string) (Tool, Call, *Error) {
	call := Call{ID: id, Name: name}
	e := r.find(name)
	if e == nil {
		return nil, call, r.unknown(name)
	}
	if strings.TrimSpace(arguments) == "" {
		arguments = "{}"
	}
	raw := []byte(arguments)
	if err := jsonwire.Valid(raw); err != nil {
		if cutOff(raw, err) {
			return nil, call, InvalidArgs("the arguments were cut off, nothing was run (" + err.Error() + ")")
		}
		return nil, call, InvalidArgs(err.Error() + "; nothing was run")
	}
	if jsonwire.Kind(raw) != '{' {
		return nil, call, InvalidArgs("a JSON object is needed; nothing was run")
	}
	if err := jsonwire.Strict(raw); err != nil {
		return nil, call, InvalidArgs(err.Error() + "; nothing was run")
	}
	var v any
	if err := jsonwire.Unmarshal(raw, &v); err != nil {
		return nil, call, InvalidArgs(err.Error() + "; nothing was run")
	}
	if err := e.schema.Validate(v); err != nil {
		return nil, call, InvalidArgs(violation(err) + "; nothing was run")
	}
	call.Arguments = raw
	return e.Tool, call, nil
}

// cutOff reports whether a text that is no JSON is only the beginning of one.
func cutOff(raw []byte, err error) bool {
	var se *jsonwire.SyntaxError
	if !errors.As(err, &se) {
		return false
	}
	rest := bytes.TrimSpace(raw[min(max(se.Offset, 0), len(raw)):])
	if len(rest) == 0 || strings.HasPrefix(se.Msg, "text ends") {
		return true
	}
	if rest[0] == '\\' {
		return len(rest) < len(`\u0000`) && bytes.IndexByte(rest, '"') < 0
	}
	for _, word := range []string{"true", "false", "null"} {
		if strings.HasPrefix(word, string(rest)) {
			return true
		}
	}
	return false
}

// violation drops the prefixes that the validator puts before the place.
func violation(err error) string {
	return strings.TrimPrefix(err.Error(), "validating root: ")
}

const (
	// maxMeta bounds the meta of a result, in bytes.
	maxMeta = 1 << 20
	// maxOther bounds the blocks of a result that are no text, in bytes.
	maxOther = 32 << 20
)

// finish makes an outcome fit for a log: text that is UTF-8, JSON that can be
// written, never no content, nothing over the limit. What comes out of here is
// never refused as an event, so a tool cannot fail its session.
func (r *Registry) finish(ctx context.Context, call Call, out Outcome) Outcome {
	var blocks []message.Block
	other := 0 // bytes of blocks that the limit for text does not touch
	for _, b := range out.Content {
		switch {
		case b.Type == message.TextBlock && b.Raw == nil:
			if b.Text == "" {
				continue
			}
			if !utf8.ValidString(b.Text) {
				b.Text = strings.ToValidUTF8(b.Text, "\uFFFD")
			}
		case !writable(b.AppendJSON(nil)):
			r.logger.Warn("tool gave a block that cannot be written; it is dropped", "tool", call.Name, "call", call.ID, "type", string(b.Type))
			b = message.Text(fmt.Sprintf("[a block of type %q that cannot be written was dropped]", b.Type))
		default:
			n := len(b.AppendJSON(nil))
			if other += n; other > maxOther {
				other -= n
				r.logger.Warn("tool gave more than a result can hold; a block is dropped", "tool", call.Name, "call", call.ID, "type", string(b.Type), "bytes", n)
				b = message.Text(fmt.Sprintf("[a block of type %q with %d bytes was dropped: a result holds %d bytes of such blocks]", b.Type, n, maxOther))
			}
		}
		blocks = append(blocks, b)
	}
	if len(blocks) == 0 || message.PlainText(blocks) == "" && allText(blocks) {
		blocks = []message.Block{message.Text("(no output)")}
	}
	out.Content = r.limit.apply(ctx, call, blocks, r.logger)
	if out.Meta != nil && (len(out.Meta) > maxMeta || !writable(out.Meta)) {
		r.logger.Warn("tool gave meta that cannot be written; it is dropped", "tool", call.Name, "call", call.ID)
		out.Meta = nil
	}
	return out
}

// writable reports whether JSON text can stand inside an event: as strict as
// the log, with room for what the event puts around it.
func writable(raw []byte) bool {
	const around = 16
	nested := append([]byte(strings.Repeat("[", around)), raw...)
	nested = append(nested, strings.Repeat("]", around)...)
	return len(raw) > 0 && jsonwire.Strict(nested) == nil && !bytes.ContainsAny(raw, "\r\n") && bytes.Equal(bytes.TrimSpace(raw), raw)
}

func allText(blocks []message.Block) bool {
	return !slices.ContainsFunc(blocks, func(b message.Block) bool { return b.Type != message.TextBlock })
}

// Preview asks a tool what a call would do; without a Previewer it is the
// call's arguments. It contains panics.
func (r *Registry) Preview(ctx context.Context, t Tool, call Call) (pre Preview, err error) {
	p, ok := t.(Previewer)
	if !ok {
		return Preview{Title: call.Name, Body: string(call.Arguments)}, nil
	}
	defer func() {
		if v := recover(); v != nil {
			r.logger.Error("tool preview panicked", "tool", call.Name, "call", call.ID, "panic", v, "stack", string(debug.Stack()))
			err = fmt.Errorf("the preview of %s panicked: %v", call.Name, v)
		}
	}()
	return p.Preview(ctx, call)
}
