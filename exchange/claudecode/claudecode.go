// Package claudecode reads the sessions that Claude Code keeps, as files of
// JSON lines below ~/.claude/projects (or projects in $CLAUDE_CONFIG_DIR):
//
//	PROJECT/UUID.jsonl                       a session
//	PROJECT/UUID/subagents/agent-ID.jsonl    a sub-agent's session
//	PROJECT/agent-ID.jsonl                   likewise, as older versions have it
//
// The format is not documented by its maker and changes from version to
// version. What is known of it: each line is an object with a type. Lines of
// the types user, assistant, system, attachment and progress have a uuid and the
// uuid of the line that they follow, parentUuid, so that they form a tree;
// message holds a message in the shape of the Messages API. A reply is written
// as several lines, one a block, with the same message.id. Lines of other types
// belong to no place: titles, snapshots of files, queues.
//
// # What becomes of it
//
// The conversation is the path from the root of the tree to its last message.
// Where a person went back and took another way, the other way is a session of
// its own that begins with the events that both share. Calls that ran side by
// side look like branches and are none. Sidechains inside a file and files of
// sub-agents are sessions with the origin subagent.
//
// A system line of the subtype compact_boundary and the summary behind it
// become a compaction; so does a summary alone, as older versions have it.
// Messages that the summary left standing (preservedSegment) stay on the
// surface. isMeta messages and attachments become context messages.
//
// A file is read twice: once for an index of its lines (about 150 bytes a
// line), then in the order of the conversation. It may be appended to
// meanwhile; what is not in the index is not read.
package claudecode

import (
	"bytes"
	"context"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strings"

	"github.com/outcrop-dev/outcrop/exchange"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
)

// Name is the name of the format.
const Name = "claude-code"

// Format is the format for an importer.
func Format() exchange.Format {
	return exchange.Format{
		Name: Name, Label: "Claude Code", Home: []string{".claude/projects"},
		Claims: Claims, Open: Open,
	}
}

// Open is a file as a source.
func Open(path string) exchange.Source {
	return exchange.Source{Format: Name, Path: path, Sessions: func(ctx context.Context, r *exchange.Report) iter.Seq2[*exchange.Session, error] {
		return Sessions(ctx, path, r)
	}}
}

// Sessions yields the sessions in a file: the conversation, then the ways that
// were left, then sidechains. r hears of what belongs to none of them; it may
// be nil.
func Sessions(ctx context.Context, path string, r *exchange.Report) iter.Seq2[*exchange.Session, error] {
	return func(yield func(*exchange.Session, error) bool) {
		f, err := os.Open(path)
		if err != nil {
			yield(nil, err)
			return
		}
		defer f.Close()
		unfinished := false
		if fi, err := f.Stat(); err == nil {
			unfinished = r.Unfinished(fi.ModTime())
		}
		read(ctx, f, path, r, unfinished, yield)
	}
}

// Read is Sessions for a file that is open, or is in memory; path is what it is
// called. It is read more than once, never beyond the end that it has when the
// first reading comes there.
func Read(ctx context.Context, f io.ReaderAt, path string, r *exchange.Report) iter.Seq2[*exchange.Session, error] {
	return func(yield func(*exchange.Session, error) bool) { read(ctx, f, path, r, false, yield) }
}

func read(ctx context.Context, f io.ReaderAt, path string, r *exchange.Report, unfinished bool, yield func(*exchange.Session, error) bool) {
	x, err := readIndex(ctx, f, path, r)
	if err != nil {
		yield(nil, err)
		return
	}
	for k, t := range x.threads() {
		s := x.sessionOf(t)
		if k == 0 && unfinished {
			s.Unfinished = true
			if x.leaveLast(t) {
				r.Dropped("reply", "it may not be complete yet: it is left for the next import", 0)
			}
		}
		if !yield(s, nil) {
			return
		}
	}
}

// types are the types of lines by which a file is known.
var types = map[string]bool{
	"user": true, "assistant": true, "system": true, "summary": true, "attachment": true, "progress": true,
	"file-history-snapshot": true, "queue-operation": true, "custom-title": true, "ai-title": true, "agent-name": true,
	"last-prompt": true, "mode": true, "permission-mode": true, "tag": true, "pr-link": true, "worktree-state": true,
}

// Claims reports whether a file is one of Claude Code's: its first lines have
// the members that only it writes, or it has the name of a session and its first
// line cannot be read.
func Claims(path string, head []byte) bool {
	if !strings.HasSuffix(path, ".jsonl") {
		return false
	}
	head = exchange.TrimMark(head)
	for n := 0; n < 20 && len(head) > 0; n++ {
		line, rest, whole := bytes.Cut(head, []byte{'\n'})
		head = rest
		line = bytes.TrimSpace(line)
		if len(line) == 0 {
			continue
		}
		if !whole && jsonwire.Valid(line) != nil {
			// A first line that is longer than what is here.
			if bytes.HasPrefix(line, []byte("{")) && bytes.Contains(line, []byte(`"parentUuid":`)) && !bytes.Contains(line, []byte(`"payload":`)) {
				return true
			}
		}
		if jsonwire.Valid(line) != nil {
			// Its name alone says whose it is: it will be named as damaged.
			return sessionName(stem(path))
		}
		kind, _ := jsonwire.Text(jsonwire.Get(line, "type"))
		if !types[kind] {
			return false
		}
		has := func(name string) bool { return jsonwire.Get(line, name) != nil }
		switch {
		case has("payload"):
			return false
		case has("parentUuid") && has("uuid"), has("leafUuid"), kind == "file-history-snapshot" && has("messageId"),
			kind == "queue-operation" && has("operation"), has("sessionId"):
			return true
		}
	}
	return false
}

// sessionName reports whether a file is named as the program names sessions.
func sessionName(name string) bool {
	if strings.HasPrefix(name, "agent-") {
		return true
	}
	_, plain := keyPlain(name)
	return plain
}

// stem is the name of a file without its ending.
func stem(path string) string {
	return strings.TrimSuffix(filepath.Base(path), ".jsonl")
}
