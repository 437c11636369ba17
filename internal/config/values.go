package config

import (
	"strconv"
	"strings"
)

// origins says where values came from, by name; what is missing is built in.
type origins map[string]Origin

func newOrigins() origins { return origins{} }

// list is every setting in the order in which a file would have them.
func (c *Config) list(o origins) []Value {
	var out []Value
	add := func(name, text string) {
		from, ok := o[name]
		if !ok {
			from = BuiltIn
		}
		out = append(out, Value{name, text, plain(text), from})
	}
	str := func(name, v string) { add(name, Quoted(v)) }
	boolean := func(name string, v bool) { add(name, strconv.FormatBool(v)) }
	number := func(name string, v int64) { add(name, strconv.FormatInt(v, 10)) }
	str("model", c.Model)
	str("approve", c.Approve)
	for _, name := range sorted(c.Providers) {
		p, at := c.Providers[name], "providers."+bare(name)
		str(at+".kind", p.Kind)
		str(at+".base_url", p.BaseURL)
		if len(p.KeyCommand) > 0 {
			add(at+".key_command", array(p.KeyCommand))
		} else {
			str(at+".key_env", p.KeyEnv)
		}
		q := p.Quirks
		str(at+".quirks.reasoning", or(string(q.Reasoning), "none"))
		str(at+".quirks.max_tokens", or(q.MaxTokens, "max_tokens"))
		boolean(at+".quirks.alternate_roles", q.AlternateRoles)
		str(at+".quirks.system_role", or(q.SystemRole, "system"))
		boolean(at+".quirks.stream_usage", !q.NoStreamUsage)
		for _, model := range sorted(p.Models) {
			m := p.Models[model]
			was := "providers." + name + ".models." + model
			shown := at + ".models." + bare(model)
			put := func(member, text string) {
				from, ok := o[was+member]
				if !ok {
					from = BuiltIn
				}
				out = append(out, Value{shown + member, text, plain(text), from})
			}
			put(".window", strconv.FormatInt(m.Window, 10))
			put(".max_output", strconv.FormatInt(m.MaxOutput, 10))
			put(".images", strconv.FormatBool(m.Images))
			if m.Price != nil {
				put(".price", "{ input = "+strconv.FormatInt(m.Price.Input, 10)+", cache_read = "+strconv.FormatInt(m.Price.CacheRead, 10)+
					", cache_write = "+strconv.FormatInt(m.Price.CacheWrite, 10)+", output = "+strconv.FormatInt(m.Price.Output, 10)+" }")
			}
		}
	}
	boolean("compaction.auto", c.Compaction.Auto)
	add("compaction.ratio", strconv.FormatFloat(c.Compaction.Ratio, 'f', -1, 64))
	add("compaction.keep", strconv.FormatFloat(c.Compaction.Keep, 'f', -1, 64))
	str("compaction.policy", c.Compaction.Policy)
	str("compaction.model", c.Compaction.Model)
	number("limits.steps", int64(c.Limits.Steps))
	add("limits.cost_usd", strconv.FormatFloat(c.Limits.CostUSD, 'f', -1, 64))
	number("retention.archive_after", int64(c.Retention.ArchiveAfter))
	number("retention.trash_after", int64(c.Retention.TrashAfter))
	number("retention.purge_after", int64(c.Retention.PurgeAfter))
	for _, m := range c.NATS.members(&documentNATS{}) {
		// Most people have no realm: what nobody set is not listed.
		if _, set := o[m.name]; set {
			str(m.name, *m.to)
		}
	}
	for _, name := range sorted(c.MCP) {
		m := c.MCP[name]
		put := func(member, text string) {
			from, ok := o["mcp."+name+member]
			if !ok {
				from = BuiltIn
			}
			out = append(out, Value{"mcp." + bare(name) + member, text, plain(text), from})
		}
		if m.URL == "" {
			put(".command", array(m.Command))
		} else {
			put(".url", Quoted(m.URL))
			if len(m.KeyCommand) > 0 {
				put(".key_command", array(m.KeyCommand))
			} else {
				put(".key_env", Quoted(m.KeyEnv))
			}
			put(".key_header", Quoted(m.KeyHeader))
		}
		put(".trust", strconv.FormatBool(m.Trust))
	}
	return out
}

func or(v, otherwise string) string {
	if v == "" {
		return otherwise
	}
	return v
}

// Quoted is a text as it would stand in a file.
func Quoted(s string) string { return strconv.Quote(s) }

// plain is a text of a file without its quotes; any other value stays.
func plain(text string) string {
	if s, err := strconv.Unquote(text); err == nil {
		return s
	}
	return text
}

func array(list []string) string {
	parts := make([]string, len(list))
	for i, s := range list {
		parts[i] = Quoted(s)
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

// bare is a name as TOML wants it in a dotted key.
func bare(name string) string {
	for _, c := range name {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_') {
			return Quoted(name)
		}
	}
	if name == "" {
		return `""`
	}
	return name
}
