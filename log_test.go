package outcrop

import (
	"fmt"
	"iter"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/outcrop-dev/outcrop/internal/jsonwire"
)

func TestAnEventCostsAtMost64Bytes(t *testing.T) {
	if n := unsafe.Sizeof(entry{}); n > 64 {
		t.Errorf("an entry has %d bytes", n)
	}
	n := int(unsafe.Sizeof(chunk{}))
	if got := cap(append([]byte(nil), make([]byte, n)...)); got != n {
		t.Errorf("a chunk of entries has %d bytes and the allocator gives %d: the rest is wasted", n, got)
	}
}

func TestTheTableOfTypesIsInOrder(t *testing.T) {
	for i, typ := range typeTable {
		if id := typeID(i); id.surface() != typ.Surface() || typ.tag() != typeTag(i+1) {
			t.Errorf("%s: surface %v, tag %d", typ, id.surface(), typ.tag())
		}
	}
	for id, typ := range map[typeID]Type{idChunk: TypeAssistantChunk, idTurnStart: TypeTurnStart, idTurnEnd: TypeTurnEnd,
		idUser: TypeUserMessage, idAssistant: TypeAssistantMessage, idResult: TypeToolResult, idContext: TypeContextMessage,
		idRequestHeader: TypeRequestHeader} {
		if typeTable[id] != typ {
			t.Errorf("%s is not where its number says", typ)
		}
	}
	dsh := 0
	for _, typ := range typeTable {
		if typ.DSH() {
			dsh++
		}
	}
	if dsh != 48 {
		t.Errorf("%d types of dsh, it has 48", dsh)
	}
}

// lines makes records from the lines of a log, rows included.
func lines(t testing.TB, text string) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		for _, line := range strings.Split(strings.TrimSpace(text), "\n") {
			r, err := decodeLine([]byte(line))
			if !yield(r, err) {
				return
			}
		}
	}
}

func decodeLine(line []byte) (Record, error) {
	if IsRow(line) {
		r, err := DecodeRun(line)
		return RunRecord(&r), err
	}
	ev, err := DecodeEvent(line)
	return Record{Event: ev}, err
}

const withRows = `
{"type":"turn/start","seq":0,"time":10,"data":{"turn":1}}
{"type":"step/start","seq":1,"time":11,"data":{"turn":1,"step":1}}
{"type":"text-chunks","seq0":2,"time0":12,"data":{"turn":1,"step":1,"index":0,"dt":[2,-1,7],"texts":["a","\ud83d","","d"]}}
{"type":"tool-call-chunks","seq0":6,"time0":30,"data":{"turn":1,"step":1,"index":1,"dt":[1,1],"id":"c","name":"ls","args":["{","}",""]}}
{"type":"vendor/note","seq":9,"time":31,"data":{"k" : 12345678901234567890},"ignorable":true}
{"type":"step/end","seq":10,"time":32,"data":{"turn":1,"step":1}}
{"type":"turn/end","seq":11,"time":33,"data":{"turn":1,"reason":{"kind":"completed"}}}
{"type":"session/end-seed","seq":12,"time":34,"data":{}}`

func TestARowIsOneRecordAndManyEvents(t *testing.T) {
	s, err := Restore(NewHeader("s1", 1, ""), lines(t, withRows), Options{})
	if err != nil {
		t.Fatal(err)
	}
	log := s.Log()
	if log.Len() != 13 || s.Stored() != 13 || s.FirstLive() != 13 {
		t.Fatalf("len %d, stored %d, first live %d", log.Len(), s.Stored(), s.FirstLive())
	}
	for seq, want := range map[Seq]string{
		3:  `{"type":"assistant/chunk","seq":3,"time":14,"data":{"turn":1,"step":1,"chunk":{"type":"text-delta","index":0,"text":"\ud83d"}}}`,
		5:  `{"type":"assistant/chunk","seq":5,"time":20,"data":{"turn":1,"step":1,"chunk":{"type":"text-delta","index":0,"text":"d"}}}`,
		7:  `{"type":"assistant/chunk","seq":7,"time":31,"data":{"turn":1,"step":1,"chunk":{"type":"tool-call-delta","index":1,"id":"c","name":"ls","argumentsDelta":"}"}}}`,
		9:  `{"type":"vendor/note","seq":9,"time":31,"data":{"k" : 12345678901234567890},"ignorable":true}`,
		11: `{"type":"turn/end","seq":11,"time":33,"data":{"turn":1,"reason":{"kind":"completed"}}}`,
	} {
		if got := string(log.At(seq).AppendJSON(nil)); got != want {
			t.Errorf("event %d is\n%s, want\n%s", seq, got, want)
		}
	}
	var kinds []string
	for r := range log.Records(0) {
		kinds = append(kinds, fmt.Sprintf("%d+%d", r.Seq, r.Count()))
	}
	if got := strings.Join(kinds, " "); got != "0+1 1+1 2+4 6+3 9+1 10+1 11+1 12+1" {
		t.Errorf("records %s", got)
	}
}

