package cli

import (
	"io"
	"strconv"

	"github.com/outcrop-dev/outcrop/internal/jsonwire"
)

// answer builds one JSON object of an answer, members in the order in which
// they are added.
type answer struct{ b []byte }

// newAnswer begins an object with "schema":1.
func newAnswer() *answer { return &answer{append([]byte{}, `{"schema":1`...)} }

// object begins an object that stands inside an answer.
func object() *answer { return &answer{[]byte{'{'}} }

func (o *answer) raw(name string, v []byte) *answer {
	o.b = jsonwire.AppendRawMember(o.b, name, v)
	return o
}

func (o *answer) text(name, v string) *answer {
	o.b = jsonwire.AppendStringMember(o.b, name, v)
	return o
}

// textOrNull adds null for "".
func (o *answer) textOrNull(name, v string) *answer {
	if v == "" {
		return o.raw(name, []byte("null"))
	}
	return o.text(name, v)
}

func (o *answer) number(name string, v int64) *answer {
	o.b = jsonwire.AppendIntMember(o.b, name, v)
	return o
}

// numberOrNull adds null for a negative number.
func (o *answer) numberOrNull(name string, v int64) *answer {
	if v < 0 {
		return o.raw(name, []byte("null"))
	}
	return o.number(name, v)
}

func (o *answer) boolean(name string, v bool) *answer {
	return o.raw(name, strconv.AppendBool(nil, v))
}

// end closes the object.
func (o *answer) end() []byte { return append(o.b, '}') }

// list is a JSON array of what each yields for every index below n.
func list(n int, each func(dst []byte, i int) []byte) []byte {
	b := []byte{'['}
	for i := range n {
		if i > 0 {
			b = append(b, ',')
		}
		b = each(b, i)
	}
	return append(b, ']')
}

// seqs is a JSON array of numbers.
func seqs[N ~int64](ns []N) []byte {
	return list(len(ns), func(dst []byte, i int) []byte { return jsonwire.AppendInt(dst, int64(ns[i])) })
}

// line writes one JSON answer and its newline.
func (a *app) line(b []byte) error {
	if _, err := a.out.Write(b); err != nil {
		return err
	}
	return a.out.WriteByte('\n')
}

// text writes to stdout.
func (a *app) text(s string) { io.WriteString(a.out, s) }

func itoa[N ~int | ~int64](n N) string { return strconv.FormatInt(int64(n), 10) }
