package benchsuite

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/klauspost/compress/zstd"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/genlog"
	"github.com/outcrop-dev/outcrop/wire"
)

var loadWorks = []Work{
	{Name: "load-plain", About: "load a log of packed rows into a session", start: loading("load plain", wire.Plain, true)},
	{Name: "load-unpacked", About: "load a log without packed rows", start: loading("load unpacked", wire.Plain, false)},
	{Name: "load-zstd", About: "load the packed log from zstd frames", start: loading("load zstd", wire.Zstd, true)},
	{Name: "heap", About: "memory that a loaded session holds, an event", start: startHeap},
	{Name: "growth", About: "time and memory of loading as the log grows", start: startGrowth},
}

// writeLog puts a generated log of size bytes of text into a file and returns
// its path and the number of its events.
func writeLog(dir string, enc wire.Encoding, packed bool, size int64) (path string, events int, err error) {
	f, err := os.CreateTemp(dir, "bench-*."+string(enc))
	if err != nil {
		return "", 0, err
	}
	w := bufio.NewWriterSize(f, 1<<20)
	events, err = genlog.Write(w, enc, packed, size)
	return f.Name(), events, errors.Join(err, w.Flush(), f.Close())
}

// load reads a log file into a session, as every reading command does.
func load(path string, enc wire.Encoding) (*outcrop.Session, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return nil, err
	}
	r, err := wire.NewReader(f, fi.Size(), enc)
	if err != nil {
		return nil, err
	}
	return outcrop.Inspect(r.Header(), r.Records(), outcrop.Options{})
}

