package stream

import (
	"errors"
	"net/url"
	"strconv"
	"strings"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/viewer/internal/folded"
	"github.com/outcrop-dev/outcrop/viewer/internal/opened"
)

// Mark is a place in a log: session, how many writers took it up, replaces so
// far, an event, and a check of it.
type Mark struct {
	id                string
	epoch, generation int
	seq               outcrop.Seq
	check             uint32
}

// CursorOf is the mark at the end of what is known of a log.
func CursorOf(id string, x *folded.Index, log outcrop.Log) string {
	m := MarkOf(id, x, log, x.Len()-1)
	return m.String()
}

// MarkOf is the mark of an event.
func MarkOf(id string, x *folded.Index, log outcrop.Log, seq outcrop.Seq) Mark {
	return Mark{id, x.EpochAt(seq), x.GenerationAt(seq), seq, opened.Check(log, seq)}
}

func (m Mark) String() string {
	b := []byte(url.PathEscape(m.id))
	for _, n := range [...]int64{int64(m.epoch), int64(m.generation), int64(m.seq)} {
		b = strconv.AppendInt(append(b, '.'), n, 10)
	}
	return string(strconv.AppendUint(append(b, '.'), uint64(m.check), 16))
}

// ParseMark reads a mark.
func ParseMark(text string) (m Mark, ok bool) {
	parts := strings.Split(text, ".")
	if len(parts) < 5 {
		return m, false
	}
	k := len(parts) - 4
	id, err := url.PathUnescape(strings.Join(parts[:k], "."))
	var ns [3]int64
	for i := range ns {
		n, e := strconv.ParseInt(parts[k+i], 10, 64)
		ns[i] = n
		err = errors.Join(err, e)
	}
	check, e := strconv.ParseUint(parts[k+3], 16, 32)
	if errors.Join(err, e) != nil || ns[2] < -1 {
		return m, false
	}
	return Mark{id, int(ns[0]), int(ns[1]), outcrop.Seq(ns[2]), uint32(check)}, true
}

// holds reports whether a log has, where a mark stands, what it had when the
// mark was made.
func (m Mark) holds(x *folded.Index, log outcrop.Log) bool {
	return m.seq < x.Len() && m == MarkOf(m.id, x, log, m.seq)
}
