package wire_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/wire"
)

const headerLine = `{"type":"session","version":0,"id":"s1","createdAt":1,"delegationDepth":0}`

func turnStart(seq, turn int) string {
	return fmt.Sprintf(`{"type":"turn/start","seq":%d,"time":%d,"data":{"turn":%d}}`, seq, 100+seq, turn)
}

func turnEnd(seq, turn int) string {
	return fmt.Sprintf(`{"type":"turn/end","seq":%d,"time":%d,"data":{"turn":%d,"reason":{"kind":"completed"}}}`, seq, 100+seq, turn)
}

// frame compresses lines into one frame.
func frame(lines ...string) []byte {
	return frameOf(strings.Join(lines, "\n") + "\n")
}

var frameEncoder = sync.OnceValue(func() *zstd.Encoder {
	z, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<20), zstd.WithEncoderLevel(zstd.SpeedFastest))
	if err != nil {
		panic(err)
	}
	return z
})

func frameOf(text string) []byte { return frameEncoder().EncodeAll([]byte(text), nil) }

func zstdLog(frames ...[]byte) []byte {
	return append(frame(headerLine), slices.Concat(frames...)...)
}

func plainLog(lines ...string) []byte {
	return []byte(headerLine + "\n" + strings.Join(lines, "\n") + "\n")
}

// broken flips one bit of the last block's payload or, with -1, of the checksum.
func broken(f []byte, at int) []byte {
	f = bytes.Clone(f)
	if at < 0 {
		at += len(f)
	}
	f[at] ^= 0x10
	return f
}

func rawFrame(text string) []byte {
	b := []byte{0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x58}
	h := uint32(1 | len(text)<<3)
	b = append(b, byte(h), byte(h>>8), byte(h>>16))
	return append(b, text...)
}

func TestAFileOfThreeFramesIsRead(t *testing.T) {
	// Written by dsh: a header and two batches, one of them with a packed row.
	parts := []string{
		"28b52ffd0458a502006285121980a9e9f80dd5b6d3b206f663d92b73622367eafba61a5360278086b90f99b470202a91a189e2f622f8c6" +
			"256d6670ee2460135549db279008f18d6a33a754b17d206aadaeef268b9c110200e3d6695b9a2d94fe94",
		"28b52ffd0458050300d245131990b71903b4cacbee9bad7d46c97b77175af10b03ccf57ca00365773fa949480e44307e903178e1085126" +
			"d306b883b2ec1ebe70a3e66c57040ecfc3d0adc00ba9b6351955044a061dcfe4a0af06006016a0d78877204196aa047a019e0072eeae",
		"28b52ffd0458350600b28a212060699b3105f9b5d0c26cffeb58c897e341c8c0248b9aef6d6516905c8355f90ac77befa5ab090c63519c" +
			"afc6163f795b9cd22629408960354d6c186fce0132ee1832be188cc81d2612264c887cd788f286aec6460174c8915b34074101b00ddd24" +
			"c783c2e8bae3bd943fb95ab546050d24b932d88e29575037be8d5a17d01a67cf9559d89f19002011400f62a8ad004f7030980280192131" +
			"8e25cfda655d180fc26848056dc12c19931763985c6cf051e0f1aa3d3033400b9004095aaa6ae81a7802745a8d80",
	}
	var file []byte
	for _, p := range parts {
		b, err := hex.DecodeString(p)
		if err != nil {
			t.Fatal(err)
		}
		file = append(file, b...)
	}
	got := readAll(file, wire.Zstd)
	if !got.OK || got.Events != 10 || got.LastSeq != 9 || got.tail.Torn {
		t.Errorf("got %v", got)
	}
	if text := string(got.recs[4].Run.At(2).AppendJSON(nil)); !strings.Contains(text, `"seq":6,"time":1700000000009`) {
		t.Errorf("event 6 is %s", text)
	}
}

