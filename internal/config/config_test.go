package config_test

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/outcrop-dev/outcrop/internal/config"
	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/llm/anthropic"
	"github.com/outcrop-dev/outcrop/llm/openai"
	"github.com/outcrop-dev/outcrop/message"
	"github.com/outcrop-dev/outcrop/tool/mcp"
)

// place is a home and a workspace with files in them.
type place struct {
	home, workspace string
	env             map[string]string
}

func newPlace(t *testing.T, user, workspace string) *place {
	t.Helper()
	p := &place{home: t.TempDir(), workspace: t.TempDir(), env: map[string]string{}}
	write := func(path, text string) {
		if text == "" {
			return
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(p.home, ".config", "outcrop", "config.toml"), user)
	write(filepath.Join(p.workspace, ".outcrop", "config.toml"), workspace)
	return p
}

func (p *place) load() (*config.Config, error) {
	return config.Load(config.Env{Getenv: func(n string) string { return p.env[n] }, Home: p.home, Workspace: p.workspace})
}

func (p *place) mustLoad(t *testing.T) *config.Config {
	t.Helper()
	c, err := p.load()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

const full = `model = "deepseek:deepseek-chat"
approve = "edits"
[providers.deepseek]
kind = "openai"
base_url = "https://models.example/v1"
key_env = "MY_KEY"
quirks = { reasoning = "reasoning", max_tokens = "max_completion_tokens", alternate_roles = true, system_role = "developer", stream_usage = false }
[providers.deepseek.models."deepseek-chat"]
window = 128000
max_output = 8000
images = true
price = { input = 270000, cache_read = 70000, cache_write = 1, output = 1100000 }
[compaction]
auto = false
ratio = 0.7
keep = 0.2
policy = "dsh"
model = "openai:small"
[limits]
steps = 7
cost_usd = 1.5
[context]
[mcp.files]
command = ["mcp-files", "."]
trust = true
[mcp.web]
url = "https://mcp.example"
key_env = "WEB_KEY"
key_header = "X-Api-Key"
[mcp."my.server"]
url = "http://127.0.0.1:3000/mcp"
key_command = ["pass", "show", "mcp"]
`

func TestEveryMemberOfAFileIsTaken(t *testing.T) {
	c := newPlace(t, full, "").mustLoad(t)
	if c.Model != "deepseek:deepseek-chat" || c.Approve != "edits" {
		t.Errorf("model %q, approve %q", c.Model, c.Approve)
	}
	if d := cmp.Diff(config.Compaction{Ratio: 0.7, Keep: 0.2, Policy: "dsh", Model: "openai:small"}, c.Compaction); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(config.Limits{Steps: 7, CostUSD: 1.5}, c.Limits); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(map[string]*config.MCP{
		"files": {Command: []string{"mcp-files", "."}, Trust: true}, "web": {URL: "https://mcp.example", Key: config.Key{KeyEnv: "WEB_KEY"}, KeyHeader: "X-Api-Key"},
		"my.server": {URL: "http://127.0.0.1:3000/mcp", Key: config.Key{KeyCommand: []string{"pass", "show", "mcp"}}, KeyHeader: "Authorization"},
	}, c.MCP); d != "" {
		t.Error(d)
	}
	m, err := c.Choose("", nil)
	if err != nil {
		t.Fatal(err)
	}
	if m.Name != "deepseek-chat" || m.Window != 128000 || m.MaxOutput != 8000 || !m.Images || m.Origin != "~/.config/outcrop/config.toml:1" {
		t.Errorf("model %+v", m)
	}
	if d := cmp.Diff(&llm.Price{Input: 270000, CacheRead: 70000, CacheWrite: 1, Output: 1100000}, m.Price); d != "" {
		t.Error(d)
	}
	q := m.Provider.Quirks
	if q.Reasoning != "reasoning" || q.MaxTokens != "max_completion_tokens" || !q.AlternateRoles || q.SystemRole != "developer" || !q.NoStreamUsage {
		t.Errorf("quirks %+v", q)
	}
	if m.Provider.BaseURL != "https://models.example/v1" || m.Provider.KeyEnv != "MY_KEY" {
		t.Errorf("provider %+v", m.Provider)
	}
}

func TestEveryValueHasItsOrigin(t *testing.T) {
	p := newPlace(t, full, "[limits]\nsteps = 3\n[compaction]\nratio = 0.5\n")
	p.env["OUTCROP_MODEL"] = "ollama:qwen"
	p.env["OPENAI_BASE_URL"] = "http://127.0.0.1:1/v1"
	c := p.mustLoad(t)
	at := map[string]config.Origin{}
	for _, v := range c.Values() {
		if v.Origin == "" {
			t.Errorf("%s has no origin", v.Name)
		}
		at[v.Name] = v.Origin
	}
	file := config.Origin("~/.config/outcrop/config.toml")
	ws := config.Origin(filepath.Join(p.workspace, ".outcrop", "config.toml"))
	for name, want := range map[string]config.Origin{
		"model":                               "OUTCROP_MODEL",
		"approve":                             file + ":2",
		"providers.deepseek.base_url":         file + ":5",
		"providers.deepseek.quirks.reasoning": file + ":7",
		"providers.deepseek.models.deepseek-chat.window": file + ":9",
		"providers.deepseek.models.deepseek-chat.price":  file + ":12",
		"providers.openai.base_url":                      "OPENAI_BASE_URL",
		"providers.openai.kind":                          config.BuiltIn,
		"compaction.ratio":                               ws + ":4",
		"compaction.keep":                                file + ":16",
		"limits.steps":                                   ws + ":2",
		"limits.cost_usd":                                file + ":21",
		"mcp.files.command":                              file + ":24",
		"mcp.web.url":                                    file + ":27",
		"mcp.web.trust":                                  config.BuiltIn,
		"mcp.web.key_header":                             file + ":29",
		`mcp."my.server".key_command`:                    file + ":32",
		"providers.ollama.quirks.reasoning":              config.BuiltIn,
	} {
		if at[name] != want {
			t.Errorf("%s comes from %q, want %q", name, at[name], want)
		}
	}
	if c.Limits.Steps != 3 || c.Compaction.Ratio != 0.5 || c.Compaction.Keep != 0.2 {
		t.Errorf("limits %+v, compaction %+v", c.Limits, c.Compaction)
	}
}

func TestFaultsOfAFileSayLineAndWhatWasMeant(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"unknown member", "modle = \"a:b\"\n", `config.toml:1: unknown member "modle": did you mean model?`},
		{"unknown section", "\n[limit]\nsteps = 1\n", `:2: unknown member "limit": did you mean limits?`},
		{"unknown member of a section", "[limits]\nstep = 1\n", `:2: unknown member "limits.step": did you mean steps?`},
		{"unknown member without a near one", "[limits]\nxyzzy = 1\n", `:2: unknown member "limits.xyzzy": there are steps, cost_usd`},
		{"unknown member of an inline table", "[providers.openai]\nquirks = { reasonin = \"none\" }\n", `:2: unknown member "providers.openai.quirks.reasonin": did you mean reasoning?`},
		{"dotted key", "limits.stepz = 1\n", `:1: unknown member "limits.stepz": did you mean steps?`},
		{"a section without members", "[context]\nx = 1\n", `:2: unknown member "context.x": context has no members`},
		{"a key in the file", "[providers.openai]\nkey = \"sk-1\"\n", `:2: "providers.openai.key": keys are never kept in files`},
		{"a key under another name", "[providers.openai]\napi_key = \"sk-1\"\n", `:2: "providers.openai.api_key": keys are never kept in files`},
		{"wrong type", "[limits]\nsteps = \"many\"\n", `config.toml:2: limits.steps must be a whole number`},
		{"a number for a text", "model = 3\n", `config.toml:1: model must be a text`},
		{"a text for yes or no", "[compaction]\nauto = \"yes\"\n", `:2: compaction.auto must be true or false`},
		{"a text for a number", "[compaction]\nratio = \"0.8\"\n", `:2: compaction.ratio must be a number`},
		{"a part for a whole number", "[limits]\nsteps = 1.5\n", `:2: limits.steps must be a whole number`},
		{"a text for a list", "[mcp.x]\ncommand = \"a b\"\n", `:2: mcp.x.command must be a list of texts`},
		{"a list of something else", "[mcp.x]\ncommand = [\"a\", 1]\n", `:2: mcp.x.command must be a list of texts`},
		{"a value for a table", "limits = 3\n", `:1: limits must be a table`},
		{"a value for a named table", "[mcp]\nx = 1\n", `:2: mcp.x must be a table`},
		{"a table for a value", "[model]\n", `:1: model must be a text`},
		{"a list of tables for a table", "[[limits]]\nsteps = 1\n", `:1: limits must be a table`},
		{"a date for a text", "approve = 2027-01-01\n", `:1: approve must be a text`},
		{"a wrong type in an inline table", "[providers.openai]\nquirks = { stream_usage = 1 }\n", `:2: providers.openai.quirks.stream_usage must be true or false`},
		{"a number that is too large", "[limits]\ncost_usd = 1e999\n", `:2: limits.cost_usd: this number is too large`},
		{"a ratio below what is kept by itself", "[compaction]\nratio = 0.1\n", `config.toml:2: compaction.ratio: 0.1 must be more than compaction.keep, which is 0.16`},
		{"more kept than the ratio", "[compaction]\nkeep = 0.9\n", `config.toml:2: compaction.keep: 0.9 must be less than compaction.ratio, which is 0.8`},
		{"a summariser of no provider", "[compaction]\nmodel = \"opnai:x\"\n", `config.toml:2: compaction.model: there is no provider "opnai": did you mean openai?`},
		{"a summariser that is a script", "[compaction]\nmodel = \"script:x\"\n", `config.toml:2: compaction.model: the scripted model is chosen with --script FILE`},
		{"no TOML", "model = = 1\n", `config.toml:1: `},
		{"twice", "model = \"a:b\"\nmodel = \"a:c\"\n", `config.toml:2: `},
		{"model without provider", "model = \"gpt\"\n", `:1: model: "gpt" names no model: write PROVIDER:MODEL`},
		{"approve", "approve = \"edit\"\n", `:1: approve: "edit" is not allowed: did you mean edits?`},
		{"approve, nothing near", "approve = \"sometimes\"\n", `"sometimes" is not allowed: use ask, edits, all, none`},
		{"reserved provider", "[providers.script]\nkind = \"openai\"\n", `:1: the provider name "script" is reserved for --script`},
		{"provider name", "[providers.Open_AI]\nkind = \"openai\"\n", `:1: "Open_AI" is no name of a provider`},
		{"kind", "[providers.x]\nkind = \"open\"\nbase_url = \"https://x/v1\"\n", `:2: providers.x.kind: "open" is not allowed: did you mean openai?`},
		{"no base_url", "[providers.x]\nkind = \"openai\"\n", `:1: providers.x: a provider needs its base_url`},
		{"base_url", "[providers.x]\nbase_url = \"x.example\"\n", `:2: providers.x.base_url: "x.example" is no address`},
		{"password in the address", "[providers.x]\nbase_url = \"https://a:b@x.example\"\n", `:2: providers.x.base_url: an address with a name or a password in it`},
		{"two sources of a key", "[providers.openai]\nkey_env = \"A\"\nkey_command = [\"b\"]\n", `:3: providers.openai.key_command: give key_env or key_command, not both`},
		{"empty key_command", "[providers.openai]\nkey_command = []\n", `:2: providers.openai.key_command: it names no program`},
		{"key_env", "[providers.openai]\nkey_env = \"A=B\"\n", `:2: providers.openai.key_env: this is no name of a variable`},
		{"quirk", "[providers.openai.quirks]\nsystem_role = \"root\"\n", `:2: providers.openai.quirks.system_role: "root" is not allowed`},
		{"window", "[providers.openai.models.x]\nwindow = -1\n", `:2: providers.openai.models.x.window: -1 is negative`},
		{"price", "[providers.openai.models.x]\nprice = { input = -1 }\n", `:2: providers.openai.models.x.price.input: -1 is negative`},
		{"ratio", "[compaction]\nratio = 1.5\n", `:2: compaction.ratio: 1.5 is not between 0 and 1`},
		{"keep", "[compaction]\nkeep = 1.0\n", `:2: compaction.keep: 1 is not between 0 and 1`},
		{"steps", "[limits]\nsteps = -1\n", `:2: limits.steps: -1 is negative`},
		{"cost", "[limits]\ncost_usd = -0.5\n", `:2: limits.cost_usd: -0.5 is no sum of money`},
		{"cost that is no number", "[limits]\ncost_usd = nan\n", `:2: limits.cost_usd: NaN is no sum of money`},
		{"mcp with both", "[mcp.x]\ncommand = [\"a\"]\nurl = \"https://b\"\n", `:1: mcp.x: give either command or url`},
		{"mcp with neither", "[mcp.x]\ntrust = true\n", `:1: mcp.x: give either command or url`},
		{"mcp without a name", "[mcp.\"\"]\ncommand = [\"a\"]\n", `:1: mcp.: the name of an MCP server is empty`},
		{"mcp without a program", "[mcp.x]\ncommand = [\"\"]\n", `:2: mcp.x.command: it names no program`},
		{"mcp with an empty command", "[mcp.x]\ncommand = []\n", `:1: mcp.x: give either command or url`},
		{"address of an mcp server", "[mcp.x]\nurl = \"x.example\"\n", `:2: mcp.x.url: "x.example" is no address: write https://HOST/mcp`},
		{"password in the address of an mcp server", "[mcp.x]\nurl = \"https://a:b@x.example\"\n", `:2: mcp.x.url: an address with a name or a password in it`},
		{"key of an mcp server", "[mcp.x]\nurl = \"https://b\"\nkey = \"k\"\n", `:3: "mcp.x.key": keys are never kept in files`},
		{"key of a program", "[mcp.x]\ncommand = [\"a\"]\nkey_env = \"K\"\n", `:3: mcp.x.key_env: it goes with url: a program takes its key from its environment`},
		{"two sources of an mcp key", "[mcp.x]\nurl = \"https://b\"\nkey_env = \"K\"\nkey_command = [\"a\"]\n", `:4: mcp.x.key_command: give key_env or key_command, not both`},
		{"header of an mcp key", "[mcp.x]\nurl = \"https://b\"\nkey_header = \"X Key\"\n", `:3: mcp.x.key_header: "X Key" is no name of a header`},
		{"unknown member of an mcp server", "[mcp.x]\ncomand = [\"a\"]\n", `:2: unknown member "mcp.x.comand": did you mean command?`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := newPlace(t, c.text, "").load()
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v\nwant …%s", err, c.want)
			}
			if err != nil && strings.Contains(err.Error(), "\n") {
				t.Errorf("more than one line: %q", err)
			}
		})
	}
}

