package jsonl

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/wire"
)

// A session goes on from all of it that is stored, or not at all; a fork, which a
// person asks for, takes the older log.
func TestNobodyGoesOnFromAnOvertakenLog(t *testing.T) {
	v0, h, _ := aged(t, 1, 40, 0, wire.Zstd)
	v3, _, _ := aged(t, 1, 40, 3, wire.Zstd)
	for name, c := range map[string]struct {
		files map[string][]byte
		later string       // "": none
		named string       // the file that a person names, "" for the session
		code  outcrop.Code // of going on
	}{
		"none":                        {map[string][]byte{"session.jsonl.zstd": v0, "session.v3.jsonl.zstd": v3}, "", "", ""},
		"not known, above 0":          {map[string][]byte{"session.jsonl.zstd": v0, "session.v9.jsonl": []byte("?")}, "session.v9.jsonl", "", "NEWER_GENERATION"},
		"not known, above 3":          {map[string][]byte{"session.v3.jsonl.zstd": v3, "session.v12.jsonl": nil, "session.v9.jsonl": nil}, "session.v12.jsonl", "", "NEWER_GENERATION"},
		"not known, above a file":     {map[string][]byte{"session.v3.jsonl.zstd": v3, "session.v9.jsonl": nil}, "session.v9.jsonl", "session.v3.jsonl.zstd", "NEWER_GENERATION"},
		"known, above a file":         {map[string][]byte{"session.jsonl.zstd": v0, "session.v3.jsonl.zstd": v3}, "session.v3.jsonl.zstd", "session.jsonl.zstd", CodeLaterFormat},
		"a file that is no log's":     {map[string][]byte{"kept.jsonl.zstd": v3, "session.v9.jsonl": nil}, "", "kept.jsonl.zstd", ""},
		"a file with an older beside": {map[string][]byte{"session.jsonl.zstd": v0, "session.v3.jsonl.zstd": v3}, "", "session.v3.jsonl.zstd", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := root(t, Options{})
			path, err := s.pathFor(h, wire.Zstd)
			must(t, err)
			dir := filepath.Dir(path)
			must(t, os.MkdirAll(dir, 0o700))
			for name, b := range c.files {
				must(t, os.WriteFile(filepath.Join(dir, name), b, 0o600))
			}
			var st store.Store = s
			if c.named != "" {
				st, err = File(filepath.Join(dir, c.named), Options{})
				must(t, err)
			}
			over := store.Overtaken(bg, st, h.ID)
			var e *outcrop.Error
			switch {
			case c.later == "":
				must(t, over)
			case !errors.As(over, &e) || e.Path != filepath.Join(dir, c.later) || e.Code != c.code || !errors.Is(over, outcrop.ErrReadOnly):
				t.Errorf("overtaken: %v", over)
			}
			dst := root(t, Options{})
			_, err = store.GoOn(bg, dst, st, h.ID, store.Child{ID: "child", CreatedAt: 1})
			if outcrop.CodeOf(err) != c.code || (err == nil) != (c.code == "") {
				t.Errorf("going on: %v", err)
			}
			infos, err := dst.List(bg, store.ListOptions{})
			must(t, err)
			if (len(infos) == 0) != (c.code != "") {
				t.Errorf("%+v", infos)
			}
			if c.named == "" {
				_, err = store.ForkAt(bg, s, h.ID, -1, store.Child{ID: "fork", CreatedAt: 1})
				must(t, err)
			}
		})
	}
}
