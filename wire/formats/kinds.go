package formats

import (
	"bytes"
	"strings"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
)

// kinds is the step from format 4 to 3: a tool result has role tool and its
// content directly; a source is of the kind of its producer; names that format 3
// did not know begin with plugin:. No seq changes.
type kinds struct {
	next stage
}

func (k *kinds) gap(n outcrop.Seq) { k.next.gap(n) }

func (k *kinds) add(e outcrop.Event) (bool, *outcrop.Error) {
	t, data := e.Type, []byte(e.Data)
	switch t {
	case outcrop.TypeUserMessage:
		data = message4(data)
	case typeSystem:
		data = inside(data, "message", func(m []byte) []byte { return messageOf(m, true) })
	case outcrop.TypeAssistantMessage, typeAttempt:
		data = edit(data, func(m member) member {
			switch {
			case m.is("message"):
				m.value = message4(m.value)
			case m.is("stream"):
				m.value = stream4(m.value)
			}
			return m
		})
	case outcrop.TypeToolResult:
		data = inside(data, "message", func(m []byte) []byte { return wrapped(message4(m)) })
	case outcrop.TypeInboxSpliced:
		data = inside(data, "inserted", func(l []byte) []byte { return each(l, message4) })
	case typeTitleRequest:
		data = inside(data, "messages", func(l []byte) []byte { return each(l, message4) })
	case outcrop.TypeCompactionSummary:
		data = inside(inside(data, "summary", content4), "rawOutput", content4)
	case typeDeveloper:
		t, data = injected(data, true)
	default:
		if name, ok := strings.CutPrefix(string(t), pluginPrefix); ok && e.Ignorable && opaque(outcrop.Type(name)) {
			t = outcrop.Type(name)
		}
	}
	if t == e.Type && same(data, e.Data) {
		return k.next.add(e)
	}
	return k.next.add(e.Recast(t, e.Seq, data, e.Sources, e.Op))
}

const pluginPrefix = "plugin:"

// opaque reports whether an event may have a type without anybody taking it for
// one of its own.
func opaque(t outcrop.Type) bool {
	switch t {
	case "", "text-chunks", "reasoning-chunks", "tool-call-chunks", "session", "request/header-delta", "mode/set",
		typeSystem, typeAttempt, typePTC, typePTCStart:
		return false
	}
	return !t.Known()
}

// message4 is a message as format 3 has it, its role and the wrapper of a result
// left aside.
func message4(m []byte) []byte { return messageOf(m, false) }

func messageOf(m []byte, system bool) []byte {
	return edit(m, func(f member) member {
		switch {
		case f.is("source"):
			f.value = source4(f.value, system)
		case f.is("content"):
			f.value = content4(f.value)
		}
		return f
	})
}

// producers are plugins whose name is their kind.
var producers = map[string]bool{
	"agent-instructions": true, "session-reference": true, "team-message": true, "goal": true, "skill-invocation": true,
	"skill-catalog": true, "coordinator": true, "subagent-report": true, "subagent-settled": true, "webhook": true,
	"agent-message": true, "model-selection": true, "plan-mode": true, "time-context": true, "tmux-context": true,
	"user-approval": true, "repeat-tool-reminder": true, "tool-cordis": true, "cordis-host-runner": true, "tool-goal": true,
	"tool-jobs": true, "hooks-codex": true, "hooks-claude-code": true, "schedule": true, "dsh-session-title-llm": true,
}

const systemPlugin = "@deepseek-ai/dsh-system-prompt"

// pluginOf is the plugin that a kind of format 4 stands for.
func pluginOf(kind string, system bool) (string, bool) {
	switch kind {
	case "compact-checkpoint":
		return "compact", true
	case "ptc-mode":
		return "tools-ptc", true
	case "compact-basic":
		return "dsh-compaction-basic", true
	case "system-prompt":
		return systemPlugin, system
	case "runtime-context":
		return systemPlugin, !system
	}
	if producers[kind] {
		return kind, true
	}
	return strings.CutPrefix(kind, pluginPrefix)
}

// source4 is a source as format 3 has it.
func source4(s []byte, system bool) []byte {
	kind, ok := jsonwire.Text(get(s, "kind"))
	if !ok || get(s, "plugin") != nil {
		return s
	}
	plugin, ok := pluginOf(kind, system)
	if !ok {
		return s
	}
	var all []member
	for k, v := range jsonwire.Members(s) {
		if m := (member{name: k, value: v}); m.is("kind") {
			all = append(all, member{name: []byte("kind"), value: []byte(`"plugin"`)},
				member{name: []byte("plugin"), value: jsonwire.AppendString(nil, plugin)})
		} else {
			all = append(all, m)
		}
	}
	return object(all)
}