// lenientPass is the floor of loading: the JSON library finds the end of each
// value in text that lies in memory, checking syntax alone, after decompression
// where there is one. It keeps nothing and understands nothing.
func lenientPass(file []byte, enc wire.Encoding) error {
	text := file
	if enc == wire.Zstd {
		d, err := zstd.NewReader(bytes.NewReader(file), zstd.WithDecoderConcurrency(1))
		if err != nil {
			return err
		}
		defer d.Close()
		if text, err = io.ReadAll(d); err != nil {
			return err
		}
	}
	dec := jsontext.NewDecoder(bytes.NewBuffer(text), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	for {
		if _, err := dec.ReadValue(); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
	}
}

func loading(name string, enc wire.Encoding, packed bool) func(context.Context, Env) (*trial, error) {
	return func(ctx context.Context, env Env) (*trial, error) {
		path, events, err := writeLog(env.Dir, enc, packed, env.Sizes.Text)
		if err != nil {
			return nil, err
		}
		sum := newSides()
		peak := 0.0
		if env.Program != "" {
			if peak, err = peakOfLoading(ctx, env.Program, path); err != nil {
				return nil, errors.Join(err, os.Remove(path))
			}
		}
		return &trial{
			round: func() error {
				runtime.GC()
				var s *outcrop.Session
				ours, err := stopwatch(func() (err error) { s, err = load(path, enc); return err })
				if err != nil {
					return err
				}
				if s.Len() != events {
					return fmt.Errorf("%d events loaded of %d", s.Len(), events)
				}
				s = nil
				file, err := os.ReadFile(path)
				if err != nil {
					return err
				}
				runtime.GC()
				floor, err := stopwatch(func() error { return lenientPass(file, enc) })
				sum.add(ours, floor)
				return err
			},
			figures: func() []Figure {
				mb := float64(env.Sizes.Text) / 1e6
				floorIs := "one lenient pass of the JSON library"
				if enc == wire.Zstd {
					floorIs = "decompression and " + floorIs
				}
				speed := sum.rate(name, mb, "MB", floorIs)
				if packed { // the issue sets no target for the other one
					speed = speed.judged(shareOf(0.5, "0.5 of the floor, aim 0.65"))
				}
				all := []Figure{speed, {Name: name + ", events", Value: float64(events) / sum.ours.Seconds() / 1e6, Unit: "M events/s"}}
				if peak > 0 {
					f := Figure{Name: name + ", peak memory", Value: peak / float64(env.Sizes.Text), Unit: "of the text"}
					// Below, the program itself weighs more than the log.
					if env.Sizes.Text >= 128<<20 && enc == wire.Plain && packed {
						f = f.judged(atMost(1.5, "1.5 times the text"))
					}
					all = append(all, f)
				}
				return all
			},
			close: func() error { return os.Remove(path) },
		}, nil
	}
}

// peakOfLoading is the most memory that a process held which loads the log and
// prints what its surface is.
func peakOfLoading(ctx context.Context, program, path string) (float64, error) {
	p, err := process(ctx, program, filepath.Dir(path), true, "surface", path, "--json")
	return p.peak, err
}

func startHeap(_ context.Context, env Env) (*trial, error) {
	path, events, err := writeLog(env.Dir, wire.Plain, false, env.Sizes.Text/2)
	if err != nil {
		return nil, err
	}
	fi, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	held := 1e18
	return &trial{
		round: func() error {
			before := liveHeap()
			s, err := load(path, wire.Plain)
			if err != nil {
				return err
			}
			after := liveHeap()
			Sink += s.Len()
			runtime.KeepAlive(s)
			held = min(held, float64(after)-float64(before))
			return nil
		},
		figures: func() []Figure {
			json := float64(fi.Size()) / float64(events)
			f := Figure{Name: "heap an event, unpacked", Value: held / float64(events), Unit: "bytes",
				Floor: json, FloorIs: "its JSON", Share: json / (held / float64(events))}
			return []Figure{f.judged(atMost(json+64, "its JSON and 64 bytes"))}
		},
		close: func() error { return os.Remove(path) },
	}, nil
}

// startGrowth loads logs of growing size. What counts is that time and memory
// for a megabyte of text stay what they are.
func startGrowth(_ context.Context, env Env) (*trial, error) {
	type size struct {
		text int64
		path string
		best time.Duration
		held float64
	}
	var all []*size
	remove := func() error {
		var err error
		for _, s := range all {
			err = errors.Join(err, os.Remove(s.path))
		}
		return err
	}
	for _, n := range env.Sizes.Growth {
		path, _, err := writeLog(env.Dir, wire.Plain, true, n)
		if err != nil {
			return nil, errors.Join(err, remove())
		}
		all = append(all, &size{text: n, path: path, best: 1 << 62})
	}
	return &trial{
		round: func() error {
			for _, s := range all {
				before := liveHeap()
				var l *outcrop.Session
				d, err := stopwatch(func() (err error) { l, err = load(s.path, wire.Plain); return err })
				if err != nil {
					return err
				}
				s.held = float64(liveHeap()) - float64(before)
				s.best = min(s.best, d)
				runtime.KeepAlive(l)
			}
			return nil
		},
		figures: func() []Figure {
			var figs []Figure
			rate := func(s *size) float64 { return float64(s.text) / 1e6 / s.best.Seconds() }
			for _, s := range all {
				name := "load " + Bytes(s.text)
				figs = append(figs,
					Figure{Name: name, Value: millis(s.best), Unit: "ms"},
					Figure{Name: name + ", memory", Value: s.held / float64(s.text), Unit: "of the text"})
			}
			last := all[len(all)-1]
			return append(figs,
				Figure{Name: "growth of time", Value: rate(all[0]) / rate(last), Unit: "times a MB"}.judged(atMost(1.5, "linear: at most 1.5")),
				Figure{Name: "growth of memory", Value: last.held / float64(last.text) / (all[0].held / float64(all[0].text)), Unit: "times a MB"}.judged(atMost(1.25, "linear: at most 1.25")))
		},
		close: remove,
	}, nil
}

// Bytes writes a size as people say it.
func Bytes(n int64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.4g GB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.4g MB", float64(n)/(1<<20))
	case n >= 1<<10:
		return fmt.Sprintf("%.4g KB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%d bytes", n)
}
