package exchange_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"iter"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/outcrop-dev/outcrop/exchange"
)

func FuzzLines(f *testing.F) {
	f.Add([]byte("a\nb\r\n\n\nlast"))
	f.Add([]byte("\n"))
	f.Add([]byte(""))
	f.Add([]byte("\xef\xbb\xbfa\nb"))
	f.Add([]byte("\xef\xbb\xbf"))
	f.Add([]byte("\xef\xbba\n"))
	f.Add([]byte("a\n\xef\xbb\xbfb\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		for name, r := range map[string]io.Reader{"at once": bytes.NewReader(b), "byte by byte": iotest.OneByteReader(bytes.NewReader(b))} {
			sum := sha256.New()
			text := exchange.TrimMark(b)
			at, n := int64(len(b)-len(text)), int64(0)
			var parts []string
			for line, err := range exchange.Lines(r, sum) {
				if err != nil {
					t.Fatal(err)
				}
				n++
				if line.Number != n || line.Offset != at || line.Torn != (at+line.Bytes == int64(len(b)) && b[len(b)-1] != '\n') || line.Long {
					t.Fatalf("%s: line %+v at %d, the %d. of %q", name, line, at, n, b)
				}
				at += line.Bytes
				parts = append(parts, string(line.Text))
			}
			want := strings.Split(string(text), "\n")
			if want[len(want)-1] == "" {
				want = want[:len(want)-1]
			}
			for k := range want {
				if k < len(want)-1 || bytes.HasSuffix(b, []byte("\n")) {
					want[k] = strings.TrimSuffix(want[k], "\r")
				}
			}
			if at != int64(len(b)) || strings.Join(parts, "\n") != strings.Join(want, "\n") || len(parts) != len(want) {
				t.Fatalf("%s: %q of %q", name, parts, b)
			}
			if got, want := sum.Sum(nil), sha256.Sum256(b); !bytes.Equal(got, want[:]) {
				t.Fatalf("%s: another digest", name)
			}
		}
	})
}

// endless is a text of so many equal bytes, then an end.
type endless struct {
	n    int64
	tail io.Reader
}

func (e *endless) Read(b []byte) (int, error) {
	if e.n == 0 {
		return e.tail.Read(b)
	}
	n := min(int64(len(b)), e.n)
	for i := range b[:n] {
		b[i] = 'x'
	}
	e.n -= n
	return int(n), nil
}

func TestALineThatIsTooLongIsPassedOver(t *testing.T) {
	if testing.Short() {
		t.Skip("it holds a line of 256 MiB")
	}
	next, stop := iter.Pull2(exchange.Lines(&endless{exchange.MaxLine + 5<<20, strings.NewReader("\nshort\n")}, nil))
	defer stop()
	line, err, ok := next()
	if !ok || err != nil || !line.Long || line.Bytes != exchange.MaxLine+5<<20+1 || len(line.Text) > 1000 {
		t.Fatalf("%v %v: long %v, %d bytes", ok, err, line.Long, line.Bytes)
	}
	if line, err, ok = next(); !ok || err != nil || string(line.Text) != "short" || line.Number != 2 || line.Offset != exchange.MaxLine+5<<20+1 {
		t.Fatalf("%v %v: %+v", ok, err, line)
	}
	if _, _, ok = next(); ok {
		t.Fatal("there is one more line")
	}
}

func TestAFailedReadEndsTheLines(t *testing.T) {
	boom := errors.New("boom")
	var got []string
	for line, err := range exchange.Lines(io.MultiReader(strings.NewReader("a\nb"), iotest.ErrReader(boom)), nil) {
		if err != nil {
			got = append(got, err.Error())
			continue
		}
		got = append(got, string(line.Text))
	}
	if strings.Join(got, ",") != "a,boom" {
		t.Errorf("%q", got)
	}
}
