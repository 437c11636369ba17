package files

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strconv"
)

// pager takes lines out of a text that streams by, whatever its size and the
// length of its lines.
type pager struct {
	first   int // the first line to take, from 1
	limit   int // most lines to take
	budget  int // most bytes to take
	numbers bool

	out   []byte
	taken int  // lines taken
	full  bool // no more is taken, the budget is used up
	cut   int  // bytes of the only line taken that did not fit, as far as seen

	lines   int // lines seen, the last one perhaps in part
	ends    int // line ends seen
	crlf    int // those of them that are CRLF
	ended   bool
	lastCR  bool
	open    bool // the current line has not ended
	taking  bool // the current line is taken
	started int  // where it begins in out
}

// read reads to the end, or only until all is taken when the rest is not asked
// for; ended tells which.
func (p *pager) read(r *bufio.Reader, rest bool) error {
	for {
		if !rest && (p.full || p.taken == p.limit && !p.open) {
			_, err := r.Peek(1)
			p.ended = errors.Is(err, io.EOF)
			if p.ended {
				err = nil
			}
			return err
		}
		piece, err := r.ReadSlice('\n')
		if len(piece) > 0 {
			p.add(piece)
		}
		switch {
		case err == nil, errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF):
			p.ended = true
			return nil
		default:
			return err
		}
	}
}

// add takes the next piece: a line, or a part of one without its end.
func (p *pager) add(piece []byte) {
	begin := !p.open
	if begin {
		p.lines++
		if p.taking = !p.full && p.lines >= p.first && p.taken < p.limit; p.taking {
			p.taken++
			p.started = len(p.out)
			if p.numbers {
				p.out = append(strconv.AppendInt(p.out, int64(p.lines), 10), '\t')
			}
		}
	}
	last := piece[len(piece)-1]
	if p.open = last != '\n'; !p.open {
		p.ends++
		if bytes.HasSuffix(piece, []byte("\r\n")) || len(piece) == 1 && !begin && p.lastCR {
			p.crlf++
		}
	}
	p.lastCR = last == '\r'
	if !p.taking {
		return
	}
	room := max(p.budget-len(p.out), 0)
	switch {
	case p.cut > 0:
		p.cut += len(piece)
	case len(piece) <= room:
		p.out = append(p.out, piece...)
	case p.taken == 1:
		// A line that is too long by itself is shown in part.
		p.out = append(p.out, piece[:room]...)
		p.cut = len(piece) - room
		p.full = true
	default:
		p.out = p.out[:p.started]
		p.taken--
		p.full, p.taking = true, false
	}
}