func TestTheMagicInsideABlockMeansNothing(t *testing.T) {
	text := fmt.Sprintf(`{"type":"hook/invoked","seq":0,"time":1,"data":"%s%s"}`, "\x28\xb5\x2f\xfd", strings.Repeat("x", 40)) + "\n"
	file := zstdLog(rawFrame(text), frame(turnStart(1, 1), turnEnd(2, 1)))
	if got := readAll(file, wire.Zstd); !got.OK || got.Events != 3 || got.tail.Torn {
		t.Errorf("got %v", got)
	}
}

func TestFramesThatAreNotReadAreNamed(t *testing.T) {
	finished := frame(turnStart(0, 1), turnEnd(1, 1))
	open := frame(turnStart(2, 2))
	finishedLater := frame(turnStart(2, 2), turnEnd(3, 2))
	wide := func() []byte {
		f := bytes.Clone(rawFrame(turnStart(2, 2) + "\n"))
		f[5] = 18 << 3 // 256 MiB
		return f
	}()
	dict := append([]byte{0x28, 0xb5, 0x2f, 0xfd, 0x01, 0x58, 7}, rawFrame(turnStart(2, 2) + "\n")[6:]...)
	reserved := bytes.Clone(open)
	reserved[4] |= 0x08
	badType := bytes.Clone(rawFrame(turnStart(2, 2) + "\n"))
	badType[6] |= 6
	skippable := binary.LittleEndian.AppendUint32([]byte{0x50, 0x2a, 0x4d, 0x18}, 3)
	skippable = append(skippable, 1, 2, 3)

	for _, c := range []struct {
		name string
		tail []byte // behind one finished turn
		want string // as outcome.String, with the reason's code
	}{
		{"nothing", nil, "2 events"},
		{"a frame without checksum", rawFrame(turnStart(2, 2) + "\n"), "3 events"},
		{"an empty frame", frameOf(""), "2 events"},
		{"an empty frame without content", []byte{0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x58, 1, 0, 0}, "2 events"},
		{"a window of 256 MiB", wide, "2 events, cut, 0 recovered FRAME_WINDOW"},
		{"a dictionary", dict, "2 events, cut, 0 recovered FRAME_DECODE"},
		{"a reserved bit", reserved, "2 events, cut, 0 recovered FRAME_DESCRIPTOR"},
		{"a reserved block type", badType, "2 events, cut, 0 recovered FRAME_BLOCK"},
		{"a skippable frame", skippable, "2 events, cut, 0 recovered FRAME_MAGIC"},
		{"one byte", []byte{0x28}, "2 events, cut, 0 recovered FRAME_TORN"},
		{"three zero bytes", make([]byte, 3), "2 events, cut, 0 recovered FRAME_TORN"},
		{"a page of zero bytes", make([]byte, 4096), "2 events, cut, 0 recovered FRAME_MAGIC"},
		{"a failed checksum, the turn open", broken(open, -1), "2 events, cut, 0 recovered FRAME_CHECKSUM"},
		{"a failed checksum over a finished turn", broken(finishedLater, -1), "refused FRAME_CHECKSUM"},
		{"a torn frame and a finished turn behind it", append(open[:len(open)-6:len(open)-6], finishedLater...), "refused"},
		{"garbage and a finished turn behind it", append([]byte("garbage"), finishedLater...), "refused FRAME_MAGIC"},
		{"garbage and a bad frame behind it", append([]byte("garbage"), broken(finishedLater, -1)...), "2 events, cut, 0 recovered FRAME_MAGIC"},
		{"garbage and an open turn behind it", append([]byte("garbage"), open...), "2 events, cut, 0 recovered FRAME_MAGIC"},
		{"garbage and a turn/end cut between two frames", slices.Concat([]byte("garbage"), frameOf(turnEnd(3, 2)[:20]), frameOf(turnEnd(3, 2)[20:]+"\n")), "refused FRAME_MAGIC"},
		{"garbage and a turn/end without newline", append([]byte("garbage"), frameOf(turnEnd(3, 2))...), "2 events, cut, 0 recovered FRAME_MAGIC"},
		{"a bad line and a finished turn in a later frame", append(frame("{bad"), finishedLater...), "refused LINE_NOT_JSON"},
		{"a bad line and a torn frame", append(frame("{bad"), open[:10]...), "2 events, cut, 0 recovered LINE_NOT_JSON"},
		{"the finished turn again", finished, "refused SEQ_GAP"},
	} {
		t.Run(c.name, func(t *testing.T) {
			file := zstdLog(finished, c.tail)
			got := readAll(file, wire.Zstd)
			s := got.String()
			if got.tail.Torn {
				s = fmt.Sprintf("%d events, cut, %d recovered %s", got.Events, got.Recovered, outcrop.CodeOf(got.tail.Reason))
				if want := int64(len(file) - len(c.tail)); got.tail.Good != want {
					t.Errorf("cut at %d, want %d", got.tail.Good, want)
				}
			}
			if !strings.HasPrefix(s, c.want) {
				t.Errorf("got %s, want %s", s, c.want)
			}
			if got.Events != 2 && got.Events != 3 {
				t.Errorf("%d events were read", got.Events)
			}
		})
	}
}

