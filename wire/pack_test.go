package wire_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/outcrop-dev/outcrop/wire"
)

// A row that no reader takes would lose all of its events.
func TestARunOfLongDeltasIsNotOneRow(t *testing.T) {
	text := strings.Repeat("x", wire.MaxLine/24)
	var lines []string
	for i := range 4 {
		lines = append(lines, fmt.Sprintf(`{"type":"assistant/chunk","seq":%d,"time":1,"data":{"turn":1,"step":1,"chunk":{"type":"text-delta","index":0,"text":"%s"}}}`, i, text))
	}
	out, err := wire.NewEncoder(wire.Plain).Batch(nil, slices.Values(records(lines...)))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range bytes.Lines(out) {
		if len(line) > wire.MaxLine/7 {
			t.Errorf("a line of %d bytes", len(line))
		}
		n++
	}
	if n < 2 {
		t.Errorf("%d lines", n)
	}
}
