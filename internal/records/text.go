package records

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"

	"github.com/klauspost/compress/zstd"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/jsonl"
	"github.com/outcrop-dev/outcrop/wire"
)

// WriteText writes the text of a stored log byte for byte: header and lines, blank
// ones and CRLF included, as far as reading comes. damage is why it does not
// come to the end, when that is no torn tail.
func WriteText(ctx context.Context, w io.Writer, sd store.Stored) (damage, err error) {
	file, ok := sd.(*jsonl.Log)
	if !ok {
		return rawRecords(ctx, w, sd)
	}
	// The first pass tells where the good part of the file ends.
	events := 0
	for r, err := range Through(ctx, file.Reader().Records(), -1) {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		switch {
		case err == nil:
			events += r.Count()
		case outcrop.CodeOf(err) == "RECORD_TOO_BIG":
			// Its bytes are there, and so is what lies behind it.
			events++
		default:
			damage = err
		}
	}
	tail := file.Reader().Tail()
	f, err := os.Open(file.Path())
	if err != nil {
		return damage, err
	}
	defer f.Close()
	good := io.NewSectionReader(f, 0, tail.Good)
	if enc, _ := wire.EncodingOf(file.Path()); enc == wire.Plain {
		_, err = io.Copy(w, good)
		return damage, err
	}
	if err := decompress(w, good); err != nil {
		return damage, fmt.Errorf("%s: %w", file.Path(), err)
	}
	return damage, rawSaved(ctx, w, file, events-tail.Recovered)
}

// decompress writes the text of complete zstd frames.
func decompress(w io.Writer, r io.Reader) error {
	d, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(wire.MaxWindow))
	if err != nil {
		return err
	}
	defer d.Close()
	_, err = io.Copy(w, d)
	return err
}

// rawSaved writes the lines of the events from the one with the number first on:
// those that were saved from the frame in which a log ends.
func rawSaved(ctx context.Context, w io.Writer, file *jsonl.Log, first int) error {
	at := 0
	for r, err := range Through(ctx, file.Reader().Records(), -1) {
		if err != nil {
			if outcrop.CodeOf(err) == "RECORD_TOO_BIG" {
				at++
				continue
			}
			return ctx.Err()
		}
		if at >= first {
			if err := writeRecord(w, r); err != nil {
				return err
			}
		}
		at += r.Count()
	}
	return nil
}

// rawRecords writes a log whose store has no text of its own.
func rawRecords(ctx context.Context, w io.Writer, sd store.Stored) (damage, err error) {
	if _, err := w.Write(append(sd.Header().Line(), '\n')); err != nil {
		return nil, err
	}
	return copyRecords(w, Through(ctx, sd.Records(), -1))
}

func copyRecords(w io.Writer, recs iter.Seq2[outcrop.Record, error]) (damage, err error) {
	for r, err := range recs {
		if errors.Is(err, context.Canceled) {
			return nil, err
		}
		if err != nil {
			return err, nil
		}
		if err := writeRecord(w, r); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// writeRecord writes the line of one record.
func writeRecord(w io.Writer, r outcrop.Record) error {
	var line []byte
	if r.Run != nil {
		line = r.Run.AppendLine(nil)
	} else {
		line = r.AppendJSON(nil)
	}
	_, err := w.Write(append(line, '\n'))
	return err
}