// A frame is a batch of several blocks here, as large batches are.
func TestATornFrameGivesItsWholeBlocks(t *testing.T) {
	var lines []string
	for i := range 6000 {
		lines = append(lines, fmt.Sprintf(`{"type":"hook/invoked","seq":%d,"time":%d,"data":{"n":"%x"}}`, i, i, uint64(i)*0x9e3779b97f4a7c15))
	}
	head := zstdLog()
	batch := frame(lines...)
	text := strings.Join(lines, "\n") + "\n"
	for _, c := range []struct {
		missing int
		blocks  int // whole blocks that are left; -1: all
	}{{1, -1}, {4, -1}, {5, 3}, {len(batch) * 3 / 10, 2}, {len(batch) - 20, 0}} {
		file := append(bytes.Clone(head), batch[:len(batch)-c.missing]...)
		want := len(lines)
		if c.blocks >= 0 {
			want = strings.Count(text[:min(len(text), c.blocks<<17)], "\n")
		}
		got := readAll(file, wire.Zstd)
		if got.Events != want || got.Recovered != want || got.tail.Good != int64(len(head)) || !got.tail.Torn {
			t.Errorf("%d bytes missing: %v, want %d events", c.missing, got, want)
		}
	}
}

// peak is the growth of the heap while f runs, looked at when f says so.
func peak(f func(look func())) uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	start, most := m.HeapInuse, uint64(0)
	f(func() {
		runtime.GC()
		runtime.ReadMemStats(&m)
		if m.HeapInuse > start {
			most = max(most, m.HeapInuse-start)
		}
	})
	return most
}

// bomb is a frame of RLE blocks: a few kilobytes that decode to n bytes of c.
func bomb(c byte, n int) []byte {
	b := []byte{0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x58}
	const most = 128 << 10
	for ; n > most; n -= most {
		h := uint32(2 | most<<3)
		b = append(b, byte(h), byte(h>>8), byte(h>>16), c)
	}
	h := uint32(3 | n<<3)
	return append(b, byte(h), byte(h>>8), byte(h>>16), c)
}

func TestABombIsNamedInBoundedMemory(t *testing.T) {
	finished := frame(turnStart(0, 1), turnEnd(1, 1))
	for _, c := range []struct {
		name string
		c    byte
		want string
	}{
		{"letters", 'a', "2 events, cut"},
		{"zero bytes", 0, "2 events, cut"},
	} {
		t.Run(c.name, func(t *testing.T) {
			file := zstdLog(finished, bomb(c.c, 120<<20), frameOf("\n"))
			var got outcome
			used := peak(func(look func()) { got = readAll(file, wire.Zstd); look() })
			if !strings.HasPrefix(got.String(), c.want) || outcrop.CodeOf(got.tail.Reason) != "LINE_NOT_JSON" {
				t.Errorf("got %v: %v", got, got.tail.Reason)
			}
			if used > 64<<20 {
				t.Errorf("%d MiB are in use", used>>20)
			}
		})
	}
}
