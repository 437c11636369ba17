package claudecode_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/outcrop-dev/outcrop/exchange"
	"github.com/outcrop-dev/outcrop/exchange/claudecode"
	"github.com/outcrop-dev/outcrop/exchange/exchangetest"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
)

// long is a session file of about so many bytes: turns of three calls each,
// with thinking, and results of 6 KB that are written twice, as the program does.
func long(t testing.TB, size int) []byte {
	r := rand.New(rand.NewPCG(1, 2))
	code := exchangetest.SourceOfPrograms(t, filepath.Join("..", "..", "*.go"))
	prose := func(n int) string {
		at := r.IntN(len(code) - n)
		return string(jsonwire.AppendString(nil, strings.ToValidUTF8(code[at:at+n], "")))
	}
	var out bytes.Buffer
	n := 0
	put := func(l string) {
		l = strings.ReplaceAll(strings.ReplaceAll(l, fmt.Sprintf(`"#%d"`, n), `"`+id(n)+`"`), fmt.Sprintf(`"#%d"`, n-1), `"`+id(n-1)+`"`)
		l = strings.ReplaceAll(l, fmt.Sprintf(`"@%d"`, n), time.UnixMilli(1772359200000+int64(n)*1000).UTC().Format(`"2006-01-02T15:04:05.000Z"`))
		out.WriteString(l + "\n")
	}
	for turn := 0; out.Len() < size; turn++ {
		n++
		put(user(n, n-1, prose(200)))
		for k := range 3 {
			msg, call := fmt.Sprintf("m%d-%d", turn, k), fmt.Sprintf("t%d-%d", turn, k)
			n++
			put(assistant(n, n-1, msg, `{"type":"thinking","thinking":`+prose(400)+`,"signature":"`+strings.Repeat("c2ln", 60)+`"}`))
			n++
			put(assistant(n, n-1, msg, use(call)))
			n++
			result := prose(6000)
			put(user(n, n-1, `[{"tool_use_id":"`+call+`","type":"tool_result","content":`+result+`}]`, `"toolUseResult":{"stdout":`+result+`,"stderr":"","interrupted":false}`))
		}
		n++
		put(assistant(n, n-1, fmt.Sprintf("m%d", turn), `{"type":"text","text":`+prose(500)+`}`))
	}
	return out.Bytes()
}

// BenchmarkImport imports a long session.
func BenchmarkImport(b *testing.B) {
	text := long(b, 32<<20)
	path := filepath.Join(b.TempDir(), session+".jsonl")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		b.Fatal(err)
	}
	exchangetest.BenchmarkImport(b, claudecode.Open(path), text)
}

// TestMemoryGrowsWithTheIndexAlone reads sessions of 4 MB and 16 MB and looks at
// what is live on the way: the longer one may take an index more, and not its
// text.
func TestMemoryGrowsWithTheIndexAlone(t *testing.T) {
	live := func(size int) (peak uint64, lines int) {
		text := long(t, size)
		path := filepath.Join(t.TempDir(), session+".jsonl")
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		lines = bytes.Count(text, []byte("\n"))
		text = nil
		ctx := context.Background()
		for s, err := range claudecode.Sessions(ctx, path, nil) {
			if err != nil {
				t.Fatal(err)
			}
			h, err := s.Header(ctx, exchange.Options{})
			if err != nil {
				t.Fatal(err)
			}
			for r, err := range s.Records(ctx, h, exchange.Options{}) {
				if err != nil {
					t.Fatal(err)
				}
				if r.Seq%1000 == 0 {
					runtime.GC()
					var m runtime.MemStats
					runtime.ReadMemStats(&m)
					peak = max(peak, m.HeapAlloc)
				}
			}
		}
		return peak, lines
	}
	short, few := live(4 << 20)
	longer, many := live(16 << 20)
	if more, most := int64(longer)-int64(short), int64(many-few)*300+2<<20; more > most {
		t.Errorf("12 MB more of text take %d bytes more of memory (%d lines), at most %d were expected", more, many-few, most)
	}
}

// TestALineOf100MB is imported, images in it too.
func TestALineOf100MB(t *testing.T) {
	big := strings.Repeat("0123456789abcdef", 100<<20/16)
	head := strings.Replace(strings.Replace(user(1, 0, `"`), `"#1"`, `"`+id(1)+`"`, 1), `"@1"`, `"2026-03-01T10:00:01.000Z"`, 1)
	at := strings.Index(head, `"content":"`) + len(`"content":"`)
	r := readers{strings.NewReader(head[:at]), strings.NewReader(big), strings.NewReader(`"` + head[at:] + "\n")}
	ctx := context.Background()
	for s, err := range claudecode.Read(ctx, r, "x.jsonl", nil) {
		if err != nil {
			t.Fatal(err)
		}
		h, err := s.Header(ctx, exchange.Options{})
		if err != nil {
			t.Fatal(err)
		}
		longest := 0
		for r, err := range s.Records(ctx, h, exchange.Options{}) {
			if err != nil {
				t.Fatal(err)
			}
			longest = max(longest, len(r.Data))
		}
		if longest < 100<<20 {
			t.Errorf("the longest event has %d bytes", longest)
		}
	}
}

// readers are texts one behind the other.
type readers []*strings.Reader

func (r readers) ReadAt(b []byte, off int64) (n int, err error) {
	for _, part := range r {
		if off >= part.Size() {
			off -= part.Size()
			continue
		}
		k, _ := part.ReadAt(b[n:], off)
		n, off = n+k, 0
		if n == len(b) {
			return n, nil
		}
	}
	return n, io.EOF
}
