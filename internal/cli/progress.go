package cli

import (
	"fmt"
	"io"
	"iter"
	"sync"
	"time"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/jsonl"
)

const (
	// patience is how long work may take before a person is told how far it is.
	patience = time.Second
	// redraw is the time between two states of the bar.
	redraw = 200 * time.Millisecond
	bar    = 30 // columns
)

// progress is a bar on stderr for long work. It is drawn on a terminal only,
// and not before patience is over; nil draws nothing. The reading of a file may
// go on on another goroutine.
type progress struct {
	a     *app
	what  string
	total int64
	start time.Time

	mu    sync.Mutex
	far   int64
	drawn time.Time
	shown bool
	ended bool
}

// progress begins a bar; total is in bytes.
func (a *app) progress(what string, total int64) *progress {
	if a.flags.quiet || !a.env.Terminal(a.env.Stderr) {
		return nil
	}
	now := a.env.Now()
	return &progress{a: a, what: what, total: total, start: now, drawn: now}
}

// at says how many bytes are done.
func (p *progress) at(done int64) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.far = max(p.far, min(done, p.total))
	now := p.a.env.Now()
	if p.ended || p.total <= 0 || now.Sub(p.start) < patience || now.Sub(p.drawn) < redraw {
		return
	}
	p.drawn, p.shown = now, true
	full := int(p.far * bar / p.total)
	fmt.Fprintf(p.a.errOut, "\r%s [%-*s] %3d%%", p.what, bar, stars[:full], p.far*100/p.total)
}

const stars = "##############################"

// end takes the bar away. It may be called again.
func (p *progress) end() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shown {
		fmt.Fprintf(p.a.errOut, "\r%*s\r", len(p.what)+bar+8, "")
	}
	p.shown, p.ended = false, true
}

// reader passes reads on and takes how far they reach for the progress.
func (p *progress) reader(r io.ReaderAt) io.ReaderAt {
	if p == nil {
		return r
	}
	return progressReader{r, p}
}

type progressReader struct {
	r io.ReaderAt
	p *progress
}

func (r progressReader) ReadAt(b []byte, off int64) (int, error) {
	n, err := r.r.ReadAt(b, off)
	r.p.at(off + int64(n))
	return n, err
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
		defer p.end()
		n := 0
		for r, err := range recs {
			if n++; n%32 == 0 {
				p.at(file.Reader().Pos().Offset)
			}
			if !yield(r, err) {
				return
			}
		}
	}
}
