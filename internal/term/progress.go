package term

import (
	"fmt"
	"io"
	"sync"
	"time"
)

const (
	// patience is how long work may take before a person is told how far it is.
	patience = time.Second
	// redraw is the time between two states of the bar.
	redraw = 200 * time.Millisecond
	bar    = 30 // columns
)

// Progress is a bar for long work. It is not drawn before patience is over; nil
// draws nothing. The reading of a file may go on on another goroutine.
type Progress struct {
	w     io.Writer
	clock func() time.Time
	what  string
	total int64
	start time.Time

	mu    sync.Mutex
	far   int64
	drawn time.Time
	shown bool
	ended bool
}

// NewProgress begins a bar on a terminal; total is in bytes.
func NewProgress(w io.Writer, clock func() time.Time, what string, total int64) *Progress {
	now := clock()
	return &Progress{w: w, clock: clock, what: what, total: total, start: now, drawn: now}
}

// At says how many bytes are done.
func (p *Progress) At(done int64) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.far = max(p.far, min(done, p.total))
	now := p.clock()
	if p.ended || p.total <= 0 || now.Sub(p.start) < patience || now.Sub(p.drawn) < redraw {
		return
	}
	p.drawn, p.shown = now, true
	full := int(p.far * bar / p.total)
	fmt.Fprintf(p.w, "\r%s [%-*s] %3d%%", p.what, bar, stars[:full], p.far*100/p.total)
}

const stars = "##############################"

// End takes the bar away. It may be called again.
func (p *Progress) End() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shown {
		fmt.Fprintf(p.w, "\r%*s\r", len(p.what)+bar+8, "")
	}
	p.shown, p.ended = false, true
}

// Reader passes reads on and takes how far they reach for the progress.
func (p *Progress) Reader(r io.ReaderAt) io.ReaderAt {
	if p == nil {
		return r
	}
	return progressReader{r, p}
}

type progressReader struct {
	r io.ReaderAt
	p *Progress
}

// ReadAt implements io.ReaderAt.
func (r progressReader) ReadAt(b []byte, off int64) (int, error) {
	n, err := r.r.ReadAt(b, off)
	r.p.At(off + int64(n))
	return n, err
}