func TestAPrefixCutsARow(t *testing.T) {
	s, err := Inspect(NewHeader("s1", 1, ""), lines(t, withRows), Options{})
	if err != nil {
		t.Fatal(err)
	}
	whole := slices.Collect(Events(s.Log(), 0))
	for n := 0; n <= 13; n++ {
		for from := 0; from <= n; from++ {
			for _, log := range []Log{Prefix(s.Log(), n), Prefix(prefixLog{s.Log(), 13}, n)} {
				got := slices.Collect(Events(log, Seq(from)))
				if len(got) != n-from {
					t.Fatalf("prefix %d from %d has %d events", n, from, len(got))
				}
				for i, ev := range got {
					want := whole[from+i]
					if ev.Seq != want.Seq || ev.Time != want.Time || string(ev.Data) != string(want.Data) {
						t.Fatalf("prefix %d from %d: event %d is %s", n, from, i, ev.AppendJSON(nil))
					}
				}
				// A cut row that is written again holds the same events.
				for r := range log.Records(Seq(from)) {
					if r.Run == nil {
						continue
					}
					again, err := DecodeRun(r.Run.AppendLine(nil))
					if err != nil {
						t.Fatal(err)
					}
					a, b := slices.Collect(again.Events()), slices.Collect(r.Run.Events())
					if fmt.Sprint(a) != fmt.Sprint(b) {
						t.Fatalf("row %s is written as %s", r.Run.line, r.Run.AppendLine(nil))
					}
				}
			}
		}
	}
}

func TestASeedCopiesACutRow(t *testing.T) {
	s, _ := Inspect(NewHeader("s1", 1, ""), lines(t, withRows), Options{})
	child, err := Seed(NewHeader("s2", 1, ""), Prefix(s.Log(), 4), Options{Now: func() int64 { return 99 }})
	if err != nil {
		t.Fatal(err)
	}
	if child.Len() != 5 || child.Log().At(4).Type != TypeEndSeed || child.Log().At(4).Time != 99 {
		t.Fatalf("seeded %d events", child.Len())
	}
	if got, want := LogDigest(Prefix(child.Log(), 4)), LogDigest(Prefix(s.Log(), 4)); got != want {
		t.Error("the digest of the seed differs")
	}
}

