package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/llm/openai"
)

// document is a file as it is decoded. Pointers tell what it sets.
type document struct {
	Model      *string                     `toml:"model"`
	Approve    *string                     `toml:"approve"`
	Providers  map[string]documentProvider `toml:"providers"`
	Compaction struct {
		Auto   *bool    `toml:"auto"`
		Ratio  *float64 `toml:"ratio"`
		Keep   *float64 `toml:"keep"`
		Policy *string  `toml:"policy"`
		Model  *string  `toml:"model"`
	} `toml:"compaction"`
	Limits struct {
		Steps   *int     `toml:"steps"`
		CostUSD *float64 `toml:"cost_usd"`
	} `toml:"limits"`
	Retention struct {
		ArchiveAfter *int `toml:"archive_after"`
		TrashAfter   *int `toml:"trash_after"`
		PurgeAfter   *int `toml:"purge_after"`
	} `toml:"retention"`
	NATS    documentNATS           `toml:"nats"`
	Context struct{}               `toml:"context"`
	MCP     map[string]documentMCP `toml:"mcp"`
}

type documentMCP struct {
	Command    []string `toml:"command"`
	URL        *string  `toml:"url"`
	KeyEnv     *string  `toml:"key_env"`
	KeyCommand []string `toml:"key_command"`
	KeyHeader  *string  `toml:"key_header"`
	Trust      *bool    `toml:"trust"`
}

type documentProvider struct {
	Kind       *string                  `toml:"kind"`
	BaseURL    *string                  `toml:"base_url"`
	KeyEnv     *string                  `toml:"key_env"`
	KeyCommand []string                 `toml:"key_command"`
	Quirks     documentQuirks           `toml:"quirks"`
	Models     map[string]documentModel `toml:"models"`
}

type documentQuirks struct {
	Reasoning      *string `toml:"reasoning"`
	MaxTokens      *string `toml:"max_tokens"`
	AlternateRoles *bool   `toml:"alternate_roles"`
	SystemRole     *string `toml:"system_role"`
	StreamUsage    *bool   `toml:"stream_usage"`
}

type documentModel struct {
	Window    *int64         `toml:"window"`
	MaxOutput *int64         `toml:"max_output"`
	Images    *bool          `toml:"images"`
	Price     *documentPrice `toml:"price"`
}

type documentPrice struct {
	Input      int64 `toml:"input"`
	CacheRead  int64 `toml:"cache_read"`
	CacheWrite int64 `toml:"cache_write"`
	Output     int64 `toml:"output"`
}

// file takes one file over what is set so far.
func (c *Config) file(path string, text []byte, workspace bool, o origins) error {
	f := filed{c: c, path: path, workspace: workspace, lines: map[string]int{}, origins: o}
	var doc document
	decodeErr := toml.Unmarshal(text, &doc)
	ms, err := members(text)
	if err == nil {
		// A member that is not known says more than the type that it has.
		for _, m := range ms {
			if msg := judge(m, workspace); msg != "" {
				return &Error{Path: c.Short(path), Line: m.line, Msg: msg}
			}
			if _, seen := f.lines[m.name()]; !seen {
				f.lines[m.name()] = m.line
			}
		}
	}
	if err := decodeErr; err != nil {
		e := &Error{Path: c.Short(path), Msg: strings.TrimPrefix(err.Error(), "toml: ")}
		var de *toml.DecodeError
		if errors.As(err, &de) {
			e.Line, _ = de.Position()
			if k := strings.Join(de.Key(), "."); k != "" {
				e.Msg = k + ": " + e.Msg
				if strings.Contains(e.Msg, "strconv.") {
					e.Msg = k + ": this number is too large" // the decoder's words are those of its library
				}
			}
		}
		return e
	}
	if err != nil {
		return &Error{Path: c.Short(path), Msg: err.Error()}
	}
	return f.take(&doc)
}

// filed is the taking of one file.
type filed struct {
	c         *Config
	path      string
	workspace bool // it is the file of a workspace
	lines     map[string]int
	origins   origins
}

// set notes where a value came from.
func (f *filed) set(name string) {
	f.origins[name] = Origin(fmt.Sprintf("%s:%d", f.c.Short(f.path), f.lines[name]))
}

func (f *filed) bad(name, format string, args ...any) error {
	return &Error{Path: f.c.Short(f.path), Line: f.lines[name], Msg: name + ": " + fmt.Sprintf(format, args...)}
}

func put[T any](f *filed, name string, dst *T, v *T) {
	if v != nil {
		*dst = *v
		f.set(name)
	}
}

