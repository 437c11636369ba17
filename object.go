package outcrop

import "github.com/outcrop-dev/outcrop/internal/jsonwire"

// object writes members one after another; empty optional ones are left out.
type object []byte

func newObject(dst []byte) *object { o := object(append(dst, '{')); return &o }

func (o *object) text(name, v string) *object {
	*o = jsonwire.AppendStringMember(*o, name, v)
	return o
}

func (o *object) optText(name, v string) *object {
	if v != "" {
		o.text(name, v)
	}
	return o
}

func (o *object) int(name string, v int64) *object {
	*o = jsonwire.AppendIntMember(*o, name, v)
	return o
}

func (o *object) optInt(name string, v int64) *object {
	if v != 0 {
		o.int(name, v)
	}
	return o
}

func (o *object) raw(name string, v []byte) *object {
	*o = jsonwire.AppendRawMember(*o, name, v)
	return o
}

func (o *object) bool(name string, v bool) *object {
	if v {
		return o.raw(name, []byte("true"))
	}
	return o.raw(name, []byte("false"))
}

func (o *object) seqs(name string, v []Seq) *object {
	return o.raw(name, SourcesOf(v...).text)
}

func (o *object) turn(turn *int) *object {
	if turn == nil {
		return o.raw("turn", []byte("null"))
	}
	return o.int("turn", int64(*turn))
}

func (o *object) shadowed(seqs []Seq, tokens int64) *object {
	if len(seqs) > 0 {
		r := newObject(nil).int("start", int64(seqs[0])).int("end", int64(seqs[len(seqs)-1])).end()
		o.raw("shadowedRange", r)
	}
	return o.seqs("shadowedSeqs", seqs).int("shadowedTokenCount", tokens)
}

func (o *object) end() []byte { return append(*o, '}') }
