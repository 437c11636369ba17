// Package genlog makes session logs for tests and benchmarks: valid, as large
// as wanted, the same for the same seed on every machine. Their shape is that
// of long agent sessions: about 34.5 events a step, 24 of them text deltas,
// tool results of 600 bytes, 195 bytes of JSON an event.
//
// A log begins with turn 1. Each turn has three steps, the first two with one
// tool call; every assistant/message cites its chunks and every tool/result its
// tool/call. The types are all dsh's.
package genlog

import (
	"io"
	"iter"
	"slices"
	"strconv"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/wire"
)

// BatchEvents is how many events Write puts into a batch, at least.
const BatchEvents = 1000

const epoch = 1_760_000_000_000

// Header is the header of the log of a seed.
func Header(seed uint64) outcrop.Header {
	cwd := "/home/dev/gen"
	return outcrop.Header{ID: "gen-" + strconv.FormatUint(seed, 10), CreatedAt: epoch, Cwd: &cwd}
}

// Events yields whole turns until there are at least n events.
func Events(seed uint64, n int) iter.Seq[outcrop.Event] {
	return func(yield func(outcrop.Event) bool) {
		g := generator{rng: seed*0x9e3779b97f4a7c15 + 1, yield: yield, time: epoch, room: make([]byte, 0, arena)}
		for turn := 1; int(g.seq) < n && !g.stopped; turn++ {
			g.turn(turn)
		}
	}
}

// Records yields the same events as records, none of them packed.
func Records(seed uint64, n int) iter.Seq[outcrop.Record] {
	return func(yield func(outcrop.Record) bool) {
		for e := range Events(seed, n) {
			if !yield(outcrop.Record{Event: e}) {
				return
			}
		}
	}
}

// Write writes a log whose text, before any compression, has at least size
// bytes, in batches of BatchEvents. It returns the number of events.
func Write(w io.Writer, enc wire.Encoding, packed bool, size int64) (int, error) {
	e := wire.NewEncoder(enc)
	e.Unpacked = !packed
	plain := wire.NewEncoder(wire.Plain) // tells how much text a batch has
	plain.Unpacked = !packed
	if _, err := w.Write(e.Header(nil, Header(1))); err != nil {
		return 0, err
	}
	var batch []outcrop.Record
	var buf, text []byte
	var events int
	var written int64
	for rec := range Records(1, int(size)) {
		batch = append(batch, rec)
		if len(batch) < BatchEvents {
			continue
		}
		var err error
		if buf, err = e.Batch(buf[:0], slices.Values(batch)); err != nil {
			return events, err
		}
		n := len(buf)
		if enc != wire.Plain {
			if text, err = plain.Batch(text[:0], slices.Values(batch)); err != nil {
				return events, err
			}
			n = len(text)
		}
		if _, err := w.Write(buf); err != nil {
			return events, err
		}
		events += len(batch)
		batch = batch[:0]
		if written += int64(n); written >= size {
			break
		}
	}
	return events, nil
}

const arena = 256 << 10

type generator struct {
	rng     uint64
	yield   func(outcrop.Event) bool
	stopped bool

	seq  int64
	time int64
	room []byte // where lines are made; never written again
	line []byte
	text []byte // the step's text so far
}

