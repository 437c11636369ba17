package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2/unstable"
)

// kind is what a member may be.
type kind string

const (
	text   kind = "a text"
	yesNo  kind = "true or false"
	whole  kind = "a whole number"
	number kind = "a number"
	texts  kind = "a list of texts"
	table  kind = "a table"
)

// known are all members that a file may have. A star stands for a name that the
// person chooses.
var known = []struct {
	path string
	kind kind
}{
	{"model", text}, {"approve", text},
	{"providers.*.kind", text}, {"providers.*.base_url", text}, {"providers.*.key_env", text}, {"providers.*.key_command", texts},
	{"providers.*.quirks.reasoning", text}, {"providers.*.quirks.max_tokens", text}, {"providers.*.quirks.alternate_roles", yesNo},
	{"providers.*.quirks.system_role", text}, {"providers.*.quirks.stream_usage", yesNo},
	{"providers.*.models.*.window", whole}, {"providers.*.models.*.max_output", whole}, {"providers.*.models.*.images", yesNo},
	{"providers.*.models.*.price.input", whole}, {"providers.*.models.*.price.cache_read", whole},
	{"providers.*.models.*.price.cache_write", whole}, {"providers.*.models.*.price.output", whole},
	{"compaction.auto", yesNo}, {"compaction.ratio", number}, {"compaction.keep", number}, {"compaction.policy", text}, {"compaction.model", text},
	{"limits.steps", whole}, {"limits.cost_usd", number},
	{"retention.archive_after", whole}, {"retention.trash_after", whole}, {"retention.purge_after", whole},
	{"nats.creds", text}, {"nats.nkey", text}, {"nats.token_env", text}, {"nats.user", text}, {"nats.password_env", text},
	{"nats.ca", text}, {"nats.cert", text}, {"nats.key", text},
	{"nats.system_creds", text}, {"nats.system_user", text}, {"nats.system_password_env", text},
	{"context", table},
	{"mcp.*.command", texts}, {"mcp.*.url", text}, {"mcp.*.key_env", text}, {"mcp.*.key_command", texts}, {"mcp.*.key_header", text}, {"mcp.*.trust", yesNo},
}

// workspaceSections are what the file of a workspace may set.
var workspaceSections = []string{"compaction", "limits", "context"}

// keyNames are members that somebody would put a key in.
var keyNames = []string{"key", "api_key", "apikey", "api-key", "token", "secret"}

// member is one member of a file.
type member struct {
	path []string
	line int
	is   func(kind) bool
}

func (m member) name() string { return strings.Join(m.path, ".") }

// members lists the members of a file with their lines, tables included.
func members(text []byte) (out []member, err error) {
	p := &unstable.Parser{}
	p.Reset(text)
	var section []string
	for p.NextExpression() {
		e := p.Expression()
		switch e.Kind {
		case unstable.Table, unstable.ArrayTable:
			path, line := keyOf(p, e)
			section = path
			list := e.Kind == unstable.ArrayTable
			out = append(out, member{path, line, func(k kind) bool { return k == table && !list }})
		case unstable.KeyValue:
			out = keyValue(p, e, section, out)
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
func keyValue(p *unstable.Parser, n *unstable.Node, section []string, out []member) []member {
	path, line := keyOf(p, n)
	path = append(slices.Clone(section), path...)
	v := n.Value()
	out = append(out, member{path, line, kindsOf(v)})
	if v.Kind == unstable.InlineTable {
		it := v.Children()
		for it.Next() {
			out = keyValue(p, it.Node(), path, out)
		}
	}
	return out
}

// kindsOf tells what a value may be taken for. The node is looked at now: the
// parser uses it again.
func kindsOf(v *unstable.Node) func(kind) bool {
	is := v.Kind
	only := true // a list of nothing but texts
	if is == unstable.Array {
		for it := v.Children(); it.Next(); {
			only = only && it.Node().Kind == unstable.String
		}
	}
	return func(k kind) bool {
		switch k {
		case text:
			return is == unstable.String
		case yesNo:
			return is == unstable.Bool
		case whole:
			return is == unstable.Integer
		case number:
			return is == unstable.Integer || is == unstable.Float
		case texts:
			return is == unstable.Array && only
		}
		return is == unstable.InlineTable
	}
}

// fits reports how a path stands to the known members: as one of them, with its
// kind, or the beginning of one, which is a table.
func fits(path []string) (want kind, ok bool) {
	for _, k := range known {
		parts := strings.Split(k.path, ".")
		if len(path) > len(parts) {
			continue
		}
		ok := true
		for i, name := range path {
			ok = ok && (parts[i] == "*" || parts[i] == name)
		}
		switch {
		case ok && len(path) == len(parts):
			return k.kind, true
		case ok:
			return table, true
		}
	}
	return "", false
}

// siblings are the names that may stand where the last name of a path stands.
func siblings(path []string) (names []string) {
	n := len(path) - 1
	for _, k := range known {
		parts := strings.Split(k.path, ".")
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
	want, ok := fits(m.path)
	if slices.Contains(keyNames, strings.ToLower(last)) && !ok {
		return fmt.Sprintf("%q: keys are never kept in files: name a variable with key_env, or a program with key_command", m.name())
	}
	// The shortest part that does not fit is what the person got wrong.
	for n := 1; n <= len(m.path); n++ {
		part := m.path[:n]
		if _, ok := fits(part); ok {
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
	if workspace && m.name() == "compaction.model" {
		return `"compaction.model" cannot be set by the file of a workspace, it would send the conversation to another provider: put it into your own file`
	}
	if len(m.path) >= 2 && m.path[0] == "providers" {
		if msg := badProviderName(m.path[1]); msg != "" {
			return msg
		}
	}
	if !m.is(want) {
		return m.name() + " must be " + string(want)
	}
	return ""
}
