package wire_test

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/genlog"
	"github.com/outcrop-dev/outcrop/wire"
)

// least is a file that counts how far from its end it is read.
type least struct {
	r    *bytes.Reader
	from int64
}

func (l *least) ReadAt(b []byte, off int64) (int, error) {
	l.from = min(l.from, off)
	return l.r.ReadAt(b, off)
}

func lastOf(t testing.TB, file []byte, enc wire.Encoding) wire.Last {
	t.Helper()
	r := &least{bytes.NewReader(file), int64(len(file))}
	last, err := wire.LastEvents(r, int64(len(file)), enc)
	if err != nil {
		t.Fatal(err)
	}
	if n := int64(len(file)) - r.from; n > 64<<10 {
		t.Errorf("%d bytes were read", n)
	}
	return last
}

func TestTheEndOfEachRealLogIsListedAsItIsRead(t *testing.T) {
	for _, rel := range corpus(t) {
		enc, _ := wire.EncodingOf(rel)
		file := corpusFile(t, rel)
		all := readAll(file, enc)
		if !all.OK {
			continue
		}
		last := lastOf(t, file, enc)
		turn := wire.TurnClosed
		for _, rec := range all.recs {
			switch rec.Type {
			case outcrop.TypeTurnStart:
				turn = wire.TurnOpen
			case outcrop.TypeTurnEnd:
				turn = wire.TurnClosed
			}
		}
		var time int64
		for e := range all.recs[len(all.recs)-1].Events() {
			time = e.Time
		}
		want := wire.Last{Known: true, Seq: outcrop.Seq(all.LastSeq), Type: all.recs[len(all.recs)-1].Type, Time: time, Turn: turn, Torn: all.tail.Torn}
		if last != want {
			t.Errorf("%s: %+v, want %+v", rel, last, want)
		}
	}
}

func TestTheEndOfALogIsListed(t *testing.T) {
	row := `{"type":"text-chunks","seq0":1,"time0":200,"data":{"turn":1,"step":1,"index":0,"dt":[5,-3],"texts":["a","b","c"]}}`
	big := fmt.Sprintf(`{"type":"hook/invoked","seq":1,"time":7,"data":%q}`, strings.Repeat("x", 200_000))
	end := `{"type":"turn/end","seq":2,"time":8,"data":{"turn":1,"reason":{"kind":"completed"}}}`
	for _, c := range []struct {
		name  string
		lines []string
		cut   int
		want  wire.Last
	}{
		{"only a header", nil, 0, wire.Last{Known: true, Seq: -1, Turn: wire.TurnClosed}},
		{"a row", []string{turnStart(0, 1), row}, 0, wire.Last{Known: true, Seq: 3, Type: outcrop.TypeAssistantChunk, Time: 202, Turn: wire.TurnOpen}},
		{"a bad last line", []string{turnStart(0, 1), turnEnd(1, 1), "{bad"}, 0, wire.Last{Known: true, Seq: 1, Type: outcrop.TypeTurnEnd, Time: 101, Turn: wire.TurnClosed, Torn: true}},
		{"a good line behind a bad one", []string{turnStart(0, 1), "{bad", `{"type":"step/end","seq":1,"time":1,"data":{}}`}, 0, wire.Last{Known: true, Seq: 0, Type: outcrop.TypeTurnStart, Time: 100, Turn: wire.TurnOpen, Torn: true}},
		{"a gap", []string{turnStart(0, 1), `{"type":"step/end","seq":5,"time":1,"data":{}}`}, 0, wire.Last{Known: true, Seq: 0, Type: outcrop.TypeTurnStart, Time: 100, Turn: wire.TurnOpen, Torn: true}},
		{"blank lines", []string{turnStart(0, 1), turnEnd(1, 1), "", " "}, 0, wire.Last{Known: true, Seq: 1, Type: outcrop.TypeTurnEnd, Time: 101, Turn: wire.TurnClosed}},
		{"a turn that began further up, and a step's event", []string{turnStart(0, 1), big, `{"type":"step/end","seq":2,"time":1,"data":{}}`}, 0, wire.Last{Known: true, Seq: 2, Type: outcrop.TypeStepEnd, Time: 1, Turn: wire.TurnOpen}},
		{"an event that can stand anywhere", []string{turnStart(0, 1), big, `{"type":"session/title","seq":2,"time":1,"data":{}}`}, 0, wire.Last{Known: true, Seq: 2, Type: outcrop.TypeSessionTitle, Time: 1}},
		{"a long line before the end", []string{turnStart(0, 1), big, end}, 0, wire.Last{Known: true, Seq: 2, Type: outcrop.TypeTurnEnd, Time: 8, Turn: wire.TurnClosed}},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := headerLine + "\n"
			file := zstdLog()
			for _, l := range c.lines {
				text += l + "\n"
				file = append(file, frame(l)...)
			}
			if got := lastOf(t, []byte(text), wire.Plain); got != c.want {
				t.Errorf("plain: %+v, want %+v", got, c.want)
			}
			if got := lastOf(t, file, wire.Zstd); got != c.want {
				t.Errorf("zstd: %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestNothingIsTrustedUnchecked(t *testing.T) {
	none := wire.Last{Seq: -1, Torn: true}
	huge := plainLog(fmt.Sprintf(`{"type":"hook/invoked","seq":0,"time":7,"data":%q}`, strings.Repeat("x", 200_000)))
	if got := lastOf(t, huge, wire.Plain); got.Known {
		t.Errorf("a line longer than the tail: %+v", got)
	}
	bad := append(frame(headerLine), broken(frame(turnStart(0, 1)), -1)...)
	if got := lastOf(t, bad[len(frame(headerLine)):], wire.Zstd); got != none {
		t.Errorf("a bad frame: %+v", got)
	}
	if got := lastOf(t, append(zstdLog(), rawFrame(turnStart(0, 1)+"\n")...), wire.Zstd); got.Seq != -1 || !got.Torn {
		t.Errorf("a frame without checksum: %+v", got)
	}
	if got := lastOf(t, nil, wire.Plain); got.Known {
		t.Errorf("an empty file: %+v", got)
	}
	if _, err := wire.LastEvents(failing{}, 100, wire.Plain); err == nil {
		t.Error("a file that cannot be read gives no error")
	}
}

type failing struct{}

func (failing) ReadAt([]byte, int64) (int, error) { return 0, io.ErrClosedPipe }

func TestTheEndOfALargeLogIsListed(t *testing.T) {
	recs := slices.Collect(genlog.Records(3, 20_000))
	lastRec := recs[len(recs)-1]
	for _, enc := range encodings {
		e := wire.NewEncoder(enc)
		file := e.Header(nil, genlog.Header(3))
		for batch := range slices.Chunk(recs, 300) {
			file, _ = e.Batch(file, slices.Values(batch))
		}
		want := wire.Last{Known: true, Seq: lastRec.Seq, Type: lastRec.Type, Time: lastRec.Time, Turn: wire.TurnClosed}
		if got := lastOf(t, file, enc); got != want {
			t.Errorf("%s: %+v, want %+v", enc, got, want)
		}
		want.Torn = true
		got := lastOf(t, file[:len(file)-3], enc)
		if !got.Known || !got.Torn || got.Seq >= lastRec.Seq || got.Seq < lastRec.Seq-300 {
			t.Errorf("%s cut: %+v", enc, got)
		}
	}
}
