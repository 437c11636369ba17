package tool_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/message"
	"github.com/outcrop-dev/outcrop/tool"
)

type greetArgs struct {
	Name  string `json:"name" jsonschema:"who is greeted"`
	Times int    `json:"times,omitempty"`
}

func greeter(t testing.TB, run func(ctx context.Context, a greetArgs) (tool.Result, error)) tool.Tool {
	t.Helper()
	tl, err := tool.Define(tool.Spec[greetArgs]{
		Name: "greet", Description: "Greets.", Class: tool.Read, Parallel: true,
		Run: func(ctx context.Context, _ tool.Call, a greetArgs) (tool.Result, error) { return run(ctx, a) },
	})
	if err != nil {
		t.Fatal(err)
	}
	return tl
}

func registry(t testing.TB, o tool.Options, tools ...tool.Tool) *tool.Registry {
	t.Helper()
	r, err := tool.NewRegistry(o, tools...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestAListThatMustBeGivenIsNeverNull(t *testing.T) {
	type part struct {
		Names []string `json:"names"`
	}
	type args struct {
		Parts []part   `json:"parts"`
		More  []string `json:"more,omitempty"`
	}
	tl, err := tool.Define(tool.Spec[args]{Name: "lists", Class: tool.Read,
		Run: func(_ context.Context, _ tool.Call, a args) (tool.Result, error) { return tool.Text("ran"), nil }})
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(string(tl.Schema()), `["null","array"]`); got != 1 {
		t.Errorf("%d lists may be null, only the optional one may: %s", got, tl.Schema())
	}
	r := registry(t, tool.Options{}, tl)
	for arguments, good := range map[string]bool{`{"parts":[{"names":[]}]}`: true, `{"parts":null}`: false, `{"parts":[{"names":null}]}`: false, `{"parts":[],"more":null}`: true} {
		if _, _, bad := r.Check("c", "lists", arguments); (bad == nil) != good {
			t.Errorf("%s: good is %v", arguments, bad == nil)
		}
	}
}

func hello(_ context.Context, a greetArgs) (tool.Result, error) {
	return tool.Text("hello " + a.Name), nil
}

func TestDefineMakesASchemaWithTheMembersInTheirOrder(t *testing.T) {
	got := string(greeter(t, hello).Schema())
	want := `{"type":"object","properties":{"name":{"type":"string","description":"who is greeted"},"times":{"type":"integer"}},"required":["name"],"additionalProperties":false}`
	var a, b any
	if json.Unmarshal([]byte(got), &a) != nil || json.Unmarshal([]byte(want), &b) != nil || !cmp.Equal(a, b) {
		t.Errorf("schema %s", got)
	}
	if strings.Index(got, `"name"`) > strings.Index(got, `"times"`) {
		t.Errorf("members are not in the order of the struct: %s", got)
	}
	if again := string(greeter(t, hello).Schema()); again != got {
		t.Errorf("schema changes from one time to the next:\n%s\n%s", got, again)
	}
}

func TestCheckNamesWhatIsWrongWithACall(t *testing.T) {
	r := registry(t, tool.Options{}, greeter(t, hello))
	for _, c := range []struct{ name, tool, args, code, text string }{
		{"good", "greet", `{"name":"Ada"}`, "", ""},
		{"spaces around", "greet", " {\"name\":\"Ada\"}\n", "", ""},
		{"unknown tool", "nope", `{}`, "UNKNOWN_TOOL", `unknown tool "nope"; the tools are greet`},
		{"unknown tool in another case", "Greet_", `{}`, "UNKNOWN_TOOL", `unknown tool "Greet_"; did you mean "greet"?`},
		{"unknown tool with more words", "greet_person", `{}`, "UNKNOWN_TOOL", `did you mean "greet"?`},
		{"unknown tool with a slip", "gret", `{}`, "UNKNOWN_TOOL", `did you mean "greet"?`},
		{"no tool", "", `{}`, "UNKNOWN_TOOL", `unknown tool ""; the tools are greet`},
		{"empty is an empty object", "greet", "", "INVALID_ARGS", "name"},
		{"blank is an empty object", "greet", " \n", "INVALID_ARGS", "name"},
		{"cut off in a string", "greet", `{"name":"A`, "INVALID_ARGS", "invalid arguments: the arguments were cut off, nothing was run (not JSON at byte "},
		{"cut off in a name", "greet", `{"na`, "INVALID_ARGS", "arguments were cut off, nothing was run"},
		{"cut off behind a name", "greet", `{"name"`, "INVALID_ARGS", "arguments were cut off, nothing was run"},
		{"cut off behind a colon", "greet", `{"name": `, "INVALID_ARGS", "arguments were cut off, nothing was run"},
		{"cut off at the start", "greet", `{`, "INVALID_ARGS", "arguments were cut off, nothing was run"},
		{"cut off in a word", "greet", `{"name":tr`, "INVALID_ARGS", "arguments were cut off, nothing was run"},
		{"cut off in a number", "greet", `{"times":1.`, "INVALID_ARGS", "arguments were cut off, nothing was run"},
		{"cut off in an escape", "greet", `{"name":"\`, "INVALID_ARGS", "arguments were cut off, nothing was run"},
		{"cut off in a long escape", "greet", `{"name":"\u00`, "INVALID_ARGS", "arguments were cut off, nothing was run"},
		{"cut off behind a comma", "greet", `{"name":"A",`, "INVALID_ARGS", "arguments were cut off, nothing was run"},
		{"not JSON", "greet", `{name: "A"}`, "INVALID_ARGS", "not JSON at byte 1"},
		{"a bad escape", "greet", `{"name":"\u00zz"}`, "INVALID_ARGS", "; nothing was run"},
		{"not an object", "greet", `["Ada"]`, "INVALID_ARGS", "object"},
		{"a member is missing", "greet", `{"times":2}`, "INVALID_ARGS", "name"},
		{"a member is unknown", "greet", `{"name":"Ada","loud":true}`, "INVALID_ARGS", "loud"},
		{"a member has another type", "greet", `{"name":7}`, "INVALID_ARGS", "name"},
		{"a member twice", "greet", `{"name":"Ada","name":"Bob"}`, "INVALID_ARGS", "name"},
		{"no UTF-8", "greet", "{\"name\":\"\xff\"}", "INVALID_ARGS", "UTF-8"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, _, err := r.Check("c1", c.tool, c.args)
			switch {
			case c.code == "" && err != nil:
				t.Errorf("refused: %v", err)
			case c.code != "" && err == nil:
				t.Error("not refused")
			case err != nil && (err.Code != c.code || !strings.Contains(err.Msg, c.text)):
				t.Errorf("%s: %s; want %s and %q", err.Code, err.Msg, c.code, c.text)
			}
		})
	}
}

func TestRegistryRefusesToolsThatNoProviderTakes(t *testing.T) {
	if _, err := tool.NewRegistry(tool.Options{}, greeter(t, hello), greeter(t, hello)); err == nil {
		t.Error("two tools of one name were accepted")
	}
	bad, err := tool.Define(tool.Spec[greetArgs]{Name: "no spaces", Class: tool.Read})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tool.NewRegistry(tool.Options{}, bad); err == nil {
		t.Error("a name with a space was accepted")
	}
}

func TestRunContainsWhateverAToolDoes(t *testing.T) {
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	for _, c := range []struct {
		name string
		ctx  context.Context
		run  func(context.Context, greetArgs) (tool.Result, error)
		code string
		text string
	}{
		{"success", nil, hello, "", "hello Ada"},
		{"panic", nil, func(context.Context, greetArgs) (tool.Result, error) { panic("oh no") }, "TOOL_PANIC", `Error: tool "greet" panicked: oh no`},
		{"plain error", nil, func(context.Context, greetArgs) (tool.Result, error) {
			return tool.Result{}, errors.New("no luck")
		}, "", "Error: no luck"},
		{"coded error", nil, func(context.Context, greetArgs) (tool.Result, error) {
			return tool.Result{}, tool.InvalidArgs("name is rude")
		}, "INVALID_ARGS", "Error: invalid arguments: name is rude"},
		{"cancelled", cancelled, func(ctx context.Context, _ greetArgs) (tool.Result, error) {
			return tool.Result{}, ctx.Err()
		}, "ABORTED", "Error: tool call aborted"},
		{"nothing", nil, func(context.Context, greetArgs) (tool.Result, error) { return tool.Result{}, nil }, "", "(no output)"},
		{"no UTF-8", nil, func(context.Context, greetArgs) (tool.Result, error) { return tool.Text("a\xffb"), nil }, "", "a\uFFFDb"},
		{"a block that is no JSON", nil, func(context.Context, greetArgs) (tool.Result, error) {
			return tool.Result{Content: []message.Block{{Type: "x", Raw: json.RawMessage(`{`)}}}, nil
		}, "", `[a block of type "x" that cannot be written was dropped]`},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := registry(t, tool.Options{}, greeter(t, c.run))
			ctx := c.ctx
			if ctx == nil {
				ctx = context.Background()
			}
			tl, call, bad := r.Check("c1", "greet", `{"name":"Ada"}`)
			if bad != nil {
				t.Fatal(bad)
			}
			out := r.Run(ctx, tl, call)
			if got := message.PlainText(out.Content); got != c.text {
				t.Errorf("text %q, want %q", got, c.text)
			}
			code := ""
			if out.Err != nil {
				code = out.Err.Code
			}
			if code != c.code || out.IsError != strings.HasPrefix(c.text, "Error: ") {
				t.Errorf("code %q isError %v", code, out.IsError)
			}
		})
	}
}

// Whatever blocks and meta a tool gives, its result can be written.
func TestAnyOutcomeCanBeWrittenAsAnEvent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		raw := rapid.SampledFrom([]string{`{}`, `{"type":"x"}`, `{`, ``, ` {}`, "{\n}", `{"a":1,"a":2}`, `{"n":1e999}`, `{"s":"\ud800"}`,
			strings.Repeat("[", 990) + strings.Repeat("]", 990)})
		text := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "\xff", "\x00", strings.Repeat("é", 60_000)}))
		res := tool.Result{Content: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) message.Block {
			if rapid.Bool().Draw(t, "text") {
				return message.Text(text.Draw(t, "text"))
			}
			return message.Block{Type: "x", Raw: json.RawMessage(raw.Draw(t, "raw"))}
		}), 0, 4).Draw(t, "content")}
		if rapid.Bool().Draw(t, "has meta") {
			res.Meta = json.RawMessage(raw.Draw(t, "meta"))
		}
		tl, err := tool.Define(tool.Spec[greetArgs]{Name: "greet", Class: tool.Read,
			Run: func(context.Context, tool.Call, greetArgs) (tool.Result, error) { return res, nil }})
		if err != nil {
			t.Fatal(err)
		}
		r, err := tool.NewRegistry(tool.Options{}, tl)
		if err != nil {
			t.Fatal(err)
		}
		out := r.Run(context.Background(), tl, tool.Call{ID: "c1", Name: "greet", Arguments: json.RawMessage(`{"name":"Ada"}`)})
		s, err := outcrop.New(outcrop.NewHeader("s", 1, "/w"), outcrop.Options{})
		if err != nil {
			t.Fatal(err)
		}
		p := outcrop.NewToolResult(1, 1, "c1", out.IsError, out.Content...)
		p.Meta = out.Meta
		if _, err := s.AppendSurface(p, outcrop.Tail, outcrop.NoSources); err != nil {
			t.Fatalf("refused: %v", err)
		}
	})
}