func TestAWorkspaceMaySetOnlyThreeSections(t *testing.T) {
	for _, text := range []string{
		"model = \"openai:x\"\n", "approve = \"all\"\n", "[providers.openai]\nbase_url = \"https://evil.example\"\n",
		"[providers.openai]\nkey_command = [\"sh\"]\n", "[mcp.x]\ncommand = [\"sh\"]\n", "providers.x = {}\n",
	} {
		if _, err := newPlace(t, "", text).load(); err == nil || !strings.Contains(err.Error(), ":1: ") || !strings.Contains(err.Error(), "cannot be set by the file of a workspace") {
			t.Errorf("%q: %v", text, err)
		}
	}
	if c := newPlace(t, "", "[compaction]\nauto = false\n[limits]\nsteps = 9\n[context]\n").mustLoad(t); c.Limits.Steps != 9 || c.Compaction.Auto {
		t.Errorf("%+v %+v", c.Limits, c.Compaction)
	}
}

func TestWhatTwoFilesSetMustFitTogether(t *testing.T) {
	p := newPlace(t, "[compaction]\nkeep = 0.5\n", "[compaction]\nratio = 0.4\n")
	want := filepath.Join(p.workspace, ".outcrop", "config.toml") + ":2: compaction.ratio: 0.4 must be more than compaction.keep, which is 0.5"
	if _, err := p.load(); err == nil || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
	newPlace(t, "[compaction]\nratio = 0.1\n", "[compaction]\nkeep = 0.05\n").mustLoad(t)
}

