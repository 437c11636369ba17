package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/exchange/handover"
	"github.com/outcrop-dev/outcrop/exchange/masking"
	"github.com/outcrop-dev/outcrop/exchange/modelview"
	"github.com/outcrop-dev/outcrop/exchange/transcript"
	"github.com/outcrop-dev/outcrop/internal/desk"
	"github.com/outcrop-dev/outcrop/internal/exit"
	"github.com/outcrop-dev/outcrop/internal/records"
	"github.com/outcrop-dev/outcrop/internal/term"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/wire"
)

func (a *app) exportClaudeCode(ctx context.Context, t *desk.Target, to exportTo, o exportOptions) (exported, error) {
	return a.handOver(ctx, t, to, o, handover.ClaudeCode)
}

func (a *app) exportCodex(ctx context.Context, t *desk.Target, to exportTo, o exportOptions) (exported, error) {
	return a.handOver(ctx, t, to, o, handover.Codex)
}

func (a *app) handOver(ctx context.Context, t *desk.Target, to exportTo, o exportOptions,
	write func(context.Context, io.Writer, transcript.Source, handover.Options) (handover.Report, error)) (exported, error) {
	rep, err := write(ctx, to.w, exportSource(t), handover.Options{Options: modelview.Options{Raw: o.Raw, Before: o.Before}})
	if err != nil {
		return exported{}, exit.Unreadable(err)
	}
	done := exported{masked: rep.Masked, tail: rep.Tail, damage: rep.Damage}
	note := func(n int, one, why string) {
		if n > 0 {
			done.notes = append(done.notes, term.Plural(n, one)+" "+why)
		}
	}
	note(rep.Reasoning, "block", "of reasoning left out: only the provider that wrote it takes it back")
	note(rep.Images, "image", "missing in the store: a text stands for it")
	note(rep.Marks, "failed result", "not marked as failed: the text says it")
	if rep.Fallback {
		done.notes = append(done.notes, "the messages of this log carry no surface markers: none are handed over")
	}
	done.notes = append(done.notes, fmt.Sprintf("its place is ~/%s; then: %s", term.Line(rep.Place), rep.Resume))
	return done, nil
}

// exportFormat3 writes the log as later versions of dsh keep it. The surface is
// folded on the way, so the log is held.
func (a *app) exportFormat3(ctx context.Context, t *desk.Target, to exportTo, o exportOptions) (exported, error) {
	sd, err := t.Read(ctx)
	if err != nil {
		return exported{}, err
	}
	defer sd.Close()
	m := masking.Masker{Raw: o.Raw}
	h := m.Header(sd.Header())
	s, err := outcrop.Inspect(h, m.Log(records.Through(ctx, sd.Records(), o.Before-1)), outcrop.Options{})
	if ctx.Err() != nil {
		return exported{}, ctx.Err()
	}
	done := exported{masked: m.Found, damage: store.Located(err, sd)}
	log := s.Log()
	if o.Before > 0 {
		log = outcrop.Prefix(log, int(o.Before))
	} else {
		done.tail = sd.Tail()
	}
	enc := wire.Plain
	if strings.HasSuffix(to.path, "."+string(wire.Zstd)) {
		enc = wire.Zstd
	}
	changes, err := wire.WriteFormat3(to.w, enc, h, log)
	if err != nil {
		return exported{}, exit.With(1, err)
	}
	for _, c := range changes {
		done.notes = append(done.notes, fmt.Sprintf("%s (%s)", c.What, term.Plural(c.Count, "time")))
	}
	done.notes = append(done.notes, "in the folder of its session, dsh looks for it under the name "+"session.v3."+string(enc))
	return done, nil
}
