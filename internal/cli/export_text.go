package cli

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/outcrop-dev/outcrop/exchange/html"
	"github.com/outcrop-dev/outcrop/exchange/lines"
	"github.com/outcrop-dev/outcrop/exchange/markdown"
	"github.com/outcrop-dev/outcrop/exchange/scripts"
	"github.com/outcrop-dev/outcrop/exchange/transcript"
	"github.com/outcrop-dev/outcrop/internal/desk"
	"github.com/outcrop-dev/outcrop/internal/exit"
)

// exportSource is a target as the exporters read it.
func exportSource(t *desk.Target) transcript.Source { return transcript.Stored(t.Store, t.ID) }

// documentDone is what an export of a document did.
func documentDone(t *transcript.Transcript) exported {
	return exported{masked: t.Masked(), tail: t.Tail, damage: t.Damage}
}

// exportMarkdown writes images as files beside a file, and as data to stdout.
func (a *app) exportMarkdown(ctx context.Context, t *desk.Target, to exportTo, o exportOptions) (exported, error) {
	mo := markdown.Options{Options: o.Options}
	var beside []string
	if to.path != "" {
		folder := strings.TrimSuffix(to.path, filepath.Ext(to.path)) + "-files"
		written := map[string]bool{}
		mo.Image = func(name string, b []byte) (string, error) {
			link := filepath.Base(folder) + "/" + name
			if written[name] {
				return link, nil
			}
			written[name] = true
			if err := os.MkdirAll(folder, 0o700); err != nil {
				return "", exit.With(1, err)
			}
			path := filepath.Join(folder, name)
			beside = append(beside, path)
			if old, err := os.ReadFile(path); err == nil && string(old) == string(b) {
				return link, nil
			}
			f, err := createFile(path, true)
			if err != nil {
				return "", err
			}
			defer f.drop()
			if _, err := f.Write(b); err != nil {
				return "", exit.With(1, err)
			}
			return link, f.publish()
		}
	}
	doc, err := markdown.Write(ctx, to.w, exportSource(t), mo)
	if err != nil {
		return exported{}, exit.Unreadable(err)
	}
	done := documentDone(doc)
	done.beside = beside
	return done, nil
}

func (a *app) exportHTML(ctx context.Context, t *desk.Target, to exportTo, o exportOptions) (exported, error) {
	doc, err := html.Write(ctx, to.w, exportSource(t), html.Options{Options: o.Options})
	if err != nil {
		return exported{}, exit.Unreadable(err)
	}
	return documentDone(doc), nil
}

func (a *app) exportLines(ctx context.Context, t *desk.Target, to exportTo, o exportOptions) (exported, error) {
	rep, err := lines.Write(ctx, to.w, exportSource(t), lines.Options{Raw: o.Raw, Before: o.Before})
	if err != nil {
		return exported{}, exit.Unreadable(err)
	}
	return exported{masked: rep.Masked, tail: rep.Tail, damage: rep.Damage}, nil
}

func (a *app) exportScript(ctx context.Context, t *desk.Target, to exportTo, o exportOptions) (exported, error) {
	rep, err := scripts.Write(ctx, to.w, exportSource(t), scripts.Options{Raw: o.Raw, Before: o.Before})
	if err != nil {
		return exported{}, exit.Unreadable(err)
	}
	done := exported{masked: rep.Masked, tail: rep.Tail, damage: rep.Damage}
	if rep.Replies == 0 {
		done.notes = append(done.notes, "the log shows no reply of a model: the script is empty")
	}
	return done, nil
}