func TestLongOutputIsCutAndTheWholeIsSaved(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "spill")
	whole := strings.Repeat("é", 4000) + "THE MIDDLE" + strings.Repeat("ü", 4000)
	r := registry(t, tool.Options{Inline: 1001, Spill: tool.DirSpill{Dir: dir}},
		greeter(t, func(context.Context, greetArgs) (tool.Result, error) { return tool.Text(whole), nil }))
	for i := range 2 { // the same call id twice must not overwrite
		tl, call, _ := r.Check("a/b", "greet", `{"name":"Ada"}`)
		text := message.PlainText(r.Run(context.Background(), tl, call).Content)
		if !utf8.ValidString(text) || strings.Contains(text, "MIDDLE") || len(text) > 1001+300 {
			t.Errorf("%d bytes inline: %.80q", len(text), text)
		}
		_, rest, ok := strings.Cut(text, "the whole output is in ")
		path, _, ok2 := strings.Cut(rest, " ...]")
		if !ok || !ok2 {
			t.Fatalf("the text does not name the file: %q", text)
		}
		b, err := os.ReadFile(path)
		if err != nil || string(b) != whole {
			t.Errorf("run %d: %s holds %d bytes, %v", i, path, len(b), err)
		}
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("mode %v, %v", info.Mode(), err)
		}
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 2 {
		t.Errorf("%d files, %v", len(files), err)
	}
}