// next is a splitmix64 step.
func (g *generator) next() uint64 {
	g.rng += 0x9e3779b97f4a7c15
	z := g.rng
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

func (g *generator) below(n int) int { return int(g.next() % uint64(n)) }

var words = []string{
	"the", " file", " holds", " a", " list", " of", " steps", "\\n", " and", " each", " one", " returns",
	" an", " error", ",", " so", " that", " `run`", " can", " stop", ".", " I", "'ll", " read", " it",
	" first", " (", "line", " 42", ")", " naïve", " 日本", ":", " func", " main", "()", " {", " }",
}

func (g *generator) word() string { return words[g.below(len(words))] }

// open begins an event of the type; close ends it and gives it out.
func (g *generator) open(typ string) {
	g.time += int64(g.below(40))
	b := append(g.line[:0], `{"type":"`...)
	b = append(append(b, typ...), `","seq":`...)
	b = strconv.AppendInt(b, g.seq, 10)
	b = append(b, `,"time":`...)
	b = strconv.AppendInt(b, g.time, 10)
	g.line = append(b, `,"data":`...)
}

func (g *generator) add(parts ...string) {
	for _, s := range parts {
		g.line = append(g.line, s...)
	}
}

func (g *generator) int(n int) { g.line = strconv.AppendInt(g.line, int64(n), 10) }

func (g *generator) close() {
	if g.stopped {
		return
	}
	g.line = append(g.line, '}')
	if cap(g.room)-len(g.room) < len(g.line) {
		g.room = make([]byte, 0, max(arena, len(g.line)))
	}
	n := len(g.room)
	g.room = append(g.room, g.line...)
	e, err := outcrop.DecodeEvent(g.room[n:len(g.room):len(g.room)])
	if err != nil {
		panic("genlog: " + err.Error() + " in " + string(g.line)) // a fault of this package
	}
	g.seq++
	g.stopped = !g.yield(e)
}

func (g *generator) at(turn, step int) {
	g.add(`{"turn":`)
	g.int(turn)
	g.add(`,"step":`)
	g.int(step)
}

func (g *generator) turn(turn int) {
	id := strconv.Itoa(turn)
	g.open("turn/start")
	g.add(`{"turn":`, id, `}`)
	g.close()
	if turn == 1 {
		g.open("request/context")
		g.add(`{"provider":"acme","model":"tiny-1","contextWindow":200000}`)
		g.close()
	}
	for step := 1; step <= 3 && !g.stopped; step++ {
		g.step(turn, step)
	}
	g.open("turn/end")
	g.add(`{"turn":`, id, `,"reason":{"kind":"completed"}}`)
	g.close()
}

func (g *generator) step(turn, step int) {
	g.open("step/start")
	g.at(turn, step)
	g.add(`}`)
	g.close()
	if step == 1 {
		g.open("user/message")
		g.add(`{"content":[{"type":"text","text":"`)
		for range 100 {
			g.add(g.word())
		}
		g.add(`"}],"source":{"kind":"user"},"role":"user","id":"u-`, strconv.Itoa(turn), `"},"surfaceOp":"append"`)
		g.close()
	}
	if turn == 1 && step == 1 {
		g.open("request/header")
		g.add(`{"header":{"config":{"provider":"acme","model":"tiny-1"},"system":"You are an agent.","tools":[]},"reason":"initial"}`)
		g.close()
	}
	first := g.seq
	g.chunk(turn, step, `{"type":"block-start","index":0,"blockType":"text"}`)
	g.text = g.text[:0]
	for range 20 + g.below(9) { // 24 on average
		w := g.word()
		g.text = append(g.text, w...)
		g.chunk(turn, step, `{"type":"text-delta","index":0,"text":"`, w, `"}`)
	}
	text := string(g.text)
	g.chunk(turn, step, `{"type":"block-end","index":0,"block":{"type":"text","text":"`, text, `"}}`)
	callID := "call_00_generated_" + strconv.Itoa(turn) + "-" + strconv.Itoa(step)
	args := `{\"path\":\"internal/generated/src/part` + strconv.Itoa(g.below(1000)) + `.go\",\"offset\":` + strconv.Itoa(g.below(5000)) + `,\"limit\":200,\"whole\":false}`
	call := `{"type":"tool-call","id":"` + callID + `","name":"read","arguments":"` + args + `"}`
	calls := step < 3
	if calls {
		g.chunk(turn, step, `{"type":"tool-call-delta","index":1,"id":"`, callID, `","name":"read","argumentsDelta":"`, args, `"}`)
		g.chunk(turn, step, `{"type":"block-end","index":1,"block":`, call, `}`)
	}
	finish := "stop"
	if calls {
		finish = "tool-calls"
	}
	usage := `{"inputTokens":` + strconv.Itoa(1000+g.below(9000)) + `,"outputTokens":` + strconv.Itoa(20+g.below(100)) +
		`,"cacheReadTokens":` + strconv.Itoa(g.below(9000)) + `}`
	g.chunk(turn, step, `{"type":"usage","usage":`, usage, `}`)
	g.chunk(turn, step, `{"type":"finish","reason":{"kind":"`, finish, `"}}`)
	last := g.seq - 1

	g.open("assistant/message")
	g.at(turn, step)
	g.add(`,"message":{"role":"assistant","content":[{"type":"text","text":"`, text, `"}`)
	if calls {
		g.add(`,`, call)
	}
	g.add(`],"source":{"kind":"model","provider":"acme","model":"tiny-1"},"id":"a-`, callID, `"},"usage":`, usage, `},"sourceEventSeqs":[`)
	for s := first; s <= last; s++ {
		if s > first {
			g.add(`,`)
		}
		g.line = strconv.AppendInt(g.line, s, 10)
	}
	g.add(`],"surfaceOp":"append"`)
	g.close()

	if calls {
		g.open("tool/call")
		at := g.seq
		g.at(turn, step)
		g.add(`,"callId":"`, callID, `","name":"read","arguments":"`, args, `"}`)
		g.close()
		g.open("tool/result")
		g.at(turn, step)
		g.add(`,"message":{"source":{"kind":"tool","callId":"`, callID, `"},"content":[{"type":"tool-result","toolCallId":"`, callID,
			`","content":[{"type":"text","text":"`)
		for end := len(g.line) + 600; len(g.line) < end; {
			g.add(g.word())
		}
		g.add(`"}],"isError":false}],"role":"user","id":"r-`, callID, `"}},"sourceEventSeqs":[`)
		g.line = strconv.AppendInt(g.line, at, 10)
		g.add(`],"surfaceOp":"append"`)
		g.close()
	}
	g.open("step/end")
	g.at(turn, step)
	g.add(`}`)
	g.close()
}

func (g *generator) chunk(turn, step int, parts ...string) {
	g.open("assistant/chunk")
	g.at(turn, step)
	g.add(`,"chunk":`)
	g.add(parts...)
	g.add(`}`)
	g.close()
}
