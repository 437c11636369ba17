package dshsqlite

import (
	"bytes"
	"context"
	"encoding/hex"
	"iter"
	"maps"
	"path/filepath"
	"testing"

	"pgregory.net/rapid"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/wire"
)

func TestSourcesAreTheListsOfDsh(t *testing.T) {
	for _, c := range []struct{ blob, list string }{
		{"", "[]"}, {"00", "[0]"}, {"7f", "[127]"}, {"8001", "[128]"}, {"ac0202", "[300,301]"}, {"0503", "[5,3]"}, {"0500", "[5,5]"},
		{"04020202", "[4,5,6,7]"}, {"feffffffffffff0f", "[9007199254740990]"},
		{"80", ""}, {"8000", ""}, {"050b", ""}, {"ffffffffffffff7f", ""}, {"ffffffffffffffffff01", ""}, {"ffffffffffffffffffffff", ""}, {"00ffffffffffffffff7f", ""},
	} {
		b, err := hex.DecodeString(c.blob)
		if err != nil {
			t.Fatal(err)
		}
		got, err := appendSources(nil, b)
		if (err != nil) != (c.list == "") || err == nil && string(got) != c.list {
			t.Errorf("%s gives %s, %v; want %s", c.blob, got, err, c.list)
		}
	}
}

func TestSourcesOfAnyListComeBack(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		list := rapid.SliceOf(rapid.Int64Range(0, jsonwire.MaxSafe)).Draw(r, "list")
		var blob []byte
		put := func(u uint64) {
			for ; u >= 0x80; u >>= 7 {
				blob = append(blob, byte(u)|0x80)
			}
			blob = append(blob, byte(u))
		}
		want := []byte{'['}
		for i, n := range list {
			if i > 0 {
				want = append(want, ',')
			}
			want = jsonwire.AppendInt(want, n)
			switch {
			case i == 0:
				put(uint64(n))
			case n >= list[i-1]:
				put(uint64(2 * (n - list[i-1])))
			default:
				put(uint64(2*(list[i-1]-n) - 1))
			}
		}
		got, err := appendSources(nil, blob)
		if want = append(want, ']'); err != nil || !bytes.Equal(got, want) {
			r.Fatalf("%x gives %s, %v; want %s", blob, got, err, want)
		}
	})
}

// FuzzRow gives the decoder any columns: it never panics, and a line that it
// makes is one JSON object with no more members than a line has, whose data is
// the data of the row.
func FuzzRow(f *testing.F) {
	f.Add(int64(17), int64(4), "text-chunks", int64(1), []byte(`{"turn":2,"step":1,"index":0,"dt":[2],"texts":["Go"," is"]}`), true, []byte(nil), "", int8(0))
	f.Add(int64(17), int64(8), "assistant/message", int64(1), []byte(`{"turn":2}`), true, []byte{4, 2, 2}, `"append"`, int8(-1))
	f.Add(int64(14), int64(1), "turn/start", int64(9), []byte(` {"turn":1} `), true, []byte(`[1,2]`), "", int8(-1))
	f.Add(int64(17), int64(1), "turn/start", int64(9), []byte("\x28\xb5\x2f\xfd\x20\x02\x11\x00\x00{}"), false, []byte(nil), "", int8(1))
	f.Add(int64(15), int64(1), "a\"b", int64(9), []byte(`1},"x":{"y":2`), true, []byte(nil), "", int8(1))
	f.Fuzz(func(t *testing.T, schema, seq int64, typ string, time int64, data []byte, isText bool, sources []byte, op string, ignorable int8) {
		r := row{seq: seq, time: time, typ: typ, data: data}
		if isText {
			r.data = string(data)
		}
		if sources != nil {
			if r.sources = sources; schema < 17 {
				r.sources = string(sources)
			}
		}
		if op != "" {
			r.op = op
		}
		if ignorable >= 0 {
			r.ignorable = int64(ignorable)
		}
		d := newDecoder(schema)
		defer d.close()
		line, err := d.line(&r)
		if err != nil {
			return
		}
		if err := jsonwire.Valid(line); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		allowed := map[string]bool{"type": true, "seq": true, "time": true, "seq0": true, "time0": true, "data": true, "sourceEventSeqs": true, "surfaceOp": true, "ignorable": true}
		for k := range jsonwire.Members(line) {
			if !allowed[string(k)] {
				t.Fatalf("%q has a member %s", line, k)
			}
		}
		if isText && !bytes.Equal(bytes.TrimSpace(jsonwire.Get(line, "data")), bytes.Trim(data, " \t\r\n")) {
			t.Fatalf("%q has data %s, want %s", line, jsonwire.Get(line, "data"), data)
		}
		rec, err := wire.NewLines("s", func(outcrop.Seq) iter.Seq2[outcrop.Seq, []byte] { return maps.All(map[outcrop.Seq][]byte{}) }).Record(line)
		if err == nil && int64(rec.Seq) != seq {
			t.Fatalf("%q has the seq %d, want %d", line, rec.Seq, seq)
		}
	})
}

// TestAClosedStoreAnswers: what was lent stays open until it comes back.
func TestAClosedStoreAnswers(t *testing.T) {
	s, err := New(filepath.Join(t.TempDir(), "x.db"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Read(context.Background(), "x"); err == nil {
		t.Error("a closed store was read")
	}
	if _, err := New("", Options{}); err == nil {
		t.Error("a store without a path was made")
	}
}
