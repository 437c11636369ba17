package llm

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestHeaderJSONHasTheKeyOrderOfTheLog(t *testing.T) {
	warm := 0.5
	tests := []struct {
		name   string
		cfg    Config
		system string
		tools  []Tool
		want   string
	}{
		{"only a route", Config{Provider: "p1", Model: "m1"}, "", nil, `{"config":{"provider":"p1","model":"m1"}}`},
		{"everything",
			Config{Provider: "p1", Model: "m1", ReasoningEffort: "high", Temperature: &warm, MaxTokens: 4096, Stop: []string{"a", "<b>"},
				Defaults: Defaults{ReasoningEffort: true, MaxTokens: true}},
			"You are \"x\".\n",
			[]Tool{{Name: "read", Description: "Reads.", Parameters: []byte(`{ "type": "object" }`)}},
			`{"config":{"provider":"p1","model":"m1","reasoningEffort":"high","temperature":0.5,"maxTokens":4096,"stop":["a","<b>"]},` +
				`"adapterDefaults":{"reasoningEffort":true,"maxTokens":true},"system":"You are \"x\".\n",` +
				`"tools":[{"name":"read","description":"Reads.","parameters":{"type":"object"}}]}`},
		{"a default mark without its value is absent", Config{Provider: "p", Model: "m", Defaults: Defaults{ReasoningEffort: true, MaxTokens: true}}, "", nil,
			`{"config":{"provider":"p","model":"m"}}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := string(HeaderJSON(tt.cfg, tt.system, tt.tools)); got != tt.want {
				t.Errorf("header\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
}

func TestParseHeaderGivesBackWhatWasLogged(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringN(0, 12, -1)
		cfg := Config{
			Provider:        "p" + text.Draw(t, "provider"),
			Model:           "m" + text.Draw(t, "model"),
			ReasoningEffort: text.Draw(t, "effort"),
			MaxTokens:       rapid.Int64Range(0, 1<<50).Draw(t, "maxTokens"),
			Stop:            rapid.SliceOfN(text, 0, 3).Draw(t, "stop"),
		}
		if rapid.Bool().Draw(t, "warm") {
			f := rapid.Float64Range(0, 2).Draw(t, "temperature")
			cfg.Temperature = &f
		}
		cfg.Defaults.MaxTokens = cfg.MaxTokens > 0 && rapid.Bool().Draw(t, "default")
		if len(cfg.Stop) == 0 {
			cfg.Stop = nil
		}
		system := text.Draw(t, "system")
		var tools []Tool
		for range rapid.IntRange(0, 2).Draw(t, "tools") {
			tools = append(tools, Tool{Name: text.Draw(t, "name"), Description: text.Draw(t, "description"), Parameters: []byte(`{"type":"object"}`)})
		}
		raw := HeaderJSON(cfg, system, tools)
		cfg2, system2, tools2, err := ParseHeader(raw)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff([]any{cfg, system, tools}, []any{cfg2, system2, tools2}); d != "" {
			t.Fatal(d)
		}
	})
}

func TestParseHeaderRefuses(t *testing.T) {
	for name, raw := range map[string]string{
		"text that is not JSON":          `{"config":`,
		"another kind of value":          `[]`,
		"a config without a provider":    `{"config":{"model":"m"}}`,
		"a config with an empty model":   `{"config":{"provider":"p","model":""}}`,
		"a model of another kind":        `{"config":{"provider":"p","model":1}}`,
		"a config that is not an object": `{"config":"p:m"}`,
	} {
		t.Run(name, func(t *testing.T) {
			if _, _, _, err := ParseHeader([]byte(raw)); err == nil || !strings.HasPrefix(err.Error(), "request header: ") {
				t.Errorf("ParseHeader(%s) returned %v", raw, err)
			}
		})
	}
}

func FuzzParseHeader(f *testing.F) {
	f.Add([]byte(`{"config":{"provider":"p","model":"m","temperature":1e400,"stop":[1]},"tools":[{"name":"a","parameters":{}}]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		cfg, system, tools, err := ParseHeader(raw)
		if err != nil {
			return
		}
		once := HeaderJSON(cfg, system, tools)
		cfg, system, tools, err = ParseHeader(once)
		if err != nil {
			t.Fatalf("%v in %s", err, once)
		}
		if twice := HeaderJSON(cfg, system, tools); string(twice) != string(once) {
			t.Fatalf("%s\nbecame\n%s", once, twice)
		}
	})
}