func TestLongOutputWithoutASpillSaysThatItIsGone(t *testing.T) {
	r := registry(t, tool.Options{Inline: 100}, greeter(t, func(context.Context, greetArgs) (tool.Result, error) {
		return tool.Result{Content: []message.Block{message.Text(strings.Repeat("a", 300)), message.Text(strings.Repeat("b", 300))}}, nil
	}))
	tl, call, _ := r.Check("c", "greet", `{"name":"Ada"}`)
	text := message.PlainText(r.Run(context.Background(), tl, call).Content)
	want := strings.Repeat("a", 50) + "\n\n[... 501 of 601 bytes cut; the part between is not kept ...]\n\n" + strings.Repeat("b", 50)
	if text != want {
		t.Errorf("got %q", text)
	}
}

// A result is one line of the log, which has a limit: a tool must not be able to
// give one that is refused.
func TestBlocksThatAreNoTextHaveALimitToo(t *testing.T) {
	image := message.Block{Type: "image", Raw: json.RawMessage(`{"type":"image","data":"` + strings.Repeat("A", 20<<20) + `"}`)}
	r := registry(t, tool.Options{}, greeter(t, func(context.Context, greetArgs) (tool.Result, error) {
		return tool.Result{Content: []message.Block{image, image, message.Text("text")}}, nil
	}))
	tl, call, bad := r.Check("c1", "greet", `{"name":"Ada"}`)
	if bad != nil {
		t.Fatal(bad)
	}
	out := r.Run(context.Background(), tl, call)
	if len(out.Content) != 3 || out.Content[0].Type != "image" || out.Content[1].Type != message.TextBlock ||
		!strings.Contains(out.Content[1].Text, `a block of type "image" with 20971`) || out.Content[2].Text != "text" {
		t.Errorf("%d blocks: %.200q", len(out.Content), out.Content[1].Text)
	}
}
