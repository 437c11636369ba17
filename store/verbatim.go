package store

import (
	"context"
	"io"

	"github.com/outcrop-dev/outcrop"
)

// BytesPutter is a store that keeps logs as files and can take the bytes of one
// as they are, frames and all, where Put would store the same events in frames
// of its own.
type BytesPutter interface {
	// PutBytes publishes a log, as Put does: all of it or nothing, durable on
	// return. r gives its file, ending names the encoding as the ending of a log
	// file does (jsonl, jsonl.zstd). Before it is published it is read back: its
	// header line is h's, it is whole, and its events have this digest (see
	// Digest). taken is false, with nothing read, when the store keeps its logs
	// in another encoding.
	PutBytes(ctx context.Context, h outcrop.Header, ending string, r io.Reader, digest string) (taken bool, err error)
}
