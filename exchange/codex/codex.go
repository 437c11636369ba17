// Package codex reads the rollouts of Codex CLI: files of JSON lines below
// ~/.codex/sessions, one a session, newer ones compressed with zstd:
//
//	sessions/YYYY/MM/DD/rollout-TIME-UUID.jsonl
//	sessions/YYYY/MM/DD/rollout-TIME-UUID.jsonl.zst
//	archived_sessions/rollout-TIME-UUID.jsonl
//
// A line is {timestamp, type, payload}. The types that count are session_meta
// (first; id, cwd, version, what it was forked from), turn_context (model,
// effort), response_item (messages, reasoning, calls and their outputs in the
// shape of OpenAI's Responses API), compacted (a summary and the history that it
// leaves) and event_msg, which repeats much of it for people and has what else
// happened: usage, turns that began, ended or were cut off, turns that were
// taken back.
//
// Older files have no such frame: a first line {id, timestamp, instructions},
// then bare response items, without times. The oldest are one JSON object,
// {session, items}, in a file rollout-*.json.
//
// # What becomes of it
//
// The items that one call of the model gave are one reply: reasoning, text and
// calls up to the first output, or up to its count of tokens. Encrypted
// reasoning is kept with the reply. A fork begins with a copy of the parent's
// lines, all written at one time: these are what the session inherited.
package codex

import (
	"bytes"
	"context"
	"errors"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/outcrop-dev/outcrop/exchange"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
)

// Name is the name of the format.
const Name = "codex"

// Format is the format for an importer.
func Format() exchange.Format {
	return exchange.Format{
		Name: Name, Label: "Codex", Home: []string{".codex/sessions", ".codex/archived_sessions"},
		Claims: Claims, Open: Open,
	}
}

// Open is a file as a source.
func Open(path string) exchange.Source {
	return exchange.Source{Format: Name, Path: path, Sessions: func(ctx context.Context, r *exchange.Report) iter.Seq2[*exchange.Session, error] {
		return Sessions(ctx, path, r)
	}}
}

// Sessions yields the session of a file. r may be nil.
func Sessions(_ context.Context, path string, r *exchange.Report) iter.Seq2[*exchange.Session, error] {
	return func(yield func(*exchange.Session, error) bool) {
		x := &rollout{path: path, file: func() (io.ReadCloser, error) { return os.Open(path) }}
		if fi, err := os.Stat(path); err == nil {
			x.unfinished = r.Unfinished(fi.ModTime())
		}
		yield(x.session())
	}
}

// Read makes the session of a file. open opens it, once for each reading; path
// is what it is called, and its ending says what is in it.
func Read(path string, open func() (io.ReadCloser, error)) (*exchange.Session, error) {
	x := &rollout{path: path, file: open}
	return x.session()
}

// types are the types of framed lines that are known.
var types = map[string]bool{
	"session_meta": true, "response_item": true, "compacted": true, "turn_context": true, "event_msg": true,
}

// Claims reports whether a file is a rollout: its first line says so, or its name
// does and that line cannot be read.
func Claims(path string, head []byte) bool {
	name := filepath.Base(path)
	switch {
	case strings.HasSuffix(name, ".jsonl.zst"):
		z, err := zstd.NewReader(bytes.NewReader(head), zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return false
		}
		defer z.Close()
		text := make([]byte, exchange.HeadBytes)
		n, _ := io.ReadFull(z, text) // the head may end inside a frame
		// What cannot be unpacked at all has only its name: it will be named as
		// damaged.
		return claims(text[:n]) || n == 0 && len(head) > 0 && strings.HasPrefix(name, "rollout-")
	case strings.HasSuffix(name, ".jsonl"):
		head = exchange.TrimMark(head)
		line, _, _ := bytes.Cut(head, []byte{'\n'})
		return claims(head) || strings.HasPrefix(name, "rollout-") && jsonwire.Valid(line) != nil
	case strings.HasSuffix(name, ".json"):
		head = bytes.TrimSpace(head)
		return strings.HasPrefix(name, "rollout-") && bytes.HasPrefix(head, []byte("{")) &&
			bytes.Contains(head, []byte(`"session"`)) && bytes.Contains(head, []byte(`"items"`))
	}
	return false
}

func claims(head []byte) bool {
	head = exchange.TrimMark(head)
	line, _, whole := bytes.Cut(head, []byte{'\n'})
	if jsonwire.Valid(line) != nil {
		// A first line that is longer than the head.
		return !whole && bytes.HasPrefix(line, []byte("{")) && bytes.Contains(line, []byte(`"session_meta"`)) && bytes.Contains(line, []byte(`"payload"`))
	}
	return framed(line) || bareHead(line)
}

// framed reports whether a line is one of the present form.
func framed(line []byte) bool {
	kind, _ := jsonwire.Text(jsonwire.Get(line, "type"))
	return types[kind] && jsonwire.Kind(jsonwire.Get(line, "payload")) == '{'
}

// bareHead reports whether a line is the first one of the older form.
func bareHead(line []byte) bool {
	return jsonwire.Get(line, "type") == nil && jsonwire.Kind(jsonwire.Get(line, "id")) == '"' &&
		jsonwire.Kind(jsonwire.Get(line, "timestamp")) == '"' && jsonwire.Get(line, "messages") == nil
}

// errForeign: the first line is none of a rollout.
var errForeign = errors.New("its first line is none of a rollout")
