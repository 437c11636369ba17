package work

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/internal/term"
	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/llm/script"
	"github.com/outcrop-dev/outcrop/message"
	"github.com/outcrop-dev/outcrop/store"
)

// tellWindow says that nothing is compacted by itself, because nobody knows how
// much the model takes. A script without a window has no limit instead.
func (w *Work) tellWindow(m Model) {
	if m.Window == 0 && w.cfg.Compaction.Auto && m.config.Provider != script.Provider && !w.flags.NoTurn {
		w.a.Note("the window of %s is unknown: nothing is compacted by itself; set its window in the configuration", term.Line(m.Name()))
	}
}

// Unseen says what a person should know when the model takes no images and
// there are some among the blocks: once for each model, else "". It may be
// called from any goroutine.
func (w *Work) Unseen(blocks []message.Block) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	name := w.model.Name()
	if w.model.Images || w.blind == name {
		return ""
	}
	for _, b := range blocks {
		if b.Type == message.ImageBlock {
			w.blind = name
			return term.Line(name) + " takes no images: it is only told that there is one"
		}
	}
	return ""
}

// tellMissing says once which images of the conversation are gone: the model
// gets a text in their place.
func (w *Work) tellMissing(ctx context.Context) {
	if w.toldMissing || !w.model.Images {
		return
	}
	w.toldMissing = true
	objects := store.ObjectsOf(w.store)
	there := map[string]bool{}
	missing, example := 0, ""
	for _, m := range w.Session().Messages() {
		parsed, err := message.Parse(m.Raw)
		if err != nil {
			continue
		}
		for id := range images(parsed.Content) {
			if _, known := there[id]; known {
				continue
			}
			there[id] = false
			if objects != nil {
				_, err := objects.Get(ctx, id)
				there[id] = err == nil
			}
			if ctx.Err() != nil {
				return
			}
			if !there[id] {
				missing, example = missing+1, id
			}
		}
	}
	is := " is"
	switch {
	case missing == 0:
		return
	case missing > 1:
		is = "s are"
	}
	w.a.Note("%d image%s missing in the store (%s): the model is told so", missing, is, term.Cut(term.Line(example), 20))
}

// images yields what the image blocks refer to, those in results too.
func images(blocks []message.Block) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for _, b := range blocks {
			switch b.Type {
			case message.ImageBlock:
				id, _ := jsonwire.Text(jsonwire.Get(b.Attachment, "attachmentId"))
				if !yield(id) {
					return
				}
			case message.ToolResultBlock:
				for id := range images(b.Content) {
					if !yield(id) {
						return
					}
				}
			}
		}
	}
}

// ownTool is offered with every request of this program, and by no other.
const ownTool = "history_read"

// loggedSystem is the system prompt that the session was given with --system,
// "" for none: like its model it goes on until something else is said. Another
// program's prompt speaks of that program's tools, so it does not.
func (w *Work) loggedSystem() string {
	if w.stored == nil {
		return ""
	}
	h, ok := w.stored.RequestHeader()
	if !ok {
		return ""
	}
	_, system, tools, err := llm.ParseHeader(h.Raw)
	if err != nil {
		return ""
	}
	for _, t := range tools {
		if t.Name == ownTool {
			return system
		}
	}
	return ""
}

// Failed is why a turn failed, for people: what the provider said, after how
// many attempts, and the wait that it asked for.
func Failed(f *message.Failure, retries int) string {
	text := f.Message
	if retries > 0 {
		text += fmt.Sprintf(" (after %d attempts)", retries+1)
	}
	if d := time.Duration(f.RetryAfterMs) * time.Millisecond; d >= time.Second {
		text += "; it asks to wait " + span(d)
	}
	return text
}

// span is a time for people, rounded up.
func span(d time.Duration) string {
	for _, unit := range [...]struct {
		of   time.Duration
		name string
	}{{time.Hour, "h"}, {time.Minute, "min"}} {
		if d > 2*unit.of-unit.of/10 {
			return strconv.FormatInt(int64((d+unit.of-1)/unit.of), 10) + " " + unit.name
		}
	}
	return strconv.FormatInt(int64((d+time.Second-1)/time.Second), 10) + " s"
}
