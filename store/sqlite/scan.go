package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"io"
)

// stored rows are read in portions, on a goroutine that runs ahead of the one
// that decodes them, and from the driver itself: per row, package database/sql
// costs as much as the decoding does.

// portion is some rows, as lines. The lines lie in blocks that are never written
// again.
type portion struct {
	rows []rowLine
	err  error // why there are no more
}

type rowLine struct {
	seq, count int64
	line       []byte
}

const (
	portionRows  = 256
	firstBlock   = 8 << 10
	largestBlock = 1 << 20
)

// scan reads rows of events and hands them to out, until stop is closed, and
// closes out.
func scan(conn *sql.Conn, session, from, end int64, out chan<- portion, stop <-chan struct{}) {
	defer close(out)
	s := scanner{out: out, stop: stop}
	s.err = conn.Raw(func(c any) error { return s.run(c, session, from, end) })
	s.send()
}

type scanner struct {
	portion
	out   chan<- portion
	stop  <-chan struct{}
	block []byte
	size  int
}

// run reads the rows from a connection of the driver.
func (s *scanner) run(c any, session, from, end int64) error {
	q, ok := c.(driver.QueryerContext)
	if !ok {
		return fmt.Errorf("a connection of the driver is a %T", c)
	}
	rows, err := q.QueryContext(context.Background(), selectEvents, []driver.NamedValue{{Ordinal: 1, Value: session}, {Ordinal: 2, Value: from}, {Ordinal: 3, Value: end}})
	if err != nil {
		return err
	}
	defer rows.Close()
	vals := make([]driver.Value, len(rows.Columns()))
	for {
		switch err := rows.Next(vals); {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
		if err := s.add(vals); err != nil {
			return err
		}
		if len(s.rows) == portionRows && !s.send() {
			return nil
		}
	}
}

// add appends a row. The columns are those of selectEvents.
func (s *scanner) add(vals []driver.Value) error {
	var r row
	var bad bool
	number := func(v driver.Value) int64 {
		n, ok := v.(int64)
		bad = bad || !ok
		return n
	}
	span := func(v driver.Value) []byte {
		switch v := v.(type) {
		case nil:
			return nil
		case []byte:
			return v
		case string:
			return []byte(v)
		}
		bad = true
		return nil
	}
	r.seq, r.count, r.time = number(vals[0]), number(vals[1]), number(vals[3])
	typ, ok := vals[2].(string)
	r.typ, bad = typ, bad || !ok
	if r.data = span(vals[4]); r.data == nil {
		r.data = []byte{}
	}
	r.sources, r.op, r.line = span(vals[5]), span(vals[6]), span(vals[8])
	r.ignorable = vals[7] != nil
	if bad {
		return fmt.Errorf("a row has a column of another type than the schema says")
	}
	const envelope = 128
	need := len(r.data) + len(r.sources) + len(r.op) + len(r.line) + 6*len(r.typ) + envelope
	if cap(s.block)-len(s.block) < need {
		s.size = min(max(2*s.size, firstBlock), largestBlock)
		s.block = make([]byte, 0, max(s.size, need))
	}
	n := len(s.block)
	s.block = r.appendLine(s.block)
	s.rows = append(s.rows, rowLine{r.seq, r.count, s.block[n:len(s.block):len(s.block)]})
	return nil
}

// send hands the rows so far on, and reports whether more are wanted.
func (s *scanner) send() bool {
	select {
	case s.out <- s.portion:
		s.portion = portion{rows: make([]rowLine, 0, portionRows)}
		return true
	case <-s.stop:
		return false
	}
}
