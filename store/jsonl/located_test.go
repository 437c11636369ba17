package jsonl

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/store"
)

// Whoever opens or reads a log with an event that breaks a rule hears where it
// stands and what can be done.
func TestTheRefusalOfAStoredEventSaysItsPlace(t *testing.T) {
	const (
		header = `{"type":"session","version":0,"id":"x","createdAt":1,"delegationDepth":0}` + "\n"
		say    = `{"type":"user/message","seq":0,"time":1,"data":{"content":[],"source":{"kind":"user"},"role":"user","id":"p"},"surfaceOp":"append"}` + "\n"
		noOp   = `{"type":"user/message","seq":1,"time":1,"data":{"content":[],"source":{"kind":"user"},"role":"user","id":"q"}}` + "\n"
	)
	for _, c := range []struct {
		name, log string
		line      int
		offset    int64
		hint      string
	}{
		{"a message without marker among others", header + say + noOp, 3, int64(len(header + say)), "verify lists everything"},
		{"a log without any marker has no one place", header + strings.Replace(noOp, `"seq":1`, `"seq":0`, 1), 0, -1, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "session.jsonl")
			if err := os.WriteFile(path, []byte(c.log), 0o600); err != nil {
				t.Fatal(err)
			}
			ctx := context.Background()
			st, err := File(path, Options{})
			if err != nil {
				t.Fatal(err)
			}
			_, openErr := store.Open(ctx, st, "", store.Options{})
			_, _, readErr := store.Inspect(ctx, st, "", outcrop.Options{})
			errs := map[string]error{"open": openErr}
			if c.line > 0 { // what has no markers can be looked at
				errs["read"] = readErr
			} else if readErr != nil {
				t.Errorf("read: %v", readErr)
			}
			for what, err := range errs {
				var e *outcrop.Error
				if !errors.As(err, &e) || e.Code != "SURFACE_MARKER_REQUIRED" || !errors.Is(err, outcrop.ErrRefused) {
					t.Fatalf("%s: %v", what, err)
				}
				if e.Line != c.line || e.Offset != c.offset || c.line > 0 && e.Path != path || !strings.Contains(e.Hint, c.hint) {
					t.Errorf("%s: path %q line %d offset %d hint %q: want line %d offset %d", what, e.Path, e.Line, e.Offset, e.Hint, c.line, c.offset)
				}
			}
		})
	}
}
