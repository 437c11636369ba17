package repair_test

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/outcrop-dev/outcrop/doctor"
	"github.com/outcrop-dev/outcrop/doctor/repair"
	"github.com/outcrop-dev/outcrop/wire"
)

var bigSize = flag.Int64("big", 12<<20, "bytes of the log that is made on the fly")

// endless is a plain log of any size that is made where it is read: blocks of
// one turn, all of one length, because their numbers are padded with spaces.
// The prompt of each takes the place of the one before it.
type endless struct {
	head   []byte
	fill   string
	block  int64
	blocks int64
	peak   atomic.Uint64
	reads  atomic.Int64
}

const perBlock = 6

func newEndless(size int64, fill int) *endless {
	e := &endless{head: []byte(ownHeader + "\n"), fill: strings.Repeat("wörd ", fill/6)}
	before, behind := e.text(1)
	e.block = int64(len(before) + len(e.fill) + len(behind))
	e.blocks = max(2, size/e.block)
	return e
}

// text is what stands before and behind the fill of a block.
func (e *endless) text(k int64) (before, behind string) {
	seq := func(i int64) string { return fmt.Sprintf("%12d", k*perBlock+i) }
	op := `"append"`
	if k > 0 {
		before := fmt.Sprintf("%12d", (k-1)*perBlock+2)
		op = `{"op":"replace","start":` + before + `,"end":` + before + `},"sourceEventSeqs":[` + before + `]`
	}
	turn := fmt.Sprintf("%12d", k+1)
	return fmt.Sprintf(`{"type":"turn/start","seq":%s,"time":1,"data":{"turn":%s}}
{"type":"step/start","seq":%s,"time":1,"data":{"turn":%s,"step":1}}
{"type":"user/message","seq":%s,"time":1,"data":{"content":[{"type":"text","text":"t"}],"source":{"kind":"user"},"role":"user","id":"u"},"surfaceOp":%-110s}
{"type":"feedback/record","seq":%s,"time":1,"data":{"text":"`, seq(0), turn, seq(1), turn, seq(2), op, seq(3)), fmt.Sprintf(`"}}
{"type":"step/end","seq":%s,"time":1,"data":{"turn":%s,"step":1}}
{"type":"turn/end","seq":%s,"time":1,"data":{"turn":%s,"reason":{"kind":"completed"}}}
`, seq(4), turn, seq(5), turn)
}

func (e *endless) size() int64 { return int64(len(e.head)) + e.blocks*e.block }

func (e *endless) ReadAt(p []byte, off int64) (n int, err error) {
	if e.reads.Add(1)%4 == 1 {
		notePeak(&e.peak)
	}
	for n < len(p) {
		switch at := off + int64(n) - int64(len(e.head)); {
		case at < 0:
			n += copy(p[n:], e.head[len(e.head)+int(at):])
		case at >= e.blocks*e.block:
			return n, io.EOF
		default:
			before, behind := e.text(at / e.block)
			in := at % e.block
			for _, part := range [...]string{before, e.fill, behind} {
				if in < int64(len(part)) {
					n += copy(p[n:], part[in:])
					in = 0
				} else {
					in -= int64(len(part))
				}
			}
		}
	}
	return n, nil
}

func notePeak(peak *atomic.Uint64) {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	for {
		was := peak.Load()
		if m.HeapAlloc <= was || peak.CompareAndSwap(was, m.HeapAlloc) {
			return
		}
	}
}

