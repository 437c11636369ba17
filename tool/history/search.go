package history

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/tool"
)

type searchArgs struct {
	Query string `json:"query" jsonschema:"words and \"quoted phrases\" that must all be there"`
	Role  Role   `json:"role,omitempty" jsonschema:"whose words: user, assistant or tool; default all"`
	Limit int    `json:"limit,omitempty" jsonschema:"most hits, default 20, at most 100"`
}

const (
	hitsUsual = 20
	hitsMost  = 100
)

func search(ctx context.Context, o Options, args searchArgs) (tool.Result, error) {
	switch {
	case len(terms(args.Query)) == 0:
		return tool.Result{}, tool.InvalidArgs("query is empty")
	case !slices.Contains([]Role{"", User, Assistant, Result}, args.Role):
		return tool.Result{}, tool.InvalidArgs(fmt.Sprintf("role %q: it is user, assistant or tool", llm.Clean(string(args.Role))))
	case args.Limit < 0:
		return tool.Result{}, tool.InvalidArgs("limit is below 0")
	case args.Limit == 0:
		args.Limit = hitsUsual
	}
	hits, more, err := o.Searcher.Search(ctx, Query{Text: args.Query, Role: args.Role, Limit: min(args.Limit, hitsMost)})
	if err != nil {
		return tool.Result{}, err
	}
	if len(hits) == 0 {
		return tool.Text("nothing found"), nil
	}
	log, shown := o.Session.Log(), o.Session.Surface().Nodes()
	on := make(map[int64]bool, len(shown))
	for _, seq := range shown {
		on[int64(seq)] = true
	}
	var b strings.Builder
	for i, h := range hits {
		if i > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "%d", h.Seq)
		if h.Seq >= 0 && int(h.Seq) < log.Len() {
			ev := log.At(h.Seq)
			if m, ok := messageOf(ev); ok {
				b.WriteString(" " + who(ev, m, callName(log, ev)))
			}
		}
		if !on[int64(h.Seq)] {
			b.WriteString(" (no longer shown)")
		}
		b.WriteString(": " + h.Snippet)
	}
	if more {
		b.WriteString("\n... and more: narrow the query, or raise limit")
	}
	return tool.Text(b.String()), nil
}
