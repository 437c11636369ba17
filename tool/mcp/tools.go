package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/tool"
)

const (
	maxSchema      = 128 << 10 // bytes
	maxDescription = 8 << 10
)

// remote is one tool of a server.
type remote struct {
	server      *server
	tool        string // as the server calls it
	name        string
	description string
	schema      json.RawMessage
	readOnly    bool
}

// offered makes the tools of all servers, sorted by name.
func offered(servers []*server, log *slog.Logger) []tool.Tool {
	var all []*remote
	var origins []origin
	for _, s := range servers {
		seen := map[string]bool{}
		for _, t := range s.listed {
			r, err := s.remote(t)
			if err == nil && seen[t.Name] {
				err = errors.New("it is listed twice")
			}
			if err != nil {
				log.Warn("a tool of an mcp server is left out", "server", s.Name, "tool", clip(printable(t.Name), 100), "err", err)
				continue
			}
			seen[t.Name] = true
			all = append(all, r)
			origins = append(origins, origin{s.Name, t.Name})
		}
	}
	names := mapNames(origins)
	for i, r := range all {
		r.name = names[origins[i]]
	}
	slices.SortFunc(all, func(a, b *remote) int {
		return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.server.Name, b.server.Name), cmp.Compare(a.tool, b.tool))
	})
	out := make([]tool.Tool, 0, len(all))
	for i, r := range all {
		if i > 0 && r.name == all[i-1].name {
			log.Warn("a tool of an mcp server is left out", "server", r.server.Name, "tool", r.name, "err", "another has its name")
			continue
		}
		out = append(out, r)
	}
	return out
}

// remote checks a tool as a server listed it.
func (s *server) remote(t *sdk.Tool) (*remote, error) {
	if t.Name == "" {
		return nil, errors.New("it has no name")
	}
	schema, err := schemaOf(t.InputSchema)
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	text := strings.TrimSpace(llm.Clean(t.Description))
	if text == "" {
		text = strings.TrimSpace(llm.Clean(t.Title))
	}
	if text == "" {
		text = fmt.Sprintf("The tool %s of the MCP server %s.", llm.Clean(clip(t.Name, 100)), llm.Clean(s.Name))
	}
	return &remote{
		server: s, tool: t.Name, description: cutText(text, maxDescription), schema: schema,
		readOnly: t.Annotations != nil && t.Annotations.ReadOnlyHint,
	}, nil
}

// schemaOf is the text of a schema that the registry takes and every provider
// too.
func schemaOf(v any) (json.RawMessage, error) {
	if hasNUL(v) {
		return nil, errors.New("it holds a NUL character")
	}
	text, err := jsonwire.Marshal(v)
	if err != nil {
		return nil, err
	}
	if len(text) > maxSchema {
		return nil, fmt.Errorf("it has %d bytes, more than %d", len(text), maxSchema)
	}
	if jsonwire.Kind(text) != '{' || !jsonwire.TextIs(jsonwire.Get(text, "type"), "object") {
		return nil, errors.New("the root must be of type object")
	}
	if err := jsonwire.Strict(text); err != nil {
		return nil, err
	}
	var schema jsonschema.Schema
	if err := schema.UnmarshalJSON(text); err != nil {
		return nil, err
	}
	if _, err := schema.Resolve(nil); err != nil {
		return nil, err
	}
	return text, nil
}

// hasNUL looks for a character that no provider takes in the text of JSON.
func hasNUL(v any) bool {
	switch v := v.(type) {
	case string:
		return strings.ContainsRune(v, 0)
	case []any:
		return slices.ContainsFunc(v, hasNUL)
	case map[string]any:
		for k, e := range v {
			if hasNUL(k) || hasNUL(e) {
				return true
			}
		}
	}
	return false
}

// cutText cuts a text after n bytes, between characters.
func cutText(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + " [...]"
}

func (r *remote) Name() string            { return r.name }
func (r *remote) Description() string     { return r.description }
func (r *remote) Schema() json.RawMessage { return r.schema }
func (r *remote) Parallel() bool          { return r.readOnly }

// Class implements tool.Tool. A hint counts only from a server that the user
// trusts.
func (r *remote) Class() tool.Class {
	if r.readOnly && r.server.Trust {
		return tool.Read
	}
	return tool.MCP
}

// Run implements tool.Tool.
func (r *remote) Run(ctx context.Context, call tool.Call) (tool.Result, error) {
	res, err := r.server.call(ctx, r.tool, call)
	if err != nil {
		return tool.Result{}, err
	}
	return r.server.result(ctx, res), nil
}
