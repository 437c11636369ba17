package formats

import (
	"errors"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
)

// FormatOf is the format that a header line names; false when it names none.
func FormatOf(line []byte) (int64, bool) {
	if jsonwire.Valid(line) != nil {
		return 0, false
	}
	v := get(line, "version")
	if jsonwire.Kind(v) != '0' {
		return 0, false
	}
	return jsonwire.Int(v)
}

// Header reads a header line of any format from 0 to Newest as one of format 0.
// Where format 2 and later say isSeeded, the number of inherited events is known
// at the end of the log only: SeedLength is nil, and seeded says that there is
// such a number. The errors are those of outcrop.ParseHeader.
func Header(line []byte) (h outcrop.Header, seeded bool, err error) {
	format, ok := FormatOf(line)
	if !ok || format < 1 || format > Newest {
		h, err = outcrop.ParseHeader(line)
		return h, false, err
	}
	wrong := false
	old := edit(line, func(m member) member {
		switch {
		case m.is("version"):
			m.value = []byte("0")
		case format < 2:
		case m.is("isSeeded"):
			seeded = string(m.value) == "true"
			wrong = !seeded && string(m.value) != "false"
			m.gone = true
		case m.is("seedLength"):
			m.gone = true
		case format >= 3 && m.is("agentPreset"):
			m.value = preset2(m.value)
		}
		return m
	})
	if h, err = outcrop.ParseHeader(old); err == nil && wrong {
		err = &outcrop.Error{Code: "HEADER_SHAPE", Seq: -1, Offset: -1, Err: outcrop.ErrRefused, Msg: "isSeeded is not true or false"}
	}
	h.Format = format
	return h, seeded, named(err, format)
}

// Seeded is a header with the number of inherited events.
func Seeded(h outcrop.Header, n outcrop.Seq) outcrop.Header {
	line := with(h.Line(), "seedLength", jsonwire.AppendInt(nil, int64(n)))
	s, err := outcrop.ParseHeader(line)
	if err != nil {
		return h // a header that was read before takes a number
	}
	s.Format = h.Format
	return s
}

func named(err error, format int64) error {
	var e *outcrop.Error
	if !errors.As(err, &e) {
		return err
	}
	c := *e
	c.Msg = "dsh format " + string(jsonwire.AppendInt(nil, format)) + ": " + c.Msg
	return &c
}