// content4 takes the prefix from the types of blocks that format 3 did not know.
func content4(l []byte) []byte {
	if !tagged(l) {
		return l
	}
	return each(l, func(b []byte) []byte { return untagged(b, "type") })
}

// tagged reports whether there can be such a type: most texts have none.
func tagged(v []byte) bool { return bytes.Contains(v, []byte(pluginPrefix)) }

func untagged(b []byte, name string) []byte {
	return edit(b, func(m member) member {
		if !m.is(name) {
			return m
		}
		if t, ok := jsonwire.Text(m.value); ok && strings.HasPrefix(t, pluginPrefix) {
			m.value = jsonwire.AppendString(nil, t[len(pluginPrefix):])
		}
		return m
	})
}

// stream4 does the same to the chunks of a stream.
func stream4(l []byte) []byte {
	if !tagged(l) {
		return l
	}
	return each(l, func(entry []byte) []byte {
		if !jsonwire.TextIs(get(entry, "type"), "chunk") {
			return entry
		}
		return inside(entry, "chunk", func(c []byte) []byte {
			return inside(untagged(c, "blockType"), "block", func(b []byte) []byte { return untagged(b, "type") })
		})
	})
}

// wrapped puts the content of a result of role tool into its one block.
func wrapped(m []byte) []byte {
	if !jsonwire.TextIs(get(m, "role"), "tool") {
		return m
	}
	call := get(m, "toolCallId")
	if call == nil {
		call = get(get(m, "source"), "callId")
	}
	block := []byte(`{"type":"tool-result"`)
	if call != nil {
		block = jsonwire.AppendRawMember(block, "toolCallId", call)
	}
	content := get(m, "content")
	if content == nil {
		content = []byte("[]")
	}
	block = jsonwire.AppendRawMember(block, "content", content)
	if v := get(m, "isError"); v != nil {
		block = jsonwire.AppendRawMember(block, "isError", v)
	}
	hasContent := false
	m = edit(m, func(f member) member {
		name := jsonwire.Key(f.name)
		switch name {
		case "role":
			f.value = []byte(`"user"`)
		case "toolCallId", "isError":
			f.gone = true
		default:
			if own, ok := strings.CutPrefix(name, "plugin:result:"); ok {
				var r member
				r.rename(own)
				block = jsonwire.AppendRawMember(block, string(r.name), f.value)
				f.gone = true
			} else if own, ok := strings.CutPrefix(name, "plugin:message:"); ok {
				f.rename(own)
			}
		}
		return f
	})
	block = append(block, '}')
	m = edit(m, func(f member) member {
		if f.is("content") {
			f.value, hasContent = array([][]byte{block}), true
		}
		return f
	})
	if !hasContent {
		m = with(m, "content", array([][]byte{block}))
	}
	return m
}

// injected is a message of another role inside a conversation, as format 0 can
// hold it: what the program tells the model. data is {turn, step, message}.
//
// Changes of tools, which only a developer message has, are no content: they are
// kept in toolChanges. A message without content stays on the surface as one that
// gives nothing.
func injected(data []byte, developer bool) (outcrop.Type, []byte) {
	m := get(data, "message")
	if jsonwire.Kind(m) != '{' {
		return outcrop.TypeContextMessage, data // admission names what is wrong
	}
	if developer {
		m = message4(m)
	}
	var content, changes [][]byte
	for b := range jsonwire.Elements(get(m, "content")) {
		if t, _ := jsonwire.Text(get(b, "type")); developer && (t == "tool-addition" || t == "tool-removal") {
			changes = append(changes, b)
		} else {
			content = append(content, b)
		}
	}
	kind := get(get(m, "source"), "kind")
	if s, ok := jsonwire.Text(kind); !ok || s == "" || s == "user" {
		m = with(m, "source", []byte(`{"kind":"system"}`))
	}
	m = with(with(m, "role", []byte(`"user"`)), "content", array(content))
	if len(changes) > 0 {
		m = with(m, "toolChanges", array(changes))
	}
	if len(content) == 0 {
		return outcrop.TypeContextMessage, m
	}
	return outcrop.TypeUserMessage, m
}
