package arrays_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/outcrop-dev/outcrop/exchange"
	"github.com/outcrop-dev/outcrop/exchange/arrays"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
)

// lines are bodies of about so many bytes, one a line: conversations of two
// calls with results of 6 KB.
func lines(size int) []byte {
	var out bytes.Buffer
	result := encode(strings.Repeat("func main() { fmt.Println(\"a line of code\") }\n\t", 130))
	for n := 0; out.Len() < size; n++ {
		fmt.Fprintf(&out, `{"model":"m","messages":[{"role":"system","content":"Be short."},{"role":"user","content":"question %d"}`, n)
		for k := range 2 {
			fmt.Fprintf(&out, `,{"role":"assistant","content":"looking","tool_calls":[{"id":"c%d","type":"function","function":{"name":"read","arguments":"{\"path\":\"a%d.go\"}"}}]},{"role":"tool","tool_call_id":"c%d","content":%s}`, k, n, k, result)
		}
		fmt.Fprintf(&out, `,{"role":"assistant","content":"answer %d"}]}`+"\n", n)
	}
	return out.Bytes()
}

// BenchmarkLines makes the logs of conversations. The floor is a bare pass over
// the same lines, each checked to be JSON.
func BenchmarkLines(b *testing.B) {
	text := lines(16 << 20)
	ctx := context.Background()
	var floor, took time.Duration
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		b.StopTimer()
		start := time.Now()
		for l := range exchange.Lines(bytes.NewReader(text), nil) {
			if err := jsonwire.Valid(l.Text); err != nil {
				b.Fatal(err)
			}
		}
		floor += time.Since(start)
		b.StartTimer()
		start = time.Now()
		for s, err := range arrays.OpenAI.Lines(ctx, bytes.NewReader(text), nil) {
			if err != nil {
				b.Fatal(err)
			}
			h, err := s.Header(ctx, exchange.Options{})
			if err != nil {
				b.Fatal(err)
			}
			for _, err := range s.Records(ctx, h, exchange.Options{}) {
				if err != nil {
					b.Fatal(err)
				}
			}
		}
		took += time.Since(start)
	}
	b.ReportMetric(float64(took)/float64(floor), "x-floor")
}
