package wire

import (
	"io"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/wire/formats"
)

// WriteFormat3 writes a log as a file of session format 3, which dsh 0.1.5 and
// 0.1.6 read as session.v3.jsonl or session.v3.jsonl.zstd: for people who go back.
// Seqs are renumbered, with all that names them. The changes say what the format
// could not hold as it is.
//
// The error is w's, or an *outcrop.Error with session and seq for a log that the
// format cannot hold (FORMAT_UNWRITABLE): one whose messages have no surface
// markers, or an assistant/message that replaces.
func WriteFormat3(w io.Writer, enc Encoding, h outcrop.Header, log outcrop.Log) ([]formats.Change, error) {
	return writeFormat(w, enc, h, log, 3)
}

// writeFormat writes the header as a batch of its own, then batches of about a
// block of text.
func writeFormat(w io.Writer, enc Encoding, h outcrop.Header, log outcrop.Log, format int) ([]formats.Change, error) {
	e := NewEncoder(enc)
	var text, out []byte
	flush := func() error {
		out = e.put(out[:0], text)
		text = text[:0]
		_, err := w.Write(out)
		return err
	}
	header := true
	changes, err := formats.Raise(h, log, format, func(line []byte) error {
		text = append(append(text, line...), '\n')
		if header || len(text) >= block {
			header = false
			return flush()
		}
		return nil
	})
	if err == nil && len(text) > 0 {
		err = flush()
	}
	return changes, err
}