func (f *filed) oneOf(name string, v *string, allowed ...string) error {
	if v == nil || slices.Contains(allowed, *v) {
		return nil
	}
	if near := Nearest(*v, allowed); near != "" {
		return f.bad(name, "%q is not allowed: did you mean %s?", *v, near)
	}
	return f.bad(name, "%q is not allowed: use %s", *v, strings.Join(allowed, ", "))
}

func (f *filed) notNegative(name string, v *int64) error {
	if v != nil && *v < 0 {
		return f.bad(name, "%d is negative", *v)
	}
	return nil
}

func (f *filed) take(doc *document) error {
	c := f.c
	if doc.Model != nil && *doc.Model != "" {
		if _, _, err := SplitModel(*doc.Model); err != nil {
			return f.bad("model", "%v", err)
		}
		put(f, "model", &c.Model, doc.Model)
		c.modelFrom = f.origins["model"]
	}
	if err := f.oneOf("approve", doc.Approve, "ask", "edits", "all", "none"); err != nil {
		return err
	}
	put(f, "approve", &c.Approve, doc.Approve)
	if err := f.limits(doc); err != nil {
		return err
	}
	if err := f.nats(&doc.NATS); err != nil {
		return err
	}
	for _, name := range sorted(doc.Providers) {
		d := doc.Providers[name]
		if err := f.provider(name, &d); err != nil {
			return err
		}
	}
	for _, name := range sorted(doc.MCP) {
		d := doc.MCP[name]
		if err := f.mcp(name, &d); err != nil {
			return err
		}
	}
	return nil
}

func (f *filed) limits(doc *document) error {
	c, d := f.c, &doc.Compaction
	if d.Ratio != nil && (*d.Ratio <= 0 || *d.Ratio > 1) {
		return f.bad("compaction.ratio", "%v is not between 0 and 1", *d.Ratio)
	}
	if d.Ratio != nil && f.workspace && *d.Ratio < leastRatio {
		return f.bad("compaction.ratio", "%v: the file of a workspace may set no less than %v, because each compaction costs: put it into your own file", *d.Ratio, leastRatio)
	}
	if d.Keep != nil && (*d.Keep <= 0 || *d.Keep >= 1) {
		return f.bad("compaction.keep", "%v is not between 0 and 1", *d.Keep)
	}
	if err := f.oneOf("compaction.policy", d.Policy, "layers", "dsh"); err != nil {
		return err
	}
	if d.Model != nil && *d.Model != "" {
		if _, _, err := SplitModel(*d.Model); err != nil {
			return f.bad("compaction.model", "%v", err)
		}
	}
	put(f, "compaction.auto", &c.Compaction.Auto, d.Auto)
	put(f, "compaction.ratio", &c.Compaction.Ratio, d.Ratio)
	put(f, "compaction.keep", &c.Compaction.Keep, d.Keep)
	put(f, "compaction.policy", &c.Compaction.Policy, d.Policy)
	put(f, "compaction.model", &c.Compaction.Model, d.Model)
	if n := doc.Limits.Steps; n != nil && *n < 0 {
		return f.bad("limits.steps", "%d is negative", *n)
	}
	if n := doc.Limits.CostUSD; n != nil && !(*n >= 0 && *n <= 1e9) {
		return f.bad("limits.cost_usd", "%v is no sum of money", *n)
	}
	limit(f, "limits.steps", &c.Limits.Steps, doc.Limits.Steps)
	limit(f, "limits.cost_usd", &c.Limits.CostUSD, doc.Limits.CostUSD)
	return f.retention(doc)
}

// leastRatio is the lowest compaction.ratio that the file of a workspace may
// set: with a lower one every few steps pay for another summary.
const leastRatio = 0.2

// limit puts a limit, of which 0 is none. The file of a workspace only lowers
// what the person allows.
func limit[T int | float64](f *filed, name string, dst, v *T) {
	if v != nil && f.workspace && (*v == 0 || *dst != 0 && *v >= *dst) {
		return
	}
	put(f, name, dst, v)
}

// mostDays is a century: a larger number is another unit.
const mostDays = 36_500

func (f *filed) retention(doc *document) error {
	r, d := &f.c.Retention, &doc.Retention
	for _, rule := range []struct {
		name string
		to   *int
		v    *int
	}{
		{"retention.archive_after", &r.ArchiveAfter, d.ArchiveAfter},
		{"retention.trash_after", &r.TrashAfter, d.TrashAfter},
		{"retention.purge_after", &r.PurgeAfter, d.PurgeAfter},
	} {
		if rule.v != nil && (*rule.v < 0 || *rule.v > mostDays) {
			return f.bad(rule.name, "%d is no number of days: give one from 0 (never) to %d", *rule.v, mostDays)
		}
		put(f, rule.name, rule.to, rule.v)
	}
	return nil
}

