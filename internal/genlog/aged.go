package genlog

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"

	"github.com/klauspost/compress/zstd"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/wire"
	"github.com/outcrop-dev/outcrop/wire/formats"
)

// Aged is a log of about n events as a dsh of a session format from 0 to 4 would
// have written it, header line included.
func Aged(seed uint64, n, format int, enc wire.Encoding) ([]byte, error) {
	h := Header(seed)
	s, err := outcrop.Inspect(h, func(yield func(outcrop.Record, error) bool) {
		for r := range Records(seed, n) {
			if !yield(r, nil) {
				return
			}
		}
	}, outcrop.Options{})
	if err != nil {
		return nil, err
	}
	var lines [][]byte
	if format < 2 {
		line := bytes.Replace(h.Line(), []byte(`"version":0`), fmt.Appendf(nil, `"version":%d`, format), 1)
		lines = append(lines, append(line, '\n'))
		for e := range outcrop.Events(s.Log(), 0) {
			lines = append(lines, append(e.AppendJSON(nil), '\n'))
		}
	} else if _, err := formats.Raise(h, s.Log(), min(format, 3), func(line []byte) error {
		if format == 4 {
			line = bytes.Replace(line, []byte(`"version":3`), []byte(`"version":4`), 1)
		}
		lines = append(lines, append(bytes.Clone(line), '\n'))
		return nil
	}); err != nil {
		return nil, err
	}
	if enc == wire.Plain {
		return bytes.Join(lines, nil), nil
	}
	return frames(lines)
}

// frames is lines as a zstd file: the first alone, the others in batches.
func frames(lines [][]byte) ([]byte, error) {
	z, err := zstd.NewWriter(nil, zstd.WithEncoderCRC(true))
	if err != nil {
		return nil, err
	}
	defer z.Close()
	file := z.EncodeAll(lines[0], nil)
	for part := range slices.Chunk(lines[1:], 20) {
		file = z.EncodeAll(bytes.Join(part, nil), file)
	}
	return file, nil
}

// Home is a dsh home of mixed age: n sessions of 400 events in four working
// directories, session-0, session-1 and so on. The session i has the format i%5,
// and every other one what it was before, in format 0, beside it. put gets each
// log, which is compressed.
func Home(n int, put func(i, format int, id, cwd string, file []byte) error) error {
	z, err := zstd.NewWriter(nil, zstd.WithEncoderCRC(true))
	if err != nil {
		return err
	}
	defer z.Close()
	// The records of each format, and its header line, whose id is put in.
	var heads, bodies [formats.Newest + 1][]byte
	for format := range heads {
		file, err := Aged(1, 400, format, wire.Zstd)
		if err != nil {
			return err
		}
		r, err := wire.NewReader(bytes.NewReader(file), int64(len(file)), wire.Zstd)
		if err != nil {
			return err
		}
		heads[format], bodies[format] = r.HeaderLine(), file[r.HeaderEnd():]
	}
	for i := range n {
		id, cwd := "session-"+strconv.Itoa(i), "/home/dev/project-"+strconv.Itoa(i%4)
		for _, format := range []int{i % len(heads), 0} {
			if format == 0 && i%len(heads) > 0 && i%2 == 0 {
				continue
			}
			h := bytes.Replace(heads[format], []byte(`"`+Header(1).ID+`"`), []byte(`"`+id+`"`), 1)
			h = bytes.Replace(h, []byte(*Header(1).Cwd), []byte(cwd), 1)
			if err := put(i, format, id, cwd, append(z.EncodeAll(append(h, '\n'), nil), bodies[format]...)); err != nil {
				return err
			}
		}
	}
	return nil
}