// heapBefore is the heap that a test begins with. The collector runs often, so
// that the peak is what is in use.
func heapBefore(t *testing.T) uint64 {
	t.Helper()
	old := debug.SetGCPercent(20)
	t.Cleanup(func() { debug.SetGCPercent(old) })
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// The memory of verify and of a plan does not grow with the log:
//
//	go test ./doctor -run BigLog -big 10737418240 -timeout 30m -v
func TestMemoryIsFlatOverABigLog(t *testing.T) {
	for _, c := range []struct {
		name string
		fill int
		most uint64
	}{{"small records", 200, 24 << 20}, {"large records", 600 << 10, 40 << 20}} {
		t.Run(c.name, func(t *testing.T) {
			log := newEndless(*bigSize, c.fill)
			target := doctor.Target{Name: "F", R: log, Size: log.size(), Encoding: wire.Plain}
			before := heapBefore(t)
			log.peak.Store(before)
			findings, sum := doctor.Verify(t.Context(), target, doctor.Options{})
			for f := range findings {
				t.Fatalf("%s", f.AppendJSON(nil))
			}
			if !sum.OK || int64(sum.Events) != log.blocks*perBlock || sum.Surface != 1 || sum.DSH != doctor.DSHOK {
				t.Errorf("%s", sum.AppendJSON(nil))
			}
			t.Logf("verify: %d events in %d bytes, heap %d bytes over %d", sum.Events, log.size(), log.peak.Load()-before, before)
			if got := log.peak.Load() - before; got > c.most {
				t.Errorf("verify took %d bytes of memory, the most is %d", got, c.most)
			}
			log.peak.Store(before)
			r, err := repair.NewPlan(t.Context(), target, repair.Options{})
			if err != nil || len(r.Changes) > 0 || int64(r.Events) != log.blocks*perBlock {
				t.Errorf("plan: %+v, %v", r, err)
			}
			t.Logf("plan: heap %d bytes", log.peak.Load()-before)
			if got := log.peak.Load() - before; got > c.most {
				t.Errorf("a plan took %d bytes of memory, the most is %d", got, c.most)
			}
		})
	}
}

// watchedBytes is a file in memory that looks at the heap when it is read.
type watchedBytes struct {
	*bytes.Reader
	peak  atomic.Uint64
	reads atomic.Int64
}

func (w *watchedBytes) ReadAt(p []byte, off int64) (int, error) {
	if w.reads.Add(1)%16 == 1 {
		notePeak(&w.peak)
	}
	return w.Reader.ReadAt(p, off)
}

// Whatever a file asks for, verify and a plan name it in bounded memory.
func TestHostileFilesAreNamedInBoundedMemory(t *testing.T) {
	header, _ := frames(t, ownHeader+"\n")
	bomb := func(fill byte, size int) []byte {
		var b bytes.Buffer
		z, err := zstd.NewWriter(&b, zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(true), zstd.WithEncoderLevel(zstd.SpeedFastest))
		if err != nil {
			t.Fatal(err)
		}
		part := bytes.Repeat([]byte{fill}, 1<<20)
		for range size {
			z.Write(part)
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	wide := []byte{0x28, 0xb5, 0x2f, 0xfd, 0x00, 21 << 3, 1, 0, 0} // a window of 2 GiB, one empty block
	deep := `{"type":"feedback/record","seq":0,"time":1,"data":` + strings.Repeat("[", 20000) + strings.Repeat("]", 20000) + `}`
	for _, c := range []struct {
		name string
		file []byte
		enc  wire.Encoding
		want string // code of the first finding, "" when the file is torn there
		most uint64
	}{
		{"a frame of 96 MiB of zeros", append(bytes.Clone(header), bomb(0, 96)...), wire.Zstd, "TORN_TAIL", 64 << 20},
		{"a frame of 96 MiB of spaces", append(bytes.Clone(header), bomb(' ', 96)...), wire.Zstd, "TORN_TAIL", 96<<20 + 64<<20},
		{"a frame that wants a window of 2 GiB", append(bytes.Clone(header), wide...), wire.Zstd, "TORN_TAIL", 64 << 20},
		{"20,000 levels", plain(ownHeader, deep), wire.Plain, "RECORD_TOO_BIG", 64 << 20},
		{"a file of newlines", append(plain(ownHeader), bytes.Repeat([]byte("\n"), 2<<20)...), wire.Plain, "BLANK_LINE", 64 << 20},
		{"a file of brackets", append(plain(ownHeader), bytes.Repeat([]byte("[\n"), 1<<19)...), wire.Plain, "TORN_TAIL", 64 << 20},
		{"a file of magic numbers", append(bytes.Clone(header), bytes.Repeat([]byte{0x28, 0xb5, 0x2f, 0xfd}, 1<<18)...), wire.Zstd, "TORN_TAIL", 64 << 20},
		{"a file of tiny frames", append(bytes.Clone(header), bytes.Repeat([]byte{0x28, 0xb5, 0x2f, 0xfd, 0, 0x58, 1, 0, 0}, 50_000)...), wire.Zstd, "", 64 << 20},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := &watchedBytes{Reader: bytes.NewReader(c.file)}
			target := doctor.Target{Name: "F", R: r, Size: int64(len(c.file)), Encoding: c.enc}
			before := heapBefore(t)
			first := ""
			findings, sum := doctor.Verify(t.Context(), target, doctor.Options{})
			for f := range findings {
				if first == "" {
					first = string(f.Code)
				}
				notePeak(&r.peak)
			}
			if first != c.want || sum.Err != nil {
				t.Errorf("first finding %s, want %s: %s", first, c.want, sum.AppendJSON(nil))
			}
			verified := r.peak.Load() - before
			if _, err := repair.NewPlan(t.Context(), target, repair.Options{}); err != nil {
				t.Error(err)
			}
			t.Logf("%d bytes: heap %d MiB, with a plan %d MiB", len(c.file), verified>>20, (r.peak.Load()-before)>>20)
			if got := r.peak.Load() - before; got > c.most {
				t.Errorf("%d bytes of memory, the most is %d", got, c.most)
			}
		})
	}
}