func TestAValueIsGivenWithoutTheQuotesOfAFileToo(t *testing.T) {
	plain := map[string]string{}
	for _, v := range newPlace(t, "model = \"ollama:a\\\"b\"\n", "").mustLoad(t).Values() {
		plain[v.Name] = v.Plain
	}
	for name, want := range map[string]string{"model": `ollama:a"b`, "limits.steps": "200", "compaction.model": "", "compaction.auto": "true"} {
		if plain[name] != want {
			t.Errorf("%s is %q, want %q", name, plain[name], want)
		}
	}
}

func TestAConfigurationFileMustBeARegularFile(t *testing.T) {
	p := newPlace(t, "", "")
	if err := os.MkdirAll(filepath.Join(p.workspace, ".outcrop", "config.toml"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := p.load(); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Error(err)
	}
	p = newPlace(t, strings.Repeat("# long\n", 200_000), "")
	if _, err := p.load(); err == nil || !strings.Contains(err.Error(), "too long") {
		t.Error(err)
	}
}

func TestAModelIsChosenInOrder(t *testing.T) {
	p := newPlace(t, "model = \"ollama:file\"\n", "")
	logged := &config.Logged{Provider: "ollama", Model: "logged"}
	choose := func(flag string, l *config.Logged) string {
		t.Helper()
		m, err := p.mustLoad(t).Choose(flag, l)
		if err != nil {
			t.Fatal(err)
		}
		return m.Provider.Name + ":" + m.Name
	}
	if got := choose("", nil); got != "ollama:file" {
		t.Error(got)
	}
	if got := choose("", logged); got != "ollama:logged" {
		t.Error(got)
	}
	p.env["OUTCROP_MODEL"] = "ollama:env"
	if got := choose("", logged); got != "ollama:env" {
		t.Error(got)
	}
	if got := choose("openai:flag:with/colons", logged); got != "openai:flag:with/colons" {
		t.Error(got)
	}
}

func TestNoModelSaysWhatCanBeDone(t *testing.T) {
	p := newPlace(t, "", "")
	check := func(flag string, l *config.Logged, want string) {
		t.Helper()
		_, err := p.mustLoad(t).Choose(flag, l)
		if err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
	check("", nil, "no model chosen: use --model PROVIDER:MODEL or set model in ~/.config/outcrop/config.toml (no provider has a key here)")
	p.env["DEEPSEEK_API_KEY"] = "k"
	check("", nil, "no model chosen: use --model PROVIDER:MODEL or set model in ~/.config/outcrop/config.toml (providers with a key here: deepseek)")
	check("", &config.Logged{Provider: "gone", Model: "m"}, "the session was made with gone:m, and no provider gone is configured: use --model PROVIDER:MODEL (providers with a key here: deepseek)")
	check("", &config.Logged{Provider: "script", Model: "m"}, "the session was made by the scripted model script:m: give --script FILE to play on, or --model PROVIDER:MODEL (providers with a key here: deepseek)")
	check("deepsek:x", nil, `--model: there is no provider "deepsek": did you mean deepseek?`)
	check("zzzzzz:x", nil, `--model: there is no provider "zzzzzz": there are anthropic, deepseek, ollama, openai, openrouter`)
	check("gpt", nil, `--model: "gpt" names no model: write PROVIDER:MODEL`)
	check("script:x", nil, "--model: the scripted model is chosen with --script FILE")
}

func TestAKeyComesFromItsVariableOrProgram(t *testing.T) {
	ctx := context.Background()
	p := newPlace(t, "", "")
	open := func(c *config.Config, name string) error {
		_, err := c.Open(ctx, c.Providers[name], config.Dial{})
		return err
	}
	c := p.mustLoad(t)
	if err := open(c, "deepseek"); err == nil || err.Error() != "deepseek: no key: set DEEPSEEK_API_KEY, or key_command in ~/.config/outcrop/config.toml" {
		t.Error(err)
	}
	if err := open(c, "ollama"); err != nil {
		t.Errorf("a provider without a key: %v", err)
	}
	if err := open(c, "anthropic"); err == nil || err.Error() != "anthropic: no key: set ANTHROPIC_API_KEY, or key_command in ~/.config/outcrop/config.toml" {
		t.Error(err)
	}
	p.env["DEEPSEEK_API_KEY"] = " k\n"
	if err := open(p.mustLoad(t), "deepseek"); err != nil {
		t.Error(err)
	}
	if runtime.GOOS == "windows" {
		return // the programs below are those of Unix
	}
	for _, c := range []struct{ name, command, want string }{
		{"prints the key", `["echo", "sk-test"]`, ""},
		{"prints nothing", `["true"]`, "deepseek: key_command: true printed no key"},
		{"fails", `["false"]`, "deepseek: key_command: false ended with exit status 1"},
		{"is not there", `["no-such-program-here"]`, "deepseek: key_command: there is no program no-such-program-here"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := newPlace(t, "[providers.deepseek]\nkey_command = "+c.command+"\n", "").mustLoad(t)
			err := open(cfg, "deepseek")
			if c.want == "" && err != nil || c.want != "" && (err == nil || err.Error() != c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestAClientOfEachKindNamesItsEncoder(t *testing.T) {
	p := newPlace(t, "[providers.anthropic.models.big]\nmax_output = 1234\n", "")
	p.env["ANTHROPIC_API_KEY"], p.env["OPENAI_API_KEY"] = "k", "k"
	c := p.mustLoad(t)
	for name, want := range map[string]string{"anthropic": anthropic.Encoder, "openai": openai.Encoder} {
		online, err := c.Client(t.Context(), c.Providers[name], config.Dial{})
		if err != nil {
			t.Fatal(err)
		}
		offline, err := c.Providers[name].Offline()
		if err != nil {
			t.Fatal(err)
		}
		req := llm.Request{Config: llm.Config{Provider: name, Model: "big"}, Messages: []message.Message{{Role: message.User, Content: []message.Block{message.Text("hi")}}}}
		if online.Encoder() != want || online.Name() != name || string(online.Body(req)) != string(offline.Body(req)) {
			t.Errorf("%s: encoder %s, want %s; %s", name, online.Encoder(), want, offline.Body(req))
		}
		if has := strings.Contains(string(online.Body(req)), "1234"); has != (name == "anthropic") {
			t.Errorf("%s: the longest reply of the model: %s", name, online.Body(req))
		}
	}
}

func TestServersGetTheirKeysAndNobodyElses(t *testing.T) {
	p := newPlace(t, full, "")
	p.env["WEB_KEY"], p.env["OPENAI_API_KEY"] = "sk-web", "sk-openai"
	c := p.mustLoad(t)
	c.MCP["my.server"].KeyCommand = []string{"no-such-program-here"}
	c.MCP["bearer"] = &config.MCP{URL: "https://b.example", Key: config.Key{KeyEnv: "WEB_KEY"}, KeyHeader: "authorization"}
	c.MCP["odd"] = &config.MCP{URL: "https://b.example", Key: config.Key{KeyEnv: "ODD_KEY"}}
	c.MCP["none"] = &config.MCP{URL: "https://b.example", Key: config.Key{KeyEnv: "NO_KEY"}}
	p.env["ODD_KEY"] = "two\nlines"
	got, errs := c.Servers(t.Context(), "/home/me/project", []string{"PATH=/bin", "OPENAI_API_KEY=sk-openai", "WEB_KEY=sk-web", "MINE=1", "ODD"})
	env := []string{"PATH=/bin", "MINE=1", "ODD"}
	want := []mcp.Server{
		{Name: "bearer", Env: env, Dir: "/home/me/project", URL: "https://b.example", Headers: map[string]string{"authorization": "Bearer sk-web"}, KeyFrom: "WEB_KEY"},
		{Name: "files", Command: []string{"mcp-files", "."}, Env: env, Dir: "/home/me/project", Trust: true},
		{Name: "web", Env: env, Dir: "/home/me/project", URL: "https://mcp.example", Headers: map[string]string{"X-Api-Key": "sk-web"}, KeyFrom: "WEB_KEY"},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	var said []string
	for _, err := range errs {
		said = append(said, err.Error())
	}
	if d := cmp.Diff([]string{
		"mcp server my.server: key_command: there is no program no-such-program-here",
		"mcp server none: no key: set NO_KEY, or key_command in ~/.config/outcrop/config.toml",
		"mcp server odd: the key holds characters that no key has: check ODD_KEY",
	}, said); d != "" {
		t.Error(d)
	}
	for _, v := range c.Values() {
		if strings.Contains(v.Text, "sk-") {
			t.Errorf("%s holds a key", v.Name)
		}
	}
	if got, _ := c.Servers(t.Context(), "", nil); got[1].Env == nil {
		t.Error("no environment stands for all that there is")
	}
}

func TestNearestFindsWhatWasMeant(t *testing.T) {
	names := []string{"show", "surface", "messages", "ls", "fork"}
	for got, want := range map[string]string{
		"shwo": "show", "sohw": "show", "surfce": "surface", "message": "messages", "fokr": "fork", "sl": "ls",
		"xyzzy": "", "": "", "show": "show",
	} {
		if near := config.Nearest(got, names); near != want {
			t.Errorf("Nearest(%q) = %q, want %q", got, near, want)
		}
	}
}

func FuzzLoadNeverPanics(f *testing.F) {
	f.Add(full)
	f.Add("[a.b]\nc=1\n[[x]]\n'q.r'={s=[{t=1}]}")
	f.Add("model.x = 1\n[providers]\nx = 3\n")
	f.Fuzz(func(t *testing.T, text string) {
		p := newPlace(t, text+"\n", "")
		c, err := p.load()
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("more than one line: %q", err)
			}
			return
		}
		if len(c.Values()) < 10 {
			t.Error("values are missing")
		}
	})
}