func (f *filed) provider(name string, d *documentProvider) error {
	at := "providers." + name
	p := f.c.Providers[name]
	if p == nil {
		p = &Provider{Name: name, Kind: KindOpenAI, Models: map[string]*Settings{}}
		f.c.Providers[name] = p
	}
	if err := f.oneOf(at+".kind", d.Kind, KindOpenAI, KindAnthropic); err != nil {
		return err
	}
	put(f, at+".kind", &p.Kind, d.Kind)
	if d.BaseURL != nil {
		if msg := badURL(*d.BaseURL, "https://HOST/v1"); msg != "" {
			return f.bad(at+".base_url", "%s", msg)
		}
	}
	put(f, at+".base_url", &p.BaseURL, d.BaseURL)
	if p.BaseURL == "" {
		return f.bad(at, "a provider needs its base_url")
	}
	if err := f.key(at, &p.Key, d.KeyEnv, d.KeyCommand); err != nil {
		return err
	}
	if err := f.quirks(at+".quirks", p, &d.Quirks); err != nil {
		return err
	}
	for _, model := range sorted(d.Models) {
		m := d.Models[model]
		if err := f.model(at+".models."+model, p, model, &m); err != nil {
			return err
		}
	}
	return nil
}

// key takes the source of a key: a variable or a program.
func (f *filed) key(at string, k *Key, variable *string, command []string) error {
	switch {
	case variable != nil && command != nil:
		return f.bad(at+".key_command", "give key_env or key_command, not both")
	case variable != nil:
		if strings.ContainsAny(*variable, "= \t\n\x00") {
			return f.bad(at+".key_env", "this is no name of a variable")
		}
		put(f, at+".key_env", &k.KeyEnv, variable)
		k.KeyCommand = nil
	case command != nil:
		if len(command) == 0 || command[0] == "" {
			return f.bad(at+".key_command", "it names no program")
		}
		k.KeyCommand, k.KeyEnv = command, ""
		f.set(at + ".key_command")
	}
	return nil
}

func (f *filed) quirks(at string, p *Provider, d *documentQuirks) error {
	if err := errors.Join(
		f.oneOf(at+".reasoning", d.Reasoning, "none", "reasoning_content", "reasoning"),
		f.oneOf(at+".max_tokens", d.MaxTokens, "max_tokens", "max_completion_tokens"),
		f.oneOf(at+".system_role", d.SystemRole, "system", "developer", "user"),
	); err != nil {
		return err
	}
	if d.Reasoning != nil {
		p.Quirks.Reasoning = openai.Reasoning(*d.Reasoning)
		f.set(at + ".reasoning")
	}
	put(f, at+".max_tokens", &p.Quirks.MaxTokens, d.MaxTokens)
	put(f, at+".alternate_roles", &p.Quirks.AlternateRoles, d.AlternateRoles)
	put(f, at+".system_role", &p.Quirks.SystemRole, d.SystemRole)
	if d.StreamUsage != nil {
		p.Quirks.NoStreamUsage = !*d.StreamUsage
		f.set(at + ".stream_usage")
	}
	return nil
}

func (f *filed) model(at string, p *Provider, name string, d *documentModel) error {
	if err := errors.Join(f.notNegative(at+".window", d.Window), f.notNegative(at+".max_output", d.MaxOutput)); err != nil {
		return err
	}
	m := p.Models[name]
	if m == nil {
		m = &Settings{}
		p.Models[name] = m
	}
	put(f, at+".window", &m.Window, d.Window)
	put(f, at+".max_output", &m.MaxOutput, d.MaxOutput)
	put(f, at+".images", &m.Images, d.Images)
	if d.Price == nil {
		return nil
	}
	m.Price = &llm.Price{Input: d.Price.Input, CacheRead: d.Price.CacheRead, CacheWrite: d.Price.CacheWrite, Output: d.Price.Output}
	for _, part := range [...]struct {
		name string
		v    int64
	}{{"input", m.Price.Input}, {"cache_read", m.Price.CacheRead}, {"cache_write", m.Price.CacheWrite}, {"output", m.Price.Output}} {
		if part.v < 0 {
			return f.bad(at+".price."+part.name, "%d is negative", part.v)
		}
	}
	f.set(at + ".price")
	return nil
}
