package cli

import (
	"iter"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/term"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/jsonl"
)

// progress begins a bar on stderr, nil where nobody would see it; total is in
// bytes.
func (a *app) progress(what string, total int64) *term.Progress {
	if a.Flags.Quiet || !a.Env.Terminal(a.Env.Stderr) {
		return nil
	}
	return term.NewProgress(a.ErrOut, a.Env.Now, what, total)
}

// watched passes records of a log file on with a bar for the reading of it.
func (a *app) watched(sd store.Stored, recs iter.Seq2[outcrop.Record, error]) iter.Seq2[outcrop.Record, error] {
	file, ok := sd.(*jsonl.Log)
	if !ok {
		return recs
	}
	p := a.progress("reading", file.Size())
	if p == nil {
		return recs
	}
	return func(yield func(outcrop.Record, error) bool) {
		defer p.End()
		n := 0
		for r, err := range recs {
			if n++; n%32 == 0 {
				p.At(file.Reader().Pos().Offset)
			}
			if !yield(r, err) {
				return
			}
		}
	}
}
