package wire

import (
	"bytes"
	"errors"
	"runtime"
	"sync"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
)

// decoded is what one line is by itself, without what stands before it.
type decoded struct {
	what lineKind
	rec  outcrop.Record
	err  error // why it is bad

	looked bool      // it was looked into, for oddities
	odd    *oddities // nil: none
}

type lineKind uint8

const (
	isRecord lineKind = iota
	isBlank
	isBad     // no JSON object, or a bad row
	isTooLong // longer than MaxLine
	isTooDeep
)

// decode decodes a line without its newline. Of a line that is too long only
// the first bytes are there.
func (d *decoded) decode(line []byte, long bool) {
	if len(line) == 0 || line[0] != '{' {
		switch i := jsonwire.Space(line, 0); {
		case i == len(line) && !long:
			d.what = isBlank
			return
		case i < len(line) && line[i] != '{':
			d.what = isBad
			return
		}
	}
	if long {
		d.what = isTooLong
		return
	}
	var err error
	if outcrop.IsRow(line) {
		var run outcrop.Run
		if run, err = outcrop.DecodeRun(line); err == nil {
			d.rec = outcrop.RunRecord(&run)
			return
		}
	} else if d.rec.Event, err = outcrop.DecodeEvent(line); err == nil {
		d.rec.Run = nil
		return
	}
	if d.what, d.err = isBad, err; errors.Is(err, jsonwire.ErrDepth) {
		d.what = isTooDeep
	}
}

// look looks into the line of a record for oddities.
func (d *decoded) look(l *lookout, line []byte) *oddities {
	odd := l.into(line, d.rec.Run != nil && d.rec.Run.Usual())
	if odd == nil || !odd.twice {
		d.rec.MarkDistinct()
	}
	return odd
}

// job is a piece of text and the lines in it. The first line, which may have
// begun earlier, and the last one, which may go on, are left to the parser.
type job struct {
	piece
	lines []jobLine // from the second line on, no more than maxLines
	check bool      // look into them
	look  lookout
	done  chan struct{} // has one element when the lines are decoded
}

type jobLine struct {
	decoded
	end int // where its newline is
}

// maxLines is how many lines of a piece are decoded ahead. Records are longer
// than a piece over this; it bounds the memory that a file of newlines takes.
const maxLines = 16 << 10

func (j *job) decode() {
	j.lines = j.lines[:0]
	at := bytes.IndexByte(j.text, '\n') + 1
	for at > 0 && len(j.lines) < maxLines {
		i := bytes.IndexByte(j.text[at:], '\n')
		if i < 0 {
			return
		}
		end := at + i
		j.lines = append(j.lines, jobLine{end: end})
		line, d := j.text[at:end:end], &j.lines[len(j.lines)-1].decoded
		if d.decode(line, false); j.check && d.what == isRecord {
			d.looked, d.odd = true, d.look(&j.look, line)
		}
		at = end + 1
	}
}

// decodeAll runs a source, decodes what it gives and calls feed with it in
// order, until feed returns false. Unless the text is small, reading and
// decoding go on a few pieces ahead on other goroutines; all of them have ended
// when decodeAll returns. With check each line is looked into too.
func decodeAll(s source, small, check bool, feed func(*job) bool) {
	if small {
		j := job{check: check}
		s.run(func(p piece) bool {
			j.piece = p
			j.decode()
			return feed(&j)
		})
		return
	}
	workers := min(runtime.GOMAXPROCS(0), 4)
	queue := workers + 2 // jobs that there are
	idle := make(chan *job, queue)
	for range cap(idle) {
		idle <- &job{done: make(chan struct{}, 1), check: check}
	}
	work := make(chan *job, queue)
	order := make(chan *job, queue)
	stop := make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		defer close(order)
		defer close(work)
		s.run(func(p piece) bool {
			var j *job
			select {
			case j = <-idle:
			case <-stop:
				return false
			}
			j.piece = p
			work <- j // never blocks: there are no more jobs than room
			order <- j
			return true
		})
	})
	for range workers {
		all.Go(func() {
			for j := range work {
				j.decode()
				j.done <- struct{}{}
			}
		})
	}
	defer all.Wait()
	defer close(stop)
	for j := range order {
		<-j.done
		if !feed(j) {
			return
		}
		idle <- j
	}
}
