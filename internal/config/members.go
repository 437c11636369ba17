package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2/unstable"
)

// known are all members that a file may have. A star stands for a name that the
// person chooses.
var known = []string{
	"model", "approve",
	"providers.*.kind", "providers.*.base_url", "providers.*.key_env", "providers.*.key_command",
	"providers.*.quirks.reasoning", "providers.*.quirks.max_tokens", "providers.*.quirks.alternate_roles",
	"providers.*.quirks.system_role", "providers.*.quirks.stream_usage",
	"providers.*.models.*.window", "providers.*.models.*.max_output", "providers.*.models.*.images",
	"providers.*.models.*.price.input", "providers.*.models.*.price.cache_read",
	"providers.*.models.*.price.cache_write", "providers.*.models.*.price.output",
	"compaction.auto", "compaction.ratio", "compaction.keep", "compaction.policy", "compaction.model",
	"limits.steps", "limits.cost_usd",
	"context",
	"mcp.*.command", "mcp.*.url", "mcp.*.key_env", "mcp.*.key_command", "mcp.*.key_header", "mcp.*.trust",
}

// workspaceSections are what the file of a workspace may set.
var workspaceSections = []string{"compaction", "limits", "context"}

// keyNames are members that somebody would put a key in.
var keyNames = []string{"key", "api_key", "apikey", "api-key", "token", "secret"}

// member is one member of a file.
type member struct {
	path []string
	line int
}

func (m member) name() string { return strings.Join(m.path, ".") }

// members lists the members of a file with their lines, tables included.
func members(text []byte) (out []member, err error) {
	p := &unstable.Parser{}
	p.Reset(text)
	var table []string
	for p.NextExpression() {
		e := p.Expression()
		switch e.Kind {
		case unstable.Table, unstable.ArrayTable:
			path, line := keyOf(p, e)
			table = path
			out = append(out, member{path, line})
		case unstable.KeyValue:
			out = keyValue(p, e, table, out)
		}
	}
	return out, p.Error()
}

// keyOf is the dotted key of a node and its line.
func keyOf(p *unstable.Parser, n *unstable.Node) (path []string, line int) {
	it := n.Key()
	for it.Next() {
		k := it.Node()
		if line == 0 {
			line = p.Shape(k.Raw).Start.Line
		}
		path = append(path, string(k.Data))
	}
	return path, line
}

// keyValue adds a member and, when its value is an inline table, those in it.
func keyValue(p *unstable.Parser, n *unstable.Node, table []string, out []member) []member {
	path, line := keyOf(p, n)
	path = append(slices.Clone(table), path...)
	out = append(out, member{path, line})
	if v := n.Value(); v.Kind == unstable.InlineTable {
		it := v.Children()
		for it.Next() {
			out = keyValue(p, it.Node(), path, out)
		}
	}
	return out
}

// fits reports how a path stands to the known members: as one of them or the
// beginning of one.
func fits(path []string) bool {
	for _, k := range known {
		parts := strings.Split(k, ".")
		if len(path) > len(parts) {
			continue
		}
		ok := true
		for i, name := range path {
			ok = ok && (parts[i] == "*" || parts[i] == name)
		}
		if ok {
			return true
		}
	}
	return false
}

// siblings are the names that may stand where the last name of a path stands.
func siblings(path []string) (names []string) {
	n := len(path) - 1
	for _, k := range known {
		parts := strings.Split(k, ".")
		if len(parts) <= n || parts[n] == "*" {
			continue
		}
		ok := true
		for i := range n {
			ok = ok && (parts[i] == "*" || parts[i] == path[i])
		}
		if ok && !slices.Contains(names, parts[n]) {
			names = append(names, parts[n])
		}
	}
	return names
}

// judge says what is wrong with a member, "" when nothing is.
func judge(m member, workspace bool) string {
	last := m.path[len(m.path)-1]
	if slices.Contains(keyNames, strings.ToLower(last)) && !fits(m.path) {
		return fmt.Sprintf("%q: keys are never kept in files: name a variable with key_env, or a program with key_command", m.name())
	}
	// The shortest part that does not fit is what the person got wrong.
	for n := 1; n <= len(m.path); n++ {
		part := m.path[:n]
		if fits(part) {
			continue
		}
		names := siblings(part)
		if near := Nearest(part[n-1], names); near != "" {
			return fmt.Sprintf("unknown member %q: did you mean %s?", strings.Join(part, "."), near)
		}
		if len(names) == 0 {
			return fmt.Sprintf("unknown member %q: %s has no members", strings.Join(part, "."), strings.Join(part[:n-1], "."))
		}
		return fmt.Sprintf("unknown member %q: there are %s", strings.Join(part, "."), strings.Join(names, ", "))
	}
	if workspace && !slices.Contains(workspaceSections, m.path[0]) {
		return fmt.Sprintf("%q cannot be set by the file of a workspace, only [compaction], [limits] and [context] can: put it into your own file", m.name())
	}
	if len(m.path) >= 2 && m.path[0] == "providers" {
		return badProviderName(m.path[1])
	}
	return ""
}