func TestASeedHoldsOldShapesInTheirPresentForm(t *testing.T) {
	old := []byte(`{"type":"turn/start","seq":0,"time":1,"data":{"turn":1,"trigger":{"kind":"retry"}}}`)
	ev, err := DecodeEvent(old)
	if err != nil {
		t.Fatal(err)
	}
	ev = ev.Upgraded(TypeTurnStart, []byte(`{"turn":1}`))
	one := func(yield func(Record, error) bool) { yield(Record{Event: ev}, nil) }
	read, err := Inspect(NewHeader("s1", 1, ""), one, Options{})
	if err != nil {
		t.Fatal(err)
	}
	got := read.Log().At(0)
	if string(got.Line()) != string(old) || string(got.Data) != `{"turn":1}` || string(got.Clone().Data) != `{"turn":1}` {
		t.Errorf("read as %s, seen as %s", got.Line(), got.Data)
	}
	child, err := Seed(NewHeader("s2", 1, ""), read.Log(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got := string(child.Log().At(0).Line()); got != `{"type":"turn/start","seq":0,"time":1,"data":{"turn":1}}` {
		t.Errorf("seeded as %s", got)
	}
}

func TestALogViewDoesNotGrow(t *testing.T) {
	s, _ := New(NewHeader("s1", 1, ""), Options{})
	var views []Log
	for i := range 5000 {
		views = append(views, s.Log())
		if _, err := s.Append(RawPayload{Type: Type(fmt.Sprintf("x/%d", i%7)), Data: []byte(fmt.Sprintf(`{"i":%d}`, i)), Ignorable: true}); err != nil {
			t.Fatal(err)
		}
	}
	for n, v := range views {
		if v.Len() != n {
			t.Fatalf("view %d has %d events", n, v.Len())
		}
		if n > 0 {
			if got := v.At(Seq(n - 1)); string(got.Data) != fmt.Sprintf(`{"i":%d}`, n-1) || got.Type != Type(fmt.Sprintf("x/%d", (n-1)%7)) {
				t.Fatalf("view %d ends with %s", n, got.AppendJSON(nil))
			}
		}
	}
}

func FuzzDecodeEvent(f *testing.F) {
	for _, l := range strings.Split(withRows, "\n") {
		f.Add([]byte(l))
	}
	f.Add([]byte(`{"type":"user/message","seq":0,"time":1,"data":{"content":[],"source":{"kind":"user"},"role":"user","id":"a"},"sourceEventSeqs":[],"surfaceOp":{"op":"replace","start":0,"end":1}}`))
	f.Add([]byte(`{"\u0074ype":"tool/result","seq":1e0,"time":-0,"data":{"message":{"id":"x","content":[{"type":"tool-result","toolCallId":"c","content":[]}],"role":"user","source":{"kind":"tool","callId":"c"}}},"surfaceOp":"append","ignorable":false}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		if IsRow(line) {
			r, err := DecodeRun(line)
			if scanned, ok := scanRow(line); ok {
				parsed, err := parseRow(line)
				if err != nil || !reflect.DeepEqual(scanned, parsed) {
					t.Fatalf("%s is scanned as %+v and parsed as %+v, %v", line, scanned, parsed, err)
				}
			}
			if err != nil {
				return
			}
			n := 0
			for ev := range r.Events() {
				if ev.Seq != r.First+Seq(n) {
					t.Fatalf("event %d of %s has seq %d", n, line, ev.Seq)
				}
				n++
			}
			if n != r.Len {
				t.Fatalf("row %s says %d events and has %d", line, r.Len, n)
			}
			return
		}
		ev, err := DecodeEvent(line)
		if err != nil {
			return
		}
		if string(ev.AppendJSON(nil)) != string(line) || string(ev.Clone().AppendJSON(nil)) != string(line) {
			t.Fatal("the bytes of a line changed")
		}
		for _, from := range []func(Header, iter.Seq2[Record, error], Options) (*Session, error){Inspect, Restore, SeedRecords} {
			s, err := from(NewHeader("s1", 1, ""), func(yield func(Record, error) bool) { yield(Record{Event: ev}, nil) }, Options{})
			if err != nil {
				continue
			}
			if got := s.Log().At(0); string(got.Data) != string(ev.Data) || got.Type != ev.Type || got.Time != ev.Time {
				t.Fatalf("%s came back as %s", line, got.AppendJSON(nil))
			}
			for _, m := range s.Messages() {
				_ = m.ID
			}
		}
	})
}

func FuzzHeader(f *testing.F) {
	f.Add([]byte(`{"type":"session","version":0,"id":"s1","createdAt":5,"delegationDepth":0,"cwd":"/a","parentSession":"p","seedLength":2,"origin":"subagent","agentPreset":"x","outcrop":1,"more":{"a":1}}`))
	f.Add([]byte(`{"type":"session","version":2,"id":"s1"}`))
	f.Add([]byte("{\"type\":\"session\",\"version\":0,\"id\":\"s\xa01\",\"createdAt\":5,\"delegationDepth\":0}"))
	f.Fuzz(func(t *testing.T, line []byte) {
		h, err := ParseHeader(line)
		if err != nil {
			return
		}
		if string(h.Line()) != string(line) {
			t.Fatal("the header's bytes changed")
		}
		h.line = nil
		again, err := ParseHeader(h.Line())
		if err != nil {
			t.Fatalf("%s is written as %s, which is refused: %v", line, h.Line(), err)
		}
		// An id that is no UTF-8 is read as it is; what is written is always valid.
		id, _ := jsonwire.Text(jsonwire.AppendString(nil, h.ID))
		if again.ID != id || again.CreatedAt != h.CreatedAt || again.DelegationDepth != h.DelegationDepth || again.Outcrop != h.Outcrop {
			t.Fatalf("%s is written as %s", line, h.Line())
		}
	})
}
