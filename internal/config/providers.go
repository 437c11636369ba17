package config

import (
	"fmt"
	"maps"
	"net/url"
	"slices"

	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/llm/openai"
)

// Kinds of providers: which API they speak.
const (
	KindOpenAI    = "openai"
	KindAnthropic = "anthropic"
)

// Scripted is the reserved name of the provider that plays a script.
const Scripted = "script"

// Provider is one [providers.NAME], or a built-in one.
type Provider struct {
	Name    string
	Kind    string
	BaseURL string
	Key
	Quirks openai.Quirks
	Models map[string]*Settings // those with settings of their own
}

// Settings are what is known about a model. Zero and nil stand for unknown.
type Settings struct {
	Window    int64 // tokens
	MaxOutput int64 // tokens
	Images    bool
	Price     *llm.Price
}

func builtInProviders() map[string]*Provider {
	list := []*Provider{
		{Name: "openai", Kind: KindOpenAI, BaseURL: "https://api.openai.com/v1", Key: Key{KeyEnv: "OPENAI_API_KEY"},
			Quirks: openai.Quirks{MaxTokens: "max_completion_tokens"}},
		{Name: "anthropic", Kind: KindAnthropic, BaseURL: "https://api.anthropic.com", Key: Key{KeyEnv: "ANTHROPIC_API_KEY"}},
		{Name: "deepseek", Kind: KindOpenAI, BaseURL: "https://api.deepseek.com/v1", Key: Key{KeyEnv: "DEEPSEEK_API_KEY"},
			Quirks: openai.Quirks{Reasoning: openai.ReasoningContent}},
		{Name: "openrouter", Kind: KindOpenAI, BaseURL: "https://openrouter.ai/api/v1", Key: Key{KeyEnv: "OPENROUTER_API_KEY"},
			Quirks: openai.Quirks{Reasoning: openai.ReasoningPlain}},
		{Name: "ollama", Kind: KindOpenAI, BaseURL: "http://127.0.0.1:11434/v1"},
	}
	all := map[string]*Provider{}
	for _, p := range list {
		p.Models = map[string]*Settings{}
		all[p.Name] = p
	}
	return all
}

// badProviderName says what is wrong with the name of a provider.
func badProviderName(name string) string {
	if name == Scripted {
		return `the provider name "script" is reserved for --script`
	}
	for i, c := range name {
		if !(c >= 'a' && c <= 'z' || i > 0 && (c >= '0' && c <= '9' || c == '-')) {
			return fmt.Sprintf("%q is no name of a provider: it has small letters, digits and dashes, a letter first", name)
		}
	}
	if name == "" {
		return "the name of a provider is empty"
	}
	return ""
}

// badURL says what is wrong with an address that should look like an example.
func badURL(s, example string) string {
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return fmt.Sprintf("%q is no address: write %s", s, example)
	case u.User != nil:
		return "an address with a name or a password in it: use key_env or key_command"
	}
	return ""
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
