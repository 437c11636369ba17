package jetstream

import (
	"bytes"
	"errors"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/outcrop-dev/outcrop"
)

// A few kilobytes on the servers are any number of bytes when they are
// decompressed: they come in pieces of whole lines, and what is no text of a log
// is given up early.
func TestALongTextComesInPieces(t *testing.T) {
	t.Parallel()
	enc, err := zstd.NewWriter(nil)
	ok(t, err)
	texts := func(body []byte) (all []byte, most int, err error) {
		m := message{Kind: kindBatch, Body: body}
		for text, terr := range (&link{}).text(bg, m) {
			if err != nil {
				t.Fatal("there is more behind an error")
			}
			all, most, err = append(all, text...), max(most, len(text)), terr
		}
		return all, most, err
	}
	line := append(bytes.Repeat([]byte("0123456789abcdef"), 1<<10), '\n')
	for _, n := range []int{1, wholeText / len(line), wholeText/len(line) + 1, 5 * wholeText / len(line)} {
		want := append([]byte("{}\n"), bytes.Repeat(line, n)...)
		body := append(enc.EncodeAll(want[:3], nil), enc.EncodeAll(want[3:], nil)...)
		got, most, err := texts(body)
		ok(t, err)
		if !bytes.Equal(got, want) || most > wholeText+len(line) {
			t.Errorf("%d lines in %d bytes: %d bytes come, of %d, at most %d at once", n, len(body), len(got), len(want), most)
		}
		if _, _, err := texts(body[:len(body)-1]); !errors.Is(err, outcrop.ErrDamaged) {
			t.Errorf("of %d lines that are cut off comes %v", n, err)
		}
	}
	whole := append(bytes.Repeat(line, 3*wholeText/len(line)), "no end"...)
	if _, _, err := texts(enc.EncodeAll(whole, nil)); !errors.Is(err, outcrop.ErrDamaged) {
		t.Errorf("of a text that ends inside a line comes %v", err)
	}
	if testing.Short() {
		return
	}
	endless := enc.EncodeAll(bytes.Repeat([]byte{'a'}, outcrop.MaxRecord+3*wholeText), nil)
	if got, _, err := texts(endless); !errors.Is(err, outcrop.ErrDamaged) || len(got) > 0 {
		t.Errorf("of a line without end in %d bytes come %d bytes and %v", len(endless), len(got), err)
	}
}
