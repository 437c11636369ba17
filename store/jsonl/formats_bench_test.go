package jsonl

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/outcrop-dev/outcrop/internal/genlog"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/wire"
	"github.com/outcrop-dev/outcrop/wire/formats"
)

// everyAge is a root of n sessions of mixed age, four projects: each has the
// format i%5, and every other one what it was before beside it.
func everyAge(b *testing.B, n int) string {
	z, err := zstd.NewWriter(nil, zstd.WithEncoderCRC(true))
	if err != nil {
		b.Fatal(err)
	}
	defer z.Close()
	// The records of each format, and its header line, whose id is put in.
	var heads [formats.Newest + 1][]byte
	var bodies [formats.Newest + 1][]byte
	for format := range heads {
		file, _, _ := aged(b, 1, 400, format, wire.Zstd)
		r, err := wire.NewReader(bytes.NewReader(file), int64(len(file)), wire.Zstd)
		if err != nil {
			b.Fatal(err)
		}
		heads[format], bodies[format] = r.HeaderLine(), file[r.HeaderEnd():]
	}
	root := b.TempDir()
	for i := range n {
		cwd := fmt.Sprintf("/home/dev/project-%d", i%4)
		id := fmt.Sprintf("session-%d", i)
		dir := filepath.Join(root, ProjectKey(cwd), EncodeSegment(id))
		if err := os.MkdirAll(dir, 0o700); err != nil {
			b.Fatal(err)
		}
		for _, format := range []int{i % 5, 0} {
			if format == 0 && i%5 > 0 && i%2 == 0 {
				continue
			}
			h := bytes.Replace(heads[format], []byte(`"`+genlog.Header(1).ID+`"`), []byte(`"`+id+`"`), 1)
			h = bytes.Replace(h, []byte(*genlog.Header(1).Cwd), []byte(cwd), 1)
			file := append(z.EncodeAll(append(h, '\n'), nil), bodies[format]...)
			if err := os.WriteFile(filepath.Join(dir, FileName(format, wire.Zstd)), file, 0o600); err != nil {
				b.Fatal(err)
			}
		}
	}
	return root
}

// BenchmarkListOfEveryAge lists 2,000 sessions of mixed age. Its limit is that of
// BenchmarkList: a walk that opens every log and reads the same bytes of it, older
// files included.
func BenchmarkListOfEveryAge(b *testing.B) {
	root := everyAge(b, 2000)
	var ours, floor []time.Duration
	for b.Loop() {
		t := time.Now()
		s, err := New(root, Options{})
		if err != nil {
			b.Fatal(err)
		}
		infos, err := s.List(bg, store.ListOptions{})
		if err != nil || len(infos) != 2000 {
			b.Fatal(len(infos), err)
		}
		ours = append(ours, time.Since(t))
		for _, in := range infos {
			if in.State != store.StateOK {
				b.Fatalf("%+v", in)
			}
		}
		t = time.Now()
		if n := bareWalk(b, root); n < 2000 {
			b.Fatal(n)
		}
		floor = append(floor, time.Since(t))
	}
	o, f := median(ours), median(floor)
	b.ReportMetric(float64(o.Microseconds())/1000, "ms")
	b.ReportMetric(float64(f.Microseconds())/1000, "floor-ms")
	b.ReportMetric(f.Seconds()/o.Seconds(), "ratio")
	b.ReportMetric(0, "ns/op")
}
