package config_test

import (
	"path/filepath"
	"testing"

	"github.com/outcrop-dev/outcrop/internal/config"
)

func TestAWorkspaceOnlyLowersLimits(t *testing.T) {
	for _, c := range []struct {
		name, user, workspace string
		want                  config.Limits
		steps, cost           string // whose value counts: built in, user or workspace
	}{
		{"lower than the built-in value", "", "steps = 9", config.Limits{Steps: 9}, "workspace", "built in"},
		{"higher than the built-in value", "", "steps = 1000", config.Limits{Steps: 200}, "built in", "built in"},
		{"no limit is not lower than one", "steps = 7\ncost_usd = 2", "steps = 0\ncost_usd = 0", config.Limits{Steps: 7, CostUSD: 2}, "user", "user"},
		{"higher than the person's", "steps = 7\ncost_usd = 2", "steps = 8\ncost_usd = 2.5", config.Limits{Steps: 7, CostUSD: 2}, "user", "user"},
		{"the same stays the person's", "steps = 7\ncost_usd = 2", "steps = 7\ncost_usd = 2", config.Limits{Steps: 7, CostUSD: 2}, "user", "user"},
		{"lower than the person's", "steps = 7\ncost_usd = 2", "steps = 6\ncost_usd = 1.5", config.Limits{Steps: 6, CostUSD: 1.5}, "workspace", "workspace"},
		{"lower than no limit", "steps = 0\ncost_usd = 0", "steps = 5000\ncost_usd = 1", config.Limits{Steps: 5000, CostUSD: 1}, "workspace", "workspace"},
	} {
		t.Run(c.name, func(t *testing.T) {
			user := ""
			if c.user != "" {
				user = "[limits]\n" + c.user + "\n"
			}
			p := newPlace(t, user, "[limits]\n"+c.workspace+"\n")
			cfg := p.mustLoad(t)
			if cfg.Limits != c.want {
				t.Errorf("got %+v, want %+v", cfg.Limits, c.want)
			}
			ws := filepath.Join(p.workspace, ".outcrop", "config.toml")
			from := map[string][2]string{ // of steps, of cost
				"built in":  {"built in", "built in"},
				"user":      {"~/.config/outcrop/config.toml:2", "~/.config/outcrop/config.toml:3"},
				"workspace": {ws + ":2", ws + ":3"},
			}
			for _, v := range cfg.Values() {
				if want := from[c.steps][0]; v.Name == "limits.steps" && string(v.Origin) != want {
					t.Errorf("the steps come from %s, want %s", v.Origin, want)
				}
				if want := from[c.cost][1]; v.Name == "limits.cost_usd" && string(v.Origin) != want {
					t.Errorf("the cost comes from %s, want %s", v.Origin, want)
				}
			}
		})
	}
}

func TestAWorkspaceCannotMakeCompactionDearOrSendItElsewhere(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"[compaction]\nmodel = \"ollama:x\"\n", `:2: "compaction.model" cannot be set by the file of a workspace, it would send the conversation to another provider: put it into your own file`},
		{"compaction = { auto = true, model = \"\" }\n", `:1: "compaction.model" cannot be set by the file of a workspace, it would send the conversation to another provider: put it into your own file`},
		{"[compaction]\nkeep = 0.01\nratio = 0.19\n", ":3: compaction.ratio: 0.19: the file of a workspace may set no less than 0.2, because each compaction costs: put it into your own file"},
	} {
		p := newPlace(t, "", c.text)
		want := filepath.Join(p.workspace, ".outcrop", "config.toml") + c.want
		if _, err := p.load(); err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
	newPlace(t, "[compaction]\nmodel = \"ollama:x\"\nkeep = 0.01\nratio = 0.1\n", "").mustLoad(t)
	if c := newPlace(t, "", "[compaction]\nratio = 0.2\n").mustLoad(t); c.Compaction.Ratio != 0.2 {
		t.Errorf("%+v", c.Compaction)
	}
}
