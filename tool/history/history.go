// Package history gives a model its own past back: two tools that read the log
// of the session they run in. What an edit of the surface took out of the
// model's sight (compaction, pruning, rewind) is still there, and the texts that
// stand in its place name the seqs.
//
//	history_read(seq, from, to)   the text of one event, or a part of it
//	history_search(query, ...)    where something was said
//
// Both read only, may run at the same time as others, and see the log as it is
// when they are called. Seqs are those of the log, offsets count characters
// (code points).
//
// history_search asks a [Searcher]. [Scan] is the one that needs nothing: it
// goes over the log. An index can stand in its place.
package history

import (
	"context"
	"fmt"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/tool"
)

// The names of the tools.
const (
	ReadName   = "history_read"
	SearchName = "history_search"
)

// Options of the tools. Session is needed.
type Options struct {
	// Session is the one whose past is read.
	Session *outcrop.Session
	// Searcher finds text in it; nil: Scan over its log.
	Searcher Searcher
}

// Searcher finds text in one session. It is asked from many goroutines.
type Searcher interface {
	// Search returns hits, newest first, at most q.Limit of them, and whether
	// there are more.
	Search(ctx context.Context, q Query) (hits []Hit, more bool, err error)
}

// Query is what is looked for.
type Query struct {
	// Text is words and "quoted phrases"; each must be there, in any case.
	Text  string
	Role  Role // "" is any
	Limit int  // most hits; 0: no limit
}

// Role says whose words are searched.
type Role string

const (
	User      Role = "user"      // what people wrote, contexts and checkpoints included
	Assistant Role = "assistant" // what the model wrote, reasoning and calls included
	Result    Role = "tool"      // what tools gave
)

// Hit is an event that holds all that was looked for.
type Hit struct {
	Seq     outcrop.Seq
	Snippet string // one line around the first place
}

// Tools makes history_read and history_search.
func Tools(o Options) ([]tool.Tool, error) {
	if o.Session == nil {
		return nil, fmt.Errorf("history tools: a session is needed")
	}
	if o.Searcher == nil {
		o.Searcher = Scan{Log: o.Session.Log}
	}
	read, err := tool.Define(tool.Spec[readArgs]{
		Name: ReadName, Class: tool.Read, Parallel: true,
		Description: "Read an earlier event of this session in full by its seq, also one that is no longer shown: " +
			"a tool result that was cut, a message that a summary stands for. Texts that stand in for something name the seq. " +
			"from and to choose a part of a long text, in characters.",
		Run: func(ctx context.Context, _ tool.Call, args readArgs) (tool.Result, error) {
			return read(ctx, o.Session, args)
		},
	})
	if err != nil {
		return nil, err
	}
	search, err := tool.Define(tool.Spec[searchArgs]{
		Name: SearchName, Class: tool.Read, Parallel: true,
		Description: "Search everything that was said in this session, also what is no longer shown. " +
			"All words and \"quoted phrases\" of the query must be in an event; upper and lower case are the same. " +
			"Gives seqs, newest first; history_read reads one.",
		Run: func(ctx context.Context, _ tool.Call, args searchArgs) (tool.Result, error) {
			return search(ctx, o, args)
		},
	})
	if err != nil {
		return nil, err
	}
	return []tool.Tool{read, search}, nil
}
